//! A study under way, as each of its sections needs it: the sample, its loading, and the time that is left.

use super::allowance::Batches;
use super::candidates::Candidate;
use super::measure::{self, Figures, Files, MeasureBudget};
use super::settings::Settings;
use crate::feed::{Feed, LoaderSettings, Open};
use crate::sample::Sample;
use anyhow::Result;
use std::time::Duration;
use wellread_measure::clock::Stopwatch;
use wellread_trace::{Kind, labelled};

/// Steady runs of a loader that a round of predicting consists of.
pub(super) const RUNS_OF_PREDICTING: f64 = 3.0;

/// The note about parts that were left out.
pub(super) const NO_TIME: &str = "not tried within the time (--time-budget)";

/// Rounds of screening, and of everything else at most.
pub(super) const ROUNDS: (usize, usize) = (3, 10);

/// A study under way.
pub(super) struct Study<'s> {
    /// Opens the set, or the cells of it.
    pub(super) own: &'s Open<'s>,
    /// Opens the images, of which cells may be cut out.
    pub(super) images: &'s Open<'s>,
    pub(super) settings: &'s Settings,
    pub(super) sample: Sample,
    pub(super) how: LoaderSettings,
    pub(super) progress: &'s dyn Fn(&str, usize, usize),
    pub(super) clock: Stopwatch,
    /// The batches that step times are for, and those that are measured.
    pub(super) batches: Batches,
    /// Whether what is recommended has smaller batches than usual for want of time.
    pub(super) is_cut: bool,
}

impl Study<'_> {
    /// Seconds that are left.
    pub(super) fn left(&self) -> f64 {
        (self.settings.time_budget.as_secs_f64() - self.clock.elapsed()).max(0.0)
    }

    /// The time of a section: its share, and no more than half of what is left.
    pub(super) fn pace(&self, share: f64, rounds: usize) -> MeasureBudget {
        let left = Duration::from_secs_f64(0.5 * self.left());
        MeasureBudget {
            rounds,
            budget: self.settings.time_budget.mul_f64(share).min(left),
            seed: self.settings.seed,
        }
    }

    /// Whether there is time for so many steady runs of so many seconds, and for predicting after them.
    pub(super) fn has_time_for(&self, runs: f64, run: f64) -> bool {
        (runs + RUNS_OF_PREDICTING) * run <= self.left()
    }

    /// Rows of a candidate that are the sample.
    pub(super) fn rows(&self, candidate: &Candidate) -> Vec<usize> {
        if candidate.is_own_set() { self.sample.rows.clone() } else { (0..self.sample.rows.len()).collect() }
    }

    /// A candidate's sample, loaded like this.
    pub(super) fn feed<'c>(&'c self, candidate: &'c Candidate, how: LoaderSettings) -> Feed<'c> {
        Feed::new(Box::new(|| candidate.open(self.own)), self.rows(candidate), how)
    }

    /// Measures all of these: a section of which `left` with it are to come.
    pub(super) fn measure(
        &self,
        (what, left): (&str, usize),
        candidates: &[&Candidate],
        files: Files,
        pace: MeasureBudget,
    ) -> Result<Figures> {
        let rows: Vec<_> = candidates.iter().map(|c| (*c, self.rows(c))).collect();
        let report = |n, of| (self.progress)(what, n, of);
        section(what, left, || measure::candidates(&rows, self.own, &self.how, files, pace, &report))
    }
}

/// Does a section of the study, of which `left` with it are to come, and shows it in a timeline.
pub(super) fn section<T>(name: &str, left: usize, work: impl FnOnce() -> T) -> T {
    wellread_trace::section(left);
    let _section = labelled(Kind::Section, || name.to_owned());
    work()
}
