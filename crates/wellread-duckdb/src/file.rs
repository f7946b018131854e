//! The file of a database: opened and checked before DuckDB is asked, with a clear word about what is wrong with it. DuckDB opens files
//! by itself, of this machine alone: one that lies elsewhere is copied first.

use crate::connection::{Borrowed, failed};
use crate::direct::{Blocks, HEADERS};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_store::direct::{TestedVersion, little_endian, read_at};
use wellread_store::place::{self, File};
use wellread_store::spool::LocalCopy;
use wellread_store::{Error, Result};

/// The newest release whose files were read here as DuckDB reads them, as the file's main header names it.
static RELEASE: TestedVersion = TestedVersion::new("was written by DuckDB", "2.0");
/// The newest storage version of such files, as the two headers of the database number it.
static STORAGE: TestedVersion = TestedVersion::new("has DuckDB's storage version", "69");
/// Where the main header has the release, and how much room for it.
const RELEASE_AT: u64 = 52;
const RELEASE_BYTES: usize = 32;
/// Where the headers of the database have the storage version.
const STORAGE_AT: [u64; 2] = [4096 + 56, 8192 + 56];

/// Opens the file of the set at `path`, with a clear word about what DuckDB would say less clearly.
pub(crate) fn check_file(path: &Path, local: &LocalCopy) -> Result<File> {
    let (file, length) = place::open(local.path()).map_err(|e| Error::io(path, "cannot open", &e))?;
    if length == 0 {
        return Err(Error::new(path, "the file is empty"));
    }
    Ok(file)
}

/// The file of the database at `path` on this machine: itself, or a copy.
///
/// # Errors
/// A database elsewhere that cannot be fetched, or beside which changes lie that are not in it.
pub(crate) fn local(path: &Path) -> Result<LocalCopy> {
    if place::is_remote(path) && has_log(path) {
        return Err(Error::new(path, "a log lies beside it (.wal) with changes that are not in it")
            .hint("open the database once for writing, so that its log is merged (CHECKPOINT), and put it there again"));
    }
    LocalCopy::of(path, "DuckDB")
}

/// Where DuckDB keeps the log of a database.
pub(crate) fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".wal");
    name.into()
}

/// Whether a log of changes lies beside a database.
pub(crate) fn has_log(path: &Path) -> bool {
    place::metadata(&log_of(path)).is_ok_and(|meta| meta.length > 0)
}

/// Whether a database is of a version whose blocks were read here as DuckDB reads them; if not, a note says so.
pub(crate) fn is_tested(path: &Path, file: &File) -> bool {
    let mut release = [0; RELEASE_BYTES];
    let mut storage = [[0; 8]; STORAGE_AT.len()];
    let numbers = storage.iter_mut().zip(STORAGE_AT);
    let read = read_at(file, &mut release, RELEASE_AT).is_ok()
        && numbers.map(|(number, at)| read_at(file, number, at)).all(|read| read.is_ok());
    let release = String::from_utf8_lossy(&release);
    // One of the headers is that before the last change.
    let storage = storage.iter().map(|number| little_endian(number)).max().unwrap_or(0);
    read && RELEASE.covers(path, release.trim_end_matches('\0')) && STORAGE.covers(path, &storage.to_string())
}

/// The blocks of the file. All that are used must be there: DuckDB itself notices only those that it reads. Free ones at the end
/// need not be: SQL that deletes rows cuts them off, and the count of blocks stays. `None` where they are of another kind than
/// can be read here.
pub(crate) fn check_length(
    path: &Path,
    file: &Arc<File>,
    connection: &Borrowed<'_>,
) -> Result<Option<Blocks>> {
    let sql = "SELECT block_size, total_blocks, free_blocks FROM pragma_database_size()";
    let (size, blocks, free): (u64, u64, u64) = connection
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(|e| failed(path, "cannot look at the storage", &e))?;
    let needed = size.saturating_mul(blocks).saturating_add(HEADERS);
    let length = file.length().map_err(|e| Error::io(path, "cannot look at", &e))?;
    let Some(there) = blocks_there(length, size, blocks, free) else {
        return Err(Error::new(
            path,
            format_args!("has {length} bytes, its {blocks} blocks need {needed}: the file is truncated"),
        )
        .hint("copy or write it again"));
    };
    // A missing block is left to DuckDB, which reports it.
    Ok(Blocks::new(Arc::clone(file), size, there))
}

/// The number of the `blocks` of `size` bytes that lie in a file of `length` bytes. `None` where more are missing than
/// are free, or a part of one is: DuckDB cuts off whole blocks.
fn blocks_there(length: u64, size: u64, blocks: u64, free: u64) -> Option<u64> {
    if length >= size.saturating_mul(blocks).saturating_add(HEADERS) {
        return Some(blocks);
    }
    let data = length.checked_sub(HEADERS)?;
    // Blocks of no bytes are all there once the headers are: here there are some.
    let there = data / size;
    (data.is_multiple_of(size) && blocks - there <= free).then_some(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_free_blocks_may_be_cut_off() {
        let size = 1 << 18;
        let length = |blocks: u64| HEADERS + blocks * size;
        assert_eq!(blocks_there(length(23), size, 23, 0), Some(23));
        assert_eq!(blocks_there(length(24), size, 23, 0), Some(23));
        assert_eq!(blocks_there(length(22), size, 23, 1), Some(22));
        assert_eq!(blocks_there(length(1), size, 25, 24), Some(1));
        assert_eq!(blocks_there(length(22), size, 23, 0), None);
        assert_eq!(blocks_there(length(21), size, 23, 1), None);
        assert_eq!(blocks_there(length(22) + 8, size, 23, 1), None);
        assert_eq!(blocks_there(100, size, 23, 23), None);
    }

    #[test]
    fn files_of_newer_releases_are_left_to_the_library() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.duckdb");
        let is_tested = |release: &str, storage: [u64; 2]| {
            let mut bytes = vec![0; HEADERS as usize];
            bytes[RELEASE_AT as usize..][..release.len()].copy_from_slice(release.as_bytes());
            for (at, number) in STORAGE_AT.iter().zip(storage) {
                bytes[*at as usize..][..8].copy_from_slice(&number.to_le_bytes());
            }
            std::fs::write(&path, bytes).unwrap();
            is_tested(&path, &place::open(&path).unwrap().0)
        };
        assert!(is_tested("v2.0.0", [69, 69]) && is_tested("v2.0.9", [0, 68]) && is_tested("v1.4.1", [0, 0]));
        assert!(!is_tested("v2.1.0", [69, 69]) && !is_tested("v3.0.0-dev1", [69, 69]));
        assert!(!is_tested("v2.0.0", [69, 70]) && !is_tested("v2.0.0", [70, 69]));
        std::fs::write(&path, [0; 100]).unwrap();
        assert!(!super::is_tested(&path, &place::open(&path).unwrap().0));
    }
}
