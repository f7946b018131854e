//! Distributions as marks: by their quantiles, and by single measurements, whose shape stands over an axis.

use wellread_measure::samples::{enough_for, percentile_of_sorted};

/// Most values that are kept: evenly spaced ones of the sorted measurements, the ends among them.
const MAX_VALUES: usize = 600;
/// Width of the steps in which measurements are counted, in pixels.
const STEP: f64 = 3.0;

/// A distribution by its single measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Measurements, ascending; of many, evenly spaced ones.
    pub(super) sorted: Vec<f64>,
    /// How many there were.
    pub(super) n: usize,
    /// Their quantiles; those for which there are too few are unknown.
    pub(super) spread: Box<Spread>,
}

impl Sample {
    /// The distribution of these measurements, without those that are not finite.
    pub fn new(measurements: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = measurements.into_iter().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let spread = Box::new(Spread::of_sorted(&sorted));
        if n > MAX_VALUES {
            sorted = (0..MAX_VALUES).map(|i| sorted[i * (n - 1) / (MAX_VALUES - 1)]).collect();
        }
        Self { sorted, n, spread }
    }

    /// The median, where there is a measurement.
    pub fn median(&self) -> Option<f64> {
        self.spread.p50
    }

    /// Whether there was no finite measurement.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The shape on an axis of `length` pixels: places and how many measurements lie there, as share of the most.
    /// Counted on the axis itself, so that the shape is right on a linear and on a logarithmic one.
    pub(super) fn outline(&self, at: impl Fn(f64) -> f64, length: f64) -> Vec<(f64, f64)> {
        let steps = (length / STEP).ceil().clamp(1.0, 4096.0) as usize;
        let mut counts = vec![0.0; steps + 1];
        let (mut first, mut last) = (steps, 0);
        for &value in &self.sorted {
            let step = ((at(value) / STEP).round().max(0.0) as usize).min(steps);
            counts[step] += 1.0;
            (first, last) = (first.min(step), last.max(step));
        }
        // A little smoothing: the edges of the steps mean nothing.
        let (first, last) = (first.saturating_sub(2), (last + 2).min(steps));
        let weights = [1.0, 2.0, 3.0, 2.0, 1.0];
        let smooth = |step: usize| -> f64 {
            weights
                .iter()
                .enumerate()
                .map(|(i, w)| w * counts.get((step + i).wrapping_sub(2)).unwrap_or(&0.0))
                .sum()
        };
        let heights: Vec<f64> = (first..=last).map(smooth).collect();
        let most = heights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        // Any height above zero is visible.
        let seen = |h: f64| if h > 0.0 { (h / most).max(0.06) } else { 0.03 };
        heights.iter().enumerate().map(|(i, h)| ((first + i) as f64 * STEP, seen(*h))).collect()
    }
}

/// A distribution by its quantiles; those that are unknown are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Smallest.
    pub min: Option<f64>,
    /// Lower quartile.
    pub p25: Option<f64>,
    /// Median; without it nothing is drawn.
    pub p50: Option<f64>,
    /// Upper quartile.
    pub p75: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

impl Spread {
    /// All that is known.
    pub(super) fn values(&self) -> Vec<f64> {
        [self.min, self.p25, self.p50, self.p75, self.p95, self.p99, self.max].into_iter().flatten().collect()
    }

    /// The quantiles of ascending values; one for which there are too few is unknown.
    pub fn of_sorted(sorted: &[f64]) -> Self {
        let n = sorted.len();
        let quantile = |q: f64| enough_for(q, n).then(|| percentile_of_sorted(sorted, q));
        Self {
            min: sorted.first().copied(),
            p25: quantile(0.25),
            p50: quantile(0.5),
            p75: quantile(0.75),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max: sorted.last().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_highest_where_most_lie_and_as_wide_as_they_reach() {
        let values = (0..900).map(|i| if i % 3 == 0 { 80.0 } else { 20.0 + f64::from(i % 5) });
        let sample = Sample::new(values.chain([f64::NAN, f64::INFINITY]));
        assert_eq!((sample.n, sample.sorted.len()), (900, MAX_VALUES));
        assert_eq!((sample.spread.min, sample.spread.max), (Some(20.0), Some(80.0)));
        let outline = sample.outline(|v| v, 100.0);
        let peak = outline.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert!((peak.0 - 22.0).abs() < 4.0 && peak.1 == 1.0, "{peak:?}");
        assert!(outline[0].0 >= 12.0 && outline.last().unwrap().0 <= 90.0);
        // Between the two there is nothing.
        assert!(outline.iter().any(|(x, h)| (40.0..60.0).contains(x) && *h < 0.05));
    }

    #[test]
    fn percentiles_need_enough_measurements() {
        let of = |n: i32| Sample::new((0..n).map(f64::from)).spread;
        assert_eq!(
            (of(10).p95, of(20).p95.is_some(), of(20).p99, of(100).p99.is_some()),
            (None, true, None, true)
        );
        assert_eq!(*Sample::new([]).spread, Spread::default());
    }
}
