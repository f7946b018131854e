//! The limits of this machine: the bandwidths beside which results are shown.
//!
//! "40,000 images a second" says little; "38 % of what this machine can copy" says how much is left to gain.
//! [`measure_copy`] copies between two large buffers whose pages exist already. Each figure is the median of
//! repeated passes with its range, and the function keeps to a time budget.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::clock::Stopwatch;
use crate::samples::Samples;

/// A bandwidth in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// Median over passes.
    pub bytes_per_second: f64,
    /// Slowest pass.
    pub slowest: f64,
    /// Fastest pass.
    pub fastest: f64,
    /// Number of passes.
    pub passes: usize,
    /// Bytes of one pass.
    pub bytes: u64,
}

/// Memory copy: bytes copied per second (each is read once and written once).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyLimits {
    /// By one thread.
    pub one_thread: Bandwidth,
    /// By all threads together, each copying its own part.
    pub all_threads: Bandwidth,
    /// How many threads that were.
    pub threads: usize,
}

/// How long and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitSettings {
    /// Bytes of a buffer (fewer on a machine too slow for the budget, see [`Bandwidth::bytes`]). Larger than the
    /// caches, or they are measured.
    pub bytes: usize,
    /// Threads of the parallel copy.
    pub threads: usize,
    /// Time of one function in all, preparing the buffers included. At least [`MIN_PASSES`] passes are made
    /// whatever it is.
    pub budget: Duration,
}

impl Default for LimitSettings {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { bytes: 256 << 20, threads, budget: Duration::from_millis(700) }
    }
}

/// Fewest passes behind a bandwidth.
pub const MIN_PASSES: usize = 3;
/// Most passes: more would not change the median.
const MAX_PASSES: usize = 25;

/// Measures memory copy with one thread and with all.
pub fn measure_copy(settings: &LimitSettings) -> CopyLimits {
    let begin = Instant::now();
    let threads = settings.threads.max(1);
    let mut source = touched(settings.bytes, 0xA5, settings.budget / 4);
    let mut target = touched(source.len(), 0x5A, settings.budget / 4);
    source.truncate(target.len());
    let bytes = target.len();
    // The time of preparing is gone; the two measurements share the rest.
    let share = settings.budget.saturating_sub(begin.elapsed()) / 2;
    let one_thread = passes(bytes as u64, share, || {
        target.copy_from_slice(&source);
        black_box(&mut target);
    });
    let part = bytes.div_ceil(threads);
    let all_threads = passes(bytes as u64, share, || {
        let parts = Mutex::new(target.chunks_mut(part).zip(source.chunks(part)));
        let copy = || {
            loop {
                let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((target, source)) = next else { return };
                target.copy_from_slice(source);
                black_box(target);
            }
        };
        std::thread::scope(|scope| {
            // Where the system has fewer threads, they copy more.
            for _ in 1..threads {
                if std::thread::Builder::new().spawn_scoped(scope, copy).is_err() {
                    break;
                }
            }
            copy();
        });
    });
    CopyLimits { one_thread, all_threads, threads }
}

/// Least bytes of a buffer on a machine too slow for more: above the caches of most.
const MIN_BUFFER_BYTES: usize = 64 << 20;

/// A buffer whose every page exists, as large as asked for or as can be made within the time.
fn touched(bytes: usize, value: u8, budget: Duration) -> Vec<u8> {
    let begin = Instant::now();
    let bytes = bytes.max(1 << 16);
    let mut buffer = Vec::with_capacity(bytes);
    while buffer.len() < bytes && (buffer.len() < MIN_BUFFER_BYTES || begin.elapsed() < budget) {
        buffer.resize((buffer.len() + (8 << 20)).min(bytes), value);
    }
    buffer
}

/// Repeats a pass over `bytes` bytes until the budget is spent.
fn passes(bytes: u64, budget: Duration, mut pass: impl FnMut()) -> Bandwidth {
    let begin = Instant::now();
    let mut rates = Samples::new();
    let mut longest = Duration::ZERO;
    let mut count = 0;
    while count < MIN_PASSES || (count < MAX_PASSES && begin.elapsed() + longest < budget) {
        let pass_begin = Instant::now();
        let watch = Stopwatch::start();
        pass();
        // A pass below the clock's resolution counts as one nanosecond rather than as infinitely fast.
        rates.push(bytes as f64 / watch.elapsed().max(1e-9));
        longest = longest.max(pass_begin.elapsed());
        count += 1;
    }
    let (median, slowest, fastest) =
        rates.summary().map_or((0.0, 0.0, 0.0), |rate| (rate.p50, rate.min, rate.max));
    Bandwidth { bytes_per_second: median, slowest, fastest, passes: count, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bandwidth: &Bandwidth, least: f64) {
        assert!(bandwidth.passes >= MIN_PASSES && bandwidth.passes <= MAX_PASSES, "{bandwidth:?}");
        assert!(bandwidth.slowest <= bandwidth.bytes_per_second, "{bandwidth:?}");
        assert!(bandwidth.bytes_per_second <= bandwidth.fastest, "{bandwidth:?}");
        // 10 TB/s at most.
        assert!((least..1e13).contains(&bandwidth.bytes_per_second), "{bandwidth:?}");
    }

    #[test]
    fn copies_are_measured() {
        let settings = LimitSettings { bytes: 16 << 20, threads: 3, budget: Duration::from_millis(30) };
        let limits = measure_copy(&settings);
        // At least 1 MB/s, even if threads wait for their turns; of the fewest bytes that is no bound.
        check(&limits.one_thread, 1e6);
        check(&limits.all_threads, 1e6);
        assert_eq!((limits.threads, limits.one_thread.bytes), (3, 16 << 20));
        let absurd = LimitSettings { bytes: 0, threads: 0, budget: Duration::ZERO };
        check(&measure_copy(&absurd).all_threads, 1.0);
    }
}
