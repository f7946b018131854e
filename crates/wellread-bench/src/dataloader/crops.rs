//! Random crops in the data-loader benchmark (`--random-crop`, `--crops`): the images that batches of them are
//! compared with.
//!
//! Where a crop lies depends on the epoch, so there is no list of hashes beforehand. The warm-up turn cuts each crop
//! out of its whole image, which the loader's single-item path reads and [`crate::expected`] checks. Timed turns count
//! images only, since a second read of them would be timed as well.

use crate::choices::Preset;
use crate::core::Session;
use anyhow::Result;
use wellread_image::Shape;
use wellread_loader::{Batch, Dataset, ItemContext, Loader, Placement, Transform};

/// The note on the unit of the figures where there are several crops of each image.
pub(super) fn note(crops: usize) -> Option<String> {
    (crops > 1).then(|| {
        format!("dataloader: rates, limits and sizes of batches count crops, {crops} of each image, and not images")
    })
}

/// Compares crops with parts of whole images.
pub(crate) struct Check<'s> {
    session: &'s Session<'s>,
    dataset: Dataset,
    whole: Transform,
    context: ItemContext,
    image: Vec<f32>,
    /// The row that `image` is, and its shape: the crops of a row follow each other.
    latest: Option<(usize, Shape)>,
}

impl<'s> Check<'s> {
    /// The check of batches of `dataset`'s images.
    pub(crate) fn new(session: &'s Session<'s>, dataset: &Dataset) -> Result<Self> {
        let whole = session.transform(Preset::None)?;
        let (dataset, context) = (dataset.clone(), ItemContext::new());
        Ok(Self { session, dataset, whole, context, image: Vec::new(), latest: None })
    }

    /// Whether every image of a batch is the part of its row that the transform chose.
    ///
    /// # Errors
    /// A row that cannot be read.
    pub(crate) fn agrees(&mut self, loader: &Loader, batch: &Batch) -> Result<bool> {
        let each = batch.pixels().len() / batch.len().max(1);
        let mut agrees = true;
        for (i, (&row, crop)) in batch.rows().iter().zip(batch.pixels().chunks(each.max(1))).enumerate() {
            let shape = match self.latest {
                Some((latest, shape)) if latest == row => shape,
                _ => {
                    let shape =
                        self.dataset.sample_into(row, &self.whole, &mut self.image, &mut self.context)?;
                    agrees &= self.session.expected.agrees(Preset::None, row, &self.image, true);
                    self.latest = Some((row, shape));
                    shape
                }
            };
            let number = i % loader.crops_per_image();
            let placed =
                loader.transform().placement_of_crop(shape, loader.seed(), batch.epoch(), row, number)?;
            agrees &= is_part(&self.image, shape, &placed, crop);
        }
        Ok(agrees)
    }
}

/// Whether `crop` is the part of an image of `shape` that lies where `placed` says, bit by bit.
fn is_part(image: &[f32], shape: Shape, placed: &Placement, crop: &[f32]) -> bool {
    let (height, width) = (placed.height, placed.width);
    if crop.len() != shape.t() * shape.c() * shape.z() * height * width || crop.is_empty() {
        return false;
    }
    let mut planes = image.chunks_exact(shape.y() * shape.x()).zip(crop.chunks_exact(height * width));
    planes.all(|(plane, wanted)| {
        wanted.chunks_exact(width).enumerate().all(|(y, line)| {
            let from = (placed.top + y) * shape.x() + placed.left;
            plane[from..from + width].iter().zip(line).all(|(a, b)| a.to_bits() == b.to_bits())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crop_is_the_part_it_is_placed_at_and_no_other() {
        let shape = Shape([1, 2, 1, 4, 5]);
        let image: Vec<f32> = (0..40u8).map(f32::from).collect();
        let transform = Transform::default().random_crop(2, 3);
        let mut placed = transform.placement_of_crop(shape, 1, 0, 0, 1).unwrap();
        (placed.top, placed.left) = (1, 2);
        let crop = [7.0, 8.0, 9.0, 12.0, 13.0, 14.0, 27.0, 28.0, 29.0, 32.0, 33.0, 34.0];
        assert!(is_part(&image, shape, &placed, &crop));
        assert!(!is_part(&image, shape, &placed, &crop[..6]), "a channel is missing");
        placed.left = 1;
        assert!(!is_part(&image, shape, &placed, &crop));
    }
}
