//! The git program, asked so that it changes nothing of the user's: no prompt, no hook, no maintenance, no index lock.

use anyhow::{Context as _, Result, bail};
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Variables by which git would look at another repository or index than the one it is told, as inside of a hook.
const REDIRECTIONS: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
];

/// Takes the variables of [`REDIRECTIONS`] from a command.
pub fn forget_redirections(command: &mut Command) {
    for name in REDIRECTIONS {
        command.env_remove(name);
    }
}

/// Subcommands that may ask a remote.
const REMOTE: [&str; 4] = ["fetch", "ls-remote", "submodule", "worktree"];

/// Whether the user says how ssh is run: then that is done.
fn has_own_ssh(folder: &Path) -> bool {
    let said = |name: &str| std::env::var_os(name).is_some();
    said("GIT_SSH_COMMAND")
        || said("GIT_SSH")
        || git(folder, &["config", "--get", "core.sshCommand"])
            .output()
            .is_ok_and(|said| said.status.success())
}

/// A git command in a folder.
pub(super) fn git<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Command {
    let mut command = Command::new("git");
    forget_redirections(&mut command);
    command.arg("-C").arg(folder);
    for setting in [
        "core.hooksPath=/dev/null",
        "gc.auto=0",
        "maintenance.auto=false",
        "advice.detachedHead=false",
        // A remote that does not answer is given up.
        "http.lowSpeedLimit=1000",
        "http.lowSpeedTime=30",
    ] {
        command.args(["-c", setting]);
    }
    command.args(args);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    let asks = |name: &&str| args.first().is_some_and(|first| first.as_ref() == OsStr::new(*name));
    if REMOTE.iter().any(asks) && !has_own_ssh(folder) {
        // ssh asks for passwords at the terminal itself, whatever its input is.
        command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
    }
    command.stdin(Stdio::null());
    command
}

/// Runs it; `None` when it fails.
pub(super) fn try_git_output<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Result<Option<String>> {
    let output = run(git(folder, args))?;
    Ok(output.status.success().then(|| text(&output.stdout)))
}

/// Runs it and gives what it prints.
///
/// # Errors
/// It fails: with its last words.
pub(super) fn git_output<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Result<String> {
    checked(&run(git(folder, args))?, args)
}

/// As [`git_output`], with something to read.
pub(super) fn git_output_with_stdin<S: AsRef<OsStr>>(
    folder: &Path,
    args: &[S],
    input: &str,
) -> Result<String> {
    let mut command = git(folder, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context(NO_GIT)?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may end before it has read everything; its status tells then.
        let _ = stdin.write_all(input.as_bytes());
    }
    checked(&child.wait_with_output().context(NO_GIT)?, args)
}

const NO_GIT: &str = "cannot run git, which `wellread tasks` needs; install it and put it on the PATH";

fn run(mut command: Command) -> Result<Output> {
    command.output().context(NO_GIT)
}

fn checked<S: AsRef<OsStr>>(output: &Output, args: &[S]) -> Result<String> {
    if !output.status.success() {
        let said = text(&output.stderr);
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join("; ");
        let what = args.first().map(|arg| arg.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
        bail!("git {what} failed: {last}");
    }
    Ok(text(&output.stdout))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_does_not_ask_unless_the_user_says_how_it_is_run() {
        let dir = tempfile::tempdir().unwrap();
        git_output(dir.path(), &["init", "--quiet"]).unwrap();
        let ssh = |args: &[&str]| {
            let command = git(dir.path(), args);
            let mut variables = command.get_envs();
            variables.any(|(name, value)| name == "GIT_SSH_COMMAND" && value.is_some())
        };
        // Where whoever runs the tests has said so, nothing is set in any case.
        assert_eq!(ssh(&["fetch", "origin"]), !has_own_ssh(dir.path()));
        assert!(!ssh(&["show", "HEAD"]), "it asks nobody");
        git_output(dir.path(), &["config", "core.sshCommand", "ssh -i key"]).unwrap();
        assert!(has_own_ssh(dir.path()) && !ssh(&["fetch", "origin"]));
    }
}
