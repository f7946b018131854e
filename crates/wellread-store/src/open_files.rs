//! Files that stay open between reads.
//!
//! Of a small chunk in a file of its own, most of the cost is not reading it: finding its name, folder by folder, opening,
//! asking for its length and closing take several times as long. The files that are read first stay open, as many as the
//! process may well have; the others are opened for each read. What came first is kept, as in the cache of images
//! (decision 8): of a set read again and again in random order, keeping what came last would keep nothing.
//!
//! ```text
//! read ─▶ kept? ─yes─▶ pread
//!            └─no──▶ open ─▶ pread ─▶ room among OPEN? ─yes─▶ kept until the store is dropped
//! ```
//!
//! A kept file goes on being what it was when it was opened, also when another is put in its place meanwhile.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, Hash, RandomState};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Files that this process keeps open, in all stores.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// Share of the files a process may have open that are kept.
const SHARE: usize = 4;
/// Most files that are kept, whatever the process may have.
const MOST: usize = 1 << 16;
/// Parts of a store's files, each with a lock of its own.
const PARTS: usize = 16;

/// A file and its length in bytes, as it was opened.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub file: File,
    pub length: u64,
    /// Whether it counts among [`OPEN`].
    kept: bool,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if self.kept {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Files of a store by what tells them apart.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles<K> {
    parts: [RwLock<HashMap<K, Arc<OpenFile>>>; PARTS],
    state: RandomState,
}

impl<K: Eq + Hash> OpenFiles<K> {
    /// The file of `key`, opened by `open` (which gives its length too) unless it is kept.
    ///
    /// # Errors
    /// What `open` says.
    pub fn get(&self, key: K, open: impl FnOnce() -> io::Result<(File, u64)>) -> io::Result<Arc<OpenFile>> {
        let part = &self.parts[self.state.hash_one(&key) as usize % PARTS];
        if let Some(file) = part.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(file.clone());
        }
        let (file, length) = open()?;
        let kept =
            OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < limit()).then_some(n + 1));
        let file = Arc::new(OpenFile { file, length, kept: kept.is_ok() });
        if file.kept {
            part.write().unwrap_or_else(PoisonError::into_inner).insert(key, file.clone());
        }
        Ok(file)
    }
}

/// How many files are kept at most: a share of those that the process may have open (`ulimit -n`).
fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| (most_open() / SHARE).min(MOST))
}

#[cfg(unix)]
fn most_open() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes of an rlimit.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    if known { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 0 }
}

/// Open files cannot be moved or removed there: none is kept.
#[cfg(not(unix))]
fn most_open() -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regular;

    #[test]
    fn files_are_opened_once_and_closed_with_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"12345").unwrap();
        let files = OpenFiles::default();
        let (mut opened, mut seen) = (0, Vec::new());
        for _ in 0..3 {
            let file = files.get((7, 0), || {
                opened += 1;
                regular::open(&path)
            });
            seen.push(file.unwrap());
        }
        assert_eq!(seen[2].length, 5);
        if cfg!(unix) && limit() > 0 {
            assert_eq!(opened, 1);
            assert!(seen[0].kept && Arc::strong_count(&seen[0]) == 4);
        }
        drop(files);
        assert_eq!(Arc::strong_count(&seen[0]), if opened == 1 { 3 } else { 1 });
        let missing = OpenFiles::default().get(1, || regular::open(&dir.path().join("b")));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_process_keeps_a_share_of_the_files_it_may_have() {
        assert!(limit() <= MOST && limit() <= most_open() / SHARE);
    }
}
