//! Rows to batches: what one thread does for a slice of a batch, or for a single item.
//!
//! For each row: shape → [`Placement`] of each crop → requests for each run of channels. Requests are sorted by
//! position on disk and read in one call with the fused sink (`read`); what the pass over the pixels could not do
//! follows from the intermediate buffer (`complete`).

mod complete;
mod read;

use crate::cover::{Box2, Cover};
use crate::dataset::Dataset;
use crate::draw::{Draws, Purpose};
use crate::dtype::Output;
use crate::finish::factor;
use crate::kernels::{Affine, bytes_of};
use crate::orientation::Orientation;
use crate::recipe::Recipe;
use crate::resample::Resampler;
use crate::sink::{Target, Via};
use crate::traffic::Traffic;
use crate::transform::{Placement, Transform};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use wellread_image::{PixelType, Shape};
use wellread_store::{Error, Request, Result, RowInfo, Scratch};

/// Floats of intermediate images that are read in one call; one image may be larger. The bound keeps memory
/// per thread small and the second pass in cache, and still lets small images be read many at a time.
const INTERMEDIATE: usize = 1 << 20;

/// Buffers that one thread reuses from item to item, so that in steady state nothing is allocated, and the
/// seed and epoch of its random draws.
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
    second: SecondPass,
    /// The recipe of the last single item, so that it is compiled once.
    recipe: Option<Recipe>,
    seed: u64,
    epoch: u64,
    /// What was read since this was last taken.
    pub(crate) traffic: Traffic,
}

/// Buffers of what comes after reading.
#[derive(Debug, Default)]
struct SecondPass {
    /// One image as floats, neither turned nor scaled.
    straight: Vec<f32>,
    /// One image turned, before resize and rotation.
    turned: Vec<f32>,
    /// One image as floats, before it is rounded to half precision.
    floats: Vec<f32>,
    /// One plane between resize and rotation.
    resized: Vec<f32>,
    /// The values of a channel that are near a percentile.
    near: Vec<f32>,
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

    /// The reader's scratch buffers, for direct use of a store.
    pub fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

/// One crop of one row on its way.
#[derive(Clone, Copy, Debug)]
struct Item {
    row: usize,
    info: RowInfo,
    draws: Draws,
    placement: Placement,
    orientation: Orientation,
    /// Whether it is resized or rotated by other than right angles.
    resampled: bool,
    via: Via,
    /// Floats of the intermediate buffer that it takes.
    intermediate: usize,
    /// Where the factors of its channels begin.
    affine: usize,
}

impl Item {
    fn crop(&self) -> Box2 {
        let Placement { top, left, height, width, .. } = self.placement;
        [top..top + height, left..left + width]
    }
}

/// The row that all others of a batch must agree with.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) row: usize,
    pub(crate) info: RowInfo,
    /// Shape of its output.
    pub(crate) output: Shape,
}

/// What a slice of a batch is made by; shared by all threads.
pub(crate) struct Job<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) recipe: &'a Recipe,
    /// `None` for single items, which may have any shape.
    pub(crate) reference: Option<&'a Reference>,
    /// Crops of each row: as many images, one after the other.
    pub(crate) crops: usize,
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) stop: Option<&'a AtomicBool>,
}

impl Job<'_> {
    /// Checks that a row makes an output like the reference row's.
    fn check(&self, row: usize, info: RowInfo) -> Result<()> {
        let path = self.dataset.store().path();
        let output =
            self.recipe.transform.output_shape(info.shape).map_err(|error| error.at(path, Some(row)))?;
        let Some(reference) = self.reference else { return Ok(()) };
        if info.dtype != reference.info.dtype {
            return Err(Error::new(
                path,
                format_args!(
                    "the image is {}, but row {} is {}; one loader delivers one pixel type",
                    info.dtype, reference.row, reference.info.dtype
                ),
            )
            .row(row)
            .hint("load the rows of each pixel type by a loader of their own (rows), or convert the set to one type"));
        }
        if output == reference.output {
            return Ok(());
        }
        let [a, b] = [info.shape, reference.info.shape];
        let error = Error::new(
            path,
            format_args!(
                "the image has shape {a} (TCZYX), but row {} has {b}; the images of a batch must be equal in shape",
                reference.row
            ),
        )
        .row(row);
        Err(if (a.t(), a.c(), a.z()) == (b.t(), b.c(), b.z()) {
            error.hint(format_args!(
                "crop to at most {}x{}, or resize to any size",
                a.y().min(b.y()),
                a.x().min(b.x())
            ))
        } else {
            error.hint(
                "crop and resize change Y and X only: select channels that all images have, or load these rows by a loader of their own (rows)",
            )
        })
    }
}

impl ItemContext {
    /// Reads and transforms one row into `out`, resized to fit. Returns the shape (TCZYX) of what it holds.
    pub(crate) fn sample(
        &mut self,
        dataset: &Dataset,
        row: usize,
        transform: &Transform,
        out: &mut Vec<f32>,
    ) -> Result<Shape> {
        let info = dataset.row_info(row)?;
        let path = dataset.store().path();
        let recipe = match self.recipe.take() {
            Some(recipe) if recipe.fits(transform, info) => recipe,
            _ => {
                transform.check().map_err(|error| error.at(path, None))?;
                transform.check_dtype(info.dtype).map_err(|error| error.at(path, Some(row)))?;
                transform.output_shape(info.shape).map_err(|error| error.at(path, Some(row)))?;
                Recipe::new(transform, Output::F32, info)
            }
        };
        let shape = transform.output_shape(info.shape).map_err(|error| error.at(path, Some(row)))?;
        shape.checked_bytes(PixelType::F32).map_err(|error| Error::new(path, error).row(row))?;
        grow(out, shape.pixels(), dataset)?;
        out.truncate(shape.pixels());
        let job = Job {
            dataset,
            recipe: &recipe,
            reference: None,
            crops: 1,
            seed: self.seed,
            epoch: self.epoch,
            stop: None,
        };
        let result = self.fetch(&job, &[row], &[0], &mut [bytes_of(out)]);
        self.recipe = Some(recipe);
        result.map(|()| shape)
    }

    /// Reads and transforms `rows`, each with the draws of its occurrence, into `out`, one after the other, the crops of a row together: into the memory of one
    /// batch or, joined, of several in turn, of which all but the last are as long as the first.
    ///
    /// # Errors
    /// A row whose shape or type does not fit comes before one that cannot be read; of several of a kind,
    /// the first in order (shapes) or on disk (reading).
    pub(crate) fn fetch(
        &mut self,
        job: &Job<'_>,
        rows: &[usize],
        occurrences: &[u64],
        out: &mut [&mut [u8]],
    ) -> Result<()> {
        let images = rows.len() * job.crops;
        let each = out.iter().map(|part| part.len()).sum::<usize>() / images;
        self.items.clear();
        self.affine.clear();
        self.affine.extend_from_slice(&job.recipe.affine);
        for (i, (&row, &occurrence)) in rows.iter().zip(occurrences).enumerate() {
            let info = job.dataset.row_info(row)?;
            job.check(row, info)?;
            let draws = Draws::new(job.seed, job.epoch, row).of_occurrence(occurrence);
            for crop in 0..job.crops {
                let (part, start) = place(i * job.crops + crop, each, out);
                self.add_item(job, row, info, draws.of_crop(crop), Via::Out { part, start })?;
            }
        }
        let mut first = 0;
        while first < images {
            let mut floats = 0;
            let mut last = first;
            while last < images {
                let row = &mut self.items[last..last + job.crops];
                let wanted: usize = row.iter().map(|item| item.intermediate).sum();
                if last > first && floats + wanted > INTERMEDIATE {
                    break;
                }
                for item in row {
                    item.via.set_start(floats);
                    floats += item.intermediate;
                }
                last += job.crops;
            }
            grow(&mut self.intermediate, floats, job.dataset)?;
            self.read_group(job, first..last, out)?;
            for i in first..last {
                let (part, start) = place(i, each, out);
                let image = &mut out[part][start..start + each];
                self.second.complete(job, &self.items[i], &self.affine, &mut self.intermediate, image)?;
            }
            first = last;
        }
        Ok(())
    }

    /// Plans one crop of a row, which goes straight to `out` unless more is to be done.
    fn add_item(&mut self, job: &Job<'_>, row: usize, info: RowInfo, draws: Draws, out: Via) -> Result<()> {
        let recipe = job.recipe;
        let transform = &recipe.transform;
        let placement = transform
            .placement_of(info.shape, draws)
            .map_err(|error| error.at(job.dataset.store().path(), Some(row)))?;
        let resampled = placement.degrees != 0.0
            || transform.resize.is_some_and(|to| (to.height, to.width) != placement.turned_size());
        let floats = resampled || recipe.finish.is_some();
        let via = if transform.project {
            Via::Maximum { start: 0 }
        } else if transform.illumination.is_some() {
            Via::Straight { start: 0 }
        } else if resampled || (floats && recipe.output != Output::F32) {
            Via::Turned { start: 0 }
        } else {
            out
        };
        let depth = if transform.project { 1 } else { info.shape.z() };
        let pixels = info.shape.t() * recipe.channels.len() * depth * placement.height * placement.width;
        let intermediate = match via {
            Via::Out { .. } => 0,
            Via::Maximum { .. } => (pixels * info.dtype.size()).div_ceil(4),
            Via::Turned { .. } | Via::Straight { .. } => pixels,
        };
        let mut affine = 0;
        if recipe.bright {
            affine = self.affine.len();
            let jitter = transform.jitter;
            let of =
                |c| recipe.affine_at(c, factor(jitter, jitter.brightness, Purpose::Brightness, draws, c));
            self.affine.extend((0..recipe.channels.len()).map(of));
        }
        let orientation = Orientation::of(&placement);
        self.items.push(Item {
            row,
            info,
            draws,
            placement,
            orientation,
            resampled,
            via,
            intermediate,
            affine,
        });
        Ok(())
    }
}

impl Via {
    fn set_start(&mut self, at: usize) {
        match self {
            Self::Out { .. } => {}
            Self::Turned { start } | Self::Straight { start } | Self::Maximum { start } => *start = at,
        }
    }
}

/// The output that image `i` goes to, and the offset of its first byte there.
fn place(i: usize, each: usize, out: &[&mut [u8]]) -> (usize, usize) {
    let images = out[0].len() / each;
    (i / images, i % images * each)
}

/// Makes `buffer` at least `len` long; what it held stays, so nothing is written when it is long enough.
fn grow(buffer: &mut Vec<f32>, len: usize, dataset: &Dataset) -> Result<()> {
    if buffer.len() < len {
        buffer.try_reserve_exact(len - buffer.len()).map_err(|_| {
            Error::new(dataset.store().path(), format_args!("not enough memory for an image of {len} floats"))
        })?;
        buffer.resize(len, 0.0);
    }
    Ok(())
}
