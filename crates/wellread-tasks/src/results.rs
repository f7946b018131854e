//! The results file: upstream's JSON list, one entry per task, written whole after every run of a process.
//!
//! To upstream's keys come `repeats` (every run with all its samples), `statistics` (of the repeated phases, steady state
//! apart from warm-up) and `environment`. `metrics` are those of the median run.

pub mod earlier;

use crate::hardware::State;
use crate::metrics;
use crate::phases::PhaseReport;
use crate::process::{ExitReason, FinishedProcess};
use crate::task::{Mode, Trainer};
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use wellread_measure::environment::Node;
use wellread_measure::{Environment, IntervalEstimator, Samples, path_text};
use wellread_report::staged;

/// Which commit was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitInfo {
    /// Branch, tag or commit as in the table.
    pub branch: String,
    /// Full hash; `None` when there is no such branch.
    pub commit_hash: Option<String>,
    /// When it was committed.
    pub commit_date: Option<String>,
}

/// The configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskConfig {
    /// Training or inference.
    pub mode: Mode,
    /// Branch, tag or commit as in the table.
    pub branch: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Its trainer.
    pub trainer: Trainer,
    /// Epochs; `None` for what the experiment says.
    pub max_epochs: Option<u32>,
    /// Images per batch; `None` for what the experiment says.
    pub batch_size: Option<u32>,
    /// As in the table.
    pub checkpoint_path: Option<String>,
    /// As in the table.
    pub data_path: Option<String>,
    /// Settings that were changed.
    pub overrides: Vec<String>,
    /// How it was run.
    pub adapter: String,
    /// Seed of everything random in it.
    pub seed: u64,
}

/// One run of a task in a process of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Which, from 0.
    pub repeat: usize,
    /// When it began.
    pub timestamp: String,
    /// Whether it ended well.
    pub success: bool,
    /// The error, with the last lines of the log.
    pub error: Option<String>,
    /// How the process ended; `None` when it was not started.
    pub end: Option<ExitReason>,
    /// Wall time of the process in seconds.
    pub wall_seconds: Option<f64>,
    /// The results, by upstream's names.
    pub metrics: Map<String, Value>,
    /// Everything that the process said: phases, all samples.
    pub said: PhaseReport,
    /// Folder of its log and other files.
    pub output_dir: PathBuf,
    /// State of the machine before it, and the load by others meanwhile.
    pub hardware: State,
    /// State of the machine after it; `None` of a run by an older version.
    #[serde(default)]
    pub hardware_after: Option<State>,
}

impl Repeat {
    /// Seconds of the whole task: its own timer, else wall time.
    pub fn total(&self, mode: Mode) -> Option<f64> {
        self.said.phase(mode.total()).map(|phase| phase.elapsed_seconds).or(self.wall_seconds)
    }

    /// A run that has ended; `epochs` is what the table says.
    pub fn ended(&mut self, mode: Mode, epochs: Option<u32>, ran: &FinishedProcess, tail: &[String]) {
        self.metrics = metrics::metrics(mode, epochs, &self.said, ran);
        self.wall_seconds = Some(ran.wall_seconds);
        let last = || {
            if tail.is_empty() {
                "its log is empty".to_owned()
            } else {
                format!("{QUOTED}\n  {}", tail.join("\n  "))
            }
        };
        self.error = ran.problem().map(|problem| match &self.said.error {
            // The program cannot know the kernel's or the time limit's part.
            Some(own) if matches!(ran.end, ExitReason::Exit(_)) => format!("{own} ({problem}); {}", last()),
            _ => format!("{problem}; {}", last()),
        });
        if let (None, Some(own)) = (&self.error, &self.said.error) {
            self.error = Some(format!("it reported an error but ended with exit code 0: {own}"));
        }
        self.success = self.error.is_none();
        self.end = Some(ran.end.clone());
    }
}

/// A task with all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Branch, tag or commit as in the table.
    pub branch: String,
    /// Name of the experiment.
    pub experiment: String,
    /// When its first run began.
    pub timestamp: String,
    /// Whether every run that was made ended well.
    pub success: bool,
    /// The first error.
    pub error: Option<String>,
    /// The commit.
    pub git_info: GitInfo,
    /// The configuration.
    pub task_config: TaskConfig,
    /// Those of the median run.
    pub metrics: Map<String, Value>,
    /// The statistics of the repeated phases over all runs.
    #[serde(default)]
    pub statistics: Map<String, Value>,
    /// Every run, raw.
    #[serde(default)]
    pub repeats: Vec<Repeat>,
    /// The machine, and the Python of the branch.
    #[serde(default)]
    pub environment: Value,
    /// The node of a cluster that all runs were made on; none without `--on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Node>,
}

impl Entry {
    /// A task that has not run yet.
    pub fn new(config: TaskConfig, git_info: GitInfo, environment: Value) -> Self {
        Self {
            branch: config.branch.clone(),
            experiment: config.experiment.clone(),
            timestamp: now(),
            success: false,
            error: None,
            git_info,
            task_config: config,
            metrics: Map::new(),
            statistics: Map::new(),
            repeats: Vec::new(),
            environment,
            node: None,
        }
    }

    /// The runs that ended well.
    pub fn successful(&self) -> impl Iterator<Item = &Repeat> {
        self.repeats.iter().filter(|repeat| repeat.success)
    }

    /// Adds a run and puts what follows from all of them right.
    pub fn add(&mut self, repeat: Repeat, seed: u64) {
        if self.repeats.is_empty() {
            self.timestamp.clone_from(&repeat.timestamp);
        }
        self.repeats.push(repeat);
        let failed = self.repeats.iter().filter(|repeat| !repeat.success).count();
        let first = self.repeats.iter().find_map(|repeat| repeat.error.clone());
        self.error = first.map(|error| match self.repeats.len() {
            1 => error,
            all => format!("{failed} of {all} runs failed: {error}"),
        });
        self.success = self.error.is_none();
        let mode = self.task_config.mode;
        let mut good: Vec<&Repeat> = self.successful().collect();
        good.sort_by(|a, b| a.total(mode).unwrap_or(0.0).total_cmp(&b.total(mode).unwrap_or(0.0)));
        let middle = good.get(good.len().saturating_sub(1) / 2).copied().or(self.repeats.last());
        let metrics = middle.map(|repeat| repeat.metrics.clone()).unwrap_or_default();
        let statistics = statistics(&good, seed);
        self.metrics = metrics;
        self.statistics = statistics;
    }

    /// Whether the entry is of the same task at the same commit.
    pub fn is_of(&self, config: &TaskConfig, commit: Option<&str>) -> bool {
        self.task_config == *config && self.git_info.commit_hash.as_deref() == commit
    }

    /// Whether its runs were made on a node of the same kind, or both on none of a cluster. Runs of unlike nodes are not mixed.
    pub fn is_on_kind_of(&self, node: Option<&Node>) -> bool {
        self.node.as_ref().map(Node::kind) == node.map(Node::kind)
    }
}

/// Per repeated phase: median of the steady state with its interval, and the warm-up beside it. Seconds.
fn statistics(good: &[&Repeat], seed: u64) -> Map<String, Value> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in good.iter().flat_map(|repeat| &repeat.said.samples) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let estimator = IntervalEstimator::seeded(seed);
    let mut all = Map::new();
    for name in names {
        let of: Vec<_> = good.iter().filter_map(|repeat| repeat.said.samples(name)).collect();
        let runs: Vec<&[f64]> = of.iter().map(|s| s.steady()).filter(|s| !s.is_empty()).collect();
        let warm_up: Vec<f64> =
            of.iter().flat_map(|s| &s.seconds[..s.warm_up.min(s.seconds.len())]).copied().collect();
        // Samples of one run resemble each other: of several runs, their medians count.
        let interval = match runs[..] {
            [] => None,
            [one] => estimator.median(one),
            _ => estimator.clustered_median(&runs),
        };
        let steady = Samples::from(runs.concat()).summary();
        let value = json!({
            "runs": runs.len(),
            "steady": steady,
            "median_ci95": interval.map(|interval| [interval.low, interval.high]),
            "warm_up": Samples::from(warm_up).summary(),
        });
        all.insert(name.to_owned(), value);
    }
    all
}

/// Begins the part of an error that quotes the log.
const QUOTED: &str = "the last lines of its log:";

/// An error without the log: its first sentence, for tables.
pub fn first_sentence(error: &str) -> &str {
    let first = error.lines().next().unwrap_or_default();
    first.split(QUOTED).next().unwrap_or(first).trim_end_matches([' ', ';'])
}

/// The time now, as in upstream's results.
pub fn now() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// The machine, and the Python of the branch.
pub fn environment(machine: &Environment, python: Option<&crate::environment::Python>) -> Value {
    json!({
        "machine": machine,
        "python": python.map(|python| json!({"path": path_text::text(&python.path), "about": python.about})),
        "wellread": env!("CARGO_PKG_VERSION"),
    })
}

/// Writes the results of tasks that have run or cannot, whole or not at all.
///
/// # Errors
/// A folder that cannot be written.
pub fn write<'e>(path: &Path, entries: impl IntoIterator<Item = &'e Entry>) -> Result<()> {
    let written: Vec<&Entry> =
        entries.into_iter().filter(|entry| !entry.repeats.is_empty() || entry.error.is_some()).collect();
    let text = serde_json::to_vec_pretty(&written).context("results that cannot be written as JSON")?;
    staged::write(&target(path)?, &text)?;
    Ok(())
}

/// The ordinary file that a path names, through links, whether it is there or not.
///
/// # Errors
/// A folder, device or pipe: those are not replaced.
fn target(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_path_buf();
    // As many links as the kernel follows.
    for _ in 0..40 {
        match path.symlink_metadata() {
            Ok(about) if about.is_symlink() => {
                let to =
                    std::fs::read_link(&path).with_context(|| format!("cannot read {}", path.display()))?;
                path = path.parent().unwrap_or(Path::new("")).join(to);
            }
            Ok(about) if !about.is_file() => {
                bail!("{} is no ordinary file; --output names a JSON file", path.display())
            }
            _ => return Ok(path),
        }
    }
    bail!("{} is a link that leads nowhere", path.display())
}

/// The results of an earlier run; `None` when there is no file.
///
/// # Errors
/// A file that is something else.
pub fn read(path: &Path) -> Result<Option<Vec<Entry>>> {
    let bytes = match std::fs::read(target(path)?) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Some(Vec::new()));
    }
    match serde_json::from_slice(&bytes) {
        Ok(entries) => Ok(Some(entries)),
        Err(error) => bail!(
            "{} is there and holds no results of `wellread tasks` ({error}); name another file with --output",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests;
