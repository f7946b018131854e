//! How an experiment of a branch is run: one file per kind of experiment.
//!
//! An adapter turns a task into a process. Everything else (worktree, environment, time limit, memory, log, results) is
//! the same for all; what the process says of its phases it appends as JSON lines to the file that `WELLREAD_PHASES`
//! names ([`crate::phases`]), whatever language it is written in.
//!
//! ```text
//!  Row + Branch ──suits──▶ the adapter (--adapter auto) ──check──▶ errors that can be known before anything runs
//!  Task + Site ──command──▶ Command ── WELLREAD_TASK, WELLREAD_PHASES, the worktree as its folder ──▶ process
//! ```
//!
//! A new one is a file with a type that implements [`Adapter`] and a line in [`ADAPTERS`].

mod command;
mod cyto_dl;
mod lightning;
mod native;
mod python;

use crate::config::Config;
use crate::repository::Branch;
use crate::task::{Mode, Row, Task};
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One line per adapter, in the order in which `--adapter auto` asks them; the last one takes everything.
pub static ADAPTERS: &[&dyn Adapter] =
    &[&cyto_dl::CytoDl, &lightning::Lightning, &native::Native, &command::CommandLine];

/// A kind of experiment.
pub trait Adapter: Sync {
    /// Name of `--adapter` and in results.
    fn name(&self) -> &'static str;

    /// Whether the row is one of this adapter's, for `--adapter auto`: told from the files of the branch.
    ///
    /// # Errors
    /// A repository that cannot be read.
    fn suits(&self, branch: &Branch, row: &Row) -> Result<bool>;

    /// What is wrong with the row and can be known before anything runs: an experiment that the branch does not have
    /// (the message lists those it has), a missing checkpoint in the table.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    fn check(&self, branch: &Branch, row: &Row, mode: Mode) -> Result<()>;

    /// What is wrong with the row's settings, where that can be asked before anything runs: names and values of overrides.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    fn check_settings(&self, _branch: &Branch, _row: &Row, _config: &Config) -> Result<()> {
        Ok(())
    }

    /// For adapters in Python: the modules that the branch's environment must have besides the branch itself, such as
    /// `["torch", "lightning"]`. `None` for adapters that need no Python, which get no environment.
    fn modules(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// The process, without folder, streams and the two variables, which are set for all.
    ///
    /// # Errors
    /// Files that cannot be unpacked or read.
    fn command(&self, site: &Site<'_>) -> Result<Command>;
}

/// Where and with what a process is started.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// What it is told.
    pub task: &'a Task,
    /// This program: what starts it, before any arguments.
    pub program: &'a [OsString],
    /// The Python of the branch's environment; for adapters in Python.
    pub python: &'a Path,
    /// A folder that is there until the whole run ends, the same for all tasks: sources unpacked once.
    pub scratch: &'a Path,
}

impl Site<'_> {
    /// The Python of the branch's environment, which imports the modules of the branch before any that is installed
    /// (`PYTHONPATH` is the worktree, and `src` of it where there is one).
    pub fn python_command(&self) -> Command {
        let tree = &self.task.worktree;
        let mut folders: Vec<PathBuf> = Vec::new();
        folders.extend(Some(tree.join("src")).filter(|src| src.is_dir()));
        folders.push(tree.clone());
        let mut command = Command::new(self.python);
        // Only a folder with ":" in its name cannot be joined; it is then found as the process's own folder.
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PYTHONPATH", path);
        }
        command.env("PYTHONUNBUFFERED", "1");
        command
    }
}

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

/// Folder of a branch's experiments.
pub const EXPERIMENTS: &str = "configs/experiment";

/// Says that the branch has no such experiment, and which it has: those whose files end in one of `endings`.
///
/// # Errors
/// Always, unless the file is there.
pub fn experiment_file(branch: &Branch, experiment: &str, endings: &[&str]) -> Result<String> {
    for ending in endings {
        let path = format!("{EXPERIMENTS}/{experiment}.{ending}");
        if branch.has(&path)? {
            return Ok(path);
        }
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
