//! The kinds of experiments that there are: one line each, and the choice among them.

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

/// The adapter of a row: the one named, or with `auto` the first that suits.
///
/// # Errors
/// No adapter has that name; a repository that cannot be read.
pub fn choose(name: &str, branch: &Branch, row: &Row) -> Result<&'static dyn Adapter> {
    for &adapter in ADAPTERS {
        if adapter.name() == name || (name == "auto" && adapter.suits(branch, row)?) {
            return Ok(adapter);
        }
    }
    bail!("{name:?} is no adapter; there are {}", names().join(", "))
}
