//! Time, with the cost of looking at the clock taken off.
//!
//! Reading a monotonic clock costs 20-60 ns (more where a virtual machine traps it). That is nothing beside a batch
//! of milliseconds, a lot beside a call of 100 ns. [`Clock::calibrated`] measures that cost once per process
//! and [`Stopwatch`] subtracts it from every interval, never going below zero.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::samples::median;

/// The cost and the resolution of the clock itself on this machine, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Median cost of one clock read: the length of an empty interval.
    pub overhead_seconds: f64,
    /// Smallest step other than zero seen between two reads.
    pub resolution_seconds: f64,
}

/// Blocks of back-to-back reads: the median over blocks ignores those a scheduler interrupted.
const BLOCKS: usize = 101;
const READS_PER_BLOCK: usize = 200;

impl Clock {
    /// Measures the clock afresh; takes about a millisecond.
    pub fn calibrate() -> Self {
        let mut costs = Vec::with_capacity(BLOCKS);
        let mut resolution = f64::INFINITY;
        for _ in 0..BLOCKS {
            let begin = Instant::now();
            let mut last = begin;
            for _ in 0..READS_PER_BLOCK {
                let now = black_box(Instant::now());
                let step = now.duration_since(last).as_secs_f64();
                if step > 0.0 {
                    resolution = resolution.min(step);
                }
                last = now;
            }
            costs.push(last.duration_since(begin).as_secs_f64() / READS_PER_BLOCK as f64);
        }
        Self {
            overhead_seconds: median(&costs).unwrap_or(0.0),
            resolution_seconds: if resolution.is_finite() { resolution } else { 0.0 },
        }
    }

    /// The clock of this process, measured at the first call.
    pub fn calibrated() -> &'static Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        CLOCK.get_or_init(Self::calibrate)
    }
}

/// A running timer. All times are seconds.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    begin: Instant,
    overhead: f64,
}

impl Stopwatch {
    /// Starts timing. The first call of a process also calibrates the clock, before timing begins.
    pub fn start() -> Self {
        let overhead = Clock::calibrated().overhead_seconds;
        Self { overhead, begin: Instant::now() }
    }

    /// Seconds since the start, less the cost of the clock, at least zero.
    #[inline]
    pub fn elapsed(&self) -> f64 {
        (self.elapsed_raw() - self.overhead).max(0.0)
    }

    /// The same in whole nanoseconds, as workers answer.
    #[inline]
    pub fn elapsed_ns(&self) -> u64 {
        (self.elapsed() * 1e9).round() as u64
    }

    /// Seconds since the start as the clock gave them.
    #[inline]
    pub fn elapsed_raw(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Seconds since the start or the last lap (clock cost taken off), and begins the next lap.
    #[inline]
    pub fn lap(&mut self) -> f64 {
        let now = Instant::now();
        let lap = now.duration_since(self.begin).as_secs_f64();
        self.begin = now;
        (lap - self.overhead).max(0.0)
    }
}

/// Runs `work` once: its result and the seconds it took, clock cost taken off. The result passes through
/// [`black_box`], so the optimiser cannot remove the work.
pub fn time<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let watch = Stopwatch::start();
    let result = black_box(work());
    (result, watch.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn clock_is_plausible() {
        let clock = Clock::calibrate();
        assert!(clock.overhead_seconds > 0.0, "{clock:?}");
        assert!(clock.resolution_seconds > 0.0, "{clock:?}");
    }

    #[test]
    fn sleeps_are_measured_and_laps_add_up() {
        let whole = Stopwatch::start();
        let mut laps = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(12));
        let first = laps.lap();
        std::thread::sleep(Duration::from_millis(5));
        let second = laps.lap();
        assert!(first >= 0.0119, "{first}");
        assert!(second >= 0.0049, "{second}");
        assert!(first + second <= whole.elapsed_raw());
        assert!(whole.elapsed() <= whole.elapsed_raw());
        assert!(whole.elapsed_ns() >= 16_800_000, "{}", whole.elapsed_ns());
    }

    #[test]
    fn time_gives_the_result() {
        let (answer, seconds) = time(|| 6 * 7);
        assert_eq!(answer, 42);
        assert!(seconds >= 0.0);
    }
}
