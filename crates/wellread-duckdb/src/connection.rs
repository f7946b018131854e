//! Databases open for reading, with a connection for each thread that asks.

use crate::library;
use duckdb::{AccessMode, Config, Connection};
use std::ops::Deref;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use wellread_store::process::ProcessOwned;
use wellread_store::spool::LocalCopy;
use wellread_store::{Error, FILE_TOO_LARGE_HINT, Result};

/// A database and its idle connections.
pub(crate) struct Database {
    /// Opened first; others are made from it. A forked process does not close what it has inherited: DuckDB would wait for its
    /// threads, which are not there.
    root: ProcessOwned<Mutex<Connection>>,
    idle: ProcessOwned<Mutex<Vec<Connection>>>,
}

/// A connection on loan.
pub(crate) struct Borrowed<'a> {
    connection: Option<Connection>,
    from: &'a Database,
}

impl Database {
    /// Opens the file of the database at `path` for reading.
    ///
    /// # Errors
    /// A file that is corrupt, of a newer DuckDB, or locked by a process that writes to it.
    pub fn open(path: &Path, local: &LocalCopy) -> Result<Self> {
        library::load(path)?;
        let config = config(true).and_then(|c| c.access_mode(AccessMode::ReadOnly));
        // Names such as `md:x` or `:memory:` mean something else to DuckDB; whole paths do not.
        let whole = std::path::absolute(local.path()).map_err(|e| Error::io(path, "cannot open", &e))?;
        let opened = config.and_then(|c| Connection::open_with_flags(whole, c));
        opened.map(Self::of).map_err(|e| failed(path, "cannot open the database", &e))
    }

    /// A database in memory, for reading other files.
    pub fn in_memory(path: &Path) -> Result<Self> {
        library::load(path)?;
        let opened = config(true).and_then(Connection::open_in_memory_with_flags);
        opened.map(Self::of).map_err(|e| failed(path, "cannot start DuckDB", &e))
    }

    fn of(root: Connection) -> Self {
        Self { root: ProcessOwned::new(Mutex::new(root)), idle: ProcessOwned::new(Mutex::default()) }
    }

    /// A connection for this thread.
    pub fn connection(&self, path: &Path) -> Result<Borrowed<'_>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = if let Some(connection) = idle {
            connection
        } else {
            let root = self.root.lock().unwrap_or_else(PoisonError::into_inner);
            root.try_clone().map_err(|e| failed(path, "cannot connect to the database", &e))?
        };
        Ok(Borrowed { connection: Some(connection), from: self })
    }
}

impl Deref for Borrowed<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("given back only when dropped")
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.from.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(self.connection.take());
    }
}

/// Settings of every database: nothing is downloaded, and rows keep their order.
pub(crate) fn config(read_only: bool) -> duckdb::Result<Config> {
    let config = Config::default()
        .enable_autoload_extension(false)?
        .with("autoinstall_known_extensions", "false")?
        .with("preserve_insertion_order", "true")?
        .custom_user_agent("wellread")?;
    // A reader must not leave a folder of temporary files beside somebody's database.
    if read_only { config.with("temp_directory", "") } else { Ok(config) }
}

/// Whether DuckDB says that another process has the database open.
pub(crate) fn is_lock(error: &duckdb::Error) -> bool {
    let text = error.to_string();
    text.contains("lock on file") || text.contains("already open in")
}

/// DuckDB's error on a file that is read, as an error about `path`, with a hint for the usual causes.
pub(crate) fn failed(path: &Path, what: &str, error: &duckdb::Error) -> Error {
    said(path, what, error, "the file may be corrupt; copy or write it again")
}

/// DuckDB's error on a file that is written, as [`failed`] does.
pub(crate) fn failed_to_write(path: &Path, error: &duckdb::Error) -> Error {
    let otherwise =
        "DuckDB did not take what was to be written; write another format, such as parquet, and report this";
    said(path, "cannot write", error, otherwise)
}

/// DuckDB's error, with a hint for the usual causes, or `otherwise`.
fn said(path: &Path, what: &str, error: &duckdb::Error, otherwise: &str) -> Error {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let hint = if is_lock(error) {
        "another process has the database open for writing; close it, or copy the file"
    } else if text.contains("newer version")
        || text.contains("newer storage")
        || text.contains("version number")
    {
        "write the table with an older storage version (ATTACH … (STORAGE_VERSION 'v2.0.0')), or use a newer wellread"
    } else if text.contains("Out of Memory") || text.contains("could not allocate") {
        "DuckDB reads 2,048 rows at a time; convert the set to Parquet, Lance or OME-Zarr where images are this large"
    } else if text.contains("WAL") {
        "open the database once for writing, so that its log is merged (CHECKPOINT)"
    } else if text.contains("No space left") || text.contains("disk full") {
        "free some space or write elsewhere"
    } else if text.contains("File too large") {
        FILE_TOO_LARGE_HINT
    } else {
        otherwise
    };
    Error::new(path, format_args!("{what}: {first}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_no_corrupt_file() {
        let text = "Catalog Error: Column with name \"well\" already exists!".to_owned();
        let error = duckdb::Error::InvalidParameterName(text);
        let path = Path::new("a.duckdb");
        let written = failed_to_write(path, &error).to_string();
        assert!(written.contains("already exists") && !written.contains("corrupt"), "{written}");
        assert!(failed(path, "cannot read", &error).to_string().contains("corrupt"));
        let limit = "IO Error: Could not write file \"a.duckdb\": File too large".to_owned();
        let written = failed_to_write(path, &duckdb::Error::InvalidParameterName(limit)).to_string();
        assert!(written.contains("ulimit -f") && !written.contains("report this"), "{written}");
    }
}
