//! A branch, tag or commit, whose files are read from git's objects: nothing needs to be checked out for a check.

use super::{git, submodules};
use anyhow::Result;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The answers of git about a commit; they never change.
pub(super) type GitAnswers = Arc<Mutex<HashMap<Vec<String>, Option<String>>>>;

/// A commit under the name that the table has for it.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Branch, tag or commit as in the table.
    pub name: String,
    /// Full hash.
    pub commit: String,
    /// When it was committed, as in ISO 8601.
    pub date: String,
    /// How it was found, where that is not plain: from which remote.
    pub found: Option<String>,
    /// The repository that holds its objects.
    pub(super) objects: PathBuf,
    /// Answers, for the many rows of a table that ask the same.
    pub(super) said: GitAnswers,
}

impl Branch {
    /// The output of git; `None` where it fails. Asked once.
    fn try_git_output(&self, args: &[&str]) -> Result<Option<String>> {
        let key: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        if let Some(said) = self.said.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(said.clone());
        }
        let said = git::try_git_output(&self.objects, args)?;
        self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(key, said.clone());
        Ok(said)
    }

    /// As [`Self::try_git_output`], of what cannot fail for a commit that is there.
    fn git_output(&self, args: &[&str]) -> Result<String> {
        match self.try_git_output(args)? {
            Some(said) => Ok(said),
            // It says why.
            None => git::git_output(&self.objects, args),
        }
    }

    /// The files below a folder of the branch, relative to it, with `/`; none where there is no such folder.
    ///
    /// # Errors
    /// A repository that cannot be read.
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        let prefix = format!("{}/", folder.trim_matches('/'));
        let args = ["ls-tree", "-r", "-z", "--name-only", &self.commit, &prefix];
        let listed = self.git_output(&args)?;
        Ok(listed.split('\0').filter_map(|path| path.strip_prefix(&prefix)).map(str::to_owned).collect())
    }

    /// The files and folders at the top of the branch.
    ///
    /// # Errors
    /// A repository that cannot be read.
    pub fn list_top(&self) -> Result<Vec<String>> {
        let listed = self.git_output(&["ls-tree", "-z", "--name-only", &self.commit])?;
        Ok(listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Whether the branch has this file or folder.
    ///
    /// # Errors
    /// A repository that cannot be read.
    pub fn has(&self, path: &str) -> Result<bool> {
        let object = format!("{}:{}", self.commit, path.trim_end_matches('/'));
        Ok(self.try_git_output(&["cat-file", "-e", &object])?.is_some())
    }

    /// Whether the branch has this file or folder, or may have it because it lies in a submodule.
    ///
    /// # Errors
    /// A repository that cannot be read.
    pub fn may_have(&self, path: &str) -> Result<bool> {
        Ok(self.has(path)? || self.submodules()?.iter().any(|module| path.starts_with(&format!("{module}/"))))
    }

    /// The text of a file of the branch; `None` where there is none.
    ///
    /// # Errors
    /// A repository that cannot be read.
    pub fn read(&self, path: &str) -> Result<Option<String>> {
        self.try_git_output(&["cat-file", "blob", &format!("{}:{path}", self.commit)])
    }

    /// Folders of its submodules.
    ///
    /// # Errors
    /// A repository that cannot be read.
    pub fn submodules(&self) -> Result<Vec<String>> {
        let listed = self.git_output(&["ls-tree", "-r", "-z", &self.commit])?;
        Ok(submodules::links(&listed).map(|(_, path)| path.to_owned()).collect())
    }
}
