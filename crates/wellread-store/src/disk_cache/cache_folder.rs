//! The folder of a cache: how much lies in it, counted by all processes together, and what goes when it is full.
//!
//! ```text
//!  FOLDER/wellread-disk-cache     kind, and bytes that are used; locked while it is looked at and changed
//!  FOLDER/wellread-evicting       locked by the process that makes room, the others keep nothing meanwhile; shared by those that write
//!  FOLDER/ab/<30 hex>-<block>     a block
//! ```
//!
//! Bytes are counted before they are written, so that the bound holds whoever writes. Bytes that killed processes
//! counted and did not write are found when room is made: then all files are looked at. Nobody writes then, so all that is counted
//! is in files.

use crate::amount::bytes_text;
use crate::free_space::free_bytes;
use crate::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The file that says what the folder is; of another release it would say something else.
const COUNT: &str = "wellread-disk-cache";
const EVICTING: &str = "wellread-evicting";
const KIND: &[u8; 8] = b"WRDISK01";
/// Bytes of a cache at least: a few blocks.
pub(super) const MIN_CACHE_BYTES: u64 = 4 << 20;

/// The folder.
#[derive(Debug)]
pub(super) struct CacheFolder {
    folder: PathBuf,
    limit: u64,
    /// Locks of files hold between processes, those of memory between threads.
    count: Mutex<File>,
    evicting: Mutex<File>,
}

/// Bytes that are counted, and the right to write them: no room is made until it is dropped.
#[derive(Debug)]
pub(super) struct Reservation(File);

impl Drop for Reservation {
    fn drop(&mut self) {
        // A process that was forked meanwhile has the file open too, and would keep the lock.
        let _ = self.0.unlock();
    }
}

/// A block's file as eviction sees it.
struct Found {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl CacheFolder {
    /// Opens the folder, or makes it for this user alone.
    ///
    /// # Errors
    /// The cache cannot be made or written to. Its disk has no room for `limit`. Another release made it.
    pub(super) fn open(folder: &Path, limit: u64) -> Result<Self> {
        if limit < MIN_CACHE_BYTES {
            let cause = format_args!("a cache of {} is too small", bytes_text(limit));
            return Err(Error::new(folder, cause).hint("give 4MiB or more"));
        }
        let cannot = |e: io::Error| Error::io(folder, "cannot keep a cache there", &e);
        make_folder(folder).map_err(cannot)?;
        let file = |name: &str| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).open(folder.join(name))
        };
        let count = file(COUNT).map_err(cannot)?;
        let evicting = file(EVICTING).map_err(cannot)?;
        let cache = Self {
            folder: folder.to_owned(),
            limit,
            count: Mutex::new(count),
            evicting: Mutex::new(evicting),
        };
        let used = cache.counted(Ok).map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => Error::new(folder, "holds the cache of another release")
                .hint("name another folder, or remove it"),
            _ => cannot(e),
        })?;
        if let Some(free) = free_bytes(folder)
            && free.saturating_add(used) < limit
        {
            let cause = format_args!(
                "the cache may take {}, but its disk has {} MiB left",
                bytes_text(limit),
                free.saturating_add(used) >> 20
            );
            return Err(Error::new(folder, cause).hint("give less, or a folder on another disk"));
        }
        Ok(cache)
    }

    /// The folder's path.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes of it at most.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Where a block of an object is.
    pub(super) fn path(&self, object: u128, block: u64) -> PathBuf {
        let key = format!("{object:032x}");
        self.folder.join(&key[..2]).join(format!("{}-{block:x}", &key[2..]))
    }

    /// Changes the number of bytes that are used, with all others kept out; returns the new number.
    fn counted(&self, change: impl FnOnce(u64) -> io::Result<u64>) -> io::Result<u64> {
        let mut file = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        lock(&file)?;
        let used = changed(&mut file, &self.folder, change);
        let _ = file.unlock();
        used
    }

    /// Counts `bytes` that are going to be written, and makes room for them; `None` where there is none at the moment.
    pub(super) fn take(&self, bytes: u64) -> io::Result<Option<Reservation>> {
        for attempt in 0..2 {
            let Some(room) = self.writing()? else { return Ok(None) };
            let mut fits = false;
            self.counted(|used| {
                fits = used.saturating_add(bytes) <= self.limit;
                Ok(if fits { used + bytes } else { used })
            })?;
            if fits {
                return Ok(Some(room));
            }
            drop(room);
            if attempt > 0 || !self.evict(bytes)? {
                break;
            }
        }
        Ok(None)
    }

    /// Keeps those out that make room; `None` where somebody does. Each has the file open for itself, as locks are those of an open
    /// file.
    fn writing(&self) -> io::Result<Option<Reservation>> {
        let file = File::open(self.folder.join(EVICTING))?;
        // A file system without locks keeps nobody out.
        let is_kept_out = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        Ok((!is_kept_out).then_some(Reservation(file)))
    }

    /// Removes what was not used for longest, until a tenth of the bound is free and `bytes` have cache. `false` where another thread or
    /// process does it, or one writes.
    fn evict(&self, bytes: u64) -> io::Result<bool> {
        let Ok(file) = self.evicting.try_lock() else { return Ok(false) };
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Ok(false);
        }
        let evicted = self.evict_locked(bytes);
        let _ = file.unlock();
        evicted.map(|()| true)
    }

    fn evict_locked(&self, bytes: u64) -> io::Result<()> {
        let before = self.counted(Ok)?;
        let mut found = blocks(&self.folder);
        found.sort_by_key(|block| block.used);
        let mut used = found.iter().map(|block| block.bytes).sum::<u64>();
        let goal = (self.limit - self.limit / 10).min(self.limit.saturating_sub(bytes));
        for block in found {
            if used <= goal {
                break;
            }
            match std::fs::remove_file(&block.path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => used -= block.bytes,
            }
        }
        // Bytes that others have counted meanwhile are theirs.
        self.counted(|now| Ok(used + now.saturating_sub(before))).map(drop)
    }

    /// Bytes that are used, as they are counted.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.counted(Ok).unwrap()
    }
}

/// Takes the lock of a file; where the file system has none, nobody is kept out.
fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if has_no_locks(&e) => return Ok(()),
            locked => return locked,
        }
    }
}

/// Whether an error says that the file system has no locks. Those behind a network say so by a number for which Rust has no kind.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_numbered = error.raw_os_error() == Some(libc::ENOLCK);
    #[cfg(not(unix))]
    let is_numbered = false;
    is_numbered || error.kind() == io::ErrorKind::Unsupported
}

/// Reads the count, changes it, and writes it if it is another one.
fn changed(file: &mut File, folder: &Path, change: impl FnOnce(u64) -> io::Result<u64>) -> io::Result<u64> {
    let mut text = vec![];
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut text)?;
    let known = match text.split_first_chunk::<8>() {
        Some((kind, _)) if kind != KIND => return Err(io::ErrorKind::InvalidData.into()),
        Some((_, rest)) => rest.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)),
        None => None,
    };
    // A new folder, or one whose count was being written when the machine stopped.
    let used = known.unwrap_or_else(|| blocks(folder).iter().map(|block| block.bytes).sum());
    let now = change(used)?;
    if known != Some(now) {
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&[*KIND, now.to_le_bytes()].concat())?;
    }
    Ok(now)
}

/// All blocks of a folder. A block that has just been removed is left out.
fn blocks(folder: &Path) -> Vec<Found> {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let is_block = |name: &str| {
        name.split_once('-').is_some_and(|(key, block)| key.len() == 30 && is_hex(key) && is_hex(block))
    };
    let mut found = vec![];
    for first in 0..=255u8 {
        let Ok(entries) = std::fs::read_dir(folder.join(format!("{first:02x}"))) else { continue };
        for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_block)) {
            let Ok(meta) = entry.metadata() else { continue };
            let times = [meta.accessed(), meta.modified()].into_iter().flatten();
            let used = times.max().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push(Found { path: entry.path(), bytes: on_disk(&meta), used });
        }
    }
    found
}

/// Bytes that a file takes on disk.
fn on_disk(meta: &std::fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::blocks(meta) * 512
    }
    #[cfg(not(unix))]
    {
        meta.len()
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    // Pixels that others may not read in the bucket, they may not read here.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[cfg(unix)]
    #[test]
    fn file_systems_without_locks_are_told_from_others() {
        for (number, has_none) in [(libc::ENOLCK, true), (libc::ENOSYS, true), (libc::EACCES, false)] {
            assert_eq!(has_no_locks(&io::Error::from_raw_os_error(number)), has_none, "{number}");
        }
    }

    #[test]
    fn bytes_are_counted_by_all_and_those_used_last_stay() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        let cache = CacheFolder::open(&folder, MIN_CACHE_BYTES).unwrap();
        let other = CacheFolder::open(&folder, MIN_CACHE_BYTES).unwrap();
        assert!(cache.take(1 << 20).unwrap().is_some() && other.take(1 << 20).unwrap().is_some());
        assert_eq!((cache.used(), other.used()), (2 << 20, 2 << 20));
        let start = SystemTime::now();
        for i in 0..4u64 {
            let path = cache.path(u128::from(i) << 120, i);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, vec![1; 1 << 20]).unwrap();
            let time = start + Duration::from_secs(i);
            let times = std::fs::FileTimes::new().set_accessed(time).set_modified(time);
            File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
        }
        std::fs::write(folder.join("00/kept"), b"somebody's").unwrap();
        // There is no room for so many, so that all is looked at: the oldest go, and the count is true.
        assert!(cache.take(5 << 19).unwrap().is_some());
        let there: Vec<bool> = (0..4u64).map(|i| cache.path(u128::from(i) << 120, i).exists()).collect();
        assert_eq!(there, [false, false, false, true]);
        assert!(folder.join("00/kept").exists());
        let of_files = 1 << 20..(1 << 20) + (1 << 18);
        assert!(of_files.contains(&(other.used() - (5 << 19))), "{}", other.used());
        // While another makes room, nothing is kept.
        let evicting = other.evicting.lock().unwrap();
        evicting.lock().unwrap();
        assert!(cache.take(2 << 20).unwrap().is_none());
        evicting.unlock().unwrap();
        drop(evicting);
        // A count that is lost is made anew.
        std::fs::write(folder.join(COUNT), b"").unwrap();
        assert!(of_files.contains(&cache.used()));
    }

    #[test]
    fn bytes_that_are_being_written_stay_counted() {
        let dir = tempfile::tempdir().unwrap();
        let cache = CacheFolder::open(dir.path(), MIN_CACHE_BYTES).unwrap();
        let other = CacheFolder::open(dir.path(), MIN_CACHE_BYTES).unwrap();
        let writing = cache.take(3 << 20).unwrap().unwrap();
        // There is no file yet, so that all would seem to be free.
        assert!(other.take(2 << 20).unwrap().is_none() && cache.take(2 << 20).unwrap().is_none());
        assert_eq!(other.used(), 3 << 20);
        assert!(other.take(1 << 20).unwrap().is_some(), "those that fit are written at once");
        drop(writing);
        // They were counted, and never written.
        assert!(other.take(2 << 20).unwrap().is_some());
        assert_eq!(cache.used(), 2 << 20);
    }

    #[test]
    fn folders_that_cannot_be_used_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let said = |folder: &Path, limit| CacheFolder::open(folder, limit).unwrap_err().to_string();
        assert!(said(dir.path(), 1 << 20).contains("too small"));
        assert!(said(dir.path(), 1 << 59).contains("MiB left"), "{}", said(dir.path(), 1 << 59));
        let file = dir.path().join("file");
        std::fs::write(&file, b"").unwrap();
        assert!(said(&file.join("x"), MIN_CACHE_BYTES).contains("cannot keep a cache there"));
        std::fs::write(dir.path().join(COUNT), b"WRDISK99........").unwrap();
        assert!(said(dir.path(), MIN_CACHE_BYTES).contains("another release"));
    }
}
