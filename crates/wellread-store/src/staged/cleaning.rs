//! The outputs that this process has begun and not finished, and their removal when the process is
//! interrupted.

use super::remove::{MAX_LOOKS, remove_any};
use crate::journal::{KeptPart, has_parts};
use crate::place;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Temporary names in use by this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Folders that this process has made to write outputs into, the outer ones first.
static CREATED_FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Folders of outputs of this process that are kept when they are interrupted, once something in them is complete.
static RESUMABLE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

pub(super) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn resumable() -> MutexGuard<'static, Vec<PathBuf>> {
    RESUMABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn made() -> MutexGuard<'static, Vec<PathBuf>> {
    CREATED_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The prefix of names of folders for copies of input, and for output that goes to another place once it is
/// written.
pub(super) const COPY: &str = "wellread-copy-";

/// Whether output of this process is begun and not finished.
pub fn is_writing() -> bool {
    let is_copy = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(COPY.as_bytes()))
    };
    !unfinished().iter().all(is_copy)
}

/// Whether some of it is in another place than the file system, where its removal may take a while.
pub fn is_writing_remotely() -> bool {
    unfinished().iter().any(|path| place::is_remote(path))
}

/// Removes one of the temporary names. It stays one of them until nothing is there any more. The handler of a signal does not end the
/// process before that.
pub(super) fn remove_one(temporary: &Path) {
    remove_any(temporary);
    unfinished().retain(|path| path != temporary);
}

/// Removes what output has taken the place of.
pub(super) fn remove_replaced(old: &Path) {
    unfinished().push(old.to_owned());
    remove_one(old);
}

/// Removes all output that this process has begun and not finished: for the moment before it ends on a signal. Returns what is kept
/// for a later run.
pub fn remove_unfinished() -> KeptPart {
    place::abandon();
    remove_all(&mut unfinished());
    let kept = remove_begun(&mut resumable());
    remove_made();
    kept
}

/// As [`remove_unfinished`], for a thread that may hold the lock that this takes: then nothing is done, and `None` says
/// so. Nothing comes into being afterwards, but work in progress is not waited for. Output in other places stays, since
/// requests take memory and threads; the next writer of its target removes it.
pub fn try_remove_unfinished() -> Option<KeptPart> {
    place::shutdown::begin();
    let removed = held_by_nobody(&UNFINISHED).map(|mut paths| {
        paths.retain(|path| !place::is_remote(path));
        remove_all(&mut paths);
    });
    let kept = held_by_nobody(&RESUMABLE).map(|mut paths| remove_begun(&mut paths));
    remove_made();
    removed.and(kept)
}

/// The paths, unless a thread holds their lock.
fn held_by_nobody(paths: &Mutex<Vec<PathBuf>>) -> Option<MutexGuard<'_, Vec<PathBuf>>> {
    match paths.try_lock() {
        Ok(paths) => Some(paths),
        Err(TryLockError::Poisoned(paths)) => Some(paths.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The part that is kept of the output in these folders. Where nothing of it is complete, the folders go. Those in other places stay,
/// since requests take time; the next writer of the target empties them. So do those with parts of several processes, which no journal
/// notes.
fn remove_begun(folders: &mut Vec<PathBuf>) -> KeptPart {
    let kept = KeptPart::of(!folders.is_empty());
    if kept == KeptPart::Begun {
        folders.retain(|folder| !place::is_remote(folder) && !has_parts(folder));
        remove_all(folders);
    }
    kept
}

/// Removes the folders of [`MadeFolder`] in which nothing is; a thread that holds their lock removes its own itself.
fn remove_made() {
    if let Ok(mut folders) = CREATED_FOLDERS.try_lock() {
        folders.drain(..).rev().for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
}

fn remove_all(paths: &mut Vec<PathBuf>) {
    for path in paths.drain(..) {
        // A file system that did not answer in time may make something while the folder is being emptied.
        for _ in 0..5 * MAX_LOOKS {
            remove_any(&path);
            if path.symlink_metadata().is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A folder to write outputs into. Where it was made for that and nothing is in it, it goes when this is dropped or the
/// program is interrupted.
#[derive(Debug)]
#[must_use = "the folder goes when this is dropped before anything is in it"]
pub struct MadeFolder {
    /// Those that were not there before, the inner ones first.
    made: Vec<PathBuf>,
}

impl MadeFolder {
    /// Makes the folder, and those that it lies in, where they are not there.
    ///
    /// # Errors
    /// As the system says.
    pub fn new(path: &Path) -> io::Result<Self> {
        let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let folder = Self { made: path.ancestors().take_while(is_missing).map(Path::to_owned).collect() };
        made().extend(folder.made.iter().rev().cloned());
        place::create_folder(path)?;
        Ok(folder)
    }
}

impl Drop for MadeFolder {
    fn drop(&mut self) {
        made().retain(|folder| !self.made.contains(folder));
        self.made.iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Existing, Staged, write};
    use super::*;

    /// The folder that the started program writes to.
    const ENDING: &str = "WELLREAD_TEST_ENDING";

    /// The test of the started program; nothing among the other tests. It goes on with writing while it is ending.
    #[test]
    fn writes_while_it_is_ending() {
        let Some(folder) = std::env::var_os(ENDING).map(PathBuf::from) else { return };
        let (kept, other) =
            (Staged::new(&folder.join("set"), Existing::Kept).unwrap(), folder.join("other/folder"));
        let part = kept.create_dir().unwrap().to_owned();
        place::write(&part.join("a"), b"a").unwrap();
        assert_eq!(remove_unfinished(), KeptPart::None);
        assert!(place::write(&part.join("b"), b"b").is_err());
        assert!(place::create_folder(&part).is_err());
        assert!(place::rename(&folder, &other).is_err());
        assert!(MadeFolder::new(&other).is_err());
        assert!(write(&folder.join("file"), "text").is_err());
        let refused = kept.commit().unwrap_err().to_string();
        assert!(refused.contains("the program is ending"), "{refused}");
    }

    /// How many images the started program completes before it is interrupted.
    const COMPLETED: &str = "WELLREAD_TEST_COMPLETED";

    /// The test of the started program; nothing among the other tests.
    #[test]
    fn is_interrupted_while_it_can_be_resumed() {
        let Some(folder) = std::env::var_os(ENDING).map(PathBuf::from) else { return };
        let completed: usize = std::env::var(COMPLETED).unwrap().parse().unwrap();
        let kept = Staged::resumable(&folder.join("set"), Existing::Kept, "these images").unwrap();
        for row in 0..completed {
            kept.completed(row).unwrap();
        }
        assert_eq!(remove_unfinished(), [KeptPart::Begun, KeptPart::Complete][completed.min(1)]);
    }

    #[test]
    fn a_part_is_kept_once_an_image_is_complete() {
        for completed in [0, 2] {
            let dir = tempfile::tempdir().unwrap();
            let mut program = std::process::Command::new(std::env::current_exe().unwrap());
            program
                .args(["--exact", "staged::cleaning::tests::is_interrupted_while_it_can_be_resumed"])
                .env(ENDING, dir.path())
                .env(COMPLETED, completed.to_string());
            let done = program.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
            let part = super::super::part(&dir.path().join("set"));
            assert_eq!(part.is_some_and(|part| crate::journal::is_any_complete(&part)), completed > 0);
            let left = std::fs::read_dir(dir.path()).unwrap().count();
            assert_eq!(left, usize::from(completed > 0));
        }
    }

    #[test]
    fn nothing_is_made_once_unfinished_output_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        program
            .args(["--exact", "staged::cleaning::tests::writes_while_it_is_ending"])
            .env(ENDING, dir.path());
        let done = program.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
