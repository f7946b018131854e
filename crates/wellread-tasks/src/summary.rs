//! The rows that console and report both show: a row per task with its main figures, and a row per phase that was
//! compared.

use crate::comparison::Comparison;
use crate::results::{Entry, first_sentence};
use crate::suite::Outcome;
use serde_json::{Map, Value};
use wellread_measure::samples::median;
use wellread_report::{Row, Table, row};

/// The main figures of a task; `None` is what it does not report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Runs that ended well.
    pub good: usize,
    /// Runs that did not.
    pub failed: usize,
    /// Seconds of the whole task, in the median run.
    pub total: Option<f64>,
    /// Seconds of the first epoch, in the median run.
    pub first_epoch: Option<f64>,
    /// Seconds of loading a batch in the steady state.
    pub loading: Option<f64>,
    /// Seconds of a training step in the steady state, or of a forward pass.
    pub step: Option<f64>,
    /// Peak memory of the process and all it starts, in MB: the median of the runs.
    pub memory_mb: Option<f64>,
    /// Largest peak memory of the GPU that any phase of any run reports, in MB.
    pub gpu_memory_mb: Option<f64>,
}

impl Figures {
    /// Those of a task.
    pub fn of(entry: &Entry) -> Self {
        let good = entry.successful().count();
        let metric = |path: &[&str]| number(&entry.metrics, path);
        let steady = |names: &[&str]| {
            names.iter().find_map(|name| number(&entry.statistics, &[name, "steady", "p50"]))
        };
        let peaks: Vec<f64> = entry
            .successful()
            .filter_map(|run| number(&run.metrics, &["process", "peak_memory_mb"]))
            .collect();
        let phases = entry.successful().flat_map(|repeat| &repeat.said.phases);
        Self {
            good,
            failed: entry.repeats.len() - good,
            total: metric(&[entry.task_config.mode.total(), "elapsed_seconds"]),
            first_epoch: metric(&["epoch_breakdown", "first_epoch", "elapsed_seconds"]),
            loading: steady(&["batch_loading"]),
            step: steady(&["batch_step", "batch_forward"]),
            memory_mb: median(&peaks),
            gpu_memory_mb: phases.filter_map(|(_, phase)| phase.peak_gpu_memory_mb).reduce(f64::max),
        }
    }
}

fn number(from: &Map<String, Value>, path: &[&str]) -> Option<f64> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(from.get(*first)?, |value, name| value.get(name))?.as_f64()
}

/// The node of a cluster that a task ran on, as columns; none without `--on`. Memory is in MB of 10^6 bytes.
pub fn node(entry: &Entry) -> Row {
    let Some(node) = &entry.node else { return Row::new() };
    row![
        ("node", node.host.as_deref()),
        ("node_cpu", node.cpu.as_deref()),
        ("node_cores", node.cores),
        ("node_memory_mb", node.memory_bytes.map(|bytes| bytes as f64 * 1e-6)),
        ("node_gpus", Some(node.gpus.join("; ")).as_deref().filter(|names| !names.is_empty())),
    ]
}

/// A row per task.
pub fn tasks(outcome: &Outcome) -> Table {
    let mut table = Table::new("tasks_summary");
    for (task, entry) in outcome.planned.iter().zip(&outcome.entries) {
        let of = Figures::of(entry);
        let mut cells = row![("experiment", &entry.experiment), ("branch", &task.label)];
        cells.extend(match (of.good, &entry.error) {
            (0, Some(error)) => row![("status", "failed"), ("reason", first_sentence(error))],
            (0, None) => row![("status", "unavailable"), ("reason", "not run")],
            (good, _) => row![
                ("runs", good),
                ("total_s", of.total),
                ("first_epoch_s", of.first_epoch),
                ("batch_loading_s", of.loading),
                ("batch_step_s", of.step),
                ("peak_memory_mb", of.memory_mb),
                ("peak_gpu_memory_mb", of.gpu_memory_mb),
                ("status", "ok"),
            ],
        });
        cells.extend(node(entry));
        table.push(cells);
    }
    table
}

/// A row per phase of every task that was compared with a baseline.
pub fn compared(comparisons: &[Comparison]) -> Table {
    let mut table = Table::new("tasks_compared");
    for one in comparisons {
        let keys =
            || row![("experiment", &one.experiment), ("branch", &one.candidate), ("baseline", &one.baseline)];
        if one.phases.is_empty() {
            let mut cells = keys();
            cells.extend(row![("status", "unavailable"), ("reason", &one.sentence)]);
            table.push(cells);
        }
        for phase in &one.phases {
            let mut cells = keys();
            cells.extend(row![
                ("phase", &phase.phase),
                ("verdict", phase.verdict_word()),
                ("baseline_seconds", phase.baseline_seconds),
                ("seconds", phase.seconds),
                ("ratio", phase.ratio.estimate),
                ("ratio_ci_low", phase.ratio.low),
                ("ratio_ci_high", phase.ratio.high),
                ("p_value", phase.p_value),
                ("baseline_runs", phase.runs[0]),
                ("runs", phase.runs[1]),
                ("status", "ok"),
                ("reason", phase.reason.as_deref()),
            ]);
            table.push(cells);
        }
    }
    table
}
