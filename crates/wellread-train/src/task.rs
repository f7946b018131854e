//! The request to the process: the JSON file that `wellread tasks` names in the environment.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Environment variable that names the task's file.
pub const TASK: &str = "WELLREAD_TASK";
/// Environment variable that names the file of phases.
pub const PHASES: &str = "WELLREAD_PHASES";

/// The work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Train, from the beginning or from a checkpoint on.
    Train,
    /// Predict with a checkpoint.
    Inference,
}

/// One task.
#[derive(Clone, Debug, Deserialize)]
pub struct Task {
    /// The work.
    pub mode: Mode,
    /// The branch whose worktree this is: for messages.
    #[serde(default)]
    pub branch: String,
    /// Name of the experiment, such as `im2im/segmentation`.
    pub experiment: String,
    /// `cpu`, `gpu` or `ddp`.
    #[serde(default = "cpu")]
    pub trainer: String,
    /// Epochs, instead of those of the configuration.
    #[serde(default)]
    pub max_epochs: Option<usize>,
    /// Batch size, instead of that of the configuration.
    #[serde(default)]
    pub batch_size: Option<usize>,
    /// Checkpoint to predict with, or to go on from.
    #[serde(default)]
    pub checkpoint_path: Option<PathBuf>,
    /// Images, instead of those of the configuration.
    #[serde(default)]
    pub data_path: Option<PathBuf>,
    /// `key=value` onto the configuration's keys.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Seed of weights, order, crops and augmentation.
    #[serde(default)]
    pub seed: u64,
    /// Checkout of the branch; relative paths of the configuration start here.
    pub worktree: PathBuf,
    /// Where those are looked for that the checkout does not have.
    #[serde(default)]
    pub search: Vec<PathBuf>,
    /// Folder for all that is written.
    pub output_dir: PathBuf,
}

fn cpu() -> String {
    "cpu".to_owned()
}

impl Task {
    /// Reads the file.
    ///
    /// # Errors
    /// No such file, or one that is no task.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the task {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no task", path.display()))
    }

    /// Refuses what native experiments cannot do.
    ///
    /// # Errors
    /// Another trainer than the CPU, inference without a checkpoint, sizes of zero.
    pub fn check(&self) -> Result<()> {
        if self.trainer != "cpu" {
            bail!(
                "native experiments run on the CPU, not with the trainer {:?}: write `cpu` in the trainer column, or choose \
                 an adapter in Python (--adapter cyto-dl)",
                self.trainer
            );
        }
        if self.mode == Mode::Inference && self.checkpoint_path.is_none() {
            bail!("inference needs a checkpoint: name one in the column checkpoint_path");
        }
        if self.max_epochs == Some(0) || self.batch_size == Some(0) {
            bail!("max_epochs and batch_size must be at least 1");
        }
        Ok(())
    }

    /// A path of the configuration. It is in the worktree, else in the first folder of [`Self::search`] that has it, else where it
    /// would be in the worktree.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        let found = self.candidates(path).find(|place| place.exists());
        found.unwrap_or_else(|| self.worktree.join(path))
    }

    /// Says where a path that [`Self::resolve`] has given was looked for, where it is nowhere.
    ///
    /// # Errors
    /// It is nowhere: the message lists every place.
    pub fn must_be_there(&self, key: &str, resolved: &Path) -> Result<()> {
        if resolved.as_os_str().is_empty() || resolved.exists() {
            return Ok(());
        }
        let path = resolved.strip_prefix(&self.worktree).unwrap_or(resolved);
        // A pattern of names, or an address.
        if path.to_string_lossy().contains(['*', '?', '[', ':']) {
            return Ok(());
        }
        let mut looked: Vec<String> =
            self.candidates(path).map(|place| place.display().to_string()).collect();
        looked.dedup();
        bail!("{key}: there is no {}; looked for at {}", path.display(), looked.join(", "))
    }

    fn candidates<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        std::iter::once(&self.worktree).chain(&self.search).map(move |folder| folder.join(path))
    }
}
