//! The open file: positional reads and bounds.
//!
//! Reads are positional (`pread`), not through a memory map, so that many threads share one descriptor
//! without a lock. A file that somebody truncates gives an error, where a map would kill the process with
//! `SIGBUS`. Pages of the file do not count as memory of ours. The copy that a map would save is of
//! compressed bytes, a few per cent of what decompressing them costs.

use super::thrift;
use crate::place::{self, File};
use crate::stamp::{Stamp, unless_written};
use crate::{Error, Result, guard, try_alloc};
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file open for positional reading by many threads; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct PositionalFile(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    file: File,
    length: u64,
    stamp: Option<Stamp>,
    path: PathBuf,
    /// Whether the footer has matched a checksum of ours.
    footer_verified: AtomicBool,
}

impl PositionalFile {
    /// Opens `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, length) = place::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
        let (stamp, footer_verified) = (Stamp::when_opened(&file), AtomicBool::new(false));
        Ok(Self(Arc::new(Opened { file, length, stamp, path: path.to_owned(), footer_verified })))
    }

    /// The outcome of reading it, or the error that somebody wrote to it since it was opened.
    pub fn unless_written<T>(&self, outcome: Result<T>) -> Result<T> {
        unless_written(self.0.stamp, &self.0.file, &self.0.path, outcome)
    }

    /// Whether we wrote it with checksums, and the footer matches its own: the footer's facts about pages then hold.
    pub fn is_footer_verified(&self) -> bool {
        self.0.footer_verified.load(Ordering::Relaxed)
    }

    /// Length in bytes when it was opened.
    pub fn length(&self) -> u64 {
        self.0.length
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// `error`, which reading pages has given, or why they cannot be read at all: the file's columns are encrypted.
    /// Looked at when it matters, because it costs another walk over the footer.
    pub fn encrypted_or(&self, error: Error) -> Error {
        match self.footer_bytes() {
            Ok(footer) if thrift::has_encrypted_columns(&footer) => encrypted(self.path()),
            _ => error,
        }
    }

    /// Notes that the footer has matched its checksum: see [`Self::is_footer_verified`].
    pub fn set_footer_verified(&self) {
        self.0.footer_verified.store(true, Ordering::Relaxed);
    }

    /// The footer as it lies in the file.
    pub fn footer_bytes(&self) -> Result<Vec<u8>> {
        let (mut tail, mut footer) = (vec![], vec![]);
        self.read(self.0.length.saturating_sub(8), 8, &mut tail)?;
        let size = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        let start = self.0.length.saturating_sub(8 + u64::from(size));
        self.read(start, size as usize, &mut footer)?;
        Ok(footer)
    }

    /// Fetches both ends at once, where each would be a round trip.
    pub fn fetch_ends(&self) -> Result<()> {
        self.0.file.fetch_ends().map_err(|e| Error::io(&self.0.path, "cannot read", &e))
    }

    /// Fills `out` (resized) with `length` bytes from `offset`. The range is checked against the length of
    /// the file before anything is allocated.
    pub fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>) -> Result<()> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.0.length) {
            return Err(Error::new(
                &self.0.path,
                format_args!(
                    "{length} bytes at offset {offset} are needed, but the file has {} bytes",
                    self.0.length
                ),
            )
            .hint("the file is truncated or corrupt; copy or write it again"));
        }
        // Growing without clearing spares zeroing what is overwritten anyway.
        try_alloc::resize(out, length).map_err(|cause| Error::new(&self.0.path, cause))?;
        self.0.file.read_exact_at(out, offset).map_err(|e| {
            if e.kind() == io::ErrorKind::UnexpectedEof {
                Error::new(&self.0.path, "the file became shorter while it was open")
                    .hint("do not write to a file that is being read; open it again")
            } else {
                Error::io(&self.0.path, "cannot read", &e)
            }
        })
    }
}

impl Length for PositionalFile {
    fn len(&self) -> u64 {
        self.0.length
    }
}

impl ChunkReader for PositionalFile {
    type T = BufReader<Cursor>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        // The library parses headers of pages byte by byte: of a file in a bucket each would be a request.
        Ok(BufReader::with_capacity(HEADERS, Cursor { file: self.clone(), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let mut out = Vec::new();
        self.read(start, length, &mut out).map_err(|e| ParquetError::General(e.cause().to_owned()))?;
        Ok(out.into())
    }
}

/// Bytes that the library is given at once where it parses headers.
pub(super) const HEADERS: usize = 1024;

/// A sequential reader over a [`PositionalFile`].
#[derive(Debug)]
pub(super) struct Cursor {
    file: PositionalFile,
    offset: u64,
}

impl Read for Cursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.file.length().saturating_sub(self.offset);
        let n = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.file.0.file.read_exact_at(&mut out[..n], self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

/// The error of a file whose columns or footer are encrypted.
pub(super) fn encrypted(path: &Path) -> Error {
    Error::new(path, "the Parquet file is encrypted").hint("decrypt it; wellread has no keys")
}

/// [`guard::guarded`] for calls of the `parquet` crate that read columns.
pub(super) fn guarded<T>(
    file: &PositionalFile,
    what: &str,
    work: impl FnOnce() -> std::result::Result<T, ParquetError>,
) -> Result<T> {
    guard::guarded(file.path(), what, work).map_err(|error| file.encrypted_or(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_bounded_by_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"0123456789").unwrap();
        let file = PositionalFile::open(&path).unwrap();
        let mut out = vec![];
        file.read(3, 4, &mut out).unwrap();
        assert_eq!(out, b"3456");
        assert!(file.read(8, 3, &mut out).unwrap_err().to_string().contains("10 bytes"));
        assert!(file.read(u64::MAX, 3, &mut out).is_err());
        assert!(file.read(0, usize::MAX, &mut out).is_err());
        let mut cursor = file.get_read(2).unwrap();
        let mut two = [0; 2];
        cursor.read_exact(&mut two).unwrap();
        assert_eq!(&two, b"23");
        std::fs::write(&path, b"0123").unwrap();
        assert!(file.read(3, 4, &mut out).unwrap_err().to_string().contains("shorter"));
    }
}
