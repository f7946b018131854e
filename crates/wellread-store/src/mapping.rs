//! Files mapped into memory, read without the signal that ends the process when somebody shortens them.
//!
//! ```text
//!  file ──Mapping──▶ bytes ──▶ a reader                          as fast as memory
//!    │ shortened by another program
//!    └─▶ SIGBUS ──handler──▶ zeros in place of what is gone, and a note ──Mapping::check──▶ an error
//! ```
//!
//! A page behind the file's end cannot be read: the kernel sends SIGBUS, whose default ends the process. The handler
//! here looks whether the address lies in a [`Mapping`]. If so, it puts zeros there, so that the reader comes to its
//! end, and notes that the mapping is no longer the file. A reader of a mapping calls [`before_reading`] before and
//! [`Mapping::check`] *after* reading, and discards the bytes when that fails. An address in no mapping goes to the
//! handler that was there before: that of Python's `faulthandler`, of torch's workers, or the system's default.
//!
//! Why files are mapped at all, and which: `docs/decisions/0033-mapped-files.md`.

#[cfg(unix)]
mod guard;
#[cfg(feature = "tiff")]
mod kept;

#[cfg(feature = "tiff")]
pub(crate) use kept::KeptMap;

use crate::{Error, Result};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::path::Path;

/// A file, or a part of it, mapped into memory.
pub struct Mapping {
    map: MmapRaw,
    #[cfg(unix)]
    slot: &'static guard::Slot,
}

impl Mapping {
    /// Maps a whole file for reading.
    ///
    /// # Errors
    /// A file that cannot be mapped: no address space, or nothing that can be.
    pub fn of(file: &File) -> io::Result<Self> {
        Self::new(MmapOptions::new().map_raw_read_only(file)?, false)
    }

    /// Maps `len` bytes from `offset` on for reading. The file may end before them: bytes behind its end must not be
    /// read before they were written.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn part(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        Self::new(MmapOptions::new().offset(offset).len(len).map_raw_read_only(file)?, false)
    }

    /// Maps the first `len` bytes for reading and writing, shared with all processes that do the same.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn shared(file: &File, len: usize) -> io::Result<Self> {
        Self::new(MmapOptions::new().len(len).map_raw(file)?, true)
    }

    #[cfg(unix)]
    fn new(map: MmapRaw, written: bool) -> io::Result<Self> {
        let slot = guard::register(map.as_ptr() as usize, map.len(), written)?;
        Ok(Self { map, slot })
    }

    /// Other systems do not let a file be shortened while it is mapped.
    #[cfg(not(unix))]
    fn new(map: MmapRaw, _: bool) -> io::Result<Self> {
        Ok(Self { map })
    }

    /// Where it begins. Valid for [`Self::len`] bytes as long as the mapping lives.
    pub fn as_ptr(&self) -> *const u8 {
        self.map.as_ptr()
    }

    /// As [`Self::as_ptr`], for what is mapped for writing.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// Bytes that are mapped.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fails where `file`, whose mapping this is, has fewer than `end` bytes now. Also fails where something of it could not
    /// be read since it was mapped. To be called after reading, too: only then the bytes are the file's.
    ///
    /// A file cut within a page gives zeros without a signal; its length tells.
    ///
    /// # Errors
    /// One that names the file and says that it was shortened.
    pub fn check(&self, file: &File, path: &Path, end: u64) -> Result<()> {
        let length = file.metadata().map_err(|e| Error::io(path, "cannot look at", &e))?.len();
        if length < end {
            return Err(Error::new(
                path,
                format_args!("the file was shortened to {length} bytes while it was being read"),
            ));
        }
        if self.is_whole() {
            return Ok(());
        }
        Err(Error::new(path, "the file was shortened while it was being read, or its disk failed"))
    }

    /// Whether all that was touched so far could be read.
    pub fn is_whole(&self) -> bool {
        #[cfg(unix)]
        let lost = self.slot.is_lost();
        #[cfg(not(unix))]
        let lost = false;
        !lost
    }
}

/// Sees to it that shortened files end no process in which somebody has installed another handler since they were mapped.
/// Python's `faulthandler` does so, and so does a worker of torch's `DataLoader` when it starts. That handler gets what is
/// not ours. To be called before mappings are read. It asks the system once a millisecond, and in a forked process at once.
pub fn before_reading() {
    #[cfg(unix)]
    guard::keep_handler();
}

impl std::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapping").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl AsRef<[u8]> for Mapping {
    /// The bytes. Another program that writes to the file changes them; readers take them as they take any corrupt file.
    fn as_ref(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives, and readable to its end. Bytes behind the file's end become
        // zeros when they are first touched, see `guard`. Until somebody else's new handler is noticed, see
        // `before_reading`, the signal ends the process instead, and nobody reads them. Bytes of any value are valid.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr(), self.map.len()) }
    }
}

#[cfg(unix)]
impl Drop for Mapping {
    fn drop(&mut self) {
        self.slot.release();
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests;
