//! Latency histograms: every time counted, in memory that does not grow, in the file format of HdrHistogram.
//!
//! ```text
//! seconds ─▶ record ─▶ buckets of nanoseconds, 3 significant digits ─▶ quantile
//!                                                                  └▶ write_log: NAME.hlog, for HdrHistogram's tools
//! ```
//!
//! [`crate::Samples`] keep each value, and statistics are computed from them. Histograms are for series with too many
//! values to keep, for adding up over processes, and for readers of `.hlog` files
//! (<https://hdrhistogram.github.io/HdrHistogram/>).
//!
//! Where load is offered at a fixed rate, a slow answer delays the questions after it. Times of only those that were
//! asked do not show the waiting of the others (Gil Tene's *coordinated omission*): [`Histogram::record_at_rate`] adds
//! it.

use std::io::Write;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::error::{Error, Result};

/// Significant decimal digits that are kept of each value.
pub const DIGITS: u8 = 3;
/// Longest time that is told apart from longer ones: a day, in nanoseconds.
const MAX_NANOSECONDS: u64 = 86_400_000_000_000;
/// Questions that one answer can have kept waiting.
const MAX_MISSED: usize = 1_000_000;

/// Counts of times, from a nanosecond to a day, each to 3 significant digits.
///
/// ```
/// let mut histogram = wellread_measure::Histogram::new();
/// (1..=1000).for_each(|i| histogram.record(f64::from(i) * 1e-3));
/// assert_eq!(histogram.len(), 1000);
/// assert!((histogram.quantile(0.99).unwrap() - 0.99).abs() < 1e-3);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    /// Values that are no time: NaN, negative.
    refused: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Self {
        let counts = hdrhistogram::Histogram::new_with_max(MAX_NANOSECONDS, DIGITS);
        Self { counts: counts.expect("bounds and digits are in range"), refused: 0 }
    }

    /// Counts a time in seconds. Longer than a day counts as a day; a value that is no time counts only in
    /// [`Histogram::refused`].
    pub fn record(&mut self, seconds: f64) {
        match nanoseconds(seconds) {
            Some(value) => self.counts.saturating_record(value),
            None => self.refused += 1,
        }
    }

    /// As [`Histogram::record`] for one of several questions that are due every `interval` seconds, each asked when the
    /// one before is answered. After an answer that takes longer, the waiting times of the questions due meanwhile
    /// count too (the last million of them).
    pub fn record_at_rate(&mut self, seconds: f64, interval: f64) {
        self.record(seconds);
        let (Some(whole), Some(interval)) = (nanoseconds(seconds), nanoseconds(interval)) else { return };
        for missed in (1..whole / interval).rev().take(MAX_MISSED) {
            self.counts.saturating_record(whole - missed * interval);
        }
    }

    /// Adds all counts of another.
    pub fn add(&mut self, other: &Self) {
        // Both have the same bounds, so that nothing of the other is out of range.
        self.counts.add(&other.counts).expect("equal bounds");
        self.refused += other.refused;
    }

    /// How many times were counted.
    pub fn len(&self) -> u64 {
        self.counts.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many values were no times.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The least time that at least a share `q` of all does not exceed, seconds; `None` of an empty histogram.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        (!self.is_empty()).then(|| self.counts.value_at_quantile(q) as f64 * 1e-9)
    }
}

impl FromIterator<f64> for Histogram {
    fn from_iter<I: IntoIterator<Item = f64>>(seconds: I) -> Self {
        let mut histogram = Self::new();
        seconds.into_iter().for_each(|s| histogram.record(s));
        histogram
    }
}

fn nanoseconds(seconds: f64) -> Option<u64> {
    // The cast saturates.
    (seconds >= 0.0).then(|| ((seconds * 1e9).round() as u64).clamp(1, MAX_NANOSECONDS))
}

/// Writes histograms as an interval log (`.hlog`): each under a tag, all of the same interval. Times are in nanoseconds
/// and maxima in milliseconds, as HdrHistogram's own tools write them. In tags, commas and blanks become dots.
///
/// # Errors
/// The writer's error.
pub fn write_log<W: Write>(
    writer: &mut W,
    comment: &str,
    began: SystemTime,
    lasted: Duration,
    tagged: &[(String, Histogram)],
) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| Error::Histogram(e.to_string());
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    for line in comment.lines() {
        builder.add_comment(line);
    }
    let mut log = builder
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(1e6)
        .begin_log_with(writer, &mut serializer)
        .map_err(|e| failed(&e))?;
    for (tag, histogram) in tagged {
        let tag = tag.replace(|c: char| c == ',' || c.is_whitespace(), ".");
        let tag = Tag::new(&tag);
        log.write_histogram(&histogram.counts, Duration::ZERO, lasted, tag).map_err(|e| failed(&e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::prelude::*;

    #[test]
    fn values_are_counted_and_what_is_none_is_told() {
        let mut histogram: Histogram = [0.0, 1e-9, 2.5e-3, 1e9, f64::INFINITY].into_iter().collect();
        histogram.record(f64::NAN);
        histogram.record(-1.0);
        assert_eq!((histogram.len(), histogram.refused()), (5, 2));
        assert!((histogram.quantile(0.6).unwrap() / 2.5e-3 - 1.0).abs() < 1e-3);
        assert!((histogram.quantile(1.0).unwrap() / 86_400.0 - 1.0).abs() < 1e-3);
        assert_eq!(Histogram::new().quantile(0.5), None);
        let mut twice = histogram.clone();
        twice.add(&histogram);
        assert_eq!((twice.len(), twice.refused()), (10, 4));
    }

    /// Tene's example: 100 answers of a millisecond a second for 100 seconds, then one that takes 100 seconds. Half of
    /// the time, a question waits; a count of answers alone finds one slow in ten thousand.
    #[test]
    fn omitted_questions_are_counted() {
        let (mut naive, mut right) = (Histogram::new(), Histogram::new());
        for seconds in std::iter::repeat_n(0.001, 10_000).chain([100.0]) {
            naive.record(seconds);
            right.record_at_rate(seconds, 0.01);
        }
        assert!(naive.quantile(0.999).unwrap() < 0.0011);
        assert_eq!(right.len(), 20_000);
        let p75 = right.quantile(0.75).unwrap();
        assert!((p75 / 50.0 - 1.0).abs() < 0.01, "{p75}");
        // No rate, no correction.
        let mut none = Histogram::new();
        none.record_at_rate(100.0, f64::NAN);
        none.record_at_rate(f64::NAN, 1.0);
        assert_eq!((none.len(), none.refused()), (1, 1));
        // Bounded, whatever is asked.
        none.record_at_rate(f64::INFINITY, 0.0);
        assert_eq!(none.len(), 1_000_002);
    }

    #[test]
    fn logs_are_read_back_by_the_library() {
        let fast: Histogram = (1..100).map(|i| f64::from(i) * 1e-6).collect();
        let slow: Histogram = (1..50).map(|i| f64::from(i) * 1e-3).collect();
        let mut log = Vec::new();
        let tagged = [("format=tiff, workers=2".to_owned(), fast.clone()), ("parquet".to_owned(), slow)];
        write_log(&mut log, "two\nlines", SystemTime::UNIX_EPOCH, Duration::from_secs(3), &tagged).unwrap();
        let text = String::from_utf8(log).unwrap();
        assert!(text.starts_with("#two\n#lines\n"), "{text}");
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                let bytes = base64_decoded(interval.encoded_histogram());
                let counts: hdrhistogram::Histogram<u64> =
                    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                found.push((interval.tag().unwrap().as_str().to_owned(), counts));
            }
        }
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].0, "format=tiff..workers=2");
        assert_eq!(found[0].1, fast.counts);
    }

    fn base64_decoded(text: &str) -> Vec<u8> {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
        for digit in text.bytes().filter(|b| *b != b'=') {
            bits = bits << 6 | DIGITS.iter().position(|d| *d == digit).unwrap() as u32;
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
            }
        }
        bytes
    }

    proptest! {
        /// A quantile of the histogram is that of the values, to the digits kept.
        #[test]
        fn quantiles_agree_with_sorted_values(mut values in prop::collection::vec(1e-9..1e4f64, 1..200), q in 0.0..=1.0f64) {
            let histogram: Histogram = values.iter().copied().collect();
            values.sort_by(f64::total_cmp);
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            let found = histogram.quantile(q).unwrap();
            prop_assert!((found / exact - 1.0).abs() < 2e-3 || (found - exact).abs() <= 1e-9, "{} {}", found, exact);
        }
    }
}
