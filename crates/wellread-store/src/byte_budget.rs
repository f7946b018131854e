//! Bytes of pixels that may wait at once: who brings more waits until others are done.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wellread_trace::{Kind, span};

/// Counts bytes that wait. One image may always, however large it is.
pub(crate) struct ByteBudget {
    limit: u64,
    used: Mutex<u64>,
    freed: Condvar,
}

impl ByteBudget {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { limit, used: Mutex::new(0), freed: Condvar::new() }
    }

    fn used(&self) -> MutexGuard<'_, u64> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts so many bytes more, once there is room for them.
    pub(crate) fn take(&self, bytes: u64) {
        let mut used = self.used();
        while *used > 0 && used.saturating_add(bytes) > self.limit {
            let _wait = span(Kind::WaitRoom);
            used = self.freed.wait(used).unwrap_or_else(PoisonError::into_inner);
        }
        *used += bytes;
    }

    /// Counts so many bytes less.
    pub(crate) fn give(&self, bytes: u64) {
        *self.used() -= bytes;
        self.freed.notify_one();
    }

    /// Forgets what waits: nobody is left who would give it back.
    pub(crate) fn clear(&self) {
        *self.used() = 0;
        self.freed.notify_all();
    }
}
