//! Images in DuckDB: native tables, and Parquet files read and written by DuckDB.
//!
//! ```text
//!  file ──connection──▶ read-only database, a connection per thread
//!    tables ──table_ref──▶ the table with an OME-Arrow column    (duckdb)
//!    read_parquet(file) ───────────────────────┐                 (parquet-duckdb)
//!                                              ▼
//!  rows, columns ──direct──▶ values in the file's blocks ──┬─▶ pieces of rows, one by one, without arrays ──┐
//!                │             (numbers of native tables)  └─▶ record batches ────────────────────────────┼▶ wellread_store::table
//!                └─sql──▶ one query for all rows asked for ──▶ record batches ────────────────────────────┘
//!  record batches ──sink──▶ appender ──▶ staged database file (──▶ COPY … TO staged Parquet file)
//! ```
//!
//! DuckDB keeps rows in vectors of 2,048 and reads whole vectors, whatever a filter leaves of them. So pixels of native
//! tables are read from the file's blocks here (`direct`), as few of them as the rows have. DuckDB opens the file,
//! gives the places of columns, and reads text, Parquet, and everything unusual. Where it has to read pixels, a query
//! for one image costs little less than one for a hundred of its neighbours. Requests for several batches are worth
//! joining ([`wellread_store::Hints::rows_per_read`]). Tables written here have a primary key on `row_id`, by whose
//! index DuckDB fetches single rows, until somebody changes them. Then rows are what a scan meets (`table::source`).
//!
//! [DuckDB](https://duckdb.org/docs/)'s library is loaded when it is first needed (`library`), of release 2.0 or newer. Files of
//! older releases are read, files of newer ones refused.
//!
//! Imports go one way, from above to below:
//!
//! | layer | module | what it holds |
//! |---|---|---|
//! | entry | `fuzzing` | what the fuzz target calls |
//! | sets | `table` | rows as a table of images, by blocks or by queries |
//! | | `sink` | tables and Parquet files, written |
//! | files | `file` | a database's file, opened and checked before DuckDB is asked |
//! | | `held` | what a database holds that is going to be replaced |
//! | ways to read | `direct` | blocks of the file, read past DuckDB |
//! | | `table_ref` | which table of a database holds the images |
//! | queries | `connection` | databases open for reading, a connection per thread |
//! | | `types`, `sql` | Arrow's types as DuckDB's; names and columns in queries |
//! | the library | `library` | DuckDB's library: found, loaded, its functions by name |

mod connection;
mod direct;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod held;
mod library;
mod sink;
mod sql;
mod table;
mod table_ref;
mod types;

pub use table::DuckTable;

use wellread_store::features::{self, is_own_of_tables};
use wellread_store::table::{TableStore, TableWriter};
use wellread_store::{Error, Format, Result, WriteOptions, register_format};

/// OME-Arrow columns in the tables of a DuckDB database file.
pub static FORMAT: Format = Format {
    name: table::NAME,
    about: "OME-Arrow columns in a DuckDB table (--table [SCHEMA.]NAME where there are several)",
    endings: &[".duckdb", ".ddb"],
    set_ending: ".duckdb",
    is_folder: false,
    holds_images: |_| true,
    parts: &[],
    inner_folders: &[],
    foreign_entry: |_| Ok(None),
    keeps_features: true,
    features_beside: false,
    join_parts: None,
    own_columns: is_own,
    names_tell: |_, _| false,
    keeps_durations: false,
    keeps_seconds: true,
    keeps_zoned_nanoseconds: false,
    keeps_zones: false,
    holds_bare_pixels: false,
    has_checksums: true,
    has_tables: true,
    has_columns: true,
    has_levels: false,
    has_display_settings: false,
    uses_tune: |_| false,
    cannot_resume: None,
    engine,
    // The header of a database file: 8 bytes of checksum, then the mark.
    recognise: |probe| !probe.is_dir && probe.head.get(8..12) == Some(b"DUCK"),
    open: |path, options| Ok(Box::new(TableStore::open(Box::new(DuckTable::open(path, options)?), options)?)),
    create: |path, options| Ok(Box::new(writer(path, options, sink::Target::Database)?)),
};

/// OME-Arrow columns in Parquet files by DuckDB's own reader and writer, to compare the ways in and out.
pub static PARQUET_FORMAT: Format = Format {
    name: table::PARQUET_NAME,
    about: "OME-Arrow Parquet read and written by DuckDB, to be compared with wellread's own reader",
    endings: &[],
    set_ending: "-duckdb.parquet",
    is_folder: false,
    // Its writer makes none, and its reader compares none.
    has_checksums: false,
    has_tables: false,
    has_columns: true,
    has_levels: false,
    has_display_settings: false,
    uses_tune: |_| true,
    cannot_resume: Some(
        "DuckDB writes the whole Parquet file by one statement at the end, which cannot be interrupted",
    ),
    recognise: |_| false,
    open: |path, options| Ok(Box::new(TableStore::open(Box::new(DuckTable::open_parquet(path)?), options)?)),
    create: |path, options| Ok(Box::new(writer(path, options, sink::Target::Parquet)?)),
    ..FORMAT
};

/// Whether no column beside the images can have this name: DuckDB has none without a name.
fn is_own(name: &str) -> bool {
    is_own_of_tables(name) || name.is_empty()
}

register_format!(FORMAT);
register_format!(PARQUET_FORMAT);

fn writer(path: &std::path::Path, options: &WriteOptions, target: sink::Target) -> Result<TableWriter> {
    let sink = sink::DuckSink::create(path, options, target)?;
    // Its dates are days: the time of day would be cut off.
    let features = options.features.as_ref().map(features::without_date64).transpose();
    let features = features.map_err(|e| Error::new(path, e))?;
    let options = WriteOptions { features, ..options.clone() };
    TableWriter::create(path, &options, Box::new(move |schema| sink.begin(&schema)))
}

/// Library and the storage versions that it reads and writes.
fn engine() -> Result<String> {
    let version = library::load(std::path::Path::new("duckdb"))?;
    Ok(format!("DuckDB {version} (storage version {version} and older)"))
}
