//! The measurements of a plan: every turn with its place and time, pairs by round, the noise floor,
//! comparisons.

use serde::{Deserialize, Serialize};

use crate::compare::{Comparison, MIN_SAMPLES, NoiseFloor, compare, smallest_detectable};
use crate::intervals::Interval;
use crate::intervals::{IntervalEstimator, Pairing};
use crate::samples::median;
use crate::steady::{ChangePoints, Shape, SteadyState, steady_state};

/// One finished turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run<M> {
    /// Round, from 0, warm-up rounds counted first.
    pub round: usize,
    /// The variant that was run, as its place in [`Outcome::variants`]: of a twin the one that it repeats.
    #[serde(default)]
    pub of: usize,
    /// Place in the order of its round, from 0.
    pub position: usize,
    /// Seconds from the start of the plan to the start of this turn.
    pub started_seconds: f64,
    /// Seconds the whole turn took by the wall clock, set-up inside the closure included.
    pub wall_seconds: f64,
    /// The value that the closure measured.
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
    /// For the hidden half of an A/A pair, the name of the variant it repeats ("each in turn" where that changes).
    pub twin_of: Option<String>,
    /// Warm-up turns, kept for the record and part of no figure.
    pub warmup: Vec<Run<M>>,
    /// Measured turns, in order of rounds.
    pub runs: Vec<Run<M>>,
    /// Set when it failed. Values measured before the failure are kept.
    pub failure: Option<Failure>,
    /// Whether the time budget had no room for it ([`crate::interleave::Plan::fit`]): then it has no measured turn.
    #[serde(default)]
    pub left_out: bool,
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
    /// The measurements are enough ([`crate::interleave::Plan::stop_when`]).
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

    /// The noise floor of the A/A pairs for this figure: the largest of them. `None` when the plan had no
    /// twin, or too few rounds for an interval.
    pub fn noise_floor(
        &self,
        figure: impl Fn(&M) -> f64,
        estimator: &IntervalEstimator,
    ) -> Option<NoiseFloor> {
        NoiseFloor::largest(self.twins(figure, estimator).iter().map(NoiseFloor::from_interval))
    }

    /// Smallest slow-down, as a fraction, that a plan like this one would call one in about nine of ten cases, told from
    /// the A/A pairs. It is the largest of theirs. `None` as for [`Self::noise_floor`], and where no pair has [`MIN_SAMPLES`] rounds.
    pub fn smallest_detectable(
        &self,
        figure: impl Fn(&M) -> f64,
        estimator: &IntervalEstimator,
    ) -> Option<f64> {
        let twins = self.twins(figure, estimator);
        let floor = NoiseFloor::largest(twins.iter().map(NoiseFloor::from_interval));
        let told = twins.iter().filter(|ratio| ratio.n >= MIN_SAMPLES);
        told.map(|ratio| smallest_detectable(ratio, floor)).max_by(f64::total_cmp)
    }

    /// The ratio of every hidden twin to its original.
    fn twins(&self, figure: impl Fn(&M) -> f64, estimator: &IntervalEstimator) -> Vec<Interval> {
        let original =
            |twin: &Run<M>| self.variants.get(twin.of)?.runs.iter().find(|run| run.round == twin.round);
        let ratio = |twin: &VariantResult<M>| {
            let pairs =
                twin.runs.iter().filter_map(|run| Some((figure(&run.value), figure(&original(run)?.value))));
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
            estimator.median_of_ratios(&a, &b)
        };
        self.variants.iter().filter(|variant| variant.twin_of.is_some()).filter_map(ratio).collect()
    }

    /// How many of the first measured rounds were warm-up after all. They are those before the level on which the rounds end, if that
    /// is lower than the first ([`steady_state`]). A round's value is the geometric mean of its variants' figures, each relative to
    /// the variant's median. A warming machine shows in all of them. The figure must be one of which
    /// less is better. 0 where the test has too few rounds to see anything (8 at the level of 5 %). It is also 0 where
    /// more than half of the rounds would go.
    pub fn warmup_left(&self, figure: impl Fn(&M) -> f64, settings: &ChangePoints) -> usize {
        // A twin of each has figures of them all, which have no common level.
        let alive: Vec<_> =
            self.visible().filter(|variant| variant.failure.is_none() && !variant.left_out).collect();
        let rounds = alive.iter().map(|variant| variant.runs.len()).min().unwrap_or(0);
        let relative = |variant: &&VariantResult<M>| {
            let values = &variant.values(&figure)[..rounds];
            let centre = median(values).unwrap_or(f64::NAN);
            values.iter().map(|value| (value / centre).ln()).collect::<Vec<f64>>()
        };
        let logs: Vec<Vec<f64>> = alive.iter().map(relative).collect();
        let of_round = |round| (logs.iter().map(|of| of[round]).sum::<f64>() / logs.len() as f64).exp();
        let series: Vec<f64> = (0..rounds).map(of_round).collect();
        match steady_state(&series, settings) {
            SteadyState { shape: Shape::WarmUp, steady_from: Some(from), .. } if 2 * from <= rounds => from,
            _ => 0,
        }
    }

    /// Counts the first `rounds` measured rounds as warm-up: their turns are part of no figure any more.
    pub fn lengthen_warmup(&mut self, rounds: usize) {
        self.warmup_rounds = (self.warmup_rounds + rounds).min(self.order.len());
        for variant in &mut self.variants {
            let measured = variant.runs.partition_point(|run| run.round < self.warmup_rounds);
            variant.warmup.extend(variant.runs.drain(..measured));
        }
    }

    /// Compares two variants, paired by round, with the plan's own noise floor. The figure must be one of
    /// which less is better. `None` when a name is unknown.
    pub fn compare(
        &self,
        candidate: &str,
        baseline: &str,
        figure: impl Fn(&M) -> f64,
        estimator: &IntervalEstimator,
    ) -> Option<Comparison> {
        let (candidate, baseline) = (self.variant(candidate)?, self.variant(baseline)?);
        let (a, b) = self.paired(candidate, baseline, &figure);
        Some(compare(&a, &b, Pairing::Paired, self.noise_floor(figure, estimator), estimator))
    }
}
