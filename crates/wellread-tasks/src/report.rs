//! The results as tables for a terminal and as `report.html` with figures.
//!
//! ```text
//!  entries ─▶ summary, comparison tables (text, at most 100 columns)
//!     └─▶ tables "tasks_summary", "tasks_compared", "tasks", "tasks_loss" ─▶ ReportInput ─▶ OUTPUT.report/: report.html, *.svg, *.png, *.parquet, summary.json
//! ```

use crate::comparison::{self, Comparison};
use crate::config::Config;
use crate::plan;
use crate::results::{self, Entry, Repeat};
use crate::suite::Outcome;
use crate::task::Mode;
use crate::{hardware, summary};
use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wellread_measure::Verdict;
use wellread_measure::environment::Node;
use wellread_measure::samples::median;
use wellread_report::{Cell, Fact, Finding, ReportInput, Row, Samples, Severity, Table, Thumbnail, row};

/// Largest picture that is put into a report.
const MAX_PICTURE_BYTES: u64 = 8 << 20;
/// Largest loss curve that is read.
const MAX_CURVE_BYTES: u64 = 16 << 20;
/// Most points of a loss curve that are drawn.
const MAX_CURVE_POINTS: usize = 200;

/// Every task compared with the baseline of its experiment.
pub fn comparisons(config: &Config, outcome: &Outcome) -> Vec<Comparison> {
    let mut pairs = Vec::new();
    let of = |at: usize| Some((outcome.planned[at].label.as_str(), outcome.entries.get(at)?));
    for (_, places) in plan::experiments(&outcome.planned) {
        for &at in &places {
            let base = plan::baseline(&outcome.planned, &places, config.baseline.as_deref(), at);
            let base = base.filter(|base| *base != at);
            if let (Some(baseline), Some(candidate)) = (base.and_then(of), of(at)) {
                // Nothing to say of what was not reached.
                if !candidate.1.repeats.is_empty() || candidate.1.error.is_some() {
                    pairs.push((baseline, candidate));
                }
            }
        }
    }
    comparison::all(&pairs, config.seed)
}

/// Writes the report; returns its page.
///
/// # Errors
/// A folder that cannot be written.
pub fn write(
    config: &Config,
    outcome: &Outcome,
    compared: &[Comparison],
    environment: Vec<Fact>,
    machine: String,
) -> Result<PathBuf> {
    let folder = config.report_folder();
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let input = input(config, outcome, compared, environment, machine);
    input.save(&folder)?;
    wellread_report::write_figures(&folder, &input)?;
    Ok(wellread_report::write_report(&folder, &input)?)
}

/// The question, and that there is no answer where no phase was run often enough for a verdict.
fn title(mode: Mode, compared: &[Comparison]) -> String {
    let does = match mode {
        Mode::Train => "trains",
        Mode::Inference => "predicts",
    };
    let question = format!("Which branch {does} faster, and in which part?");
    let mut phases = compared.iter().flat_map(|one| &one.phases).peekable();
    if phases.peek().is_some() && phases.all(|phase| phase.verdict == Verdict::TooFewData) {
        return format!("{question} Too short to say");
    }
    question
}

fn input(
    config: &Config,
    outcome: &Outcome,
    compared: &[Comparison],
    environment: Vec<Fact>,
    machine: String,
) -> ReportInput {
    let tasks = || outcome.planned.iter().zip(&outcome.entries);
    let commits = tasks().map(|(task, entry)| {
        let commit = entry.git_info.commit_hash.as_deref().and_then(|c| c.get(..12)).unwrap_or("not found");
        Fact::from((
            format!("{} · {}", entry.experiment, task.label),
            format!("{commit}, {}", entry.task_config.adapter),
        ))
    });
    let mut configuration = vec![
        Fact::from(("Measured", config.mode.name())),
        Fact::from(("Runs of each task", config.repeats)),
        Fact::from((
            "Order",
            "each experiment's tasks once per round, in random order, each in a process of its own",
        )),
        Fact::from(("Seed", config.seed)),
        Fact::from((
            "Time limit",
            config.timeout.map_or("none".to_owned(), |t| format!("{} s", t.as_secs_f64())),
        )),
        Fact::from(("Results", config.output.display())),
    ];
    configuration.extend(commits);
    let images = format!("{} of {}", config.mode.name(), config.table.display());
    let runs = outcome.entries.iter().flat_map(|entry| &entry.repeats);
    let states: Vec<_> =
        runs.flat_map(|run| std::iter::once(&run.hardware).chain(&run.hardware_after)).collect();
    let environment = environment.into_iter().chain(hardware::facts(&states).into_iter().map(Fact::from));
    ReportInput {
        title: title(config.mode, compared),
        description: "Every task ran in a fresh process from a git worktree of its branch. Times per batch are medians of \
             the steady state; warm-up is kept apart. A ratio below 1 is faster than the baseline."
            .to_owned(),
        generated: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        findings: findings(outcome, compared),
        configuration,
        environment: environment.collect(),
        machine,
        details: details(config, outcome, compared, &images),
        images,
        warnings: warnings(outcome),
        thumbnails: tasks().flat_map(|(task, entry)| overlays(&task.label, entry)).collect(),
        commands: vec![config.command.clone()],
        tables: [summary::tasks(outcome), summary::compared(compared), phases(outcome), losses(outcome)]
            .into_iter()
            .filter(|t| t.rows() > 0)
            .collect(),
        samples: vec![samples(outcome)],
        ..ReportInput::default()
    }
}

/// The kinds of nodes of a cluster that tasks ran on, in words; empty without `--on`.
fn kinds(outcome: &Outcome) -> BTreeSet<String> {
    outcome.entries.iter().filter_map(|entry| entry.node.as_ref()).map(Node::kind).collect()
}

/// The same for a record; null without `--on`.
fn node_kinds(outcome: &Outcome) -> Value {
    let kinds = kinds(outcome);
    if kinds.is_empty() { Value::Null } else { kinds.into_iter().collect() }
}

/// The facts needed to repeat the run, and to see what another was measured on and with, and the conclusions.
fn details(config: &Config, outcome: &Outcome, compared: &[Comparison], images: &str) -> Map<String, Value> {
    let tasks = || outcome.planned.iter().zip(&outcome.entries);
    let commits: Map<String, Value> = tasks()
        .filter_map(|(task, entry)| {
            Some((task.label.clone(), Value::from(entry.git_info.commit_hash.clone()?)))
        })
        .collect();
    // Those of a branch are made of its lock file, of which their name is a hash.
    let pythons: Map<String, Value> = tasks()
        .map(|(task, entry)| (task.label.clone(), entry.environment["python"]["about"].clone()))
        .filter(|(_, about)| !about.is_null())
        .collect();
    let details = [
        ("wellread", Value::from(env!("CARGO_PKG_VERSION"))),
        ("configuration", serde_json::to_value(config).unwrap_or_default()),
        ("images", images.into()),
        ("seed", config.seed.into()),
        ("environment", serde_json::to_value(&outcome.environment).unwrap_or_default()),
        ("commits", commits.into()),
        ("frameworks", pythons.into()),
        ("comparisons", json!(compared)),
        ("nodes", node_kinds(outcome)),
    ];
    details.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The findings of the comparisons, then the failures.
fn findings(outcome: &Outcome, compared: &[Comparison]) -> Vec<Finding> {
    let several = plan::experiments(&outcome.planned).len() > 1;
    let mut found: Vec<Finding> = compared
        .iter()
        .map(|one| {
            let of = if several { format!("{}: ", one.experiment) } else { String::new() };
            let has = |verdict| one.phases.iter().any(|phase| phase.verdict == verdict);
            let severity = match (has(Verdict::Slower), has(Verdict::Faster)) {
                (true, _) => Severity::Caution,
                (false, true) => Severity::Good,
                _ => Severity::Info,
            };
            Finding::new(severity, format!("{of}{}", one.sentence), one.detail.clone())
        })
        .collect();
    for (task, entry) in outcome.planned.iter().zip(&outcome.entries) {
        if let Some(error) = &entry.error {
            let what = format!("{} of {} failed.", entry.experiment, task.label);
            found.push(Finding::new(Severity::Bad, what, error.clone()));
        }
        let silent = |repeat: &&Repeat| repeat.said.is_silent();
        if entry.successful().any(|repeat| silent(&repeat)) {
            let what = format!("{} of {} reports no phases.", entry.experiment, task.label);
            let detail = "Only its wall time and the peak memory of its processes are known.";
            found.push(Finding::new(Severity::Info, what, detail));
        }
    }
    found
}

/// The causes of doubtful figures: the machine's state, lines that were not understood.
pub fn warnings(outcome: &Outcome) -> Vec<String> {
    let mut warnings = outcome.environment.noise_warnings();
    warnings.extend(outcome.notes.iter().cloned());
    let kinds = kinds(outcome);
    if kinds.len() > 1 {
        let kinds: Vec<String> = kinds.into_iter().collect();
        warnings.push(format!(
            "Experiments ran on unlike nodes, so that they do not compare with each other: {}.",
            kinds.join(" / ")
        ));
    }
    for (task, entry) in outcome.planned.iter().zip(&outcome.entries) {
        for repeat in &entry.repeats {
            let what = format!("{} · {}, run {}", entry.experiment, task.label, repeat.repeat + 1);
            let said = repeat.hardware.warnings().into_iter().chain(repeat.said.notes.clone());
            warnings.extend(said.map(|text| format!("{what}: {text}")));
        }
    }
    warnings
}

/// A row per phase and run; the interval of the repeated phases with them.
fn phases(outcome: &Outcome) -> Table {
    let mut table = Table::new("tasks");
    for (task, entry) in outcome.planned.iter().zip(&outcome.entries) {
        let keys = || row![("experiment", &entry.experiment), ("branch", &task.label)];
        if entry.successful().next().is_none() {
            let Some(error) = &entry.error else { continue };
            let mut failed = keys();
            failed.extend(row![("status", "failed"), ("reason", results::first_sentence(error))]);
            failed.extend(summary::node(entry));
            table.push(failed);
            continue;
        }
        for repeat in entry.successful() {
            let mut push = |phase: &str, seconds: Option<f64>, more: Row| {
                let mut measured = keys();
                measured.extend(row![("phase", phase), ("run", repeat.repeat), ("seconds", seconds)]);
                measured.extend(more);
                measured.extend(row![("status", "ok")]);
                measured.extend(summary::node(entry));
                table.push(measured);
            };
            for (name, samples) in &repeat.said.samples {
                push(name, median(samples.steady()), interval(entry, name));
            }
            for (name, phase) in &repeat.said.phases {
                push(name, Some(phase.elapsed_seconds), Row::new());
            }
            let peak = repeat.metrics.get("process").and_then(|process| process["peak_memory_mb"].as_f64());
            push("process", repeat.wall_seconds, row![("peak_memory_mb", peak)]);
        }
    }
    table
}

/// Seconds of every batch of every good run, warm-up included, which is what is looked for in them.
fn samples(outcome: &Outcome) -> Samples {
    let mut samples = Samples::new("tasks");
    for (task, entry) in outcome.planned.iter().zip(&outcome.entries) {
        for repeat in entry.successful() {
            for (phase, of) in repeat.said.samples.iter().filter(|(_, of)| !of.seconds.is_empty()) {
                samples.push(
                    row![
                        ("experiment", &entry.experiment),
                        ("branch", &task.label),
                        ("phase", phase),
                        ("run", repeat.repeat),
                        ("warm_up", of.warm_up)
                    ],
                    of.seconds.clone(),
                );
            }
        }
    }
    samples
}

/// The interval of a repeated phase over all runs.
fn interval(entry: &Entry, name: &str) -> Row {
    let ends = entry.statistics.get(name).map(|of| &of["median_ci95"]);
    let end = |at: usize| ends.and_then(|ends| ends[at].as_f64());
    row![("seconds_ci_low", end(0)), ("seconds_ci_high", end(1))]
}

/// The loss curves that the first good run of each task has written.
fn losses(outcome: &Outcome) -> Table {
    let mut table = Table::new("tasks_loss");
    for (task, entry) in outcome.planned.iter().zip(&outcome.entries) {
        let Some(repeat) = entry.successful().next() else { continue };
        for artifact in repeat.said.artifacts.iter().filter(|a| a.kind == "loss_curve") {
            // A file that is damaged is no reason to have no report.
            let Some(curve) = curve(Path::new(&artifact.path)) else { continue };
            let step = curve.len().div_ceil(MAX_CURVE_POINTS).max(1);
            let last = curve.len().saturating_sub(1);
            for (_, point) in curve.into_iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last) {
                let mut measured = row![("experiment", &entry.experiment), ("branch", &task.label)];
                measured.extend(point);
                table.push(measured);
            }
        }
    }
    table
}

/// The rows of a loss curve that have an epoch and some value. Numbers only, and line by line: a program that was killed leaves half of
/// one, for which [`Table::read_csv`] would refuse the rest.
fn curve(path: &Path) -> Option<Vec<Row>> {
    if path.metadata().ok()?.len() > MAX_CURVE_BYTES {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next()?.split(',').map(str::trim).collect();
    let mut rows = Vec::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |name: &str| -> Option<f64> {
            let at = header.iter().position(|column| *column == name)?;
            fields.get(at)?.parse().ok().filter(|n: &f64| n.is_finite())
        };
        let values = ["train_loss", "val_loss", "val_dice", "val_pearson"]
            .map(|name| (name.to_owned(), Cell::from(number(name))));
        let Some(epoch) = number("epoch") else { continue };
        if values.iter().any(|(_, value)| *value != Cell::Null) {
            let is_whole = epoch.fract() == 0.0 && epoch.abs() < 1e15;
            let epoch = if is_whole { Cell::I64(epoch as i64) } else { Cell::F64(epoch) };
            let mut row = row![("epoch", epoch)];
            row.extend(values);
            rows.push(row);
        }
    }
    Some(rows)
}

/// The pictures that the first good run of a task has drawn.
fn overlays(label: &str, entry: &Entry) -> Vec<Thumbnail> {
    let Some(repeat) = entry.successful().next() else { return Vec::new() };
    let shown = repeat.said.artifacts.iter().filter(|artifact| artifact.kind == "overlay");
    shown
        .filter_map(|artifact| {
            let path = Path::new(&artifact.path);
            let small =
                path.metadata().is_ok_and(|about| about.is_file() && about.len() <= MAX_PICTURE_BYTES);
            let bytes = if small { std::fs::read(path).ok()? } else { return None };
            let is_png = bytes.starts_with(b"\x89PNG\r\n\x1a\n");
            is_png.then(|| Thumbnail::from_png(format!("{label}: {}", entry.experiment), &bytes))
        })
        .collect()
}

#[cfg(test)]
mod tests;
