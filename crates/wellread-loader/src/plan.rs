//! The state of a loader's epochs: [`Plan`], chosen once for all of them, and [`LoaderShared`], each process's own.
//!
//! ```text
//!   LoaderBuilder ──▶ Plan ──┬──▶ LoaderShared of the process ──▶ ring, pipeline: the epochs' batches
//!                            └──▶ LoaderShared of a forked one
//! ```

use crate::budget::{MemoryUse, ReadAhead, WorkingMemory};
use crate::compiled_transform::ArrayPlan;
use crate::dataset::{Dataset, sampled};
use crate::draw::{Digest, key};
use crate::item::{ItemContext, Reference};
use crate::order::{NodeSharding, RankBatches, RowOrder, Uneven, extended};
use crate::pool::{ArrayLayout, BatchMemory, BufferPool};
use crate::skip::OnError;
use crate::state::Identity;
use crate::targets::Pairs;
use crate::traffic::Counters;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wellread_store::Store;
use wellread_store::place::LinkUse;

/// The arrays made of the rows of one set.
pub(crate) struct SetPlan {
    /// One for each view.
    pub(crate) arrays: Vec<ArrayPlan>,
    pub(crate) reference: Reference,
}

/// The choices that are made once and never change.
pub(crate) struct Plan {
    pub(crate) images: SetPlan,
    /// Where there are targets: they, and which are whose.
    pub(crate) targets: Option<(SetPlan, Pairs)>,
    /// The arrays of a batch: views of the images, then of their targets.
    pub(crate) layout: Arc<[ArrayLayout]>,
    /// Bytes of the largest batch.
    pub(crate) bytes: usize,
    pub(crate) order: RowOrder,
    pub(crate) seed: u64,
    /// The batches of an epoch, counted in rows; each row becomes `crops` images.
    pub(crate) rank_batches: RankBatches,
    /// Nodes that have a part of the set each; `None` where ranks divide the whole.
    pub(crate) nodes: Option<usize>,
    pub(crate) crops: usize,
    pub(crate) on_error: OnError,
    /// The batches to read ahead, and the number of threads that read them.
    pub(crate) read_ahead: ReadAhead,
    /// Rows of a batch that one thread takes at a time. Depends on sizes only, so that which error is
    /// reported does not depend on the number of workers.
    pub(crate) slice_rows: usize,
    /// Images of the largest batch.
    pub(crate) largest: usize,
    /// Bytes that may be fetched ahead from remote places and held; `None` where there is no room for any.
    pub(crate) ahead: Option<u64>,
    /// The bound on memory, if there is one.
    pub(crate) memory: Option<MemoryUse>,
    /// Where the memory of batches comes from, if not from the system.
    pub(crate) source: Option<Arc<dyn BatchMemory>>,
    /// [`Identity::rows`] and [`Identity::order`], once they were asked for; 0 before. No lock that a fork could
    /// leave closed: made twice, they are the same.
    pub(crate) fingerprints: [AtomicU64; 2],
}

impl Plan {
    /// The first view, for what is asked of a loader without naming one.
    pub(crate) fn first(&self) -> &ArrayPlan {
        &self.images.arrays[0]
    }

    /// The batches of an epoch from a position on.
    pub(crate) fn rank_batches(&self, first: usize) -> RankBatches {
        RankBatches { first, ..self.rank_batches }
    }

    /// The shardings of an epoch that goes on at a position, after the shardings `before` (none, if it begins here or never had
    /// one). It is empty where ranks divide the whole.
    pub(crate) fn shardings(&self, before: &[NodeSharding], first: usize) -> Vec<NodeSharding> {
        let Some(nodes) = self.nodes else { return vec![] };
        let RankBatches { world, batch_size: batch, uneven, .. } = self.rank_batches;
        let from = |first| NodeSharding { first, world, nodes, batch, pad: uneven == Uneven::Pad };
        let whole = [from(0)];
        let before = if before.is_empty() { &whole[..] } else { before };
        // At its end nothing is left to shard.
        if first >= self.order.len() { before.to_vec() } else { extended(before, from(first)) }
    }

    /// The values that a saved state must agree with: the number of rows and some of their names, the order,
    /// the seed.
    pub(crate) fn identity(&self, store: &dyn Store) -> Identity {
        let rows = || {
            let mut digest = Digest::new(key([0x72, 0x6f, 0x77]));
            digest.number(store.len() as u64);
            for row in sampled(store.len()) {
                digest.text(&store.name(row).unwrap_or_default());
            }
            digest.finish()
        };
        let once = |cell: &AtomicU64, make: &dyn Fn() -> u64| match cell.load(Ordering::Relaxed) {
            0 => {
                // 0 stands for "not known".
                let made = make().max(1);
                cell.store(made, Ordering::Relaxed);
                made
            }
            known => known,
        };
        Identity {
            seed: self.seed,
            images: self.order.len(),
            rows: once(&self.fingerprints[0], &rows),
            order: once(&self.fingerprints[1], &|| self.order.fingerprint()),
        }
    }
}

/// The state that the epochs and threads of one process share.
pub(crate) struct LoaderShared {
    pub(crate) plan: Arc<Plan>,
    pub(crate) dataset: Dataset,
    /// The set of targets, where there are any.
    pub(crate) targets: Option<Dataset>,
    pub(crate) pool: Arc<BufferPool>,
    /// Contexts of threads of earlier epochs, for reuse.
    contexts: Mutex<Vec<ItemContext>>,
    pub(crate) traffic: Counters,
    /// The process's requests over networks when it was made.
    pub(crate) link_before: LinkUse,
    /// The memory that threads may use for reading, where that is bounded.
    pub(crate) working: Option<WorkingMemory>,
    /// The process that it was made in. Another one, forked from it, must not touch its locks: a thread that exists
    /// only here may hold them.
    pub(crate) process: u32,
}

impl LoaderShared {
    pub(crate) fn new(plan: Arc<Plan>, dataset: Dataset, targets: Option<Dataset>) -> Self {
        // Besides the batches ahead, the consumer holds one or two.
        let keep = plan
            .memory
            .as_ref()
            .map_or(plan.read_ahead.prefetch.min(plan.rank_batches.len()) + 2, |memory| memory.batches);
        let working = plan.memory.as_ref().map(WorkingMemory::new);
        if let Some(memory) = &plan.memory {
            // A set that was opened anew has a cache of its own.
            let for_targets = targets.as_ref().map_or(0, |targets| {
                let hints = targets.store().hints();
                let pages = hints.page_cache_bytes().min(memory.page_cache_bytes / 2);
                hints.limit_page_cache(pages);
                pages
            });
            dataset.store().hints().limit_page_cache(memory.page_cache_bytes - for_targets);
        }
        let pool =
            Arc::new(BufferPool::new(plan.bytes, plan.largest * plan.crops, keep, plan.source.clone()));
        let contexts = Mutex::new(Vec::with_capacity(plan.read_ahead.readers().clamp(1, 64)));
        let (traffic, process) = (Counters::default(), wellread_store::process::id());
        let link_before = LinkUse::now();
        Self { plan, dataset, targets, pool, contexts, traffic, link_before, working, process }
    }

    pub(crate) fn take_context(&self) -> ItemContext {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn give_context(&self, context: ItemContext) {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if contexts.len() < self.plan.read_ahead.readers() {
            contexts.push(context);
        }
    }
}
