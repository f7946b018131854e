//! Rows to floats: what one thread does for a slice of a batch, or for a single item.
//!
//! For each row: shape → [`Placement`] → one request per run of channels. Requests are sorted by position on
//! disk and read in one call with the fused sink; resize and rotation follow, from the intermediate buffer.

use crate::dataset::Dataset;
use crate::kernels::Affine;
use crate::orientation::Orientation;
use crate::resample::{Resampler, rotate};
use crate::simd::Level;
use crate::sink::{FusedSink, Target};
use crate::transform::{Placement, Transform};
use std::sync::atomic::AtomicBool;
use wellread_image::{PixelType, Region, Shape};
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
    /// Position on disk and index of each item of a group.
    by_position: Vec<(u64, usize)>,
    requests: Vec<Request>,
    targets: Vec<Target>,
    intermediate: Vec<f32>,
    resized: Vec<f32>,
    resampler: Resampler,
    /// The recipe of the last single item, so that it is compiled once.
    recipe: Option<Recipe>,
    seed: u64,
    epoch: u64,
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

/// One row on its way.
#[derive(Clone, Copy, Debug)]
struct Item {
    row: usize,
    info: RowInfo,
    placement: Placement,
    orientation: Orientation,
    /// Floats in the intermediate buffer; 0 for images that go straight to the output.
    intermediate: usize,
}

/// A run of neighbouring channels that is read by one request.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ChannelRun {
    /// First channel of the image.
    from: usize,
    count: usize,
    /// The output channel that it becomes.
    to: usize,
}

/// A transform compiled for one pixel type and number of channels.
#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) transform: Transform,
    dtype: PixelType,
    channels: usize,
    affine: Vec<Affine>,
    runs: Vec<ChannelRun>,
}

impl Recipe {
    /// Compiles a transform that [`Transform::check`] and [`Transform::output_shape`] accept.
    pub(crate) fn new(transform: &Transform, info: RowInfo) -> Self {
        let mut runs: Vec<ChannelRun> = vec![];
        let mut count = 0;
        for from in transform.channels.clone().unwrap_or_else(|| (0..info.shape.c()).collect()) {
            match runs.last_mut() {
                Some(run) if run.from + run.count == from => run.count += 1,
                _ => runs.push(ChannelRun { from, count: 1, to: count }),
            }
            count += 1;
        }
        let affine = (0..count).map(|c| transform.affine(info.dtype, c)).collect();
        Self { transform: transform.clone(), dtype: info.dtype, channels: info.shape.c(), affine, runs }
    }

    fn fits(&self, transform: &Transform, info: RowInfo) -> bool {
        self.dtype == info.dtype && self.channels == info.shape.c() && self.transform == *transform
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
                transform.output_shape(info.shape).map_err(|error| error.at(path, Some(row)))?;
                Recipe::new(transform, info)
            }
        };
        let shape = transform.output_shape(info.shape).map_err(|error| error.at(path, Some(row)))?;
        shape.checked_bytes(PixelType::F32).map_err(|error| Error::new(path, error).row(row))?;
        grow(out, shape.pixels(), dataset)?;
        out.truncate(shape.pixels());
        let job =
            Job { dataset, recipe: &recipe, reference: None, seed: self.seed, epoch: self.epoch, stop: None };
        let result = self.fetch(&job, &[row], &mut [out.as_mut_slice()]);
        self.recipe = Some(recipe);
        result.map(|()| shape)
    }

    /// Reads and transforms `rows` into `out`, one after the other: into the memory of one batch or, joined, of several
    /// in turn, of which all but the last are as long as the first.
    ///
    /// # Errors
    /// A row whose shape or type does not fit comes before one that cannot be read; of several of a kind,
    /// the first in order (shapes) or on disk (reading).
    pub(crate) fn fetch(&mut self, job: &Job<'_>, rows: &[usize], out: &mut [&mut [f32]]) -> Result<()> {
        let path = job.dataset.store().path();
        let transform = &job.recipe.transform;
        self.items.clear();
        for &row in rows {
            let info = job.dataset.row_info(row)?;
            job.check(row, info)?;
            let placement = transform
                .placement(info.shape, job.seed, job.epoch, row)
                .map_err(|error| error.at(path, Some(row)))?;
            let resampled = placement.degrees != 0.0
                || transform.resize.is_some_and(|to| (to.height, to.width) != placement.turned_size());
            let planes = info.shape.t() * job.recipe.affine.len() * info.shape.z();
            let intermediate = if resampled { planes * placement.height * placement.width } else { 0 };
            let orientation = Orientation::of(&placement);
            self.items.push(Item { row, info, placement, orientation, intermediate });
        }
        let each = out.iter().map(|part| part.len()).sum::<usize>() / rows.len();
        let mut first = 0;
        while first < rows.len() {
            let mut floats = 0;
            let mut last = first;
            while last < rows.len()
                && (last == first || floats + self.items[last].intermediate <= INTERMEDIATE)
            {
                floats += self.items[last].intermediate;
                last += 1;
            }
            grow(&mut self.intermediate, floats, job.dataset)?;
            self.read_group(job, first..last, each, out)?;
            if floats > 0 {
                self.resample_group(job, first..last, each, out)?;
            }
            first = last;
        }
        Ok(())
    }

    /// Reads the items of a group, in order of position, each to its place.
    fn read_group(
        &mut self,
        job: &Job<'_>,
        group: std::ops::Range<usize>,
        each: usize,
        out: &mut [&mut [f32]],
    ) -> Result<()> {
        let store = job.dataset.store();
        self.by_position.clear();
        self.by_position.extend(group.clone().map(|i| (store.position(self.items[i].row), i)));
        self.by_position.sort_unstable();
        self.requests.clear();
        self.targets.clear();
        for &(_, i) in &self.by_position {
            let Item { row, info, placement, orientation, intermediate } = self.items[i];
            let (part, within) = place(i, each, out);
            let start = if intermediate > 0 {
                self.items[group.start..i].iter().map(|item| item.intermediate).sum()
            } else {
                within
            };
            for run in &job.recipe.runs {
                let region = Region {
                    start: [0, run.from, 0, placement.top, placement.left],
                    size: [info.shape.t(), run.count, info.shape.z(), placement.height, placement.width],
                };
                self.requests.push(Request { row, region });
                self.targets.push(Target {
                    info,
                    part,
                    start,
                    intermediate: intermediate > 0,
                    channels: job.recipe.affine.len(),
                    first_channel: run.to,
                    orientation,
                    missing: region.pixels(),
                });
            }
        }
        let mut sink = FusedSink {
            path: store.path(),
            requests: &self.requests,
            targets: &mut self.targets,
            out,
            intermediate: &mut self.intermediate,
            affine: &job.recipe.affine,
            level: Level::detect(),
            stop: job.stop,
        };
        store.read(&self.requests, &mut self.scratch, &mut sink)?;
        sink.check_complete()
    }

    /// Resizes and rotates the items of a group from the intermediate buffer to their places.
    fn resample_group(
        &mut self,
        job: &Job<'_>,
        group: std::ops::Range<usize>,
        each: usize,
        out: &mut [&mut [f32]],
    ) -> Result<()> {
        let level = Level::detect();
        let mut start = 0;
        for i in group {
            let Item { placement, intermediate, .. } = self.items[i];
            if intermediate == 0 {
                continue;
            }
            let from = placement.turned_size();
            let planes = self.intermediate[start..start + intermediate].chunks_exact(from.0 * from.1);
            start += intermediate;
            let resize = job.recipe.transform.resize.filter(|to| (to.height, to.width) != from);
            let size = resize.map_or(from, |to| (to.height, to.width));
            let turned = placement.degrees != 0.0;
            if resize.is_some() && turned {
                grow(&mut self.resized, size.0 * size.1, job.dataset)?;
            }
            let (part, within) = place(i, each, out);
            let targets = out[part][within..within + each].chunks_exact_mut(size.0 * size.1);
            for (plane, target) in planes.zip(targets) {
                match (resize, turned) {
                    (Some(resize), false) => self.resampler.resize(level, plane, from, resize, target),
                    (Some(resize), true) => {
                        let middle = &mut self.resized[..size.0 * size.1];
                        self.resampler.resize(level, plane, from, resize, middle);
                        rotate(level, middle, size, placement.degrees, target);
                    }
                    (None, _) => rotate(level, plane, from, placement.degrees, target),
                }
            }
        }
        Ok(())
    }
}

/// The output that image `i` goes to, and the offset of its first float there.
fn place(i: usize, each: usize, out: &[&mut [f32]]) -> (usize, usize) {
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
