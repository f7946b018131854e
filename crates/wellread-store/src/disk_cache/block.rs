//! A file of the cache: what is kept of one block of one object, up to 1 MiB.
//!
//! ```text
//!  0          8 KiB                                          8 KiB + 1 MiB
//!  ├ sums ────┼ bytes of the object ──────────────────────────┤      holes where nothing was written
//!  1024 × u64   1 KiB each: a granule; XXH3, mixed with object, block and number; 0 where there is none
//! ```
//!
//! Bytes are written before their sum, in place. A process that is killed between them leaves granules without their
//! sum, as anything does that puts wrong bytes there; such granules count as absent. Processes that write the same
//! granule write the same bytes, since an object's version is a part of its name.

use std::fs::{File, FileTimes, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes that have a sum of their own.
pub(super) const GRANULE: u64 = 1 << 10;
/// Bytes of an object in a file.
pub(super) const BLOCK: u64 = 1 << 20;
const SUMS: usize = (BLOCK / GRANULE) as usize;
/// Where the bytes begin.
const TABLE: u64 = 8 * SUMS as u64;
/// Seconds after which a file that is read is stamped again.
const STAMPED: u64 = 30;

/// The way to treat a file that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// It stays absent.
    Left,
    /// It is made.
    Made,
}

/// An open file.
#[derive(Debug)]
pub(super) struct Block {
    file: File,
    seed: u64,
    /// Second of the last stamp.
    stamped: AtomicU64,
}

impl Block {
    /// Opens the file at `path`. `seed` tells block and object from others.
    pub(super) fn open(path: &Path, seed: u64, absent: Absent) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(absent == Absent::Made).truncate(false);
        let block = Self { file: options.open(path)?, seed, stamped: AtomicU64::new(0) };
        block.stamp();
        Ok(block)
    }

    /// Says that it is used now: those that are not go first.
    fn stamp(&self) {
        let now = SystemTime::now();
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if second.saturating_sub(self.stamped.load(Ordering::Relaxed)) >= STAMPED {
            self.stamped.store(second, Ordering::Relaxed);
            // The order in which files go is all that hangs on it.
            let _ = self.file.set_times(FileTimes::new().set_accessed(now));
        }
    }

    /// Whether nobody else will find it any more.
    pub(super) fn is_removed(&self) -> bool {
        #[cfg(unix)]
        {
            self.file.metadata().is_ok_and(|meta| std::os::unix::fs::MetadataExt::nlink(&meta) == 0)
        }
        #[cfg(not(unix))]
        {
            false
        }
    }

    fn sum(&self, granule: u64, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.seed ^ granule).max(1)
    }

    /// Whether a part of the block has sums; reading checks that its bytes have them too.
    pub(super) fn has(&self, part: &Range<u64>) -> io::Result<bool> {
        let (first, last) = (part.start / GRANULE, part.end.div_ceil(GRANULE).min(SUMS as u64));
        let mut table = [0; TABLE as usize];
        let table = &mut table[..8 * last.saturating_sub(first) as usize];
        Ok(read_exact_at(&self.file, table, 8 * first)?
            && table.as_chunks::<8>().0.iter().all(|sum| *sum != [0; 8]))
    }

    /// Fills `buffer` from byte `at` of the block on, of which the object has `end`; `false` where not all of it is there and whole.
    pub(super) fn read(&self, at: u64, buffer: &mut [u8], end: u64) -> io::Result<bool> {
        let stop = at + buffer.len() as u64;
        if buffer.is_empty() || stop > end || end > BLOCK {
            return Ok(buffer.is_empty());
        }
        self.stamp();
        let (first, last) = (at / GRANULE, (stop - 1) / GRANULE);
        let mut table = [0; TABLE as usize];
        let table = &mut table[..8 * (last - first + 1) as usize];
        if !read_exact_at(&self.file, table, 8 * first)? {
            return Ok(false);
        }
        let is_whole = |granule: u64, bytes: &[u8]| {
            let from = 8 * (granule - first) as usize;
            let sum = u64::from_le_bytes(std::array::from_fn(|i| table[from + i]));
            sum != 0 && sum == self.sum(granule, bytes)
        };
        let (mut at, mut rest) = (at, buffer);
        while !rest.is_empty() {
            let granule = at / GRANULE;
            let from = granule * GRANULE;
            let to = end.min(from + GRANULE);
            let n = if at == from && rest.len() as u64 >= to - from {
                // All granules that are wanted as a whole.
                let n =
                    if stop == end { rest.len() } else { rest.len() / GRANULE as usize * GRANULE as usize };
                if !read_exact_at(&self.file, &mut rest[..n], TABLE + at)? {
                    return Ok(false);
                }
                let mut granules = (granule..).zip(rest[..n].chunks(GRANULE as usize));
                if !granules.all(|(granule, bytes)| is_whole(granule, bytes)) {
                    return Ok(false);
                }
                n
            } else {
                let mut one = [0; GRANULE as usize];
                let one = &mut one[..(to - from) as usize];
                if !read_exact_at(&self.file, one, TABLE + from)? || !is_whole(granule, one) {
                    return Ok(false);
                }
                let inside = (at - from) as usize;
                let n = rest.len().min(one.len() - inside);
                rest[..n].copy_from_slice(&one[inside..inside + n]);
                n
            };
            at += n as u64;
            rest = &mut rest[n..];
        }
        Ok(true)
    }

    /// Puts whole granules there, from byte `at` of the block on.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let first = at / GRANULE;
        let sums = (first..).zip(bytes.chunks(GRANULE as usize));
        let sums: Vec<u8> = sums.flat_map(|(i, bytes)| self.sum(i, bytes).to_le_bytes()).collect();
        write_all_at(&self.file, bytes, TABLE + at)?;
        write_all_at(&self.file, &sums, 8 * first)
    }
}

/// Fills `buffer` from `offset` on; `false` where the file ends before.
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<bool> {
    while !buffer.is_empty() {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(file, buffer, offset);
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
        match read {
            Ok(0) => return Ok(false),
            Ok(n) => {
                buffer = &mut buffer[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        #[cfg(unix)]
        let written = std::os::unix::fs::FileExt::write_at(file, bytes, offset);
        #[cfg(windows)]
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset);
        match written {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(n: u64) -> Vec<u8> {
        (0..n).map(|i| (i * 7 % 251) as u8).collect()
    }

    #[test]
    fn granules_are_there_once_they_were_written_and_at_any_offset() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("block");
        assert_eq!(Block::open(&path, 1, Absent::Left).unwrap_err().kind(), io::ErrorKind::NotFound);
        let block = Block::open(&path, 1, Absent::Made).unwrap();
        let (all, end) = (bytes(10 * GRANULE + 10), 10 * GRANULE + 10);
        let read = |at: u64, n: usize| {
            let mut buffer = vec![0; n];
            block.read(at, &mut buffer, end).unwrap().then_some(buffer)
        };
        assert_eq!(read(0, 1), None);
        assert_eq!(read(0, 0), Some(vec![]));
        block.write(2 * GRANULE, &all[2 * GRANULE as usize..]).unwrap();
        for (at, n) in
            [(2048, 1), (2048, 1024), (2050, 3000), (3000, 5000), (10_000, 250), (2048, 8202), (10_240, 10)]
        {
            assert_eq!(read(at, n).as_deref(), Some(&all[at as usize..at as usize + n]), "{at} {n}");
        }
        assert_eq!((read(2047, 2), read(0, 3000), read(10_240, 11)), (None, None, None));
        let has = |part: Range<u64>| block.has(&part).unwrap();
        assert!(
            has(2048..end) && has(3000..3001) && has(0..0) && !has(2047..3000) && !has(end..end + GRANULE)
        );
        // Another object's or block's bytes are none of this one's.
        let other = Block::open(&path, 2, Absent::Left).unwrap();
        assert!(!other.read(2048, &mut [0; 10], end).unwrap());
    }

    #[test]
    fn a_damaged_granule_is_not_there_and_others_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("block");
        let block = Block::open(&path, 1, Absent::Made).unwrap();
        block.write(0, &bytes(4 * GRANULE)).unwrap();
        write_all_at(&block.file, &[255], TABLE + GRANULE + 5).unwrap();
        let mut buffer = vec![0; GRANULE as usize];
        let there: Vec<bool> = (0..4).map(|i| block.read(i * GRANULE, &mut buffer, BLOCK).unwrap()).collect();
        assert_eq!(there, [true, false, true, true]);
        // Cut off, as a machine that lost power may leave it.
        block.file.set_len(TABLE + 3 * GRANULE - 1).unwrap();
        assert!(!block.read(2 * GRANULE, &mut buffer, BLOCK).unwrap());
        block.write(GRANULE, &bytes(2 * GRANULE)).unwrap();
        assert!(block.read(GRANULE, &mut buffer, BLOCK).unwrap() && buffer == bytes(GRANULE));
        std::fs::remove_file(&path).unwrap();
        #[cfg(unix)]
        assert!(block.is_removed());
    }
}
