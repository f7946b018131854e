//! The thread that asks for bytes before the [ring](crate::ring)'s threads read them, of sets that are remote.
//!
//! ```text
//!  order ─▶ rows of batches to come ─▶ heads, far ahead ─▶ requests, as they will be made ─▶ ranges ─▶ guards, held by batch
//! ```
//!
//! It reads no pixels, and a failure here is repeated and reported where the row is read.

use super::{EpochShared, lock};
use crate::dataset::Dataset;
use crate::item::{ItemContext, Job};
use crate::plan::{LoaderShared, SetPlan};
use crate::transform::Crop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Builder;
use wellread_store::ReadExtent;
use wellread_store::ahead::Fetching;
use wellread_store::place::{self, PrefetchGuard, WantedRanges};
use wellread_store::process::Thread;

/// How much of each image is read.
fn extent(set: &SetPlan) -> ReadExtent {
    let channels = set.reference.info.shape.c();
    let is_whole = set.arrays.iter().any(|array| {
        array.compiled.transform.crop == Crop::None && array.compiled.channels.len() >= channels
    });
    if is_whole { ReadExtent::Whole } else { ReadExtent::Part }
}

impl EpochShared {
    /// Starts the thread, where there is something to ask for. Without it all is read as well, more slowly.
    pub(crate) fn start_fetching(self: &Arc<Self>) {
        let Some(ahead) = &self.ahead else { return };
        let of = |dataset: &Dataset| Fetching::of(dataset.store().remote_path()?, Some(ahead.most));
        let targets = || self.loader.targets.as_ref().and_then(of);
        let Some(mut fetching) = of(&self.loader.dataset).or_else(targets) else { return ahead.end() };
        let shared = Arc::clone(self);
        let thread = Thread::start(Builder::new().name("wellread-ahead".into()), move || {
            let work = || place::until(&shared.stop, || shared.fetch_ahead(&mut fetching));
            // A panic of a reader is told where the row is read.
            let _ = catch_unwind(AssertUnwindSafe(work));
            if let Some(ahead) = &shared.ahead {
                ahead.end();
            }
            wellread_trace::release_lane();
        });
        match thread {
            Ok(thread) => lock(&self.workers).push(thread),
            Err(_) => ahead.end(),
        }
    }

    /// Waits until a batch was asked for, where that is done ahead.
    pub(crate) fn wait_until_asked(&self, batch: usize) {
        if let Some(ahead) = &self.ahead {
            ahead.wait_until_asked(batch);
        }
    }

    /// Lets go what was asked for up to a batch that was read.
    pub(crate) fn note_read(&self, batch: usize) {
        if let Some(ahead) = &self.ahead {
            ahead.note_read(batch);
        }
    }

    fn fetch_ahead(&self, fetching: &mut Fetching) {
        let Some(ahead) = &self.ahead else { return };
        let mut context = ItemContext::default();
        let mut headed = 0;
        for batch in 0..self.batches {
            if !ahead.wait_turn(batch, || fetching.is_full()) {
                return;
            }
            let is_wanted = |headed: usize, fetching: &Fetching| {
                headed <= batch || headed <= ahead.last_head(batch) && !fetching.is_full()
            };
            while headed < self.batches && is_wanted(headed, &*fetching) {
                ahead.hold(headed, self.fetch_heads(fetching, headed));
                headed += 1;
            }
            if !ahead.is_read(batch) {
                ahead.hold(batch, self.fetch_pixels(fetching, &mut context, batch));
            }
            ahead.note_asked(batch);
        }
    }

    /// Rows of a batch, and how often each came before.
    fn rows_of(&self, batch: usize) -> (Vec<usize>, Vec<u64>) {
        let order = &self.loader.plan.order;
        let of = |position| (self.order.row(order, position), order.occurrence(position));
        self.rank_batches.positions(batch).map(of).unzip()
    }

    fn fetch_heads(&self, fetching: &mut Fetching, batch: usize) -> Vec<PrefetchGuard> {
        let LoaderShared { plan, dataset, targets, .. } = &*self.loader;
        let (rows, _) = self.rows_of(batch);
        let mut wanted = WantedRanges::default();
        dataset.store().heads(&rows, extent(&plan.images), &mut wanted);
        if let (Some(targets), Some((set, pairs))) = (targets, &plan.targets) {
            let rows: Vec<usize> = rows.iter().filter_map(|&row| pairs.row(dataset, row).ok()).collect();
            targets.store().heads(&rows, extent(set), &mut wanted);
        }
        fetching.fetch(&wanted)
    }

    fn fetch_pixels(
        &self,
        fetching: &mut Fetching,
        context: &mut ItemContext,
        batch: usize,
    ) -> Vec<PrefetchGuard> {
        let (rows, occurrences) = self.rows_of(batch);
        let jobs = self.jobs();
        let mut guards = vec![];
        for job in std::iter::once(&jobs.images).chain(&jobs.targets) {
            if let Some(all) = ask(fetching, context, job, (&rows, &occurrences), self.batches) {
                guards.extend(all);
                continue;
            }
            // One row that cannot be read does not keep the others.
            for (row, occurrence) in rows.iter().zip(&occurrences) {
                let one = (std::slice::from_ref(row), std::slice::from_ref(occurrence));
                guards.extend(ask(fetching, context, job, one, 1).into_iter().flatten());
            }
        }
        guards
    }
}

/// Asks for what reading some rows needs, as each of so many batches does; `None` where that cannot be told of one of them.
fn ask(
    fetching: &mut Fetching,
    context: &mut ItemContext,
    job: &Job<'_>,
    (rows, occurrences): (&[usize], &[u64]),
    batches: usize,
) -> Option<Vec<PrefetchGuard>> {
    let requests = context.requests(job, rows, occurrences).ok()?;
    let mut wanted = WantedRanges::default();
    job.dataset.store().ranges(requests, &mut wanted).ok()?;
    Some(fetching.fetch_batch(&wanted, batches))
}
