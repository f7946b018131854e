//! The standard normal distribution, for intervals and large-sample tests, and Student's beside it.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

/// Probability of a standard normal number below `z`.
pub(crate) fn cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// The `z` below which a standard normal number falls with probability `p`; infinite at 0 and 1.
///
/// Starts from Abramowitz and Stegun 26.2.23 (error below 4.5e-4) and refines by Halley's method, whose
/// error falls with the cube. Three steps reach the precision of [`cdf`].
pub(crate) fn quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    // The lower tail, where small probabilities keep their digits.
    let tail = p.min(1.0 - p);
    let t = (-2.0 * tail.ln()).sqrt();
    let mut z = (2.515_517 + t * (0.802_853 + t * 0.010_328))
        / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)))
        - t;
    for _ in 0..3 {
        let error = (cdf(z) - tail) * TAU.sqrt() * (0.5 * z * z).exp();
        z -= error / (1.0 + 0.5 * z * error);
    }
    if p < 0.5 { z } else { -z }
}

/// The `t` below which a number of Student's distribution falls with probability `p`. From 5 degrees of freedom on,
/// it is the expansion of Abramowitz and Stegun 26.7.5, within 0.2 % for the usual `p`. Below, where that is too
/// small, it is found by halving.
pub(crate) fn student_quantile(p: f64, degrees: f64) -> f64 {
    if degrees < 5.0 {
        let tails = 2.0 * p.min(1.0 - p);
        let (mut low, mut high) = (0.0, 1e6);
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            *(if student_two_sided(middle, degrees) > tails { &mut low } else { &mut high }) = middle;
        }
        return if p < 0.5 { -low } else { low };
    }
    let z = quantile(p);
    let square = z * z;
    let terms = [
        z * (square + 1.0) / 4.0,
        z * ((5.0 * square + 16.0) * square + 3.0) / 96.0,
        z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0,
        z * ((((79.0 * square + 776.0) * square + 1482.0) * square - 1920.0) * square - 945.0) / 92_160.0,
    ];
    // Horner's rule in 1 / degrees.
    z + terms.iter().rev().fold(0.0, |sum, term| (sum + term) / degrees)
}

/// Probability that a number of Student's distribution is at least `t` from zero. It is the regularised incomplete beta
/// function of `degrees / (degrees + t^2)`, by its continued fraction (Numerical Recipes, chapter 6.4).
pub(crate) fn student_two_sided(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return f64::NAN;
    }
    let x = degrees / (degrees + t * t);
    let (a, b) = (degrees / 2.0, 0.5);
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side of the mean of the distribution only.
    if x < (a + 1.0) / (a + b + 2.0) {
        (front * beta_fraction(a, b, x) / a).min(1.0)
    } else {
        (1.0 - front * beta_fraction(b, a, 1.0 - x) / b).max(0.0)
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let held = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / held(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / held(1.0 + term * d);
            c = held(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_from_tables() {
        let table = [
            (1.0, 12.706_20),
            (2.0, 4.302_65),
            (5.0, 2.570_58),
            (9.0, 2.262_16),
            (29.0, 2.045_23),
            (1e9, 1.959_96),
        ];
        for (degrees, expected) in table {
            assert!((student_quantile(0.975, degrees) / expected - 1.0).abs() < 2e-3, "{degrees}");
            assert!((student_quantile(0.025, degrees) + student_quantile(0.975, degrees)).abs() < 1e-12);
        }
    }

    #[test]
    fn student_tails() {
        // scipy.stats.t.sf(t, df) * 2
        let tails = [
            (2.0, 3.0, 0.139_325_968_558_843_05),
            (0.1, 12.0, 0.921_995_570_456_825_8),
            (5.5, 4.7, 0.003_288_300_697_594_293),
            (12.0, 6.0, 2.030_740_619_537_319_2e-5),
        ];
        for (t, degrees, expected) in tails {
            let found = student_two_sided(t, degrees);
            assert!((found / expected - 1.0).abs() < 1e-9, "{t} {degrees}: {found}");
        }
        assert_eq!((student_two_sided(0.0, 4.0), student_two_sided(-1e9, 40.0)), (1.0, 0.0));
        assert!(student_two_sided(f64::NAN, 4.0).is_nan() && student_two_sided(1.0, 0.0).is_nan());
    }

    #[test]
    fn known_values_and_inverse() {
        assert!((cdf(1.959_963_984_540_054) - 0.975).abs() < 1e-14);
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!((quantile(0.5)).abs() < 1e-12);
        assert!((quantile(1e-10) + 6.361_340_902_404_056).abs() < 1e-9);
        for i in 1..1000 {
            let p = f64::from(i) / 1000.0;
            assert!((cdf(quantile(p)) - p).abs() < 1e-13, "{p}");
        }
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(quantile(1.0), f64::INFINITY);
    }
}
