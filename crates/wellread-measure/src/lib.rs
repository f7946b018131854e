//! Measurement that can be defended: clocks, statistics, interleaved runs, memory, page cache, environment.
//!
//! The crate knows nothing of what is measured. A benchmark flows through it like this:
//!
//! ```text
//! environment ─▶ noise warnings          what the machine is, and whether it is fit to measure on
//! page_cache  ─▶ cold or warm, verified
//! interleave  ─▶ rounds in random order, warm-up apart, an A/A twin
//!   clock, memory, checksum              what one turn measures, and proof that it did the work
//! samples     ─▶ median, percentiles     raw values kept
//! steady      ─▶ warm-up over? level changed?
//! intervals   ─▶ of 95 %; precision: narrow enough?
//! compare     ─▶ faster, slower, no difference, too few data
//! limits      ─▶ the same figures as a share of what the machine can do
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`clock`] | [`Stopwatch`], clock overhead measured and taken off |
//! | [`samples`] | [`Samples`], [`Summary`], percentiles that need enough samples |
//! | [`intervals`] | [`IntervalEstimator`], [`Interval`]: medians, means, ratios, rounds |
//! | [`nested`] | the ratio of two sides of several processes each, with its interval |
//! | [`hypothesis`] | Yuen's trimmed t, Welch's interval; Holm's correction |
//! | `normal` | the normal distribution and Student's, which the three above draw on |
//! | [`steady`] | changes in a series: warm-up, steady state, history |
//! | [`precision`] | [`Precision`]: repeats until an interval is narrow enough |
//! | [`mod@compare`] | [`Verdict`] from a ratio and a noise floor |
//! | [`interleave`] | [`Plan`]: variants in rounds, failures recorded, time budget |
//! | [`memory`] | [`PeakGuard`]: peak of the process or of its tree |
//! | [`histogram`] | [`Histogram`]: latencies in little memory, and HdrHistogram's log files |
//! | [`counters`] | instructions executed, where the machine counts them |
//! | [`page_cache`] | drop, warm and count a file's pages; read past the cache |
//! | [`path_text`] | paths in JSON, also those that are not UTF-8 |
//! | [`environment`] | [`Environment`]: processor, memory, limits, disk, build, noise |
//! | [`limits`] | memory copy bandwidth |
//! | [`checksum`] | [`RowChecksum`], independent of order |
//! | [`process`] | ending a program that is measured, with all it started |
//! | [`rng`] | the seeded generator behind orders and resampling |
//! | [`stderr`] | [`to_stderr`]: a line that may get lost |
//! | [`error`], `sys` | the one error type; calls of the operating system |
//!
//! ```
//! use wellread_measure::{IntervalEstimator, Pairing, Samples, Verdict, compare};
//!
//! let before: Samples = (0..12).map(|i| 1.00 + 0.001 * f64::from(i)).collect();
//! let after: Samples = (0..12).map(|i| 0.8 * (1.00 + 0.001 * f64::from(i))).collect();
//! let estimator = IntervalEstimator::seeded(1);
//! let comparison = compare(after.values(), before.values(), Pairing::Paired, None, &estimator);
//! assert_eq!(comparison.verdict, Verdict::Faster);
//! assert!(comparison.ratio.unwrap().estimate < 0.81);
//! assert_eq!(after.summary().unwrap().p95, None); // 12 samples do not support a 95th percentile
//! ```
//!
//! Linux gives everything. Other systems compile, and report the values that they cannot give as unknown.

/// The example of the README, which must run as well.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod checksum;
pub mod clock;
pub mod compare;
pub mod counters;
pub mod environment;
pub mod error;
pub mod histogram;
pub mod hypothesis;
pub mod interleave;
pub mod intervals;
pub mod limits;
pub mod memory;
pub mod nested;
mod normal;
pub mod page_cache;
pub mod path_text;
pub mod precision;
pub mod process;
pub mod rng;
pub mod samples;
pub mod stderr;
pub mod steady;
mod sys;

pub use checksum::RowChecksum;
pub use clock::Stopwatch;
pub use compare::{Comparison, NoiseFloor, Verdict, compare};
pub use environment::Environment;
pub use error::{Error, Result};
pub use histogram::Histogram;
pub use interleave::{Flow, Outcome, Plan, Progress, VariantResult};
pub use intervals::{Interval, IntervalEstimator, Pairing};
pub use limits::{CopyLimits, LimitSettings};
pub use memory::{PeakGuard, PeakMemory, Scope};
pub use page_cache::DropReport;
pub use precision::Precision;
pub use samples::{Samples, Summary};
pub use stderr::to_stderr;
pub use steady::{ChangePoint, ChangePoints};
