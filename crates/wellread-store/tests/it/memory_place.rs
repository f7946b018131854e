//! A place of our own, as an object store would be one: files in memory, at addresses `memory://…`. A folder is there as long as
//! something lies in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Cursor, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_store::place::{Entry, File, Kind, Listing, Metadata, Place, ReadRanges, Writer};

type Files = BTreeMap<PathBuf, Arc<Vec<u8>>>;

static FILES: Mutex<Files> = Mutex::new(Files::new());
/// Folders and files whose ranges cannot be read any more.
static LOST: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Files> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lost() -> MutexGuard<'static, Vec<PathBuf>> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on no range of what lies at `path` or below it can be read, though it can be listed and opened.
pub(crate) fn lose(path: &Path) {
    lost().push(path.to_owned());
}

/// All files at `path` or below it.
pub(crate) fn below(path: &Path) -> Vec<PathBuf> {
    files().keys().filter(|file| file.starts_with(path)).cloned().collect()
}

#[derive(Debug)]
struct Memory;

static MEMORY: Memory = Memory;
wellread_store::register_place!("memory", MEMORY);

impl Place for Memory {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let length = files().get(path).map(|bytes| bytes.len() as u64);
        if let Some(length) = length {
            return Ok(Metadata { kind: Kind::File, length });
        }
        if below(path).is_empty() {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(Metadata { kind: Kind::Folder, length: 0 })
    }

    fn list(&self, folder: &Path) -> io::Result<Listing> {
        let mut names = BTreeMap::<OsString, Kind>::new();
        for file in below(folder) {
            let mut parts = file.strip_prefix(folder).map_err(io::Error::other)?.components();
            let Some(first) = parts.next() else { return Err(ErrorKind::NotADirectory.into()) };
            let kind = if parts.next().is_none() { Kind::File } else { Kind::Folder };
            names.insert(first.as_os_str().to_owned(), kind);
        }
        if names.is_empty() {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(Box::new(names.into_iter().map(|(name, kind)| Ok(Entry::new(name, kind)))))
    }

    fn open(&self, path: &Path) -> io::Result<(File, u64)> {
        let found = files().get(path).cloned();
        let Some(bytes) = found else {
            return Err(match self.metadata(path) {
                Ok(_) => io::Error::other("it is a folder, not a file"),
                Err(e) => e,
            });
        };
        let length = bytes.len() as u64;
        Ok((File::Other(Box::new(Open { path: path.to_owned(), bytes })), length))
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn create(&self, path: &Path) -> io::Result<Writer> {
        Ok(Writer::Other(Box::new(Part { path: path.to_owned(), bytes: Cursor::default() })))
    }

    fn patch(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut files = files();
        let file = files.get_mut(path).ok_or(ErrorKind::NotFound)?;
        let mut changed = file.to_vec();
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let part = changed.get_mut(offset..offset + bytes.len()).ok_or(ErrorKind::UnexpectedEof)?;
        part.copy_from_slice(bytes);
        *file = Arc::new(changed);
        Ok(())
    }

    fn create_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let all = below(from);
        if all.is_empty() {
            return Err(ErrorKind::NotFound.into());
        }
        let mut files = files();
        for file in all {
            let inside = file.strip_prefix(from).map_err(io::Error::other)?;
            let to = if inside.as_os_str().is_empty() { to.to_owned() } else { to.join(inside) };
            let bytes = files.remove(&file).ok_or(ErrorKind::NotFound)?;
            files.insert(to, bytes);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        files().remove(path).map(drop).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        files().retain(|file, _| !file.starts_with(path));
        Ok(())
    }
}

/// An open file.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    bytes: Arc<Vec<u8>>,
}

impl ReadRanges for Open {
    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if lost().iter().any(|lost| self.path.starts_with(lost)) {
            return Err(io::Error::other("the range is lost"));
        }
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(buffer.len()).ok_or(ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(self.bytes.get(start..end).ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A file being written, which is there once it was flushed.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    bytes: Cursor<Vec<u8>>,
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        files().insert(self.path.clone(), Arc::new(self.bytes.get_ref().clone()));
        Ok(())
    }
}

impl Seek for Part {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}
