//! The writers of folders: folders that are held, and those that another process writes to.

use crate::journal::Journal;
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
