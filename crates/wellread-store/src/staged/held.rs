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
pub(super) fn is_busy(folder: &Path) -> bool {
    if !place::is_remote(folder) {
        return Journal::is_busy(folder);
    }
    let own = process_mark(std::process::id());
    Journal::remote_writer(folder)
        .is_some_and(|mark| mark != own && state_of_mark(&mark) == ProcessState::Running)
}

/// Lets other writers of a target finish, the longer the more often it was tried.
pub(super) fn pause(attempt: usize) {
    std::thread::sleep(Duration::from_millis(attempt.min(20) as u64));
}
