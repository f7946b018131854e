//! All candidates measured briefly, and the promising ones at length.
//!
//! ```text
//!  candidates ─▶ screened: few rounds of all ─▶ the set as it is, the fastest, the smallest ─▶ more rounds, and cold files
//!                     └──────────────── where there is no time for more, these must do ────────────────┘
//! ```

use super::allowance::batches_of_run;
use super::candidates::Candidate;
use super::choose::ScreenedOnly;
use super::context::{NO_TIME, ROUNDS, Study};
use super::measure::{Figures, Files};
use anyhow::{Context as _, Result};
use std::collections::HashSet;
use wellread_measure::compare::MIN_SAMPLES;

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
    screened: Figures,
    /// Those that were measured again, by their numbers; none where there was no time.
    finalists: Vec<usize>,
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
        let fastest = screened.batches.best().context("no candidate could be measured")?;
        if !study.has_time_for(RUNS_OF_MEASURING, seconds_of_run(study, &screened, fastest)) {
            let screening = Self { screened, finalists: vec![], again: None };
            notes.extend(screening.not_measured(all, unwritten));
            notes.push(format!("more rounds of the fastest formats, and cold files: {NO_TIME}"));
            return Ok(screening);
        }
        let finalists = finalists(all, &screened);
        let chosen: Vec<&Candidate> = finalists.iter().map(|&i| &all[i]).collect();
        let pace = study.pace(MEASURING_SHARE, ROUNDS.1);
        let again = study.measure(("measuring formats", 5), &chosen, Files::WarmAndCold, pace)?;
        // One that was left out for want of time has no figure at all.
        let mut each = again.batches.values.iter().zip(&again.cold.values);
        let is_without_cold = each.any(|(batches, cold)| !batches.is_empty() && cold.is_empty());
        let screening = Self { screened, finalists, again: Some(again) };
        notes.extend(screening.not_measured(all, unwritten));
        if is_without_cold {
            notes.push(
                "cold files were not measured for all: their pages cannot be dropped from memory there"
                    .to_owned(),
            );
        }
        Ok(screening)
    }

    /// The figures to choose by. Without more rounds, those of screening must do.
    pub(super) fn figures(&self) -> &Figures {
        self.again.as_ref().unwrap_or(&self.screened)
    }

    /// Those that there was no time to measure further, in a study of so many seconds.
    pub(super) fn screened_only(&self, budget: f64) -> Option<ScreenedOnly> {
        let again = self.again.as_ref()?;
        let is_left =
            |at: &usize| !self.screened.batches.values[*at].is_empty() && self.index_in_rerun(*at).is_none();
        let image = |at: usize| self.screened.batches.figure(at, |s| s).value;
        let (figures, index) = self.figures_of(0)?;
        let own_image = figures.batches.figure(index, |s| s).value;
        let left: Vec<usize> = (1..self.screened.batches.values.len()).filter(is_left).collect();
        let fastest = left.iter().map(|&at| image(at)).reduce(f64::min)?;
        // The set as it is has a twin. One that had no turn takes as long as in screening.
        let own = again.turns.first().copied().flatten().unwrap_or(0.0);
        let turns = self.finalists.iter().zip(&again.turns);
        let round = own + turns.filter_map(|(&f, turn)| turn.or(self.screened.turns[f])).sum::<f64>();
        let needed = (1 + MIN_SAMPLES) as f64 * round / MEASURING_SHARE;
        Some(ScreenedOnly {
            count: left.len(),
            fastest,
            beside: Some(image(0)).filter(|seconds| seconds.is_finite()),
            own: own_image,
            budget: Some(needed).filter(|needed| *needed > budget),
        })
    }

    /// The candidates that [`Self::figures`] are of.
    pub(super) fn chosen<'c>(&self, all: &'c [Candidate]) -> Vec<&'c Candidate> {
        match self.again {
            Some(_) => self.finalists.iter().map(|&i| &all[i]).collect(),
            None => all.iter().collect(),
        }
    }

    /// The index of a candidate in the figures of more rounds, where these have one of it.
    pub(super) fn index_in_rerun(&self, candidate: usize) -> Option<usize> {
        let again = self.again.as_ref()?;
        let index = self.finalists.iter().position(|&finalist| finalist == candidate)?;
        (!again.batches.values[index].is_empty()).then_some(index)
    }

    /// The figures of a candidate and its index in them: those of more rounds where there are some. The set as it is may have
    /// no others, since it is measured again in any case.
    pub(super) fn figures_of(&self, candidate: usize) -> Option<(&Figures, usize)> {
        if let Some(index) = self.index_in_rerun(candidate) {
            return Some((self.figures(), index));
        }
        (!self.screened.batches.values[candidate].is_empty()).then_some((&self.screened, candidate))
    }

    /// Notes about candidates that failed, and one about those that there was no time for, to write or to measure.
    fn not_measured(&self, all: &[Candidate], unwritten: Vec<String>) -> Vec<String> {
        let failures = &self.screened.batches.failures;
        let mut notes = vec![];
        let mut untried = vec![];
        for (i, (candidate, failure)) in all.iter().zip(failures).enumerate() {
            match failure {
                Some(why) => notes.push(format!("{}: {why}", candidate.name())),
                None if self.figures_of(i).is_none() => untried.push(candidate.name()),
                None => {}
            }
        }
        // A way by a format's default may have become one that was not written.
        untried.extend(unwritten);
        let mut named = HashSet::new();
        untried.retain(|name| named.insert(name.clone()));
        if !untried.is_empty() {
            notes.push(format!("{NO_TIME}: {}", untried.join(", ")));
        }
        notes
    }
}

/// Seconds of a steady run with one of the candidates that these figures are of.
pub(super) fn seconds_of_run(study: &Study<'_>, figures: &Figures, at: usize) -> f64 {
    let image = figures.batches.figure(at, |s| s).value;
    batches_of_run(study.how.workers) * study.sample.batch_size as f64 * image
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

#[cfg(test)]
mod tests {
    use super::super::measure::Series;
    use super::*;
    use wellread_store::Compression;

    fn figures(batches: &[&[f64]], turns: &[Option<f64>]) -> Figures {
        let series = || Series::of(batches.iter().map(|of| of.to_vec()).collect(), 1);
        Figures { batches: series(), single: series(), cold: series(), turns: turns.to_vec() }
    }

    /// The time of screening ended before the turn of the set as it is, and that of more rounds after it.
    #[test]
    fn what_was_measured_in_more_rounds_alone_was_tried() {
        let lz4 = Some(Compression::Lz4);
        let all = [
            Candidate::sample("tiff", None),
            Candidate::sample("parquet", lz4),
            Candidate::sample("lance", lz4),
        ];
        let screening = Screening {
            screened: figures(&[&[], &[2e-5], &[]], &[None, Some(1.0), None]),
            finalists: vec![0, 1],
            again: Some(figures(&[&[1e-3, 2e-3], &[]], &[Some(1.0), None])),
        };
        let rounds = |i| screening.figures_of(i).map(|(figures, at)| (at, figures.batches.values[at].len()));
        assert_eq!([0, 1, 2].map(rounds), [Some((0, 2)), Some((1, 1)), None]);
        assert_eq!([0, 1, 2].map(|i| screening.index_in_rerun(i)), [Some(0), None, None]);
        let notes = screening.not_measured(&all, vec!["vortex (default)".to_owned()]);
        assert_eq!(notes, [format!("{NO_TIME}: {}, vortex (default)", all[2].name())]);
        // Beside the set as it is, of which more rounds alone have figures.
        let found = screening.screened_only(1000.0).unwrap();
        assert_eq!((found.count, found.fastest, found.beside), (1, 2e-5, None));
        assert!((found.own - 1.5e-3).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn those_that_were_only_screened_are_told_with_the_time_that_they_need() {
        let screened = figures(&[&[0.12], &[0.01], &[], &[0.03]], &[Some(2.0), Some(0.5), None, Some(1.5)]);
        let again = figures(&[&[0.1], &[], &[]], &[Some(4.0), None, None]);
        let mut screening = Screening { screened, finalists: vec![0, 1, 3], again: Some(again) };
        // A twin of the first, and seven rounds in a fifth of the time: (2 x 4 + 0.5 + 1.5) s x 7 x 5.
        let found = screening.screened_only(100.0).unwrap();
        assert_eq!((found.count, found.budget.map(f64::round)), (2, Some(350.0)));
        // The set as it is by both: in the same rounds, and in the later ones of the table.
        assert_eq!((found.fastest, found.beside, found.own), (0.01, Some(0.12), 0.1));
        assert_eq!(screening.screened_only(1000.0).unwrap().budget, None);
        // All of the table were measured again.
        screening.again = Some(figures(&[&[0.1], &[0.01], &[0.03]], &[Some(4.0), Some(0.5), Some(1.0)]));
        assert_eq!(screening.screened_only(100.0), None);
        screening.again = None;
        assert_eq!(screening.screened_only(100.0), None);
    }
}
