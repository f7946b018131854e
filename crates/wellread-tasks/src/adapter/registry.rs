//! The kinds of experiments that there are: one line each, and the choice among them.

use super::experiments::EXPERIMENTS;
use super::interface::Adapter;
use super::{command, cyto_dl, lightning, native};
use crate::repository::Branch;
use crate::task::Row;
use anyhow::{Result, bail};

/// One line per adapter, in the order in which `--adapter auto` asks them; the last one takes everything.
pub static ADAPTERS: &[&dyn Adapter] =
    &[&cyto_dl::CytoDl, &lightning::Lightning, &native::Native, &command::CommandLine];

/// Names for `--adapter`, `auto` first.
pub fn names() -> Vec<&'static str> {
    std::iter::once("auto").chain(ADAPTERS.iter().map(|adapter| adapter.name())).collect()
}

/// The adapter of a row: the one named, or with `auto` the first that suits. A script is a script, also where the
/// branch has experiments of other kinds beside it.
///
/// # Errors
/// No adapter has that name; a repository that cannot be read.
pub fn choose(name: &str, branch: &Branch, row: &Row) -> Result<&'static dyn Adapter> {
    if name == "auto" && is_script_alone(branch, &row.experiment)? {
        return Ok(&command::CommandLine);
    }
    for &adapter in ADAPTERS {
        if adapter.name() == name || (name == "auto" && adapter.suits(branch, row)?) {
            return Ok(adapter);
        }
    }
    bail!("{name:?} is no adapter; there are {}", names().join(", "))
}

/// Whether the branch has an experiment as a script, and not as the settings of another adapter.
fn is_script_alone(branch: &Branch, experiment: &str) -> Result<bool> {
    if !command::has_script(branch, experiment)? {
        return Ok(false);
    }
    for ending in ADAPTERS.iter().flat_map(|adapter| adapter.endings()) {
        if branch.has(&format!("{EXPERIMENTS}/{experiment}.{ending}"))? {
            return Ok(false);
        }
    }
    Ok(true)
}
