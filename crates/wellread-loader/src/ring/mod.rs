//! The ring of batches that threads fill: the claims of threads, and the time when a batch is done.
//!
//! Work is cut into slices: a whole batch when it is small, some rows of it when it is large. So all
//! threads hurry for the batch that is needed first. A thread that finds more bytes to read in its slice than others have,
//! keeps a part and leaves the rest to others. A large image that becomes a small crop is such a case. Threads claim slices in
//! order and write straight into the batch's memory; a batch is delivered when its last slice is done, in order. A ring
//! of `prefetch` slots bounds how far they run ahead.
//!
//! ```text
//!   slots   [ batch 7: done ][ batch 8: 1 slice pending ][ batch 9: claimed next ][ free ]
//!              ▲ delivered next                             ▲ workers
//! ```
//!
//! The consumer, where its batch is not done yet, claims slices as the workers do instead of sleeping. To sleep and
//! wake for each batch costs more than a batch of small images. Not where reads are joined: a query for many batches
//! would keep it long after its own is there.
//!
//! One mutex guards the ring. It is taken twice per slice and once per batch, which is nothing beside
//! reading a slice; threads are woken only when they are asleep.

mod claim;
mod fetch;
mod fill;
mod part;

use crate::ahead::Lookahead;
use crate::item::ItemContext;
use crate::order::{EpochOrder, NodeSharding, RankBatches};
use crate::plan::{LoaderShared, Plan};
use crate::pool::{BatchBuffer, Fill};
use crate::skip::Failed;
use part::{Claim, Part};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Instant;
use wellread_store::process::Thread;
use wellread_store::row_location::path_of_set;
use wellread_store::words::counted;
use wellread_store::{Error, Result, place};
use wellread_trace::{Kind, span};

/// A batch's memory with its pixels in it, and which of its images are none.
pub(crate) struct Filled {
    pub(crate) buffer: BatchBuffer,
    pub(crate) failed: Failed,
}

/// One epoch, as the threads see it.
pub(crate) struct EpochShared {
    pub(crate) loader: Arc<LoaderShared>,
    pub(crate) order: EpochOrder,
    pub(crate) epoch: u64,
    /// Batches are counted from where the iteration begins.
    pub(crate) rank_batches: RankBatches,
    /// How the epoch is sharded ([`Plan::shardings`]).
    pub(crate) shardings: Vec<NodeSharding>,
    /// Their number.
    pub(crate) batches: usize,
    /// Ends reading at the next block.
    pub(crate) stop: Arc<AtomicBool>,
    ring: Mutex<Ring>,
    /// There may be a slice to claim.
    work_available: Condvar,
    /// The batch that is waited for may be done.
    batch_done: Condvar,
    /// The workers, and the thread that asks for bytes ahead, to be waited for.
    workers: Mutex<Vec<Thread>>,
    /// The requests ahead, for sets that are remote.
    ahead: Option<Lookahead>,
}

struct Ring {
    /// Batch `b` is in slot `b % slots.len()`.
    slots: Vec<Slot>,
    /// The slice to be claimed next.
    next_batch: usize,
    next_slice: usize,
    /// Parts that threads have split off for others, to be claimed before that.
    leftover: VecDeque<Part>,
    /// Parts that threads are reading.
    active_parts: usize,
    /// Batches delivered, so slots up to this plus their number may be filled.
    delivered: usize,
    /// Threads asleep on `work_available`.
    idle_workers: usize,
    /// Whether the consumer is asleep on `batch_done`.
    consumer_waiting: bool,
}

#[derive(Default)]
struct Slot {
    buffer: Option<BatchBuffer>,
    /// Slices not yet finished.
    pending: usize,
    /// The error of the lowest failing row.
    error: Option<(usize, Error)>,
    failed: Failed,
}

/// Locks. No code that can panic runs under the locks of threads; should it, the state is still the best there is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EpochShared {
    pub(crate) fn new(
        loader: Arc<LoaderShared>,
        epoch: u64,
        rank_batches: RankBatches,
        shardings: Vec<NodeSharding>,
    ) -> Self {
        let Plan { order, seed, read_ahead, .. } = &*loader.plan;
        let order = EpochOrder::new(order, *seed, epoch, &shardings);
        let batches = rank_batches.len();
        let slots = if read_ahead.workers == 0 { 0 } else { read_ahead.prefetch.min(batches) };
        let ring = Ring {
            slots: std::iter::repeat_with(Slot::default).take(slots).collect(),
            next_batch: 0,
            next_slice: 0,
            leftover: VecDeque::new(),
            active_parts: 0,
            delivered: 0,
            idle_workers: 0,
            consumer_waiting: false,
        };
        let ahead = Lookahead::of(&loader);
        Self {
            loader,
            order,
            epoch,
            rank_batches,
            shardings,
            batches,
            stop: Arc::default(),
            ring: Mutex::new(ring),
            work_available: Condvar::new(),
            batch_done: Condvar::new(),
            workers: Mutex::default(),
            ahead,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        lock(&self.ring)
    }

    pub(crate) fn slices(&self, batch: usize) -> usize {
        self.rank_batches.positions(batch).len().div_ceil(self.loader.plan.slice_rows)
    }

    /// Positions of a slice, and its range of rows in the batch.
    pub(crate) fn slice(&self, batch: usize, slice: usize) -> (Range<usize>, Range<usize>) {
        let positions = self.rank_batches.positions(batch);
        let first = slice * self.loader.plan.slice_rows;
        let last = (first + self.loader.plan.slice_rows).min(positions.len());
        (positions.start + first..positions.start + last, first..last)
    }

    pub(crate) fn take_buffer(&self, batch: usize) -> Result<BatchBuffer> {
        self.loader.pool.take().ok_or_else(|| {
            let images = self.rank_batches.positions(batch).len() * self.loader.plan.crops;
            let path = path_of_set(self.loader.dataset.store());
            Error::new(path, format_args!("not enough memory for a batch of {}", counted(images, "image")))
                .hint("choose a smaller batch size or fewer batches ahead (prefetch)")
        })
    }

    fn wake_consumer(&self, ring: &mut Ring) {
        if std::mem::take(&mut ring.consumer_waiting) {
            self.batch_done.notify_one();
        }
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// Fewer threads than asked for are no silent compromise.
    pub(crate) fn start_workers(self: &Arc<Self>) -> Result<()> {
        let workers = self.loader.plan.read_ahead.workers;
        (0..workers).try_for_each(|worker| {
            self.start_worker(worker).map_err(|error| {
                let cause = format_args!("cannot start worker thread {worker} of {workers}: {error}");
                Error::new(path_of_set(self.loader.dataset.store()), cause).hint("choose fewer workers")
            })
        })
    }

    fn start_worker(self: &Arc<Self>, worker: usize) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        let builder = Builder::new().name(format!("wellread-{worker}"));
        let thread = Thread::start(builder, move || {
            place::until(&shared.stop, || shared.run_worker());
            wellread_trace::release_lane();
        })?;
        lock(&self.workers).push(thread);
        Ok(())
    }

    /// Waits until all workers have ended, after [`Self::stop`].
    pub(crate) fn join_workers(&self) {
        let workers = std::mem::take(&mut *lock(&self.workers));
        workers.into_iter().for_each(Thread::join);
    }

    /// The loop of a worker: claims and reads until nothing is left.
    fn run_worker(self: &Arc<Self>) {
        let mut context = self.loader.take_context();
        while let Some(claim) = self.claim() {
            self.read_claim(&mut context, claim);
        }
        self.loader.give_context(context);
    }

    /// A batch's number in its epoch, for traces.
    pub(crate) fn number_of(&self, batch: usize) -> u64 {
        self.rank_batches.number(batch) as u64
    }

    /// Reads what was claimed.
    fn read_claim(&self, context: &mut ItemContext, claim: Claim) {
        let arrays = &self.loader.plan.layout;
        self.wait_until_asked(claim.more.last().unwrap_or(&claim.first).batch);
        if self.ahead.is_some() && self.is_stopped() {
            for part in std::iter::once(&claim.first).chain(&claim.more) {
                self.finish(part, Err(self.cancelled()));
            }
            return;
        }
        if !claim.more.is_empty() {
            let all = || std::iter::once(&claim.first).chain(&claim.more);
            let rows: usize = all().map(|part| part.positions.len()).sum();
            let _rows = span(Kind::Rows).with(self.number_of(claim.first.batch), rows as u64);
            // SAFETY: they were claimed by this thread and are not finished.
            let mut parts: Vec<Fill<'_>> = all().map(|part| unsafe { part.memory_to_fill(arrays) }).collect();
            if self.fill_joined(context, &mut parts).is_ok() {
                all().for_each(|part| self.finish(part, Ok(vec![])));
                return;
            }
            // Which batch failed shows when each is read by itself.
        }
        for mut part in std::iter::once(claim.first).chain(claim.more) {
            let mut reading = span(Kind::Rows);
            // SAFETY: it was claimed by this thread and is not finished.
            let planned = self.plan(context, &mut unsafe { part.memory_to_fill(arrays) });
            if let Ok(rows) = planned
                && rows < part.positions.len()
            {
                self.push_leftover(part.split_off(rows));
            }
            // SAFETY: as before; slices left to others are no longer in it.
            let fill = unsafe { part.memory_to_fill(arrays) };
            let result = self.fill(context, planned.map(drop), fill, part.first);
            reading.set(self.number_of(part.batch), part.positions.len() as u64);
            drop(reading);
            self.finish(&part, result);
        }
    }

    /// Waits for batch `next`, the one after those that were received before, and with a context reads meanwhile. It is
    /// `None` when it is not done by `until`.
    pub(crate) fn receive(
        &self,
        next: usize,
        until: Option<Instant>,
        mut context: Option<&mut ItemContext>,
    ) -> Option<Result<Filled>> {
        let mut ring = self.lock();
        // Done is what was claimed and has nothing pending.
        let is_done =
            |ring: &Ring| ring.next_batch > next && ring.slots[next % ring.slots.len()].pending == 0;
        while !is_done(&ring) {
            if self.is_stopped() {
                // Nobody reads it any more.
                return Some(Err(self.cancelled()));
            }
            let is_late = until.is_some_and(|until| until <= Instant::now());
            if let Some(context) = context.as_mut().filter(|_| !is_late) {
                if let Some(claim) = self.claim_now(&mut ring) {
                    drop(ring);
                    place::until(&self.stop, || self.read_claim(context, claim));
                    ring = self.lock();
                    continue;
                }
                if is_done(&ring) {
                    // There was no memory for it.
                    break;
                }
            }
            ring.consumer_waiting = true;
            let _wait = span(Kind::WaitBatch).with(self.number_of(next), 0);
            let Some(until) = until else {
                ring = self.batch_done.wait(ring).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                ring.consumer_waiting = false;
                return None;
            }
            (ring, _) = self.batch_done.wait_timeout(ring, left).unwrap_or_else(PoisonError::into_inner);
        }
        let index = next % ring.slots.len();
        let Slot { buffer, error, mut failed, .. } = std::mem::take(&mut ring.slots[index]);
        ring.delivered = next + 1;
        let idle = ring.idle_workers;
        drop(ring);
        // One slot became free: as many slices can be claimed as its batch has, or a whole run where reads are joined.
        for _ in 0..idle.min(self.slices(next)) {
            self.work_available.notify_one();
        }
        Some(match (buffer, error) {
            (Some(buffer), None) => {
                // Slices end in any order.
                failed.sort_unstable_by_key(|(i, _)| *i);
                Ok(Filled { buffer, failed })
            }
            (buffer, error) => {
                if let Some(buffer) = buffer {
                    self.loader.pool.give(buffer);
                }
                Err(error.expect("a batch without buffer has an error").1)
            }
        })
    }

    fn cancelled(&self) -> Error {
        Error::new(self.loader.dataset.store().path(), "reading was cancelled")
    }

    /// Whether nobody wants the batches any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends all work at the next block.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(ahead) = &self.ahead {
            ahead.stop();
        }
        // Under the lock, so that no thread is between its look at `stop` and its sleep.
        drop(self.lock());
        self.work_available.notify_all();
        self.batch_done.notify_all();
        self.loader.pool.wake();
    }

    /// Gives back the memory of batches that nobody received; after all threads have ended.
    pub(crate) fn release_buffers(&self) {
        for slot in &mut self.lock().slots {
            if let Some(buffer) = slot.buffer.take() {
                self.loader.pool.give(buffer);
            }
        }
    }
}
