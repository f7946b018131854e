//! The commit of a working tree, from the files of git itself; no git program needed but to know of changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// The revision that is checked out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    /// Full hash of the commit.
    pub commit: String,
    /// Branch; `None` when detached.
    pub branch: Option<String>,
    /// Whether tracked files have changes; `None` when there is no git program to ask.
    pub changed: Option<bool>,
}

impl GitState {
    /// The state of the working tree that holds a folder; `None` outside of one, or before its first commit.
    pub fn read(folder: &Path) -> Option<Self> {
        let folder = fs::canonicalize(folder).ok()?;
        let (tree, git) = folder.ancestors().find_map(|tree| Some((tree, git_folder(tree)?)))?;
        let head = fs::read_to_string(git.join("HEAD")).ok()?;
        let head = head.trim();
        let (commit, branch) = match head.strip_prefix("ref: ") {
            None => (head.to_owned(), None),
            Some(reference) => {
                let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
                (resolve(&git, reference)?, Some(branch.to_owned()))
            }
        };
        // SHA-1 or SHA-256; anything else is not a commit.
        let is_hash = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| Self { commit, branch, changed: has_changes(tree) })
    }
}

/// The folder of git's files: `.git` itself, or the one that the file `.git` of a linked work tree names.
fn git_folder(tree: &Path) -> Option<PathBuf> {
    let git = tree.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = fs::read_to_string(&git).ok()?;
    Some(tree.join(text.trim().strip_prefix("gitdir: ")?))
}

/// The commit of a reference: a file of its own, or a line `HASH NAME` among the packed ones. Linked work trees
/// share the references of the main one.
fn resolve(git: &Path, reference: &str) -> Option<String> {
    let common = fs::read_to_string(git.join("commondir")).map(|path| git.join(path.trim()));
    let folders = [Some(git.to_path_buf()), common.ok()];
    folders.into_iter().flatten().find_map(|folder| {
        if let Ok(text) = fs::read_to_string(folder.join(reference)) {
            return Some(text.trim().to_owned());
        }
        let packed = fs::read_to_string(folder.join("packed-refs")).ok()?;
        packed.lines().find_map(|line| {
            let (hash, name) = line.split_once(' ')?;
            (name == reference).then(|| hash.to_owned())
        })
    })
}

fn has_changes(tree: &Path) -> Option<bool> {
    let output = Command::new("git")
        .arg("-C")
        .arg(tree)
        // Asking must not write: other programs may hold the index.
        .args(["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(!output.stdout.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

    fn tree(files: &[(&str, String)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn commit(folder: &Path) -> Option<(String, Option<String>)> {
        GitState::read(folder).map(|state| (state.commit, state.branch))
    }

    #[test]
    fn branches_packed_detached_and_linked() {
        let found = |branch: Option<&str>| Some((HASH.to_owned(), branch.map(str::to_owned)));
        let head = || "ref: refs/heads/a/b\n".to_owned();
        let loose = tree(&[
            (".git/HEAD", head()),
            (".git/refs/heads/a/b", format!("{HASH}\n")),
            ("x/y/z", String::new()),
        ]);
        assert_eq!(commit(&loose.path().join("x/y")), found(Some("a/b")));
        let packed =
            tree(&[(".git/HEAD", head()), (".git/packed-refs", format!("# pack\n{HASH} refs/heads/a/b\n"))]);
        assert_eq!(commit(packed.path()), found(Some("a/b")));
        let detached = tree(&[(".git/HEAD", format!("{HASH}\n"))]);
        assert_eq!(commit(detached.path()), found(None));
        let linked = tree(&[
            ("work/.git", "gitdir: ../main/.git/worktrees/side\n".into()),
            ("main/.git/worktrees/side/HEAD", head()),
            ("main/.git/worktrees/side/commondir", "../..\n".into()),
            ("main/.git/refs/heads/a/b", format!("{HASH}\n")),
        ]);
        assert_eq!(commit(&linked.path().join("work")), found(Some("a/b")));
    }

    #[test]
    fn what_is_not_a_commit_is_none() {
        for head in ["", "ref: refs/heads/none", "hello", "ref: ../../../etc/passwd"] {
            let folder = tree(&[(".git/HEAD", head.to_owned())]);
            assert_eq!(commit(folder.path()), None, "{head}");
        }
        assert_eq!(commit(Path::new("no/such/folder")), None);
    }
}
