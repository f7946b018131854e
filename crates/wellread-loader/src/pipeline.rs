//! The iterator over an epoch, and the threads behind it.
//!
//! Work is cut into slices: a whole batch when it is small, some rows of it when it is large, so that all
//! threads hurry for the batch that is needed first. Threads claim slices in order and write straight into
//! the batch's memory; a batch is delivered when its last slice is done, in order. A ring of `prefetch` slots
//! bounds how far they run ahead.
//!
//! ```text
//!   slots   [ batch 7: done ][ batch 8: 1 slice pending ][ batch 9: claimed next ][ free ]
//!              ▲ delivered next                             ▲ workers
//! ```
//!
//! One mutex guards the ring. It is taken twice per slice and once per batch, which is nothing beside
//! reading a slice; threads are woken only when they are asleep.

use crate::batch::{Batch, BatchBuffer};
use crate::item::{ItemContext, Job};
use crate::loader::Inner;
use crate::order::EpochOrder;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use wellread_store::{Error, Result};

/// The batches of one epoch, in order.
///
/// A batch with a row that cannot be read comes as an error at its place; the iteration can go on, with the
/// batch after it. Dropping the iterator stops its threads, in the middle of a read if need be, and waits
/// for them.
pub struct Batches {
    shared: Arc<Shared>,
    /// Empty without workers.
    threads: Vec<JoinHandle<()>>,
    /// Without workers, the caller's own context, and batches that were read together with an earlier one.
    context: Option<ItemContext>,
    ready: VecDeque<Result<BatchBuffer>>,
    /// The batch delivered next.
    next: usize,
    /// Why threads could not be started; delivered first.
    failed: Option<Error>,
}

/// One epoch, as the threads see it.
struct Shared {
    loader: Arc<Inner>,
    order: EpochOrder,
    epoch: u64,
    batches: usize,
    /// Ends reading at the next block.
    stop: AtomicBool,
    ring: Mutex<Ring>,
    /// There may be a slice to claim.
    work: Condvar,
    /// The batch that is waited for may be done.
    done: Condvar,
}

struct Ring {
    /// Batch `b` is in slot `b % slots.len()`.
    slots: Vec<Slot>,
    /// The slice to be claimed next.
    batch: usize,
    slice: usize,
    /// Batches delivered, so slots up to this plus their number may be filled.
    delivered: usize,
    /// Threads asleep on `work`.
    idle: usize,
    /// Whether the consumer is asleep on `done`.
    waiting: bool,
}

#[derive(Default)]
struct Slot {
    buffer: Option<BatchBuffer>,
    /// Slices not yet finished.
    pending: usize,
    /// The error of the lowest failing slice.
    error: Option<(usize, Error)>,
}

/// What one thread has claimed: a slice of a batch or, where reads are joined, a run of whole batches.
struct Claim {
    first: Part,
    /// The batches after the first.
    more: Vec<Part>,
}

/// A slice of a batch: its place in the batch's memory.
struct Part {
    batch: usize,
    slice: usize,
    /// Positions in the epoch.
    positions: std::ops::Range<usize>,
    pixels: *mut [u8],
    rows: *mut [usize],
}

/// A batch to be read together with others: its positions in the epoch and its memory.
type Joint<'a> = (std::ops::Range<usize>, &'a mut [usize], &'a mut [u8]);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        // No code that can panic runs under the lock; should it, the state is still the best there is.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slices(&self, batch: usize) -> usize {
        self.loader.positions(batch).len().div_ceil(self.loader.slice_rows)
    }

    /// Positions of a slice, and its range of rows in the batch.
    fn slice(&self, batch: usize, slice: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let positions = self.loader.positions(batch);
        let first = slice * self.loader.slice_rows;
        let last = (first + self.loader.slice_rows).min(positions.len());
        (positions.start + first..positions.start + last, first..last)
    }

    fn take_buffer(&self, batch: usize) -> Result<BatchBuffer> {
        self.loader.pool.take().ok_or_else(|| {
            let images = self.loader.positions(batch).len() * self.loader.crops;
            let path = self.loader.dataset.store().path();
            Error::new(path, format_args!("not enough memory for a batch of {images} images"))
                .hint("choose a smaller batch size or fewer batches ahead (prefetch)")
        })
    }

    /// Reads the rows at `positions`: the work itself, the same with and without threads. A panic of a
    /// reader becomes an error.
    fn fill(
        &self,
        context: &mut ItemContext,
        positions: std::ops::Range<usize>,
        rows: &mut [usize],
        pixels: &mut [u8],
    ) -> Result<()> {
        self.number(rows, positions);
        self.fetch(context, rows, &mut [pixels])
    }

    /// Reads several batches in one go.
    fn fill_joined(&self, context: &mut ItemContext, parts: &mut [Joint<'_>]) -> Result<()> {
        let mut all = vec![];
        for (positions, rows, _) in parts.iter_mut() {
            self.number(rows, positions.clone());
            all.extend_from_slice(rows);
        }
        let mut pixels: Vec<&mut [u8]> = parts.iter_mut().map(|(.., pixels)| &mut **pixels).collect();
        self.fetch(context, &all, &mut pixels)
    }

    /// The rows at `positions`.
    fn number(&self, rows: &mut [usize], positions: std::ops::Range<usize>) {
        for (row, position) in rows.iter_mut().zip(positions) {
            *row = self.order.row(&self.loader.order, position);
        }
    }

    fn fetch(&self, context: &mut ItemContext, rows: &[usize], pixels: &mut [&mut [u8]]) -> Result<()> {
        let Inner { dataset, recipe, reference, crops, seed, .. } = &*self.loader;
        let job = Job {
            dataset,
            recipe,
            reference: Some(reference),
            crops: *crops,
            seed: *seed,
            epoch: self.epoch,
            stop: Some(&self.stop),
        };
        catch_unwind(AssertUnwindSafe(|| context.fetch(&job, rows, pixels))).unwrap_or_else(|panic| {
            // What the panic left in the buffers is of no use to anyone.
            *context = ItemContext::default();
            let rows = match rows {
                [row] => format!("row {row}"),
                rows => format!("{} rows from row {} on", rows.len(), rows[0]),
            };
            Err(Error::new(
                dataset.store().path(),
                format_args!("panicked while reading {rows}: {}", message(&*panic)),
            )
            .hint("this is a defect of wellread; please report it"))
        })
    }

    /// The next slice or run of batches to work on; sleeps while the ring is full. `None` when there is nothing left.
    fn claim(&self) -> Option<Claim> {
        let mut ring = self.lock();
        loop {
            if self.stop.load(Ordering::Relaxed) || ring.batch == self.batches {
                return None;
            }
            let wanted = self.loader.joined.min(self.batches - ring.batch);
            if ring.slots.len() - (ring.batch - ring.delivered) >= wanted {
                let Some(first) = self.part(&mut ring) else { continue };
                let mut more = vec![];
                for _ in 1..wanted {
                    more.extend(self.part(&mut ring));
                }
                return Some(Claim { first, more });
            }
            ring.idle += 1;
            ring = self.work.wait(ring).unwrap_or_else(PoisonError::into_inner);
            ring.idle -= 1;
        }
    }

    /// Claims the next slice, for which there is room. `None` where there is no memory: the batch is an error then.
    fn part(&self, ring: &mut Ring) -> Option<Part> {
        let (batch, slice) = (ring.batch, ring.slice);
        let slices = self.slices(batch);
        let index = batch % ring.slots.len();
        if slice == 0 {
            match self.take_buffer(batch) {
                Ok(buffer) => {
                    ring.slots[index] = Slot { buffer: Some(buffer), pending: slices, error: None };
                }
                Err(error) => {
                    ring.slots[index] = Slot { buffer: None, pending: 0, error: Some((0, error)) };
                    ring.batch += 1;
                    self.wake_consumer(ring);
                    return None;
                }
            }
        }
        (ring.batch, ring.slice) = if slice + 1 == slices { (batch + 1, 0) } else { (batch, slice + 1) };
        let (positions, within) = self.slice(batch, slice);
        let each = self.loader.row_bytes();
        let buffer = ring.slots[index].buffer.as_mut().expect("made with the batch's first slice");
        let (pixels, rows) = buffer.part(within, each);
        Some(Part { batch, slice, positions, pixels, rows })
    }

    fn finish(&self, part: &Part, result: Result<()>) {
        let mut ring = self.lock();
        let index = part.batch % ring.slots.len();
        let slot = &mut ring.slots[index];
        if let Err(error) = result
            && slot.error.as_ref().is_none_or(|(slice, _)| part.slice < *slice)
        {
            slot.error = Some((part.slice, error));
        }
        slot.pending -= 1;
        if slot.pending == 0 && part.batch == ring.delivered {
            self.wake_consumer(&mut ring);
        }
    }

    fn wake_consumer(&self, ring: &mut Ring) {
        if std::mem::take(&mut ring.waiting) {
            self.done.notify_one();
        }
    }

    /// What each thread does.
    fn work(&self) {
        let mut context = self.loader.take_context();
        while let Some(claim) = self.claim() {
            if !claim.more.is_empty() {
                let all = || std::iter::once(&claim.first).chain(&claim.more);
                // SAFETY: as below.
                let memory = |p: &Part| unsafe { (p.positions.clone(), &mut *p.rows, &mut *p.pixels) };
                let mut parts: Vec<Joint<'_>> = all().map(memory).collect();
                if self.fill_joined(&mut context, &mut parts).is_ok() {
                    all().for_each(|part| self.finish(part, Ok(())));
                    continue;
                }
                // Which batch failed shows when each is read by itself.
            }
            for part in std::iter::once(&claim.first).chain(&claim.more) {
                // SAFETY: the buffer stays in its slot until all its slices are finished, and the memory it
                // points to does not move; slices of a batch are disjoint, and each is claimed once.
                let (pixels, rows) = unsafe { (&mut *part.pixels, &mut *part.rows) };
                let result = self.fill(&mut context, part.positions.clone(), rows, pixels);
                self.finish(part, result);
            }
        }
        self.loader.give_context(context);
    }
}

impl Batches {
    pub(crate) fn new(loader: Arc<Inner>, epoch: u64, first: usize) -> Self {
        let batches = loader.batches();
        let first = first.min(batches);
        let order = EpochOrder::new(&loader.order, loader.seed, epoch);
        let workers = loader.workers;
        let slots = if workers == 0 { 0 } else { loader.prefetch.min(batches) };
        let ring = Ring {
            slots: std::iter::repeat_with(Slot::default).take(slots).collect(),
            batch: first,
            slice: 0,
            delivered: first,
            idle: 0,
            waiting: false,
        };
        let shared = Arc::new(Shared {
            loader,
            order,
            epoch,
            batches,
            stop: AtomicBool::new(false),
            ring: Mutex::new(ring),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let mut this = Self {
            shared,
            threads: vec![],
            context: None,
            ready: VecDeque::new(),
            next: first,
            failed: None,
        };
        if workers == 0 {
            this.context = Some(this.shared.loader.take_context());
            return this;
        }
        for i in 0..workers {
            let shared = this.shared.clone();
            let thread = std::thread::Builder::new().name(format!("wellread-{i}"));
            match thread.spawn(move || shared.work()) {
                Ok(handle) => this.threads.push(handle),
                Err(error) => {
                    let path = this.shared.loader.dataset.store().path();
                    this.failed = Some(
                        Error::new(
                            path,
                            format_args!("cannot start worker thread {i} of {workers}: {error}"),
                        )
                        .hint("choose fewer workers"),
                    );
                    break;
                }
            }
        }
        this
    }

    /// The epoch that is run.
    pub fn epoch(&self) -> u64 {
        self.shared.epoch
    }

    /// Index of the batch delivered next; [`crate::Loader::iter_at`] goes on from there.
    pub fn position(&self) -> usize {
        self.next
    }

    /// Reads the next batch in this thread, and those that belong to the same read.
    fn read(&mut self) -> Result<BatchBuffer> {
        if let Some(ready) = self.ready.pop_front() {
            return ready;
        }
        let run = self.next..(self.next + self.shared.loader.joined).min(self.shared.batches);
        if run.len() > 1
            && let Some(buffers) = self.read_joined(run)
        {
            self.ready.extend(buffers.into_iter().map(Ok));
            return self.ready.pop_front().expect("more than one batch was read");
        }
        self.read_one()
    }

    /// Reads a run of batches in one go. `None` where that fails: which batch is at fault shows when each is read by
    /// itself.
    fn read_joined(&mut self, run: std::ops::Range<usize>) -> Option<Vec<BatchBuffer>> {
        let Self { shared, context, .. } = self;
        let context = context.as_mut().expect("kept while there are no workers");
        let pool = &shared.loader.pool;
        let mut buffers = Vec::with_capacity(run.len());
        for batch in run.clone() {
            buffers.extend(shared.take_buffer(batch));
        }
        let each = shared.loader.row_bytes();
        let complete = buffers.len() == run.len();
        let parts = buffers.iter_mut().zip(run).map(|(buffer, batch)| {
            let positions = shared.loader.positions(batch);
            let images = positions.len();
            let BatchBuffer { pixels, rows, .. } = buffer;
            (positions, &mut rows[..images], &mut pixels.as_mut_slice()[..images * each])
        });
        let mut parts: Vec<Joint<'_>> = parts.collect();
        if complete && shared.fill_joined(context, &mut parts).is_ok() {
            return Some(buffers);
        }
        for buffer in buffers {
            pool.give(buffer);
        }
        None
    }

    fn read_one(&mut self) -> Result<BatchBuffer> {
        let Self { shared, context, next, .. } = self;
        let context = context.as_mut().expect("kept while there are no workers");
        let mut buffer = shared.take_buffer(*next)?;
        let each = shared.loader.row_bytes();
        for slice in 0..shared.slices(*next) {
            let (positions, within) = shared.slice(*next, slice);
            let pixels = &mut buffer.pixels.as_mut_slice()[within.start * each..within.end * each];
            if let Err(error) = shared.fill(context, positions, &mut buffer.rows[within], pixels) {
                shared.loader.pool.give(buffer);
                return Err(error);
            }
        }
        Ok(buffer)
    }

    /// Waits for the next batch.
    fn receive(&self) -> Result<BatchBuffer> {
        let shared = &*self.shared;
        let mut ring = shared.lock();
        // Done is what was claimed and has nothing pending.
        while !(ring.batch > self.next && ring.slots[self.next % ring.slots.len()].pending == 0) {
            ring.waiting = true;
            ring = shared.done.wait(ring).unwrap_or_else(PoisonError::into_inner);
        }
        let index = self.next % ring.slots.len();
        let Slot { buffer, error, .. } = std::mem::take(&mut ring.slots[index]);
        ring.delivered = self.next + 1;
        let idle = ring.idle;
        drop(ring);
        // One slot became free: as many slices can be claimed as its batch has, or a whole run where reads are joined.
        for _ in 0..idle.min(shared.slices(self.next)) {
            shared.work.notify_one();
        }
        match (buffer, error) {
            (Some(buffer), None) => Ok(buffer),
            (buffer, error) => {
                if let Some(buffer) = buffer {
                    shared.loader.pool.give(buffer);
                }
                Err(error.expect("a batch without buffer has an error").1)
            }
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            // Fewer threads than asked for: no silent compromise.
            self.next = self.shared.batches;
            return Some(Err(error));
        }
        if self.next == self.shared.batches {
            return None;
        }
        let result = if self.threads.is_empty() { self.read() } else { self.receive() };
        let index = self.next;
        self.next += 1;
        let loader = &self.shared.loader;
        Some(result.map(|buffer| {
            let images = [loader.positions(index).len(), loader.crops];
            let each = (loader.reference.output, loader.dtype());
            Batch::new(buffer, loader.pool.clone(), images, each, index, self.shared.epoch)
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.shared.batches - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Batches {}

impl std::iter::FusedIterator for Batches {}

impl Drop for Batches {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Under the lock, so that no thread is between its look at `stop` and its sleep.
        drop(self.shared.lock());
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A thread cannot panic outside of `fill`, which catches it.
            let _ = thread.join();
        }
        if let Some(context) = self.context.take() {
            self.shared.loader.give_context(context);
        }
        // Batches that nobody asked for: their memory serves the next epoch.
        for buffer in self.ready.drain(..).flatten() {
            self.shared.loader.pool.give(buffer);
        }
        for slot in &mut self.shared.lock().slots {
            if let Some(buffer) = slot.buffer.take() {
                self.shared.loader.pool.give(buffer);
            }
        }
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Batches(epoch {}, batch {} of {}, {} threads)",
            self.shared.epoch,
            self.next,
            self.shared.batches,
            self.threads.len()
        )
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
