//! Experiments of our own in Rust, without Python: U-Nets that segment or predict a channel.
//!
//! The process is this program as `wellread task-native`. A branch holds its experiment as
//! `configs/experiment/EXPERIMENT.toml`, so that branches can differ in it. A repository without that folder gets the
//! defaults that the program has for the name.

use super::experiments::{EXPERIMENTS, experiment_file, own_file};
use super::interface::{Adapter, Site};
use crate::config::Config;
use crate::repository::Branch;
use crate::stop::scratch_folder;
use crate::task::{Mode, Row, TASK, Trainer};
use anyhow::{Context as _, Result, bail};
use std::process::{Command, Stdio};
use wellread_measure::path_text;

/// Endings of experiments.
const ENDINGS: [&str; 1] = ["toml"];

/// Experiments that the program has defaults for.
const BUILT_IN: [&str; 3] = ["im2im/segmentation", "im2im/labelfree", "im2im/label_free"];

/// The adapter.
pub(super) struct Native;

impl Adapter for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn suits(&self, branch: &Branch, row: &Row) -> Result<bool> {
        let built_in = BUILT_IN.contains(&row.experiment.as_str()) && branch.list(EXPERIMENTS)?.is_empty();
        Ok(built_in || own_file(branch, &row.experiment, &ENDINGS)?.is_some())
    }

    fn check(&self, branch: &Branch, row: &Row, mode: Mode) -> Result<()> {
        if !branch.list(EXPERIMENTS)?.is_empty() {
            experiment_file(branch, &row.experiment, &ENDINGS)?;
        } else if !BUILT_IN.contains(&row.experiment.as_str()) {
            bail!(
                "branch {:?} has no {EXPERIMENTS}, and {:?} is not one of the program's own experiments: {}",
                branch.name,
                row.experiment,
                BUILT_IN.join(", ")
            );
        }
        if mode == Mode::Inference && row.checkpoint_path.is_none() {
            bail!("native inference needs a checkpoint_path (best.safetensors of a training run)");
        }
        match row.trainer {
            Some(trainer @ (Trainer::Gpu | Trainer::Ddp)) => {
                bail!("native experiments run on the processors (trainer cpu), not on {trainer}")
            }
            _ => Ok(()),
        }
    }

    fn check_settings(&self, branch: &Branch, row: &Row, config: &Config) -> Result<()> {
        // The process of the task is asked itself, in a folder that has of the worktree what it looks at.
        let folder = scratch_folder()?;
        if !branch.list(EXPERIMENTS)?.is_empty() {
            let file = experiment_file(branch, &row.experiment, &ENDINGS)?;
            let path = folder.path().join(&file);
            let text = branch.read(&file)?.unwrap_or_default();
            std::fs::create_dir_all(path.parent().unwrap_or(folder.path()))
                .and_then(|()| std::fs::write(&path, text))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let task = folder.path().join("task.json");
        let asked = serde_json::json!({
            "mode": config.mode, "branch": row.branch, "experiment": row.experiment, "max_epochs": row.max_epochs,
            "batch_size": row.batch_size, "checkpoint_path": row.checkpoint_path, "data_path": row.data_path,
            "overrides": row.overrides, "worktree": path_text::text(folder.path()), "output_dir": path_text::text(folder.path()),
        });
        std::fs::write(&task, asked.to_string())
            .with_context(|| format!("cannot write {}", task.display()))?;
        let (program, args) = config.program.split_first().context("this program has no name")?;
        let mut command = Command::new(program);
        command.args(args).args(["task-native", "--check"]).env(TASK, &task).stdin(Stdio::null());
        let output = command.output().context("cannot start this program to check the settings")?;
        if output.status.success() {
            return Ok(());
        }
        let said =
            String::from_utf8_lossy(&output.stderr).replace(&*folder.path().to_string_lossy(), &row.branch);
        bail!("{}", said.trim().trim_start_matches("error: "))
    }

    fn command(&self, site: &Site<'_>) -> Result<Command> {
        let (program, args) = site.program.split_first().context("this program has no name")?;
        let mut command = Command::new(program);
        command.args(args).arg("task-native");
        Ok(command)
    }
}
