//! The parts that the adapters in Python share: their sources, which the program carries, run by the branch's
//! Python.

use super::interface::Site;
use anyhow::{Context as _, Result};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use wellread_worker::{TASKS, unpack_tasks};

/// The process of an adapter of `python/wellread/_tasks`: `python -m _wellread_tasks NAME`.
///
/// A module that is run by its name is what Lightning starts again for the other ranks of `ddp`.
///
/// # Errors
/// Sources that cannot be unpacked.
pub(super) fn command(site: &Site<'_>, name: &str) -> Result<Command> {
    unpack_tasks(site.scratch)?;
    let mut command = site.python_command();
    // Behind the branch's own folders: its own modules come first.
    let path = search_path(&command, site.scratch)?;
    command.env("PYTHONPATH", path).args(["-m", TASKS, name]);
    Ok(command)
}

fn search_path(command: &Command, last: &Path) -> Result<std::ffi::OsString> {
    let set = command.get_envs().find(|(name, _)| *name == OsStr::new("PYTHONPATH"));
    let set = set.and_then(|(_, value)| value).unwrap_or_default();
    let folders = std::env::split_paths(set).chain([last.to_path_buf()]);
    std::env::join_paths(folders.filter(|folder| !folder.as_os_str().is_empty()))
        .with_context(|| format!("{}: Python cannot search a folder of this name", last.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_come_after_the_branch() {
        let mut command = Command::new("python");
        assert_eq!(search_path(&command, Path::new("/s")).unwrap(), "/s");
        command.env("PYTHONPATH", "/tree/src:/tree");
        assert_eq!(search_path(&command, Path::new("/s")).unwrap(), "/tree/src:/tree:/s");
        assert!(search_path(&command, Path::new("/a:b")).is_err());
    }
}
