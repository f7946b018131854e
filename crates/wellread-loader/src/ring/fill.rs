//! Reading what a thread has claimed of the [ring](crate::ring): rows of the epoch's order into the memory of a batch.
//!
//! ```text
//!   positions ──order──▶ rows ──plan──▶ as many as make a part ──read──▶ views ──▶ targets of the same rows
//!                                                                └─ fails: row by row, for the rows at fault
//! ```

use super::EpochShared;
use crate::budget::SPLIT_BYTES;
use crate::dataset::Dataset;
use crate::item::{ItemContext, Job, PairedImages};
use crate::order::RankBatches;
use crate::plan::{LoaderShared, Plan, SetPlan};
use crate::pool::{Fill, RowMemory};
use crate::skip::{Failed, OnError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use wellread_store::guard::panic_message;
use wellread_store::row_location::path_of_set;
use wellread_store::{Error, Result, place};

/// Images of other turns that are tried at most: each may wait for a network.
const MOST_TRIED: usize = 32;

/// The inputs that read rows.
pub(super) struct Jobs<'a> {
    pub(super) images: Job<'a>,
    pub(super) targets: Option<Job<'a>>,
}

impl Jobs<'_> {
    /// Reads the targets of rows whose images were read.
    fn fetch_targets(
        &self,
        context: &mut ItemContext,
        rows: &[usize],
        occurrences: &[u64],
        out: &mut [RowMemory<'_>],
    ) -> Result<()> {
        let Some(targets) = &self.targets else { return Ok(()) };
        context.target_context().fetch(targets, rows, occurrences, out)
    }
}

impl EpochShared {
    /// Plans rows, as many as make a part of the work that is not much larger than others, and returns how many that is.
    /// It depends on sizes only, so that the rows read together do not depend on the number of threads.
    pub(crate) fn plan(&self, context: &mut ItemContext, fill: &mut Fill<'_>) -> Result<usize> {
        self.resolve_rows(fill);
        let Fill { rows, occurrences, .. } = fill;
        self.catch_panics(context, rows, |jobs, context| {
            context.plan(&jobs.images, rows, occurrences, rows.len(), SPLIT_BYTES)
        })
    }

    /// Reads the rows that were planned, which are those from `first` on of their batch: the work itself, the same with
    /// and without threads. A panic of a reader becomes an error.
    pub(crate) fn fill(
        &self,
        context: &mut ItemContext,
        planned: Result<()>,
        fill: Fill<'_>,
        first: usize,
    ) -> Result<Failed> {
        let Fill { rows, occurrences, mut pixels, .. } = fill;
        let (rows, occurrences): (&[usize], &[u64]) = (rows, occurrences);
        let read = |jobs: &Jobs<'_>, context: &mut ItemContext| {
            let out = &mut [pixels.again()];
            context.read(&jobs.images, out)?;
            jobs.fetch_targets(context, rows, occurrences, out)
        };
        let error = match planned.and_then(|()| self.catch_panics(context, rows, read)) {
            Ok(()) => return Ok(vec![]),
            Err(error) if self.is_stopped() => return Err(error),
            Err(error) => error,
        };
        let raises = self.loader.plan.on_error == OnError::Raise;
        let ends = |error: &Error| raises || error.is_of_shared_file();
        if let [row] = rows {
            let error = error.row(*row);
            return if ends(&error) { Err(error) } else { Ok(vec![(first, error)]) };
        }
        // Engines that read many rows at once do not say which of them they could not.
        if ends(&error) && error.row_index().is_some() {
            return Err(error);
        }
        // Which rows failed shows when each is read by itself.
        let mut failed: Failed = vec![];
        for (i, &row) in rows.iter().enumerate() {
            if self.is_stopped() {
                break;
            }
            let result = self.fetch(context, &rows[i..=i], &occurrences[i..=i], &mut [pixels.row(i)]);
            match result.map_err(|error| error.row(row)) {
                Ok(()) => {}
                Err(error) if ends(&error) => return Err(error),
                Err(error) => failed.push((first + i, error)),
            }
        }
        if raises {
            return Err(error);
        }
        if self.is_stopped() {
            // Some of the rows were not read, and hold what was there before.
            return Err(self.cancelled());
        }
        Ok(failed)
    }

    /// Whether an image can be read of those that the other turns deliver: some are tried, first one of each of their batches.
    pub(crate) fn can_read_for_other_turns(&self) -> bool {
        let own = self.rank_batches;
        let others = || {
            (0..own.turns).filter(move |&turn| turn != own.turn).map(move |turn| RankBatches { turn, ..own })
        };
        let batches =
            || others().flat_map(|of_turn| (0..of_turn.len()).map(move |batch| of_turn.positions(batch)));
        let positions =
            (0..self.loader.plan.largest).flat_map(|i| batches().filter_map(move |mut batch| batch.nth(i)));
        let Ok(mut buffer) = self.take_buffer(0) else { return false };
        let (mut context, arrays) = (ItemContext::default(), &self.loader.plan.layout);
        let is_readable = |position: usize| {
            let mut fill = buffer.fill(position..position + 1, 0..1, arrays);
            let planned = self.plan(&mut context, &mut fill).map(drop);
            self.fill(&mut context, planned, fill, 0).is_ok_and(|failed| failed.is_empty())
        };
        let mut tried = positions.take(MOST_TRIED).take_while(|_| !self.is_stopped());
        let found = place::until(&self.stop, || tried.any(is_readable));
        self.loader.pool.give(buffer);
        found
    }

    /// Reads several batches in one go.
    pub(crate) fn fill_joined(&self, context: &mut ItemContext, parts: &mut [Fill<'_>]) -> Result<()> {
        let (mut rows, mut occurrences) = (vec![], vec![]);
        for part in parts.iter_mut() {
            self.resolve_rows(part);
            rows.extend_from_slice(part.rows);
            occurrences.extend_from_slice(part.occurrences);
        }
        let mut pixels: Vec<RowMemory<'_>> = parts.iter_mut().map(|part| part.pixels.again()).collect();
        self.fetch(context, &rows, &occurrences, &mut pixels)
    }

    /// The rows at the positions.
    fn resolve_rows(&self, fill: &mut Fill<'_>) {
        let order = &self.loader.plan.order;
        for (i, position) in fill.positions.clone().enumerate() {
            fill.rows[i] = self.order.row(order, position);
            fill.occurrences[i] = order.occurrence(position);
        }
    }

    fn fetch(
        &self,
        context: &mut ItemContext,
        rows: &[usize],
        occurrences: &[u64],
        pixels: &mut [RowMemory<'_>],
    ) -> Result<()> {
        self.catch_panics(context, rows, |jobs, context| {
            context.fetch(&jobs.images, rows, occurrences, pixels)?;
            jobs.fetch_targets(context, rows, occurrences, pixels)
        })
    }

    /// The inputs that read rows of a set, whose arrays are those of the batch from `first_array` on.
    fn job<'a>(
        &'a self,
        dataset: &'a Dataset,
        set: &'a SetPlan,
        first_array: usize,
        of: Option<PairedImages<'a>>,
    ) -> Job<'a> {
        let Plan { crops, seed, .. } = &*self.loader.plan;
        Job {
            dataset,
            arrays: &set.arrays,
            first_array,
            reference: Some(&set.reference),
            of,
            crops: *crops,
            seed: *seed,
            epoch: self.epoch,
            stop: Some(self.stop.as_ref()),
            working: self.loader.working.as_ref(),
        }
    }

    /// The inputs that read rows.
    pub(super) fn jobs(&self) -> Jobs<'_> {
        let LoaderShared { plan, dataset, targets, .. } = &*self.loader;
        let of_targets = |targets| {
            let (set, pairs) = plan.targets.as_ref()?;
            Some(self.job(
                targets,
                set,
                plan.images.arrays.len(),
                Some(PairedImages { images: dataset, pairs }),
            ))
        };
        Jobs {
            images: self.job(dataset, &plan.images, 0, None),
            targets: targets.as_ref().and_then(of_targets),
        }
    }

    /// Does a part of the work on `rows`.
    fn catch_panics<T>(
        &self,
        context: &mut ItemContext,
        rows: &[usize],
        work: impl FnOnce(&Jobs<'_>, &mut ItemContext) -> Result<T>,
    ) -> Result<T> {
        let dataset = &self.loader.dataset;
        let jobs = self.jobs();
        let fetched = catch_unwind(AssertUnwindSafe(|| work(&jobs, context)));
        self.loader.traffic.add(context.take_traffic());
        fetched.unwrap_or_else(|panic| {
            // The panic left the buffers in an unknown state.
            *context = ItemContext::default();
            let rows = match rows {
                [row] => format!("row {row}"),
                rows => format!("{} rows from row {} on", rows.len(), rows[0]),
            };
            Err(Error::new(
                path_of_set(dataset.store()),
                format_args!("panicked while reading {rows}: {}", panic_message(&*panic)),
            )
            .hint("this is a defect of wellread; please report it"))
        })
    }
}
