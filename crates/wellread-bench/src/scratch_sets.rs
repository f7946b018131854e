//! [`ScratchSets`]: the sets that measured writes leave behind, and when they are removed.
//!
//! A set that was written is checked and then not needed. It is removed at the end all the same, not at once. For
//! some minutes, ext4 does not give the inode of a removed file to a new one. It passes over each such inode
//! whenever a file is made (`recently_deleted` in the kernel's `fs/ext4/ialloc.c`). After a format of a file per
//! image had been removed, whatever came next took up to twenty times as long to make its files.

use anyhow::{Context as _, Result};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Most bytes that wait to be removed. Sets so large that they reach it have few files.
const MAX_PENDING_BYTES: u64 = 2 << 30;
/// The least bytes on disk that an image is assumed to need: a file of its own in some formats.
const DISK_BLOCK_BYTES: u64 = 4096;

/// A folder for sets that are written to be measured; removed when dropped.
pub(crate) struct ScratchSets {
    folder: PathBuf,
    sets: Cell<usize>,
    bytes: Cell<u64>,
}

impl ScratchSets {
    /// Sets will be in `folder`, which is emptied: a killed run may have left something.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub fn new(folder: PathBuf) -> Result<Self> {
        remove(&folder)?;
        Ok(Self { folder, sets: Cell::new(0), bytes: Cell::new(0) })
    }

    /// A folder for a set of `images` with so many bytes of pixels. Removes earlier ones where too much waits.
    ///
    /// # Errors
    /// Folders that cannot be made or removed.
    pub fn next(&self, images: usize, pixels: u64) -> Result<PathBuf> {
        let size = pixels.saturating_add(images as u64 * DISK_BLOCK_BYTES);
        if self.bytes.get().saturating_add(size) > MAX_PENDING_BYTES {
            remove(&self.folder)?;
            self.bytes.set(0);
        }
        self.bytes.set(self.bytes.get().saturating_add(size));
        let n = self.sets.replace(self.sets.get() + 1);
        let folder = self.folder.join(n.to_string());
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }
}

impl Drop for ScratchSets {
    fn drop(&mut self) {
        // Nobody waits for an answer here; the next run removes what is left.
        let _ = remove(&self.folder);
    }
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_wait_until_the_end_or_until_they_are_too_many() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("write");
        std::fs::create_dir_all(folder.join("0/left-by-a-killed-run")).unwrap();
        let written = ScratchSets::new(folder.clone()).unwrap();
        assert!(!folder.exists());
        let [a, b] = [
            written.next(10, MAX_PENDING_BYTES / 3).unwrap(),
            written.next(10, MAX_PENDING_BYTES / 3).unwrap(),
        ];
        assert!(a.is_dir() && b.is_dir() && a != b);
        let c = written.next(10, MAX_PENDING_BYTES / 3).unwrap();
        assert!(!a.exists() && !b.exists() && c.is_dir());
        // Larger than all that may wait: alone.
        let d = written.next(1, u64::MAX).unwrap();
        assert!(!c.exists() && d.is_dir());
        drop(written);
        assert!(!folder.exists());
    }
}
