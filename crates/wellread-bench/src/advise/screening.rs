//! All candidates measured briefly, and the promising ones at length.
//!
//! ```text
//!  candidates ─▶ screened: few rounds of all ─▶ the set as it is, the fastest, the smallest ─▶ more rounds, and cold files
//!                     └──────────────── where there is no time for more, these must do ────────────────┘
//! ```

use super::allowance::batches_of_run;
use super::candidates::Candidate;
use super::context::{NO_TIME, ROUNDS, Study};
use super::measure::{Figures, Files};
use anyhow::{Context as _, Result};

/// Shares of the time budget.
const SCREENING_SHARE: f64 = 0.2;
const MEASURING_SHARE: f64 = 0.2;
/// Steady runs of a loader that measuring candidates consists of at least.
const RUNS_OF_MEASURING: f64 = 6.0;
/// Candidates that are measured after screening: the fastest ones, beside the set as it is and the smallest.
const FINALISTS: usize = 4;

/// The candidates of a study, measured.
pub(super) struct Screening {
    /// The figures of all, of few rounds.
    pub(super) screened: Figures,
    /// Those that were measured again, by their numbers; none where there was no time.
    pub(super) finalists: Vec<usize>,
    /// Their figures.
    again: Option<Figures>,
}

impl Screening {
    /// Measures them, and notes what was not measured; `unwritten` are ways that there was no time to write.
    ///
    /// # Errors
    /// As [`super::measure::candidates`]; none could be measured.
    pub(super) fn of(
        study: &Study<'_>,
        all: &[Candidate],
        unwritten: Vec<String>,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let refs: Vec<&Candidate> = all.iter().collect();
        let pace = study.pace(SCREENING_SHARE, ROUNDS.0);
        let screened = study.measure(("screening formats", 6), &refs, Files::Warm, pace)?;
        notes.extend(not_measured(all, &screened, unwritten));
        let fastest = screened.batches.best().context("no candidate could be measured")?;
        if !study.has_time_for(RUNS_OF_MEASURING, seconds_of_run(study, &screened, fastest)) {
            notes.push(format!("more rounds of the fastest formats, and cold files: {NO_TIME}"));
            return Ok(Self { screened, finalists: vec![], again: None });
        }
        let finalists = finalists(all, &screened);
        let chosen: Vec<&Candidate> = finalists.iter().map(|&i| &all[i]).collect();
        let pace = study.pace(MEASURING_SHARE, ROUNDS.1);
        let again = study.measure(("measuring formats", 5), &chosen, Files::WarmAndCold, pace)?;
        // One that was left out for want of time has no figure at all.
        let mut each = again.batches.values.iter().zip(&again.cold.values);
        if each.any(|(batches, cold)| !batches.is_empty() && cold.is_empty()) {
            notes.push(
                "cold files were not measured for all: their pages cannot be dropped from memory there"
                    .to_owned(),
            );
        }
        Ok(Self { screened, finalists, again: Some(again) })
    }

    /// The figures to choose by. Without more rounds, those of screening must do.
    pub(super) fn figures(&self) -> &Figures {
        self.again.as_ref().unwrap_or(&self.screened)
    }

    /// The candidates that [`Self::figures`] are of.
    pub(super) fn chosen<'c>(&self, all: &'c [Candidate]) -> Vec<&'c Candidate> {
        match self.again {
            Some(_) => self.finalists.iter().map(|&i| &all[i]).collect(),
            None => all.iter().collect(),
        }
    }
}

/// Seconds of a steady run with one of the candidates that these figures are of.
pub(super) fn seconds_of_run(study: &Study<'_>, figures: &Figures, at: usize) -> f64 {
    let image = figures.batches.figure(at, |s| s).value;
    batches_of_run(study.how.workers) * study.sample.batch_size as f64 * image
}

/// Notes about candidates that failed, and one about those that there was no time for, to write or to measure.
fn not_measured(all: &[Candidate], screened: &Figures, unwritten: Vec<String>) -> Vec<String> {
    let tries = || all.iter().zip(screened.batches.values.iter().zip(&screened.batches.failures));
    let failed = |(candidate, (_, why)): (&Candidate, (&Vec<f64>, &Option<String>))| {
        why.as_ref().map(|why| format!("{}: {why}", candidate.name()))
    };
    let left_out = |(candidate, (values, why)): (&Candidate, (&Vec<f64>, &Option<String>))| {
        (values.is_empty() && why.is_none()).then(|| candidate.name())
    };
    let mut notes: Vec<String> = tries().filter_map(failed).collect();
    let untried: Vec<String> = tries().filter_map(left_out).chain(unwritten).collect();
    if !untried.is_empty() {
        notes.push(format!("{NO_TIME}: {}", untried.join(", ")));
    }
    notes
}

/// The set as it is, the fastest of screening, and the smallest.
fn finalists(all: &[Candidate], screened: &Figures) -> Vec<usize> {
    let median = |i: usize| screened.batches.figure(i, |s| s).value;
    let mut known: Vec<usize> = (0..all.len()).filter(|&i| !screened.batches.values[i].is_empty()).collect();
    known.sort_by(|&a, &b| median(a).total_cmp(&median(b)));
    let smallest =
        known.iter().copied().min_by(|&a, &b| all[a].bytes_per_image.total_cmp(&all[b].bytes_per_image));
    let mut finalists = vec![0];
    for i in known.into_iter().take(FINALISTS).chain(smallest) {
        if !finalists.contains(&i) {
            finalists.push(i);
        }
    }
    finalists
}
