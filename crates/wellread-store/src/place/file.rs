//! Files open for reading, wherever they lie, and files that are being written.
//!
//! ```text
//!  Local: the system's own handle ─ pread ─┐
//!  Other: a ReadRanges of another place ───┴─▶ bytes from an offset on; no cursor, so that threads share one
//! ```
//!
//! Reads of pixels are counted, per thread, so that read amplification can be computed for any format and place.
//! Readers that do not call [`File::read_exact_at`] for pixels say so by [`count_read`].

use std::cell::Cell;
use std::fmt::Debug;
use std::fs::Metadata;
use std::io::{self, Read as _, Seek, SeekFrom, Write};
use std::time::SystemTime;
use wellread_trace::{Kind, span};

thread_local! {
    static BYTES_READ: Cell<u64> = const { Cell::new(0) };
}

/// Notes that this thread has read some bytes of files, or looked at as many of a mapped one.
pub fn count_read(bytes: usize) {
    BYTES_READ.set(BYTES_READ.get().wrapping_add(bytes as u64));
}

/// Bytes of files that this thread has read so far; only differences mean anything. Bytes that an engine reads in
/// threads of its own do not count.
pub fn bytes_read() -> u64 {
    BYTES_READ.get()
}

/// Some bytes of a file, and where they are put.
#[derive(Debug)]
pub struct Part<'a> {
    /// Where they begin in the file.
    pub offset: u64,
    /// As many of them as it has room for.
    pub buffer: &'a mut [u8],
}

/// An open file of a place that is not the file system; many threads read it at once. The two methods with a body are right for every
/// file, also for one that wraps another: they only ask for less at once.
pub trait ReadRanges: Send + Sync + Debug {
    /// Bytes of the file.
    fn length(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset` on. A file that ends before is [`io::ErrorKind::UnexpectedEof`].
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Fills all `parts`, as [`Self::read_exact_at`] each. A remote place asks for all of them at once.
    fn read_ranges(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        parts.iter_mut().try_for_each(|part| self.read_exact_at(part.buffer, part.offset))
    }

    /// Fetches the file's beginning and its end at once, for who is about to look at both. Where each look is no round trip, it does
    /// nothing.
    fn fetch_ends(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Length of a file in bytes and, where the system tells, the time of its last change.
pub type Changed = (u64, Option<SystemTime>);

/// A file of the file system that is open for reading.
#[derive(Debug)]
pub struct LocalFile {
    handle: std::fs::File,
    opened: Option<Changed>,
}

impl LocalFile {
    /// A handle and what the system says of it.
    pub(super) fn new(handle: std::fs::File, metadata: &Metadata) -> Self {
        Self { handle, opened: Some(changed(metadata)) }
    }
}

fn changed(metadata: &Metadata) -> Changed {
    (metadata.len(), metadata.modified().ok())
}

/// A file open for reading.
#[derive(Debug)]
pub enum File {
    /// A file of the file system.
    Local(LocalFile),
    /// A file of another place.
    Other(Box<dyn ReadRanges>),
}

impl File {
    /// The handle of the file system, for maps and what else only it has; `None` in other places, where it is read instead.
    pub fn local(&self) -> Option<&std::fs::File> {
        match self {
            Self::Local(file) => Some(&file.handle),
            Self::Other(_) => None,
        }
    }

    /// Length and last change of a file of the file system when it was opened; `None` in other places. The system is not asked again.
    pub fn when_opened(&self) -> Option<Changed> {
        match self {
            Self::Local(file) => file.opened,
            Self::Other(_) => None,
        }
    }

    /// Length and last change of a file of the file system now; `None` in other places.
    pub fn now(&self) -> Option<Changed> {
        Some(changed(&self.local()?.metadata().ok()?))
    }

    /// Bytes that the file has now.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn length(&self) -> io::Result<u64> {
        match self {
            Self::Local(file) => file.handle.metadata().map(|meta| meta.len()),
            Self::Other(file) => file.length(),
        }
    }

    /// Fills `buffer` with pixels, or with an index of pixels, from `offset` on without moving a cursor.
    ///
    /// # Errors
    /// A file that ends before, or the error of the read.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let _read = span(Kind::Read).with(buffer.len() as u64, 0);
        count_read(buffer.len());
        self.fill_exact_at(buffer, offset)
    }

    /// As [`Self::read_exact_at`], for what is no pixels: it is not counted, and a trace shows it where it may take long.
    ///
    /// # Errors
    /// As [`Self::read_exact_at`].
    pub fn peek_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let is_remote = self.local().is_none();
        let _read = is_remote.then(|| span(Kind::Read).with(buffer.len() as u64, 0));
        self.fill_exact_at(buffer, offset)
    }

    fn fill_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Local(file) => read_exact_at(&file.handle, buffer, offset),
            Self::Other(file) => file.read_exact_at(buffer, offset),
        }
    }

    /// Fills all `parts` with pixels, or with an index of pixels: together where the place gains by that, else one
    /// after the other.
    ///
    /// # Errors
    /// As [`Self::read_exact_at`].
    pub fn read_ranges(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        match self {
            Self::Local(_) => {
                parts.iter_mut().try_for_each(|part| self.read_exact_at(part.buffer, part.offset))
            }
            Self::Other(file) => {
                let bytes = parts.iter().map(|part| part.buffer.len()).sum();
                let _read = span(Kind::Read).with(bytes as u64, 0);
                count_read(bytes);
                file.read_ranges(parts)
            }
        }
    }

    /// Fetches the file's beginning and its end at once, where each would be a round trip: for who is about to look at both.
    ///
    /// # Errors
    /// Those of reading.
    pub fn fetch_ends(&self) -> io::Result<()> {
        match self {
            Self::Local(_) => Ok(()),
            Self::Other(file) => file.fetch_ends(),
        }
    }

    /// Puts the `length` bytes from `offset` on behind those of `bytes`; not counted.
    ///
    /// # Errors
    /// As [`Self::read_exact_at`]; no memory for so many.
    pub fn peek_after(&self, offset: u64, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        let (start, length) = (bytes.len(), usize::try_from(length).unwrap_or(usize::MAX));
        bytes.try_reserve_exact(length)?;
        bytes.resize(start + length, 0);
        self.peek_exact_at(&mut bytes[start..], offset)
    }

    /// Puts all bytes behind those of `bytes`; not counted. `length` is what the file had when it was opened. To be called once,
    /// before anything else is read: of the file system's files it moves the cursor.
    ///
    /// # Errors
    /// The error of the read; no memory for so many.
    pub(super) fn read_to_end(&self, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Local(file) => {
                let _read = span(Kind::Read).with(length, 0);
                read_to_end(&file.handle, length, bytes)
            }
            Self::Other(_) => self.peek_after(0, length, bytes),
        }
    }
}

impl From<std::fs::File> for File {
    fn from(handle: std::fs::File) -> Self {
        let opened = handle.metadata().ok().map(|metadata| changed(&metadata));
        Self::Local(LocalFile { handle, opened })
    }
}

/// Fills `buffer` from `offset` on without moving a cursor.
#[cfg(unix)]
fn read_exact_at(file: &std::fs::File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Fills `buffer` from `offset` on without moving a cursor that anybody relies on.
#[cfg(windows)]
fn read_exact_at(file: &std::fs::File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                buffer = &mut buffer[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// All bytes of a file that had `length` when it was opened just now, put behind those of `bytes`.
fn read_to_end(mut file: &std::fs::File, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    // A read that is asked for more than there is says by giving less that it was the end.
    let start = bytes.len();
    bytes.try_reserve_exact(length.saturating_add(1))?;
    bytes.resize(start + length + 1, 0);
    let read = loop {
        match file.read(&mut bytes[start..]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    bytes.truncate(start + read.as_ref().map_or(0, |&n| n));
    if read? != length {
        file.read_to_end(bytes)?;
    }
    Ok(())
}

/// A file that is written in a place other than the file system. After the last byte it is flushed once: then all of it
/// is kept, or the error says that it is not.
pub trait WriteFile: Write + Seek + Send + Debug {}

impl<T: Write + Seek + Send + Debug> WriteFile for T {}

/// A file being written.
#[derive(Debug)]
pub enum Writer {
    /// A file of the file system.
    Local(std::fs::File),
    /// A file of another place.
    Other(Box<dyn WriteFile>),
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.write(bytes),
            Self::Other(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Local(file) => file.flush(),
            Self::Other(file) => file.flush(),
        }
    }
}

impl Seek for Writer {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Local(file) => file.seek(to),
            Self::Other(file) => file.seek(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that grow by one with each place.
    #[derive(Debug)]
    struct Growing(u64);

    impl ReadRanges for Growing {
        fn length(&self) -> io::Result<u64> {
            Ok(self.0)
        }

        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            if offset + buffer.len() as u64 > self.0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            for (at, byte) in (offset..).zip(buffer) {
                *byte = at as u8;
            }
            Ok(())
        }
    }

    #[test]
    fn files_of_every_place_are_read_alike_and_pixels_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, [0, 1, 2, 3, 4]).unwrap();
        let local = File::from(std::fs::File::open(&path).unwrap());
        assert_eq!(local.when_opened().map(|(length, _)| length), Some(5));
        assert_eq!(local.when_opened(), local.now());
        let other = File::Other(Box::new(Growing(5)));
        assert!(local.local().is_some() && other.local().is_none());
        for file in [local, other] {
            assert_eq!(file.length().unwrap(), 5);
            let before = bytes_read();
            let mut three = [0; 3];
            file.read_exact_at(&mut three, 2).unwrap();
            assert_eq!((three, bytes_read() - before), ([2, 3, 4], 3));
            let (mut one, mut two) = ([0; 1], [0; 2]);
            let mut parts = [Part { offset: 4, buffer: &mut one }, Part { offset: 0, buffer: &mut two }];
            file.read_ranges(&mut parts).unwrap();
            assert_eq!((one, two, bytes_read() - before), ([4], [0, 1], 6));
            let beyond = file.read_ranges(&mut [Part { offset: 5, buffer: &mut one }]);
            assert_eq!(beyond.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            let before = bytes_read() - 3;
            let mut bytes = vec![9];
            file.peek_after(1, 2, &mut bytes).unwrap();
            assert_eq!((&bytes[..], bytes_read() - before), (&[9, 1, 2][..], 3));
            assert_eq!(file.peek_exact_at(&mut three, 3).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            assert!(file.peek_after(0, u64::MAX, &mut bytes).is_err());
            let mut all = vec![9];
            file.read_to_end(5, &mut all).unwrap();
            assert_eq!(all, [9, 0, 1, 2, 3, 4]);
        }
    }
}
