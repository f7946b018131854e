//! Memory as the kernel counts it: resident now, and the peak between two moments.
//!
//! [`PeakGuard::start`] … [`PeakGuard::stop`] brackets the work. Two ways of looking:
//!
//! - [`Scope::Process`]: the kernel's own high-water mark of the resident set (`VmHWM`), set back at the start
//!   through `/proc/self/clear_refs`. It costs nothing and misses nothing, however short the peak. Where
//!   setting back is not permitted the mark counts from the start of the process. [`PeakSource`] says so, and
//!   whether the peak is nevertheless known to have happened inside the bracket.
//! - [`Scope::Tree`]: the process and all its descendants, for workers in processes of their own. The resident
//!   sets of a tree must not be added up, because shared pages would count once per process. The kernel's
//!   *proportional* set (PSS) divides them. It has no high-water mark, so a thread samples it, and a peak
//!   shorter than the sampling interval can be missed.
//!
//! Memory that earlier work freed stays resident in the heap's free lists. It would count as present at the
//! start, and work that takes it again would seem to need nothing. [`release_free_heap`] gives it back to the
//! kernel first.
//!
//! Both count pages of mapped files while they are mapped and touched. Pages in the page cache alone belong to
//! no process and are not counted. The resident counters of newer kernels are exact to some hundred KiB.

mod status;
mod tree;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sys;
use status::{Status, missing};
use tree::{TreePeak, sample_tree};

/// The present memory of the process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// Resident in all: the sum of the others.
    pub total: u64,
    /// Private memory: heap and stacks.
    pub anonymous: u64,
    /// Pages of mapped files.
    pub file: u64,
    /// Shared memory.
    pub shared: u64,
}

/// The processes to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This process: exact.
    Process,
    /// This process and all its descendants: proportional set, sampled at this interval.
    Tree(Duration),
}

/// Where a peak comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeakSource {
    /// The kernel's high-water mark, set back at the start: exact.
    HighWaterMark,
    /// The kernel's high-water mark since the process began, because it could not be set back.
    HighWaterMarkOfProcess {
        /// The mark rose inside the bracket, so the peak lies there and is exact. Otherwise it is an upper bound.
        exact: bool,
        /// Why it was not set back.
        reason: String,
    },
    /// Sampled proportional set of a process tree.
    TreeSamples {
        /// Number of samples.
        samples: u64,
        /// Most processes seen at once.
        processes: u64,
        /// Processes of which the proportional set was not readable and the resident set, which counts shared
        /// pages in full, was taken; over all samples.
        resident_instead: u64,
    },
    /// Not known.
    Unavailable {
        /// Why not.
        reason: String,
    },
}

/// The peak inside a bracket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakMemory {
    /// Peak in bytes; `None` when it is not known.
    pub bytes: Option<u64>,
    /// Bytes at the start of the bracket, by the same measure.
    pub at_start: Option<u64>,
    /// How it was found.
    pub source: PeakSource,
}

impl PeakMemory {
    /// Whether the peak is known to lie inside the bracket; otherwise it is an upper bound.
    pub fn is_exact(&self) -> bool {
        match &self.source {
            PeakSource::HighWaterMark => true,
            PeakSource::HighWaterMarkOfProcess { exact, .. } => *exact,
            PeakSource::TreeSamples { .. } | PeakSource::Unavailable { .. } => false,
        }
    }

    /// The rise of the peak above the start: the memory that the work itself needed, on top of the memory
    /// that was there.
    pub fn growth(&self) -> Option<u64> {
        Some(self.bytes?.saturating_sub(self.at_start?))
    }
}

/// A running watch for a peak. Dropped without [`PeakGuard::stop`], it ends quietly.
#[derive(Debug)]
pub struct PeakGuard {
    watch: PeakMonitor,
}

#[derive(Debug)]
enum PeakMonitor {
    Process { at_start: Option<u64>, mark: HighWaterReset, _turn: GuardRegistration },
    Tree { at_start: Option<u64>, stop: Sender<()>, sampler: JoinHandle<TreePeak> },
    Unavailable(String),
}

/// The result of setting the high-water mark back.
#[derive(Debug)]
enum HighWaterReset {
    Done,
    Refused { at_start: u64, reason: String },
}

/// The high-water mark is one per process: a second guard that set it back would erase the first one's peak.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct GuardRegistration {
    alone: bool,
}

impl GuardRegistration {
    fn take() -> Self {
        Self { alone: GUARDS.fetch_add(1, Ordering::SeqCst) == 0 }
    }
}

impl Drop for GuardRegistration {
    fn drop(&mut self) {
        GUARDS.fetch_sub(1, Ordering::SeqCst);
    }
}

impl PeakGuard {
    /// Begins to watch. Never fails: values that cannot be known are named at [`PeakGuard::stop`].
    pub fn start(scope: Scope) -> Self {
        let watch = match scope {
            Scope::Process => Self::watch_process(),
            Scope::Tree(interval) => Self::watch_tree(std::process::id(), interval),
        };
        Self { watch: watch.unwrap_or_else(|error| PeakMonitor::Unavailable(error.to_string())) }
    }

    /// Begins to watch another process and all its descendants, as [`Scope::Tree`] does this one.
    pub fn of_tree(root: u32, interval: Duration) -> Self {
        let watch = Self::watch_tree(root, interval);
        Self { watch: watch.unwrap_or_else(|error| PeakMonitor::Unavailable(error.to_string())) }
    }

    fn watch_process() -> Result<PeakMonitor> {
        let turn = GuardRegistration::take();
        let set_back = if turn.alone {
            sys::reset_high_water_mark().map_err(|error| format!("/proc/self/clear_refs: {error}"))
        } else {
            Err("another guard of this process was running".to_owned())
        };
        let status = Status::read("self")?;
        let mark = match set_back {
            Ok(()) => HighWaterReset::Done,
            Err(reason) => HighWaterReset::Refused { at_start: high_water_mark(&status)?, reason },
        };
        Ok(PeakMonitor::Process { at_start: status.bytes("VmRSS"), mark, _turn: turn })
    }

    fn watch_tree(root: u32, interval: Duration) -> Result<PeakMonitor> {
        let at_start = sample_tree(root)?.bytes;
        let (stop, stopped) = channel();
        let sampler = std::thread::Builder::new()
            .name("peak-memory".into())
            .spawn(move || {
                let mut peak = TreePeak::default();
                // A process that has just been started is looked at more often: it may end soon.
                let mut pause = interval / 16;
                loop {
                    if let Ok(sample) = sample_tree(root) {
                        peak.include(sample);
                    }
                    if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                        break;
                    }
                    pause = (pause * 2).min(interval);
                }
                // Once more at the end, so that memory still held then is never missed.
                if let Ok(sample) = sample_tree(root) {
                    peak.include(sample);
                }
                peak
            })
            .map_err(|error| Error::Unsupported {
                what: "memory of a process tree",
                reason: error.to_string(),
            })?;
        Ok(PeakMonitor::Tree { at_start: Some(at_start), stop, sampler })
    }

    /// Ends the watch and gives the peak.
    pub fn stop(self) -> PeakMemory {
        let unavailable = |reason: String| PeakMemory {
            bytes: None,
            at_start: None,
            source: PeakSource::Unavailable { reason },
        };
        match self.watch {
            PeakMonitor::Unavailable(reason) => unavailable(reason),
            PeakMonitor::Process { at_start, mark, _turn } => {
                match Status::read("self").and_then(|status| high_water_mark(&status)) {
                    Err(error) => unavailable(error.to_string()),
                    Ok(bytes) => {
                        let source = match mark {
                            HighWaterReset::Done => PeakSource::HighWaterMark,
                            HighWaterReset::Refused { at_start, reason } => {
                                PeakSource::HighWaterMarkOfProcess { exact: bytes > at_start, reason }
                            }
                        };
                        PeakMemory { bytes: Some(bytes), at_start, source }
                    }
                }
            }
            PeakMonitor::Tree { at_start, stop, sampler } => {
                // The sampler may already have ended; then nobody listens.
                let _ = stop.send(());
                match sampler.join() {
                    Err(_) => unavailable("the sampling thread panicked".into()),
                    Ok(peak) if peak.samples == 0 => {
                        unavailable("no process of the tree could be read".into())
                    }
                    Ok(peak) => PeakMemory {
                        bytes: Some(peak.bytes),
                        at_start,
                        source: PeakSource::TreeSamples {
                            samples: peak.samples,
                            processes: peak.processes,
                            resident_instead: peak.resident_instead,
                        },
                    },
                }
            }
        }
    }
}

/// The present memory of this process.
///
/// # Errors
/// On systems other than Linux.
pub fn resident() -> Result<Resident> {
    let status = Status::read("self")?;
    let field = |name| status.bytes(name).ok_or_else(|| missing(name));
    Ok(Resident {
        total: field("VmRSS")?,
        anonymous: field("RssAnon")?,
        file: field("RssFile")?,
        shared: field("RssShmem")?,
    })
}

/// Gives memory that is free in the C library's heap back to the kernel, and says whether that was possible
/// (glibc only). Call it before [`PeakGuard::start`] where the growth shall be that of the work alone. Do not
/// call it around timed work, because pages given back must be mapped again when they are next needed.
pub fn release_free_heap() -> bool {
    sys::trim_heap()
}

/// The present memory of a process and its descendants, in bytes, shared pages in part (proportional set).
///
/// # Errors
/// No such process; a system without `/proc`.
pub fn tree_bytes(root: u32) -> Result<u64> {
    Ok(sample_tree(root)?.bytes)
}

/// The high-water mark of the status file, or of `getrusage` where a kernel leaves it out.
fn high_water_mark(status: &Status) -> Result<u64> {
    status.bytes("VmHWM").map_or_else(
        || {
            sys::max_rss()
                .map_err(|error| Error::Unsupported { what: "peak memory", reason: error.to_string() })
        },
        Ok,
    )
}

#[cfg(all(test, target_os = "linux", not(feature = "portable")))]
mod tests;

#[cfg(all(test, any(not(target_os = "linux"), feature = "portable")))]
mod tests_of_other_systems {
    use super::*;

    #[test]
    fn what_only_linux_counts_is_unknown_and_the_reason_is_told() {
        let interval = Duration::from_millis(5);
        let guards = [
            PeakGuard::start(Scope::Process),
            PeakGuard::start(Scope::Tree(interval)),
            PeakGuard::of_tree(std::process::id(), interval),
        ];
        for peak in guards.map(PeakGuard::stop) {
            assert_eq!((peak.bytes, peak.at_start, peak.is_exact()), (None, None, false));
            let PeakSource::Unavailable { reason } = &peak.source else { panic!("{peak:?}") };
            assert!(reason.contains("only Linux"), "{reason}");
        }
        assert!(resident().is_err() && tree_bytes(std::process::id()).is_err() && !release_free_heap());
    }
}
