//! Output that appears whole or not at all: written beside its place, renamed when complete.
//!
//! That holds when the program fails, is interrupted (its handler of signals calls [`remove_unfinished`]) or is killed. After a kill the
//! next writer of the target that sees that the process has ended cleans up. Nothing is synchronised to the disk: a machine that loses
//! power soon after may lose it. Output that replaces a file or folder has its mode and, where the system lets it, its owner.
//!
//! Locks and links are the file system's own; how output gets into another [`place`] is in `staged/remote.rs`.

mod cleaning;
mod existing;
mod held;
mod in_order;
mod leftovers;
mod names;
mod remote;
mod remove;
mod renaming;
mod replace;
mod reserved;
mod scratch;

pub use crate::finished::{Finished, Output};
pub use cleaning::{MadeFolder, is_writing, is_writing_remotely, remove_unfinished, try_remove_unfinished};
pub use existing::Existing;
pub use held::{hold, remove_part};
pub use leftovers::{Leftover, LeftoverKind, leftovers, leftovers_beside, leftovers_of};
pub use names::part;
pub use remote::is_replacing;
pub use reserved::Reserved;
pub use scratch::ScratchFolder;
pub use wellread_trace::process::process_mark;

use crate::entries::OLD;
use crate::journal::{self, Journal};
use crate::{Error, Result, WriteOptions, place};
use cleaning::{remove_one, resumable, unfinished};
use held::{check_idle, may_be_busy, pause};
use leftovers::remove_leftovers;
use names::{check_length, folder_hint, overwrite_hint, partial_name, resume_folder};
use remove::remove_any;
use renaming::{is_taken, keep_access, move_new};
use replace::{may_be_replaced, through_links};
use std::io;
use std::path::{Path, PathBuf};

/// How often a target is cleared that other processes write to at the same time.
const ATTEMPTS: usize = 100;

/// A file or folder being written under a temporary name beside its final place.
///
/// [`Staged::commit`] renames it into place; dropping it without that removes what was written. A name left
/// behind by a killed process starts with `.wellread-partial-`. It is removed by the next writer of the same target that can tell that
/// the process has ended.
#[derive(Debug)]
pub struct Staged {
    target: PathBuf,
    temporary: PathBuf,
    /// Whether that which is at the target then is kept.
    existing: Existing,
    /// Whether what was written goes when this is dropped.
    pub(crate) remove: bool,
    /// Whether what was written stays when it is interrupted.
    resumable: bool,
    journal: Option<Journal>,
}

impl Staged {
    /// Chooses the temporary name for `target`; makes missing parent folders. Creates nothing else.
    ///
    /// Folders that hold something else than a set of images, and devices, are never replaced. A link stays, and its target is
    /// replaced.
    ///
    /// # Errors
    /// When `target` exists and may not be replaced, or the parent cannot be made.
    pub fn new(target: &Path, existing: Existing) -> Result<Self> {
        let staged = Self::begin(target, existing)?;
        // An earlier run's part that could have been resumed is not needed any more.
        let left = resume_folder(&staged.target);
        if !may_be_busy(&left) {
            remove_any(&left);
        }
        Ok(staged)
    }

    fn begin(target: &Path, existing: Existing) -> Result<Self> {
        if place::is_remote(target) {
            return Self::remote(target, existing);
        }
        if existing == Existing::Kept && target.symlink_metadata().is_ok() {
            return Err(Error::new(target, "already exists").hint(overwrite_hint()));
        }
        let target = &through_links(target)?;
        may_be_replaced(target)?;
        let parent = match target.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
            _ => PathBuf::from("."),
        };
        place::create_folder(&parent).map_err(|e| Error::io(&parent, "cannot make the folder", &e))?;
        // A parent like `set/..` would be gone once `set` is moved aside.
        let parent = parent.canonicalize().map_err(|e| Error::io(&parent, "cannot find the folder", &e))?;
        let name = target.file_name().ok_or_else(|| Error::new(target, "is no file name to write to"))?;
        let place = parent.join(name);
        check_length(&place)?;
        remove_leftovers(&parent, &name.to_string_lossy());
        let temporary = partial_name(&place);
        unfinished().push(temporary.clone());
        Ok(Self { target: place, temporary, existing, remove: true, resumable: false, journal: None })
    }

    /// In a place other than the file system.
    fn remote(target: &Path, existing: Existing) -> Result<Self> {
        remote::check_target(target, existing)?;
        let name = target.file_name().ok_or_else(|| Error::new(target, "is no file name to write to"))?;
        if let Some(parent) = target.parent() {
            remove_leftovers(parent, &name.to_string_lossy());
        }
        let (target, temporary) = (target.to_owned(), partial_name(target));
        unfinished().push(temporary.clone());
        Ok(Self { target, temporary, existing, remove: true, resumable: false, journal: None })
    }

    /// As [`Self::resumable`], in a place other than the file system.
    fn resumable_remote(target: &Path, existing: Existing, of: &str) -> Result<Self> {
        let temporary = resume_folder(target);
        check_idle(&temporary, target)?;
        let journal = Journal::remote(&temporary, target, of, &process_mark(std::process::id()))?;
        // The output that was being moved there is half of this set.
        let is_placing = journal.is_placing();
        if !is_placing {
            remote::check_target(target, existing)?;
        }
        journal.write()?;
        if journal.begun() {
            // No journal knows the entries there.
            remote::clear(&temporary, journal::NAME)?;
        }
        resumable().push(temporary.clone());
        let (target, existing) = (target.to_owned(), if is_placing { Existing::Replaced } else { existing });
        Ok(Self { target, temporary, existing, remove: false, resumable: true, journal: Some(journal) })
    }

    /// As [`Self::new`] for a folder that is kept when writing is interrupted, and gone on with: with a journal of
    /// the images that are complete. `of` says what the set is made of.
    ///
    /// # Errors
    /// As [`Self::new`]; an earlier run's part is of something else, or its process still lives.
    pub fn resumable(target: &Path, existing: Existing, of: &str) -> Result<Self> {
        if place::is_remote(target) {
            return Self::resumable_remote(target, existing, of);
        }
        for attempt in 1..=ATTEMPTS {
            if let Some(staged) = Self::try_resumable(target, existing, of)? {
                return Ok(staged);
            }
            pause(attempt);
        }
        Err(being_replaced(target))
    }

    /// `None` where another process finishes at this moment.
    fn try_resumable(target: &Path, existing: Existing, of: &str) -> Result<Option<Self>> {
        let mut staged = Self::begin(target, existing)?;
        let folder = resume_folder(&staged.target);
        unfinished().retain(|path| *path != staged.temporary);
        staged.remove = false;
        staged.temporary = folder;
        match place::create_folder(&staged.temporary) {
            // It was there, and was moved to its place before it could be looked at.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && !staged.temporary.is_file() => {
                return Ok(None);
            }
            made => made.map_err(|e| Error::io(&staged.target, "cannot make the folder", &e))?,
        }
        let opened = Journal::open(&staged.temporary, &staged.target, of).inspect_err(|_| {
            // Nothing is left of a folder that could not be begun; entries in one stay.
            let _ = std::fs::remove_dir(&staged.temporary);
        });
        let Some(journal) = opened? else { return Ok(None) };
        if journal.begun() {
            if existing == Existing::Kept && staged.target.symlink_metadata().is_ok() {
                staged.remove = true;
                return Ok(None);
            }
            // No journal knows the entries there.
            let entries = std::fs::read_dir(&staged.temporary)
                .map_err(|e| Error::io(&staged.target, "cannot list what an earlier run left", &e))?;
            entries.flatten().filter(|e| e.file_name() != journal::NAME).for_each(|e| remove_any(&e.path()));
        }
        staged.journal = Some(journal);
        staged.resumable = true;
        resumable().push(staged.temporary.clone());
        Ok(Some(staged))
    }

    /// A folder for the output of a table's engine: resumable if `options` ask for it.
    ///
    /// # Errors
    /// As [`Self::new`] and [`Self::resumable`].
    pub fn for_table(target: &Path, options: &WriteOptions) -> Result<Self> {
        // The notes of engines are more than the list of complete images.
        let staged = Self::folder(target, options, place::is_remote(target))?;
        staged.create_dir()?;
        Ok(staged)
    }

    /// A folder for a set that is one file or folder per image: resumable if `options` ask for it.
    ///
    /// # Errors
    /// As [`Self::new`] and [`Self::resumable`]; a target that is a single image and cannot be resumed.
    pub(crate) fn folder(target: &Path, options: &WriteOptions, single: bool) -> Result<Self> {
        let existing = Existing::from_overwrite(options.overwrite);
        match &options.resume {
            Some(_) if single => Err(Error::new(
                target,
                "is written as a whole, not image by image, so that an interrupted run cannot be gone on with",
            )
            .hint(folder_hint())),
            Some(of) => Self::resumable(target, existing, of),
            None => Self::new(target, existing),
        }
    }

    /// The journal of a resumable output.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// How many images an earlier run has completed.
    pub fn complete(&self) -> usize {
        self.journal.as_ref().map_or(0, Journal::complete)
    }

    /// Notes that an image is complete, where there is a journal.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn completed(&self, row: usize) -> Result<()> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.add(row))
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Where the output will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Creates the temporary folder and returns its path.
    pub fn create_dir(&self) -> Result<&Path> {
        place::create_folder(&self.temporary)
            .map_err(|e| Error::io(&self.target, "cannot make the folder", &e))?;
        Ok(&self.temporary)
    }

    /// The output, which is whole now.
    pub fn finished(self) -> Finished {
        let path = self.temporary.clone();
        Finished::new(self, path, Self::commit)
    }

    /// The file or folder `name` of the temporary folder as the output, which is whole now.
    pub fn finished_file(self, name: &'static str) -> Finished {
        let path = self.temporary.join(name);
        Finished::new(self, path, move |staged| staged.commit_file(name))
    }

    /// Moves the finished output to its place.
    ///
    /// # Errors
    /// A file is there meanwhile that may not be replaced; the system's error.
    pub fn commit(self) -> Result<()> {
        self.commit_in_order(None)
    }

    fn commit_in_order(mut self, last: Option<&Path>) -> Result<()> {
        // Held until the output is in place, except where no folder can be moved with a file open in it.
        let had_journal = self.journal.is_some();
        let journal = self.journal.take().filter(|_| !cfg!(windows) || place::is_remote(&self.target));
        self.begin_to_place(journal.as_ref())?;
        let left = self.place_at_target(&self.temporary.clone(), last)?;
        self.remove = false;
        journal.iter().for_each(Journal::close);
        if had_journal {
            // Gone where another process has put its own output in place of this one meanwhile.
            let removed = place::of(&self.target).remove_file(&self.target.join(journal::NAME));
            let removed =
                removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) });
            removed.map_err(|e| Error::io(&self.target, "cannot remove the journal", &e))?;
        }
        drop(journal);
        left.map_or(Ok(()), Err)
    }

    /// Moves the finished file or folder `name` of the temporary folder to the target. The temporary folder goes when this is dropped.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn commit_file(mut self, name: &str) -> Result<()> {
        self.begin_to_place(self.journal.as_ref())?;
        let left = self.place_at_target(&self.temporary.join(name), None)?;
        self.journal.iter().for_each(Journal::close);
        self.remove = true;
        left.map_or(Ok(()), Err)
    }

    /// Moves `from` to the target; `last` is as [`Self::commit_with_last`] has it.
    fn place_at_target(&mut self, from: &Path, last: Option<&Path>) -> Result<remote::RemovalError> {
        if place::is_remote(&self.target) {
            return self.place_remotely(from, last);
        }
        // Whole or not at all, also where the process is being ended: unfinished output is removed only after that.
        let mut placed = Ok(());
        let mut run = || placed = self.place_locally(from);
        place::of(&self.target).finish_before_end(&mut run).map_err(|e| self.cannot_move(&e))?;
        placed.map(|()| None)
    }

    /// Moves `from` to the target, whatever other processes do there at the same time.
    fn place_locally(&self, from: &Path) -> Result<()> {
        if self.existing == Existing::Kept {
            return move_new(from, &self.target).map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => {
                    Error::new(&self.target, "was put there by another process meanwhile, and is kept")
                        .hint(overwrite_hint())
                }
                _ => self.cannot_move(&e),
            });
        }
        // Since it was looked at, which may be hours ago, somebody may have put something else there.
        may_be_replaced(&self.target)?;
        keep_access(&self.target, from);
        if from.is_file() && !self.target.is_dir() {
            return std::fs::rename(from, &self.target).map_err(|e| self.cannot_move(&e));
        }
        // A folder cannot be renamed over a folder that is not empty, so the old one is moved aside first. It gets a
        // name of its own each time, since the writer before may still be removing its own.
        for attempt in 1.. {
            let mut old = partial_name(&self.target).into_os_string();
            old.push(OLD);
            let old = PathBuf::from(old);
            let had_old = std::fs::rename(&self.target, &old).is_ok();
            let result = std::fs::rename(from, &self.target);
            // Another process was faster: its output is replaced in its turn. By now it may be gone again.
            let again = attempt < ATTEMPTS
                && result.as_ref().is_err_and(|e| is_taken(e) || self.target.symlink_metadata().is_ok());
            match &result {
                Err(_) if had_old && !again => {
                    let _ = std::fs::rename(&old, &self.target);
                }
                _ if had_old => cleaning::remove_replaced(&old),
                _ => {}
            }
            if !again {
                return result.map_err(|e| self.cannot_move(&e));
            }
            pause(attempt);
        }
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.resumable {
            resumable().retain(|path| *path != self.temporary);
        }
        if self.remove {
            return remove_one(&self.temporary);
        }
        unfinished().retain(|path| *path != self.temporary);
    }
}

impl Output for Staged {
    fn remove(&self) {
        self.journal.iter().for_each(Journal::close);
        remove_any(&self.temporary);
    }
    fn keep_before(&self, row: usize) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.remove_from(row).unwrap_or(false))
    }
}

fn being_replaced(target: &Path) -> Error {
    Error::new(target, "is being replaced by other processes").hint("wait until they have finished")
}

/// Writes `bytes` to `target`, whole or not at all, replacing a file that was there.
pub fn write(target: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let staged = Staged::new(target, Existing::Replaced)?;
    place::write(staged.path(), bytes.as_ref()).map_err(|e| Error::io(target, "cannot write", &e))?;
    staged.commit()
}

#[cfg(test)]
mod tests;
