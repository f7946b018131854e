//! Decoded images in a file that is mapped into memory. It is one copy in the page cache for all processes of the
//! machine, and still there for the next run.
//!
//! ```text
//!  0     magic, version, rows; bytes of data that are taken (atomic)
//!  64    one entry per row: offset, bytes, check (atomic; check 0: not there)
//!  …     data, from a page boundary on: images, each from a multiple of 64 bytes on, and behind each its check again
//! ```
//!
//! All numbers are in the machine's byte order; the file is no format to exchange. Any process may add an image. It
//! takes room by adding to the header's counter, writes the pixels, and then publishes the entry. It uses `write`, not
//! the map, so that a full disk is an error and no signal. A published image is never written again. A process that is
//! killed half way leaves room that nobody uses, and no entry. The check is a CRC-32C of the pixels, looked at once
//! per process and image. After a power failure the kernel may have written the entry and not the pixels.
//!
//! A process that shortens the file takes pixels away that others are reading. They read zeros there instead of being
//! ended by a signal ([`Mapping`]). The check behind an image is gone with any part of it. So it is looked at after the
//! image was read, which costs nothing beside. A read that may have had some of the zeros is an error.

use super::CacheBackend;
use super::file::{ENTRIES_OFFSET, ENTRY_BYTES, data_offset, default_folder, make, opened, remove_others};
use super::fingerprint::Fingerprint;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use wellread_store::mapping::{self, Mapping};
use wellread_store::{Error, Result, Store};

const USED_BYTES_OFFSET: usize = 24;
const ALIGNMENT: u64 = 64;
/// Bytes of a check.
const CHECKSUM_BYTES: u64 = 8;
/// Most bytes that are mapped: the address space has room for more, some page tables do not.
const MAX_MAPPED_BYTES: usize = 1 << 42;

/// The state of an entry in this process.
const UNCHECKED: u8 = 0;
const VALID: u8 = 1;
const CORRUPT: u8 = 2;

/// See [`super::Cache::File`].
pub(super) struct Mapped {
    path: PathBuf,
    file: File,
    index: Mapping,
    data: Mapping,
    /// Where data begin in the file.
    data_offset: u64,
    limit: u64,
    checked: Box<[AtomicU8]>,
    /// Bytes that the file must have for the images that this process has seen in it.
    needed: AtomicU64,
    /// The file was seen to be shorter than that.
    shortened: AtomicBool,
    /// The disk is full, or cannot be written to.
    full: AtomicBool,
}

impl Mapped {
    /// Opens the cache file of `store` in `folder`, or makes one; files of earlier states of the set are removed.
    pub fn open(store: &dyn Store, made_by: &str, folder: Option<&Path>, limit: usize) -> Result<Self> {
        if !cfg!(unix) {
            return Err(Error::new(store.path(), "a cache file needs a Unix system")
                .hint("use the cache `memory` instead"));
        }
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => default_folder().ok_or_else(|| {
                Error::new(
                    store.path(),
                    "there is no folder for cache files: neither XDG_CACHE_HOME nor HOME is set",
                )
                .hint("set one of them")
            })?,
        };
        std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "cannot make the folder", &e))?;
        let Fingerprint { set, state } = Fingerprint::of(store, made_by)?;
        let path = folder.join(format!("{set}-{state}.pixels"));
        let rows = store.len();
        let limit = limit.min(MAX_MAPPED_BYTES);
        if let Some(mapped) = Self::open_file(&path, rows, limit) {
            return Ok(mapped);
        }
        remove_others(&folder, &set, &path);
        make(&path, rows).map_err(|e| {
            Error::io(&path, "cannot make the cache file", &e).hint("use the cache `memory` instead")
        })?;
        Self::open_file(&path, rows, limit).ok_or_else(|| {
            Error::new(&path, "cannot map the cache file").hint("use the cache `memory` instead")
        })
    }

    /// `None` where the file is not there or not what it should be.
    fn open_file(path: &Path, rows: usize, limit: usize) -> Option<Self> {
        let file = opened(path, rows)?;
        let data_offset = data_offset(rows);
        let index = Mapping::shared(&file, usize::try_from(data_offset).ok()?).ok()?;
        // It is longer than the file: bytes behind its end are not touched before they were written.
        let data = Mapping::part(&file, data_offset, limit.max(1)).ok()?;
        let checked = std::iter::repeat_with(AtomicU8::default).take(rows).collect();
        Some(Self {
            path: path.to_owned(),
            file,
            index,
            data,
            data_offset,
            limit: limit as u64,
            checked,
            needed: AtomicU64::new(data_offset),
            shortened: AtomicBool::new(false),
            full: AtomicBool::new(false),
        })
    }

    fn number(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.index.len());
        // SAFETY: within the map, as asserted, which begins at a page and lives as long as `self`; every process
        // reads and writes these numbers atomically. Where somebody shortens the file, the map stays readable and
        // writable: `Mapping` puts zeros in place.
        #[allow(
            clippy::cast_ptr_alignment,
            reason = "a multiple of 8 from the beginning of a page, as asserted"
        )]
        unsafe {
            &*self.index.as_mut_ptr().add(at).cast::<AtomicU64>()
        }
    }

    /// Offset, bytes and check of a row.
    fn entry(&self, row: usize) -> [&AtomicU64; 3] {
        std::array::from_fn(|i| self.number(ENTRIES_OFFSET + row * ENTRY_BYTES + i * 8))
    }

    /// The pixels of a row, its check, and the place of that behind the pixels, where an entry is published that this map
    /// reaches.
    fn pixels(&self, row: usize) -> Option<(&[u8], u64, &AtomicU64)> {
        let checked = self.checked.get(row)?;
        let [offset, bytes, check] = self.entry(row);
        let check = check.load(Ordering::Acquire);
        if check == 0 || checked.load(Ordering::Relaxed) == CORRUPT {
            return None;
        }
        let (offset, bytes) = (offset.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
        let behind = offset.checked_add(bytes)?.checked_next_multiple_of(CHECKSUM_BYTES)?;
        let end = behind.checked_add(CHECKSUM_BYTES).filter(|&end| end <= self.limit)?;
        // Shorter only if someone else shortened it, before this process saw the image.
        if checked.load(Ordering::Relaxed) == UNCHECKED {
            if self.file.metadata().ok()?.len() < self.data_offset + end {
                return None;
            }
            self.needed.fetch_max(self.data_offset + end, Ordering::Relaxed);
        }
        // SAFETY: within the map, which lives as long as `self`. Published pixels are never written again, and those
        // that another process takes away by shortening the file stay readable; the check behind them finds it.
        let pixels =
            unsafe { std::slice::from_raw_parts(self.data.as_ptr().add(offset as usize), bytes as usize) };
        // SAFETY: as above; a multiple of its size from the beginning of a page, as just made.
        #[allow(clippy::cast_ptr_alignment, reason = "a multiple of 8 from the beginning of a page")]
        let behind = unsafe { &*self.data.as_ptr().add(behind as usize).cast::<AtomicU64>() };
        Some((pixels, check, behind))
    }

    /// The bytes that are taken with an image of so many more and its check; `None` where there is no room.
    fn end_of(&self, taken: u64, bytes: u64) -> Option<u64> {
        let checked = taken
            .checked_add(bytes)?
            .checked_next_multiple_of(CHECKSUM_BYTES)?
            .checked_add(CHECKSUM_BYTES)?;
        let end = checked.checked_next_multiple_of(ALIGNMENT)?;
        (end <= self.limit).then_some(end)
    }

    /// Takes room for `bytes` in the file.
    fn take(&self, bytes: u64) -> Option<u64> {
        let next = |taken: u64| self.end_of(taken, bytes);
        let at = self.number(USED_BYTES_OFFSET).fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok();
        // After the counter is gone, the place could be one that others have taken.
        at.filter(|_| self.has_its_length())
    }

    /// Whether nothing of the file was seen to be gone. A lost part may come back as zeros when somebody writes behind
    /// it, so the loss is remembered.
    fn is_whole(&self) -> bool {
        !self.shortened.load(Ordering::Relaxed) && self.index.is_whole() && self.data.is_whole()
    }

    /// Whether the file has all that this process has seen in it: with a look at its length.
    fn has_its_length(&self) -> bool {
        let needed = self.needed.load(Ordering::Relaxed);
        let has = self.data.check(&self.file, &self.path, needed).is_ok();
        if !has {
            self.shortened.store(true, Ordering::Relaxed);
        }
        has && self.is_whole()
    }

    fn is_shortened(&self) -> Error {
        Error::new(&self.path, "the cache file was shortened while it was being read")
            .hint("leave cache files alone while they are in use; open the set again, and a new one is made")
    }
}

impl CacheBackend for Mapped {
    fn contains(&self, row: usize) -> bool {
        self.pixels(row).is_some()
    }

    fn with_pixels(
        &self,
        row: usize,
        _: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let Some((pixels, check, behind)) = self.pixels(row) else { return Ok(false) };
        let checked = &self.checked[row];
        if checked.load(Ordering::Relaxed) == UNCHECKED {
            let good = checksum_of(pixels) == check && behind.load(Ordering::Acquire) == check;
            let state = if good { VALID } else { CORRUPT };
            checked.store(state, Ordering::Relaxed);
            if state == CORRUPT {
                return Ok(false);
            }
        }
        each(pixels)?;
        // After the pixels: they were there if the check behind them is.
        fence(Ordering::Acquire);
        if behind.load(Ordering::Acquire) == check {
            return Ok(true);
        }
        self.shortened.store(true, Ordering::Relaxed);
        Err(self.is_shortened())
    }

    fn reserve(&self, bytes: usize) -> bool {
        let taken = self.number(USED_BYTES_OFFSET).load(Ordering::Relaxed);
        !self.full.load(Ordering::Relaxed) && self.end_of(taken, bytes as u64).is_some()
    }

    fn release(&self, _: usize) {}

    fn while_whole(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        mapping::before_reading();
        let result = work();
        if self.is_whole() { result } else { Err(self.is_shortened()) }
    }

    fn insert(&self, row: usize, pixels: Vec<u8>) {
        // Decoding may have taken long, and another thread or process may have been first.
        mapping::before_reading();
        if self.pixels(row).is_some() {
            return;
        }
        let Some(at) = self.take(pixels.len() as u64) else { return };
        let value = checksum_of(&pixels);
        let behind = (at + pixels.len() as u64).next_multiple_of(CHECKSUM_BYTES);
        let written = write_at(&self.file, &pixels, self.data_offset + at)
            .and_then(|()| write_at(&self.file, &value.to_ne_bytes(), self.data_offset + behind));
        if written.is_err() {
            self.full.store(true, Ordering::Relaxed);
            return;
        }
        let [offset, bytes, check] = self.entry(row);
        offset.store(at, Ordering::Relaxed);
        bytes.store(pixels.len() as u64, Ordering::Relaxed);
        check.store(value, Ordering::Release);
        self.checked[row].store(UNCHECKED, Ordering::Relaxed);
    }

    fn size(&self) -> (usize, usize) {
        mapping::before_reading();
        let images = (0..self.checked.len()).filter(|&row| self.pixels(row).is_some()).count();
        // Another process may have a larger limit; bytes beyond this one's are not used.
        let taken = self.number(USED_BYTES_OFFSET).load(Ordering::Relaxed).min(self.limit);
        (usize::try_from(taken).unwrap_or(usize::MAX), images)
    }
}

/// Never 0, and neither is its last byte: not even that can be cut off without notice.
fn checksum_of(pixels: &[u8]) -> u64 {
    (0xa5 << 56 | u64::from(crc32c::crc32c(pixels))).to_le()
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// An image that is read for it and not kept would be read again.
    #[test]
    fn room_for_an_image_is_room_for_its_check_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pixels");
        make(&path, 2).unwrap();
        let mapped = Mapped::open_file(&path, 2, 128).unwrap();
        assert!(mapped.reserve(120) && !mapped.reserve(128));
        mapped.insert(0, vec![7; 56]);
        assert!(mapped.contains(0) && mapped.reserve(56) && !mapped.reserve(57));
        mapped.insert(1, vec![8; 56]);
        assert_eq!((mapped.contains(1), mapped.size()), (true, (128, 2)));
    }
}
