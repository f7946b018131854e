//! Positional reads of a data file.

use std::io;
use std::path::{Path, PathBuf};
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::{UNREADABLE, grown, read_at};
use wellread_store::place::{self, File, Part};

/// An open data file; many threads may read it at once.
#[derive(Debug)]
pub(crate) struct Input {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Input {
    /// Opens a regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (file, length) = place::open(path)?;
        Ok(Self { path: path.to_owned(), file, length })
    }

    /// Reads `length` bytes from `offset` to the start of `out`, which grows to hold them. They are aligned to eight
    /// bytes, as Lance's pages are in their files.
    pub(super) fn read<'a>(
        &self,
        offset: u64,
        length: u64,
        out: &'a mut Vec<u64>,
    ) -> Result<&'a [u8], Fault> {
        let bytes = self.room(offset, length, out)?;
        read_at(&self.file, bytes, offset)?;
        Ok(bytes)
    }

    /// As [`Self::read`], of several places at once.
    pub(super) fn read_together<'a>(
        &self,
        places: impl Iterator<Item = ((u64, u64), &'a mut Vec<u64>)>,
    ) -> Result<(), Fault> {
        let parts = places.map(|((offset, length), out)| {
            let buffer = self.room(offset, length, out)?;
            Ok(Part { offset, buffer })
        });
        let mut parts = parts.collect::<Result<Vec<_>, Fault>>()?;
        self.file.read_ranges(&mut parts).map_err(|_| Irregular(UNREADABLE))
    }

    /// The start of `out`, which grows to hold `length` bytes of the file.
    fn room<'a>(&self, offset: u64, length: u64, out: &'a mut Vec<u64>) -> Result<&'a mut [u8], Fault> {
        if offset.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(Irregular("a page is outside of the file"));
        }
        let length = length as usize;
        let words = grown(out, length.div_ceil(8))?;
        Ok(&mut bytemuck::cast_slice_mut::<u64, u8>(words)[..length])
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether each read may wait for a network.
    pub fn is_remote(&self) -> bool {
        self.file.local().is_none()
    }
}
