//! Where the relative paths of a table are looked for: beside the table, in the branch, in the working folder, in the folder
//! of `--repo`. The first that is there counts.
//!
//! The branch comes before the two folders, in which another branch may be checked out: files that a branch holds are
//! taken from it.

use crate::config::Config;
use crate::repository::Branch;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};

/// The folders of a run.
pub struct SearchPath {
    table: PathBuf,
    /// The working folder and that of `--repo`, where it is another.
    others: Vec<(PathBuf, &'static str)>,
}

impl SearchPath {
    /// Those of a run.
    ///
    /// # Errors
    /// A working folder that is gone.
    pub fn of(config: &Config) -> Result<Self> {
        let working = std::env::current_dir().context("the working folder is gone")?;
        Self::new(config.table_folder(), &working, &config.repository)
    }

    fn new(table: &Path, working: &Path, repository: &Path) -> Result<Self> {
        let absolute = |path: &Path| {
            let path = working.join(path);
            std::path::absolute(&path).with_context(|| format!("{} has no absolute path", path.display()))
        };
        let table = absolute(table)?;
        let mut others = vec![(absolute(working)?, "the working folder")];
        let repository = absolute(repository)?;
        if others[0].0 != repository {
            others.push((repository, "--repo"));
        }
        Ok(Self { table, others })
    }

    /// The folders in which the process of a task looks for what its branch does not hold.
    pub fn beyond_the_branch(&self) -> Vec<PathBuf> {
        self.others.iter().map(|(folder, _)| folder.clone()).collect()
    }

    /// Makes sure that a path of the column `name` is somewhere.
    ///
    /// # Errors
    /// It is nowhere: the message lists every place that was looked at. A repository that cannot be read.
    pub fn check(&self, name: &str, path: &str, branch: &Branch) -> Result<()> {
        if is_url(path) || self.outside(path).is_some() {
            return Ok(());
        }
        if Path::new(path).is_absolute() {
            bail!("{name}: there is no {path}");
        }
        let within = plain(path);
        if branch.may_have(&within)? {
            return Ok(());
        }
        let mut looked = vec![format!("{} (beside the table)", self.table.join(path).display())];
        looked.push(format!("{within} in the branch {}", branch.name));
        looked.extend(
            self.others.iter().map(|(folder, what)| format!("{} ({what})", folder.join(path).display())),
        );
        bail!("{name}: there is no {path}; looked for at {}", looked.join(", "))
    }

    /// A path as the process is given it: absolute, or a URL.
    pub fn absolute(&self, path: Option<&str>, worktree: &Path) -> Option<String> {
        let path = path?;
        if is_url(path) {
            return Some(path.to_owned());
        }
        let beside = self.table.join(path);
        let within = worktree.join(path);
        let found = if beside.exists() || within.exists() { None } else { self.outside(path) };
        let found = found.unwrap_or(if beside.exists() { beside } else { within });
        Some(found.to_string_lossy().into_owned())
    }

    /// The first of the folders of this machine that has it.
    fn outside(&self, path: &str) -> Option<PathBuf> {
        let folders = std::iter::once(&self.table).chain(self.others.iter().map(|(folder, _)| folder));
        folders.map(|folder| folder.join(path)).find(|path| path.exists())
    }
}

fn is_url(path: &str) -> bool {
    path.contains("://")
}

/// A relative path as git has it.
fn plain(path: &str) -> String {
    path.trim_start_matches("./").trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_beside_the_table_in_the_branch_in_the_working_folder_or_in_repo() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str| dir.path().join(name);
        let put = |at: &str| {
            std::fs::create_dir_all(folder(at).parent().unwrap()).unwrap();
            std::fs::write(folder(at), "").unwrap();
        };
        for at in [
            "table/a.ckpt",
            "tree/a.ckpt",
            "tree/b.ckpt",
            "work/b.ckpt",
            "work/c.ckpt",
            "repo/c.ckpt",
            "repo/d.ckpt",
        ] {
            put(at);
        }
        let search_path = SearchPath::new(&folder("table"), &folder("work"), &folder("repo")).unwrap();
        let of = |path: &str| search_path.absolute(Some(path), &folder("tree")).unwrap();
        for (path, expected) in [
            ("a.ckpt", "table/a.ckpt"),
            ("b.ckpt", "tree/b.ckpt"),
            ("c.ckpt", "work/c.ckpt"),
            ("d.ckpt", "repo/d.ckpt"),
        ] {
            assert_eq!(of(path), folder(expected).to_string_lossy());
        }
        // A submodule may bring it.
        assert_eq!(of("e.ckpt"), folder("tree/e.ckpt").to_string_lossy());
        assert_eq!((of("/x/y"), of("s3://bucket/x")), ("/x/y".to_owned(), "s3://bucket/x".to_owned()));
        assert_eq!(search_path.absolute(None, dir.path()), None);
        assert_eq!(search_path.beyond_the_branch(), [folder("work"), folder("repo")]);
        let same = SearchPath::new(&folder("table"), &folder("work"), Path::new(".")).unwrap();
        assert_eq!(same.beyond_the_branch(), [folder("work")]);
    }
}
