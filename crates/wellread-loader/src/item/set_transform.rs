//! A transform as it is for a set, which single items of that set share.

use crate::dataset::Dataset;
use crate::transform::Transform;
use wellread_store::Result;

/// A transform as it is for a set. Statistics by name follow the metadata of its first image, which is not read again for each item.
#[derive(Debug)]
pub(super) struct TransformOfSet {
    dataset: Dataset,
    asked: Transform,
    /// The transform as it is for the set.
    pub placed: Transform,
}

impl TransformOfSet {
    pub fn new(dataset: &Dataset, asked: &Transform) -> Result<Self> {
        let placed = dataset.transform_of_set(asked.clone())?;
        Ok(Self { dataset: dataset.clone(), asked: asked.clone(), placed })
    }

    /// Whether it is of these, and no later read of metadata could tell more.
    pub fn is_of(&self, dataset: &Dataset, asked: &Transform) -> bool {
        self.dataset.is_same(dataset) && self.asked == *asked && !self.placed.has_named_statistics()
    }
}
