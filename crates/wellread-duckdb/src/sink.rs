//! Writing: record batches appended to a staged database, which becomes the output or is copied to Parquet. Output for
//! a bucket is written on this machine and sent there when it is complete.

mod columns;

use crate::connection::{config, failed_to_write};
use crate::file::log_of;
use crate::held::refuse_held;
use crate::library;
use crate::sql::{literal, quoted};
use crate::table_ref::{TABLE, mark};
use crate::types::{as_taken, sql_type};
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use duckdb::Connection;
use std::path::{Path, PathBuf};
use wellread_image::ome_arrow::ROW_ID;
use wellread_store::journal::Journal;
use wellread_store::place::{exists, is_remote};
use wellread_store::spool;
use wellread_store::staged::{Finished, ScratchFolder, Staged};
use wellread_store::table::TableSink;
use wellread_store::{Compression, Error, Result, Tune, WriteOptions};

/// The database while it is written.
const DATABASE: &str = "images.duckdb";
/// The Parquet file while it is written.
const PARQUET: &str = "images.parquet";

/// Bytes of batches that are committed together. At each commit, DuckDB writes the columns of a group of 122,880 rows
/// anew, and leaves the room that they had. When a commit is as large as all data before it, DuckDB writes each image
/// twice, not as often as there are batches. It writes most sets once, into a file without gaps.
const COMMIT_BYTES: usize = 256 << 20;
/// As much where an interrupted run is to lose little.
const RESUMED_COMMIT_BYTES: usize = 64 << 20;
/// Commits are never larger, because they wait in memory.
const MOST_COMMIT_BYTES: usize = 1 << 30;

/// The use of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A database file.
    Database,
    /// A Parquet file, copied from a database that is then thrown away.
    Parquet,
}

/// A table being written.
pub(crate) struct DuckSink {
    /// Closed before the files are removed or moved.
    open: Open,
    /// A folder beside the target, for the database and DuckDB's log.
    staged: Staged,
    /// A folder on this machine for them, where the target is elsewhere.
    scratch: Option<ScratchFolder>,
    target: Target,
    options: WriteOptions,
    marks: Vec<(String, String)>,
    /// Rows that an interrupted run has left.
    complete: usize,
    /// Bytes of the batches that were appended since the last commit.
    pending: usize,
    /// Bytes of the batches of all commits, as far as it matters.
    committed: usize,
}

impl DuckSink {
    /// Stages the output.
    ///
    /// # Errors
    /// The target exists or has no name as text, or options and columns that DuckDB does not have.
    pub fn create(path: &Path, options: &WriteOptions, target: Target) -> Result<Self> {
        refuse_other_text(path)?;
        codec(path, options, target)?;
        columns::check(path, options, target == Target::Database)?;
        library::load(path)?;
        let is_remote_target = is_remote(path);
        // The Parquet file is copied from a database beside it.
        if !is_remote_target {
            refuse_question_mark(path)?;
        }
        if target == Target::Database {
            check_log(path)?;
            if options.overwrite && is_remote_target {
                refuse_remote(path)?;
            } else if options.overwrite {
                refuse_held(path)?;
            }
        }
        let staged = Staged::for_table(path, options)?;
        let scratch = is_remote_target.then(|| spool::scratch(path, "DuckDB")).transpose()?;
        Ok(Self {
            open: Open { connection: None, resumable: staged.journal().is_some() },
            staged,
            scratch,
            target,
            options: options.clone(),
            marks: vec![],
            complete: 0,
            pending: 0,
            committed: 0,
        })
    }

    /// Makes the table, or goes on with the one that an interrupted run has left. Batches are committed some
    /// together, and DuckDB drops what was not committed when it opens the file.
    ///
    /// # Errors
    /// DuckDB's error. A table that was left and is not as it was written.
    pub fn begin(mut self, schema: &Schema) -> Result<Box<dyn TableSink>> {
        self.marks = schema.metadata().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        self.marks.sort();
        let opened = config(false).and_then(|c| Connection::open_with_flags(self.path(DATABASE), c));
        let connection = opened.map_err(|e| self.left_behind(self.failed(&e)))?;
        let columns = schema.fields().iter().map(|field| {
            let name = quoted(field.name());
            // By the key's index single rows are fetched without reading their neighbours.
            let key =
                if field.name() == ROW_ID && self.target == Target::Database { " PRIMARY KEY" } else { "" };
            let of = sql_type(field.data_type()).map_err(|why| format!("column {name}: {why}"))?;
            Ok(format!("{name} {of}{key}"))
        });
        let columns: std::result::Result<Vec<String>, String> = columns.collect();
        let columns = columns.map_err(|why| Error::new(self.staged.target(), why))?.join(", ");
        let begin = || -> duckdb::Result<Option<(i64, i64)>> {
            if self.options.compression == Compression::None {
                connection.execute_batch("SET force_compression = 'uncompressed'")?;
            }
            let known = "SELECT count(*) FROM duckdb_tables() WHERE table_name = ?";
            if connection.query_row(known, [TABLE], |row| row.get::<_, i64>(0))? == 0 {
                connection.execute_batch(&format!(
                    "BEGIN; CREATE TABLE {TABLE} ({columns}); COMMENT ON TABLE {TABLE} IS {}; COMMIT",
                    literal(&mark())
                ))?;
                return Ok(None);
            }
            let id = quoted(ROW_ID);
            let rows = format!("SELECT count(*), coalesce(max({id}) + 1, 0) FROM {TABLE}");
            connection.query_row(&rows, [], |row| Ok(Some((row.get(0)?, row.get(1)?))))
        };
        match begin().map_err(|e| self.left_behind(self.failed(&e)))? {
            None => {}
            Some((count, end)) if count == end => self.complete = usize::try_from(count).unwrap_or(0),
            Some((count, end)) => {
                let why = format!("an interrupted run left {count} rows, numbered up to {end}");
                return Err(self.left_behind(Error::new(self.staged.target(), why)));
            }
        }
        connection.execute_batch("BEGIN").map_err(|e| self.failed(&e))?;
        self.note_rows(self.complete > 0)?;
        self.open.connection = Some(connection);
        Ok(Box::new(self))
    }

    /// Notes once that a later run finds rows in the database, which knows itself how many.
    fn note_rows(&self, are_there: bool) -> Result<()> {
        let journal = self.staged.journal().filter(|journal| are_there && journal.lines().is_empty());
        journal.map_or(Ok(()), |journal| journal.note("rows"))
    }

    /// Bytes of batches that are committed together at least.
    fn commit_bytes(&self) -> usize {
        if self.staged.journal().is_some() { RESUMED_COMMIT_BYTES } else { COMMIT_BYTES }
    }

    /// A file while it is written.
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.as_ref().map_or_else(|| self.staged.path(), ScratchFolder::path).join(name)
    }

    /// Says what to do about something that an interrupted run has left, where one has.
    fn left_behind(&self, error: Error) -> Error {
        if self.staged.journal().is_none_or(Journal::begun) {
            return error;
        }
        Error::new(error.path(), error.cause())
            .hint(format_args!("remove {}, and begin anew", self.staged.path().display()))
    }

    fn failed(&self, error: &duckdb::Error) -> Error {
        failed_to_write(self.staged.target(), error)
    }

    /// The statement that writes the Parquet file.
    fn copy(&self) -> Result<String> {
        let codec = codec(self.staged.target(), &self.options, self.target)?;
        // DuckDB closes a row group at whole vectors of 2,048 rows, so none is smaller.
        let rows = match self.options.tune {
            Tune::Random => 2048,
            Tune::Scan | Tune::Reference => 122_880,
            Tune::Size => 1 << 20,
        };
        let marks: Vec<_> =
            self.marks.iter().map(|(k, v)| format!("{}: {}", literal(k), literal(v))).collect();
        Ok(format!(
            "COPY {TABLE} TO {} (FORMAT parquet, {codec}, ROW_GROUP_SIZE {rows}, KV_METADATA {{{}}})",
            literal(&self.path(PARQUET).to_string_lossy()),
            marks.join(", ")
        ))
    }
}

/// The database while rows are appended to it.
struct Open {
    connection: Option<Connection>,
    resumable: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take().filter(|_| self.resumable) {
            // For a later run to go on with.
            let _ = connection.execute_batch("COMMIT");
        }
    }
}

impl TableSink for DuckSink {
    fn complete(&self) -> usize {
        self.complete
    }

    fn write(&mut self, batch: RecordBatch) -> Result<()> {
        let Some(connection) = &self.open.connection else {
            return Err(Error::new(self.staged.target(), "the database was closed"));
        };
        let append = || -> duckdb::Result<()> {
            let mut appender = connection.appender(TABLE)?;
            appender.append_record_batch(as_taken(&batch))?;
            appender.flush()
        };
        append().map_err(|e| self.failed(&e))?;
        self.pending += batch.get_array_memory_size();
        if self.pending >= self.commit_bytes().max(self.committed) {
            connection.execute_batch("COMMIT; BEGIN").map_err(|e| self.failed(&e))?;
            self.note_rows(self.committed == 0)?;
            self.committed = (self.committed + self.pending).min(MOST_COMMIT_BYTES);
            self.pending = 0;
        }
        Ok(())
    }

    fn complete_output(mut self: Box<Self>) -> Result<Finished> {
        let Some(connection) = self.open.connection.take() else {
            return Err(Error::new(self.staged.target(), "the database was closed"));
        };
        let last = match self.target {
            Target::Database => "COMMIT; CHECKPOINT".to_owned(),
            Target::Parquet => format!("COMMIT; {}", self.copy()?),
        };
        connection.execute_batch(&last).map_err(|e| self.failed(&e))?;
        connection.close().map_err(|(_, e)| self.failed(&e))?;
        let name = match self.target {
            Target::Database => DATABASE,
            Target::Parquet => PARQUET,
        };
        if self.scratch.is_some() {
            spool::send(&self.path(name), &self.staged.path().join(name))?;
        }
        if self.scratch.is_some() || self.target == Target::Parquet {
            return Ok(self.staged.finished_file(name));
        }
        let path = self.path(DATABASE);
        let commit = |staged: Staged| {
            let target = staged.target().to_owned();
            refuse_held(&target)?;
            staged.commit_file(DATABASE)?;
            // That of a database that was replaced, and not closed: with it, the new one could not be opened.
            let _ = wellread_store::place::of(&target).remove_file(&log_of(&target));
            Ok(())
        };
        Ok(Finished::new(self.staged, path, commit))
    }
}

/// Refuses to replace a database that is not on this machine: its other content cannot be seen from here.
fn refuse_remote(database: &Path) -> Result<()> {
    if !exists(database) {
        return Ok(());
    }
    let cause = "is not replaced there, since it may hold more than the table of images, which only a copy on this machine would tell";
    Err(Error::new(database, cause).hint("choose another name, or remove the database yourself"))
}

/// Refuses a path that is not UTF-8: DuckDB takes paths as text, and nobody could open what has such a name.
fn refuse_other_text(path: &Path) -> Result<()> {
    if path.to_str().is_some() {
        return Ok(());
    }
    Err(Error::new(path, "DuckDB cannot write to a path that is not valid UTF-8")
        .hint("choose another name, or another folder where it is the folder's"))
}

/// Refuses a path with a question mark, behind which DuckDB looks for options when it names the log.
fn refuse_question_mark(database: &Path) -> Result<()> {
    let whole = std::path::absolute(database).map_err(|e| Error::io(database, "cannot write", &e))?;
    if !whole.to_string_lossy().contains('?') {
        return Ok(());
    }
    Err(Error::new(database, "DuckDB cannot write to a path that contains '?'")
        .hint("choose another name, or another folder where the '?' is in the folder's"))
}

/// Refuses a name beside which the log of a database lies that is not there.
fn check_log(database: &Path) -> Result<()> {
    let log = log_of(database);
    if exists(database) || !exists(&log) {
        return Ok(());
    }
    Err(Error::new(
        log,
        "is the log of a database that is not there; a new one could not be opened beside it",
    )
    .hint("remove it, or choose another name"))
}

/// The compression of a Parquet file as `COPY` names it; that of a database is checked only.
fn codec(path: &Path, options: &WriteOptions, target: Target) -> Result<String> {
    let refuse = |has: &str| {
        Err(Error::new(path, format_args!("DuckDB has no compression {} here", options.compression))
            .choice()
            .hint(has))
    };
    if target == Target::Database {
        return match options.compression {
            Compression::Default | Compression::None => Ok(String::new()),
            _ => refuse("a table has default (bit packing, chosen by DuckDB) and none"),
        };
    }
    Ok(match options.compression {
        Compression::Default if options.tune == Tune::Reference => "COMPRESSION snappy".into(),
        Compression::Default => format!("COMPRESSION zstd, COMPRESSION_LEVEL {}", Compression::ZSTD_LEVEL),
        Compression::None => "COMPRESSION uncompressed".into(),
        Compression::Lz4 => "COMPRESSION lz4_raw".into(),
        Compression::Snappy => "COMPRESSION snappy".into(),
        Compression::Zstd(level) => format!("COMPRESSION zstd, COMPRESSION_LEVEL {level}"),
        // DuckDB has this level for gzip and takes no other.
        Compression::Deflate(Compression::DEFLATE_LEVEL) => "COMPRESSION gzip".into(),
        Compression::Deflate(_) | Compression::Lzw | Compression::PackBits => {
            return refuse("its Parquet has none, snappy, lz4, zstd[:LEVEL] and deflate without a level");
        }
    })
}
