//! Memory of batches: buffers, and the pool that they come from and return to.
//!
//! Memory is aligned to 64 bytes (a cache line, an AVX-512 vector, the alignment that DLPack consumers hope
//! for). The operating system zeroes it once when it is first taken, and never again: each batch overwrites
//! all it shows.
//!
//! ```text
//!  BatchMemory or the system ──▶ BufferPool::take ──▶ BatchBuffer, filled in parts by threads ──▶ Batch
//!                                     ▲                                                            │ dropped
//!                                     └──────────────────────── give ◀─────────────────────────────┘
//! ```

mod aligned;
mod buffer;
mod kernel;
mod layout;

pub use aligned::BatchMemory;
pub(crate) use buffer::{BatchBuffer, Fill, PartMemory};
pub(crate) use layout::{ArrayLayout, RowMemory, lay_out};

use aligned::AlignedBytes;
use kernel::{ForkInheritance, MIN_LARGE_PAGE_BYTES};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Buffers of equal size that nobody uses at the moment.
pub(crate) struct BufferPool {
    state: Mutex<BufferPoolState>,
    /// A buffer has come back.
    returned: Condvar,
    /// Where memory comes from, if not from the system. It keeps what is free itself.
    source: Option<Arc<dyn BatchMemory>>,
    bytes: usize,
    /// Images.
    rows: usize,
    /// Buffers kept for reuse; more than these are freed.
    max_free: usize,
    /// The process it was made in. A batch that a forked child drops is freed there instead: another thread may have
    /// held the lock at the fork.
    process: u32,
}

#[derive(Default)]
struct BufferPoolState {
    free: Vec<BatchBuffer>,
    /// Buffers of the pool's own that are in use.
    in_use: usize,
    /// How often one has come back.
    returns: u64,
    /// With fewer in use than that, none is waited for: the last wait was futile.
    futile_wait_threshold: usize,
    /// Threads asleep on `returned`.
    waiting: usize,
}

impl BufferPool {
    /// A pool of buffers for `rows` images and `bytes` bytes in all.
    pub(crate) fn new(
        bytes: usize,
        rows: usize,
        max_free: usize,
        source: Option<Arc<dyn BatchMemory>>,
    ) -> Self {
        let state =
            Mutex::new(BufferPoolState { free: Vec::with_capacity(max_free), ..BufferPoolState::default() });
        Self {
            state,
            returned: Condvar::new(),
            source,
            bytes,
            rows,
            max_free,
            process: wellread_store::process::id(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BufferPoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next buffer would be a new one although `expected` are in use, and is worth waiting for one of those.
    pub(crate) fn should_wait_for_buffer(&self, expected: usize) -> bool {
        if self.bytes < MIN_LARGE_PAGE_BYTES || self.source.is_some() {
            return false;
        }
        let state = self.lock();
        state.free.is_empty() && state.in_use >= expected.max(state.futile_wait_threshold)
    }

    /// Waits for a buffer to come back, `longest` at most or until `stop`; returns the rest of that time. Another
    /// thread may have taken it. The loader waits less often for a program that keeps batches. It waits when twice as many are
    /// in use as the last time that none came back.
    pub(crate) fn wait_for_return(&self, longest: Duration, stop: &AtomicBool) -> Duration {
        let until = Instant::now() + longest;
        let mut state = self.lock();
        let before = state.returns;
        let none = |state: &mut BufferPoolState| {
            state.free.is_empty() && state.returns == before && !stop.load(Ordering::Relaxed)
        };
        state.waiting += 1;
        let waited = self.returned.wait_timeout_while(state, longest, none);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        if none(&mut state) {
            state.futile_wait_threshold = state.in_use * 2;
            return Duration::ZERO;
        }
        until.saturating_duration_since(Instant::now())
    }

    /// Wakes those who wait for a buffer, to see that they shall stop.
    pub(crate) fn wake(&self) {
        // Under the lock, so that no thread is between its look at `stop` and its sleep.
        if self.lock().waiting > 0 {
            self.returned.notify_all();
        }
    }

    /// A buffer, used before or new; `None` when memory is exhausted.
    pub(crate) fn take(&self) -> Option<BatchBuffer> {
        let used = {
            let mut state = self.lock();
            state.in_use += 1;
            state.free.pop()
        };
        let found = used.or_else(|| {
            let pixels = match &self.source {
                None => AlignedBytes::new(self.bytes)?,
                Some(source) => AlignedBytes::of(source, self.bytes)?,
            };
            Some(BatchBuffer { pixels, rows: vec![0; self.rows], occurrences: vec![0; self.rows] })
        });
        if found.is_none() {
            self.lock().in_use -= 1;
        }
        found
    }

    pub(crate) fn give(&self, buffer: BatchBuffer) {
        if self.process != wellread_store::process::id() || self.source.is_some() {
            return;
        }
        buffer.pixels.set_fork_inheritance(ForkInheritance::Exclude);
        let mut state = self.lock();
        state.in_use = state.in_use.saturating_sub(1);
        if state.free.len() < self.max_free {
            state.free.push(buffer);
            state.returns += 1;
            if state.waiting > 0 {
                self.returned.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests;
