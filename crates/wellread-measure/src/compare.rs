//! From two sets of samples to a word: faster, slower, no difference, or too few data.
//!
//! The rule, in full. Let `ratio` be candidate over baseline of a quantity of which less is better (seconds, bytes),
//! with its 95 % interval ([`IntervalEstimator::ratio`]). Let the noise floor be that of an A/A pair on the same machine in the
//! same run. The same variant is measured under two names (see [`crate::interleave`]):
//!
//! - fewer than [`MIN_SAMPLES`] samples on either side, or no interval: **too few data**. Three processes are
//!   enough;
//! - the whole interval below `1 / (1 + floor)`: **faster**;
//! - the whole interval above `1 + floor`: **slower**;
//! - otherwise: **no difference** shown, and [`Comparison::smallest_detectable`] says how large one would have
//!   had to be.
//!
//! The verdict never rests on a test's probability alone. With enough samples a test calls a difference of 0.01 %
//! significant, and such a difference is below what the machine reproduces. A whole table of verdicts needs a test
//! of each besides, to take back those that chance explains ([`corrected`]).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::intervals::{Interval, IntervalEstimator, Pairing};
use crate::normal::student_quantile;

/// Fewest samples a verdict may rest on: below six, no interval free of assumptions covers a median with 95 %
/// (see [`crate::intervals`]).
pub const MIN_SAMPLES: usize = 6;

/// Largest difference of what is called the same, unless another is asked for.
pub const DEFAULT_THRESHOLD: f64 = 0.05;

/// Whether a ratio is known to be about 1: its whole interval lies from `1 / (1 + threshold)` to `1 + threshold`.
pub fn is_alike(low: f64, high: f64, threshold: f64) -> bool {
    low >= 1.0 / (1.0 + threshold) && high <= 1.0 + threshold
}

/// The word for a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The candidate needs less, beyond interval and noise.
    Faster,
    /// The candidate needs more, beyond interval and noise.
    Slower,
    /// No difference that stands out of interval and noise. Whether there is none, [`is_alike`] tells.
    NoDifference,
    /// Not enough samples to say anything.
    TooFewData,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference",
            Self::TooFewData => "too few data",
        })
    }
}

/// How far two measurements of the same thing lay apart: differences up to this size mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Largest `|ln(ratio)|` inside the A/A interval.
    pub ln_ratio: f64,
    /// Rounds of the A/A pair it rests on.
    pub n: usize,
}

impl NoiseFloor {
    /// The floor that an A/A interval of a ratio shows: its end further from 1.
    pub fn from_interval(ratio: &Interval) -> Self {
        Self { ln_ratio: ratio.low.ln().abs().max(ratio.high.ln().abs()), n: ratio.n }
    }

    /// The floor of several A/A pairs: the largest.
    pub fn largest(floors: impl IntoIterator<Item = Self>) -> Option<Self> {
        floors.into_iter().max_by(|a, b| a.ln_ratio.total_cmp(&b.ln_ratio))
    }

    /// As a fraction: 0.03 means that differences of up to 3 % are noise.
    pub fn fraction(&self) -> f64 {
        self.ln_ratio.exp_m1()
    }
}

/// Two sets compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Candidate over baseline; `None` when no interval could be made.
    pub ratio: Option<Interval>,
    /// The noise floor the verdict respects; `None` when no A/A pair was measured, and the interval alone decides.
    pub noise_floor: Option<NoiseFloor>,
    /// The word.
    pub verdict: Verdict,
    /// Smallest slow-down, as a fraction, that a repetition of this measurement would call one in at least nine of
    /// ten cases: see [`smallest_detectable`].
    pub smallest_detectable: Option<f64>,
}

/// Applies the rule of the module text to a ratio of which less is better.
pub fn verdict(ratio: Option<&Interval>, noise_floor: Option<NoiseFloor>) -> Verdict {
    let Some(ratio) = ratio.filter(|ratio| ratio.n >= MIN_SAMPLES) else {
        return Verdict::TooFewData;
    };
    let floor = noise_floor.map_or(0.0, |floor| floor.ln_ratio);
    if ratio.high.ln() < -floor {
        Verdict::Faster
    } else if ratio.low.ln() > floor {
        Verdict::Slower
    } else {
        Verdict::NoDifference
    }
}

/// Where the smallest detectable slow-down is larger than this share, the measurement finds none that anybody asks for.
pub const MAX_DETECTABLE: f64 = 10.0;

/// Smallest slow-down, as a fraction, that a repetition of a measurement with this interval would find in at least
/// nine of ten cases. It is the noise floor and the whole width of the interval. Half of the width is the reach of the
/// repetition's interval below its estimate. The other half is for chance, in the estimate and in that reach. 1.28
/// standard errors, which would be enough if the reach were known, find 82-89 % (simulated in `tests/it`).
pub fn smallest_detectable(ratio: &Interval, noise_floor: Option<NoiseFloor>) -> f64 {
    smallest_detectable_among(ratio, noise_floor, 1, f64::INFINITY)
}

/// [`smallest_detectable`] of one slow row among `tests` rows, whose probabilities are corrected together ([`corrected`]). Its test
/// has to reach as far as at the level divided by their number (Holm's first step). `freedom` are the degrees of freedom of its t.
pub fn smallest_detectable_among(
    ratio: &Interval,
    noise_floor: Option<NoiseFloor>,
    tests: usize,
    freedom: f64,
) -> f64 {
    let floor = noise_floor.map_or(0.0, |floor| floor.ln_ratio);
    let half = (ratio.high / ratio.low).ln() / 2.0;
    let tail = (1.0 - ratio.confidence) / 2.0;
    let reach = |tail: f64| student_quantile(1.0 - tail, freedom);
    let longer = if tests > 1 { reach(tail / tests as f64) / reach(tail) } else { 1.0 };
    // The interval lies beyond the floor, and the test asks for any difference. Values that never vary have no `longer`.
    ((floor + half).max(half * longer) + half).exp_m1()
}

/// A verdict of a table of several: one whose test, corrected for the whole table ([`crate::hypothesis::holm`]),
/// leaves a probability above `level` is taken back. NaN takes it back too.
pub fn corrected(verdict: Verdict, p_value: f64, level: f64) -> Verdict {
    match verdict {
        Verdict::Faster | Verdict::Slower if p_value.is_nan() || p_value > level => Verdict::NoDifference,
        other => other,
    }
}

/// Compares a candidate with a baseline, both in a quantity of which less is better and all values positive.
/// Paired sets hold one value per round, in the same order.
pub fn compare(
    candidate: &[f64],
    baseline: &[f64],
    pairing: Pairing,
    noise_floor: Option<NoiseFloor>,
    estimator: &IntervalEstimator,
) -> Comparison {
    let ratio = estimator.ratio(candidate, baseline, pairing);
    let smallest_detectable = ratio.as_ref().map(|ratio| smallest_detectable(ratio, noise_floor));
    Comparison { verdict: verdict(ratio.as_ref(), noise_floor), ratio, noise_floor, smallest_detectable }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intervals::Method;
    use crate::rng::Rng;

    fn interval(low: f64, high: f64, n: usize) -> Interval {
        Interval { estimate: (low * high).sqrt(), low, high, confidence: 0.95, n, method: Method::Percentile }
    }

    #[test]
    fn one_slow_row_among_many_is_found_from_a_larger_slow_down_on() {
        let ratio = interval((-0.02_f64).exp(), 0.02_f64.exp(), 20);
        let among = |tests, freedom| smallest_detectable_among(&ratio, None, tests, freedom);
        assert!((among(1, f64::INFINITY) - 0.04_f64.exp_m1()).abs() < 1e-9);
        // 3.34 standard errors in place of 1.96.
        assert!((among(60, f64::INFINITY) - 0.055_587).abs() < 1e-4, "{}", among(60, f64::INFINITY));
        assert!(among(60, 4.0) > among(60, 30.0) && among(60, 30.0) > among(60, f64::INFINITY));
        // The interval has to lie beyond a large floor, which is more than the test asks for.
        let floor = Some(NoiseFloor { ln_ratio: 0.05, n: 20 });
        let beyond = smallest_detectable_among(&ratio, floor, 60, f64::INFINITY);
        assert!((beyond - 0.09_f64.exp_m1()).abs() < 1e-9, "{beyond}");
        assert_eq!(among(60, f64::NAN), among(1, f64::NAN));
    }

    #[test]
    fn the_rule() {
        let floor = NoiseFloor::from_interval(&interval(0.97, 1.02, 10));
        assert!((floor.fraction() - (1.0 / 0.97 - 1.0)).abs() < 1e-12);
        let floor = Some(floor);
        assert_eq!(verdict(Some(&interval(0.5, 0.9, 10)), floor), Verdict::Faster);
        assert_eq!(verdict(Some(&interval(1.1, 1.3, 10)), floor), Verdict::Slower);
        assert_eq!(verdict(Some(&interval(0.9, 1.3, 10)), floor), Verdict::NoDifference);
        // Clear of 1 but not of the noise.
        assert_eq!(verdict(Some(&interval(1.01, 1.02, 10)), floor), Verdict::NoDifference);
        assert_eq!(verdict(Some(&interval(1.01, 1.02, 10)), None), Verdict::Slower);
        assert_eq!(verdict(Some(&interval(0.1, 0.2, MIN_SAMPLES - 1)), floor), Verdict::TooFewData);
        assert_eq!(verdict(None, None), Verdict::TooFewData);
        assert_eq!(corrected(Verdict::Slower, 0.04, 0.05), Verdict::Slower);
        assert_eq!(corrected(Verdict::Slower, 0.06, 0.05), Verdict::NoDifference);
        assert_eq!(corrected(Verdict::Faster, f64::NAN, 0.05), Verdict::NoDifference);
        assert_eq!(corrected(Verdict::TooFewData, 0.9, 0.05), Verdict::TooFewData);
        assert_eq!(format!("{:>14}", Verdict::NoDifference), " no difference");
        let alike = [(0.96, 1.04), (0.95, 1.0), (1.0, 1.06), (1.78, 3.85), (f64::NAN, 1.0)];
        let alike = alike.map(|(low, high)| is_alike(low, high, DEFAULT_THRESHOLD));
        assert_eq!(alike, [true, false, false, false, false]);
    }

    #[test]
    fn planted_differences_are_found_and_absent_ones_are_not() {
        let mut rng = Rng::seed(21);
        let estimator = IntervalEstimator { resamples: 500, ..IntervalEstimator::default() };
        let trials = 200;
        let mut found = 0;
        let mut false_alarms = 0;
        for _ in 0..trials {
            let mut runs = |factor: f64, drift: &[f64]| -> Vec<f64> {
                drift.iter().map(|d| factor * d * (0.02 * rng.normal()).exp()).collect()
            };
            let drift: Vec<f64> = (0..20).map(|i| 1.0 + 0.01 * f64::from(i)).collect();
            let (a, aa, b) = (runs(1.0, &drift), runs(1.0, &drift), runs(1.10, &drift));
            let aa = estimator.median_of_ratios(&aa, &a).unwrap();
            let floor = Some(NoiseFloor::from_interval(&aa));
            let slower = compare(&b, &a, Pairing::Paired, floor, &estimator);
            let again = runs(1.0, &drift);
            let same = compare(&again, &a, Pairing::Paired, floor, &estimator);
            found += usize::from(slower.verdict == Verdict::Slower);
            false_alarms += usize::from(same.verdict != Verdict::NoDifference);
        }
        assert!(found >= trials * 9 / 10, "{found} of {trials}");
        assert!(false_alarms <= trials / 20, "{false_alarms} of {trials}");
    }

    #[test]
    fn what_is_called_detectable_is_detected() {
        let estimator = IntervalEstimator { resamples: 500, ..IntervalEstimator::default() };
        let floor = Some(NoiseFloor { ln_ratio: 0.02, n: 20 });
        for (n, pairing) in
            [(10, Pairing::Unpaired), (20, Pairing::Unpaired), (10, Pairing::Paired), (20, Pairing::Paired)]
        {
            let mut rng = Rng::seed(5);
            let mut runs =
                |factor: f64| -> Vec<f64> { (0..n).map(|_| factor * (0.05 * rng.normal()).exp()).collect() };
            let mut sizes: Vec<f64> = (0..200)
                .map(|_| {
                    compare(&runs(1.0), &runs(1.0), pairing, floor, &estimator).smallest_detectable.unwrap()
                })
                .collect();
            let size = crate::samples::median_in_place(&mut sizes).unwrap();
            let trials = 1_000;
            let found = (0..trials)
                .filter(|_| {
                    let found = compare(&runs(1.0 + size), &runs(1.0), pairing, floor, &estimator);
                    found.verdict == Verdict::Slower
                })
                .count();
            println!("{n} {pairing:?}: {found} of {trials} of size {size}");
            // Nine of ten; 878 of a thousand are left in 99 of 100 cases.
            assert!((878..=995).contains(&found), "{n} {pairing:?}: {found} of {trials} of size {size}");
        }
    }

    #[test]
    fn a_comparison_survives_json_and_bad_input() {
        let estimator = IntervalEstimator::default();
        let a: Vec<f64> = (0..8).map(|i| 1.0 + 0.01 * f64::from(i)).collect();
        let b: Vec<f64> = a.iter().map(|x| x * 2.0).collect();
        let comparison = compare(&b, &a, Pairing::Unpaired, None, &estimator);
        assert_eq!(comparison.verdict, Verdict::Slower);
        assert!(comparison.smallest_detectable.unwrap() < 0.2);
        let text = serde_json::to_string(&comparison).unwrap();
        assert!(text.contains("\"slower\""), "{text}");
        // JSON readers may lose the last bit of a number.
        let back: Comparison = serde_json::from_str(&text).unwrap();
        assert_eq!((back.verdict, back.noise_floor, back.ratio.unwrap().n), (Verdict::Slower, None, 8));
        assert!((back.smallest_detectable.unwrap() - comparison.smallest_detectable.unwrap()).abs() < 1e-12);
        let broken = compare(&[f64::NAN; 9], &a, Pairing::Paired, None, &estimator);
        assert_eq!((broken.verdict, broken.ratio), (Verdict::TooFewData, None));
    }
}
