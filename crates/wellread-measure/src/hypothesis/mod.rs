//! Tests of the hypothesis "no difference".
//!
//! [`yuen`] for two independent sets, [`yuen_paired`] for two sets measured round by round; both trim, so that a single
//! outlier cannot decide. In tables of many tests, ranks of few values could never give the small probabilities needed.
//! Both are two-sided.
//!
//! One of 20 tests at 5 % is expected to be significant by chance alone: [`holm`] corrects a whole table of them.

mod trimmed;

pub(crate) use trimmed::{Welch, moments};
pub use trimmed::{yuen, yuen_paired};

use serde::{Deserialize, Serialize};

use crate::normal;

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// Which test.
    pub test: TestKind,
    /// Two-sided probability of a difference at least this large if there were none.
    pub p_value: f64,
    /// Effect size between 0 and 1: the probability that a value of the first set is the larger one. For rounds it is the share in
    /// which it is; 0.5 is no effect.
    pub effect: f64,
    /// Degrees of freedom of its t; no number where values never vary.
    pub freedom: f64,
}

/// The kind of a test and how its probability was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestKind {
    /// Yuen's trimmed t of logarithms.
    Yuen,
    /// Yuen's trimmed t of the logarithms of the ratios of rounds.
    YuenPaired,
}

/// Probability of a number at least this far from zero under the standard normal distribution.
pub fn two_sided_normal(z: f64) -> f64 {
    if z.is_nan() { f64::NAN } else { (2.0 * normal::cdf(-z.abs())).min(1.0) }
}

/// Probabilities of a table of tests, corrected. The chance of even one false alarm among them stays below the
/// level they are held against (Holm 1979, <https://www.jstor.org/stable/4615733>). In the order given; NaN
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

/// Ranks from 1, ties sharing their mean rank.
pub(crate) struct Ranks {
    pub(crate) ranks: Vec<f64>,
}

impl Ranks {
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|&i, &j| values[i].total_cmp(&values[j]));
        let mut ranks = vec![0.0; values.len()];
        let mut begin = 0;
        for group in order.chunk_by(|&i, &j| values[i] == values[j]) {
            let size = group.len() as f64;
            for &i in group {
                ranks[i] = begin as f64 + f64::midpoint(size, 1.0);
            }
            begin += group.len();
        }
        Self { ranks }
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
    fn ties_share_their_mean_rank() {
        assert_eq!(Ranks::of(&[2.0, 1.0, 2.0, 3.0, 2.0]).ranks, [3.0, 1.0, 3.0, 5.0, 3.0]);
        assert!(Ranks::of(&[]).ranks.is_empty());
    }
}
