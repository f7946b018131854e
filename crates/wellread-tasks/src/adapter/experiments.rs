//! The experiments that a branch has as files: looked for by name, listed where a name is not there.

use crate::repository::Branch;
use anyhow::{Result, bail};

/// Folder of a branch's experiments.
pub const EXPERIMENTS: &str = "configs/experiment";

/// How a branch spells an experiment that it does not have under this name: the only one that differs in `_` and `-` alone.
/// `None` where it has it, and where it has none or several such.
///
/// # Errors
/// A repository that cannot be read.
pub fn spelled(branch: &Branch, experiment: &str) -> Result<Option<String>> {
    let files = branch.list(EXPERIMENTS)?;
    let mut names: Vec<&str> =
        files.iter().map(|file| file.rsplit_once('.').map_or(&**file, |(name, _)| name)).collect();
    names.sort_unstable();
    names.dedup();
    if names.contains(&experiment) {
        return Ok(None);
    }
    let plain = |name: &str| name.replace(['_', '-'], "");
    let mut alike = names.into_iter().filter(|name| plain(name) == plain(experiment));
    Ok(alike.next().filter(|_| alike.next().is_none()).map(str::to_owned))
}

/// The file of a branch that is this experiment: the first that ends in one of `endings`.
///
/// # Errors
/// A repository that cannot be read.
pub(super) fn own_file(branch: &Branch, experiment: &str, endings: &[&str]) -> Result<Option<String>> {
    for ending in endings {
        let path = format!("{EXPERIMENTS}/{experiment}.{ending}");
        if branch.has(&path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Says that the branch has no such experiment, and which it has: those whose files end in one of `endings`.
///
/// # Errors
/// Always, unless the file is there.
pub fn experiment_file(branch: &Branch, experiment: &str, endings: &[&str]) -> Result<String> {
    if let Some(path) = own_file(branch, experiment, endings)? {
        return Ok(path);
    }
    let known = experiments(branch, endings)?;
    let has = if known.is_empty() {
        format!("it has none ({EXPERIMENTS}/*.{})", endings.join(", *."))
    } else {
        format!("it has {}", crate::nearest::listed(experiment, &known))
    };
    bail!("branch {:?} has no experiment {experiment:?}: {has}", branch.name)
}

/// The experiments of a branch, by the endings of their files.
///
/// # Errors
/// A repository that cannot be read.
pub fn experiments(branch: &Branch, endings: &[&str]) -> Result<Vec<String>> {
    let files = branch.list(EXPERIMENTS)?;
    let mut names: Vec<String> = files
        .iter()
        .filter_map(|file| file.rsplit_once('.'))
        .filter(|(_, ending)| endings.contains(ending))
        .map(|(name, _)| name.to_owned())
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}
