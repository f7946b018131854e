//! Copies of files on this machine, for libraries that open files by themselves and know no place but the file system.
//!
//! ```text
//!  s3://bucket/a.duckdb ──place, one version──▶ FOLDER/wellread-copy-…/file ──▶ DuckDB, SQLite
//!  /data/a.duckdb ────────────────────────────as it is─────────────────────────▶
//!  what DuckDB wrote there ──send──▶ s3://bucket/…
//! ```
//!
//! FOLDER is that of the cache on disk, if this process has one that may be as large and has room for the copy. Else it is
//! `TMPDIR`. That a copy was made is said on standard error, once in a process. It takes as long as fetching the whole file, and room
//! for it.

use crate::disk_cache::{self, DiskCache, DiskCacheSpec};
use crate::free_space::free_bytes;
use crate::place::{self, File};
use crate::staged::ScratchFolder;
use crate::{Error, Result};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Name of a copy.
const NAME: &str = "file";
/// Bytes that are fetched together: places cut them into requests that are made at once.
const CHUNK: usize = 32 << 20;
/// Bytes that are left free where a copy is put.
const LEFT_FREE: u64 = 64 << 20;

/// A file of this machine. It is one that lies here as it is, or a copy of one that lies in another place, which goes when this is dropped.
#[derive(Debug)]
pub struct LocalCopy {
    path: PathBuf,
    /// Where the copy is.
    copy: Option<ScratchFolder>,
}

impl LocalCopy {
    /// The file at `path` for the library that is called `who`.
    ///
    /// # Errors
    /// A file of another place that cannot be read, that is replaced meanwhile, or for which there is no room here.
    pub fn of(path: &Path, who: &str) -> Result<Self> {
        if !place::is_remote(path) {
            return Ok(Self { path: path.to_owned(), copy: None });
        }
        let (file, length) = place::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
        let parent = parent_of_copy(length);
        let folder = scratch_within(&parent, path, who)?;
        check_room(path, who, &parent, length)?;
        let copy = folder.path().join(NAME);
        fetch(path, &file, length, &copy)?;
        say(path, who, length, folder.path());
        Ok(Self { path: copy, copy: Some(folder) })
    }

    /// Where the library finds it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a copy.
    pub fn is_copy(&self) -> bool {
        self.copy.is_some()
    }
}

/// A folder on this machine in which the library `who` can write what goes to `target` in another place.
///
/// # Errors
/// It cannot be made.
pub fn scratch(target: &Path, who: &str) -> Result<ScratchFolder> {
    scratch_within(&std::env::temp_dir(), target, who)
}

fn scratch_within(parent: &Path, target: &Path, who: &str) -> Result<ScratchFolder> {
    ScratchFolder::within(parent).map_err(|e| {
        let cause = format_args!(
            "{who} knows files of this machine alone, and there is no folder for a copy in {}: {e}",
            parent.display()
        );
        Error::new(target, cause).hint("set TMPDIR to a folder that can be written to").passing()
    })
}

/// The folder in which a copy of so many bytes is put.
fn parent_of_copy(length: u64) -> PathBuf {
    let cache = disk_cache::current().ok().flatten().map(DiskCache::spec);
    // The bytes that a cache keeps may have left no room on its disk.
    let is_large_enough =
        |spec: &DiskCacheSpec| length <= spec.limit && too_few_free(&spec.folder, length).is_none();
    cache.filter(is_large_enough).map_or_else(std::env::temp_dir, |spec| spec.folder)
}

/// The bytes that are free in a folder, where a copy of so many has no room.
fn too_few_free(folder: &Path, length: u64) -> Option<u64> {
    free_bytes(folder).filter(|&free| length.saturating_add(LEFT_FREE) > free)
}

/// Puts a file of this machine at a path of another place, where it is once all of it is there.
///
/// # Errors
/// A file that cannot be read; the place's error.
pub fn send(from: &Path, to: &Path) -> Result<()> {
    let cannot = |e: io::Error| Error::io(to, "cannot write", &e);
    let (file, length) = place::open(from).map_err(|e| Error::io(from, "cannot open", &e))?;
    let mut out = place::create(to).map_err(cannot)?;
    each_chunk(&file, length, |bytes| out.write_all(bytes)).map_err(cannot)?;
    out.flush().map_err(cannot)
}

fn fetch(path: &Path, file: &File, length: u64, copy: &Path) -> Result<()> {
    let mut out = place::create(copy).map_err(|e| Error::io(copy, "cannot create", &e))?;
    let mut written = Ok(());
    let read = each_chunk(file, length, |bytes| {
        written = out.write_all(bytes);
        // The error behind it is told below.
        if written.is_ok() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
    });
    written.and_then(|()| out.flush()).map_err(|e| Error::io(copy, "cannot write the copy", &e))?;
    read.map_err(|e| Error::io(path, "cannot read", &e))
}

/// Hands all bytes of a file on, some at a time.
fn each_chunk(file: &File, length: u64, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut bytes = vec![];
    let mut at = 0;
    while at < length {
        let more = (length - at).min(CHUNK as u64);
        bytes.clear();
        file.peek_after(at, more, &mut bytes)?;
        each(&bytes)?;
        at += more;
    }
    Ok(())
}

/// Says once in a process that a file was fetched.
fn say(path: &Path, who: &str, length: u64, folder: &Path) {
    static SAID: Once = Once::new();
    // Where nobody reads it, there is nobody left to tell.
    SAID.call_once(|| {
        let (size, path, folder) = (megabytes(length), path.display(), folder.display());
        let _ = writeln!(
            io::stderr(),
            "note: {who} reads files of this machine alone: fetched {size} of {path} to {folder}, which goes when the set is closed"
        );
    });
}

/// Refuses a copy for which there is no room.
fn check_room(path: &Path, who: &str, folder: &Path, length: u64) -> Result<()> {
    let Some(free) = too_few_free(folder, length) else { return Ok(()) };
    let (size, free, folder) = (megabytes(length), megabytes(free), folder.display());
    let cause = format_args!(
        "{who} reads files of this machine alone, and {folder} has {free} free for a copy of {size}"
    );
    let hint = "free some space there, or give TMPDIR or the cache on disk a folder with more; Parquet is read where it lies";
    Err(Error::new(path, cause).hint(hint).passing())
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_this_machine_are_read_where_they_lie() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.duckdb");
        // Not even whether it is there is asked.
        let file = LocalCopy::of(&path, "DuckDB").unwrap();
        assert!(file.path() == path && !file.is_copy());
    }

    #[test]
    fn all_bytes_are_copied() {
        let dir = tempfile::tempdir().unwrap();
        let [from, to, back] = ["a", "b", "c"].map(|name| dir.path().join(name));
        let bytes: Vec<u8> = (0..CHUNK + 5).map(|i| (i % 251) as u8).collect();
        std::fs::write(&from, &bytes).unwrap();
        send(&from, &to).unwrap();
        let (file, length) = place::open(&to).unwrap();
        fetch(&to, &file, length, &back).unwrap();
        assert!(place::read(&back).unwrap() == bytes);
        let longer = fetch(&to, &file, length + 1, &back).unwrap_err().to_string();
        assert!(longer.contains("cannot read"), "{longer}");
        assert!(fetch(&to, &file, length, &dir.path().join("no/c")).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn what_does_not_fit_is_refused_with_where_it_would_go() {
        let dir = tempfile::tempdir().unwrap();
        let free = free_bytes(dir.path()).unwrap();
        let refused =
            check_room(Path::new("s3://b/a.duckdb"), "DuckDB", dir.path(), u64::MAX - 1).unwrap_err();
        let said = refused.to_string();
        assert!(said.contains("s3://b/a.duckdb") && said.contains("TMPDIR"), "{said}");
        assert!(said.contains(&format!("and {} has", dir.path().display())), "{said}");
        // The file is as good as any other.
        assert!(refused.may_pass());
        assert!(check_room(Path::new("a"), "DuckDB", dir.path(), 0).is_ok() || free < LEFT_FREE);
    }
}
