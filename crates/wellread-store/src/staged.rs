//! Output that appears whole or not at all: written beside its place, renamed when complete.
//!
//! That holds when the program fails, is interrupted (the program calls [`remove_unfinished`] from its handler of
//! signals) or is killed (the next writer of the same target cleans up). Nothing is synchronised to the disk, so
//! it does not hold when the machine loses power within seconds after.

use crate::journal::Journal;
use crate::{Error, Result, WriteOptions, registry};
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Temporary names in use by this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all output that this process has begun and not finished: for the moment before it ends on a signal.
pub fn remove_unfinished() {
    for path in unfinished().drain(..) {
        remove_any(&path);
    }
}

/// A file or folder being written under a temporary name beside its final place.
///
/// [`Staged::commit`] renames it into place; dropping it without that removes what was written. A name left
/// behind by a killed process starts with `.wellread-partial-` and is removed by the next writer of the same
/// target.
#[derive(Debug)]
pub struct Staged {
    target: PathBuf,
    temporary: PathBuf,
    /// Whether what was written goes when this is dropped.
    remove: bool,
    journal: Option<Journal>,
}

impl Staged {
    /// Chooses the temporary name for `target`; makes missing parent folders. Creates nothing else.
    ///
    /// With `overwrite`, a file, an empty folder or a folder that holds a set of images and nothing else is
    /// replaced; other folders and devices never are.
    ///
    /// # Errors
    /// When `target` exists and may not be replaced, or the parent cannot be made.
    pub fn new(target: &Path, overwrite: bool) -> Result<Self> {
        let staged = Self::place(target, overwrite)?;
        // What a run left that could have been resumed is not wanted any more.
        let left = staged.resume_folder();
        if left.is_dir() && !Journal::is_busy(&left) {
            remove_any(&left);
        }
        Ok(staged)
    }

    fn resume_folder(&self) -> PathBuf {
        let name = self.target.file_name().unwrap_or_default().to_string_lossy();
        self.target.with_file_name(format!(".wellread-resume-{name}"))
    }

    fn place(target: &Path, overwrite: bool) -> Result<Self> {
        if let Ok(there) = std::fs::symlink_metadata(target) {
            if !overwrite {
                return Err(
                    Error::new(target, "already exists").hint("choose another name or pass --overwrite")
                );
            }
            may_be_replaced(target, there.file_type())?;
        }
        let parent = match target.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
            _ => PathBuf::from("."),
        };
        std::fs::create_dir_all(&parent).map_err(|e| Error::io(&parent, "cannot make the folder", &e))?;
        // A parent like `set/..` would be gone once `set` is moved aside.
        let parent = parent.canonicalize().map_err(|e| Error::io(&parent, "cannot find the folder", &e))?;
        let name = target.file_name().ok_or_else(|| Error::new(target, "is no file name to write to"))?;
        let place = parent.join(name);
        let name = name.to_string_lossy().into_owned();
        remove_leftovers(&parent, &name);
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = parent.join(format!(".wellread-partial-{}-{n}-{name}", std::process::id()));
        unfinished().push(temporary.clone());
        Ok(Self { target: place, temporary, remove: true, journal: None })
    }

    /// As [`Self::new`] for a folder that is kept when writing is interrupted, and gone on with: with a journal of
    /// the images that are complete. `of` says what the set is made of.
    ///
    /// # Errors
    /// As [`Self::new`]; what an earlier run left is of something else, or its process still lives.
    pub fn resumable(target: &Path, overwrite: bool, of: &str) -> Result<Self> {
        let mut staged = Self::place(target, overwrite)?;
        let folder = staged.resume_folder();
        unfinished().retain(|path| *path != staged.temporary);
        staged.remove = false;
        staged.temporary = folder;
        staged.create_dir()?;
        staged.journal = Some(Journal::open(&staged.temporary, &staged.target, of)?);
        Ok(staged)
    }

    /// A folder for a set that is one file or folder per image: resumable if `options` ask for it.
    ///
    /// # Errors
    /// As [`Self::new`] and [`Self::resumable`]; a target that is a single image and cannot be resumed.
    pub(crate) fn folder(target: &Path, options: &WriteOptions, single: bool) -> Result<Self> {
        match &options.resume {
            Some(_) if single => Err(Error::new(target, "one image cannot be gone on with")
                .hint("leave --resume out, or write a folder")),
            Some(of) => Self::resumable(target, options.overwrite, of),
            None => Self::new(target, options.overwrite),
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
        std::fs::create_dir_all(&self.temporary)
            .map_err(|e| Error::io(&self.target, "cannot make the folder", &e))?;
        Ok(&self.temporary)
    }

    /// Moves the finished output to its place, replacing what was there.
    pub fn commit(mut self) -> Result<()> {
        if let Some(journal) = self.journal.take() {
            journal.remove(&self.target)?;
        }
        if self.temporary.is_dir() || self.target.is_dir() {
            // A folder cannot be renamed over a folder that is not empty: move the old one aside first.
            let old = self.temporary.with_extension("old");
            let had_old = std::fs::rename(&self.target, &old).is_ok();
            if let Err(e) = std::fs::rename(&self.temporary, &self.target) {
                if had_old {
                    let _ = std::fs::rename(&old, &self.target);
                }
                return Err(Error::io(&self.target, "cannot move the finished output into place", &e));
            }
            if had_old {
                remove_any(&old);
            }
        } else {
            std::fs::rename(&self.temporary, &self.target)
                .map_err(|e| Error::io(&self.target, "cannot move the finished output into place", &e))?;
        }
        self.remove = false;
        Ok(())
    }
}

/// Whether what is at `target` may be replaced on request.
fn may_be_replaced(target: &Path, there: FileType) -> Result<()> {
    if there.is_file() || there.is_symlink() {
        return Ok(());
    }
    if !there.is_dir() {
        return Err(Error::new(target, "is neither a file nor a folder and is not replaced"));
    }
    let foreign = foreign_entry(target)?;
    match foreign {
        None => Ok(()),
        Some(entry) => Err(Error::new(
            target,
            format_args!("is a folder that holds more than a set of images ({entry}) and is not replaced"),
        )
        .hint("choose another name, or remove the folder yourself")),
    }
}

/// Something in a folder that does not look like a part of a set of images; `None` for an empty folder.
fn foreign_entry(folder: &Path) -> Result<Option<String>> {
    let probe = registry::Probe::new(folder)?;
    let format = registry::formats().iter().find(|f| (f.recognise)(&probe));
    let belongs = |name: &str| {
        format.is_some_and(|format| {
            format.has_ending(name)
                || Path::new(name).extension().is_some_and(|e| e == "json")
                || folder.join(name).is_dir()
                || name.starts_with('.')
        })
    };
    Ok(probe.entries.iter().find(|name| !belongs(name)).cloned())
}

/// Writes `bytes` to `target`, whole or not at all, replacing a file that was there.
pub fn write(target: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let staged = Staged::new(target, true)?;
    std::fs::write(staged.path(), bytes).map_err(|e| Error::io(target, "cannot write", &e))?;
    staged.commit()
}

impl Drop for Staged {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.temporary);
        if self.remove {
            remove_any(&self.temporary);
        }
    }
}

fn remove_any(path: &Path) {
    if path.is_dir() {
        let _ = std::fs::remove_dir_all(path);
    } else {
        let _ = std::fs::remove_file(path);
    }
}

/// Removes partial outputs of the same target whose writing process no longer lives.
fn remove_leftovers(parent: &Path, name: &str) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let Some(rest) = file.to_str().and_then(|f| f.strip_prefix(".wellread-partial-")) else { continue };
        let mut parts = rest.splitn(3, '-');
        let (Some(pid), Some(_), Some(of)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let alive = pid.parse::<u32>().is_ok_and(|pid| Path::new("/proc").join(pid.to_string()).exists());
        if of == name && !alive && Path::new("/proc/self").exists() {
            remove_any(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a/out.bin");
        let staged = Staged::new(&target, false).unwrap();
        std::fs::write(staged.path(), b"half").unwrap();
        drop(staged);
        assert_eq!(std::fs::read_dir(dir.path().join("a")).unwrap().count(), 0);
        let staged = Staged::new(&target, false).unwrap();
        std::fs::write(staged.path(), b"whole").unwrap();
        staged.commit().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"whole");
        assert!(Staged::new(&target, false).unwrap_err().to_string().contains("already exists"));
    }

    #[test]
    fn what_is_no_set_of_images_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir(&home).unwrap();
        Staged::new(&home, true).expect("an empty folder may be replaced");
        std::fs::write(home.join("a.tif"), b"II*\0").unwrap();
        Staged::new(&home, true).expect("a folder of images may be replaced");
        std::fs::write(home.join("precious.txt"), b"").unwrap();
        let error = Staged::new(&home, true).unwrap_err().to_string();
        assert!(error.contains("precious.txt") && error.contains("not replaced"), "{error}");
        #[cfg(unix)]
        {
            let error = Staged::new(Path::new("/dev/null"), true).unwrap_err().to_string();
            assert!(error.contains("neither a file nor a folder"), "{error}");
        }
    }

    #[test]
    fn a_target_named_through_itself_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let set = dir.path().join("set");
        std::fs::create_dir(&set).unwrap();
        std::fs::write(set.join("old.tif"), b"").unwrap();
        let staged = Staged::new(&set.join("../set"), true).unwrap();
        std::fs::write(staged.create_dir().unwrap().join("new.tif"), b"").unwrap();
        staged.commit().unwrap();
        assert!(set.join("new.tif").exists() && !set.join("old.tif").exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn unfinished_output_can_be_removed_from_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let staged = Staged::new(&dir.path().join("out"), false).unwrap();
        std::fs::write(staged.path(), b"half").unwrap();
        assert!(unfinished().contains(&staged.temporary));
        // Not `remove_unfinished` itself: it would take the files of the other tests of this process.
        drop(staged);
        assert!(unfinished().iter().all(|p| !p.starts_with(dir.path())));
    }

    #[test]
    fn folders_are_replaced_and_dead_leftovers_removed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("set");
        std::fs::create_dir(&target).unwrap();
        std::fs::write(target.join("old.tif"), b"").unwrap();
        let leftover = dir.path().join(".wellread-partial-4294967294-0-set");
        std::fs::create_dir(&leftover).unwrap();
        let staged = Staged::new(&target, true).unwrap();
        assert!(!leftover.exists());
        std::fs::write(staged.create_dir().unwrap().join("new"), b"").unwrap();
        staged.commit().unwrap();
        assert!(target.join("new").exists() && !target.join("old.tif").exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
