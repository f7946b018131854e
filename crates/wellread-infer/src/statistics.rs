//! From raw nanoseconds to the columns of a row. Percentiles are those of NumPy (linear interpolation), of however
//! few samples: how many there are is told beside them. The standard deviation is that of a sample. Nothing is dropped:
//! outliers are counted.

use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::samples::{Samples, percentile_of_sorted};
use wellread_measure::steady::windows_agree;
use wellread_measure::{Interval, IntervalEstimator};

/// How far the medians of two windows of warm-up may differ for the passes to be steady.
const MAX_STEADY_DIFFERENCE: f64 = 0.02;
/// Fewest passes of a window.
const MIN_WINDOW: usize = 3;

/// Latency of a configuration, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 95th percentile; of fewer than 20 samples it is near the largest.
    pub p95: f64,
    /// 99th percentile; of fewer than 100 samples it is near the largest.
    pub p99: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation (divisor n - 1); 0 of one sample.
    pub std: f64,
    /// Least.
    pub min: f64,
    /// Most.
    pub max: f64,
    /// Samples beyond the quartiles by more than 1.5 times their distance (Tukey's fences).
    pub outliers: usize,
}

/// The figures of samples in nanoseconds; `None` of none.
pub fn latency(samples_ns: &[u64]) -> Option<Latency> {
    let samples: Samples = samples_ns.iter().map(|&ns| ns as f64 / 1e6).collect();
    let summary = samples.summary()?;
    let mut sorted = samples.into_values();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |q| percentile_of_sorted(&sorted, q);
    let (low, high) = (at(0.25), at(0.75));
    let reach = 1.5 * (high - low);
    let outliers = sorted.iter().filter(|&&ms| ms < low - reach || ms > high + reach).count();
    Some(Latency {
        p50: summary.p50,
        p95: at(0.95),
        p99: at(0.99),
        mean: summary.mean,
        std: summary.std.unwrap_or(0.0),
        min: summary.min,
        max: summary.max,
        outliers,
    })
}

/// The interval of the median, in milliseconds: that of the medians of rounds, since passes of one round are alike. `None` of
/// fewer than [`MIN_SAMPLES`] rounds.
pub fn interval(rounds_ns: &[Vec<u64>], seed: u64) -> Option<Interval> {
    if rounds_ns.len() < MIN_SAMPLES {
        return None;
    }
    let rounds: Vec<Vec<f64>> =
        rounds_ns.iter().map(|round| round.iter().map(|&ns| ns as f64 / 1e6).collect()).collect();
    let groups: Vec<&[f64]> = rounds.iter().map(Vec::as_slice).collect();
    IntervalEstimator::seeded(seed).clustered_median(&groups)
}

/// Passes of a window of warm-up.
pub fn window(warmup: usize) -> usize {
    (warmup / 2).max(MIN_WINDOW)
}

/// Whether the medians of the last two windows agree.
pub fn steady(samples_ns: &[u64], window: usize) -> bool {
    // Older ones are looked at no more.
    let recent = &samples_ns[samples_ns.len().saturating_sub(2 * window)..];
    windows_agree(&recent.iter().map(|&ns| ns as f64).collect::<Vec<_>>(), window, MAX_STEADY_DIFFERENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_numpy() {
        // numpy: a = [3, 1, 2, 10] ms, with percentile 50, mean, and std(ddof=1)
        let found = latency(&[3_000_000, 1_000_000, 2_000_000, 10_000_000]).unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        close(found.p50, 2.5);
        // numpy.percentile([1, 2, 3, 10], [95, 99])
        close(found.p95, 8.95);
        close(found.p99, 9.79);
        close(found.mean, 4.0);
        close(found.std, 4.082_482_904_638_63);
        assert_eq!((found.min, found.max, found.outliers), (1.0, 10.0, 1));
        assert_eq!(latency(&[]), None);
        let one = latency(&[5_000_000]).unwrap();
        assert_eq!((one.p95, one.p99, one.std, one.outliers), (5.0, 5.0, 0.0, 0));
        // numpy.percentile(numpy.arange(1, 101), [95, 99])
        let hundred = latency(&(1..=100).map(|i| i * 1_000_000).collect::<Vec<_>>()).unwrap();
        close(hundred.p95, 95.05);
        close(hundred.p99, 99.01);
    }

    #[test]
    fn outliers_are_counted_and_stay() {
        let mut samples = vec![1_000_000; 50];
        samples.extend([1_100_000, 9_000_000]);
        let found = latency(&samples).unwrap();
        assert_eq!((found.outliers, found.max), (2, 9.0));
    }

    #[test]
    fn warm_up_is_steady_when_two_windows_agree() {
        assert!(!steady(&[100; 5], 3));
        assert!(steady(&[100; 6], 3));
        assert!(!steady(&[300, 250, 200, 100, 100, 100], 3));
        assert!(steady(&[900, 300, 100, 101, 100, 101, 100, 101], 3));
        assert!(!steady(&[100, 100, 100, 105, 105, 105], 3));
        assert_eq!((window(10), window(0)), (5, 3));
    }

    #[test]
    fn the_interval_holds_the_median() {
        let rounds: Vec<Vec<u64>> =
            (0..10).map(|r| (0..5).map(|i| 1_000_000 + 1000 * r + i).collect()).collect();
        let found = interval(&rounds, 1).unwrap();
        assert!(found.low <= found.estimate && found.estimate <= found.high && found.low >= 1.0, "{found:?}");
        assert!(interval(&rounds[..MIN_SAMPLES], 1).is_some());
        assert_eq!(interval(&rounds[..MIN_SAMPLES - 1], 1), None, "too few rounds for an interval");
    }
}
