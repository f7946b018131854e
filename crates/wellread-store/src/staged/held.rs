//! The writers of folders: folders that are held, and those that another process writes to.

use super::names::part;
use super::remove::remove_any;
use crate::journal::{Journal, has_parts};
use crate::{Error, Result, place};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;
use wellread_trace::process::{ProcessState, process_mark, state_of_mark};

/// Holds `folder` for writing several outputs that belong together, until the handle is dropped. `None` where the file
/// system has no locks of folders.
///
/// # Errors
/// Another process holds it.
pub fn hold(folder: &Path) -> Result<Option<File>> {
    let Ok(handle) = File::open(folder) else { return Ok(None) };
    match handle.try_lock() {
        Ok(()) => Ok(Some(handle)),
        Err(TryLockError::WouldBlock) => {
            Err(Error::new(folder, "another process is writing to it").hint("wait until it has finished"))
        }
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Removes the part of `target` that an interrupted run has left, unless another process may be writing it, or several have written
/// parts in it. Whether it is gone.
pub fn remove_part(target: &Path) -> bool {
    let left = part(target);
    if let Some(folder) = left.filter(|folder| !may_be_busy(folder) && !has_parts(folder)) {
        remove_any(&folder);
    }
    part(target).is_none()
}

/// Whether another living process writes to `folder`, which is kept for later runs. In another place only processes of this machine are
/// seen.
fn is_busy(folder: &Path) -> bool {
    is_written(folder, |state| state == ProcessState::Running)
}

/// As [`is_busy`], or a process that is not seen from here may: one of another machine, or of before this one was started anew.
pub(super) fn may_be_busy(folder: &Path) -> bool {
    is_written(folder, |state| state != ProcessState::Ended)
}

/// Whether another process writes to `folder`; in another place, whether the state of the one that wrote last says so.
fn is_written(folder: &Path, says_so: impl FnOnce(ProcessState) -> bool) -> bool {
    if !place::is_remote(folder) {
        return Journal::is_busy(folder);
    }
    let own = process_mark(std::process::id());
    Journal::remote_writer(folder).is_some_and(|mark| mark != own && says_so(state_of_mark(&mark)))
}

/// Refuses to go on with `folder`, a part of `target` in another place, to which another living process writes.
///
/// # Errors
/// Such a folder.
pub(super) fn check_idle(folder: &Path, target: &Path) -> Result<()> {
    // That process may have gone on, or ended, since this one read the journal.
    place::look_anew(folder);
    if is_busy(folder) {
        return Err(Error::new(target, "another process is writing it").hint("wait until it has finished"));
    }
    Ok(())
}

/// Lets other writers of a target finish, the longer the more often it was tried.
pub(super) fn pause(attempt: usize) {
    std::thread::sleep(Duration::from_millis(attempt.min(20) as u64));
}

#[cfg(test)]
mod tests {
    use super::super::{Existing, Staged};
    use super::*;

    /// As a test of another thread may be starting a program, which has the lock until it runs.
    fn begun(target: &Path, of: &str) -> Result<Staged> {
        let mut tries = (0..100).map(|attempt| {
            std::thread::sleep(Duration::from_millis(attempt));
            Staged::resumable(target, Existing::Kept, of)
        });
        let is_busy = |found: &Result<Staged>| {
            found.as_ref().is_err_and(|error| error.cause().contains("another process"))
        };
        tries.find(|found| !is_busy(found)).unwrap()
    }

    /// The input had changed, and the command was refused until somebody removed the folder, in which nothing was.
    #[test]
    fn what_has_nothing_complete_begins_anew_for_other_images() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("set");
        let half = begun(&target, "a to b").unwrap().path().join("half");
        std::fs::write(&half, b"half").unwrap();
        let other = begun(&target, "c to b").unwrap();
        assert_eq!((other.complete(), half.exists()), (0, false));
        other.completed(0).unwrap();
        drop(other);
        assert_eq!(begun(&target, "c to b").unwrap().complete(), 1);
        let refused = begun(&target, "a to b").unwrap_err().to_string();
        assert!(refused.contains("made of other images"), "{refused}");
        // No journal says what parts of several processes hold.
        let parted = dir.path().join("parted");
        let folder = begun(&parted, "a to b").unwrap().path().to_owned();
        std::fs::create_dir(folder.join(crate::journal::PARTS)).unwrap();
        assert!(begun(&parted, "c to b").is_err() && !remove_part(&parted));
    }

    #[test]
    fn a_part_that_nobody_writes_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("set");
        let staged = begun(&target, "a to b").unwrap();
        assert!(!remove_part(&target) && part(&target).is_some());
        drop(staged);
        let is_gone = |attempt| {
            std::thread::sleep(Duration::from_millis(attempt));
            remove_part(&target)
        };
        assert!((0..100).any(is_gone) && part(&target).is_none());
    }
}
