//! Everything that can be asked for.

use crate::task::Mode;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_measure::environment::Node;

/// A benchmark: the tasks of a table, each as often as asked for. Serialised into `summary.json`, but for what is the
/// machine's own.
#[derive(Clone, Debug, Serialize)]
pub struct Config {
    /// Training or inference.
    pub mode: Mode,
    /// The table of tasks.
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub table: PathBuf,
    /// The results, a JSON file.
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub output: PathBuf,
    /// The repository, or a folder of it.
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub repository: PathBuf,
    /// Name of an adapter, or `auto`.
    pub adapter: String,
    /// Go on after a task that fails, or that cannot run.
    pub skip_failed: bool,
    /// Runs of each task.
    pub repeats: usize,
    /// Branch that the others are compared with; `None` for the first row of each experiment.
    pub baseline: Option<String>,
    /// How long a run may take.
    pub timeout: Option<Duration>,
    /// Keep what an earlier run has in the results, and run what is missing.
    pub resume: bool,
    /// The Python for adapters in Python; `None` for an environment per branch.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub python: Option<PathBuf>,
    /// Folder of the report; `None` for one beside the results.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub report: Option<PathBuf>,
    /// Check everything and run nothing.
    pub dry_run: bool,
    /// Seed of the tasks and of the order of runs.
    pub seed: u64,
    /// The command that starts this program again, before any arguments.
    #[serde(skip)]
    pub program: Vec<OsString>,
    /// Folder for worktrees and environments.
    #[serde(skip)]
    pub cache: PathBuf,
    /// The command as typed, for the record.
    pub command: String,
    /// The folder that it was run in: relative paths are from there.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub working_folder: Option<PathBuf>,
    /// The recipe that this run is a part of, whole.
    pub recipe: Option<serde_json::Value>,
    /// The node of a cluster that it runs on, where one was asked for: recorded of every task.
    #[serde(skip)]
    pub node: Option<Node>,
    /// Whether tasks run on other machines than this one, which need not have a GPU then.
    #[serde(skip)]
    pub on_other_machines: bool,
    /// The number of the only experiment to run, in the order of the table; `None` for all.
    #[serde(skip)]
    pub experiment: Option<usize>,
}

impl Config {
    /// Folder of the logs and files of the tasks: beside the results.
    pub fn runs(&self) -> PathBuf {
        beside(&self.output, "runs")
    }

    /// Folder of the report.
    pub fn report_folder(&self) -> PathBuf {
        self.report.clone().unwrap_or_else(|| beside(&self.output, "report"))
    }

    /// The folder that paths in the table are relative to.
    pub fn table_folder(&self) -> &Path {
        self.table.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

/// The path of a file or folder beside results: their name, with another ending in place of `.json`. In a name such as `v0.1`
/// nothing is replaced: `v0.2` would have the same files beside it.
pub fn beside(output: &Path, ending: &str) -> PathBuf {
    if output.extension().is_none_or(|own| own.eq_ignore_ascii_case("json")) {
        return output.with_extension(ending);
    }
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    output.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_two_names_have_nothing_in_common() {
        for (output, runs) in [
            ("a/train.json", "a/train.runs"),
            ("a/v0.1.JSON", "a/v0.1.runs"),
            ("a/train", "a/train.runs"),
            ("a/v0.1", "a/v0.1.runs"),
            ("a/v0.2", "a/v0.2.runs"),
        ] {
            assert_eq!(beside(Path::new(output), "runs"), Path::new(runs));
        }
    }
}
