//! Positional reads of a data file.

use super::Fault::{self, Irregular};
use std::fs::File;
use std::io;
use std::path::Path;

/// An open data file; many threads may read it at once.
#[derive(Debug)]
pub(crate) struct Input {
    file: File,
    length: u64,
}

impl Input {
    /// Opens a regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true);
        let file = options.open(path)?;
        let meta = file.metadata()?;
        if meta.is_file() {
            Ok(Self { file, length: meta.len() })
        } else {
            Err(io::Error::other("not a file"))
        }
    }

    /// Reads `length` bytes from `offset` to the start of `out`, which grows to hold them. They are aligned to eight
    /// bytes, as Lance's pages are in their files.
    pub(super) fn read<'a>(
        &self,
        offset: u64,
        length: u64,
        out: &'a mut Vec<u64>,
    ) -> Result<&'a [u8], Fault> {
        if offset.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(Irregular("a page is outside of the file"));
        }
        let length = length as usize;
        let words = length.div_ceil(8);
        if out.len() < words {
            out.resize(words, 0);
        }
        let bytes = &mut bytemuck::cast_slice_mut(out)[..length];
        read_at(&self.file, offset, bytes).map_err(|_| Irregular("the file cannot be read"))?;
        Ok(bytes)
    }
}

#[cfg(unix)]
fn read_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
fn read_at(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                out = &mut out[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
