//! The file system of this machine.
//!
//! Folders of images may hold anything. Opening a named pipe waits until somebody writes to it, and reading a
//! terminal or a device may wait for ever or never end. So every file of pixels or metadata is opened here:
//! without waiting, and refused unless it is a regular file (or a link to one). The one look at the open file
//! that this takes also gives its length, which every reader needs anyway.

use super::file::{File, LocalFile, Writer};
#[cfg(unix)]
use super::interface::Identity;
use super::interface::{Entry, Listing, Metadata, Place};
use super::shutdown::{self, InProgress};
use std::fs::{self, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files and folders that are being made or moved.
static MAKING: InProgress = InProgress::new();
/// How long the end of the process waits for them: a network file system may not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs `make`, after which something is there that was not, unless the process is ending.
fn made<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _making = MAKING.begin();
    shutdown::check()?;
    make()
}

/// The file system.
#[derive(Debug)]
pub(super) struct Local;

impl Place for Local {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs::metadata(path).map(|meta| Metadata { kind: meta.file_type().into(), length: meta.len() })
    }

    fn list(&self, folder: &Path) -> io::Result<Listing> {
        let entries = fs::read_dir(folder)?;
        Ok(Box::new(entries.map(|entry| entry.map(Entry::local))))
    }

    fn open(&self, path: &Path) -> io::Result<(File, u64)> {
        let mut options = OpenOptions::new();
        options.read(true);
        // Neither flag changes how a regular file is read.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = options.open(path)?;
        let meta = file.metadata()?;
        if meta.is_file() {
            let length = meta.len();
            return Ok((File::Local(LocalFile::new(file, &meta)), length));
        }
        let what = if meta.is_dir() { "it is a folder" } else { "it is a pipe or a device" };
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what}, not a file")))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    /// Links may lead to a folder by two ways. Where the system has no numbers of folders, the path without links tells.
    #[cfg(unix)]
    fn identity(&self, folder: &Path) -> io::Result<Identity> {
        use std::os::unix::fs::MetadataExt as _;
        folder.metadata().map(|meta| Identity::Numbers(meta.dev(), meta.ino()))
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn create(&self, path: &Path) -> io::Result<Writer> {
        made(|| fs::File::create(path)).map(Writer::Local)
    }

    fn patch(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        made(|| fs::create_dir_all(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        made(|| fs::rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn abandon(&self) {
        MAKING.wait(PATIENCE);
    }

    fn finish_before_end(&self, work: &mut dyn FnMut()) -> io::Result<()> {
        shutdown::run_awaited(&MAKING, work)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{bytes_read, open, read, read_after};
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
        open(&file).unwrap().0.read_exact_at(&mut three, 2).unwrap();
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
