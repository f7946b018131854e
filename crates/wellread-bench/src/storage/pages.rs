//! The page cache of sets that are read cold and warm in turns.
//!
//! ```text
//!  cold turn ─▶ Pages::drop_of: pages dropped, and the set noted ─▶ clock ─▶ read
//!  warm turn ─▶ Pages::restore: the files of a noted set read once ─▶ clock ─▶ read
//! ```
//!
//! A cold turn that reads a part of a set leaves the rest outside of the cache. The next turn of that set may be a warm one, and formats may
//! share a file.

use crate::page_files::{not_here, read_back};
use anyhow::{Result, bail};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_measure::page_cache;

/// How often more pages are dropped that stayed.
const MAX_DROPS: usize = 3;

/// The sets whose pages were dropped, with their files.
#[derive(Default)]
pub(super) struct Pages {
    dropped: RefCell<BTreeMap<PathBuf, Vec<PathBuf>>>,
}

impl Pages {
    /// Drops the pages of a set's files.
    ///
    /// # Errors
    /// Pages that stay, looked at by `mincore`: a read of them is not cold. Files behind a network, which have none.
    pub(super) fn drop_of(&self, set: &Path, files: Vec<PathBuf>) -> Result<()> {
        if let Some(why) = not_here(&files) {
            bail!("{why}");
        }
        let mut report = page_cache::drop_pages(&files);
        // Pages that are being written or read at this moment stay; soon after they can go.
        for _ in 0..MAX_DROPS {
            if report.complete {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            report = page_cache::drop_pages(&files);
        }
        self.dropped.borrow_mut().insert(set.to_path_buf(), files);
        if report.complete {
            return Ok(());
        }
        let why = report.reason.unwrap_or_else(|| "pages stayed".to_owned());
        bail!("the page cache could not be emptied ({why}), so nothing can be read cold here")
    }

    /// Reads the files of a set whose pages were dropped since, so that a warm read finds all of them. Gives the bytes read.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn restore(&self, set: &Path) -> Result<u64> {
        self.dropped.borrow_mut().remove(set).map_or(Ok(0), read_back)
    }

    /// The same for all sets.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn restore_all(&self) -> Result<()> {
        let sets: Vec<PathBuf> = self.dropped.borrow().keys().cloned().collect();
        for set in &sets {
            self.restore(set)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of `bytes` zeros in a folder, and the folder.
    fn set(bytes: usize) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("images.parquet");
        std::fs::write(&file, vec![0u8; bytes]).unwrap();
        (folder, file)
    }

    #[test]
    fn a_set_that_was_dropped_is_read_once_before_a_warm_turn() {
        let (folder, file) = set(10_000);
        let pages = Pages::default();
        assert_eq!(pages.restore(folder.path()).unwrap(), 0, "nothing was dropped");
        // File systems in memory keep all pages, and say so.
        let dropped = pages.drop_of(folder.path(), vec![file.clone()]);
        assert!(dropped.is_ok() || dropped.unwrap_err().to_string().contains("could not be emptied"));
        assert_eq!(pages.restore(folder.path()).unwrap(), 10_000);
        assert_eq!(pages.restore(folder.path()).unwrap(), 0, "once");
        if let Ok(there) = page_cache::residency(&[&file]) {
            assert_eq!(there.resident_bytes, 10_000);
        }
    }

    #[test]
    fn all_sets_are_read_when_the_benchmark_ends_but_those_behind_a_network() {
        let (one, two) = (set(1_000), set(2_000));
        let pages = Pages::default();
        for (set, file) in [&one, &two] {
            drop(pages.drop_of(set.path(), vec![file.clone()]));
        }
        let far = PathBuf::from("s3://bucket/images.parquet");
        let why = pages.drop_of(Path::new("s3://bucket"), vec![far]).unwrap_err().to_string();
        assert!(why.contains("lies behind a network"), "{why}");
        assert_eq!(pages.dropped.borrow().len(), 2);
        pages.restore_all().unwrap();
        assert!(pages.dropped.borrow().is_empty());
    }
}
