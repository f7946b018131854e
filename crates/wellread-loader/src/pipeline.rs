//! The iterator over an epoch: it owns the threads that fill the [ring](crate::ring) and helps them, or reads each batch itself.

use crate::batch::Batch;
use crate::item::ItemContext;
use crate::order::{NodeSharding, RankBatches};
use crate::plan::LoaderShared;
use crate::pool::{BatchBuffer, Fill};
use crate::ring::{EpochShared, Filled};
use crate::skip::{Failed, OnError, Skipped};
use crate::state::LoaderState;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use wellread_store::row_location::path_of_set;
use wellread_store::words::counted;
use wellread_store::{Error, Result, place};
use wellread_trace::{Kind, span};

/// The batches of one epoch, in order.
///
/// A batch with a row that cannot be read comes as an error at its place. The iteration can go on, with the batch after it. With
/// [`OnError::Skip`](crate::OnError::Skip) it comes without that row. Dropping the iterator stops its threads, in the
/// middle of a read if need be, and waits for them.
pub struct Batches {
    shared: Arc<EpochShared>,
    /// The caller's own, where it reads: without workers, and while it waits for them.
    context: Option<ItemContext>,
    /// Without workers, batches that were read together with an earlier one.
    ready: VecDeque<BatchBuffer>,
    /// The batch that comes next, from where the iteration began.
    next: usize,
    /// The batches that the state is past: an error is none.
    past: usize,
    /// An error that ends the iteration, delivered first.
    start_error: Option<Error>,
    ended: bool,
    skipped: Skipped,
    /// Images in a row that could not be read; those of a batch that is delivered though short are forgiven.
    consecutive_failed: usize,
    delivered: bool,
}

/// After so many consecutive images that cannot be read the iteration ends: it is no longer a matter of rows.
const MAX_CONSECUTIVE_FAILED: usize = 1000;

impl Batches {
    fn of(shared: EpochShared) -> Self {
        Self {
            shared: Arc::new(shared),
            context: None,
            ready: VecDeque::new(),
            next: 0,
            past: 0,
            start_error: None,
            ended: false,
            skipped: Skipped::default(),
            consecutive_failed: 0,
            delivered: false,
        }
    }

    /// These batches of an epoch, which is sharded so ([`crate::plan::Plan::shardings`]).
    pub(crate) fn new(
        loader: Arc<LoaderShared>,
        epoch: u64,
        rank_batches: RankBatches,
        shardings: Vec<NodeSharding>,
    ) -> Self {
        let mut this = Self::of(EpochShared::new(loader, epoch, rank_batches, shardings));
        let workers = this.workers();
        if workers == 0 || this.shared.loader.plan.read_ahead.consumer_reads {
            this.context = Some(this.shared.loader.take_context());
        }
        let _start = (workers > 0).then(|| span(Kind::StartWorkers).with(workers as u64, 0));
        this.shared.start_fetching();
        if workers > 0 {
            this.start_error = this.shared.start_workers().err();
        }
        this
    }

    /// An iteration that cannot begin.
    pub(crate) fn start_failed(loader: Arc<LoaderShared>, epoch: u64, error: Error) -> Self {
        let (rank_batches, shardings) = (loader.plan.rank_batches(0), loader.plan.shardings(&[], 0));
        let mut this = Self::of(EpochShared::new(loader, epoch, rank_batches, shardings));
        this.start_error = Some(error);
        this
    }

    /// Threads beside the caller's.
    fn workers(&self) -> usize {
        if self.shared.batches == 0 { 0 } else { self.shared.loader.plan.read_ahead.workers }
    }

    /// The epoch that is run.
    pub fn epoch(&self) -> u64 {
        self.shared.epoch
    }

    /// Index of the batch delivered next; [`crate::Loader::iter_at`] goes on from there.
    pub fn position(&self) -> usize {
        self.shared.rank_batches.before() + self.next
    }

    /// Batches that are still to come; where rows are skipped, at most.
    pub fn remaining(&self) -> usize {
        if self.ended { 0 } else { self.shared.batches - self.next }
    }

    /// The epoch, and the number of images of its order that all ranks together are past. [`Self::state`] is made of
    /// these ([`Loader::state_since`](crate::Loader::state_since)). A program that saves few states needs no more at every batch.
    pub fn progress(&self) -> (u64, usize) {
        (self.shared.epoch, self.shared.rank_batches.after(self.past))
    }

    /// Where the iteration is, to be saved: after the batch delivered last, whatever has been read ahead. A batch that
    /// is an error was not delivered. [`Loader::resume`](crate::Loader::resume) goes on from there. Ranks that have
    /// delivered equally many batches have the same state.
    pub fn state(&self) -> LoaderState {
        let LoaderShared { plan, dataset, .. } = &*self.shared.loader;
        let (epoch, position) = self.progress();
        LoaderState::new(&plan.identity(dataset.store()), epoch, position, self.shared.shardings.clone())
    }

    /// The rows that were left out of the batches delivered so far.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Reads the next batch in this thread, and those that belong to the same read.
    fn read(&mut self) -> Result<Filled> {
        let shared = Arc::clone(&self.shared);
        place::until(&shared.stop, || self.read_next())
    }

    fn read_next(&mut self) -> Result<Filled> {
        if self.ready.is_empty() {
            let joined = self.shared.loader.plan.read_ahead.joined;
            let run = self.next..(self.next + joined).min(self.shared.batches);
            self.shared.wait_until_asked(run.end - 1);
            if run.len() > 1
                && let Some(buffers) = self.read_joined(run)
            {
                self.ready.extend(buffers);
            }
        }
        match self.ready.pop_front() {
            Some(buffer) => Ok(Filled { buffer, failed: vec![] }),
            None => self.read_one(),
        }
    }

    /// Reads a run of batches in one go. `None` where that fails: which batch is at fault shows when each is read alone.
    fn read_joined(&mut self, run: std::ops::Range<usize>) -> Option<Vec<BatchBuffer>> {
        let Self { shared, context, .. } = self;
        let context = context.as_mut().expect("kept while there are no workers");
        let pool = &shared.loader.pool;
        let mut buffers = Vec::with_capacity(run.len());
        for batch in run.clone() {
            buffers.extend(shared.take_buffer(batch));
        }
        let arrays = &shared.loader.plan.layout;
        let complete = buffers.len() == run.len();
        let parts = buffers.iter_mut().zip(run).map(|(buffer, batch)| {
            let positions = shared.rank_batches.positions(batch);
            let images = positions.len();
            buffer.fill(positions, 0..images, arrays)
        });
        let mut parts: Vec<Fill<'_>> = parts.collect();
        if complete && shared.fill_joined(context, &mut parts).is_ok() {
            return Some(buffers);
        }
        for buffer in buffers {
            pool.give(buffer);
        }
        None
    }

    fn read_one(&mut self) -> Result<Filled> {
        let Self { shared, context, next, .. } = self;
        let context = context.as_mut().expect("kept while there are no workers");
        let mut buffer = shared.take_buffer(*next)?;
        let arrays = &shared.loader.plan.layout;
        let mut failed: Failed = vec![];
        for slice in 0..shared.slices(*next) {
            let (mut positions, mut within) = shared.slice(*next, slice);
            while !within.is_empty() {
                let planned = {
                    let mut fill = buffer.fill(positions.clone(), within.clone(), arrays);
                    shared.plan(context, &mut fill)
                };
                let rows = planned.as_ref().map_or(within.len(), |&rows| rows);
                let (first, middle) = (within.start, positions.start + rows);
                let fill = buffer.fill(positions.start..middle, first..first + rows, arrays);
                match shared.fill(context, planned.map(drop), fill, first) {
                    Ok(some) => failed.extend(some),
                    Err(error) => {
                        shared.loader.pool.give(buffer);
                        return Err(error);
                    }
                }
                (positions.start, within.start) = (middle, first + rows);
            }
        }
        Ok(Filled { buffer, failed })
    }

    /// Batch `index` of what was read, without the images that failed; `None` where none is left.
    fn batch(&mut self, index: usize, filled: Filled) -> Option<Batch> {
        let Filled { mut buffer, failed } = filled;
        let LoaderShared { plan, pool, .. } = &*self.shared.loader;
        // Rows, each of which becomes some images.
        let images = self.shared.rank_batches.positions(index).len();
        let left = images - failed.len();
        if !failed.is_empty() {
            let failed_rows: Vec<usize> = failed.iter().map(|(i, _)| buffer.rows[*i]).collect();
            buffer.remove(failed.iter().map(|(i, _)| *i), images, &plan.layout);
            for (row, (_, error)) in failed_rows.into_iter().zip(failed) {
                self.skipped.push(row, error);
            }
        }
        if left == 0 {
            self.consecutive_failed += images;
            pool.give(buffer);
            return None;
        }
        (self.consecutive_failed, self.delivered) = (0, true);
        let views = plan.images.arrays.len();
        let which = (self.shared.rank_batches.number(index), self.shared.epoch);
        let (pool, arrays) = (Arc::clone(pool), Arc::clone(&plan.layout));
        Some(Batch::new(buffer, pool, arrays, views, [left, plan.crops], which))
    }

    /// The error for a batch of which no image is left, where other ranks wait for this one's.
    fn fewer_batches_error(&self, index: usize) -> Error {
        let (number, world) = (self.shared.rank_batches.number(index), self.shared.rank_batches.world);
        let cause = format_args!(
            "no image of batch {number} can be read, so this rank would have fewer batches than the other \
             {} and leave them waiting; {}",
            world - 1,
            self.skipped
        );
        let path = path_of_set(self.shared.loader.dataset.store());
        Error::new(path, cause).hint("leave those rows out of the set, or take larger batches")
    }

    /// Whether so much failed that it is no matter of single rows.
    fn nothing_is_readable(&self) -> bool {
        let none = self.next == self.shared.batches && self.shared.rank_batches.first == 0 && !self.delivered;
        self.consecutive_failed >= MAX_CONSECUTIVE_FAILED || none && !self.shared.can_read_for_other_turns()
    }
}

/// Stops an iteration from another thread: [`Batches::stopper`].
#[derive(Clone)]
pub struct Stopper(Arc<EpochShared>);

impl Stopper {
    /// Ends what is being read at the next block, and the iteration with it: its next batch is an error.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stopper(epoch {})", self.0.epoch)
    }
}

impl Batches {
    /// The handle that ends the iteration while another thread is in `next`.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared))
    }

    /// As `next`, but waits for the threads at most so long. It is [`Poll::Pending`] when the batch was not there by then, and
    /// the next call goes on waiting. For callers that have to look after something else meanwhile, such as signals.
    /// Without workers the batch is read however long that takes, or until it is [stopped](Self::stopper).
    pub fn next_timeout(&mut self, timeout: Duration) -> Poll<Option<Result<Batch>>> {
        self.poll_next(Some(Instant::now() + timeout))
    }

    /// [`Self::poll_untraced`], seen in a trace: also where the batch is not there yet, with no rows then.
    fn poll_next(&mut self, until: Option<Instant>) -> Poll<Option<Result<Batch>>> {
        let mut waiting = span(Kind::Batch);
        let number = self.shared.number_of(self.next);
        let polled = self.poll_untraced(until);
        match &polled {
            Poll::Ready(None) => waiting.cancel(),
            Poll::Ready(Some(Ok(batch))) => waiting.set(number, batch.len() as u64),
            Poll::Ready(Some(Err(_))) | Poll::Pending => waiting.set(number, 0),
        }
        polled
    }

    fn poll_untraced(&mut self, until: Option<Instant>) -> Poll<Option<Result<Batch>>> {
        if let Some(error) = self.start_error.take() {
            self.ended = true;
            return Poll::Ready(Some(Err(error)));
        }
        while !self.ended && self.next < self.shared.batches {
            let (process, own) = (wellread_store::process::id(), self.shared.loader.process);
            if process != own {
                self.ended = true;
                let path = self.shared.loader.dataset.store().path();
                let cause = format_args!(
                    "this iteration was begun in process {own}, and process {process} is a fork of it without its threads"
                );
                let error = Error::new(path, cause).hint("begin an iteration in the forked process");
                return Poll::Ready(Some(Err(error)));
            }
            let index = self.next;
            let filled = if self.workers() == 0 {
                self.read()
            } else {
                let context = self.context.as_mut();
                let Some(filled) = self.shared.receive(index, until, context) else { return Poll::Pending };
                filled
            };
            self.shared.note_read(index);
            self.next += 1;
            match filled {
                Err(error) => return Poll::Ready(Some(Err(error))),
                Ok(filled) => {
                    if let Some(batch) = self.batch(index, filled) {
                        self.past = self.next;
                        return Poll::Ready(Some(Ok(batch)));
                    }
                    if self.shared.rank_batches.world > 1 {
                        self.ended = true;
                        return Poll::Ready(Some(Err(self.fewer_batches_error(index))));
                    }
                    self.past = self.next;
                }
            }
            if self.nothing_is_readable() {
                self.ended = true;
                let path = path_of_set(self.shared.loader.dataset.store());
                let failed = self.consecutive_failed;
                let cause = format_args!("none of {failed} images in a row can be read; {}", self.skipped);
                let error = Error::new(path, cause).hint("check that the set is there and complete");
                return Poll::Ready(Some(Err(error)));
            }
        }
        Poll::Ready(None)
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.poll_next(None) {
            Poll::Ready(batch) => batch,
            Poll::Pending => unreachable!("nothing ends a wait without a deadline"),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Batches without an image left are not delivered.
        let least = if self.shared.loader.plan.on_error == OnError::Skip { 0 } else { self.remaining() };
        (least, Some(self.remaining()))
    }
}

impl std::iter::FusedIterator for Batches {}

impl Drop for Batches {
    fn drop(&mut self) {
        if self.shared.loader.process != wellread_store::process::id() {
            // A forked process has neither the threads nor, for certain, the locks.
            std::mem::forget(self.context.take());
            return;
        }
        let workers = self.workers();
        let _stop = (workers > 0).then(|| span(Kind::StopWorkers).with(workers as u64, 0));
        self.shared.stop();
        self.shared.join_workers();
        if let Some(context) = self.context.take() {
            self.shared.loader.give_context(context);
        }
        // Batches that nobody asked for: their memory serves the next epoch.
        for buffer in self.ready.drain(..) {
            self.shared.loader.pool.give(buffer);
        }
        self.shared.release_buffers();
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, position, threads) = (self.epoch(), self.position(), counted(self.workers(), "thread"));
        let batches = self.shared.rank_batches.before() + self.shared.batches;
        write!(f, "Batches(epoch {epoch}, batch {position} of {batches}, {threads})")
    }
}
