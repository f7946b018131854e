//! [`Loader`]: runs epochs, resumes them, and tells what was chosen.
//!
//! ```text
//!  LoaderBuilder::build ──▶ Loader ── iter, iter_at, resume ──▶ Batches of an epoch
//!                             └── shared(): of the process that built it; in a forked child, the set opened anew
//! ```
//!
//! Its state is in `plan`, its construction in `builder`. `quality` tells how random its order is.

mod quality;

use crate::budget::MemoryUse;
use crate::dataset::Dataset;
use crate::dtype::{DType, Output};
use crate::order::{EpochOrder, RankBatches};
use crate::pipeline::Batches;
use crate::plan::{LoaderShared, Plan};
use crate::state::LoaderState;
use crate::targets::Pairing;
use crate::traffic::{LoaderStats, Traffic};
use crate::transform::Transform;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use wellread_image::{PixelType, Shape};
use wellread_store::place::LinkUse;
use wellread_store::row_location::path_of_set;
use wellread_store::{Error, Result};

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
///
/// # Forked processes
/// A loader works in a process that was forked from its own (as `multiprocessing` and `DataLoader` do on Linux). This
/// holds even if threads were reading at that moment. The child opens the set anew, at its first iteration, and shares nothing
/// but the choices. A set that has other rows by then is an error. An iterator that was under way does not cross: its
/// threads stayed behind, and it says so. There are three limits. A cache in memory starts empty in each child. A store
/// that was given by [`Dataset::from_store`] cannot be opened anew and is used as it is. It is safe where it has no locks
/// (as [`crate::MemoryStore`]). A program whose `main` is Rust's must not fork at the moment another thread starts or
/// ends. Rust's runtime then holds a lock of its own that every new thread takes; hosts such as Python have no such lock.
pub struct Loader {
    /// The state of the process that built the loader.
    parent: Arc<LoaderShared>,
    /// The state of a process that was forked from it.
    forked: Mutex<Option<Arc<LoaderShared>>>,
    next_epoch: AtomicU64,
}

impl Loader {
    pub(crate) fn new(plan: Plan, dataset: Dataset, targets: Option<Dataset>, epoch: u64) -> Self {
        let parent = Arc::new(LoaderShared::new(Arc::new(plan), dataset, targets));
        Self { parent, forked: Mutex::new(None), next_epoch: AtomicU64::new(epoch) }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.parent.plan
    }

    /// The state that this process uses: in a forked child, the set opened anew.
    fn shared(&self) -> Result<Arc<LoaderShared>> {
        let process = wellread_store::process::id();
        if self.parent.process == process {
            return Ok(Arc::clone(&self.parent));
        }
        // Not waited for: in a child of a child, a thread that is not here may hold it.
        let mut kept = self.forked.try_lock();
        if let Ok(kept) = &kept
            && let Some(shared) = kept.as_ref().filter(|shared| shared.process == process)
        {
            return Ok(Arc::clone(shared));
        }
        let dataset = self.parent.dataset.reopened()?;
        let targets = self.parent.targets.as_ref().map(Dataset::reopened).transpose()?;
        let shared = Arc::new(LoaderShared::new(Arc::clone(&self.parent.plan), dataset, targets));
        if let Ok(kept) = &mut kept {
            // The parent's state is not dropped here: its threads are not in this process.
            std::mem::forget(kept.replace(Arc::clone(&shared)));
        }
        Ok(shared)
    }

    /// Batches of an epoch, of this rank.
    pub fn len(&self) -> usize {
        self.plan().rank_batches.len()
    }

    /// Never: a loader without batches cannot be built.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Images of an epoch, of this rank: as many as rows, or as crops of these.
    pub fn images(&self) -> usize {
        self.plan().rank_batches.total() * self.plan().crops
    }

    /// Images per batch.
    pub fn batch_size(&self) -> usize {
        self.plan().rank_batches.batch_size * self.plan().crops
    }

    /// Crops of each image, which come in the same batch, one after the other.
    pub fn crops_per_image(&self) -> usize {
        self.plan().crops
    }

    /// The type that was chosen for batches.
    pub fn output(&self) -> Output {
        self.plan().first().compiled.output
    }

    /// The type of the pixels of batches.
    pub fn output_dtype(&self) -> DType {
        self.plan().first().dtype()
    }

    /// Shape (TCZYX) of each image as delivered; of several views, of the first.
    pub fn image_shape(&self) -> Shape {
        self.plan().first().shape
    }

    /// Views of each row.
    pub fn views(&self) -> usize {
        self.plan().images.arrays.len()
    }

    /// Shape (TCZYX) of each image of a view, where there is such a view.
    pub fn view_shape(&self, view: usize) -> Option<Shape> {
        self.plan().images.arrays.get(view).map(|array| array.shape)
    }

    /// Shape (TCZYX) of each target of a view, and the type of its numbers; `None` without targets, or such a view.
    pub fn target_of(&self, view: usize) -> Option<(Shape, DType)> {
        let (set, _) = self.plan().targets.as_ref()?;
        set.arrays.get(view).map(|array| (array.shape, array.dtype()))
    }

    /// How targets were found for the images, where there are targets.
    pub fn pairing(&self) -> Option<Pairing> {
        self.plan().targets.as_ref().map(|(_, pairs)| pairs.pairing())
    }

    /// The set of targets, if there are any.
    pub fn targets(&self) -> Option<&Dataset> {
        self.parent.targets.as_ref()
    }

    /// Pixel type of the images as stored.
    pub fn dtype(&self) -> PixelType {
        self.plan().images.reference.info.dtype
    }

    /// The transform of each image; with several views, that of the first.
    pub fn transform(&self) -> &Transform {
        &self.plan().first().compiled.transform
    }

    /// Whether a channel that is delivered is a mask of 0 and 1: see [`Transform::is_last_mask`].
    pub fn has_mask(&self) -> bool {
        let compiled = &self.plan().first().compiled;
        (0..compiled.channels.len()).any(|channel| compiled.is_mask(channel))
    }

    /// The loaded set.
    pub fn dataset(&self) -> &Dataset {
        &self.parent.dataset
    }

    /// The bytes read from files so far, and the part of them that became pixels of batches. In a forked process, of
    /// its own.
    pub fn traffic(&self) -> Traffic {
        self.shared().map(|shared| shared.traffic.sum()).unwrap_or_default()
    }

    /// [`Self::traffic`], and of a set behind a network what was asked for since the loader was built. In a forked process, of
    /// its own.
    pub fn stats(&self) -> LoaderStats {
        let Ok(shared) = self.shared() else { return LoaderStats::default() };
        LoaderStats {
            traffic: shared.traffic.sum(),
            link: self.is_remote().then(|| LinkUse::now().since(shared.link_before)),
        }
    }

    /// Whether images or targets are remote ([`Dataset::is_remote`]).
    pub fn is_remote(&self) -> bool {
        let LoaderShared { dataset, targets, .. } = &*self.parent;
        dataset.is_remote() || targets.as_ref().is_some_and(Dataset::is_remote)
    }

    /// Threads that read ahead.
    pub fn workers(&self) -> usize {
        self.plan().read_ahead.workers
    }

    /// Threads that read while a batch is waited for: the workers and the thread that waits. Memory, joined reads, very
    /// large images or a network may forbid the latter.
    pub fn readers(&self) -> usize {
        self.plan().read_ahead.readers()
    }

    /// Batches whose rows are asked of the store in one read. It is 1 but for stores whose reads have a price of their own,
    /// such as queries ([`wellread_store::Hints::rows_per_read`]).
    pub fn batches_per_read(&self) -> usize {
        self.plan().read_ahead.joined
    }

    /// The bytes that the loader holds at most, where that was bounded
    /// ([`LoaderBuilder::memory`](crate::LoaderBuilder::memory)), and the choices that were lowered for it.
    pub fn memory(&self) -> Option<&MemoryUse> {
        self.plan().memory.as_ref()
    }

    /// Bytes of the memory of each batch, which holds the largest: all of its arrays.
    pub fn batch_bytes(&self) -> usize {
        self.plan().bytes
    }

    /// Batches read ahead.
    pub fn prefetch(&self) -> usize {
        self.plan().read_ahead.prefetch
    }

    /// Seed of the order and of all random draws.
    pub fn seed(&self) -> u64 {
        self.plan().seed
    }

    /// The epoch that the next iteration will run.
    pub fn epoch(&self) -> u64 {
        self.next_epoch.load(Ordering::Relaxed)
    }

    /// Sets the epoch that the next iteration runs. Iterations count up by themselves, so this is needed
    /// only to repeat, or where each epoch has a loader of its own.
    pub fn set_epoch(&self, epoch: u64) {
        self.next_epoch.store(epoch, Ordering::Relaxed);
    }

    /// Runs the next epoch. Worker threads start now and end with the iterator.
    pub fn iter(&self) -> Batches {
        self.run(self.next_epoch.fetch_add(1, Ordering::Relaxed), 0)
    }

    /// Runs `epoch` from batch `first` on, without reading what comes before. Does not change the epoch that
    /// [`Self::iter`] runs next. To go on where another run stopped, see [`Self::resume`].
    pub fn iter_at(&self, epoch: u64, first: usize) -> Batches {
        self.run(epoch, self.plan().rank_batches.after(first))
    }

    /// Goes on where the iteration was whose [`Batches::state`] this is, with exactly the images that it had not
    /// yet delivered. [`Self::iter`] then runs the epoch after that.
    ///
    /// The loader may have another number of workers, another `prefetch`, batch size, transform, or number of ranks:
    /// positions count the images of all ranks. With the same batch size and number of ranks the batches are those that
    /// would have come. That holds where nodes have parts of their own, too ([`shard_local`](crate::LoaderBuilder::shard_local)).
    /// Other nodes then divide the rest of each node. With others, batches are cut anew from the first remaining image
    /// on. So the last one may differ from an epoch that was not interrupted, and with ranks the images that do not
    /// divide among them ([`crate::order::Uneven`]).
    ///
    /// # Errors
    /// A state of another set, order, choice of rows, or seed.
    pub fn resume(&self, state: &LoaderState) -> Result<Batches> {
        self.resume_turn(state, 0, 1)
    }

    /// As [`Self::resume`], of `turns` processes that take turns, as torch's worker processes do: every `turns`-th of
    /// the batches that are left, from number `turn` on. Taken by turns, they are the batches that one process would
    /// have delivered, to the bit. The state of such an iteration is where all of them would be that have delivered
    /// equally many.
    ///
    /// # Errors
    /// As [`Self::resume`]; a turn that is not among them.
    pub fn resume_turn(&self, state: &LoaderState, turn: usize, turns: usize) -> Result<Batches> {
        let shared = self.shared()?;
        let store = shared.dataset.store();
        if turn >= turns {
            return Err(Error::new(path_of_set(store), format_args!("there is no turn {turn} of {turns}"))
                .hint("turns are counted from 0, and there is at least one"));
        }
        let position = state.check(&self.plan().identity(store), store.path())?;
        self.set_epoch(state.epoch().wrapping_add(1));
        let rank_batches = RankBatches { turn, turns, ..self.plan().rank_batches(position) };
        let shardings = self.plan().shardings(state.shardings(), position);
        Ok(Batches::new(shared, state.epoch(), rank_batches, shardings))
    }

    /// The state of an iteration that has come this far ([`Batches::progress`]), and has gone on from the state `since`, if
    /// it has.
    ///
    /// # Errors
    /// In a forked process, a set that cannot be opened anew; a state that [`Self::resume`] refuses.
    pub fn state_since(
        &self,
        since: Option<&LoaderState>,
        epoch: u64,
        position: usize,
    ) -> Result<LoaderState> {
        let (shared, plan) = (self.shared()?, self.plan());
        let store = shared.dataset.store();
        let identity = plan.identity(store);
        // The next epoch is sharded anew.
        let shardings = match since.filter(|since| since.epoch() == epoch) {
            Some(since) => plan.shardings(since.shardings(), since.check(&identity, store.path())?),
            None => plan.shardings(&[], 0),
        };
        Ok(LoaderState::new(&identity, epoch, position, shardings))
    }

    fn run(&self, epoch: u64, position: usize) -> Batches {
        match self.shared() {
            Ok(shared) => {
                let plan = self.plan();
                Batches::new(shared, epoch, plan.rank_batches(position), plan.shardings(&[], position))
            }
            Err(error) => Batches::start_failed(Arc::clone(&self.parent), epoch, error),
        }
    }

    /// The dataset's rows in the order in which `epoch` delivers them, to this rank.
    pub fn rows(&self, epoch: u64) -> Vec<usize> {
        let plan = self.plan();
        let order = EpochOrder::new(&plan.order, plan.seed, epoch, &plan.shardings(&[], 0));
        let positions = (0..plan.rank_batches.len()).flat_map(|batch| plan.rank_batches.positions(batch));
        positions.map(|position| order.row(&plan.order, position)).collect()
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
            .field("dataset", &self.parent.dataset)
            .field("batches", &self.len())
            .field("batch_size", &self.batch_size())
            .field("image_shape", &self.image_shape())
            .field("workers", &self.workers())
            .field("prefetch", &self.prefetch())
            .field("seed", &self.seed())
            .field("transform", self.transform())
            .finish_non_exhaustive()
    }
}
