//! Any program: the experiment is a command line, or the name of a script of the branch.
//!
//! Where the branch has `configs/experiment/EXPERIMENT.sh`, that is run (itself when it is executable, else by `sh`);
//! otherwise the experiment is a command line for `sh`. The program finds its task in `WELLREAD_TASK` and appends its
//! phases to `WELLREAD_PHASES`. Wall time and memory are known of one that reports nothing, and that is said.

use super::experiments::{EXPERIMENTS, own_file};
use super::interface::{Adapter, Site};
use crate::repository::Branch;
use crate::task::{Mode, Row};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;

/// Ending of scripts.
const ENDING: &str = "sh";

/// First words of a command line that are found nowhere because the shell itself knows them.
const OF_THE_SHELL: [&str; 28] = [
    ".", ":", "cd", "eval", "exec", "exit", "export", "for", "if", "while", "until", "case", "set", "unset",
    "trap", "true", "false", "test", "echo", "printf", "read", "wait", "ulimit", "umask", "times", "command",
    "kill", "{",
];

/// The adapter.
pub(super) struct CommandLine;

impl Adapter for CommandLine {
    fn name(&self) -> &'static str {
        "command"
    }

    fn suits(&self, _: &Branch, _: &Row) -> Result<bool> {
        Ok(true)
    }

    fn check(&self, branch: &Branch, row: &Row, _: Mode) -> Result<()> {
        if own_file(branch, &row.experiment, &[ENDING])?.is_some() {
            return Ok(());
        }
        let Some(program) = plain_program(&row.experiment) else { return Ok(()) };
        if program.contains('/') {
            if Path::new(program).is_absolute() && Path::new(program).exists()
                || branch.may_have(program.trim_start_matches("./"))?
            {
                return Ok(());
            }
        } else if OF_THE_SHELL.contains(&program) || on_path(program) {
            return Ok(());
        }
        // With `auto` the name may be meant for another adapter.
        let known = branch.list(EXPERIMENTS)?;
        let has = if known.is_empty() {
            format!("the branch has no {EXPERIMENTS}/*.{ENDING}")
        } else {
            format!("{EXPERIMENTS} has {}", crate::nearest::listed(&row.experiment, &known))
        };
        bail!(
            "branch {:?}: experiment {:?} is neither a script of the branch nor a command line: there is no program \
             {program:?}; {has}",
            branch.name,
            row.experiment
        )
    }

    fn command(&self, site: &Site<'_>) -> Result<Command> {
        let script = script(&site.task.experiment);
        let path = site.task.worktree.join(&script);
        if is_executable(&path) {
            return Ok(Command::new(path));
        }
        let mut command = Command::new("sh");
        if path.is_file() {
            command.arg(path);
        } else {
            command.args(["-c", &site.task.experiment]);
        }
        Ok(command)
    }
}

fn script(experiment: &str) -> String {
    format!("{EXPERIMENTS}/{experiment}.{ENDING}")
}

/// The first word of a command line, where it is plainly a program's name and not shell syntax.
fn plain_program(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    let plain = |c: char| c.is_alphanumeric() || "._/+-".contains(c);
    word.chars().all(plain).then_some(word)
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_executable(&folder.join(program)))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
