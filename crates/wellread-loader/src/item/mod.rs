//! Rows to batches: the work of one thread for a slice of a batch, or for a single item.
//!
//! For each row: shape → [`Placement`] of each crop of each view → requests for each run of channels. Requests are
//! sorted by position on disk and read in one call with the fused sink (`read`). Steps that the pass over the pixels
//! could not do follow from the intermediate buffer (`complete`).

mod complete;
mod job;
mod labels;
mod read;
mod sample;
mod set_transform;

pub(crate) use job::{Job, PairedImages, Reference};

use crate::budget::{MAX_INTERMEDIATE_FLOATS, MemoryEstimate};
use crate::compiled_transform::CompiledTransform;
use crate::draw::{Draws, Purpose};
use crate::dtype::Output;
use crate::kernels::Affine;
use crate::orientation::Orientation;
use crate::percentiles::Percentiles;
use crate::pool::RowMemory;
use crate::postprocess::factor;
use crate::resample::Resampler;
use crate::row_fields::LastFields;
use crate::sink::{PixelDestination, Target};
use crate::traffic::Traffic;
use crate::transform::Placement;
use set_transform::TransformOfSet;
use std::ops::Range;
use wellread_store::cover::{Cover, Rectangle};
use wellread_store::row_location::{path_of_row, path_of_set};
use wellread_store::{Request, Result, RowHints, RowInfo, Scratch};
use wellread_trace::{Kind, span};

/// Buffers that one thread reuses from item to item, so that in steady state nothing is allocated. They
/// also have the seed and epoch of its random draws.
#[derive(Debug, Default)]
pub struct ItemContext {
    scratch: Scratch,
    items: Vec<Item>,
    /// Position on disk and index of each row of a group.
    by_position: Vec<(u64, usize)>,
    requests: Vec<Request>,
    /// The targets that each request serves.
    serves: Vec<Range<usize>>,
    targets: Vec<Target>,
    cover: Cover,
    affine: Vec<Affine>,
    intermediate: Vec<f32>,
    second: PostReadBuffers,
    /// The same for the targets of the rows, of which another store is the reader.
    target_context: Option<Box<Self>>,
    /// The transform of the last single item, compiled once.
    compiled: Option<CompiledTransform>,
    of_set: Option<TransformOfSet>,
    seed: u64,
    epoch: u64,
    /// The bytes read since this was last taken.
    traffic: Traffic,
}

/// Buffers of what comes after reading.
#[derive(Debug, Default)]
struct PostReadBuffers {
    /// One image as floats, neither turned nor scaled.
    untransformed: Vec<f32>,
    /// One image turned, before resize and rotation.
    turned: Vec<f32>,
    /// One image as floats, before it is rounded to half precision.
    floats: Vec<f32>,
    /// One plane between resize and rotation.
    resized: Vec<f32>,
    /// The illumination fields of the row before.
    fields: LastFields,
    /// For percentiles of a channel.
    percentiles: Percentiles,
    resampler: Resampler,
}

impl ItemContext {
    /// An empty context with seed 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the seed and epoch that single items draw their crops, flips and turns from.
    pub fn set_seed(&mut self, seed: u64, epoch: u64) {
        (self.seed, self.epoch) = (seed, epoch);
    }

    /// Bytes read of files, and bytes of pixels used, since this was last asked for.
    pub fn take_traffic(&mut self) -> Traffic {
        let images = std::mem::take(&mut self.traffic);
        let targets = self.target_context.as_mut().map(|context| context.take_traffic()).unwrap_or_default();
        Traffic { read: images.read + targets.read, used: images.used + targets.used }
    }

    /// The buffers for targets.
    pub(crate) fn target_context(&mut self) -> &mut Self {
        self.target_context.get_or_insert_with(Box::default)
    }

    /// The reader's scratch buffers, for direct use of a store.
    pub fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

/// One crop of one row on its way.
#[derive(Clone, Copy, Debug)]
struct Item {
    row: usize,
    /// Which of [`Job::arrays`] it is for.
    array: usize,
    slot: OutputSlot,
    info: RowInfo,
    draws: Draws,
    placement: Placement,
    orientation: Orientation,
    /// Whether it is resized or rotated by other than right angles.
    resampled: bool,
    destination: PixelDestination,
    /// Floats of the intermediate buffer that it takes.
    intermediate: usize,
    /// The last floats of these, whose bytes tell the pixels that a mask left in: a byte for each pixel of a channel.
    mask_floats: usize,
    /// Whether its channels go by name, and stand elsewhere than in the first image.
    has_other_channel_order: bool,
    /// Where the factors of its channels begin.
    affine: usize,
    /// Where those of the last step begin, where the image has its own.
    final_affine: Option<usize>,
}

/// Where an image goes: which of the parts that are filled, and its first byte in the array there.
#[derive(Clone, Copy, Debug)]
struct OutputSlot {
    part: usize,
    start: usize,
}

impl Item {
    fn crop(&self) -> Rectangle {
        let Placement { top, left, height, width, .. } = self.placement;
        [top..top + height, left..left + width]
    }
}

impl Job<'_> {
    /// Bytes that are read for crops of a row, about.
    fn cost(&self, row: usize, info: RowInfo, crops: &[Item]) -> usize {
        let whole = info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX);
        let cropped = crops.iter().map(|item| item.placement.height * item.placement.width).sum::<usize>();
        let plane = info.shape.y() * info.shape.x();
        // Pieces are read as far as the crops touch them, unless an image is one piece or goes to a cache.
        let grid = || self.dataset.store().row_hints(row).ok().and_then(RowHints::grid);
        if cropped >= plane || self.dataset.is_cached() || grid().is_none() {
            return whole;
        }
        whole / plane * cropped
    }
}

impl ItemContext {
    /// Reads and transforms `rows`, each with the draws of its occurrence, into `out`, one after the other, the crops
    /// of a row together. `out` is the memory of one batch or, joined, of several in turn, of which all but the last
    /// are as long as the first.
    ///
    /// # Errors
    /// A row whose shape or type does not fit comes before one that cannot be read. Among several of a
    /// kind, the first in order (shapes) or on disk (reading) comes.
    pub(crate) fn fetch(
        &mut self,
        job: &Job<'_>,
        rows: &[usize],
        occurrences: &[u64],
        out: &mut [RowMemory<'_>],
    ) -> Result<()> {
        self.plan(job, rows, occurrences, out[0].count(), usize::MAX)?;
        self.read(job, out)
    }

    /// Plans `rows` for [`Self::read`], as many as have up to `most` bytes to be read, at least one; returns how many. All
    /// parts of the output but the last have `per_part` rows.
    ///
    /// # Errors
    /// The first row whose shape or type cannot be told, or does not fit.
    pub(crate) fn plan(
        &mut self,
        job: &Job<'_>,
        rows: &[usize],
        occurrences: &[u64],
        per_part: usize,
        most: usize,
    ) -> Result<usize> {
        self.items.clear();
        self.affine.clear();
        for array in job.arrays {
            self.affine.extend_from_slice(&array.compiled.affine);
        }
        let mut left = most;
        for (i, (&row, &occurrence)) in rows.iter().zip(occurrences).enumerate() {
            let (stored, info) = job.row(row)?;
            let reordered = job.arrays[0].compiled.has_other_channel_order(job.dataset, stored)?;
            // Those of the image, whichever set is read: so targets are cut as their images are.
            let draws = Draws::new(job.seed, job.epoch, row).of_occurrence(occurrence);
            let (first, factors) = (self.items.len(), self.affine.len());
            for (a, array) in job.arrays.iter().enumerate() {
                for crop in 0..job.crops {
                    let image = i % per_part * job.crops + crop;
                    let slot = OutputSlot { part: i / per_part, start: image * array.image_bytes() };
                    let draws = draws.of_crop(array.first_draw + crop);
                    self.add_item(job, [a, stored], (info, reordered), draws, slot)?;
                }
            }
            if most < usize::MAX {
                match left.checked_sub(job.cost(stored, info, &self.items[first..])) {
                    Some(rest) => left = rest,
                    None if i == 0 => left = 0,
                    None => {
                        self.items.truncate(first);
                        self.affine.truncate(factors);
                        return Ok(i);
                    }
                }
            }
        }
        Ok(rows.len())
    }

    /// Reads and transforms what was planned.
    ///
    /// # Errors
    /// The first row on disk that cannot be read, or needs more memory than there may be used.
    pub(crate) fn read(&mut self, job: &Job<'_>, out: &mut [RowMemory<'_>]) -> Result<()> {
        let images = self.items.len();
        let per_row = job.per_row();
        let mut first = 0;
        while first < images {
            let mut floats = 0;
            let mut last = first;
            while last < images {
                let row = &mut self.items[last..last + per_row];
                let wanted: usize = row.iter().map(|item| item.intermediate).sum();
                if last > first && floats + wanted > MAX_INTERMEDIATE_FLOATS {
                    break;
                }
                for item in row {
                    item.destination.set_start(floats);
                    floats += item.intermediate;
                }
                last += per_row;
            }
            let extra = match job.working {
                Some(working) => {
                    let need = self.need(job, first..last, floats)?;
                    working.take(|| path_of_set(job.dataset.store()), job.stop, need, job.of.is_some())?
                }
                None => None,
            };
            let result = self.read_and_complete(job, first..last, floats, out);
            if extra.is_some() {
                // Before others may use it.
                self.shrink();
            }
            drop(extra);
            result?;
            first = last;
        }
        Ok(())
    }

    fn read_and_complete(
        &mut self,
        job: &Job<'_>,
        items: Range<usize>,
        floats: usize,
        out: &mut [RowMemory<'_>],
    ) -> Result<()> {
        self.read_group(job, items.clone(), floats, out)?;
        for item in &self.items[items] {
            let array = &job.arrays[item.array];
            let OutputSlot { part, start } = item.slot;
            let memory = out[part].array(job.first_array + item.array);
            let image = &mut memory[start..start + array.image_bytes()];
            let is_plain = matches!(item.destination, PixelDestination::Out { .. })
                && array.compiled.post_process.is_none();
            let _finish = (!is_plain).then(|| span(Kind::Finish).with(item.row as u64, 0));
            if array.compiled.is_of_labels {
                self.second.complete_labels(job, item, &mut self.intermediate, image)?;
            } else {
                self.second.complete(job, item, &self.affine, &mut self.intermediate, image)?;
            }
        }
        Ok(())
    }

    /// Bytes of memory that reading some of the planned rows needs, the output aside: see [`budget`](crate::budget).
    fn need(&self, job: &Job<'_>, items: Range<usize>, floats: usize) -> Result<usize> {
        let rows = self.items[items].chunks_exact(job.per_row()).map(|items| (items[0].row, items[0].info));
        MemoryEstimate { dataset: job.dataset, arrays: job.arrays }.of(rows, floats)
    }

    /// Gives all large buffers back.
    fn shrink(&mut self) {
        self.scratch = Scratch::default();
        self.intermediate = Vec::new();
        self.second = PostReadBuffers::default();
    }

    /// Plans one crop of a row for an array, which goes straight to its place there unless more is to be done.
    fn add_item(
        &mut self,
        job: &Job<'_>,
        [array, row]: [usize; 2],
        (info, reordered): (RowInfo, bool),
        draws: Draws,
        slot: OutputSlot,
    ) -> Result<()> {
        let compiled = &job.arrays[array].compiled;
        let transform = &compiled.transform;
        let placement = transform
            .placement_of(info.shape, draws)
            .map_err(|error| error.at(&path_of_row(job.dataset.store(), row), Some(row)))?;
        let resampled = placement.degrees != 0.0
            || transform.resize.is_some_and(|to| (to.height, to.width) != placement.turned_size());
        let floats = resampled || compiled.post_process.is_some();
        let destination = if transform.project {
            PixelDestination::Maximum { start: 0 }
        } else if transform.is_corrected() {
            PixelDestination::Untransformed { start: 0 }
        } else if resampled && compiled.is_of_labels {
            PixelDestination::Stored { start: 0 }
        } else if resampled || (floats && compiled.output != Output::F32) {
            PixelDestination::Turned { start: 0 }
        } else {
            PixelDestination::Out { part: slot.part, array: job.first_array + array, start: slot.start }
        };
        let depth = transform.depth(info.shape);
        let pixels = info.shape.t() * compiled.channels.len() * depth * placement.height * placement.width;
        let intermediate = match destination {
            PixelDestination::Out { .. } => 0,
            PixelDestination::Maximum { .. } | PixelDestination::Stored { .. } => {
                (pixels * info.dtype.size()).div_ceil(4)
            }
            PixelDestination::Turned { .. } | PixelDestination::Untransformed { .. } => pixels,
        };
        let mask_floats =
            if transform.marks_unmasked() { (pixels / compiled.channels.len()).div_ceil(4) } else { 0 };
        let jitter = transform.jitter;
        let brightness = |c| factor(jitter, jitter.brightness, Purpose::Brightness, draws, c);
        let [own, final_affine] = compiled.own_factors(compiled.group(row)?, brightness, &mut self.affine);
        // Or those of all images of its array.
        let before = job.arrays[..array].iter().map(|before| before.compiled.affine.len());
        let affine = own.unwrap_or_else(|| before.sum());
        let orientation = placement.orientation();
        self.items.push(Item {
            row,
            array,
            slot,
            info,
            draws,
            placement,
            orientation,
            resampled,
            destination,
            intermediate: intermediate + mask_floats,
            mask_floats,
            has_other_channel_order: reordered,
            affine,
            final_affine,
        });
        Ok(())
    }
}

impl PixelDestination {
    fn set_start(&mut self, at: usize) {
        match self {
            Self::Out { .. } => {}
            Self::Turned { start }
            | Self::Untransformed { start }
            | Self::Stored { start }
            | Self::Maximum { start } => *start = at,
        }
    }
}
