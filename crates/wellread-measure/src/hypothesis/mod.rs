//! Tests of the hypothesis "no difference".
//!
//! [`mann_whitney`] for two independent sets, [`signed_rank`] for two sets measured round by round; both work
//! on ranks, so a single outlier cannot decide. [`yuen`] and [`yuen_paired`] are their counterparts for tables of
//! many tests, where ranks of few values can never give the small probabilities needed. All tests are two-sided.
//! [`welch`] gives the ratio of two sets of few values with its interval.
//!
//! Of 20 tests at 5 %, one is expected to be significant by chance alone: [`holm`] corrects a whole table of them.

mod trimmed;

pub(crate) use trimmed::{Welch, moments};
pub use trimmed::{welch, yuen, yuen_paired};

use serde::{Deserialize, Serialize};

use crate::normal;
use crate::rng::Rng;

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// Which test.
    pub test: TestKind,
    /// Two-sided probability of a difference at least this large if there were none.
    pub p_value: f64,
    /// Effect size between 0 and 1: the probability that the first set is larger (Mann-Whitney), or the share
    /// of rank sum in which it is (signed rank); 0.5 is no effect.
    pub effect: f64,
}

/// The kind of a test and how its probability was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestKind {
    /// Mann-Whitney U, exact distribution.
    MannWhitneyExact,
    /// Mann-Whitney U, normal approximation with corrections for ties and continuity.
    MannWhitneyNormal,
    /// Wilcoxon signed rank, all sign flips enumerated.
    SignedRankExact,
    /// Wilcoxon signed rank, random sign flips.
    SignedRankSampled,
    /// Yuen's trimmed t of logarithms.
    Yuen,
    /// Yuen's trimmed t of the logarithms of the ratios of rounds.
    YuenPaired,
}

/// Probability of a number at least this far from zero under the standard normal distribution.
pub fn two_sided_normal(z: f64) -> f64 {
    if z.is_nan() { f64::NAN } else { (2.0 * normal::cdf(-z.abs())).min(1.0) }
}

/// Probabilities of a table of tests, corrected so that the chance of even one false alarm among them stays below
/// the level they are held against (Holm 1979, <https://www.jstor.org/stable/4615733>). In the order given; NaN
/// stands for a test that could not be made and counts for nothing.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).filter(|&i| !p_values[i].is_nan()).collect();
    order.sort_by(|&i, &j| p_values[i].total_cmp(&p_values[j]));
    let mut corrected = vec![f64::NAN; p_values.len()];
    let mut largest = 0.0_f64;
    for (passed, &i) in order.iter().enumerate() {
        largest = largest.max(p_values[i] * (order.len() - passed) as f64).min(1.0);
        corrected[i] = largest;
    }
    corrected
}

/// Up to this many samples together every count below is an integer an `f64` holds exactly.
const EXACT_MANN_WHITNEY: usize = 50;
const EXACT_SIGNED_RANK: usize = 16;
const SAMPLED_FLIPS: u32 = 10_000;

/// Mann-Whitney U test of two independent sets; `None` when one is empty or holds a NaN.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<TestResult> {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|value| value.is_nan()) {
        return None;
    }
    let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
    let Ranks { ranks, tie_term } = Ranks::of(&pooled);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let u = ranks[..a.len()].iter().sum::<f64>() - n * (n + 1.0) / 2.0;
    let effect = u / (n * m);
    if tie_term == 0.0 && pooled.len() <= EXACT_MANN_WHITNEY {
        let ways = mann_whitney_ways(a.len(), b.len());
        let tail = u.min(n * m - u) as usize;
        let share = ways[..=tail].iter().sum::<f64>() / ways.iter().sum::<f64>();
        return Some(TestResult {
            test: TestKind::MannWhitneyExact,
            p_value: (2.0 * share).min(1.0),
            effect,
        });
    }
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - tie_term / (total * (total - 1.0)));
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    let p_value = if variance > 0.0 { 2.0 * normal::cdf(-distance / variance.sqrt()) } else { 1.0 };
    Some(TestResult { test: TestKind::MannWhitneyNormal, p_value: p_value.min(1.0), effect })
}

/// Number of arrangements of `n` and `m` samples for each value of U: the coefficients of the Gaussian
/// binomial, built by multiplying with `(1 - x^(m+i)) / (1 - x^i)` for `i` from 1 to `n`.
fn mann_whitney_ways(n: usize, m: usize) -> Vec<f64> {
    let mut ways = vec![0.0; n * m + 1];
    ways[0] = 1.0;
    for i in 1..=n {
        for u in (m + i..ways.len()).rev() {
            ways[u] -= ways[u - m - i];
        }
        for u in i..ways.len() {
            ways[u] += ways[u - i];
        }
    }
    ways
}

/// Wilcoxon signed-rank test of two sets measured round by round, on the logarithms of their ratios (times
/// differ by factors). `None` when the lengths differ, all rounds tie, or a value is not above zero.
/// `seed` matters above 16 rounds, where sign flips are sampled.
pub fn signed_rank(a: &[f64], b: &[f64], seed: u64) -> Option<TestResult> {
    if a.len() != b.len() || a.iter().chain(b).any(|value| !(*value > 0.0 && value.is_finite())) {
        return None;
    }
    let differences: Vec<f64> =
        a.iter().zip(b).map(|(a, b)| (a / b).ln()).filter(|difference| *difference != 0.0).collect();
    if differences.is_empty() {
        return None;
    }
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    let ranks = Ranks::of(&sizes).ranks;
    let total: f64 = ranks.iter().sum();
    let positive: f64 = ranks.iter().zip(&differences).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
    let distance = (positive - total / 2.0).abs();
    // Does a flip, one bit per round, lie at least as far from the centre?
    let as_far = |bits: &[u64]| {
        let taken = |i: usize| (bits[i / 64] >> (i % 64) & 1) as f64;
        let sum: f64 = ranks.iter().enumerate().map(|(i, rank)| taken(i) * rank).sum();
        (sum - total / 2.0).abs() >= distance - 1e-9
    };
    let n = ranks.len();
    let (test, p_value) = if n <= EXACT_SIGNED_RANK {
        let flips = 1_u64 << n;
        let far = (0..flips).filter(|bits| as_far(&[*bits])).count();
        (TestKind::SignedRankExact, far as f64 / flips as f64)
    } else {
        let mut rng = Rng::seed(seed);
        let mut words = vec![0_u64; n.div_ceil(64)];
        let far = (0..SAMPLED_FLIPS)
            .filter(|_| {
                words.fill_with(|| rng.next_u64());
                as_far(&words)
            })
            .count();
        // The observed arrangement counts as one flip, which keeps the test valid (Phipson and Smyth 2010).
        (TestKind::SignedRankSampled, (far + 1) as f64 / f64::from(SAMPLED_FLIPS + 1))
    };
    Some(TestResult { test, p_value, effect: positive / total })
}

/// Ranks from 1, ties sharing their mean rank.
pub(crate) struct Ranks {
    pub(crate) ranks: Vec<f64>,
    /// Sum of `t^3 - t` over groups of `t` equal values.
    tie_term: f64,
}

impl Ranks {
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|&i, &j| values[i].total_cmp(&values[j]));
        let mut ranks = vec![0.0; values.len()];
        let mut tie_term = 0.0;
        let mut begin = 0;
        for group in order.chunk_by(|&i, &j| values[i] == values[j]) {
            let size = group.len() as f64;
            for &i in group {
                ranks[i] = begin as f64 + f64::midpoint(size, 1.0);
            }
            tie_term += size.powi(3) - size;
            begin += group.len();
        }
        Self { ranks, tie_term }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_by_hand() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let corrected = holm(&[0.01, 0.04, f64::NAN, 0.03, 0.005]);
        let expected = [0.03, 0.06, f64::NAN, 0.06, 0.02];
        for (found, expected) in corrected.iter().zip(expected) {
            assert!(
                (found - expected).abs() < 1e-12 || (found.is_nan() && expected.is_nan()),
                "{corrected:?}"
            );
        }
        assert_eq!(holm(&[0.6, 0.7]), [1.0, 1.0]);
        assert!((two_sided_normal(-1.959_963_984_540_054) - 0.05).abs() < 1e-12);
        assert!(two_sided_normal(f64::NAN).is_nan() && two_sided_normal(0.0) == 1.0);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn mann_whitney_by_hand() {
        // All 3 below all 4: one of C(7, 3) = 35 arrangements on each side.
        let result = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 7.0]).unwrap();
        assert_eq!((result.test, result.effect), (TestKind::MannWhitneyExact, 0.0));
        assert!((result.p_value - 2.0 / 35.0).abs() < 1e-12);
        assert_eq!(mann_whitney_ways(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        // scipy.stats.mannwhitneyu([1, 2, 2, 3], [2, 3, 4, 5, 6], method="asymptotic")
        let tied = mann_whitney(&[1.0, 2.0, 2.0, 3.0], &[2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(tied.test, TestKind::MannWhitneyNormal);
        assert!((tied.p_value - 0.079_856_193_773_516_44).abs() < 1e-12, "{tied:?}");
        assert_eq!(mann_whitney(&[2.0; 5], &[2.0; 5]).unwrap().p_value, 1.0);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), None);
    }

    #[test]
    fn exact_and_normal_agree_for_many_samples() {
        let mut rng = Rng::seed(1);
        let a: Vec<f64> = (0..25).map(|_| rng.normal()).collect();
        let mut b: Vec<f64> = (0..25).map(|_| rng.normal() + 0.5).collect();
        let exact = mann_whitney(&a, &b).unwrap();
        b.push(a[0]);
        let approximate = mann_whitney(&a, &b).unwrap();
        assert_eq!(approximate.test, TestKind::MannWhitneyNormal);
        assert!((exact.p_value - approximate.p_value).abs() < 0.02, "{exact:?} {approximate:?}");
    }

    #[test]
    fn signed_rank_by_hand() {
        // Six rounds all slower: 2 of 64 sign flips are as extreme.
        let b = [1.0; 6];
        let a = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6];
        let result = signed_rank(&a, &b, 0).unwrap();
        assert_eq!((result.test, result.effect), (TestKind::SignedRankExact, 1.0));
        assert!((result.p_value - 2.0 / 64.0).abs() < 1e-12);
        // scipy.stats.wilcoxon(numpy.log([1.1, 1.2, 0.95, 1.4, 1.5, 1.6, 0.9]))
        let mixed = signed_rank(&[1.1, 1.2, 0.95, 1.4, 1.5, 1.6, 0.9], &[1.0; 7], 0).unwrap();
        assert!((mixed.p_value - 0.109_375).abs() < 1e-12, "{mixed:?}");
        assert_eq!(signed_rank(&b, &b, 0), None);
        assert_eq!(signed_rank(&a, &b[..5], 0), None);
        assert_eq!(signed_rank(&[0.0], &[1.0], 0), None);
    }

    #[test]
    fn sampled_flips_agree_with_enumeration() {
        let mut rng = Rng::seed(9);
        let b: Vec<f64> = (0..70).map(|_| (0.1 * rng.normal()).exp()).collect();
        let a: Vec<f64> = (0..70).map(|_| 1.02 * (0.1 * rng.normal()).exp()).collect();
        let exact = signed_rank(&a[..16], &b[..16], 0).unwrap();
        assert_eq!(exact.test, TestKind::SignedRankExact);
        let sampled = signed_rank(&a, &b, 0).unwrap();
        assert_eq!(sampled.test, TestKind::SignedRankSampled);
        // Normal approximation of the same statistic.
        let n = 70.0_f64;
        let total = n * (n + 1.0) / 2.0;
        let sd = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let expected = 2.0 * normal::cdf(-(sampled.effect - 0.5).abs() * total / sd);
        assert!((sampled.p_value - expected).abs() < 0.02, "{} {expected}", sampled.p_value);
    }

    #[test]
    fn false_positives_are_as_rare_as_promised() {
        let mut rng = Rng::seed(11);
        let trials = 1_000;
        let mut counts = [0, 0];
        for _ in 0..trials {
            let a: Vec<f64> = (0..10).map(|_| rng.normal().exp()).collect();
            let b: Vec<f64> = (0..10).map(|_| rng.normal().exp()).collect();
            counts[0] += usize::from(mann_whitney(&a, &b).unwrap().p_value < 0.05);
            counts[1] += usize::from(signed_rank(&a, &b, 0).unwrap().p_value < 0.05);
        }
        assert!(counts.iter().all(|&count| count <= trials * 65 / 1000), "{counts:?} of {trials}");
        assert!(counts.iter().all(|&count| count >= trials * 25 / 1000), "{counts:?} of {trials}");
    }
}
