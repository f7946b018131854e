//! The definition of a task: a row of the table, and the file that its process reads.
//!
//! ```text
//!  CSV ──table──▶ Row ── branch resolved, paths absolute, a repeat chosen ──▶ Task ──▶ WELLREAD_TASK (JSON)
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The variable that names the file of a task to its process.
pub const TASK: &str = "WELLREAD_TASK";

/// The measured work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Training runs: `wellread tasks train`.
    Train,
    /// Predictions from a checkpoint: `wellread tasks inference`.
    Inference,
}

impl Mode {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Inference => "inference",
        }
    }

    /// The phase that is the whole task.
    pub fn total(self) -> &'static str {
        match self {
            Self::Train => "total_training",
            Self::Inference => "total_inference",
        }
    }

    /// The phase of the run itself, without what comes before it.
    pub fn full(self) -> &'static str {
        match self {
            Self::Train => "full_training",
            Self::Inference => "full_prediction",
        }
    }
}

/// The device of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trainer {
    /// One GPU of this machine.
    Gpu,
    /// The processors.
    Cpu,
    /// Several processes of this machine, on GPUs where there are any.
    Ddp,
}

impl Trainer {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Cpu, Self::Ddp];

    /// As in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Cpu => "cpu",
            Self::Ddp => "ddp",
        }
    }
}

impl fmt::Display for Trainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A row of the table, as it was written: empty fields are `None`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Row {
    /// Line of the file, from 1: for messages.
    #[serde(skip)]
    pub line: usize,
    /// Branch, tag or commit.
    pub branch: String,
    /// Name of the experiment; the adapter decides which names there are.
    pub experiment: String,
    /// The device; `None` for the GPU where there is one, else the processors.
    pub trainer: Option<Trainer>,
    /// Epochs; `None` for what the experiment says.
    pub max_epochs: Option<u32>,
    /// Images per batch; `None` for what the experiment says.
    pub batch_size: Option<u32>,
    /// A trained model.
    pub checkpoint_path: Option<String>,
    /// The images.
    pub data_path: Option<String>,
    /// Settings of the experiment that are changed, each `key=value`.
    pub overrides: Vec<String>,
    /// Line, column and what is wrong there, of a row that cannot be understood but for branch and experiment.
    #[serde(skip)]
    pub problem: Option<String>,
}

/// The input of the process of a task: the content of the file that `WELLREAD_TASK` names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Training or inference.
    pub mode: Mode,
    /// Branch, tag or commit as in the table.
    pub branch: String,
    /// Full hash of its commit.
    pub commit: String,
    /// Name of the experiment.
    pub experiment: String,
    /// The device.
    pub trainer: Trainer,
    /// Epochs; `None` for what the experiment says.
    pub max_epochs: Option<u32>,
    /// Images per batch; `None` for what the experiment says.
    pub batch_size: Option<u32>,
    /// A trained model, absolute.
    pub checkpoint_path: Option<String>,
    /// The images, absolute or a URL.
    pub data_path: Option<String>,
    /// Settings of the experiment that are changed, each `key=value`.
    pub overrides: Vec<String>,
    /// Seed of everything random in the task; the same for all branches.
    pub seed: u64,
    /// Which repeat this is, from 0.
    pub repeat: usize,
    /// The branch's files; the process starts in this folder.
    pub worktree: PathBuf,
    /// Where an experiment's relative paths are looked for that are not in the worktree: the working folder of the command, and
    /// that of `--repo`.
    pub search: Vec<PathBuf>,
    /// Folder of this task and repeat, there and empty: logs, checkpoints, plots.
    pub output_dir: PathBuf,
}
