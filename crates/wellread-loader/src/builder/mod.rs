//! The choices of a loader. Those that belong to the transform are in `transform`, views and targets in `arrays`, the
//! checking of all is in `build`.

mod arrays;
mod build;
mod transform;

use crate::dataset::Dataset;
use crate::dtype::Output;
use crate::loader::Loader;
use crate::order::{Grouping, Order, Uneven};
use crate::pool::BatchMemory;
use crate::skip::OnError;
use crate::targets::Targets;
use crate::transform::Transform;
use std::fmt;
use std::sync::Arc;

/// Choices of a loader; [`LoaderBuilder::build`] checks them against the dataset.
///
/// Defaults: batches of 16, sequential, all rows, the last batch kept though short, no worker threads, no
/// transform.
#[derive(Clone)]
pub struct LoaderBuilder {
    dataset: Dataset,
    batch_size: usize,
    order: Order,
    rows: Option<Arc<[usize]>>,
    seed: u64,
    epoch: u64,
    drop_last: bool,
    rank: usize,
    world: usize,
    uneven: Uneven,
    /// Nodes that have a part of the set each, and epochs after which they get others.
    local: Option<(usize, u64)>,
    on_error: OnError,
    workers: usize,
    prefetch: Option<usize>,
    memory: Option<usize>,
    source: Option<Arc<dyn BatchMemory>>,
    output: Output,
    crops: usize,
    transform: Transform,
    views: Views,
    targets: Option<Targets>,
}

/// The views made of each row.
#[derive(Clone, Debug)]
enum Views {
    /// So many by the transform.
    Same(usize),
    /// One by each.
    Recipes(Vec<Transform>),
}

impl fmt::Debug for LoaderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderBuilder")
            .field("dataset", &self.dataset)
            .field("batch_size", &self.batch_size)
            .field("order", &self.order)
            .field("seed", &self.seed)
            .field("rank", &self.rank)
            .field("world", &self.world)
            .field("workers", &self.workers)
            .field("output", &self.output)
            .field("transform", &self.transform)
            .field("views", &self.views)
            .field("targets", &self.targets)
            .finish_non_exhaustive()
    }
}

impl Loader {
    /// Starts choosing; see [`LoaderBuilder`] for what there is and the defaults.
    pub fn builder(dataset: &Dataset) -> LoaderBuilder {
        LoaderBuilder::new(dataset)
    }
}

impl LoaderBuilder {
    pub(crate) fn new(dataset: &Dataset) -> Self {
        Self {
            dataset: dataset.clone(),
            batch_size: 16,
            order: Order::Sequential,
            rows: None,
            seed: 0,
            epoch: 0,
            drop_last: false,
            rank: 0,
            world: 1,
            uneven: Uneven::default(),
            local: None,
            on_error: OnError::default(),
            workers: 0,
            prefetch: None,
            memory: None,
            source: None,
            output: Output::F32,
            crops: 1,
            transform: Transform::default(),
            views: Views::Same(1),
            targets: None,
        }
    }

    /// Images per batch.
    pub fn batch_size(mut self, batch_size: usize) -> Self {
        self.batch_size = batch_size;
        self
    }

    /// Rows in the order they are stored in.
    pub fn sequential(self) -> Self {
        self.order(Order::Sequential)
    }

    /// Rows in random order, another one each epoch; sets the seed of all random draws.
    pub fn shuffle(self, seed: u64) -> Self {
        self.order(Order::Random).seed(seed)
    }

    /// Rows of a group together, groups in random order; sets the seed of all random draws.
    pub fn grouped(self, grouping: Grouping, seed: u64) -> Self {
        self.order(Order::Grouped(grouping)).seed(seed)
    }

    /// Groups in random order, the rows of `window` groups shuffled among each other ([`Order::Mixed`]): for cells, with
    /// [`Grouping::Position`], those of so many images. Sets the seed of all random draws.
    pub fn mixed(self, by: Grouping, window: usize, seed: u64) -> Self {
        self.order(Order::Mixed { by, window }).seed(seed)
    }

    /// Rows drawn with replacement, each as often as its weight says. `weights` has one for every row of the
    /// dataset, also for rows that are left out. An epoch has as many images as there are rows, also
    /// where some have no weight; [`Order::Weighted`] lets choose. Sets the seed of all random draws.
    pub fn weighted(self, weights: impl Into<Vec<f64>>, seed: u64) -> Self {
        self.order(Order::Weighted { weights: weights.into().into(), images: None }).seed(seed)
    }

    /// Classes in equal shares: every batch has each class as often as the batch size divided by the number of
    /// classes, rounded down or up. With 16 classes or more, batches that are not a multiple of them may have one
    /// more or less of some. Rows of rare classes are repeated, each pass over a class in a new order. An epoch
    /// has a part of large classes, and the next goes on from there. An epoch has as many images as there are
    /// rows; [`Order::Balanced`] lets choose. Sets the seed of all random draws.
    pub fn balanced(self, by: Grouping, seed: u64) -> Self {
        self.order(Order::Balanced { by, images: None }).seed(seed)
    }

    /// This process is rank `rank` of `world` that train together, each with a loader of the same choices but for
    /// this. All get equally many batches and images, and together each row once; `uneven` decides on the rest
    /// that does not divide among them. The batch size is that of each rank.
    pub fn shard(mut self, rank: usize, world: usize, uneven: Uneven) -> Self {
        (self.rank, self.world, self.uneven) = (rank, world, uneven);
        self
    }

    /// The ranks ([`Self::shard`]) are on `nodes` nodes, equally many on each and numbered node by node. Each node has
    /// a part of the set: neighbouring rows, which its ranks divide, in the chosen order. So what a node keeps of the
    /// set on its disk is of no use to another. All nodes together need not keep anything twice. Every
    /// `reshard_every` epochs, unless that is 0, nodes get other parts. These are row groups, the files of a set of
    /// several, or runs of rows, in random order. The share of each rank is as even as without this; parts are cut to the row for
    /// it.
    ///
    /// For sequential and random order and for blocks. With this a batch is not a sample of the whole set but of its
    /// node's part. The batches of a step of all ranks together are one.
    pub fn shard_local(mut self, nodes: usize, reshard_every: u64) -> Self {
        self.local = Some((nodes, reshard_every));
        self
    }

    /// The treatment of rows that cannot be read, or do not fit the others.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// The order of rows.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Only these rows of the dataset; a row given twice comes twice.
    pub fn rows(mut self, rows: impl Into<Vec<usize>>) -> Self {
        self.rows = Some(rows.into().into());
        self
    }

    /// Seed of the order, crops, flips and turns.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The epoch that the first iteration runs; see [`Loader::set_epoch`].
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
    }

    /// Whether to leave out a last batch that is not full.
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// Threads that read ahead. With 0, each batch is read by the thread that asks for it, when it asks. With more, that
    /// thread reads as they do while its batch is not done.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Batches that may be finished or in work ahead of the one last delivered: the bound on memory. At least
    /// 1; twice the number of workers, and 4 at least, unless set. It has no effect without workers.
    pub fn prefetch(mut self, batches: usize) -> Self {
        self.prefetch = Some(batches);
        self
    }

    /// The bytes that the loader holds at most, caches and decoding included. Joined reads become shorter, fewer
    /// batches are read ahead and fewer threads read until that fits ([`Loader::memory`] gives the result). The
    /// store also keeps fewer decoded pages. Threads wait for each other with images that are much larger than most. Sizes
    /// are upper estimates. The description of the set (its index, names) and batches that the caller keeps are not
    /// counted.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Takes the memory of batches from the caller. It has to lend [`Loader::prefetch`] batches of
    /// [`Loader::batch_bytes`] and those that the consumer holds; a batch that it has no memory for is an error.
    pub fn batch_memory(mut self, source: Arc<dyn BatchMemory>) -> Self {
        self.source = Some(source);
        self
    }

    /// The type of the numbers in batches; `f32` unless set.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Takes `crops` crops of each image, each with draws of its own, from one read. Every piece (chunk, tile, strip)
    /// is decoded once, also where crops overlap. A batch of `batch_size` images, which must be a multiple of this,
    /// holds `batch_size / crops` rows in the order of the sampler. The crops of each follow one after the other.
    pub fn crops_per_image(mut self, crops: usize) -> Self {
        self.crops = crops;
        self
    }
}
