//! Which branch is faster than the baseline, and in which phase.
//!
//! ```text
//!  a phase of two tasks ─▶ one value per run ─▶ ratio with its 95 % interval ─▶ verdict ─▶ a sentence per branch
//! ```
//!
//! The unit is a run, a process of its own: batches of one process resemble each other, and a thousand of them do not
//! make a second run (Kalibera and Jones, <https://doi.org/10.1145/2464157.2464160>). The value of a run is the time of a
//! single phase, or the median of the steady state of a repeated one. How the interval is found depends on the runs:
//!
//! | runs of each | interval | verdict |
//! |---|---|---|
//! | 6 and more | bootstrap of the ratio of medians, by rounds where both have all rounds | yes |
//! | 2 to 5 | Welch's t on the logarithms, which takes times to vary by factors | repeated phases; single ones from 3 |
//! | 1 | repeated phases: bootstrap over the samples of the two processes | only of differences above 5 % |
//!
//! With one run of each, what differs between two processes of the same program cannot be seen: that is said beside it.
//!
//! Of a table of twenty equal phases one would look different by chance. So a verdict also needs a test (Yuen's, of which
//! Welch's t is the case of few values) that stays below 5 % when it is corrected for all phases of all branches (Holm).

use crate::results::{Entry, Repeat};
use serde::{Deserialize, Serialize};
use wellread_measure::compare::{self, NoiseFloor, Verdict, compare};
use wellread_measure::hypothesis::{holm, welch, yuen, yuen_paired};
use wellread_measure::samples::median;
use wellread_measure::{Bootstrap, Interval, Pairing};

/// Fewest runs of which intervals are resampled.
const RESAMPLED: usize = 6;
/// Fewest runs of each that a verdict on a single phase needs.
const FEWEST: usize = 3;
/// Fewest samples of each that a verdict within single processes needs.
const FEWEST_SAMPLES: usize = 6;
/// Probability of a false alarm in the whole table.
const LEVEL: f64 = 0.05;
/// Difference up to which two single processes of the same program are not told apart.
const BETWEEN_PROCESSES: f64 = 0.05;

/// Phases, what they are called in sentences, and whether they are the parts by which a branch is described.
const PHASES: [(&str, &str); 20] = [
    ("batch_loading", "data loading"),
    ("batch_to_device", "the transfer to the device"),
    ("batch_step", "the model's step"),
    ("batch_forward", "the model's forward pass"),
    ("batch_postprocess", "post-processing"),
    ("epoch", "an epoch"),
    ("model_initialization", "model initialization"),
    ("configuration", "configuration"),
    ("data_setup", "data set-up"),
    ("checkpoint_loading", "loading the checkpoint"),
    ("first_batch_loading", "loading the first batch"),
    ("first_batch_to_device", "transfer of the first batch"),
    ("first_batch_forward", "the first forward pass"),
    ("first_batch_postprocess", "post-processing of the first batch"),
    ("first_epoch", "the first epoch"),
    ("full_training", "training without set-up"),
    ("full_prediction", "prediction without set-up"),
    ("total_training", "the whole training run"),
    ("total_inference", "the whole inference run"),
    ("process", "the whole process"),
];
/// Phases that describe where the time of a step goes: of [`PHASES`] the first so many.
const PARTS: usize = 5;

/// Share of a whole run from which on a change of a phase that happens once is told of.
const NOTICED: f64 = 0.02;

/// A ratio of times, candidate over baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Of the medians; with 2 to 5 runs of the geometric means.
    pub estimate: f64,
    /// Lower end of the 95 % interval; `None` when there is none.
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
}

/// Two tasks of an experiment compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The experiment.
    pub experiment: String,
    /// What the baseline is called.
    pub baseline: String,
    /// What the candidate is called.
    pub candidate: String,
    /// Settings in which they differ besides the branch.
    pub differs: Vec<String>,
    /// Phase by phase; repeated ones first.
    pub phases: Vec<PhaseComparison>,
    /// What changed, in words.
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

/// What a phase is called in sentences.
pub fn words(phase: &str) -> &str {
    PHASES.iter().find(|(name, _)| *name == phase).map_or(phase, |(_, words)| words)
}

/// A task and what it is called.
pub type Named<'e> = (&'e str, &'e Entry);

/// Compares tasks with their baselines: pairs of baseline and candidate. All are one table, for which verdicts are
/// corrected.
pub fn all(pairs: &[(Named<'_>, Named<'_>)], seed: u64) -> Vec<Comparison> {
    let settings = Bootstrap::seeded(seed);
    let mut tables: Vec<Vec<PhaseComparison>> = pairs
        .iter()
        .map(|((_, a), (_, b))| {
            let names = names(a, b).into_iter();
            names.filter_map(|(name, repeated)| phase(&name, repeated, a, b, &settings)).collect()
        })
        .collect();
    correct(tables.iter_mut().flatten());
    let compared = pairs.iter().zip(tables).map(|(((baseline, a), (candidate, b)), phases)| {
        let differs = differences(a, b);
        let runs = [a.good().count(), b.good().count()];
        Comparison {
            experiment: b.experiment.clone(),
            baseline: (*baseline).to_owned(),
            candidate: (*candidate).to_owned(),
            sentence: sentence(candidate, baseline, &phases, [a, b]),
            detail: detail(runs, &phases, &differs),
            differs,
            phases,
        }
    });
    compared.collect()
}

/// Widest interval of what is called unchanged, as the ratio of its ends.
const WIDEST: f64 = 1.5;

impl PhaseComparison {
    /// Whether the times are known to be about alike: no difference was found, and the interval leaves no room for a large
    /// one. What a test alone found, and what does not stand when all tests are counted, is not.
    pub fn is_alike(&self) -> bool {
        let (Some(low), Some(high)) = (self.ratio.low, self.ratio.high) else { return false };
        self.verdict == Verdict::NoDifference && low <= 1.0 && 1.0 <= high && high <= low * WIDEST
    }

    /// The verdict in words: where no difference was found, whether the times are known to be about alike.
    pub fn verdict_word(&self) -> String {
        match self.verdict {
            Verdict::NoDifference if !self.is_alike() => "unclear".to_owned(),
            verdict => verdict.to_string(),
        }
    }
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
        for said in entry.good().map(|repeat| &repeat.said) {
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

/// The value of every run that has one, with its round.
fn values(entry: &Entry, name: &str, repeated: bool) -> Vec<(usize, f64)> {
    let of = |repeat: &Repeat| match (repeated, name) {
        (true, _) => median(repeat.said.samples(name)?.steady()),
        (false, "process") => repeat.wall_seconds,
        (false, _) => Some(repeat.said.phase(name)?.elapsed_seconds),
    };
    entry.good().filter_map(|repeat| Some((repeat.repeat, of(repeat)?))).collect()
}

fn phase(name: &str, repeated: bool, a: &Entry, b: &Entry, settings: &Bootstrap) -> Option<PhaseComparison> {
    let (of_a, of_b) = (values(a, name, repeated), values(b, name, repeated));
    let take = |values: &[(usize, f64)]| -> Vec<f64> { values.iter().map(|(_, value)| *value).collect() };
    let (base, new) = (take(&of_a), take(&of_b));
    let (baseline_seconds, seconds) = (median(&base)?, median(&new)?);
    // A phase that takes no time on either side has no ratio.
    if baseline_seconds <= 0.0 || seconds <= 0.0 {
        return None;
    }
    let fewest = base.len().min(new.len());
    let estimate = seconds / baseline_seconds;
    let without = (Ratio { estimate, low: None, high: None }, Verdict::TooFewData);
    let rounds = |values: &[(usize, f64)]| values.iter().map(|(round, _)| *round).collect::<Vec<_>>();
    let paired = rounds(&of_a) == rounds(&of_b);
    let ((ratio, verdict), test) = if fewest >= RESAMPLED {
        let pairing = if paired { Pairing::Paired } else { Pairing::Unpaired };
        let test = if paired { yuen_paired(&new, &base) } else { yuen(&new, &base) };
        (found(&compare(&new, &base, pairing, None, settings)).unwrap_or(without), test)
    } else if fewest >= 2 {
        let enough = repeated || fewest >= FEWEST;
        let compared = welch(&new, &base, settings.confidence).map(|interval| {
            let ratio = Ratio::from(interval);
            let verdict = if enough { word(&ratio) } else { Verdict::TooFewData };
            (ratio, verdict)
        });
        (compared.unwrap_or(without), yuen(&new, &base))
    } else if repeated {
        let steady = |entry: &Entry| -> Option<Vec<f64>> {
            Some(entry.good().find_map(|repeat| repeat.said.samples(name))?.steady().to_vec())
        };
        let (base, new) = (steady(a)?, steady(b)?);
        (single(&base, &new, settings).unwrap_or(without), yuen(&new, &base))
    } else {
        (without, None)
    };
    let runs = [base.len(), new.len()];
    let p_value = test.map(|test| test.p_value);
    let phase = name.to_owned();
    Some(PhaseComparison { phase, repeated, baseline_seconds, seconds, ratio, runs, p_value, verdict })
}

/// The samples of two single processes.
fn single(base: &[f64], new: &[f64], settings: &Bootstrap) -> Option<(Ratio, Verdict)> {
    let floor = NoiseFloor { ln_ratio: BETWEEN_PROCESSES.ln_1p(), n: 1 };
    let (ratio, verdict) = found(&compare(new, base, Pairing::Unpaired, Some(floor), settings))?;
    let enough = base.len().min(new.len()) >= FEWEST_SAMPLES;
    Some((ratio, if enough { verdict } else { Verdict::TooFewData }))
}

fn found(comparison: &wellread_measure::Comparison) -> Option<(Ratio, Verdict)> {
    Some((comparison.ratio?.into(), comparison.verdict))
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

/// `data loading of slow is 2.1 times slower [1.9–2.3]; the model's step is unchanged`.
fn sentence(candidate: &str, baseline: &str, phases: &[PhaseComparison], entries: [&Entry; 2]) -> String {
    let failed = |entry: &Entry| entry.good().next().is_none();
    match entries.map(failed) {
        [true, _] => {
            return format!(
                "{candidate} cannot be compared: the baseline {baseline} did not run to its end."
            );
        }
        [_, true] => return format!("{candidate} did not run to its end and cannot be compared."),
        _ => {}
    }
    let repeated: Vec<&PhaseComparison> = phases
        .iter()
        .filter(|phase| phase.repeated && PHASES[..PARTS].iter().any(|(name, _)| *name == phase.phase))
        .collect();
    let whole = ["total_training", "total_inference", "process"]
        .iter()
        .find_map(|name| phases.iter().find(|phase| !phase.repeated && phase.phase == *name));
    let steady = by_change(repeated);
    // Of what happens once what changed, if that is noticed: a transfer may take 60 times as long and no time at all.
    let noticed = |phase: &PhaseComparison| {
        let least = whole.map_or(0.0, |whole| NOTICED * whole.baseline_seconds);
        (phase.seconds - phase.baseline_seconds).abs() >= least
    };
    let is_whole = |phase: &PhaseComparison| {
        phase.phase == "process" || whole.is_some_and(|whole| whole.phase == phase.phase)
    };
    let once = phases.iter().filter(|phase| !phase.repeated && !is_whole(phase) && changed(phase));
    let once = by_change(once.filter(|phase| steady.is_empty() || noticed(phase)).collect());
    let described = if steady.iter().any(|phase| changed(phase)) {
        [steady, once].concat()
    } else {
        [once, steady].concat()
    };
    let mut parts: Vec<String> = Vec::new();
    for phase in described {
        let what = words(&phase.phase);
        // The branch is named once.
        let of = if parts.is_empty() { format!(" of {candidate}") } else { String::new() };
        parts.push(format!("{what}{of} {}", outcome(phase)));
    }
    if parts.is_empty() {
        parts.extend(whole.map(|phase| format!("{} of {candidate} {}", words(&phase.phase), outcome(phase))));
    } else if let Some(phase) = whole.filter(|_| !parts.iter().any(|part| part.starts_with("the whole"))) {
        parts.push(format!("{} {}", words(&phase.phase), outcome(phase)));
    }
    let mut text = parts.join("; ");
    if text.is_empty() {
        return format!("{candidate} reports no phase that {baseline} reports too.");
    }
    let first = text.remove(0).to_uppercase().to_string();
    format!("{first}{text} (compared with {baseline}).")
}

/// What changed most comes first; what did not keeps its order.
fn by_change(mut phases: Vec<&PhaseComparison>) -> Vec<&PhaseComparison> {
    let change = |phase: &PhaseComparison| if changed(phase) { phase.ratio.estimate.ln().abs() } else { 0.0 };
    phases.sort_by(|a, b| change(b).total_cmp(&change(a)));
    phases
}

fn changed(phase: &PhaseComparison) -> bool {
    matches!(phase.verdict, Verdict::Faster | Verdict::Slower)
}

/// `is 2.1 times slower [1.9–2.3]`.
fn outcome(phase: &PhaseComparison) -> String {
    let Ratio { estimate, low, high } = phase.ratio;
    let times = |ratio: f64| if ratio < 1.1 { format!("{ratio:.2}") } else { format!("{ratio:.1}") };
    let interval = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => format!(" [{}–{}]", times(a), times(b)),
        _ => String::new(),
    };
    match phase.verdict {
        Verdict::Slower => format!("is {} times slower{}", times(estimate), interval(low, high)),
        Verdict::Faster => {
            let inverse = |ratio: f64| 1.0 / ratio;
            let within = interval(high.map(inverse), low.map(inverse));
            format!("is {} times faster{within}", times(inverse(estimate)))
        }
        Verdict::NoDifference if !phase.is_alike() => {
            let ends = low.zip(high).map_or(String::new(), |(low, high)| format!(" [{low:.2}–{high:.2}]"));
            format!("shows no clear difference{ends}")
        }
        Verdict::NoDifference => "is unchanged".to_owned(),
        Verdict::TooFewData => format!("took {estimate:.2} times as long, too few data for a verdict"),
    }
}

/// How far the sentence may be trusted.
fn detail(runs: [usize; 2], phases: &[PhaseComparison], differs: &[String]) -> String {
    let mut parts = Vec::new();
    if !differs.is_empty() {
        parts.push(format!("The tasks differ in more than the branch: {}.", differs.join("; ")));
    }
    let fewest = runs[0].min(runs[1]);
    parts.push(match fewest {
        0 => String::new(),
        1 => format!(
            "One run of each: intervals are over the batches of one process, differences of up to {:.0} % between two \
             processes of the same program would not be noticed; --repeats makes sure.",
            100.0 * BETWEEN_PROCESSES
        ),
        n if n < RESAMPLED => {
            format!("{n} runs of each, in random order: 95 % intervals by Welch's t of the runs' medians on a log scale.")
        }
        n => format!("{n} runs of each, in random order: 95 % intervals by resampling runs."),
    });
    let unclear = phases.iter().filter(|phase| phase.repeated && phase.is_alike());
    let wide: Vec<String> = unclear
        .filter_map(|phase| {
            let (low, high) = (phase.ratio.low?, phase.ratio.high?);
            (high / low > 1.2).then(|| format!("{} [{low:.2}–{high:.2}]", words(&phase.phase)))
        })
        .collect();
    if !wide.is_empty() {
        parts.push(format!(
            "\"Unchanged\" is not known well of {}: more runs would narrow it.",
            wide.join(", ")
        ));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

#[cfg(test)]
mod tests;
