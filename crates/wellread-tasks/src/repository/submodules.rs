//! Submodules of a worktree: from the user's own clones of them where those hold the commit, else from where
//! `.gitmodules` says they are.
//!
//! ```text
//!  gitlink of the commit ─▶ name in .gitmodules ─▶ MODULES/NAME has the commit? ──yes──▶ cloned from there
//!                                                                              └──no───▶ git submodule update
//! ```
//!
//! So a run needs no network for what was checked out here before. The user's clones are read and nothing more.

use super::git::{git_output, try_git_output};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The folders in which a repository keeps clones of its submodules: its own, and those of the user's worktree.
///
/// # Errors
/// A repository that cannot be read.
pub(super) fn folders(user: &Path, common: &Path) -> Result<Vec<PathBuf>> {
    let own = git_output(user, &["rev-parse", "--path-format=absolute", "--git-path", "modules"])?;
    let mut folders = vec![PathBuf::from(own.trim_end_matches('\n')), common.join("modules")];
    folders.dedup();
    Ok(folders)
}

/// The submodules in what `git ls-tree -z` lists: commit and path.
pub(super) fn links(listed: &str) -> impl Iterator<Item = (&str, &str)> {
    // "MODE TYPE HASH\tPATH"; a submodule is a commit within a tree.
    listed.split('\0').filter_map(|entry| {
        let (about, path) = entry.split_once('\t')?;
        Some((about.strip_prefix("160000 commit ")?, path))
    })
}

/// Checks all submodules of a worktree out, and theirs; `modules` are the folders of [`folders`].
///
/// # Errors
/// A submodule that is not here and cannot be fetched.
pub(super) fn check_out(worktree: &Path, modules: &[PathBuf]) -> Result<()> {
    let listed = git_output(worktree, &["ls-tree", "-r", "-z", "HEAD"])?;
    let named = names(worktree)?;
    for (commit, path) in links(&listed) {
        let name = named.iter().find(|(_, of)| of == path).map(|(name, _)| name.as_str());
        let places: Vec<PathBuf> =
            name.into_iter().flat_map(|name| modules.iter().map(move |folder| folder.join(name))).collect();
        let here = places.iter().find(|place| holds(place, commit));
        let taken = match (name, here) {
            (Some(name), Some(here)) => take(worktree, path, name, here)?,
            _ => false,
        };
        if !taken {
            git_output(worktree, &["submodule", "update", "--init", "--", path])?;
        }
        let inner = worktree.join(path);
        // One that is not to be checked out is an empty folder, in which git would find the repository around it.
        if inner.join(".git").exists() {
            let below: Vec<PathBuf> = places.iter().map(|place| place.join("modules")).collect();
            check_out(&inner, &below)?;
        }
    }
    Ok(())
}

/// Names and paths in `.gitmodules`.
fn names(worktree: &Path) -> Result<Vec<(String, String)>> {
    let args = ["config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"];
    let said = try_git_output(worktree, &args)?.unwrap_or_default();
    let entry = |entry: &str| -> Option<(String, String)> {
        // "submodule.NAME.path\nPATH"
        let (key, path) = entry.split_once('\n')?;
        let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
        Some((name.to_owned(), path.to_owned()))
    };
    Ok(said.split('\0').filter_map(entry).collect())
}

/// Whether a clone has the commit.
fn holds(place: &Path, commit: &str) -> bool {
    // Its own settings name a working tree, which is gone where another branch is checked out.
    let object = format!("{commit}^{{commit}}");
    let args = ["--git-dir=.", "--work-tree=.", "cat-file", "-e", &object];
    place.is_dir() && try_git_output(place, &args).is_ok_and(|said| said.is_some())
}

/// Clones a submodule from a clone of this machine; `false` where that fails.
fn take(worktree: &Path, path: &str, name: &str, here: &Path) -> Result<bool> {
    // A setting on the command line ends its name at the first "=".
    if name.contains('=') {
        return Ok(false);
    }
    // Where it is from by right: for its own submodules, whose addresses may be relative to that.
    git_output(worktree, &["submodule", "init", "--", path])?;
    let url =
        try_git_output(worktree, &["config", "--get", &format!("submodule.{name}.url")])?.unwrap_or_default();
    let from = format!("submodule.{name}.url={}", here.display());
    // Git lets submodules be taken from folders only where it is told so: this one alone, and it is the user's.
    let args = ["-c", "protocol.file.allow=always", "-c", &from, "submodule", "update", "--", path];
    if try_git_output(worktree, &args)?.is_none() {
        return Ok(false);
    }
    let (inner, url) = (worktree.join(path), url.trim_end_matches('\n'));
    if !url.is_empty() && inner.join(".git").exists() {
        git_output(&inner, &["config", "remote.origin.url", url])?;
    }
    Ok(true)
}
