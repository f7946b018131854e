//! Memory of batches: buffers, and the pool that they come from and return to.
//!
//! Memory is aligned to 64 bytes (a cache line, an AVX-512 vector, what DLPack consumers hope for), zeroed
//! once by the operating system when it is first taken and never again: each batch overwrites all it shows.
//!
//! ```text
//!  BatchMemory or the system ──▶ BufferPool::take ──▶ BatchBuffer, filled in parts by threads ──▶ Batch
//!                                     ▲                                                            │ dropped
//!                                     └──────────────────────── give ◀─────────────────────────────┘
//! ```

mod aligned;
mod buffer;

pub use aligned::BatchMemory;
pub(crate) use buffer::{BatchBuffer, Fill, PartMemory};

use aligned::{AlignedBytes, Forks, LARGE};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Buffers of equal size that nobody uses at the moment.
pub(crate) struct BufferPool {
    stock: Mutex<Stock>,
    /// A buffer has come back.
    returned: Condvar,
    /// Where memory comes from, if not from the system. It keeps what is free itself.
    source: Option<Arc<dyn BatchMemory>>,
    bytes: usize,
    /// Images.
    rows: usize,
    /// Buffers kept for reuse; more than these are freed.
    keep: usize,
    /// The process it was made in. A batch that a forked child drops is freed there instead: another thread may have
    /// held the lock at the fork.
    process: u32,
}

#[derive(Default)]
struct Stock {
    free: Vec<BatchBuffer>,
    /// Buffers of the pool's own that are in use.
    in_use: usize,
    /// How often one has come back.
    returns: u64,
    /// So many in use are no reason to wait for one of them: it was waited for in vain.
    in_vain: usize,
    /// Threads asleep on `returned`.
    waiting: usize,
}

impl BufferPool {
    /// A pool of buffers for `rows` images and `bytes` bytes in all.
    pub(crate) fn new(bytes: usize, rows: usize, keep: usize, source: Option<Arc<dyn BatchMemory>>) -> Self {
        let stock = Mutex::new(Stock { free: Vec::with_capacity(keep), ..Stock::default() });
        Self {
            stock,
            returned: Condvar::new(),
            source,
            bytes,
            rows,
            keep,
            process: wellread_store::process::id(),
        }
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next buffer would be a new one although `enough` are in use, and is worth waiting for one of those.
    pub(crate) fn is_short(&self, enough: usize) -> bool {
        if self.bytes < LARGE || self.source.is_some() {
            return false;
        }
        let stock = self.stock();
        stock.free.is_empty() && stock.in_use >= enough.max(stock.in_vain)
    }

    /// Waits for a buffer to come back, `longest` at most or until `stop`; what is left of that time. Another thread may
    /// have taken it. Who keeps batches is waited for ever more rarely: when twice as many are in use as the last time
    /// that none came back.
    pub(crate) fn wait_for_return(&self, longest: Duration, stop: &AtomicBool) -> Duration {
        let until = Instant::now() + longest;
        let mut stock = self.stock();
        let before = stock.returns;
        let none = |stock: &mut Stock| {
            stock.free.is_empty() && stock.returns == before && !stop.load(Ordering::Relaxed)
        };
        stock.waiting += 1;
        let waited = self.returned.wait_timeout_while(stock, longest, none);
        let (mut stock, _) = waited.unwrap_or_else(PoisonError::into_inner);
        stock.waiting -= 1;
        if none(&mut stock) {
            stock.in_vain = stock.in_use * 2;
            return Duration::ZERO;
        }
        until.saturating_duration_since(Instant::now())
    }

    /// Wakes those who wait for a buffer, to see that they shall stop.
    pub(crate) fn wake(&self) {
        // Under the lock, so that no thread is between its look at `stop` and its sleep.
        if self.stock().waiting > 0 {
            self.returned.notify_all();
        }
    }

    /// A buffer, used before or new; `None` when memory is exhausted.
    pub(crate) fn take(&self) -> Option<BatchBuffer> {
        let used = {
            let mut stock = self.stock();
            stock.in_use += 1;
            stock.free.pop()
        };
        let found = used.or_else(|| {
            let pixels = match &self.source {
                None => AlignedBytes::new(self.bytes)?,
                Some(source) => AlignedBytes::of(source, self.bytes)?,
            };
            Some(BatchBuffer { pixels, rows: vec![0; self.rows], occurrences: vec![0; self.rows] })
        });
        if found.is_none() {
            self.stock().in_use -= 1;
        }
        found
    }

    pub(crate) fn give(&self, buffer: BatchBuffer) {
        if self.process != wellread_store::process::id() || self.source.is_some() {
            return;
        }
        buffer.pixels.set(Forks::Lack);
        let mut stock = self.stock();
        stock.in_use = stock.in_use.saturating_sub(1);
        if stock.free.len() < self.keep {
            stock.free.push(buffer);
            stock.returns += 1;
            if stock.waiting > 0 {
                self.returned.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests;
