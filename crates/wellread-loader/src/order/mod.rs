//! In which order rows come: position in the epoch → row.
//!
//! ```text
//!  Order ──with the rows──▶ RowOrder ──seed, epoch──▶ EpochOrder ──position──▶ row
//!                                                   RankBatches: batch of a rank → positions
//! ```
//!
//! An image's random draws follow its row. Where an epoch has a row more than once, its *occurrence* tells the times
//! apart ([`RowOrder::occurrence`]), another function of the position alone.
//!
//! The order is a function of seed, epoch and position alone, never of the batch size, the rank or the number of
//! threads. Sequential, random and block order keep nothing per row. A shuffled epoch is a keyed bijection of
//! `0..n` ([`Permutation`]), so any position can be asked for at once. Resuming and splitting over ranks are
//! free. The others keep a list of the rows they choose from.
//!
//! | order | an epoch | memory |
//! |---|---|---|
//! | [`Order::Sequential`] | every row once, as stored | none |
//! | [`Order::Random`] | every row once | none |
//! | [`Order::Block`] | every row once, blocks of neighbours near each other | none |
//! | [`Order::Grouped`] | every row once, a group's rows together | 8 bytes a row |
//! | [`Order::Mixed`] | every row once, a group's rows near each other | 8 bytes a row |
//! | [`Order::Weighted`] | draws with replacement | 24 bytes a row |
//! | [`Order::Balanced`] | classes in equal shares, rows of small ones repeated | 8 bytes a row |
//!
//! The first three may be sharded over nodes, each of which then has a part of the rows (`local`). Such an order is a function of
//! how many ranks and nodes there were, too, up to where the epoch was interrupted (`node_sharding`).

mod balanced;
mod block;
mod grouping;
mod local;
mod mixed;
mod node_sharding;
mod permutation;
pub mod quality;
mod rows;
mod shard;
mod weighted;

use crate::draw::{Digest, key};
use balanced::{Balanced, BalancedEpoch};
use grouping::{GroupedEpoch, Groups};
use local::{Local, LocalEpoch, OrderWithinNode};
use mixed::MixedEpoch;
use std::sync::Arc;
use weighted::Weighted;
use wellread_store::row_location::path_of_set;
use wellread_store::{Error, Result, Store};

pub use block::BlockPermutation;
pub use grouping::Grouping;
pub(crate) use node_sharding::{NodeSharding, are_possible, extended};
pub use permutation::Permutation;
pub use quality::OrderQuality;
pub(crate) use rows::Rows;
pub(crate) use shard::RankBatches;
pub use shard::Uneven;

/// The order of rows in an epoch.
#[derive(Clone, Debug, Default)]
pub enum Order {
    /// As stored, the same in each epoch.
    #[default]
    Sequential,
    /// Every row once, in a random order that differs from epoch to epoch.
    Random,
    /// Every row once, nearly random, and read from few places at a time. It has blocks of neighbouring rows in random
    /// order, and the rows of `window` blocks shuffled among each other. For sets that are not in memory; see
    /// [`BlockPermutation`].
    Block {
        /// Rows of a block: those of a page, row group or shard, or a multiple.
        rows: usize,
        /// Blocks whose rows are mixed. As many as fit into memory.
        window: usize,
    },
    /// Rows of a group together, in storage order; the order of groups is random and differs from epoch to
    /// epoch. Needs every row's name (or keys, or columns) when the loader is built.
    Grouped(Grouping),
    /// Every row once: groups in random order, and the rows of `window` groups shuffled among each other. Block order for
    /// blocks of different size, such as the cells of an image ([`Grouping::Position`]). Each image is decoded once where a cache
    /// keeps `window` of them.
    Mixed {
        /// The groups.
        by: Grouping,
        /// Groups whose rows are mixed.
        window: usize,
    },
    /// Rows drawn with replacement, each as often as its weight says: see
    /// [`LoaderBuilder::weighted`](crate::LoaderBuilder::weighted).
    Weighted {
        /// One for every row of the dataset, finite and not below 0.
        weights: Arc<[f64]>,
        /// Images of an epoch; as many as there are rows unless given, also where some have no weight.
        images: Option<usize>,
    },
    /// Groups in equal shares in every batch, as far as the batch size allows: see
    /// [`LoaderBuilder::balanced`](crate::LoaderBuilder::balanced).
    Balanced {
        /// The classes. A row without a value in a column of theirs is of none, and an error.
        by: Grouping,
        /// Images of an epoch; as many as there are rows unless given.
        images: Option<usize>,
    },
}

/// The order of a loader, before an epoch is chosen.
#[derive(Debug)]
pub(crate) struct RowOrder {
    kind: Kind,
    /// Whether a pass over the epoch may have a row more than once.
    repeats: bool,
    /// The pieces that are sharded over nodes, where each has a part of the rows.
    local: Option<Arc<Local>>,
}

#[derive(Debug)]
enum Kind {
    Sequential(Rows),
    Random(Rows),
    Block { of: Rows, rows: usize, window: usize },
    Grouped(Groups),
    Mixed { groups: Groups, window: usize },
    Weighted(Weighted),
    Balanced(Balanced),
}

impl RowOrder {
    pub(crate) fn new(order: &Order, rows: Rows, store: &dyn Store) -> Result<Self> {
        let error = |cause: &str, hint: &str| Err(Error::new(path_of_set(store), cause).hint(hint));
        let repeats = matches!(order, Order::Weighted { .. } | Order::Balanced { .. }) || rows.repeat();
        let kind = match order {
            Order::Sequential => Kind::Sequential(rows),
            Order::Random => Kind::Random(rows),
            Order::Block { rows: 0, .. } => return error("blocks of 0 rows", "give at least 1"),
            Order::Block { window: 0, .. } => return error("a window of 0 blocks", "give at least 1"),
            Order::Block { rows: each, window } => Kind::Block { of: rows, rows: *each, window: *window },
            Order::Grouped(grouping) => Kind::Grouped(Groups::new(grouping, &rows, store)?),
            Order::Mixed { window: 0, .. } => return error("a window of 0 groups", "give at least 1"),
            Order::Mixed { by, window } => {
                Kind::Mixed { groups: Groups::new(by, &rows, store)?, window: *window }
            }
            Order::Weighted { weights, images } => {
                Kind::Weighted(Weighted::new(weights, *images, &rows, store)?)
            }
            Order::Balanced { by, images } => {
                let images = images.unwrap_or(rows.len());
                Kind::Balanced(Balanced { classes: Groups::of_classes(by, &rows, store)?, images })
            }
        };
        let order = Self { kind, repeats, local: None };
        if order.len() == 0 {
            return error("an epoch of 0 images", "give at least 1");
        }
        Ok(order)
    }

    /// The same of which each node has a part, sharded anew every `reshard_every` epochs, or never where that is 0.
    pub(crate) fn local(order: &Order, rows: Rows, store: &dyn Store, reshard_every: u64) -> Result<Self> {
        let rows = match order {
            Order::Sequential => rows,
            Order::Random | Order::Block { .. } => rows.sorted(),
            Order::Grouped(_) | Order::Mixed { .. } | Order::Weighted { .. } | Order::Balanced { .. } => {
                let cause = "this order takes rows from anywhere in the set, so nodes cannot have a part of it each \
                             (shard=\"local\")";
                return Err(Error::new(path_of_set(store), cause).hint(
                    "shuffle, or take blocks of neighbouring rows; or let all ranks divide the whole set",
                ));
            }
        };
        let local = Some(Arc::new(Local::new(&rows, store, reshard_every)));
        Ok(Self { local, ..Self::new(order, rows, store)? })
    }

    /// Tells the times apart that an epoch has the same row: a number that no other position with that row has. It is 0
    /// where the epoch has each row once; a row that comes again because ranks are padded counts the passes over the
    /// epoch.
    pub(crate) fn occurrence(&self, position: usize) -> u64 {
        (if self.repeats { position } else { position / self.len() }) as u64
    }

    /// Images of an epoch.
    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::Sequential(rows) | Kind::Random(rows) | Kind::Block { of: rows, .. } => rows.len(),
            Kind::Grouped(groups) | Kind::Mixed { groups, .. } => groups.rows().len(),
            Kind::Weighted(weighted) => weighted.images,
            Kind::Balanced(balanced) => balanced.images,
        }
    }

    /// A number that differs where the order does, seed and epoch aside.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut digest = Digest::new(key([0x6f, 0x72, 0x64]));
        let groups = |digest: &mut Digest, groups: &Groups| {
            digest.numbers(groups.rows().iter().chain(groups.starts()).map(|&n| n as u64));
        };
        // The first value tells the kinds apart.
        match &self.kind {
            Kind::Sequential(rows) => {
                digest.number(1);
                rows.digest(&mut digest);
            }
            Kind::Random(rows) => {
                digest.number(2);
                rows.digest(&mut digest);
            }
            Kind::Block { of, rows, window } => {
                digest.numbers([3, *rows as u64, *window as u64]);
                of.digest(&mut digest);
            }
            Kind::Grouped(of) => {
                digest.number(4);
                groups(&mut digest, of);
            }
            Kind::Mixed { groups: of, window } => {
                digest.numbers([7, *window as u64]);
                groups(&mut digest, of);
            }
            Kind::Weighted(weighted) => {
                digest.number(5);
                weighted.digest(&mut digest);
            }
            Kind::Balanced(Balanced { classes, images }) => {
                digest.numbers([6, *images as u64]);
                groups(&mut digest, classes);
            }
        }
        if let Some(local) = &self.local {
            local.digest(&mut digest);
        }
        digest.finish()
    }
}

/// The order of one epoch: position → row.
#[derive(Debug)]
pub(crate) enum EpochOrder {
    Sequential,
    Random(Permutation),
    Block(BlockPermutation),
    Grouped(GroupedEpoch),
    Mixed(MixedEpoch),
    Weighted { seed: u64, epoch: u64 },
    Balanced(BalancedEpoch),
    Local(LocalEpoch),
}

impl EpochOrder {
    /// `shardings` says how the epoch was sharded so far, where nodes have parts of their own.
    pub(crate) fn new(order: &RowOrder, seed: u64, epoch: u64, shardings: &[NodeSharding]) -> Self {
        if let Some(local) = &order.local {
            let within = match &order.kind {
                Kind::Random(_) => OrderWithinNode::Random,
                Kind::Block { rows, window, .. } => OrderWithinNode::Block { rows: *rows, window: *window },
                _ => OrderWithinNode::AsStored,
            };
            return Self::Local(LocalEpoch::new(local, within, order.len(), [seed, epoch], shardings));
        }
        match &order.kind {
            Kind::Sequential(_) => Self::Sequential,
            Kind::Random(rows) => Self::Random(Permutation::new(rows.len(), seed, epoch)),
            Kind::Block { of, rows, window } => {
                Self::Block(BlockPermutation::new(of.len(), *rows, *window, seed, epoch))
            }
            Kind::Grouped(groups) => Self::Grouped(GroupedEpoch::new(groups, seed, epoch)),
            Kind::Mixed { groups, window } => Self::Mixed(MixedEpoch::new(groups, *window, seed, epoch)),
            Kind::Weighted(_) => Self::Weighted { seed, epoch },
            Kind::Balanced(balanced) => Self::Balanced(balanced.epoch(seed, epoch)),
        }
    }

    /// The row at a position. Positions after the end start anew, as ranks that are padded need them.
    pub(crate) fn row(&self, order: &RowOrder, position: usize) -> usize {
        let n = order.len();
        let i = if position < n { position } else { position % n };
        match (&order.kind, self) {
            (
                Kind::Sequential(rows) | Kind::Random(rows) | Kind::Block { of: rows, .. },
                Self::Local(epoch),
            ) => rows.get(epoch.at(i)),
            (Kind::Sequential(rows), _) => rows.get(i),
            (Kind::Random(rows), Self::Random(permutation)) => rows.get(permutation.at(i)),
            (Kind::Block { of, .. }, Self::Block(permutation)) => of.get(permutation.at(i)),
            (Kind::Grouped(groups), Self::Grouped(epoch)) => epoch.row(groups, i),
            (Kind::Mixed { groups, .. }, Self::Mixed(epoch)) => epoch.row(groups, i),
            (Kind::Weighted(weighted), Self::Weighted { seed, epoch }) => weighted.row(*seed, *epoch, i),
            (Kind::Balanced(balanced), Self::Balanced(epoch)) => balanced.row(epoch, i),
            _ => unreachable!("an epoch's order is made from the loader's"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
