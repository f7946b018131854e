//! Where the rows of a table come from, which row is which, and by which numbers queries name them.
//!
//! ```text
//!  a table of ours whose row_id is 0, 1, 2 … in its order ──▶ Keyed: row n has row_id n, found by the key's index
//!  any other, and one of ours that somebody has changed ────▶ Native: row n is the n-th that a scan meets, by rowid
//! ```
//!
//! So row n of a set is always the n-th of a scan, for pixels, names, columns and conversions alike. The value of `row_id` never
//! decides. SQL that changes an image moves its row to the end of the table, and deleted rows leave gaps in `rowid`.

use crate::connection::failed;
use crate::sql;
use crate::table_ref::TableRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use duckdb::Connection;
use std::path::Path;
use wellread_image::ome_arrow::ROW_ID;
use wellread_store::{Error, Result};

/// DuckDB's number of a row of a Parquet file.
pub(super) const PARQUET_KEY: &str = "file_row_number";
/// DuckDB's number of a row of a native table: it grows in the order of scans, with gaps where rows were deleted.
const NATIVE_KEY: &str = "rowid";

/// Where rows come from and how they are numbered.
pub(super) enum Source {
    /// A native table whose `row_id` is its primary key and counts rows from 0 in the order of scans.
    Keyed(TableRef),
    /// A native table by DuckDB's own row numbers; where rows were deleted, the numbers that are left.
    Native(TableRef, Option<Vec<i64>>),
    /// A Parquet file.
    Parquet,
}

/// A native table with its rows numbered.
pub(super) struct Numbered {
    pub source: Source,
    pub rows: i64,
    /// Whether the number of a row is its place in the file's blocks, in which none was deleted.
    pub are_places: bool,
}

impl Numbered {
    /// Numbers the rows of a table: one query, and another where rows were deleted.
    ///
    /// # Errors
    /// DuckDB's error. A column of the table's own that is called `rowid` and is no number of the row.
    pub fn of(path: &Path, connection: &Connection, table_ref: TableRef) -> Result<Self> {
        let is_keyed = table_ref.is_ours && table_ref.has_row_id;
        let counts = if table_ref.hides_rowid {
            // The column takes the name of DuckDB's number, which nothing else names.
            let key = sql::quoted(if is_keyed { ROW_ID } else { NATIVE_KEY });
            format!(
                "SELECT count(*), 0, count(*) - 1, count(*) FILTER (WHERE TRY_CAST({key} AS BIGINT) IS DISTINCT FROM number - 1) \
                 FROM (SELECT {key}, row_number() OVER () AS number FROM {})",
                table_ref.sql()
            )
        } else {
            let moved = if is_keyed {
                format!("count(*) FILTER (WHERE {ROW_ID} IS DISTINCT FROM {NATIVE_KEY})")
            } else {
                "0".to_owned()
            };
            format!(
                "SELECT count(*), coalesce(min({NATIVE_KEY}), 0), coalesce(max({NATIVE_KEY}), -1), {moved} FROM {}",
                table_ref.sql()
            )
        };
        let counted =
            connection.query_row(&counts, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
        let [rows, first, last, moved]: [i64; 4] =
            counted.map_err(|e| failed(path, "cannot count the rows", &e))?;
        let is_dense = rows == 0 || (first, last) == (0, rows - 1);
        let hides_rowid = table_ref.hides_rowid;
        if hides_rowid && moved > 0 {
            return Err(Error::new(
                path,
                format_args!(
                    "a column of {} is called {NATIVE_KEY}, which hides DuckDB's number of each row",
                    table_ref.sql()
                ),
            )
            .hint(format_args!(
                "give it another name: ALTER TABLE {} RENAME COLUMN {NATIVE_KEY} TO id",
                table_ref.sql()
            )));
        }
        let source = if is_keyed && is_dense && moved == 0 {
            Source::Keyed(table_ref)
        } else if is_dense {
            Source::Native(table_ref, None)
        } else {
            let sql = format!("SELECT {NATIVE_KEY} FROM {} ORDER BY {NATIVE_KEY}", table_ref.sql());
            let numbers =
                numbers(connection, &sql).map_err(|e| failed(path, "cannot number the rows", &e))?;
            Source::Native(table_ref, Some(numbers))
        };
        Ok(Self { source, rows, are_places: is_dense && moved == 0 && !hides_rowid })
    }
}

fn numbers(connection: &Connection, sql: &str) -> duckdb::Result<Vec<i64>> {
    let mut statement = connection.prepare(sql)?;
    let mut out = vec![];
    for batch in statement.stream_arrow([])? {
        if let Some(column) = batch?.column(0).as_primitive_opt::<Int64Type>() {
            out.extend_from_slice(column.values());
        }
    }
    Ok(out)
}

impl Source {
    /// The source of the selection.
    pub fn from(&self, path: &Path) -> String {
        match self {
            Self::Keyed(table_ref) | Self::Native(table_ref, _) => table_ref.sql(),
            Self::Parquet => {
                // A folder called `well=B02` is no column.
                format!(
                    "read_parquet({}, file_row_number = true, hive_partitioning = false)",
                    sql::file(path)
                )
            }
        }
    }

    /// The expression that numbers rows.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Keyed(_) => ROW_ID,
            Self::Native(..) => NATIVE_KEY,
            Self::Parquet => PARQUET_KEY,
        }
    }

    /// The key of a row.
    pub fn key_of(&self, row: usize) -> i64 {
        match self {
            Self::Native(_, Some(numbers)) => numbers[row],
            _ => row as i64,
        }
    }
}
