//! Opening files for reading: regular files alone.
//!
//! Folders of images may hold anything. Opening a named pipe waits until somebody writes to it, and reading a
//! terminal or a device may wait for ever or never end. So every file of pixels or metadata is opened here:
//! without waiting, and refused unless it is a regular file (or a link to one). The one look at the open file
//! that this takes also gives its length, which every reader needs anyway.
//!
//! What is read of pixels is counted, per thread, so that read amplification can be told whatever the format: readers
//! that do not call [`read_exact_at`] say so by [`count_read`].

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use wellread_trace::{Kind, span};

thread_local! {
    static BYTES_READ: Cell<u64> = const { Cell::new(0) };
}

/// Notes that this thread has read some bytes of files, or looked at as many of a mapped one.
pub fn count_read(bytes: usize) {
    BYTES_READ.set(BYTES_READ.get().wrapping_add(bytes as u64));
}

/// Bytes of files that this thread has read so far; only differences mean anything. What an engine reads in threads of
/// its own is not among them.
pub fn bytes_read() -> u64 {
    BYTES_READ.get()
}

/// Opens a regular file for reading; also its length in bytes.
///
/// # Errors
/// A file that cannot be opened, or that is none: a folder, pipe, socket or device.
pub fn open(path: &Path) -> io::Result<(File, u64)> {
    let _open = span(Kind::Open);
    let mut options = OpenOptions::new();
    options.read(true);
    // Neither flag changes how a regular file is read.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() {
        return Ok((file, meta.len()));
    }
    let what = if meta.is_dir() { "it is a folder" } else { "it is a pipe or a device" };
    Err(io::Error::other(format!("{what}, not a file")))
}

/// Fills `buffer` from `offset` on without moving a cursor, so that threads can share the handle.
///
/// # Errors
/// A file that ends before, or whatever reading says.
#[cfg(unix)]
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let _read = span(Kind::Read).with(buffer.len() as u64, 0);
    count_read(buffer.len());
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Fills `buffer` from `offset` on without moving a cursor, so that threads can share the handle.
///
/// # Errors
/// A file that ends before, or whatever reading says.
#[cfg(windows)]
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    let _read = span(Kind::Read).with(buffer.len() as u64, 0);
    count_read(buffer.len());
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

/// All bytes of a regular file.
///
/// # Errors
/// As [`open`], and whatever reading says.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    read_after(path, &mut bytes)?;
    Ok(bytes)
}

/// All bytes of a regular file, put behind those of `bytes`. Small files cost one call each of open, stat, read and close.
///
/// # Errors
/// As [`open`], and whatever reading says.
pub(crate) fn read_after(path: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
    let (mut file, length) = open(path)?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let _read = span(Kind::Read).with(length as u64, 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, b"12345").unwrap();
        assert_eq!(open(&file).unwrap().1, 5);
        assert_eq!(read(&file).unwrap(), b"12345");
        let mut both = b"ab".to_vec();
        read_after(&file, &mut both).unwrap();
        assert_eq!(both, b"ab12345");
        let before = bytes_read();
        let mut three = [0; 3];
        read_exact_at(&open(&file).unwrap().0, &mut three, 2).unwrap();
        assert_eq!((&three, bytes_read() - before), (b"345", 3));
        assert_eq!(open(&dir.path().join("b")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(open(dir.path()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            assert!(open(path).unwrap_err().to_string().contains("pipe or a device"));
            assert!(read(path).is_err());
        }
    }
}
