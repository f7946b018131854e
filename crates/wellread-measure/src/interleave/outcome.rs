//! What a plan measured: every turn with its place and time, pairs by round, the noise floor, comparisons.

use serde::{Deserialize, Serialize};

use crate::bootstrap::{Bootstrap, Pairing};
use crate::compare::{Comparison, NoiseFloor, compare};

/// One finished turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run<M> {
    /// Round, from 0, warm-up rounds counted first.
    pub round: usize,
    /// Place in the order of its round, from 0.
    pub position: usize,
    /// Seconds from the start of the plan to the start of this turn.
    pub started_seconds: f64,
    /// Seconds the whole turn took by the wall clock, set-up inside the closure included.
    pub wall_seconds: f64,
    /// What the closure measured.
    pub value: M,
}

/// Why a variant gave no more values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The round it failed in.
    pub round: usize,
    /// Its message, causes included.
    pub message: String,
}

/// All turns of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantResult<M> {
    /// Its name.
    pub name: String,
    /// For the hidden half of an A/A pair, the name of the variant it repeats.
    pub twin_of: Option<String>,
    /// Warm-up turns, kept for the record and part of no figure.
    pub warmup: Vec<Run<M>>,
    /// Measured turns, in order of rounds.
    pub runs: Vec<Run<M>>,
    /// Set when it failed. Values measured before the failure are kept.
    pub failure: Option<Failure>,
}

impl<M> VariantResult<M> {
    /// One figure of every measured turn, in order of rounds.
    pub fn values(&self, figure: impl Fn(&M) -> f64) -> Vec<f64> {
        self.runs.iter().map(|run| figure(&run.value)).collect()
    }
}

/// Why a plan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// Every round asked for was run.
    RoundsDone,
    /// What was measured is enough ([`crate::interleave::Plan::stop_when`]).
    Enough,
    /// The next round would have gone over the time budget.
    TimeBudget,
    /// No variant was left that had not failed.
    AllFailed,
    /// The progress callback asked for it.
    Asked,
}

/// Everything a plan measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome<M> {
    /// One entry per variant in the order added; hidden twins last.
    pub variants: Vec<VariantResult<M>>,
    /// For every round begun, the indices into `variants` in the order they ran.
    pub order: Vec<Vec<usize>>,
    /// How many of those rounds were warm-up.
    pub warmup_rounds: usize,
    /// Seed of the orders.
    pub seed: u64,
    /// Seconds from beginning to end.
    pub wall_seconds: f64,
    /// Why it ended.
    pub stopped: Stopped,
}

impl<M> Outcome<M> {
    /// The variants a user named: all but the hidden twins.
    pub fn visible(&self) -> impl Iterator<Item = &VariantResult<M>> {
        self.variants.iter().filter(|variant| variant.twin_of.is_none())
    }

    /// The visible variant of this name.
    pub fn variant(&self, name: &str) -> Option<&VariantResult<M>> {
        self.visible().find(|variant| variant.name == name)
    }

    /// Number of measured rounds begun.
    pub fn measured_rounds(&self) -> usize {
        self.order.len() - self.warmup_rounds
    }

    /// One figure of two variants in the rounds that both finished, paired by round.
    pub fn paired(
        &self,
        a: &VariantResult<M>,
        b: &VariantResult<M>,
        figure: impl Fn(&M) -> f64,
    ) -> (Vec<f64>, Vec<f64>) {
        let find = |round| b.runs.iter().find(|run| run.round == round);
        a.runs
            .iter()
            .filter_map(|run| find(run.round).map(|other| (figure(&run.value), figure(&other.value))))
            .unzip()
    }

    /// What the A/A pairs show for this figure: the largest floor of them. `None` when the plan had no twin,
    /// or too few rounds for an interval.
    pub fn noise_floor(&self, figure: impl Fn(&M) -> f64, settings: &Bootstrap) -> Option<NoiseFloor> {
        NoiseFloor::largest(self.variants.iter().filter_map(|twin| {
            let original = self.variant(twin.twin_of.as_deref()?)?;
            let (a, b) = self.paired(twin, original, &figure);
            let ratio = settings.median_of_ratios(&a, &b)?;
            Some(NoiseFloor::from_interval(&ratio))
        }))
    }

    /// Compares two variants, paired by round, with the plan's own noise floor. The figure must be one of
    /// which less is better. `None` when a name is unknown.
    pub fn compare(
        &self,
        candidate: &str,
        baseline: &str,
        figure: impl Fn(&M) -> f64,
        settings: &Bootstrap,
    ) -> Option<Comparison> {
        let (candidate, baseline) = (self.variant(candidate)?, self.variant(baseline)?);
        let (a, b) = self.paired(candidate, baseline, &figure);
        Some(compare(&a, &b, Pairing::Paired, self.noise_floor(figure, settings), settings))
    }
}
