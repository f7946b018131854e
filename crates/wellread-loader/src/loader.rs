//! The loader: what each epoch has in common.

use crate::batch::BufferPool;
use crate::builder::LoaderBuilder;
use crate::dataset::Dataset;
use crate::dtype::{DType, Output};
use crate::item::{ItemContext, Reference};
use crate::order::{EpochOrder, RowOrder};
use crate::pipeline::Batches;
use crate::recipe::Recipe;
use crate::transform::Transform;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wellread_image::{PixelType, Shape};
use wellread_store::Result;

/// Delivers a dataset in batches, epoch after epoch.
///
/// ```
/// use wellread_image::{PixelType, Shape};
/// use wellread_loader::{Dataset, Loader, MemoryStore};
/// # let mut store = MemoryStore::new("example");
/// # for i in 0..40 { store.push(format!("{i}"), Shape::plane(100, 100), PixelType::U8, vec![i; 10_000])?; }
/// # let dataset = Dataset::from_store(Box::new(store));
/// let loader =
///     Loader::builder(&dataset).batch_size(16).shuffle(42).workers(2).crop(96, 96).scale_to_unit().build()?;
/// for batch in &loader {
///     let batch = batch?;
///     assert_eq!(batch.shape()[1..], [1, 96, 96]);
///     assert!(batch.pixels().iter().all(|v| (0.0..=1.0).contains(v)));
/// }
/// # Ok::<(), wellread_store::Error>(())
/// ```
pub struct Loader {
    inner: Arc<Inner>,
}

/// What all epochs and threads share.
pub(crate) struct Inner {
    pub(crate) dataset: Dataset,
    pub(crate) recipe: Recipe,
    pub(crate) reference: Reference,
    pub(crate) order: RowOrder,
    pub(crate) seed: u64,
    pub(crate) next_epoch: AtomicU64,
    /// Rows of a batch; each becomes `crops` images.
    pub(crate) batch_size: usize,
    pub(crate) crops: usize,
    pub(crate) drop_last: bool,
    pub(crate) workers: usize,
    pub(crate) prefetch: usize,
    /// Rows of a batch that one thread takes at a time. Depends on sizes only, so that which error is
    /// reported does not depend on the number of workers.
    pub(crate) slice_rows: usize,
    /// Batches whose rows are asked of the store in one read.
    pub(crate) joined: usize,
    pub(crate) pool: Arc<BufferPool>,
    /// Contexts of threads of earlier epochs, for reuse.
    pub(crate) contexts: Mutex<Vec<ItemContext>>,
}

impl Inner {
    /// Number of batches of an epoch.
    pub(crate) fn batches(&self) -> usize {
        if self.drop_last {
            self.order.len() / self.batch_size
        } else {
            self.order.len().div_ceil(self.batch_size)
        }
    }

    /// The type of what is delivered.
    pub(crate) fn dtype(&self) -> DType {
        self.recipe.output.dtype(self.reference.info.dtype)
    }

    /// Bytes of the images that one row becomes.
    pub(crate) fn row_bytes(&self) -> usize {
        self.reference.output.pixels() * self.dtype().size() * self.crops
    }

    /// Positions of a batch in the epoch.
    pub(crate) fn positions(&self, batch: usize) -> std::ops::Range<usize> {
        let start = batch * self.batch_size;
        start..start.saturating_add(self.batch_size).min(self.order.len())
    }

    pub(crate) fn take_context(&self) -> ItemContext {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn give_context(&self, context: ItemContext) {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if contexts.len() < self.workers.max(1) {
            contexts.push(context);
        }
    }
}

impl Loader {
    /// Starts choosing; see [`LoaderBuilder`] for what there is and the defaults.
    pub fn builder(dataset: &Dataset) -> LoaderBuilder {
        LoaderBuilder::new(dataset)
    }

    pub(crate) fn from_inner(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// Batches of an epoch.
    pub fn len(&self) -> usize {
        self.inner.batches()
    }

    /// Never: a loader without batches cannot be built.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Images of an epoch: as many as rows, or as crops of these.
    pub fn images(&self) -> usize {
        self.rows_per_epoch() * self.inner.crops
    }

    fn rows_per_epoch(&self) -> usize {
        if self.inner.drop_last { self.len() * self.inner.batch_size } else { self.inner.order.len() }
    }

    /// Images per batch.
    pub fn batch_size(&self) -> usize {
        self.inner.batch_size * self.inner.crops
    }

    /// Crops of each image, which come in the same batch, one after the other.
    pub fn crops_per_image(&self) -> usize {
        self.inner.crops
    }

    /// The type that was chosen for batches.
    pub fn output(&self) -> Output {
        self.inner.recipe.output
    }

    /// The type of the pixels of batches.
    pub fn output_dtype(&self) -> DType {
        self.inner.dtype()
    }

    /// Shape (TCZYX) of each image as delivered.
    pub fn image_shape(&self) -> Shape {
        self.inner.reference.output
    }

    /// Pixel type of the images as stored.
    pub fn dtype(&self) -> PixelType {
        self.inner.reference.info.dtype
    }

    /// The recipe.
    pub fn transform(&self) -> &Transform {
        &self.inner.recipe.transform
    }

    /// What is loaded.
    pub fn dataset(&self) -> &Dataset {
        &self.inner.dataset
    }

    /// Threads that read ahead.
    pub fn workers(&self) -> usize {
        self.inner.workers
    }

    /// Batches whose rows are asked of the store in one read: 1 but for stores whose reads have a price of their own,
    /// such as queries ([`wellread_store::Store::rows_per_read`]).
    pub fn joined(&self) -> usize {
        self.inner.joined
    }

    /// Batches read ahead.
    pub fn prefetch(&self) -> usize {
        self.inner.prefetch
    }

    /// Seed of the order and of all random draws.
    pub fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// The epoch that the next iteration will run.
    pub fn epoch(&self) -> u64 {
        self.inner.next_epoch.load(Ordering::Relaxed)
    }

    /// Sets the epoch that the next iteration runs. Iterations count up by themselves, so this is needed
    /// only to resume or to repeat.
    pub fn set_epoch(&self, epoch: u64) {
        self.inner.next_epoch.store(epoch, Ordering::Relaxed);
    }

    /// Runs the next epoch. Worker threads start now and end with the iterator.
    pub fn iter(&self) -> Batches {
        self.iter_at(self.inner.next_epoch.fetch_add(1, Ordering::Relaxed), 0)
    }

    /// Runs `epoch` from batch `first` on, without reading what comes before: resumes in mid-epoch. Does
    /// not change the epoch that [`Self::iter`] runs next.
    pub fn iter_at(&self, epoch: u64, first: usize) -> Batches {
        Batches::new(self.inner.clone(), epoch, first)
    }

    /// The dataset's rows in the order in which `epoch` delivers them.
    pub fn rows(&self, epoch: u64) -> Vec<usize> {
        let order = EpochOrder::new(&self.inner.order, self.inner.seed, epoch);
        (0..self.rows_per_epoch()).map(|position| order.row(&self.inner.order, position)).collect()
    }

    /// As [`Self::iter`], reading until the first error: all batches in one list.
    ///
    /// # Errors
    /// The first failing batch's.
    pub fn collect_epoch(&self) -> Result<Vec<crate::Batch>> {
        self.iter().collect()
    }
}

impl IntoIterator for &Loader {
    type Item = Result<crate::Batch>;
    type IntoIter = Batches;

    fn into_iter(self) -> Batches {
        self.iter()
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("dataset", &self.inner.dataset)
            .field("batches", &self.len())
            .field("batch_size", &self.inner.batch_size)
            .field("image_shape", &self.image_shape())
            .field("workers", &self.inner.workers)
            .field("prefetch", &self.inner.prefetch)
            .field("seed", &self.inner.seed)
            .field("transform", self.transform())
            .finish_non_exhaustive()
    }
}
