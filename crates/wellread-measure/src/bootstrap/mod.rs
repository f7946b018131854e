//! Bootstrap intervals: how far a figure could have come out otherwise.
//!
//! [`Bootstrap`] resamples what was measured, with replacement, and takes the spread of the recomputed
//! figure. It assumes no distribution, which suits timings: they are skewed and have outliers. The same seed
//! gives the same interval on every machine.
//!
//! | figure | function | method |
//! |---|---|---|
//! | median, any percentile | [`Bootstrap::median`], [`Bootstrap::percentile`] | percentile interval, drawn without resampling (below) |
//! | mean | [`Bootstrap::mean`] | BCa |
//! | median over median | [`Bootstrap::ratio_of_medians`], independent or by round | percentile interval |
//! | median of the ratios of rounds | [`Bootstrap::median_of_ratios`] | percentile interval |
//! | anything, of batches within rounds | [`Bootstrap::clustered`] | percentile interval over whole rounds |
//!
//! **Medians.** The jackknife behind BCa is inconsistent for medians, and the plain percentile interval is
//! known to do well there (Efron and Tibshirani 1993, chapters 11 and 13). A resample's order statistics can
//! be drawn directly: sorted uniform numbers have Beta-distributed order statistics, and mapping each through
//! the sorted sample gives exactly the order statistic that resampling would give. A resample then costs two
//! Gamma draws instead of `n` draws and a selection, whatever `n`.
//!
//! **Few samples.** Resampling understates spread by a factor of about `sqrt((n - 1) / n)` and knows nothing of
//! the spread itself being estimated, so plain percentile intervals of few samples are too short. All intervals
//! here take their percentiles further out to make up for both: at `Φ(sqrt(n / (n - 1)) t)` instead of at 2.5 %,
//! `t` being that percentile of Student's distribution (Hesterberg 2015, "expanded percentile",
//! <https://doi.org/10.1080/00031305.2015.1089789>). The widest interval that resampling can give is from the
//! smallest to the largest sample, and that covers the true median with probability `1 - 2^(1-n)`: below 95 %
//! until `n` is 6. Intervals of fewer samples are given, being the best there is, but [`mod@crate::compare`]
//! draws no verdict from them. Ratios of two independent medians are the exception: resampling overstates the spread
//! of each median by more than the few samples understate it, and their percentiles, taken 0.975 times as far
//! out as plain ones, cover 94-97 % from 7 samples on, whatever the tails. Of rounds measured in turns, [`Bootstrap::median_of_ratios`] is the better figure: drift that a round
//! shares cancels, where the ratio of medians covers 98 % and more by being too wide. Simulated coverage is in
//! `tests/it/coverage.rs`.
//!
//! BCa (bias-corrected and accelerated): Efron 1987, <https://doi.org/10.1080/01621459.1987.10478410>.

mod draw;

use serde::{Deserialize, Serialize};

use draw::{OrderStatistics, Ranked};

use crate::normal;
use crate::rng::Rng;
use crate::samples::{mean, median, percentile_of_sorted};

/// How far out the percentiles of a ratio of two independent medians are taken, against those of a normal
/// distribution: found by simulation (module text).
const TWO_MEDIANS: f64 = 0.975;

/// A figure with the interval that holds its true value with the stated confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The figure computed from the samples themselves.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence, for example 0.95.
    pub confidence: f64,
    /// Number of independent units resampled (samples, pairs of a round, or clusters; of two unpaired sets
    /// the smaller).
    pub n: usize,
    /// How the ends were found.
    pub method: Method,
}

/// How the ends of an [`Interval`] were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Percentiles of the resampled figure.
    Percentile,
    /// Bias-corrected and accelerated percentiles.
    Bca,
}

/// Whether two sets of samples were measured round by round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairing {
    /// The i-th samples of both sets share a round, so drift of the machine is common to them.
    Paired,
    /// Independent sets, perhaps of different sizes.
    Unpaired,
}

impl Interval {
    /// Whether `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The settings of a bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// Number of resamples, at least 100.
    pub resamples: usize,
    /// Confidence in `(0, 1)`.
    pub confidence: f64,
    /// Seed of the resampling.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 2_000, confidence: 0.95, seed: 0 }
    }
}

impl Bootstrap {
    /// The default settings (2,000 resamples, 95 %) with a seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Interval of the median. `None` of fewer than two samples, or when one is not finite: as everywhere below.
    pub fn median(&self, samples: &[f64]) -> Option<Interval> {
        self.percentile(samples, 0.5)
    }

    /// Interval of the percentile `q` in `[0, 1]`. Whether there are enough samples for that percentile is
    /// for the caller to ask of [`crate::samples::enough_for`].
    pub fn percentile(&self, samples: &[f64], q: f64) -> Option<Interval> {
        let draw = OrderStatistics::new(usable(samples)?, q);
        let mut rng = Rng::seed(self.seed);
        let replicates = self.replicates(|| draw.next(&mut rng))?;
        Some(self.percentile_interval(draw.estimate(), replicates, samples.len()))
    }

    /// Interval of the mean (BCa).
    pub fn mean(&self, samples: &[f64]) -> Option<Interval> {
        let samples = usable(samples)?;
        let n = samples.len();
        let estimate = mean(samples)?;
        let mut rng = Rng::seed(self.seed);
        let replicates = self.replicates(|| (0..n).map(|_| samples[rng.below(n)]).sum::<f64>() / n as f64)?;
        // Leaving a sample out moves the mean in proportion to its distance from it.
        let acceleration = acceleration(samples.iter().map(|sample| sample - estimate));
        Some(self.bca_interval(estimate, replicates, acceleration, n))
    }

    /// Interval of a figure of samples that come in groups (the batches of each round, the runs of each
    /// process): whole groups are resampled and pooled. Samples of one group resemble each other; to resample
    /// them one by one would claim a precision that is not there.
    pub fn clustered(&self, groups: &[&[f64]], figure: impl Fn(&[f64]) -> f64) -> Option<Interval> {
        if groups.len() < 2 || groups.iter().any(|group| group.is_empty()) {
            return None;
        }
        let mut pool = groups.concat();
        let estimate = Some(figure(usable(&pool)?)).filter(|value| value.is_finite())?;
        let mut rng = Rng::seed(self.seed);
        let replicates = self.replicates(|| {
            pool.clear();
            (0..groups.len()).for_each(|_| pool.extend_from_slice(groups[rng.below(groups.len())]));
            figure(&pool)
        })?;
        Some(self.percentile_interval(estimate, replicates, groups.len()))
    }

    /// Interval of `median(numerator) / median(denominator)`. All values must be positive. Paired sets must
    /// have equal lengths: whole rounds are then resampled, so what a slow moment did to both cancels.
    pub fn ratio_of_medians(
        &self,
        numerator: &[f64],
        denominator: &[f64],
        pairing: Pairing,
    ) -> Option<Interval> {
        let (a, b) = (positive(numerator)?, positive(denominator)?);
        let estimate = median(a)? / median(b)?;
        let mut rng = Rng::seed(self.seed);
        let replicates = match pairing {
            Pairing::Unpaired => {
                let (draw_a, draw_b) = (OrderStatistics::new(a, 0.5), OrderStatistics::new(b, 0.5));
                self.replicates(|| draw_a.next(&mut rng) / draw_b.next(&mut rng))?
            }
            Pairing::Paired if a.len() != b.len() => return None,
            Pairing::Paired => {
                let n = a.len();
                let (ranked_a, ranked_b) = (Ranked::new(a), Ranked::new(b));
                let mut times_drawn = vec![0_u32; n];
                self.replicates(|| {
                    times_drawn.fill(0);
                    (0..n).for_each(|_| times_drawn[rng.below(n)] += 1);
                    ranked_a.median(&times_drawn) / ranked_b.median(&times_drawn)
                })?
            }
        };
        let n = a.len().min(b.len());
        let tail = match pairing {
            Pairing::Unpaired => {
                normal::cdf(TWO_MEDIANS * normal::quantile((1.0 - self.valid_confidence()) / 2.0))
            }
            Pairing::Paired => self.expanded_tail(n),
        };
        Some(self.interval_between(estimate, replicates, tail, n))
    }

    /// Interval of the median of `numerator[i] / denominator[i]` over rounds: where the machine drifts, this
    /// is tighter than the ratio of medians, because drift common to a round cancels before anything else is
    /// done. Equal lengths, all values positive.
    pub fn median_of_ratios(&self, numerator: &[f64], denominator: &[f64]) -> Option<Interval> {
        let (a, b) = (positive(numerator)?, positive(denominator)?);
        if a.len() != b.len() {
            return None;
        }
        let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
        self.median(&ratios)
    }

    /// The figure to compare two sets by: the median of the ratios of rounds where they were measured in turns, else
    /// the ratio of their medians.
    pub fn ratio(&self, numerator: &[f64], denominator: &[f64], pairing: Pairing) -> Option<Interval> {
        match pairing {
            Pairing::Paired => self.median_of_ratios(numerator, denominator),
            Pairing::Unpaired => self.ratio_of_medians(numerator, denominator, pairing),
        }
    }

    /// The figure of every resample; `None` when one is not finite.
    fn replicates(&self, mut next: impl FnMut() -> f64) -> Option<Vec<f64>> {
        (0..self.resamples.max(100)).map(|_| Some(next()).filter(|value| value.is_finite())).collect()
    }

    fn percentile_interval(&self, estimate: f64, replicates: Vec<f64>, n: usize) -> Interval {
        self.interval_between(estimate, replicates, self.expanded_tail(n), n)
    }

    fn interval_between(&self, estimate: f64, mut replicates: Vec<f64>, tail: f64, n: usize) -> Interval {
        replicates.sort_unstable_by(f64::total_cmp);
        Interval {
            estimate,
            low: percentile_of_sorted(&replicates, tail),
            high: percentile_of_sorted(&replicates, 1.0 - tail),
            confidence: self.valid_confidence(),
            n,
            method: Method::Percentile,
        }
    }

    fn bca_interval(&self, estimate: f64, mut replicates: Vec<f64>, acceleration: f64, n: usize) -> Interval {
        let tail = self.expanded_tail(n);
        replicates.sort_unstable_by(f64::total_cmp);
        let below = replicates.partition_point(|value| *value < estimate);
        let not_above = replicates.partition_point(|value| *value <= estimate);
        let count = replicates.len() as f64;
        // Ties count half; a share of 0 or 1 (all resamples on one side) would be an infinite correction.
        let share = ((below + not_above) as f64 / 2.0 / count).clamp(0.5 / count, 1.0 - 0.5 / count);
        let bias = normal::quantile(share);
        let end = |p: f64| {
            let z = bias + normal::quantile(p);
            let adjusted = normal::cdf(bias + z / (1.0 - acceleration * z));
            percentile_of_sorted(&replicates, adjusted)
        };
        let (low, high) = (end(tail), end(1.0 - tail));
        Interval { estimate, low, high, confidence: self.valid_confidence(), n, method: Method::Bca }
    }

    fn valid_confidence(&self) -> f64 {
        if self.confidence.is_nan() { 0.95 } else { self.confidence.clamp(0.01, 0.999) }
    }

    /// Probability left outside on either side, taken further out for small `n` (module text).
    fn expanded_tail(&self, n: usize) -> f64 {
        let tail = (1.0 - self.valid_confidence()) / 2.0;
        let n = n as f64;
        normal::cdf((n / (n - 1.0)).sqrt() * normal::student_quantile(tail, n - 1.0))
    }
}

/// At least two samples, all finite.
fn usable(samples: &[f64]) -> Option<&[f64]> {
    (samples.len() >= 2 && samples.iter().all(|value| value.is_finite())).then_some(samples)
}

/// At least two samples, all finite and above zero.
fn positive(samples: &[f64]) -> Option<&[f64]> {
    usable(samples).filter(|samples| samples.iter().all(|value| *value > 0.0))
}

/// BCa's acceleration from the influence of each sample: a sixth of their skewness.
fn acceleration(influences: impl Iterator<Item = f64>) -> f64 {
    let (squares, cubes) =
        influences.fold((0.0, 0.0), |(squares, cubes), x| (squares + x * x, cubes + x * x * x));
    if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    const SETTINGS: Bootstrap = Bootstrap { resamples: 4_000, confidence: 0.95, seed: 7 };

    #[test]
    fn same_seed_same_interval() {
        let samples: Vec<f64> = (0..50).map(|i| f64::from(i * i % 37)).collect();
        assert_eq!(SETTINGS.median(&samples), SETTINGS.median(&samples));
        assert_ne!(SETTINGS.mean(&samples), Bootstrap::seeded(8).mean(&samples));
    }

    #[test]
    fn mean_agrees_with_theory() {
        let mut rng = Rng::seed(2);
        let samples: Vec<f64> = (0..400).map(|_| 10.0 + rng.normal()).collect();
        let interval = SETTINGS.mean(&samples).unwrap();
        // Standard error 1 / sqrt(400): the interval is 2 * 1.96 * 0.05 wide.
        assert!((interval.high - interval.low - 0.196).abs() < 0.03, "{interval:?}");
        assert_eq!((interval.method, interval.n), (Method::Bca, 400));
    }

    #[test]
    fn skew_moves_bca_upwards() {
        let samples: Vec<f64> = (0..30).map(|i| if i == 0 { 50.0 } else { f64::from(i % 5) }).collect();
        let bca = SETTINGS.mean(&samples).unwrap();
        let plain = {
            let mut rng = Rng::seed(SETTINGS.seed);
            let n = samples.len();
            let replicates = SETTINGS
                .replicates(|| (0..n).map(|_| samples[rng.below(n)]).sum::<f64>() / n as f64)
                .unwrap();
            SETTINGS.percentile_interval(bca.estimate, replicates, n)
        };
        assert!(bca.low > plain.low && bca.high > plain.high, "{bca:?} {plain:?}");
    }

    #[test]
    fn pairing_cancels_shared_drift() {
        let mut rng = Rng::seed(4);
        let drift: Vec<f64> = (0..30).map(|_| (0.5 * rng.normal()).exp()).collect();
        let a: Vec<f64> = drift.iter().map(|d| 0.9 * d * (0.01 * rng.normal()).exp()).collect();
        let b: Vec<f64> = drift.iter().map(|d| d * (0.01 * rng.normal()).exp()).collect();
        let width = |interval: Interval| interval.high - interval.low;
        let unpaired = width(SETTINGS.ratio_of_medians(&a, &b, Pairing::Unpaired).unwrap());
        let paired = width(SETTINGS.ratio_of_medians(&a, &b, Pairing::Paired).unwrap());
        let of_ratios = SETTINGS.median_of_ratios(&a, &b).unwrap();
        assert!(paired < unpaired / 4.0, "{paired} {unpaired}");
        assert!(width(of_ratios) < unpaired / 10.0 && of_ratios.contains(0.9), "{of_ratios:?}");
    }

    #[test]
    fn clusters_are_wider_than_their_samples() {
        // 10 rounds, each with its own level: 1,000 batches are worth 10, not 1,000.
        let mut rng = Rng::seed(6);
        let rounds: Vec<Vec<f64>> = (0..10)
            .map(|_| {
                let level = 1.0 + 0.1 * rng.normal();
                (0..100).map(|_| level + 0.01 * rng.normal()).collect()
            })
            .collect();
        let groups: Vec<&[f64]> = rounds.iter().map(Vec::as_slice).collect();
        let clustered = SETTINGS.clustered(&groups, |values| median(values).unwrap()).unwrap();
        let pooled = SETTINGS.median(&rounds.concat()).unwrap();
        assert!(
            clustered.high - clustered.low > 3.0 * (pooled.high - pooled.low),
            "{clustered:?} {pooled:?}"
        );
        assert_eq!(clustered.n, 10);
    }

    #[test]
    fn nothing_is_claimed_of_bad_or_too_few_values() {
        assert_eq!(SETTINGS.median(&[]), None);
        assert_eq!(SETTINGS.median(&[1.0]), None);
        assert_eq!(SETTINGS.mean(&[1.0, f64::NAN]), None);
        assert_eq!(SETTINGS.ratio_of_medians(&[1.0, 2.0], &[0.0, 1.0], Pairing::Unpaired), None);
        assert_eq!(SETTINGS.ratio_of_medians(&[1.0, 2.0], &[1.0, 1.0, 1.0], Pairing::Paired), None);
        assert_eq!(SETTINGS.median_of_ratios(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(SETTINGS.clustered(&[&[1.0]], |values| values[0]), None);
        assert_eq!(SETTINGS.clustered(&[&[1.0], &[]], |values| values[0]), None);
        let constant = SETTINGS.mean(&[2.0; 5]).unwrap();
        assert_eq!((constant.low, constant.estimate, constant.high), (2.0, 2.0, 2.0));
        let absurd = Bootstrap { resamples: 0, confidence: f64::INFINITY, seed: 0 };
        assert!(absurd.median(&[1.0, 2.0, 3.0]).unwrap().contains(2.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn median_interval_holds_the_median_and_stays_within_the_samples(
            samples in prop::collection::vec(1e-6_f64..1e3, 2..80), seed: u64
        ) {
            let interval = Bootstrap { resamples: 500, confidence: 0.95, seed }.median(&samples).unwrap();
            prop_assert_eq!(interval.estimate, median(&samples).unwrap());
            prop_assert!(interval.contains(interval.estimate));
            let inside = |end: f64| samples.iter().any(|s| *s <= end) && samples.iter().any(|s| *s >= end);
            prop_assert!(inside(interval.low) && inside(interval.high));
        }

        #[test]
        fn ratio_of_a_set_with_itself_by_round_is_one(samples in prop::collection::vec(1e-6_f64..1e3, 2..40)) {
            let settings = Bootstrap { resamples: 200, ..Bootstrap::default() };
            let interval = settings.ratio_of_medians(&samples, &samples, Pairing::Paired).unwrap();
            prop_assert_eq!((interval.low, interval.estimate, interval.high), (1.0, 1.0, 1.0));
        }
    }
}
