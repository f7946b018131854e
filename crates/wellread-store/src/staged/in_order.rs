//! Finished output moved in a place where files are moved one by one: the files that make a set of a folder go
//! last.

use super::remote::{self, RemovalError};
use super::remove::remove_any;
use super::{Existing, Staged};
use crate::journal::Journal;
use crate::{Error, Result, place};
use std::io;
use std::path::{Path, PathBuf};

impl Staged {
    /// As [`Self::commit`], for a folder that nobody takes for a set before `last` lies in it, a folder in it or further in. In a
    /// place where files are moved one by one, that is moved when all beside it is there.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn commit_with_last(self, last: &Path) -> Result<()> {
        self.commit_in_order(Some(last))
    }

    /// Notes that the output is whole and goes to its place. A later run takes what it finds there for a half of this output, and replaces
    /// it. So nothing is noted where another process has put something there that is kept.
    ///
    /// # Errors
    /// There is something that is kept, in a place where files are moved one by one; the journal cannot be written.
    pub(super) fn begin_to_place(&self, journal: Option<&Journal>) -> Result<()> {
        if place::is_remote(&self.target) && self.existing == Existing::Kept {
            remote::check_free(&self.target)?;
        }
        journal.map_or(Ok(()), Journal::note_placing)
    }

    /// Moves `from` to the target, in a place where files are moved one by one: what lies in `last` goes last. The output is kept where
    /// not all of it could be put in place of what was there. Half of that may be gone by now.
    ///
    /// # Errors
    /// Not all of the output is at its place.
    pub(super) fn place_remotely(&mut self, from: &Path, last: Option<&Path>) -> Result<RemovalError> {
        let move_new = || match last {
            Some(last) => self.move_in_order(last),
            None => place::rename(from, &self.target).map_err(|e| self.cannot_move(&e)),
        };
        let placed = remote::put_in_place(from, &self.target, self.existing, last, move_new);
        match placed {
            Err(error) if self.existing == Existing::Replaced => {
                self.remove = false;
                let [there, rest] = [&self.target, &self.temporary].map(|path| place::shown(path));
                let (there, rest) = (there.display(), rest.display());
                let kept = format_args!("the new output is kept: what is not in {there} yet is in {rest}");
                Err(error.also(kept))
            }
            placed => placed,
        }
    }

    pub(super) fn cannot_move(&self, e: &io::Error) -> Error {
        Error::io(&self.target, "cannot move the finished output into place", e)
    }

    /// Moves what lies beside `last`, and then that.
    fn move_in_order(&self, last: &Path) -> Result<()> {
        let (from, to) = (self.temporary.join(last), self.target.join(last));
        let mut moved = vec![];
        let placed = move_beside(&from, &to, &mut moved).and_then(|()| place::rename(&from, &to));
        placed.map_err(|e| {
            // That brings back nothing that was replaced.
            let gone: &[PathBuf] = if self.existing == Existing::Replaced { &[] } else { &moved };
            for path in gone {
                remove_any(path);
            }
            self.cannot_move(&e)
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
        let staged = Staged::new(&target, Existing::Kept).unwrap();
        place::create_folder(&staged.path().join("_versions")).unwrap();
        staged.commit_with_last(Path::new("_versions")).unwrap();
        assert!(place::is_folder(&target.join("_versions")));
    }
}
