//! Output that appears whole or not at all: written beside its place, renamed when complete.

use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file or folder being written under a temporary name beside its final place.
///
/// [`Staged::commit`] renames it into place; dropping it without that removes what was written. A name left
/// behind by a killed process starts with `.wellread-partial-` and is removed by the next writer of the same
/// target.
#[derive(Debug)]
pub struct Staged {
    target: PathBuf,
    temporary: PathBuf,
    committed: bool,
}

impl Staged {
    /// Chooses the temporary name for `target`; makes missing parent folders. Creates nothing else.
    ///
    /// # Errors
    /// When `target` exists and `overwrite` is false, or the parent cannot be made.
    pub fn new(target: &Path, overwrite: bool) -> Result<Self> {
        if !overwrite && std::fs::symlink_metadata(target).is_ok() {
            return Err(Error::new(target, "already exists").hint("choose another name or pass --overwrite"));
        }
        let parent = match target.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
            _ => PathBuf::from("."),
        };
        std::fs::create_dir_all(&parent).map_err(|e| Error::io(&parent, "cannot make the folder", &e))?;
        let name = target
            .file_name()
            .ok_or_else(|| Error::new(target, "is no file name to write to"))?
            .to_string_lossy()
            .into_owned();
        remove_leftovers(&parent, &name);
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = parent.join(format!(".wellread-partial-{}-{n}-{name}", std::process::id()));
        Ok(Self { target: target.to_owned(), temporary, committed: false })
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
        self.committed = true;
        Ok(())
    }
}

/// Writes `bytes` to `target`, whole or not at all, replacing what was there.
pub fn write(target: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let staged = Staged::new(target, true)?;
    std::fs::write(staged.path(), bytes).map_err(|e| Error::io(target, "cannot write", &e))?;
    staged.commit()
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.committed {
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
    fn folders_are_replaced_and_dead_leftovers_removed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("set");
        std::fs::create_dir(&target).unwrap();
        std::fs::write(target.join("old"), b"").unwrap();
        let leftover = dir.path().join(".wellread-partial-4294967294-0-set");
        std::fs::create_dir(&leftover).unwrap();
        let staged = Staged::new(&target, true).unwrap();
        assert!(!leftover.exists());
        std::fs::write(staged.create_dir().unwrap().join("new"), b"").unwrap();
        staged.commit().unwrap();
        assert!(target.join("new").exists() && !target.join("old").exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
