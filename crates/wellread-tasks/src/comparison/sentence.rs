//! Phases compared, in words.

use super::verdict::{PhaseComparison, Ratio};
use crate::results::Entry;
use wellread_measure::compare::{MIN_SAMPLES, Verdict};
use wellread_measure::nested::MIN_PROCESSES;

/// Phases, what they are called in sentences, and whether they are the parts by which a branch is described.
pub(super) const PHASES: [(&str, &str); 20] = [
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
const MIN_NOTICED_SHARE: f64 = 0.02;

/// The words for a phase in sentences.
pub fn words(phase: &str) -> &str {
    PHASES.iter().find(|(name, _)| *name == phase).map_or(phase, |(_, words)| words)
}

/// `data loading of slow takes 2.1 times as long [1.9–2.3]; the model's step is unchanged`. Where no phase has a verdict it
/// begins with `Within these runs only:`.
pub(super) fn sentence(
    candidate: &str,
    baseline: &str,
    phases: &[PhaseComparison],
    entries: [&Entry; 2],
) -> String {
    let failed = |entry: &Entry| entry.successful().next().is_none();
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
    // A phase that happens once counts where its change is noticed: a transfer may take 60 times as long and no time
    // at all.
    let noticed = |phase: &PhaseComparison| {
        let least = whole.map_or(0.0, |whole| MIN_NOTICED_SHARE * whole.baseline_seconds);
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
    let no_verdict = !phases.is_empty() && phases.iter().all(|phase| phase.verdict == Verdict::TooFewData);
    let outcome = |phase: &PhaseComparison| outcome(phase, no_verdict);
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
    if no_verdict {
        return format!("Within these runs only: {text} (compared with {baseline}).");
    }
    let first = text.remove(0).to_uppercase().to_string();
    format!("{first}{text} (compared with {baseline}).")
}

/// The largest change comes first; phases without a change keep their order.
fn by_change(mut phases: Vec<&PhaseComparison>) -> Vec<&PhaseComparison> {
    let change = |phase: &PhaseComparison| if changed(phase) { phase.ratio.estimate.ln().abs() } else { 0.0 };
    phases.sort_by(|a, b| change(b).total_cmp(&change(a)));
    phases
}

pub(super) fn changed(phase: &PhaseComparison) -> bool {
    matches!(phase.verdict, Verdict::Faster | Verdict::Slower)
}

/// `takes 2.1 times as long [1.9–2.3]`. Whether no phase has a verdict is said once, in front of all.
fn outcome(phase: &PhaseComparison, no_verdict: bool) -> String {
    let Ratio { estimate, low, high } = phase.ratio;
    let times = |ratio: f64| if ratio < 1.1 { format!("{ratio:.2}") } else { format!("{ratio:.1}") };
    let interval = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => format!(" [{}–{}]", times(a), times(b)),
        _ => String::new(),
    };
    match phase.verdict {
        Verdict::Slower => format!("takes {} times as long{}", times(estimate), interval(low, high)),
        Verdict::Faster => {
            let inverse = |ratio: f64| 1.0 / ratio;
            let within = interval(high.map(inverse), low.map(inverse));
            format!("is {} times as fast{within}", times(inverse(estimate)))
        }
        Verdict::NoDifference if !phase.is_alike() => {
            let ends = low.zip(high).map_or(String::new(), |(low, high)| format!(" [{low:.2}–{high:.2}]"));
            format!("shows no clear difference{ends}")
        }
        Verdict::NoDifference => "is unchanged".to_owned(),
        Verdict::TooFewData => {
            let within = if no_verdict { "" } else { " within these runs only" };
            format!("takes {estimate:.2} times as long{within}")
        }
    }
}

/// How far the sentence may be trusted.
pub(super) fn detail(runs: [usize; 2], differs: &[String]) -> String {
    let mut parts = Vec::new();
    if !differs.is_empty() {
        parts.push(format!("The tasks differ in more than the branch: {}.", differs.join("; ")));
    }
    let fewest = runs[0].min(runs[1]);
    let of_each = if fewest == 1 { "One run of each".to_owned() } else { format!("{fewest} runs of each") };
    parts.push(match fewest {
        0 => String::new(),
        1..MIN_PROCESSES => format!(
            "{of_each}: no verdict, because two runs of the same program differ too. A verdict needs {MIN_PROCESSES} runs of \
             each: --repeats {MIN_PROCESSES} or more."
        ),
        MIN_PROCESSES..MIN_SAMPLES => format!(
            "{of_each}, in random order: 95 % intervals over runs by Welch's t of logarithms, or by bootstrap where wider. \
             Ratios are those of geometric means, and times are medians."
        ),
        _ => format!("{of_each}, in random order: 95 % intervals over runs, by rounds where both have the same."),
    });
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}
