//! Rows by DuckDB's own queries: those that are not read from blocks.
//!
//! ```text
//!  rows ──key_of──▶ keys ──one query for all of them, or a scan──▶ batches in the order of rows, without their keys
//! ```

use super::DuckTable;
use super::source::Source;
use crate::connection::failed;
use crate::sql;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{RecordBatch, UInt64Array};
use std::ops::Range;
use wellread_store::direct::EachBatch;
use wellread_store::table::{Columns, Rows};
use wellread_store::{Error, Result};

/// Name of the row number among the columns of a query.
const KEY: &str = "wellread row";
/// Rows of a table that is read by its primary key, per query of a scan.
const SCAN_ROWS: usize = 256;

impl DuckTable {
    /// Rows, by queries.
    pub(crate) fn read_by_query(
        &self,
        rows: Rows<'_>,
        columns: &Columns,
        each: &mut EachBatch<'_>,
    ) -> Result<()> {
        match rows {
            Rows::Range(range) => self.scan(range, columns, each),
            Rows::Chosen(rows) => {
                let keys: Vec<i64> = rows.iter().map(|&row| self.source.key_of(row)).collect();
                self.query(&sql::one_of(self.source.key(), &keys), &keys, columns, each)
            }
        }
    }

    /// Runs one query for the rows that a `filter` leaves, which are those with ascending `keys`.
    fn query(&self, filter: &str, keys: &[i64], columns: &Columns, each: &mut EachBatch<'_>) -> Result<()> {
        // A column of the table's own, which takes the place of DuckDB's number, may be of a narrower type.
        let sql = format!(
            "SELECT {}, CAST({} AS BIGINT) AS {} FROM {} WHERE {filter}",
            sql::select(columns),
            self.source.key(),
            sql::quoted(KEY),
            self.source.from(self.local.path())
        );
        let connection = self.database.connection(&self.path)?;
        let wrong = |e: duckdb::Error| failed(&self.path, "cannot read rows", &e);
        let mut statement = connection.prepare(&sql).map_err(wrong)?;
        let mut at = 0;
        // Results come in the order of the table, so this is empty unless something is amiss.
        let mut disordered = vec![];
        for batch in statement.stream_arrow([]).map_err(wrong)? {
            let batch = batch.map_err(wrong)?;
            let numbers =
                key_column(&batch).ok_or_else(|| Error::new(&self.path, "row numbers are no integers"))?;
            let in_order = disordered.is_empty() && keys.get(at..at + numbers.len()) == Some(numbers);
            at += numbers.len();
            if in_order {
                each(without_key(&batch))?;
            } else {
                disordered.push(batch);
            }
        }
        if disordered.is_empty() {
            return Ok(());
        }
        each(sorted(&disordered).map_err(|e| Error::new(&self.path, format_args!("cannot sort rows: {e}")))?)
    }

    fn scan(&self, rows: Range<usize>, columns: &Columns, each: &mut EachBatch<'_>) -> Result<()> {
        // A keyed table is read piece by piece, which bounds memory by rows and not by DuckDB's vectors.
        let has_pixels =
            columns.iter().any(|path| path.len() > 2 && path.last().is_some_and(|n| n == "pixels"));
        let step =
            if matches!(self.source, Source::Keyed(_)) && has_pixels { SCAN_ROWS } else { rows.len().max(1) };
        for start in rows.clone().step_by(step) {
            let end = (start + step).min(rows.end);
            if (start, end) == (0, self.rows) {
                self.query_all(columns, each)?;
                continue;
            }
            let keys: Vec<i64> = (start..end).map(|row| self.source.key_of(row)).collect();
            let key = self.source.key();
            // Rows between the first and the last of them may have been deleted: no other row is there.
            let filter = match keys.as_slice() {
                [first, .., last] => format!("{key} BETWEEN {first} AND {last}"),
                one => sql::one_of(key, one),
            };
            self.query(&filter, &keys, columns, each)?;
        }
        Ok(())
    }

    /// All rows, streamed.
    fn query_all(&self, columns: &Columns, each: &mut EachBatch<'_>) -> Result<()> {
        let sql = format!("SELECT {} FROM {}", sql::select(columns), self.source.from(self.local.path()));
        let connection = self.database.connection(&self.path)?;
        let wrong = |e: duckdb::Error| failed(&self.path, "cannot read rows", &e);
        let mut statement = connection.prepare(&sql).map_err(wrong)?;
        for batch in statement.stream_arrow([]).map_err(wrong)? {
            each(batch.map_err(wrong)?)?;
        }
        Ok(())
    }
}

/// The row numbers of a result: its last column.
fn key_column(batch: &RecordBatch) -> Option<&[i64]> {
    let column = batch.columns().last()?.as_primitive_opt::<Int64Type>()?;
    Some(column.values())
}

fn without_key(batch: &RecordBatch) -> RecordBatch {
    let columns: Vec<usize> = (0..batch.num_columns() - 1).collect();
    batch.project(&columns).expect("these columns are there")
}

/// Batches as one, ordered by row number.
fn sorted(batches: &[RecordBatch]) -> std::result::Result<RecordBatch, arrow_schema::ArrowError> {
    let whole = arrow_select::concat::concat_batches(&batches[0].schema(), batches)?;
    let keys = key_column(&whole).unwrap_or_default();
    let mut order: Vec<u64> = (0..keys.len() as u64).collect();
    order.sort_by_key(|&i| keys[i as usize]);
    let order = UInt64Array::from(order);
    let columns = whole.columns().iter().map(|c| arrow_select::take::take(c, &order, None));
    let whole = RecordBatch::try_new(whole.schema(), columns.collect::<std::result::Result<_, _>>()?)?;
    Ok(without_key(&whole))
}
