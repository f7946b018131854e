//! The way to places behind a network: the requests of this process over it, and the probe that measures it.
//!
//! ```text
//!  a place ─ count_request, count_received, count_waited ─▶ LinkUse: sums of the process, for loaders and benchmarks
//!          └ note_range ─▶ Recording: the ranges that were asked for, while somebody records
//!  Place::link ─▶ Link: who is at the other end; bare requests of such ranges, timed
//! ```
//!
//! Counts are of the process, since requests are made in threads that serve all loaders. Only differences mean anything.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static REQUESTS: AtomicU64 = AtomicU64::new(0);
static RECEIVED: AtomicU64 = AtomicU64::new(0);
static WAITED_NS: AtomicU64 = AtomicU64::new(0);
static IS_RECORDING: AtomicBool = AtomicBool::new(false);
static RECORDED: Mutex<Vec<FileRange>> = Mutex::new(Vec::new());
static RECORDER: Mutex<()> = Mutex::new(());

/// The requests of a process over networks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkUse {
    /// Requests of any kind, each attempt by itself: what is paid for.
    pub requests: u64,
    /// Bytes of bodies that came back, of failed attempts as well.
    pub bytes: u64,
    /// Seconds that threads waited for answers, added up over threads.
    pub waited_s: f64,
}

impl LinkUse {
    /// The requests of this process so far.
    pub fn now() -> Self {
        Self {
            requests: REQUESTS.load(Ordering::Relaxed),
            bytes: RECEIVED.load(Ordering::Relaxed),
            waited_s: WAITED_NS.load(Ordering::Relaxed) as f64 * 1e-9,
        }
    }

    /// The requests since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            bytes: self.bytes.saturating_sub(before.bytes),
            waited_s: (self.waited_s - before.waited_s).max(0.0),
        }
    }
}

/// Notes that a request goes out.
pub fn count_request() {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
}

/// Notes that bytes of an answer's body came.
pub fn count_received(bytes: usize) {
    RECEIVED.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Notes that a thread stood still for answers.
pub fn count_waited(time: Duration) {
    WAITED_NS.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Some bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The file.
    pub path: PathBuf,
    /// Which bytes of it.
    pub range: Range<u64>,
}

/// Notes the ranges that are about to be asked for of a file, where somebody records; costs a look at a flag where nobody does.
pub fn note_ranges(path: impl AsRef<Path>, ranges: &[Range<u64>]) {
    if IS_RECORDING.load(Ordering::Relaxed) {
        let path = path.as_ref();
        let noted = ranges.iter().map(|range| FileRange { path: path.to_owned(), range: range.clone() });
        recorded().extend(noted);
    }
}

fn recorded() -> MutexGuard<'static, Vec<FileRange>> {
    RECORDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records which ranges the process asks for, until it is taken. One at a time: another waits.
#[derive(Debug)]
pub struct Recording(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Recording {
    /// Begins.
    pub fn start() -> Self {
        let only = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
        recorded().clear();
        IS_RECORDING.store(true, Ordering::Relaxed);
        Self(only)
    }

    /// Ends, and gives what was asked for in the order of asking.
    pub fn take(self) -> Vec<FileRange> {
        IS_RECORDING.store(false, Ordering::Relaxed);
        std::mem::take(&mut *recorded())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        IS_RECORDING.store(false, Ordering::Relaxed);
        recorded().clear();
    }
}

/// The server at the other end of a link. No secret is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkAbout {
    /// Where requests go, such as `https://s3.eu-west-1.amazonaws.com`.
    pub endpoint: String,
    /// The region, where there are any and it is known.
    pub region: Option<String>,
    /// Where the credentials are from, in words: never what they are.
    pub credentials: String,
    /// Requests that this process makes at once at most.
    pub in_flight: usize,
}

/// The way to a place behind a network.
pub trait Link: Send + Sync {
    /// The server at the other end of the way to `path`.
    ///
    /// # Errors
    /// Settings that say nothing of use.
    fn about(&self, path: &Path) -> io::Result<LinkAbout>;

    /// Asks for all `ranges`, `at_once` of them at a time whatever the process's own bound is, and throws away what comes: how long
    /// it took. A request that fails in passing is made again.
    ///
    /// # Errors
    /// The error of a request that cannot succeed.
    fn fetch(&self, ranges: &[FileRange], at_once: usize) -> io::Result<Duration>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_told_as_a_difference() {
        let before = LinkUse::now();
        count_request();
        count_received(300);
        count_waited(Duration::from_millis(250));
        let used = LinkUse::now().since(before);
        assert!(used.requests >= 1 && used.bytes >= 300 && used.waited_s > 0.249, "{used:?}");
        assert_eq!(before.since(LinkUse::now()), LinkUse::default());
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn ranges_are_recorded_while_somebody_does() {
        let of = |start: u64| FileRange { path: "s3://b/recorded".into(), range: start..start + 1 };
        note_ranges("s3://b/recorded", &[0..1]);
        let recording = Recording::start();
        note_ranges("s3://b/recorded", &[1..2, 5..6]);
        assert_eq!(recording.take(), [of(1), of(5)]);
        drop(Recording::start());
        assert!(Recording::start().take().is_empty());
    }
}
