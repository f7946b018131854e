//! Repeated measurements and what may be said of them.
//!
//! [`Samples`] keeps every raw value; [`Samples::summary`] condenses them. Nothing is dropped as an outlier:
//! a slow run is part of what the user will meet. Values are seconds by convention, but nothing depends on it.
//!
//! **Percentiles** interpolate linearly between the two nearest order statistics, at position `(n - 1) q` of the
//! sorted values. This is Hyndman and Fan's type 7, the default of NumPy and R.
//!
//! **Enough samples.** A percentile is given only when at least one sample is expected beyond it,
//! `n (1 - q) >= 1`: p95 needs 20 samples and p99 needs 100. Below that it would be the maximum under another
//! name, so it is `None`.

use serde::{Deserialize, Serialize};

/// Raw values, in the order measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    values: Vec<f64>,
    /// How many values that were not finite numbers were refused.
    #[serde(default)]
    rejected: usize,
}

/// The figures a table shows. Same unit as the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of samples.
    pub n: usize,
    /// Values refused because they were NaN or infinite: not among `n`, and a sign of a broken measurement.
    pub rejected: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (divisor `n - 1`); `None` for a single sample.
    pub std: Option<f64>,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile; `None` below 20 samples.
    pub p95: Option<f64>,
    /// 99th percentile; `None` below 100 samples.
    pub p99: Option<f64>,
    /// Largest.
    pub max: f64,
}

impl Samples {
    /// No samples yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one value. NaN and infinities are not kept but counted, and [`Summary::rejected`] tells.
    pub fn push(&mut self, value: f64) {
        if value.is_finite() {
            self.values.push(value);
        } else {
            self.rejected += 1;
        }
    }

    /// The values, in the order measured.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The values, taken out.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Number of values kept.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no value was kept.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Sum of the values.
    pub fn total(&self) -> f64 {
        self.values.iter().sum()
    }

    /// The percentile `q` in `[0, 1]`; `None` when there are too few samples for it (module text).
    pub fn percentile(&self, q: f64) -> Option<f64> {
        if !enough_for(q, self.len()) {
            return None;
        }
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(percentile_of_sorted(&sorted, q))
    }

    /// The summary; `None` when there are no samples.
    pub fn summary(&self) -> Option<Summary> {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let n = sorted.len();
        let mean = mean(&self.values)?;
        let when_enough = |q| enough_for(q, n).then(|| percentile_of_sorted(&sorted, q));
        let std = (n > 1).then(|| {
            let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1) as f64).sqrt()
        });
        Some(Summary {
            n,
            rejected: self.rejected,
            mean,
            std,
            min,
            p50: percentile_of_sorted(&sorted, 0.5),
            p95: when_enough(0.95),
            p99: when_enough(0.99),
            max,
        })
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(iter: I) -> Self {
        let mut samples = Self::new();
        samples.extend(iter);
        samples
    }
}

impl Extend<f64> for Samples {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, iter: I) {
        iter.into_iter().for_each(|value| self.push(value));
    }
}

impl From<Vec<f64>> for Samples {
    fn from(values: Vec<f64>) -> Self {
        values.into_iter().collect()
    }
}

/// Whether `n` samples support the percentile `q`: at least one is expected on its far side. The median
/// needs one sample.
pub fn enough_for(q: f64, n: usize) -> bool {
    // The tolerance absorbs 1 - 0.95 not being exactly 0.05.
    let beyond = n as f64 * (1.0 - q).min(q) + 1e-9;
    (0.0..=1.0).contains(&q) && n > 0 && (beyond >= 1.0 || q == 0.5)
}

/// The percentile `q` in `[0, 1]` of values sorted ascending, linearly interpolated (module text).
///
/// # Panics
/// When `sorted` is empty.
pub fn percentile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty(), "a percentile of no values");
    let position = (sorted.len() - 1) as f64 * q.clamp(0.0, 1.0);
    let below = position.floor() as usize;
    let low = sorted[below];
    let high = sorted[(below + 1).min(sorted.len() - 1)];
    let fraction = position - below as f64;
    // Interpolating from the nearer end keeps the result between the two values, as NumPy does.
    if fraction < 0.5 { low + (high - low) * fraction } else { high - (high - low) * (1.0 - fraction) }
}

/// The median; `None` of no values. Linear time.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut scratch = values.to_vec();
    median_in_place(&mut scratch)
}

/// The median; reorders `values`. `None` of no values. Linear time, no allocation.
pub fn median_in_place(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (before, &mut upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return Some(upper);
    }
    let lower = before.iter().copied().max_by(f64::total_cmp)?;
    Some(percentile_of_sorted(&[lower, upper], 0.5))
}

/// The arithmetic mean; `None` of no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_those_of_numpy() {
        // numpy.percentile([15, 20, 35, 40, 50], [0, 5, 30, 40, 95, 100])
        let sorted = [15.0, 20.0, 35.0, 40.0, 50.0];
        for (q, expected) in [(0.0, 15.0), (0.05, 16.0), (0.3, 23.0), (0.4, 29.0), (0.95, 48.0), (1.0, 50.0)]
        {
            assert!((percentile_of_sorted(&sorted, q) - expected).abs() < 1e-12, "{q}");
        }
    }

    #[test]
    fn a_percentile_needs_enough_samples() {
        let of = |n: usize| (0..n).map(|i| i as f64).collect::<Samples>().summary().unwrap();
        assert_eq!(of(19).p95, None);
        assert!((of(20).p95.unwrap() - 18.05).abs() < 1e-9);
        assert_eq!(of(99).p99, None);
        assert!((of(100).p99.unwrap() - 98.01).abs() < 1e-9);
        assert_eq!(of(1).p50, 0.0);
        assert_eq!(of(1).std, None);
        assert!(!enough_for(0.999, 999) && enough_for(0.999, 1000) && !enough_for(0.05, 19));
        assert!(!enough_for(1.5, 1000) && !enough_for(f64::NAN, 1000) && !enough_for(0.5, 0));
    }

    #[test]
    fn broken_values_are_counted_not_averaged() {
        let samples: Samples = [1.0, f64::NAN, 3.0, f64::INFINITY].into_iter().collect();
        let summary = samples.summary().unwrap();
        assert_eq!((summary.n, summary.rejected, summary.mean, summary.p50), (2, 2, 2.0, 2.0));
        assert!((summary.std.unwrap() - 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Samples::new().summary(), None);
        assert_eq!(Samples::new().percentile(0.5), None);
    }

    #[test]
    fn survives_json() {
        let samples: Samples = [0.25, 0.5].into_iter().collect();
        let text = serde_json::to_string(&samples).unwrap();
        assert_eq!(serde_json::from_str::<Samples>(&text).unwrap(), samples);
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_definition(mut values in prop::collection::vec(-1e6_f64..1e6, 1..300), q in 0.0_f64..=1.0) {
            let summary = Samples::from(values.clone()).summary().unwrap();
            prop_assert_eq!(median(&values).unwrap(), summary.p50);
            values.sort_by(f64::total_cmp);
            let position = (values.len() - 1) as f64 * q;
            let (low, high) = (values[position.floor() as usize], values[position.ceil() as usize]);
            let naive = low + (high - low) * position.fract();
            let ours = percentile_of_sorted(&values, q);
            prop_assert!((ours - naive).abs() < 1e-6);
            prop_assert!(low <= ours && ours <= high);
            prop_assert!(summary.min <= summary.p50 && summary.p50 <= summary.max);
            prop_assert!(summary.min - 1e-6 <= summary.mean && summary.mean <= summary.max + 1e-6);
            prop_assert!(summary.p95.is_none_or(|p95| summary.p50 <= p95 && p95 <= summary.max));
        }
    }
}
