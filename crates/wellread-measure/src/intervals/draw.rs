//! Order statistics of resamples, drawn without resampling.

use crate::rng::Rng;
use crate::samples::percentile_of_sorted;

/// Draws a percentile of a resample without drawing the resample (module text).
pub(super) struct OrderStatistics {
    sorted: Vec<f64>,
    /// Rank of the lower order statistic, counted from 1.
    rank: usize,
    /// How far to interpolate from it towards the next.
    fraction: f64,
}

impl OrderStatistics {
    pub(super) fn new(samples: &[f64], q: f64) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let position = (sorted.len() - 1) as f64 * q.clamp(0.0, 1.0);
        Self { sorted, rank: position.floor() as usize + 1, fraction: position.fract() }
    }

    pub(super) fn next(&self, rng: &mut Rng) -> f64 {
        let n = self.sorted.len();
        let value = |uniform: f64| self.sorted[((uniform * n as f64) as usize).min(n - 1)];
        let lower = rng.beta(self.rank as f64, (n - self.rank + 1) as f64);
        if self.fraction == 0.0 {
            return value(lower);
        }
        // The next order statistic is the least of the n - rank uniform numbers that remain above.
        let step = 1.0 - rng.unit_positive().powf(1.0 / (n - self.rank) as f64);
        percentile_of_sorted(&[value(lower), value(lower + (1.0 - lower) * step)], self.fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_draws_have_the_distribution_of_resampling() {
        // Against the plain way: draw n samples, take the median (odd and even n) or a percentile.
        for (n, q) in [(9, 0.5), (10, 0.5), (40, 0.95), (2, 0.5), (7, 0.0), (7, 1.0)] {
            let mut rng = Rng::seed(5);
            let samples: Vec<f64> = (0..n).map(|_| rng.normal().exp()).collect();
            let direct = OrderStatistics::new(&samples, q);
            let draws = 40_000;
            let mut plain: Vec<f64> = (0..draws)
                .map(|_| {
                    let mut resample: Vec<f64> = (0..n).map(|_| samples[rng.below(n)]).collect();
                    resample.sort_unstable_by(f64::total_cmp);
                    percentile_of_sorted(&resample, q)
                })
                .collect();
            let mut ours: Vec<f64> = (0..draws).map(|_| direct.next(&mut rng)).collect();
            plain.sort_unstable_by(f64::total_cmp);
            ours.sort_unstable_by(f64::total_cmp);
            // Kolmogorov-Smirnov distance at every value either takes.
            let distance = plain
                .iter()
                .map(|value| {
                    let at = |set: &[f64]| set.partition_point(|x| *x <= value + 1e-12) as f64 / draws as f64;
                    (at(&plain) - at(&ours)).abs()
                })
                .fold(0.0, f64::max);
            assert!(distance < 0.014, "n {n}, q {q}: {distance}");
        }
    }
}
