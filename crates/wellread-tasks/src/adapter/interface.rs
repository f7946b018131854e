//! The interface of a kind of experiment for the suite: [`Adapter`], which its file implements, and [`Site`], the place
//! where it starts a process.

use crate::config::Config;
use crate::repository::Branch;
use crate::task::{Mode, Row, Task};
use anyhow::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kind of experiment.
pub trait Adapter: Sync {
    /// Name of `--adapter` and in results.
    fn name(&self) -> &'static str;

    /// Whether the row is one of this adapter's, for `--adapter auto`: told from the file that the branch has of its experiment.
    ///
    /// # Errors
    /// A repository that cannot be read.
    fn suits(&self, branch: &Branch, row: &Row) -> Result<bool>;

    /// Checks the row as far as possible before anything runs. It finds an experiment that the branch does not have (the
    /// message lists those it has), a missing checkpoint in the table.
    ///
    /// # Errors
    /// The fault, and one thing to do.
    fn check(&self, branch: &Branch, row: &Row, mode: Mode) -> Result<()>;

    /// Checks the row's settings, where that is possible before anything runs: names and values of overrides.
    ///
    /// # Errors
    /// The fault, and one thing to do.
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
    /// The task that it gets.
    pub task: &'a Task,
    /// This program: the command that starts it, before any arguments.
    pub program: &'a [OsString],
    /// The Python of the branch's environment; for adapters in Python.
    pub python: &'a Path,
    /// A folder that is there until the whole run ends, the same for all tasks: sources unpacked once.
    pub scratch: &'a Path,
}

impl Site<'_> {
    /// The Python of the branch's environment, which imports the modules of the branch before any that is
    /// installed. `PYTHONPATH` is the worktree, and `src` of it where there is one.
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
