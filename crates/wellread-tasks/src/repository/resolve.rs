//! From a name to a commit: here, or at a remote from which it is then fetched.

use super::Branch;
use super::branch::GitAnswers;
use super::git::{git_output, try_git_output};
use crate::nearest::nearest;
use anyhow::{Result, bail};
use std::path::Path;

/// Names that a message suggests.
const SUGGESTED: usize = 5;

/// Finds `name` in the user's repository, else at its remotes; fetched objects go into `objects`.
pub(super) fn branch(user: &Path, objects: &Path, name: &str) -> Result<Branch> {
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
        bail!("{name:?} is no name of a branch, tag or commit");
    }
    let remotes = remotes(user)?;
    if let Some((commit, found)) = here(user, name, &remotes)? {
        return named(objects, name, &commit, found);
    }
    let mut unreachable = Vec::new();
    let mut known = Vec::new();
    for remote in &remotes {
        match at_remote(objects, remote, name, &mut known) {
            Ok(Some(commit)) => {
                return named(objects, name, &commit, Some(format!("fetched from {remote}")));
            }
            Ok(None) => {}
            Err(error) => unreachable.push(format!("remote {remote} could not be asked ({error:#})")),
        }
    }
    let names = git_output(
        user,
        &["for-each-ref", "--format", "%(refname)", "refs/heads", "refs/tags", "refs/remotes"],
    )?;
    known.extend(names.lines().filter_map(short).map(str::to_owned));
    known.sort();
    known.dedup();
    let mut text = format!("there is no branch, tag or commit {name:?}");
    let near = nearest(name, &known, SUGGESTED);
    if !near.is_empty() {
        text += &format!("; the nearest are {}", near.join(", "));
    } else if known.is_empty() {
        text += "; the repository has no commits";
    } else {
        text += &format!("; there are {}", crate::nearest::listed(name, &known));
    }
    if is_short_hash(name) && !remotes.is_empty() {
        text += "; a commit that only a remote has is found by its full hash alone";
    }
    for why in unreachable {
        text += &format!("; {why}");
    }
    bail!(text)
}

/// Whether a name may be the beginning of a commit's hash, which remotes cannot be asked for.
fn is_short_hash(name: &str) -> bool {
    (4..40).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The remotes, `origin` first.
fn remotes(user: &Path) -> Result<Vec<String>> {
    let mut remotes: Vec<String> = git_output(user, &["remote"])?.lines().map(str::to_owned).collect();
    remotes.sort_by_key(|name| name != "origin");
    Ok(remotes)
}

/// The commit in the user's repository, and how it was found. A branch goes before a tag of the same name.
fn here(user: &Path, name: &str, remotes: &[String]) -> Result<Option<(String, Option<String>)>> {
    let mut places = vec![(format!("refs/heads/{name}"), None), (format!("refs/tags/{name}"), None)];
    for remote in remotes {
        let found = format!("as last fetched from {remote}");
        places.push((format!("refs/remotes/{remote}/{name}"), Some(found)));
    }
    places.push((name.to_owned(), None));
    for (place, found) in places {
        let revision = format!("{place}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &revision];
        if let Some(commit) = try_git_output(user, &args)? {
            return Ok(Some((commit.trim().to_owned(), found)));
        }
    }
    Ok(None)
}

/// Looks for a branch, tag or full hash at a remote and fetches its commit. The names it has are added to `known`.
fn at_remote(objects: &Path, remote: &str, name: &str, known: &mut Vec<String>) -> Result<Option<String>> {
    let listed = git_output(objects, &["ls-remote", "--heads", "--tags", remote])?;
    let listed: Vec<(&str, &str)> = listed.lines().filter_map(|line| line.split_once('\t')).collect();
    known.extend(listed.iter().filter_map(|(_, full)| short(full)).map(str::to_owned));
    let of =
        |full: String| listed.iter().find(|(_, other)| *other == full).map(|(hash, _)| (*hash).to_owned());
    let is_hash = matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (what, commit) = if let Some(commit) = of(format!("refs/heads/{name}")) {
        (format!("refs/heads/{name}"), commit)
    } else if let Some(commit) =
        of(format!("refs/tags/{name}^{{}}")).or_else(|| of(format!("refs/tags/{name}")))
    {
        (format!("refs/tags/{name}"), commit)
    } else if is_hash {
        (name.to_owned(), name.to_owned())
    } else {
        return Ok(None);
    };
    // A repository with a part of the history fetches only the commit.
    let depth = if objects.join("shallow").is_file() { &["--depth=1"][..] } else { &[] };
    let fetch =
        [&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap="], depth, &[remote, &what]];
    git_output(objects, &fetch.concat())?;
    Ok(Some(commit))
}

/// A reference as people name it: without `refs/heads/` and the like.
fn short(full: &str) -> Option<&str> {
    let full = full.strip_suffix("^{}").unwrap_or(full);
    if full.ends_with("/HEAD") {
        return None;
    }
    full.strip_prefix("refs/heads/").or_else(|| full.strip_prefix("refs/tags/")).or_else(|| {
        // "refs/remotes/origin/main" is found as "main".
        Some(full.strip_prefix("refs/remotes/")?.split_once('/')?.1)
    })
}

fn named(objects: &Path, name: &str, commit: &str, found: Option<String>) -> Result<Branch> {
    let date = git_output(objects, &["show", "--no-patch", "--no-show-signature", "--format=%cI", commit])?;
    Ok(Branch {
        name: name.to_owned(),
        commit: commit.to_owned(),
        date: date.trim().to_owned(),
        found,
        objects: objects.to_path_buf(),
        said: GitAnswers::default(),
    })
}
