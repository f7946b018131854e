//! Intervals of figures: how far a figure could have come out otherwise.
//!
//! [`IntervalEstimator`] has the methods and their settings. It resamples where no formula gives the interval: for the ratio of two
//! medians, and for figures of the caller's own. There the recomputed figure spreads as the samples are drawn anew,
//! with replacement. The same seed gives the same interval on every machine. Medians, percentiles and means are
//! computed, and nothing is drawn. No method but the mean's assumes a distribution, which suits timings: they are skewed and have
//! outliers.
//!
//! | figure | function | method |
//! |---|---|---|
//! | median, any percentile | [`IntervalEstimator::median`], [`IntervalEstimator::percentile`] | between order statistics, by the binomial distribution |
//! | median of the ratios of rounds | [`IntervalEstimator::median_of_ratios`] | the same, of the ratios |
//! | median of batches within rounds | [`IntervalEstimator::clustered_median`] | the same, of the medians of rounds |
//! | median over median, of independent sets | [`IntervalEstimator::ratio_of_medians`] | percentile interval of resamples |
//! | a ratio, as its sets were measured ([`Pairing`]) | [`IntervalEstimator::ratio`] | that of rounds, or of independent sets |
//! | mean | [`IntervalEstimator::mean`] | Student's t, corrected for skewness |
//! | any other smooth figure | [`IntervalEstimator::bca`] | BCa |
//!
//! **Medians and percentiles.** Whether a sample lies above the median is the toss of a coin. So the ranks between
//! which the median lies follow from the binomial distribution alone. The percentile interval of resampled medians
//! approximates just that, and ends on one of the samples. With seven samples, its ends are the second smallest and the
//! second largest, and it covers 88 %. Here the ends stand between two samples, at the requested probability, which gives
//! 93-97 % from six samples on, for any tails. The methods are by Hettmansperger and Sheather 1986,
//! <https://doi.org/10.1016/0167-7152(86)90021-0>, and for other percentiles by Nyblom 1992,
//! <https://doi.org/10.1016/0167-7152(92)90076-H>. The widest interval is from the smallest to the largest sample, and
//! that covers the median with `1 - 2^(1-n)`. This is below 95 % until `n` is 6, for a 95th percentile until `n` is 72, and
//! for a 99th until it is 368 ([`IntervalEstimator::fewest_for`]). Intervals of fewer samples are given, being the best there is.
//! Their [`Interval::confidence`] is what they reach, and [`mod@crate::compare`] draws no verdict from fewer than six.
//!
//! **Why not BCa for these.** Its acceleration comes from leaving out one sample at a time, and the jackknife is inconsistent for
//! medians (Efron and Tibshirani 1993, chapter 11). For means it needs more samples than a benchmark has. It covered
//! 20 skewed values in 91 % (and see Hesterberg 2015, <https://doi.org/10.1080/00031305.2015.1089789>), where Hall's
//! correction (1992, <https://doi.org/10.1111/j.2517-6161.1992.tb01876.x>) covers 94 %.
//!
//! **Rounds.** Batches of one round resemble each other, and a few rounds resampled whole understate how far rounds differ.
//! The percentile interval of the pooled median covered 90-94 % of six or seven rounds. The medians of the rounds are
//! independent values, and the interval of their median covers 93-97 %.
//!
//! **Ratios of two independent medians** are resampled. Sorted uniform numbers have Beta-distributed order statistics.
//! Mapping each through the sorted sample gives exactly the order statistic that resampling would give, for two Gamma
//! draws at any `n`. Resampling overstates the spread of each median by more than few samples understate it. The
//! percentiles, taken 0.975 times as far out as plain ones, cover 93-97 % from six samples on, for any tails. For
//! rounds measured in turns, [`IntervalEstimator::median_of_ratios`] is the better figure: drift that a round shares cancels.
//! The ratio of medians of whole rounds, drawn anew, would be too wide there, and cover 98 % and more.
//!
//! Simulated coverage is in `tests/it/coverage.rs`.

mod bca;
mod draw;
mod ranks;

use serde::{Deserialize, Serialize};

use draw::OrderStatistics;
use ranks::lower_end;

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
    /// Confidence, for example 0.95. It is less where a median or a percentile has too few samples for that.
    pub confidence: f64,
    /// Number of independent units behind it (samples, pairs of a round, or clusters; of two unpaired sets
    /// the smaller).
    pub n: usize,
    /// How the ends were found.
    pub method: Method,
}

/// How the ends of an [`Interval`] were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Percentiles of the resampled figure.
    Percentile,
    /// Bias-corrected and accelerated percentiles.
    Bca,
    /// Between order statistics, by the binomial distribution.
    OrderStatistics,
    /// Student's t: of a mean corrected for skewness, of a ratio on logarithms.
    Student,
    /// Percentiles of resampled processes and rounds at one end at least, where that is wider than Student's t.
    HierarchicalBootstrap,
    /// Given by a result that does not say how, or recovered from such intervals.
    Given,
    /// No interval: both ends are the one value that there is.
    SingleValue,
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

/// Estimates figures with their intervals. It holds the confidence of all, and resamples and seed for those that are resampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalEstimator {
    /// Number of resamples, at least 100.
    pub resamples: usize,
    /// Confidence in `(0, 1)`.
    pub confidence: f64,
    /// Seed of the resampling; other intervals do not depend on it.
    pub seed: u64,
}

impl Default for IntervalEstimator {
    fn default() -> Self {
        Self { resamples: 2_000, confidence: 0.95, seed: 0 }
    }
}

impl IntervalEstimator {
    /// The default settings (2,000 resamples, 95 %) with a seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Interval of the median. `None` of fewer than two samples, or when one is not finite: as everywhere below.
    pub fn median(&self, samples: &[f64]) -> Option<Interval> {
        self.percentile(samples, 0.5)
    }

    /// Interval of the percentile `q` in `[0, 1]`. The caller asks [`crate::samples::enough_for`] whether there are enough samples
    /// for the percentile, and [`Self::fewest_for`] whether there are enough for the confidence.
    pub fn percentile(&self, samples: &[f64], q: f64) -> Option<Interval> {
        let mut sorted = usable(samples)?.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let last = (n - 1) as f64;
        let end = |place: f64| percentile_of_sorted(&sorted, place / last);
        Some(Interval {
            estimate: percentile_of_sorted(&sorted, q),
            low: end(lower_end(n, q, self.tail())),
            high: end(last - lower_end(n, 1.0 - q, self.tail())),
            confidence: self.reached(n, q),
            n,
            method: Method::OrderStatistics,
        })
    }

    /// Fewest samples whose interval of the percentile `q` reaches the confidence: 6 for the median, 72 for p95 and 368 for p99
    /// at 95 %. `None` for the smallest and the largest, which no number of samples encloses.
    pub fn fewest_for(&self, q: f64) -> Option<usize> {
        // All samples lie on the wider side of the percentile with this probability to the power of their number.
        let side = q.max(1.0 - q);
        (side < 1.0).then(|| ((self.tail().ln() / side.ln()).ceil() as usize).max(2))
    }

    /// The confidence that the interval of the percentile `q` of `n` samples reaches. An end that stands on the outermost
    /// sample is missed where all samples lie on one side of the percentile.
    fn reached(&self, n: usize, q: f64) -> f64 {
        if self.fewest_for(q).is_some_and(|fewest| n >= fewest) {
            return self.valid_confidence();
        }
        let missed = |side: f64| side.powf(n as f64).max(self.tail());
        (1.0 - missed(q) - missed(1.0 - q)).max(0.0)
    }

    /// Interval of the mean.
    pub fn mean(&self, samples: &[f64]) -> Option<Interval> {
        let samples = usable(samples)?;
        let n = samples.len() as f64;
        let estimate = mean(samples)?;
        let moment = |power| samples.iter().map(|sample| (sample - estimate).powi(power)).sum::<f64>();
        let deviation = (moment(2) / (n - 1.0)).sqrt();
        let error = deviation / n.sqrt();
        let skewness = if deviation > 0.0 { moment(3) / n / deviation.powi(3) } else { 0.0 };
        let t = normal::student_quantile(self.tail(), n - 1.0);
        let end = |t: f64| estimate - error * unskewed(t, skewness / n.sqrt());
        Some(Interval {
            estimate,
            low: end(-t),
            high: end(t),
            confidence: self.valid_confidence(),
            n: samples.len(),
            method: Method::Student,
        })
    }

    /// Interval of the median of samples that come in groups (the batches of each round, the runs of each process). It
    /// goes by the medians of whole groups. Samples of one group resemble each other; to take them one by one would claim a
    /// precision that is not there.
    pub fn clustered_median(&self, groups: &[&[f64]]) -> Option<Interval> {
        let estimate = median(usable(&groups.concat())?)?;
        let medians = groups.iter().map(|group| median(group)).collect::<Option<Vec<_>>>()?;
        let of_groups = self.median(&medians)?;
        // Groups of very different sizes can have a common median beyond the interval of their own.
        let (low, high) = (of_groups.low.min(estimate), of_groups.high.max(estimate));
        Some(Interval { estimate, low, high, ..of_groups })
    }

    /// Interval of `median(numerator) / median(denominator)` of two sets measured apart. All values must be positive.
    pub fn ratio_of_medians(&self, numerator: &[f64], denominator: &[f64]) -> Option<Interval> {
        let (a, b) = (positive(numerator)?, positive(denominator)?);
        let estimate = median(a)? / median(b)?;
        let mut rng = Rng::seed(self.seed);
        let (draw_a, draw_b) = (OrderStatistics::new(a, 0.5), OrderStatistics::new(b, 0.5));
        let mut replicates = self.replicates(|| draw_a.next(&mut rng) / draw_b.next(&mut rng))?;
        replicates.sort_unstable_by(f64::total_cmp);
        let tail = normal::cdf(TWO_MEDIANS * normal::quantile(self.tail()));
        Some(Interval {
            estimate,
            low: percentile_of_sorted(&replicates, tail),
            high: percentile_of_sorted(&replicates, 1.0 - tail),
            confidence: self.valid_confidence(),
            n: a.len().min(b.len()),
            method: Method::Percentile,
        })
    }

    /// Interval of the median of `numerator[i] / denominator[i]` over rounds. Where the machine drifts, this
    /// is tighter than the ratio of medians: drift common to a round cancels before anything else is
    /// done. Equal lengths, all values positive.
    pub fn median_of_ratios(&self, numerator: &[f64], denominator: &[f64]) -> Option<Interval> {
        let (a, b) = (positive(numerator)?, positive(denominator)?);
        if a.len() != b.len() {
            return None;
        }
        let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
        self.median(&ratios)
    }

    /// The figure to compare two sets by. It is the median of the ratios of rounds where they were measured in turns, else
    /// the ratio of their medians.
    pub fn ratio(&self, numerator: &[f64], denominator: &[f64], pairing: Pairing) -> Option<Interval> {
        match pairing {
            Pairing::Paired => self.median_of_ratios(numerator, denominator),
            Pairing::Unpaired => self.ratio_of_medians(numerator, denominator),
        }
    }

    /// The figure of every resample; `None` when one is not finite.
    fn replicates(&self, mut next: impl FnMut() -> f64) -> Option<Vec<f64>> {
        (0..self.resamples.max(100)).map(|_| Some(next()).filter(|value| value.is_finite())).collect()
    }

    fn valid_confidence(&self) -> f64 {
        if self.confidence.is_nan() { 0.95 } else { self.confidence.clamp(0.01, 0.999) }
    }

    /// Probability left outside on either side.
    fn tail(&self) -> f64 {
        (1.0 - self.valid_confidence()) / 2.0
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

/// The t of a mean of skewed samples that has, after Hall's transformation, the value `t`. `skewness` is that of the
/// samples divided by the square root of their number.
fn unskewed(t: f64, skewness: f64) -> f64 {
    if skewness.abs() < 1e-6 {
        return t;
    }
    3.0 / skewness * ((1.0 + skewness * (t - skewness / 6.0)).cbrt() - 1.0)
}

#[cfg(test)]
mod tests;
