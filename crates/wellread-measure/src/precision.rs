//! How many repeats are enough: until the interval of the median is as narrow as wanted.
//!
//! [`Precision::is_reached`] is asked while a plan runs ([`crate::interleave::Plan::stop_when`]). To look after every
//! round and stop at the first success would favour intervals that are narrow by luck. So it looks only when the number
//! of samples has grown by a quarter since the last look, beginning at [`MIN_SAMPLES`]. The first two thirds of the
//! samples must be enough too: 95 % intervals then still cover about 93 % (simulated in `tests/it`).

use crate::intervals::{Interval, IntervalEstimator};

/// Fewest samples that are ever enough.
pub const MIN_SAMPLES: usize = 10;

/// A wanted precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// Half the width of the interval as a share of the median: 0.02 is 2 %.
    pub share: f64,
}

impl Precision {
    /// Whether `n` samples are a number at which to look.
    pub fn looks_at(n: usize) -> bool {
        let mut look = MIN_SAMPLES;
        while look < n {
            look += look.div_ceil(4);
        }
        look == n
    }

    /// Half the width of an interval as a share of its estimate; infinite where that is zero.
    pub fn of(interval: &Interval) -> f64 {
        let half = (interval.high - interval.low) / 2.0;
        if interval.estimate == 0.0 { f64::INFINITY } else { half / interval.estimate.abs() }
    }

    /// Whether the median of these samples is known that well, asked at a number of samples at which to look.
    pub fn is_reached(&self, samples: &[f64], estimator: &IntervalEstimator) -> bool {
        let narrow =
            |part: &[f64]| estimator.median(part).is_some_and(|interval| Self::of(&interval) <= self.share);
        Self::looks_at(samples.len()) && narrow(samples) && narrow(&samples[..samples.len() * 2 / 3])
    }

    /// About how many samples like these would reach it: width falls with the square root of their number. `None` of
    /// samples without an interval.
    pub fn samples_needed(&self, samples: &[f64], estimator: &IntervalEstimator) -> Option<usize> {
        let interval = estimator.median(samples)?;
        let factor = (Self::of(&interval) / self.share).powi(2);
        let needed = (samples.len() as f64 * factor).ceil();
        (needed.is_finite() && needed < 1e9).then_some((needed as usize).max(MIN_SAMPLES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn looks_are_ever_further_apart() {
        let looks: Vec<usize> = (0..60).filter(|&n| Precision::looks_at(n)).collect();
        assert_eq!(looks, [10, 13, 17, 22, 28, 35, 44, 55]);
    }

    #[test]
    fn more_noise_needs_more_samples() {
        let estimator = IntervalEstimator::seeded(1);
        let wanted = Precision { share: 0.01 };
        let run = |sigma: f64| {
            let mut rng = Rng::seed(9);
            let mut samples = Vec::new();
            while !wanted.is_reached(&samples, &estimator) {
                assert!(samples.len() < 10_000);
                samples.push((sigma * rng.normal()).exp());
            }
            samples.len()
        };
        let (quiet, noisy) = (run(0.005), run(0.05));
        assert_eq!(quiet, MIN_SAMPLES);
        assert!((80..800).contains(&noisy), "{noisy}");
        let mut rng = Rng::seed(9);
        let few: Vec<f64> = (0..20).map(|_| (0.05 * rng.normal()).exp()).collect();
        let guess = wanted.samples_needed(&few, &estimator).unwrap();
        assert!((40..1_000).contains(&guess), "{guess}");
        assert_eq!(wanted.samples_needed(&[1.0], &estimator), None);
        assert_eq!(wanted.samples_needed(&[0.0; 9], &estimator), None);
    }
}
