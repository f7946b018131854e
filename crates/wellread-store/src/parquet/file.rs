//! The open file: positional reads and bounds.
//!
//! Reads are positional (`pread`), not through a memory map: many threads share one descriptor without a
//! lock, a file that somebody truncates gives an error where a map would kill the process with `SIGBUS`, and
//! pages of the file do not count as memory of ours. The copy that a map would save is of compressed bytes,
//! a few per cent of what decompressing them costs.

use super::thrift;
use crate::{Error, Result, guard, regular};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file open for positional reading by many threads; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct PositionalFile(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    file: File,
    length: u64,
    path: PathBuf,
}

impl PositionalFile {
    /// Opens `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, length) = regular::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
        Ok(Self(Arc::new(Opened { file, length, path: path.to_owned() })))
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
        let (mut tail, mut footer) = (vec![], vec![]);
        let found = self.read(self.0.length.saturating_sub(8), 8, &mut tail).and_then(|()| {
            let size = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
            let start = self.0.length.saturating_sub(8 + u64::from(size));
            self.read(start, size as usize, &mut footer)
        });
        if found.is_ok() && thrift::has_encrypted_columns(&footer) { encrypted(self.path()) } else { error }
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
        out.resize(length, 0);
        regular::read_exact_at(&self.0.file, out, offset).map_err(|e| {
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
    type T = Cursor;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Cursor> {
        Ok(Cursor { file: self.clone(), offset: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let mut out = Vec::new();
        self.read(start, length, &mut out).map_err(|e| ParquetError::General(e.cause().to_owned()))?;
        Ok(out.into())
    }
}

/// A sequential reader over a [`PositionalFile`], buffered by whoever needs that.
#[derive(Debug)]
pub(super) struct Cursor {
    file: PositionalFile,
    offset: u64,
}

impl Read for Cursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.file.length().saturating_sub(self.offset);
        let n = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        regular::read_exact_at(&self.file.0.file, &mut out[..n], self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

fn encrypted(path: &Path) -> Error {
    Error::new(path, "the Parquet file is encrypted").hint("decrypt it; wellread has no keys")
}

/// Checks the marks at both ends of a Parquet file.
fn check_ends(file: &PositionalFile) -> Result<()> {
    let path = file.path();
    let (mut head, mut tail) = (vec![], vec![]);
    if file.length() >= 4 {
        file.read(0, 4, &mut head)?;
    }
    // Both marks and the length of the footer: less is no file, whatever its end looks like.
    if file.length() >= 12 {
        file.read(file.length() - 4, 4, &mut tail)?;
    }
    match (head.as_slice(), tail.as_slice()) {
        (b"PAR1", b"PAR1") => Ok(()),
        // One of the marks is enough: the other may be cut off, or not be what it should.
        (b"PARE", _) | (_, b"PARE") => Err(encrypted(path)),
        (b"PAR1", _) => Err(Error::new(path, "the Parquet file is truncated: its end is missing")
            .hint("copy or write it again")),
        _ => Err(Error::new(path, "is no Parquet file: it does not begin and end with PAR1")),
    }
}

/// Reads the footer. Arrow's own schema in it is left aside: list offsets, string views and dictionaries then have
/// one form each.
///
/// # Errors
/// No Parquet, truncated, encrypted or corrupt.
pub(super) fn footer(file: &PositionalFile) -> Result<ArrowReaderMetadata> {
    check_ends(file)?;
    guard::guarded(file.path(), "cannot read the footer", || {
        ArrowReaderMetadata::load(file, ArrowReaderOptions::new().with_skip_arrow_metadata(true))
    })
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
        std::fs::write(&path, b"0123").unwrap();
        assert!(file.read(3, 4, &mut out).unwrap_err().to_string().contains("shorter"));
        let mut cursor = file.get_read(2).unwrap();
        let mut two = [0; 2];
        cursor.read_exact(&mut two).unwrap();
        assert_eq!(&two, b"23");
    }
}
