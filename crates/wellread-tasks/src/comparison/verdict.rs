//! The comparison of two tasks: ratios with intervals and verdicts phase by phase, and the sentence about all of
//! them.

use serde::{Deserialize, Serialize};
use wellread_measure::Interval;
use wellread_measure::compare::{DEFAULT_THRESHOLD, Verdict, is_alike};

/// A ratio of times, candidate over baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// By rounds the median of their ratios, else the ratio of geometric means. Without an interval that of the medians.
    pub estimate: f64,
    /// Lower end of the 95 % interval; `None` where too few runs were made for a verdict.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl From<Interval> for Ratio {
    fn from(Interval { estimate, low, high, .. }: Interval) -> Self {
        Self { estimate, low: Some(low), high: Some(high) }
    }
}

/// One phase of two tasks compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseComparison {
    /// Name of the phase.
    pub phase: String,
    /// Whether it is a repeated phase, of which the steady state is compared.
    pub repeated: bool,
    /// Median of the baseline in seconds.
    pub baseline_seconds: f64,
    /// Median of the candidate in seconds.
    pub seconds: f64,
    /// Candidate over baseline: below 1 is faster.
    pub ratio: Ratio,
    /// Runs of the baseline and of the candidate.
    pub runs: [usize; 2],
    /// Probability of such a difference if there were none, corrected for the whole table; `None` when it was not tested.
    pub p_value: Option<f64>,
    /// The word.
    pub verdict: Verdict,
    /// Why there is no verdict; `None` when there is one.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Two tasks of an experiment compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The experiment.
    pub experiment: String,
    /// The name of the baseline.
    pub baseline: String,
    /// The name of the candidate.
    pub candidate: String,
    /// Settings in which they differ besides the branch.
    pub differs: Vec<String>,
    /// Phase by phase; repeated ones first.
    pub phases: Vec<PhaseComparison>,
    /// The change, in words.
    pub sentence: String,
    /// How far the words may be trusted.
    pub detail: String,
}

impl Comparison {
    /// A phase by name.
    pub fn phase(&self, name: &str) -> Option<&PhaseComparison> {
        self.phases.iter().find(|phase| phase.phase == name)
    }
}

impl PhaseComparison {
    /// Whether the times are known to be about alike: no difference was found, and the whole interval lies within 5 % of 1.
    pub fn is_alike(&self) -> bool {
        let (Some(low), Some(high)) = (self.ratio.low, self.ratio.high) else { return false };
        self.verdict == Verdict::NoDifference && is_alike(low, high, DEFAULT_THRESHOLD)
    }

    /// The verdict in words, those of `wellread compare`: where no difference was found, `same` or `unclear`. Too few runs have
    /// `no verdict`.
    pub fn verdict_word(&self) -> String {
        match self.verdict {
            Verdict::NoDifference if self.is_alike() => "same".to_owned(),
            Verdict::NoDifference => "unclear".to_owned(),
            Verdict::TooFewData => "no verdict".to_owned(),
            verdict => verdict.to_string(),
        }
    }
}
