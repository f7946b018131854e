//! The things that must not outlive the program: folders of a run, and the processes of a task. [`interrupt`] is called
//! on Ctrl-C.

use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wellread_store::staged::ScratchFolder;

/// Something that ends the processes of a task.
type StopProcesses = Box<dyn Fn() + Send>;

struct Running {
    interrupted: bool,
    folders: Vec<(PathBuf, Vec<&'static str>)>,
    end: Option<StopProcesses>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { interrupted: false, folders: Vec::new(), end: None });

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the processes of the task that runs and removes the run's folders; whether there was a run. The caller ends the
/// program. Nothing is started afterwards.
pub fn interrupt() -> bool {
    let mut running = running();
    running.interrupted = true;
    if let Some(end) = running.end.take() {
        end();
    }
    let was = !running.folders.is_empty();
    for (folder, but) in std::mem::take(&mut running.folders) {
        remove_all_but(&folder, &but);
    }
    was
}

/// Whether the program is about to end: then nothing may be started.
pub fn interrupted() -> bool {
    running().interrupted
}

/// Does not return when the program is about to end: the handler of the signal removes what is left and ends it.
pub(crate) fn wait_if_interrupted() {
    if interrupted() {
        std::thread::sleep(std::time::Duration::from_mins(1));
    }
}

/// A temporary folder, which goes when it is dropped and when the program is interrupted.
///
/// # Errors
/// A folder for temporary files that cannot be written.
pub(crate) fn scratch_folder() -> Result<ScratchFolder> {
    ScratchFolder::within(&std::env::temp_dir()).context("cannot make a temporary folder")
}

/// Has everything in a folder but the files named removed when the program is interrupted.
pub(crate) fn remove_at_end(folder: &Path, but: &[&'static str]) {
    running().folders.push((folder.to_path_buf(), but.to_vec()));
}

/// The folder was removed.
pub(crate) fn unregister(folder: &Path) {
    running().folders.retain(|(known, _)| known != folder);
}

/// Starts something and says how it is ended, unless the program is about to end: then `None`.
pub(crate) fn start<T>(start: impl FnOnce() -> (T, StopProcesses)) -> Option<T> {
    let mut running = running();
    if running.interrupted {
        return None;
    }
    let (started, end) = start();
    running.end = Some(end);
    Some(started)
}

/// A started process has ended.
pub(crate) fn ended() {
    running().end = None;
}

/// Removes everything in a folder but these files; returns how many things that were. A file that cannot be removed
/// stays for the next run.
pub(crate) fn remove_all_but(folder: &Path, but: &[&str]) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let mut removed = 0;
    for entry in entries.flatten() {
        if but.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        removed += 1;
        remove(&entry.path());
    }
    removed
}

/// Removes a file or folder, also where a program took the right to do so from its folders.
fn remove(path: &Path) {
    if std::fs::remove_file(path).is_ok() || std::fs::remove_dir_all(path).is_ok() {
        return;
    }
    make_writable(path);
    // Or the next run tries again.
    let _ = std::fs::remove_dir_all(path);
}

#[cfg(unix)]
fn make_writable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let is_folder = folder.symlink_metadata().is_ok_and(|about| about.is_dir());
    if is_folder && std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).is_ok() {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.for_each(|entry| make_writable(&entry.path()));
    }
}

#[cfg(not(unix))]
fn make_writable(_: &Path) {}
