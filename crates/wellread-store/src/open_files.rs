//! Files that stay open between reads.
//!
//! Reading is the smaller part of the cost of a small chunk in a file of its own. Finding its name, folder by folder,
//! opening, asking for its length and closing take several times as long. The files that are read first stay open, as
//! many as the process may well have; the others are opened for each read. The first files are kept, as in the cache of
//! images (decision 8). A set that is read again and again in random order would gain nothing from keeping the latest.
//!
//! ```text
//! read ─▶ kept? ─yes─▶ pread
//!            └─no──▶ open ─▶ pread ─▶ room? ─yes─▶ kept until the store is dropped
//!                                       └─no──▶ a miss: a store that was idle for IDLE_MISSES of them gives its files up
//! ```
//!
//! Stores share one budget: those of a training and a validation set, or of a benchmark's variants. One that is not read,
//! because all that it had is in a cache, say, must not hold what others could use.
//!
//! A kept file goes on being what it was when it was opened, also when another is put in its place meanwhile. No lock is
//! waited for: in a forked process its holder may not be there.

use crate::fd_table;
#[cfg(feature = "tiff")]
use crate::mapping::{KeptMap, Mapping};
use crate::place::File;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, RwLock, Weak};

/// Parts of a store's files, each with a lock of its own.
const SHARDS: usize = 16;
/// Misses of others after which a store that was not asked for a file gives up those that it keeps.
const IDLE_MISSES: usize = 512;

/// The budget of this process.
static PROCESS_BUDGET: LazyLock<OpenFileBudget> =
    LazyLock::new(|| OpenFileBudget::new(fd_table::max_kept_files()));

/// How many files may be kept open, and which stores keep some.
#[derive(Debug)]
struct OpenFileBudget {
    limit: usize,
    /// Files that are kept, in all stores.
    open: AtomicUsize,
    /// Reads, in all stores, of a file for which there was no room.
    misses: AtomicUsize,
    stores: RwLock<Vec<Weak<dyn EvictableFiles>>>,
}

/// The interface between stores: which was used last, and that it can close its files.
trait EvictableFiles: std::fmt::Debug + Send + Sync {
    /// [`OpenFileBudget::misses`] when a file was asked for last.
    fn used(&self) -> usize;

    /// Closes all files but those that somebody reads at the moment; whether there were any.
    fn evict_all(&self) -> bool;
}

impl OpenFileBudget {
    fn new(limit: usize) -> Self {
        let (open, misses) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { limit, open, misses, stores: RwLock::default() }
    }

    /// Counts one more file, if there is room for it.
    fn take(&'static self) -> Option<BudgetSlot> {
        let more = |open| (open < self.limit).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| BudgetSlot(self))
    }

    /// Counts a miss. Now and then the store that was idle longest gives up its files.
    fn miss(&self) {
        let misses = self.misses.fetch_add(1, Ordering::Relaxed) + 1;
        if !misses.is_multiple_of(IDLE_MISSES) {
            return;
        }
        let Ok(stores) = self.stores.try_read() else { return };
        let idle = |store: &Arc<dyn EvictableFiles>| misses.wrapping_sub(store.used());
        let mut stores: Vec<_> =
            stores.iter().filter_map(Weak::upgrade).filter(|s| idle(s) >= IDLE_MISSES).collect();
        stores.sort_by_key(|store| std::cmp::Reverse(idle(store)));
        // Those without files are passed over.
        let _ = stores.iter().find(|store| store.evict_all());
    }
}

/// A kept file's place in the budget.
#[derive(Debug)]
struct BudgetSlot(&'static OpenFileBudget);

impl Drop for BudgetSlot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A file and its length in bytes, as it was opened.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub file: File,
    pub length: u64,
    /// There where it is kept, as is the map.
    _place: Option<BudgetSlot>,
    #[cfg(feature = "tiff")]
    map: Option<KeptMap>,
}

#[cfg(feature = "tiff")]
impl OpenFile {
    /// The whole file, where it is mapped. See [`crate::mapping`] for what to do before and after reading.
    pub fn map(&self) -> Option<&Mapping> {
        self.map.as_ref()?.get()
    }

    /// As [`Self::map`], for a part of the file that takes `bytes` to read. It maps a file that is kept once as many were read so
    /// as it has.
    pub fn map_for_part(&self, bytes: u64) -> Option<&Mapping> {
        self.map.as_ref()?.get_for_part(&self.file, self.length, bytes)
    }
}

/// Files of a store by what tells them apart.
#[derive(Debug)]
pub(crate) struct OpenFiles<K> {
    kept: Arc<CachedFiles<K>>,
    state: RandomState,
    budget: &'static OpenFileBudget,
}

#[derive(Debug)]
struct CachedFiles<K> {
    parts: [RwLock<HashMap<K, Arc<OpenFile>>>; SHARDS],
    used: AtomicUsize,
}

impl<K: std::fmt::Debug + Send + Sync> EvictableFiles for CachedFiles<K> {
    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn evict_all(&self) -> bool {
        let parts = self.parts.iter().filter_map(|part| part.try_write().ok());
        parts.map(|mut part| std::mem::take(&mut *part).len()).sum::<usize>() > 0
    }
}

impl<K: std::fmt::Debug + Send + Sync + 'static> Default for OpenFiles<K> {
    fn default() -> Self {
        Self::within(&PROCESS_BUDGET)
    }
}

impl<K: std::fmt::Debug + Send + Sync + 'static> OpenFiles<K> {
    fn within(budget: &'static OpenFileBudget) -> Self {
        let used = AtomicUsize::new(budget.misses.load(Ordering::Relaxed));
        let kept = Arc::new(CachedFiles { parts: std::array::from_fn(|_| RwLock::default()), used });
        // One that is not among them gives nothing up.
        if let Ok(mut stores) = budget.stores.try_write() {
            stores.retain(|store| store.strong_count() > 0);
            let weak: Weak<CachedFiles<K>> = Arc::downgrade(&kept);
            stores.push(weak);
        }
        Self { kept, state: RandomState::new(), budget }
    }
}

impl<K: Eq + Hash> OpenFiles<K> {
    /// The file of `key`, opened by `open` (which gives its length too) unless it is kept.
    ///
    /// # Errors
    /// The error of `open`.
    pub fn get(&self, key: K, open: impl FnOnce() -> io::Result<(File, u64)>) -> io::Result<Arc<OpenFile>> {
        let Self { kept, budget, .. } = self;
        let misses = budget.misses.load(Ordering::Relaxed);
        // Only where it changes, which it does not once all have what they need: threads would wait for its cache line.
        if kept.used.load(Ordering::Relaxed) != misses {
            kept.used.store(misses, Ordering::Relaxed);
        }
        let part = &kept.parts[self.state.hash_one(&key) as usize % SHARDS];
        if let Ok(files) = part.try_read()
            && let Some(file) = files.get(&key)
        {
            return Ok(file.clone());
        }
        let (file, length) = open()?;
        let place = budget.take();
        let is_kept = place.is_some();
        let file = Arc::new(OpenFile {
            file,
            length,
            _place: place,
            #[cfg(feature = "tiff")]
            map: is_kept.then(KeptMap::default),
        });
        if !is_kept {
            budget.miss();
        } else if let Ok(mut files) = part.try_write() {
            files.insert(key, file.clone());
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place;

    fn budget(limit: usize) -> &'static OpenFileBudget {
        Box::leak(Box::new(OpenFileBudget::new(limit)))
    }

    #[test]
    fn files_are_opened_once_and_closed_with_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"12345").unwrap();
        let budget = budget(10);
        let files = OpenFiles::within(budget);
        let (mut opened, mut seen) = (0, Vec::new());
        for _ in 0..3 {
            let file = files.get((7, 0), || {
                opened += 1;
                place::open(&path)
            });
            seen.push(file.unwrap());
        }
        assert_eq!((seen[2].length, opened, budget.open.load(Ordering::Relaxed)), (5, 1, 1));
        drop(files);
        assert_eq!(Arc::strong_count(&seen[0]), 3);
        drop(seen);
        assert_eq!(budget.open.load(Ordering::Relaxed), 0);
        let missing = OpenFiles::default().get(1, || place::open(&dir.path().join("b")));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_store_that_is_idle_gives_its_files_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"12345").unwrap();
        let budget = budget(4);
        let [first, idle, busy] = [(); 3].map(|()| OpenFiles::within(budget));
        // How many of four files are opened.
        let read = |files: &OpenFiles<usize>| {
            let mut opened = 0;
            for key in 0..4 {
                let open = || {
                    opened += 1;
                    place::open(&path)
                };
                files.get(key, open).unwrap();
            }
            opened
        };
        assert_eq!((read(&first), read(&first)), (4, 0));
        assert_eq!(read(&idle), 4);
        let mut turns = 0;
        while read(&busy) > 0 {
            turns += 1;
            assert_eq!(read(&first), 0, "it is in use, and keeps its files");
            assert!(budget.open.load(Ordering::Relaxed) <= 4);
            if turns > IDLE_MISSES {
                break;
            }
        }
        assert!(turns > IDLE_MISSES, "there was nobody to give up files");
        while read(&busy) > 0 {
            turns += 1;
            assert!(turns < 3 * IDLE_MISSES, "nobody reads the first any more");
        }
        assert_eq!(budget.open.load(Ordering::Relaxed), 4);
        assert_eq!(read(&first), 4);
        drop((first, idle, busy));
        assert_eq!(budget.open.load(Ordering::Relaxed), 0);
    }
}
