//! Which images are being read to be kept, so that no two threads read the same one.
//!
//! ```text
//!  missing rows ─┬─ that nobody reads ─ claim ─▶ some of them ─ read ─▶ kept, released
//!                └─ that others read ── wait ──▶ kept; or missing still, where there was no room or an error
//! ```
//!
//! A thread that waits has read its own claims by then, and so no thread waits for one that waits.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wellread_store::{place, process};
use wellread_trace::{Kind, span};

/// How often a thread that waits looks whether it is to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The rows that threads are reading.
pub(super) struct InFlightReads {
    rows: Mutex<HashSet<usize>>,
    released: Condvar,
    /// The process whose threads these are.
    process: u32,
}

/// Rows that one thread reads, until this is dropped.
pub(super) struct Claim<'a> {
    in_flight: &'a InFlightReads,
    rows: Vec<usize>,
}

impl Default for InFlightReads {
    fn default() -> Self {
        Self { rows: Mutex::default(), released: Condvar::new(), process: process::id() }
    }
}

impl InFlightReads {
    /// Whether it is of use: the threads of a process that was forked are not there, and nobody releases their claims.
    pub fn is_of_this_process(&self) -> bool {
        self.process == process::id()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<usize>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes rows of `wanted` that nobody reads, in their order. It takes the first of them, and more as long as they have no more bytes
    /// than `most` together. Each is given with its bytes.
    pub fn claim(&self, wanted: &[(usize, usize)], most: usize) -> Claim<'_> {
        let mut taken = self.lock();
        let (mut rows, mut sum) = (vec![], 0usize);
        for &(row, bytes) in wanted {
            if taken.contains(&row) {
                continue;
            }
            sum = sum.saturating_add(bytes);
            if sum > most && !rows.is_empty() {
                break;
            }
            taken.insert(row);
            rows.push(row);
        }
        Claim { in_flight: self, rows }
    }

    /// Waits for those who read these rows now, unless nobody needs this thread's result any more ([`place::stop`]). They may
    /// wait for a network that this one has given up.
    pub fn wait(&self, rows: &[(usize, usize)]) {
        let mut taken = self.lock();
        if !rows.iter().any(|(row, _)| taken.contains(row)) {
            return;
        }
        let _wait = span(Kind::WaitImage);
        let stop = place::stop();
        let is_stopped = || stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        for (row, _) in rows {
            while taken.contains(row) && !is_stopped() {
                let waited = self.released.wait_timeout(taken, POLL_INTERVAL);
                (taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Claim<'_> {
    /// The rows.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let mut taken = self.in_flight.lock();
        for row in &self.rows {
            taken.remove(row);
        }
        drop(taken);
        self.in_flight.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::{ends, is_seen};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn rows_are_claimed_once_and_waited_for() {
        let in_flight = InFlightReads::default();
        let of = |rows: &[usize]| rows.iter().map(|&row| (row, 10)).collect::<Vec<_>>();
        let first = in_flight.claim(&of(&[5, 3, 5, 8]), 20);
        assert_eq!(first.rows(), [5, 3]);
        // A row with more bytes is taken by itself.
        let second = in_flight.claim(&of(&[3, 8, 9]), 1);
        assert_eq!(second.rows(), [8]);
        assert!(in_flight.claim(&of(&[3, 5, 8]), 100).rows().is_empty());
        drop(second);
        in_flight.wait(&of(&[8, 9]));
        let is_kept = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                in_flight.wait(&of(&[9, 3, 5]));
                is_kept.load(Ordering::Acquire)
            });
            is_kept.store(true, Ordering::Release);
            drop(first);
            assert!(waiting.join().unwrap());
        });
        assert_eq!(in_flight.claim(&of(&[3, 5, 8]), 30).rows(), [3, 5, 8]);
    }

    #[test]
    fn who_is_to_stop_waits_for_nobody() {
        let (in_flight, rows) = (InFlightReads::default(), [(5, 10), (6, 10)]);
        let claim = in_flight.claim(&rows, 20);
        let stop = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| place::until(&stop, || in_flight.wait(&rows)));
            stop.store(true, Ordering::Relaxed);
            let has_ended = ends(&waiting);
            drop(claim);
            assert!(has_ended, "it waits for the other");
        });
    }

    #[test]
    fn a_wait_for_images_is_seen() {
        let (in_flight, rows) = (InFlightReads::default(), [(5, 10), (6, 10)]);
        let seen = is_seen("wait for image", || {
            std::thread::scope(|scope| {
                let claim = in_flight.claim(&rows, 20);
                let waiting = scope.spawn(|| in_flight.wait(&rows));
                std::thread::sleep(Duration::from_millis(5));
                drop(claim);
                waiting.join().unwrap();
            });
        });
        assert!(seen);
    }
}
