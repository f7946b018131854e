//! A finished folder moved in a place where files are moved one by one: the files that make a set of it go
//! last.

use super::Staged;
use super::remote;
use super::remove::remove_any;
use crate::{Error, Result, place};
use std::io;
use std::path::{Path, PathBuf};

impl Staged {
    /// As [`Self::commit`], for a folder that nobody takes for a set before `last` lies in it, a folder in it or further in. In a
    /// place where files are moved one by one, that is moved when all beside it is there.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn commit_with_last(mut self, last: &Path) -> Result<()> {
        if !place::is_remote(&self.target) {
            return self.commit();
        }
        let old = remote::to_go(&self.temporary, &self.target, self.overwrite)?;
        let mut is_placed = false;
        let done = if self.overwrite {
            remote::replace(&self.temporary, &self.target, &old, Some(last), || {
                self.move_in_order(last)?;
                is_placed = true;
                Ok(())
            })
        } else {
            self.move_in_order(last)
        };
        if is_placed { done } else { self.keep_half_placed(done) }
    }

    /// Moves what lies beside `last`, and then that.
    fn move_in_order(&self, last: &Path) -> Result<()> {
        let (from, to) = (self.temporary.join(last), self.target.join(last));
        let mut moved = vec![];
        let placed = move_beside(&from, &to, &mut moved).and_then(|()| place::rename(&from, &to));
        placed.map_err(|e| {
            // That brings back nothing that was replaced.
            let gone: &[PathBuf] = if self.overwrite { &[] } else { &moved };
            for path in gone {
                remove_any(path);
            }
            Error::io(&self.target, "cannot move the finished output into place", &e)
        })
    }
}

/// Moves what lies beside `from` beside `to`; `moved` has what may be there then.
fn move_beside(from: &Path, to: &Path, moved: &mut Vec<PathBuf>) -> io::Result<()> {
    let (Some(around), Some(there)) = (from.parent(), to.parent()) else { return Ok(()) };
    for entry in place::list(around)? {
        let name = entry?.name();
        if Some(name.as_os_str()) != from.file_name() {
            moved.push(there.join(&name));
            place::rename(&around.join(&name), &there.join(&name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_beside_the_last_is_moved() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        for name in ["data", "_versions", "_transactions"] {
            place::create_folder(&from.join(name)).unwrap();
        }
        place::create_folder(&to).unwrap();
        let mut moved = vec![];
        move_beside(&from.join("_versions"), &to.join("_versions"), &mut moved).unwrap();
        moved.sort();
        assert_eq!(moved, ["_transactions", "data"].map(|name| to.join(name)));
        assert!(place::is_folder(&to.join("data")) && place::is_folder(&from.join("_versions")));
        assert!(!place::exists(&to.join("_versions")) && !place::exists(&from.join("data")));
    }

    #[test]
    fn in_the_file_system_the_folder_is_moved_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("set");
        let staged = Staged::new(&target, false).unwrap();
        place::create_folder(&staged.path().join("_versions")).unwrap();
        staged.commit_with_last(Path::new("_versions")).unwrap();
        assert!(place::is_folder(&target.join("_versions")));
    }
}
