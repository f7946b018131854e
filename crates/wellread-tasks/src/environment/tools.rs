//! The tools for environments on this machine: the Python that they are made of, and uv.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first uv that installs what a `pylock.toml` lists.
pub(super) const PYLOCK_SINCE: [u32; 3] = [0, 6, 15];

/// Prints the version, and the folders in which programs are installed with this Python.
const ASK: &str = "\
import os, sys, sysconfig
print(' '.join(sys.version.split()))
print(sysconfig.get_path('scripts'))
print(sysconfig.get_path('scripts', os.name + '_user'))";

/// The tools for environments on this machine.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    /// uv, where there is one; else venv and pip are used.
    pub uv: Option<Uv>,
    /// The Python that environments are made of unless the branch asks for another.
    pub base: PathBuf,
    /// Its version as it prints it; empty where it cannot be asked.
    pub version: String,
}

/// The Python of the environment in `folder`.
pub(super) fn interpreter(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// The program uv.
#[derive(Clone, Debug)]
pub(super) struct Uv {
    /// How it is started.
    pub program: PathBuf,
    /// Whether it is new enough for `pylock.toml`.
    pub reads_pylock: bool,
}

impl Tools {
    /// Looks for them.
    pub fn find() -> Self {
        let base = wellread_worker::python(None);
        let answer = stdout_of(&mut wellread_worker::python_command(&base, ASK)).unwrap_or_default();
        let mut lines = answer.lines();
        let version = lines.next().unwrap_or_default().to_owned();
        // A Python may have uv beside it without being on the PATH, as one of a virtual environment.
        let beside = lines.map(|folder| PathBuf::from(folder).join("uv"));
        Self { uv: uv(std::iter::once(PathBuf::from("uv")).chain(beside)), base, version }
    }
}

/// The first of these programs that starts.
fn uv(mut places: impl Iterator<Item = PathBuf>) -> Option<Uv> {
    places.find_map(|program| {
        let version = stdout_of(Command::new(&program).arg("--version"))?;
        Some(Uv { program, reads_pylock: reads_pylock(&version) })
    })
}

/// Whether the uv that says "uv 0.9.2 (…)" is new enough.
fn reads_pylock(version: &str) -> bool {
    let version = version.split_whitespace().nth(1).unwrap_or_default();
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    [next(), next(), next()] >= PYLOCK_SINCE
}

/// The output of a program that succeeds.
fn stdout_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_uv_are_told_apart() {
        for (version, reads) in [
            ("uv 0.6.15", true),
            ("uv 0.13.9 (x86_64-unknown-linux-gnu)", true),
            ("uv 1.0.0", true),
            ("uv 0.6.14 (a4cec56dc 2025-04-09)", false),
            ("uv 0.5.31", false),
            ("", false),
        ] {
            assert_eq!(reads_pylock(version), reads, "{version}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn uv_is_found_where_it_is_not_on_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let beside = dir.path().join("uv");
        assert!(uv([dir.path().join("none"), beside.clone()].into_iter()).is_none());
        // A program that succeeds, whatever it is asked.
        std::os::unix::fs::symlink("/usr/bin/true", &beside).unwrap();
        let found = uv([dir.path().join("none"), beside.clone()].into_iter()).unwrap();
        assert_eq!((found.program, found.reads_pylock), (beside, false));
    }
}
