//! One alternative beside another: a ratio of times, and the word for it.
//!
//! ```text
//!  rounds of both ─▶ PairedComparison: ratio, verdict ─▶ told: no difference where equality is shown, else no verdict
//! ```

use crate::stages::Figure;
use serde::Serialize;
use std::fmt;
use wellread_measure::compare::{DEFAULT_THRESHOLD, Verdict, is_alike};

/// One alternative beside the best.
#[derive(Clone, Copy, Debug)]
pub struct PairedComparison {
    /// Its time over that of the best, with the interval.
    pub ratio: Option<Figure>,
    /// Slower than the best, no difference shown, too few data.
    pub verdict: Verdict,
}

impl PairedComparison {
    /// The word that a user reads. That no difference is shown does not show that there is none: noise hides large ones.
    pub fn told(&self) -> SpeedVerdict {
        match self.verdict {
            Verdict::Faster => SpeedVerdict::Faster,
            Verdict::Slower => SpeedVerdict::Slower,
            Verdict::TooFewData => SpeedVerdict::TooFewData,
            Verdict::NoDifference => {
                let ends = self.ratio.and_then(|ratio| ratio.low.zip(ratio.high));
                let is_same = ends.is_some_and(|(low, high)| is_alike(low, high, DEFAULT_THRESHOLD));
                if is_same { SpeedVerdict::NoDifference } else { SpeedVerdict::NoVerdict }
            }
        }
    }
}

/// The word for the time of one alternative beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeedVerdict {
    /// It takes less, beyond interval and noise.
    Faster,
    /// It takes more, beyond interval and noise.
    Slower,
    /// The whole interval lies within 5 % of 1.
    NoDifference,
    /// The interval holds 1 or reaches into the noise, and beyond 5 %.
    NoVerdict,
    /// Not enough rounds to say anything.
    TooFewData,
}

impl fmt::Display for SpeedVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference",
            Self::NoVerdict => "no verdict",
            Self::TooFewData => "too few data",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ratio of 2.50 (1.78 to 3.85) was "no difference" where the noise floor was larger.
    #[test]
    fn no_difference_needs_an_interval_about_one() {
        let told = |verdict, value: f64, ends: Option<(f64, f64)>| {
            let ratio = Figure { value, low: ends.map(|(low, _)| low), high: ends.map(|(_, high)| high) };
            PairedComparison { ratio: Some(ratio), verdict }.told()
        };
        let undecided = |low, high| told(Verdict::NoDifference, 1.0, Some((low, high)));
        assert_eq!(told(Verdict::NoDifference, 2.5, Some((1.78, 3.85))), SpeedVerdict::NoVerdict);
        assert_eq!(undecided(0.97, 1.06), SpeedVerdict::NoVerdict);
        assert_eq!(undecided(0.94, 1.04), SpeedVerdict::NoVerdict);
        assert_eq!(undecided(0.96, 1.04), SpeedVerdict::NoDifference);
        assert_eq!(told(Verdict::NoDifference, 1.0, None), SpeedVerdict::NoVerdict);
        assert_eq!(told(Verdict::Slower, 1.03, Some((1.01, 1.04))), SpeedVerdict::Slower);
        assert_eq!(told(Verdict::Faster, 0.5, Some((0.4, 0.6))), SpeedVerdict::Faster);
        assert_eq!(told(Verdict::TooFewData, 1.0, Some((1.0, 1.0))), SpeedVerdict::TooFewData);
        assert_eq!(serde_json::json!(SpeedVerdict::NoVerdict), "no_verdict");
        assert_eq!(SpeedVerdict::NoVerdict.to_string(), "no verdict");
    }
}
