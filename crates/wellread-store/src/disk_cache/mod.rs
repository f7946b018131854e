//! Bytes of objects behind a network, kept on a disk of this machine and shared by its processes.
//!
//! ```text
//!  cache="disk:…" · --loader-cache · WELLREAD_DISK_CACHE ──▶ begin ──▶ the cache of this process
//!                                                                       │ current
//!  a place, for a range of an object ──▶ read ── all of it is there and whole ──▶ the reader's buffer
//!                                         └─ no ──▶ fetched by the place ──▶ keep ──▶ blocks
//! ```
//!
//! | file | what it knows |
//! |---|---|
//! | `spec` | how a folder and a size are written |
//! | `block` | a file: sums and bytes of 1 MiB of one version of an object |
//! | `cache_folder` | the folder: bytes that are used, counted by all processes; what goes when it is full |
//!
//! A process has one cache; the last that was asked for is it. A forked process opens it anew, since locks of files are
//! shared with the parent otherwise. Nothing that lies there is believed without its checksum. A failure later than
//! opening ends the use of the cache with one note, and reading goes on without it
//! (`docs/decisions/0046-disk-cache.md`).

mod block;
mod cache_folder;
mod spec;

pub use spec::DiskCacheSpec;

use crate::{Error, Result, place, process};
use block::{Absent, BLOCK, Block, GRANULE};
use cache_folder::CacheFolder;
use sha2::{Digest as _, Sha256};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The variable that names a cache for every command and program.
pub const VARIABLE: &str = "WELLREAD_DISK_CACHE";

/// Blocks that stay open.
const OPEN: usize = 64;
/// Bytes in which file systems give room away.
const PAGE: u64 = 4096;

/// One version of an object, as a cache knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedObject {
    key: u128,
    length: u64,
}

impl CachedObject {
    /// An object of `length` bytes by all that tells it from others: server, address, version.
    pub fn new(named: &[&str], length: u64) -> Self {
        let mut hasher = Sha256::new();
        for text in named {
            // So that two texts are not another two.
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.update(length.to_le_bytes());
        let digest = hasher.finalize();
        Self { key: u128::from_le_bytes(std::array::from_fn(|i| digest[i])), length }
    }

    /// The pieces that a range touches, as a whole: the bytes to fetch so that they can be kept.
    pub fn rounded(&self, range: &Range<u64>) -> Range<u64> {
        let end = range.end.checked_next_multiple_of(GRANULE).unwrap_or(u64::MAX);
        range.start / GRANULE * GRANULE..end.min(self.length)
    }

    /// The range in parts that lie in one block each.
    pub fn blocks(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let part = at..range.end.min((at / BLOCK).saturating_add(1).saturating_mul(BLOCK));
            at = part.end;
            (!part.is_empty()).then_some(part)
        })
    }

    /// Mixed into the sums of a block.
    fn seed(&self, block: u64) -> u64 {
        (self.key as u64) ^ block.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Where the object ends in a block.
    fn end_in(&self, block: u64) -> u64 {
        self.length.saturating_sub(block * BLOCK).min(BLOCK)
    }
}

/// The counts of a cache in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCacheReport {
    /// Ranges that were read from it.
    pub hits: u64,
    /// Ranges that it did not have.
    pub misses: u64,
    /// Bytes that were read from it.
    pub bytes_read: u64,
    /// Bytes that were put there.
    pub bytes_kept: u64,
}

#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    bytes_read: AtomicU64,
    bytes_kept: AtomicU64,
}

/// A block that stays open, and its key.
type OpenBlock = Option<(u128, u64, Arc<Block>)>;

/// A cache as one process has it.
#[derive(Debug)]
pub struct DiskCache {
    process: u32,
    cache_folder: CacheFolder,
    open: Vec<Mutex<OpenBlock>>,
    /// Whether something failed, so that it is not used any more.
    given_up: AtomicBool,
    counters: Counters,
}

impl DiskCache {
    fn open(spec: &DiskCacheSpec) -> Result<Self> {
        let folder = place::absolute(&spec.folder)
            .map_err(|e| Error::io(&spec.folder, "cannot keep a cache there", &e))?;
        Ok(Self {
            process: process::id(),
            cache_folder: CacheFolder::open(&folder, spec.limit)?,
            open: (0..OPEN).map(|_| Mutex::default()).collect(),
            given_up: AtomicBool::new(false),
            counters: Counters::default(),
        })
    }

    /// Where it is and how large it may be.
    pub fn spec(&self) -> DiskCacheSpec {
        DiskCacheSpec { folder: self.cache_folder.folder().to_owned(), limit: self.cache_folder.limit() }
    }

    /// Its counts so far.
    pub fn report(&self) -> DiskCacheReport {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { hits, misses, bytes_read, bytes_kept } = &self.counters;
        DiskCacheReport {
            hits: of(hits),
            misses: of(misses),
            bytes_read: of(bytes_read),
            bytes_kept: of(bytes_kept),
        }
    }

    /// Fills `buffer` with the object's bytes from `offset` on, if all of them are there and whole. Else what is in `buffer` means
    /// nothing.
    pub fn read(&self, object: &CachedObject, offset: u64, buffer: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(buffer.len() as u64).filter(|&end| end <= object.length) else {
            return false;
        };
        let is_there = !self.given_up.load(Ordering::Relaxed)
            && self.read_parts(object, offset..end, buffer).unwrap_or_else(|e| {
                self.give_up(&e);
                false
            });
        let Counters { hits, misses, bytes_read, .. } = &self.counters;
        if is_there {
            hits.fetch_add(1, Ordering::Relaxed);
            bytes_read.fetch_add(end - offset, Ordering::Relaxed);
        } else {
            misses.fetch_add(1, Ordering::Relaxed);
        }
        is_there
    }

    fn read_parts(&self, object: &CachedObject, range: Range<u64>, buffer: &mut [u8]) -> io::Result<bool> {
        let mut rest = buffer;
        for part in CachedObject::blocks(range) {
            let (now, later) = rest.split_at_mut((part.end - part.start) as usize);
            rest = later;
            let number = part.start / BLOCK;
            let Some(block) = self.block(object, number, Absent::Left)? else { return Ok(false) };
            if !block.read(part.start - number * BLOCK, now, object.end_in(number))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a range of the object seems to be there, for those who would fetch it ahead of its reader. Its bytes are not looked at.
    pub fn has(&self, object: &CachedObject, range: Range<u64>) -> bool {
        if range.end > object.length || self.given_up.load(Ordering::Relaxed) {
            return false;
        }
        CachedObject::blocks(range).all(|part| {
            let number = part.start / BLOCK;
            let inside = part.start - number * BLOCK..part.end - number * BLOCK;
            let block = self.block(object, number, Absent::Left).ok().flatten();
            block.is_some_and(|block| block.has(&inside).unwrap_or(false))
        })
    }

    /// Keeps bytes of the object from `offset` on: those that are whole pieces ([`CachedObject::rounded`]). Where there is no room at
    /// the moment, they are not kept.
    pub fn keep(&self, object: &CachedObject, offset: u64, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len() as u64).min(object.length);
        let first = offset.checked_next_multiple_of(GRANULE).unwrap_or(u64::MAX);
        let last = if end == object.length { end } else { end / GRANULE * GRANULE };
        if first >= last || self.given_up.load(Ordering::Relaxed) {
            return;
        }
        for part in CachedObject::blocks(first..last) {
            let bytes = &bytes[(part.start - offset) as usize..(part.end - offset) as usize];
            match self.keep_part(object, part.start, bytes) {
                Ok(true) => self.counters.bytes_kept.fetch_add(bytes.len() as u64, Ordering::Relaxed),
                Ok(false) => return,
                Err(e) => return self.give_up(&e),
            };
        }
    }

    /// `false` where there is no room.
    fn keep_part(&self, object: &CachedObject, start: u64, bytes: &[u8]) -> io::Result<bool> {
        // A page of sums, and one more where the bytes begin within a page.
        let pages = (bytes.len() as u64).div_ceil(PAGE) + 2;
        let Some(_room) = self.cache_folder.take(pages * PAGE)? else { return Ok(false) };
        let number = start / BLOCK;
        let Some(block) = self.block(object, number, Absent::Made)? else { return Ok(false) };
        block.write(start - number * BLOCK, bytes)?;
        Ok(true)
    }

    /// A block of an object; `None` where there is none and none is to be made.
    fn block(&self, object: &CachedObject, number: u64, absent: Absent) -> io::Result<Option<Arc<Block>>> {
        let slot = (object.key as u64).wrapping_add(number) as usize % self.open.len();
        let mut slot = self.open[slot].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((key, block, open)) = &*slot
            && (*key, *block) == (object.key, number)
            && !(absent == Absent::Made && open.is_removed())
        {
            return Ok(Some(open.clone()));
        }
        let path = self.cache_folder.path(object.key, number);
        let opened = match Block::open(&path, object.seed(number), absent) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && absent == Absent::Made => {
                // The folder of the cache is not made anew: a user who removed it does not want it.
                if let Some(folder) = path.parent()
                    && let Err(e) = std::fs::create_dir(folder)
                    && e.kind() != io::ErrorKind::AlreadyExists
                {
                    return Err(e);
                }
                Block::open(&path, object.seed(number), Absent::Made)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened,
        };
        let block = Arc::new(opened?);
        *slot = Some((object.key, number, block.clone()));
        Ok(Some(block))
    }

    /// After a fault of the disk: says so once, and leaves it alone.
    fn give_up(&self, error: &io::Error) {
        if !self.given_up.swap(true, Ordering::Relaxed) {
            say(self.cache_folder.folder(), error);
        }
    }
}

fn say(folder: &Path, why: &dyn std::fmt::Display) {
    let folder = folder.display();
    let note =
        format!("note: the cache in {folder} is not used any more, and reading continues without it: {why}");
    let _ = writeln!(io::stderr(), "{note}");
}

/// The cache of this process; that of the parent in a process that was forked and has not used it yet. Never freed.
static CURRENT: AtomicPtr<DiskCache> = AtomicPtr::new(ptr::null_mut());
/// Whether the environment was looked at, and names none.
static NONE_NAMED: AtomicBool = AtomicBool::new(false);

fn known() -> Option<&'static DiskCache> {
    // SAFETY: the value there comes from a box and is never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Lets this process use a cache from now on, in the place of another that it may have.
///
/// # Errors
/// Its folder cannot be made or written to, or its disk has no room for it.
pub fn begin(spec: &DiskCacheSpec) -> Result<&'static DiskCache> {
    let folder = place::absolute(&spec.folder).unwrap_or_else(|_| spec.folder.clone());
    let wanted = DiskCacheSpec { folder, limit: spec.limit };
    let is_it = |cache: &DiskCache| {
        cache.process == process::id() && cache.spec() == wanted && !cache.given_up.load(Ordering::Relaxed)
    };
    if let Some(cache) = known().filter(|cache| is_it(cache)) {
        return Ok(cache);
    }
    let cache: &'static DiskCache = Box::leak(Box::new(DiskCache::open(&wanted)?));
    CURRENT.store(ptr::from_ref(cache).cast_mut(), Ordering::Release);
    Ok(cache)
}

/// The cache of this process: the one that it has begun, or that the environment names ([`VARIABLE`]); `None` where there is none.
///
/// # Errors
/// The environment names one that cannot be used.
pub fn current() -> Result<Option<&'static DiskCache>> {
    match known() {
        Some(cache) if cache.process == process::id() => {
            Ok(Some(cache).filter(|cache| !cache.given_up.load(Ordering::Relaxed)))
        }
        // Forked: the parent's locks are not this process's.
        Some(parents) if parents.given_up.load(Ordering::Relaxed) => Ok(None),
        Some(parents) => match begin(&parents.spec()) {
            Ok(cache) => Ok(Some(cache)),
            Err(error) => {
                parents.given_up.store(true, Ordering::Relaxed);
                say(parents.cache_folder.folder(), &error);
                Ok(None)
            }
        },
        None if NONE_NAMED.load(Ordering::Relaxed) => Ok(None),
        None => named(),
    }
}

/// The cache that the environment names.
fn named() -> Result<Option<&'static DiskCache>> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => {
            let spec = text.trim().parse::<DiskCacheSpec>();
            let spec = spec
                .map_err(|why| Error::new("", format_args!("the environment variable {VARIABLE}: {why}")))?;
            begin(&spec).map(Some)
        }
        _ => {
            NONE_NAMED.store(true, Ordering::Relaxed);
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests;
