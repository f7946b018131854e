//! The experiments that there are: one line each.

use super::interface::Experiment;
use super::{labelfree, segmentation};
use anyhow::{Context as _, Result};

/// One line per experiment.
pub static EXPERIMENTS: &[&Experiment] = &[&segmentation::EXPERIMENT, &labelfree::EXPERIMENT];

/// The experiment of that name.
///
/// # Errors
/// No such experiment (the message lists those there are).
pub fn named(name: &str) -> Result<&'static Experiment> {
    let found = EXPERIMENTS.iter().find(|known| known.name == name || known.aliases.contains(&name));
    found.copied().with_context(|| {
        let known: Vec<_> = EXPERIMENTS.iter().map(|e| e.name).collect();
        format!("{name:?} is no native experiment (set `kind` to one of: {})", known.join(", "))
    })
}
