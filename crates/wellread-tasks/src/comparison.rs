//! Which branch is faster than the baseline, and in which phase.
//!
//! ```text
//!  a phase of two tasks ─▶ one value per run ─▶ ratio with its 95 % interval ─▶ verdict ─▶ a sentence per branch
//! ```
//!
//! The unit is a run, a process of its own. Batches of one process resemble each other, and a thousand of them do not
//! make a second run (Kalibera and Jones, <https://doi.org/10.1145/2464157.2464160>). The value of a run is the time of a
//! single phase, or the median of the steady state of a repeated one. The rules are those of `wellread compare`:
//!
//! | runs of each | interval | verdict |
//! |---|---|---|
//! | 6 and more, both in the same rounds | median of the rounds' ratios by order statistics | yes |
//! | else 3 and more | [`nested::ratio`]: Welch's t on the logarithms, or a bootstrap over the runs where that is wider | yes |
//! | 1 or 2 | none: the ratio holds within these runs only | no |
//!
//! One phase in a table of twenty equal ones would look different by chance. So a verdict also needs a test: Yuen's of
//! rounds, Welch's of runs. The test must stay below 5 % when it is corrected for all phases of all branches (Holm).

mod sentence;
mod verdict;

pub use sentence::words;
pub use verdict::{Comparison, PhaseComparison, Ratio};

use crate::results::{Entry, Repeat};
use sentence::{PHASES, detail, sentence};
use wellread_measure::compare::{self, Verdict, compare};
use wellread_measure::hypothesis::{holm, yuen_paired};
use wellread_measure::nested::{self, MIN_PROCESSES};
use wellread_measure::samples::median;
use wellread_measure::{IntervalEstimator, Pairing};

/// Probability of a false alarm in the whole table.
const LEVEL: f64 = 0.05;

/// A task and what it is called.
pub type Named<'e> = (&'e str, &'e Entry);

/// Compares tasks with their baselines: pairs of baseline and candidate. All are one table, for which verdicts are
/// corrected.
pub fn all(pairs: &[(Named<'_>, Named<'_>)], seed: u64) -> Vec<Comparison> {
    let estimator = IntervalEstimator::seeded(seed);
    let mut tables: Vec<Vec<PhaseComparison>> = pairs
        .iter()
        .map(|((_, a), (_, b))| {
            let names = names(a, b).into_iter();
            names.filter_map(|(name, repeated)| phase(&name, repeated, a, b, &estimator)).collect()
        })
        .collect();
    correct(tables.iter_mut().flatten());
    let compared = pairs.iter().zip(tables).map(|(((baseline, a), (candidate, b)), phases)| {
        let differs = differences(a, b);
        let runs = [a.successful().count(), b.successful().count()];
        Comparison {
            experiment: b.experiment.clone(),
            baseline: (*baseline).to_owned(),
            candidate: (*candidate).to_owned(),
            sentence: sentence(candidate, baseline, &phases, [a, b]),
            detail: detail(runs, &differs),
            differs,
            phases,
        }
    });
    compared.collect()
}

/// Takes back what does not stand when all tests of the table are counted.
fn correct<'p>(phases: impl Iterator<Item = &'p mut PhaseComparison>) {
    let mut tested: Vec<&mut PhaseComparison> =
        phases.filter(|phase| phase.verdict != Verdict::TooFewData).collect();
    let found: Vec<f64> = tested.iter().map(|phase| phase.p_value.unwrap_or(f64::NAN)).collect();
    for (phase, p_value) in tested.iter_mut().zip(holm(&found)) {
        phase.p_value = Some(p_value).filter(|p| !p.is_nan());
        phase.verdict = compare::corrected(phase.verdict, p_value, LEVEL);
    }
}

/// The phases that both have: repeated ones first, in the order of [`PHASES`].
fn names(a: &Entry, b: &Entry) -> Vec<(String, bool)> {
    let of = |entry: &Entry| -> Vec<(String, bool)> {
        let mut names: Vec<(String, bool)> = Vec::new();
        for said in entry.successful().map(|repeat| &repeat.said) {
            names.extend(said.samples.iter().map(|(name, _)| (name.clone(), true)));
            names.extend(said.phases.iter().map(|(name, _)| (name.clone(), false)));
        }
        names.push(("process".to_owned(), false));
        names
    };
    let others = of(b);
    let mut common: Vec<(String, bool)> = Vec::new();
    for name in of(a) {
        if others.contains(&name) && !common.contains(&name) {
            common.push(name);
        }
    }
    let rank = |name: &str| PHASES.iter().position(|(known, _)| *known == name).unwrap_or(PHASES.len());
    common.sort_by_key(|(name, repeated)| (!repeated, rank(name)));
    common
}

/// The value of every run that has one, by its round: where a run was gone on with, rounds were added later.
fn values(entry: &Entry, name: &str, repeated: bool) -> Vec<(usize, f64)> {
    let of = |repeat: &Repeat| match (repeated, name) {
        (true, _) => median(repeat.said.samples(name)?.steady()),
        (false, "process") => repeat.wall_seconds,
        (false, _) => Some(repeat.said.phase(name)?.elapsed_seconds),
    };
    let mut values: Vec<(usize, f64)> =
        entry.successful().filter_map(|repeat| Some((repeat.repeat, of(repeat)?))).collect();
    values.sort_by_key(|(round, _)| *round);
    values
}

fn phase(
    name: &str,
    repeated: bool,
    a: &Entry,
    b: &Entry,
    estimator: &IntervalEstimator,
) -> Option<PhaseComparison> {
    let (of_a, of_b) = (values(a, name, repeated), values(b, name, repeated));
    let take = |values: &[(usize, f64)]| -> Vec<f64> { values.iter().map(|(_, value)| *value).collect() };
    let (base, new) = (take(&of_a), take(&of_b));
    let (baseline_seconds, seconds) = (median(&base)?, median(&new)?);
    // A phase that takes no time on either side has no ratio.
    if baseline_seconds <= 0.0 || seconds <= 0.0 {
        return None;
    }
    let runs = [base.len(), new.len()];
    let found = judged(&of_a, &of_b, estimator);
    let reason = match found {
        Some(_) => None,
        None if runs[0].min(runs[1]) < MIN_PROCESSES => {
            let sides = [(runs[0], "the baseline"), (runs[1], "this")];
            Some(nested::too_few_for_a_verdict(sides, ["run", "runs"]))
        }
        None => Some("no interval can be formed of these times".to_owned()),
    };
    let unjudged = Ratio { estimate: seconds / baseline_seconds, low: None, high: None };
    let (ratio, p_value, verdict) = match found {
        Some((ratio, p_value)) => (ratio, p_value, word(&ratio)),
        None => (unjudged, None, Verdict::TooFewData),
    };
    let phase = name.to_owned();
    Some(PhaseComparison {
        phase,
        repeated,
        baseline_seconds,
        seconds,
        ratio,
        runs,
        p_value,
        verdict,
        reason,
    })
}

/// The ratio of runs with its interval and the probability of its test, by the rules of `wellread compare`. Runs of the
/// same rounds are pairs where there are enough of them. Else each side is a set of processes.
fn judged(
    base: &[(usize, f64)],
    new: &[(usize, f64)],
    estimator: &IntervalEstimator,
) -> Option<(Ratio, Option<f64>)> {
    let seconds = |runs: &[(usize, f64)]| -> Vec<f64> { runs.iter().map(|(_, value)| *value).collect() };
    let in_turns = base.len() >= compare::MIN_SAMPLES
        && base.iter().map(|(round, _)| round).eq(new.iter().map(|(round, _)| round));
    if in_turns {
        let (base, new) = (seconds(base), seconds(new));
        let ratio = compare(&new, &base, Pairing::Paired, None, estimator).ratio?;
        return Some((ratio.into(), yuen_paired(&new, &base).map(|test| test.p_value)));
    }
    let processes =
        |runs: &[(usize, f64)]| -> Vec<Vec<f64>> { runs.iter().map(|(_, value)| vec![*value]).collect() };
    let found = nested::ratio(&processes(new), &processes(base), estimator)?;
    Some((found.ratio.into(), Some(found.p_value)))
}

fn word(ratio: &Ratio) -> Verdict {
    if ratio.high.is_some_and(|high| high < 1.0) {
        Verdict::Faster
    } else if ratio.low.is_some_and(|low| low > 1.0) {
        Verdict::Slower
    } else {
        Verdict::NoDifference
    }
}

/// Settings in which two tasks differ besides the branch: then it is not the branch alone that is compared.
fn differences(a: &Entry, b: &Entry) -> Vec<String> {
    let (a, b) = (&a.task_config, &b.task_config);
    let mut differs = Vec::new();
    let mut add = |name: &str, a: String, b: String| {
        if a != b {
            differs.push(format!("{name} {a} → {b}"));
        }
    };
    let number = |n: Option<u32>| n.map_or("default".to_owned(), |n| n.to_string());
    let text = |t: &Option<String>| t.clone().unwrap_or_else(|| "none".to_owned());
    let listed = |l: &[String]| if l.is_empty() { "none".to_owned() } else { l.join(",") };
    add("trainer", a.trainer.to_string(), b.trainer.to_string());
    add("max_epochs", number(a.max_epochs), number(b.max_epochs));
    add("batch_size", number(a.batch_size), number(b.batch_size));
    add("checkpoint", text(&a.checkpoint_path), text(&b.checkpoint_path));
    add("data", text(&a.data_path), text(&b.data_path));
    add("overrides", listed(&a.overrides), listed(&b.overrides));
    add("adapter", a.adapter.clone(), b.adapter.clone());
    differs
}

#[cfg(test)]
mod tests;
