//! Yuen's test: Welch's t with trimmed means and winsorised variances, on logarithms.
//!
//! A rank test of seven values against seven can give no probability below 2 / 3432. So a table of a hundred rows
//! could show nothing, once it is corrected for its hundred tests. This test has no such floor, and a fifth of the
//! values at either end may be anything (Yuen 1974, <https://doi.org/10.1093/biomet/61.1.165>).

use super::{Ranks, TestKind, TestResult};
use crate::normal;

/// Share of the values left out at each end.
const TRIM: f64 = 0.2;

/// A set condensed: trimmed mean, the square of its standard error, values left.
struct Trimmed {
    mean: f64,
    error: f64,
    kept: f64,
}

impl Trimmed {
    /// `None` when fewer than two values are left.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len();
        let cut = (TRIM * n as f64) as usize;
        let kept = n - 2 * cut;
        if kept < 2 {
            return None;
        }
        let mean = values[cut..n - cut].iter().sum::<f64>() / kept as f64;
        // Winsorised: a value beyond the cut counts as the last value within.
        let (low, high) = (values[cut], values[n - cut - 1]);
        for value in &mut values {
            *value = value.clamp(low, high);
        }
        let centre = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
        let kept = kept as f64;
        Some(Self { mean, error: squares / (kept * (kept - 1.0)), kept })
    }
}

/// Yuen's test of two independent sets, on the logarithms of their values (times differ by factors). `None` when a set
/// has fewer than two values, or one that is not above zero.
pub fn yuen(a: &[f64], b: &[f64]) -> Option<TestResult> {
    let (x, y) = (Trimmed::of(logarithms(a)?)?, Trimmed::of(logarithms(b)?)?);
    let welch = Welch::of([(x.mean, x.error, x.kept), (y.mean, y.error, y.kept)]);
    let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
    let (n, m) = (a.len() as f64, b.len() as f64);
    let larger = Ranks::of(&pooled).ranks[..a.len()].iter().sum::<f64>() - n * (n + 1.0) / 2.0;
    Some(TestResult {
        test: TestKind::Yuen,
        p_value: welch.p_value(),
        effect: larger / (n * m),
        freedom: welch.freedom,
    })
}

/// Yuen's test of two sets measured round by round, on the logarithms of the ratios of rounds. `None` as with
/// [`yuen`], and when the lengths differ.
pub fn yuen_paired(a: &[f64], b: &[f64]) -> Option<TestResult> {
    if a.len() != b.len() {
        return None;
    }
    let differences: Vec<f64> = logarithms(a)?.into_iter().zip(logarithms(b)?).map(|(a, b)| a - b).collect();
    let share = |wanted: fn(&&f64) -> bool| differences.iter().filter(wanted).count() as f64;
    let larger = share(|d| **d > 0.0) + share(|d| **d == 0.0) / 2.0;
    let effect = larger / differences.len() as f64;
    let set = Trimmed::of(differences)?;
    Some(TestResult {
        test: TestKind::YuenPaired,
        p_value: probability(set.mean, set.error, set.kept - 1.0),
        effect,
        freedom: set.kept - 1.0,
    })
}

/// The mean of at least two values, the square of its standard error, and their number.
pub(crate) fn moments(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (n * (n - 1.0)), n)
}

/// At least two values, all above zero.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let usable = values.len() >= 2 && values.iter().all(|value| *value > 0.0 && value.is_finite());
    usable.then(|| values.iter().map(|value| value.ln()).collect())
}

/// Welch's t of two means (1947, <https://doi.org/10.1093/biomet/34.1-2.28>).
pub(crate) struct Welch {
    /// The first mean less the second.
    pub(crate) difference: f64,
    /// Square of the difference's standard error.
    error: f64,
    /// Degrees of freedom.
    pub(crate) freedom: f64,
}

impl Welch {
    /// The statistics of two sets: each its mean, the square of the mean's standard error, and the number of
    /// values behind it.
    pub(crate) fn of([x, y]: [(f64, f64, f64); 2]) -> Self {
        let error = x.1 + y.1;
        let freedom = error.powi(2) / (x.1.powi(2) / (x.2 - 1.0) + y.1.powi(2) / (y.2 - 1.0));
        Self { difference: x.0 - y.0, error, freedom }
    }

    /// Two-sided probability of such a difference.
    pub(crate) fn p_value(&self) -> f64 {
        probability(self.difference, self.error, self.freedom)
    }

    /// How far the interval of this confidence reaches to either side of the difference.
    pub(crate) fn reach(&self, confidence: f64) -> f64 {
        if self.error < ROUNDING * ROUNDING {
            return 0.0;
        }
        normal::student_quantile(0.5 + confidence / 2.0, self.freedom) * self.error.sqrt()
    }
}

/// Values that never vary, such as sizes of files, differ by rounding at most.
const ROUNDING: f64 = 1e-12;

/// Two-sided probability of a difference with this square of its standard error.
fn probability(difference: f64, error: f64, freedom: f64) -> f64 {
    if difference.abs() < ROUNDING {
        1.0
    } else if error < ROUNDING * ROUNDING {
        0.0
    } else {
        normal::student_two_sided(difference / error.sqrt(), freedom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_scipy() {
        // scipy.stats.ttest_ind(log(a), log(b), trim=0.2, equal_var=False)
        let a = [1.0, 1.1, 1.05, 0.98, 1.2, 1.02, 3.0];
        let b = [1.3, 1.25, 1.4, 1.22, 1.31, 1.28, 1.27, 1.5];
        let found = yuen(&a, &b).unwrap();
        assert!((found.p_value - 0.007_606_904_216_439_189).abs() < 1e-9, "{found:?}");
        assert!((found.effect - 8.0 / 56.0).abs() < 1e-12, "{found:?}");
        // Five and six values are left of seven and eight.
        assert!(found.freedom > 4.0 && found.freedom < 9.0, "{found:?}");
        assert_eq!(yuen_paired(&a, &a.map(f64::sqrt)).unwrap().freedom, 4.0);
        assert_eq!(yuen(&b, &a).unwrap().p_value, found.p_value);
    }

    #[test]
    fn values_that_never_vary_and_bad_ones() {
        assert_eq!(yuen(&[4_099.0; 7], &[4_099.0; 10]).unwrap().p_value, 1.0);
        assert_eq!(yuen(&[5.0; 7], &[6.0; 7]).unwrap().p_value, 0.0);
        assert_eq!(yuen_paired(&[5.0; 7], &[6.0; 7]).unwrap().effect, 0.0);
        for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
            assert_eq!(yuen(&[1.0, 2.0, bad], &[1.0, 2.0]), None);
        }
        assert_eq!(yuen_paired(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(yuen(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn a_drift_that_rounds_share_cancels() {
        let drift: Vec<f64> = (0..12).map(|i| 1.0 + 0.3 * f64::from(i)).collect();
        let wobble = |i: usize| 1.0 + 0.004 * (i * 7 % 5) as f64;
        let a: Vec<f64> = drift.iter().enumerate().map(|(i, d)| d * wobble(i)).collect();
        let b: Vec<f64> = drift.iter().enumerate().map(|(i, d)| 1.05 * d * wobble(i + 3)).collect();
        assert!(yuen(&a, &b).unwrap().p_value > 0.3);
        assert!(yuen_paired(&a, &b).unwrap().p_value < 1e-6);
    }
}
