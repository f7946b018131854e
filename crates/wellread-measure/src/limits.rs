//! What this machine can do at best: the bandwidths beside which results are shown.
//!
//! "40,000 images a second" says little; "38 % of what this machine can copy" says how much is left to gain.
//! [`measure_copy`] copies between two large buffers whose pages exist already; [`measure_page_cache`] reads a
//! warm file with `read` and by copying out of a memory map; give it a file several times larger than the last
//! cache ([`crate::environment::Cpu::caches`]), or that cache is what is measured. Each figure is the median of repeated passes with
//! its range, and each function keeps to a time budget.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Seek};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::page_cache;
use crate::samples::Samples;
use crate::sys;

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

/// Reading a file that is in the page cache into one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageCacheLimits {
    /// By `read` in steps of 1 MiB.
    pub read: Bandwidth,
    /// By copying out of a memory map made beforehand, its pages touched before.
    pub mapped: Bandwidth,
    /// Share of the bytes read that was in the page cache before, 0 to 1; `None` when not known.
    pub resident: Option<f64>,
}

/// How long and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitSettings {
    /// Bytes of a buffer (fewer on a machine too slow for the budget, see [`Bandwidth::bytes`]), or the most
    /// read of a file in one pass. Larger than the caches, or they are measured.
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
/// Step of a copy out of a file: in the second-level cache, as a loader's buffers are.
const STEP: usize = 1 << 20;

/// Measures memory copy with one thread and with all.
pub fn measure_copy(settings: &LimitSettings) -> CopyLimits {
    let begin = Instant::now();
    let threads = settings.threads.max(1);
    let mut source = touched(settings.bytes, 0xA5, settings.budget / 4);
    let mut target = touched(source.len(), 0x5A, settings.budget / 4);
    source.truncate(target.len());
    let bytes = target.len();
    // What preparing took is gone; the two measurements share the rest.
    let share = settings.budget.saturating_sub(begin.elapsed()) / 2;
    let one_thread = passes(bytes as u64, share, || {
        target.copy_from_slice(&source);
        black_box(&mut target);
    });
    let part = bytes.div_ceil(threads);
    let all_threads = passes(bytes as u64, share, || {
        std::thread::scope(|scope| {
            for (target, source) in target.chunks_mut(part).zip(source.chunks(part)) {
                scope.spawn(move || {
                    target.copy_from_slice(source);
                    black_box(target);
                });
            }
        });
    });
    CopyLimits { one_thread, all_threads, threads }
}

/// Least bytes of a buffer on a machine too slow for more: above the caches of most.
const LEAST_BUFFER: usize = 64 << 20;

/// A buffer whose every page exists, as large as asked for or as can be made within the time.
fn touched(bytes: usize, value: u8, budget: Duration) -> Vec<u8> {
    let begin = Instant::now();
    let bytes = bytes.max(1 << 16);
    let mut buffer = Vec::with_capacity(bytes);
    while buffer.len() < bytes && (buffer.len() < LEAST_BUFFER || begin.elapsed() < budget) {
        buffer.resize((buffer.len() + (8 << 20)).min(bytes), value);
    }
    buffer
}

/// Measures reading the first bytes (at most `settings.bytes`) of a file. The file is read once first, so that
/// it is in the page cache.
///
/// # Errors
/// When the file cannot be read or is empty.
pub fn measure_page_cache(path: &Path, settings: &LimitSettings) -> Result<PageCacheLimits> {
    let begin = Instant::now();
    let mut file = File::open(path).map_err(Error::io("open", path))?;
    let Some(map) = sys::map(&file).map_err(Error::io("map", path))? else {
        return Err(Error::Unsupported {
            what: "reading from the page cache",
            reason: format!("{} is empty", path.display()),
        });
    };
    let bytes = map.len().min(settings.bytes.max(1));
    let mut buffer = vec![0_u8; STEP.min(bytes)];
    // Small files are read again and again in a pass, so that a pass is long beside the clock; of tiny ones the
    // calls are measured, not the bytes, and a bounded number of those is enough.
    let rounds = (16 * STEP / bytes).clamp(1, 256);
    let mut failure = None;
    let mut read_once = |buffer: &mut [u8]| -> std::io::Result<()> {
        file.rewind()?;
        let mut left = bytes;
        while left > 0 {
            let step = left.min(buffer.len());
            match file.read(&mut buffer[..step])? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                got => left -= got,
            }
        }
        Ok(())
    };
    read_once(&mut buffer).map_err(Error::io("read", path))?;
    let resident = page_cache::resident_fraction(path).ok();
    let share = settings.budget.saturating_sub(begin.elapsed()) / 2;
    let per_pass = (bytes * rounds) as u64;
    let read = passes(per_pass, share, || {
        for _ in 0..rounds {
            if let Err(error) = read_once(&mut buffer) {
                failure = Some(error);
            }
        }
        black_box(&mut buffer);
    });
    if let Some(error) = failure {
        return Err(Error::io("read", path)(error));
    }
    let mut copy_out = || {
        for chunk in map[..bytes].chunks(buffer.len()) {
            buffer[..chunk.len()].copy_from_slice(chunk);
            black_box(&mut buffer);
        }
    };
    copy_out();
    let mapped = passes(per_pass, share, || (0..rounds).for_each(|_| copy_out()));
    Ok(PageCacheLimits { read, mapped, resident })
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

    fn check(bandwidth: &Bandwidth) {
        assert!(bandwidth.passes >= MIN_PASSES && bandwidth.passes <= MAX_PASSES, "{bandwidth:?}");
        assert!(bandwidth.slowest <= bandwidth.bytes_per_second, "{bandwidth:?}");
        assert!(bandwidth.bytes_per_second <= bandwidth.fastest, "{bandwidth:?}");
        // Between 10 MB/s and 10 TB/s.
        assert!((1e7..1e13).contains(&bandwidth.bytes_per_second), "{bandwidth:?}");
    }

    #[test]
    fn copies_are_measured() {
        let settings = LimitSettings { bytes: 16 << 20, threads: 3, budget: Duration::from_millis(30) };
        let limits = measure_copy(&settings);
        check(&limits.one_thread);
        check(&limits.all_threads);
        assert_eq!((limits.threads, limits.one_thread.bytes), (3, 16 << 20));
        let absurd = LimitSettings { bytes: 0, threads: 0, budget: Duration::ZERO };
        check(&measure_copy(&absurd).all_threads);
    }

    #[test]
    fn files_are_measured_large_and_small() {
        let folder = tempfile::tempdir().unwrap();
        let settings = LimitSettings { bytes: 4 << 20, threads: 1, budget: Duration::from_millis(30) };
        for size in [5, 3 << 20, 9 << 20] {
            let path = folder.path().join(size.to_string());
            std::fs::write(&path, vec![9; size]).unwrap();
            let limits = measure_page_cache(&path, &settings).unwrap();
            if size > 1024 {
                check(&limits.mapped);
                check(&limits.read);
            }
            assert!(limits.read.bytes >= size.min(4 << 20) as u64 && limits.read.passes >= MIN_PASSES);
            assert!(limits.resident.is_none_or(|share| share > 0.99), "{limits:?}");
        }
        let empty = folder.path().join("empty");
        std::fs::write(&empty, []).unwrap();
        assert!(measure_page_cache(&empty, &settings).unwrap_err().to_string().contains("is empty"));
        assert!(measure_page_cache(Path::new("no/such"), &settings).is_err());
    }
}
