//! Memory that threads share while they read.

use super::memory_use::{Bytes, MemoryUse};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use wellread_store::{Error, Result};
use wellread_trace::{Kind, span};

/// How often a thread that waits looks whether it is to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The memory that threads may use for reading, while they read.
pub(crate) struct WorkingMemory {
    /// Each thread's share, which it takes without asking: for images, and for their targets, whose buffers
    /// stay beside each other.
    shares: [usize; 2],
    /// The memory of all together, for images that need more.
    shared_bytes: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

/// A part of what threads share; given back when dropped.
pub(crate) struct ExtraMemory<'a> {
    working: &'a WorkingMemory,
    bytes: usize,
}

impl WorkingMemory {
    pub(crate) fn new(memory: &MemoryUse) -> Self {
        let MemoryUse { bytes_per_thread, target_bytes_per_thread, shared_bytes, .. } = *memory;
        let shares = [bytes_per_thread - target_bytes_per_thread, target_bytes_per_thread];
        Self { shares, shared_bytes, free: Mutex::new(shared_bytes), freed: Condvar::new() }
    }

    /// Takes what a read needs beyond the thread's share; waits for it if need be, which a trace shows. A thread holds one at a time, so none
    /// waits for another that waits.
    ///
    /// # Errors
    /// More than there is; and when the iteration ends meanwhile.
    pub(crate) fn take(
        &self,
        path: impl Fn() -> PathBuf,
        stop: Option<&AtomicBool>,
        need: usize,
        is_for_targets: bool,
    ) -> Result<Option<ExtraMemory<'_>>> {
        let share = self.shares[usize::from(is_for_targets)];
        let Some(bytes) = need.checked_sub(share).filter(|&bytes| bytes > 0) else { return Ok(None) };
        if bytes > self.shared_bytes {
            let there = share + self.shared_bytes;
            return Err(Error::new(
                path(),
                format_args!(
                    "reading the image takes up to {} of memory, and there are {} for it",
                    Bytes(need),
                    Bytes(there)
                ),
            )
            .hint("give the loader more memory, or choose a smaller batch size or fewer workers"));
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if *free < bytes {
            let _wait = span(Kind::WaitMemory);
            while *free < bytes {
                if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                    return Err(Error::new(path(), "reading was cancelled"));
                }
                // Another iteration, which goes on, may have the memory.
                let waited = self.freed.wait_timeout(free, POLL_INTERVAL);
                (free, _) = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
        *free -= bytes;
        Ok(Some(ExtraMemory { working: self, bytes }))
    }
}

impl Drop for ExtraMemory<'_> {
    fn drop(&mut self) {
        *self.working.free.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
        self.working.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::{ends, is_seen};

    fn set() -> PathBuf {
        PathBuf::from("set")
    }

    #[test]
    fn a_wait_for_memory_is_seen() {
        let working = WorkingMemory {
            shares: [10, 5],
            shared_bytes: 100,
            free: Mutex::new(100),
            freed: Condvar::new(),
        };
        let take = |need| working.take(set, None, need, false).map(|extra| extra.is_some());
        let seen = is_seen("wait for memory", || {
            std::thread::scope(|scope| {
                let held = working.take(set, None, 110, false).unwrap();
                let waiting = scope.spawn(|| take(60));
                std::thread::sleep(Duration::from_millis(5));
                drop(held);
                assert!(waiting.join().unwrap().unwrap());
            });
        });
        assert!(seen);
        assert_eq!((take(10).unwrap(), take(11).unwrap()), (false, true));
        let for_targets = |need| working.take(set, None, need, true).unwrap().is_some();
        assert_eq!((for_targets(5), for_targets(6)), (false, true));
        assert!(take(111).unwrap_err().to_string().contains("memory"));
    }

    #[test]
    fn who_is_to_stop_waits_for_no_memory() {
        let working = WorkingMemory {
            shares: [10, 5],
            shared_bytes: 100,
            free: Mutex::new(100),
            freed: Condvar::new(),
        };
        let held = working.take(set, None, 110, false).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let take = || working.take(set, Some(&stop), 60, false).map(drop);
            let waiting = scope.spawn(take);
            // Time to begin to wait.
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
            let has_ended = ends(&waiting);
            drop(held);
            assert!(has_ended, "it waits for the other");
            assert!(waiting.join().unwrap().unwrap_err().to_string().contains("cancelled"));
        });
    }
}
