//! Lightning: any `LightningModule` and `LightningDataModule` of a branch.
//!
//! The experiment is `package.module:ModelClass,package.module:DataClass` (the data may be missing where the model
//! brings its own loaders). Or it is the name of `configs/experiment/EXPERIMENT.yaml`, which names the classes and
//! their arguments, as `LightningCLI` has it. The process is `python/wellread/_tasks/lightning.py`.

use super::experiments::{EXPERIMENTS, experiment_file};
use super::interface::{Adapter, Site};
use super::python;
use crate::repository::Branch;
use crate::task::{Mode, Row};
use anyhow::{Result, bail};
use std::process::Command;

/// Endings of files that hold an experiment.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// Folders of a branch that Python imports from.
const ROOTS: [&str; 2] = ["", "src/"];
/// The targets of an override: each begins with one of these.
const PARTS: [&str; 3] = ["model.", "data.", "trainer."];

/// The adapter.
pub(super) struct Lightning;

impl Adapter for Lightning {
    fn name(&self) -> &'static str {
        "lightning"
    }

    fn suits(&self, branch: &Branch, row: &Row) -> Result<bool> {
        if let Some(modules) = modules(&row.experiment) {
            return in_branch(branch, top(modules[0]));
        }
        for ending in ENDINGS {
            let file = branch.read(&format!("{EXPERIMENTS}/{}.{ending}", row.experiment))?;
            if file.is_some_and(|text| text.contains("class_path")) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn check(&self, branch: &Branch, row: &Row, mode: Mode) -> Result<()> {
        match modules(&row.experiment) {
            Some(modules) => {
                for module in modules {
                    // One whose package is elsewhere may be in the environment.
                    if in_branch(branch, top(module))? && !in_branch(branch, module)? {
                        bail!(
                            "branch {:?} has no module {module:?}: there is no {}.py in it",
                            branch.name,
                            module.replace('.', "/")
                        );
                    }
                }
            }
            None if row.experiment.contains(':') => bail!(
                "experiment {:?} is not package.module:ModelClass,package.module:DataClass",
                row.experiment
            ),
            None => {
                experiment_file(branch, &row.experiment, &ENDINGS)?;
            }
        }
        if mode == Mode::Inference && row.checkpoint_path.is_none() {
            bail!("inference needs a checkpoint_path: a checkpoint that Lightning has written");
        }
        for one in &row.overrides {
            if !PARTS.iter().any(|part| one.starts_with(part)) || !one.contains('=') {
                bail!("override {one:?} must be model.NAME=VALUE, data.NAME=VALUE or trainer.NAME=VALUE");
            }
        }
        Ok(())
    }

    fn modules(&self) -> Option<&'static [&'static str]> {
        // Lightning has two packages; which of them a branch needs, it says itself when it is imported.
        Some(&["torch"])
    }

    fn command(&self, site: &Site<'_>) -> Result<Command> {
        python::command(site, self.name())
    }
}

/// The modules of `package.module:Class,package.module:Class`; `None` for what is nothing of the kind.
fn modules(experiment: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = experiment.split(',').map(str::trim).collect();
    if parts.len() > 2 {
        return None;
    }
    parts
        .into_iter()
        .map(|part| {
            let (module, class) = part.split_once(':')?;
            (module.split('.').all(is_identifier) && is_identifier(class)).then_some(module)
        })
        .collect()
}

fn is_identifier(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn top(module: &str) -> &str {
    module.split('.').next().unwrap_or(module)
}

/// Whether the branch has a module or package of this name, or may have it in a submodule.
fn in_branch(branch: &Branch, module: &str) -> Result<bool> {
    let path = module.replace('.', "/");
    for root in ROOTS {
        if branch.has(&format!("{root}{path}.py"))? || branch.may_have(&format!("{root}{path}"))? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_paths_are_told_from_names_and_command_lines() {
        assert_eq!(modules("net:Net").unwrap(), ["net"]);
        assert_eq!(modules("a.b.c:Net, a.data:Data").unwrap(), ["a.b.c", "a.data"]);
        for other in
            ["", "im2im/segmentation", "sh -c 'a:b'", "a:b:c", "a.:B", "1a:B", "a:B,", "a:B,c:D,e:F", ":B"]
        {
            assert!(modules(other).is_none(), "{other}");
        }
    }
}
