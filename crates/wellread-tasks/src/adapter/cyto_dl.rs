//! CytoDL: an experiment of the branch's Hydra configs, run by the branch's own `CytoDLModel`.
//!
//! The process is `python/wellread/_tasks/cyto_dl.py`. Only Hydra knows which keys the composed config has, so that
//! overrides are checked there. Facts in files are checked here, before anything runs.

use super::experiments::{experiment_file, own_file};
use super::interface::{Adapter, Site};
use super::python;
use crate::config::Config;
use crate::hardware;
use crate::nearest;
use crate::repository::Branch;
use crate::task::{Mode, Row, Trainer};
use anyhow::{Result, bail};
use std::process::Command;

/// Ending of Hydra's files.
const ENDING: &str = "yaml";
/// Folder of the trainers.
const TRAINERS: &str = "configs/trainer";

/// The adapter.
pub(super) struct CytoDl;

impl Adapter for CytoDl {
    fn name(&self) -> &'static str {
        "cyto-dl"
    }

    fn suits(&self, branch: &Branch, row: &Row) -> Result<bool> {
        Ok(branch.has("cyto_dl")? && own_file(branch, &row.experiment, &[ENDING])?.is_some())
    }

    fn check(&self, branch: &Branch, row: &Row, mode: Mode) -> Result<()> {
        let main = if mode == Mode::Train { "configs/train.yaml" } else { "configs/eval.yaml" };
        for needed in ["cyto_dl", main] {
            if !branch.has(needed)? {
                bail!("branch {:?} has no {needed}: it is no CytoDL", branch.name);
            }
        }
        experiment_file(branch, &row.experiment, &[ENDING])?;
        if mode == Mode::Inference && row.checkpoint_path.is_none() {
            bail!("inference needs a checkpoint_path: a .ckpt file that a training run has written");
        }
        Ok(())
    }

    fn check_settings(&self, branch: &Branch, row: &Row, config: &Config) -> Result<()> {
        let Some(trainer) = row.trainer else { return Ok(()) };
        // Nodes of a cluster have the GPUs.
        let wanted = trainer_config(trainer, || config.on_other_machines || hardware::has_gpu());
        if branch.has(&format!("{TRAINERS}/{wanted}.{ENDING}"))? {
            return Ok(());
        }
        let has = branch.list(TRAINERS)?;
        let known: Vec<String> =
            has.iter().filter_map(|file| file.strip_suffix(".yaml")).map(str::to_owned).collect();
        bail!(
            "branch {:?} has no {TRAINERS}/{wanted}.{ENDING}: it has {}",
            branch.name,
            nearest::listed(wanted, &known)
        )
    }

    fn modules(&self) -> Option<&'static [&'static str]> {
        Some(&["torch", "lightning", "hydra", "omegaconf"])
    }

    fn command(&self, site: &Site<'_>) -> Result<Command> {
        python::command(site, self.name())
    }
}

/// The branch's config for the column `trainer`, as `hydra_config.py` chooses it: without GPUs, `ddp` is CytoDL's own
/// simulation of them by processes.
fn trainer_config(trainer: Trainer, has_gpu: impl Fn() -> bool) -> &'static str {
    if trainer == Trainer::Ddp && !has_gpu() { "ddp_sim" } else { trainer.name() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ddp_is_simulated_only_where_there_is_no_gpu() {
        assert_eq!(trainer_config(Trainer::Ddp, || false), "ddp_sim");
        assert_eq!(trainer_config(Trainer::Ddp, || true), "ddp");
        for gpu in [false, true] {
            assert_eq!(trainer_config(Trainer::Cpu, || gpu), "cpu");
            assert_eq!(trainer_config(Trainer::Gpu, || gpu), "gpu");
        }
    }
}
