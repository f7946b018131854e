//! Single items: one row of a dataset, read and transformed by the thread that asks.

use super::ItemContext;
use super::job::Job;
use super::read::grow_for;
use super::set_transform::TransformOfSet;
use crate::compiled_transform::{ArrayPlan, CompiledTransform, check_output};
use crate::dataset::Dataset;
use crate::dtype::{DType, Output};
use crate::kernels::bytes_of;
use crate::pool::{ArrayLayout, RowMemory};
use crate::transform::Transform;
use wellread_image::Shape;
use wellread_store::row_location::{path_of_row, path_of_set};
use wellread_store::{Error, Result, RowInfo};

impl Dataset {
    /// Reads and transforms one image into `out`, which is resized to fit, and returns its shape (TCZYX).
    /// With the same `out` and `context` again and again, nothing is allocated in steady state. Random steps
    /// draw from the context's seed and epoch ([`ItemContext::set_seed`]): a loader with that seed delivers
    /// the same floats in that epoch.
    ///
    /// # Errors
    /// No such row, pixels that cannot be read, or a transform that does not fit the image.
    pub fn sample_into(
        &self,
        row: usize,
        transform: &Transform,
        out: &mut Vec<f32>,
        context: &mut ItemContext,
    ) -> Result<Shape> {
        let _sample = wellread_trace::span(wellread_trace::Kind::Sample).with(row as u64, 0);
        context.sample(self, row, transform, out)
    }
}

/// A row's info with the number of channels that those of a transform are counted among. Where they go by name, that is the set's
/// first image.
fn numbered(dataset: &Dataset, transform: &Transform, info: RowInfo) -> RowInfo {
    let Shape([t, own, z, y, x]) = info.shape;
    let go_by_name = transform.channel_names.is_some() || transform.statistics_names.is_some();
    let c = if go_by_name && transform.channels.is_some() {
        dataset.row_info(0).map_or(own, |first| first.shape.c())
    } else {
        own
    };
    RowInfo { shape: Shape([t, c, z, y, x]), ..info }
}

impl ItemContext {
    /// Reads and transforms one row into `out`, resized to fit. Returns the shape (TCZYX) of what it holds.
    fn sample(
        &mut self,
        dataset: &Dataset,
        row: usize,
        transform: &Transform,
        out: &mut Vec<f32>,
    ) -> Result<Shape> {
        let info = dataset.row_info(row)?;
        let path = || path_of_row(dataset.store(), row);
        let hints = dataset.store().hints();
        let of_set = if transform.is_for(hints) && !transform.has_named_statistics() {
            None
        } else {
            let known = self.of_set.take().filter(|known| known.is_of(dataset, transform));
            Some(known.map_or_else(|| TransformOfSet::new(dataset, transform), Ok)?)
        };
        let transform = of_set.as_ref().map_or(transform, |of_set| &of_set.placed);
        let compiled = match self.compiled.take() {
            Some(compiled) if compiled.fits(dataset, transform, info) => compiled,
            _ => {
                transform.check().map_err(|error| error.at(&path_of_set(dataset.store()), None))?;
                transform.check_dtype(info.dtype).map_err(|error| error.at(&path(), Some(row)))?;
                let info = numbered(dataset, transform, info);
                transform.output_shape(info.shape).map_err(|error| error.at(&path(), Some(row)))?;
                CompiledTransform::new(transform, Output::F32, info).of_rows(dataset)?
            }
        };
        let shape = transform.output_shape(compiled.checked_shape(info.shape));
        let shape = shape.map_err(|error| error.at(&path(), Some(row)))?;
        check_output(shape).map_err(|error| Error::new(path(), error).row(row))?;
        grow_for((row, info), out, shape.pixels(), dataset)?;
        out.truncate(shape.pixels());
        let layout = [ArrayLayout::alone(shape.pixels() * size_of::<f32>(), shape, DType::F32)];
        let arrays = [ArrayPlan { compiled, shape, first_draw: 0 }];
        let job = Job {
            dataset,
            arrays: &arrays,
            first_array: 0,
            reference: None,
            of: None,
            crops: 1,
            seed: self.seed,
            epoch: self.epoch,
            stop: None,
            working: None,
        };
        let result = self.fetch(&job, &[row], &[0], &mut [RowMemory::of_image(bytes_of(out), &layout)]);
        let [ArrayPlan { compiled, .. }] = arrays;
        (self.compiled, self.of_set) = (Some(compiled), of_set);
        result.map(|()| shape)
    }
}
