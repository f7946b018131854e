//! Columns beside images that a table of DuckDB cannot have, refused before anything is written.

use crate::types::sql_type;
use arrow_schema::{DataType, TimeUnit};
use std::collections::HashMap;
use std::path::Path;
use wellread_image::ome_arrow::{COLUMN, ROW_ID};
use wellread_store::features::{FeatureColumns, first_infinite, first_outside, refuse_nul};
use wellread_store::surface::option;
use wellread_store::{Error, Result, WriteOptions};

/// Refuses columns that a table of DuckDB cannot have, before anything is written.
///
/// # Errors
/// The column, and the row where it is a value.
pub(super) fn check(path: &Path, options: &WriteOptions, is_database: bool) -> Result<()> {
    let Some(columns) = &options.features else { return Ok(()) };
    refuse_nul(path, "DuckDB", Some(columns))?;
    let mut seen: HashMap<String, &str> = HashMap::from([ROW_ID, COLUMN].map(|own| (own.to_owned(), own)));
    for field in columns.schema_ref().fields() {
        let name = field.name().as_str();
        let problem = if name.is_empty() {
            Some("DuckDB has no columns without a name".to_owned())
        } else if let Some(other) = seen.insert(name.to_ascii_lowercase(), name) {
            Some(format!(
                "DuckDB takes the columns {other:?} and {name:?} for one: it tells no capital letters apart"
            ))
        } else {
            sql_type(field.data_type()).err().map(|why| format!("column {name:?}: {why}"))
        };
        if let Some(problem) = problem {
            return Err(Error::new(path, problem).choice().hint(format_args!(
                "rename the column, or leave it out: {} names the columns of joined profiles that are taken, {} those of the \
                 set that are not",
                option("columns"),
                option("without_column")
            )));
        }
    }
    if is_database {
        check_infinity(path, columns)?;
    }
    check_times(path, columns)
}

/// Refuses times that would be infinity in a database. The Parquet file keeps their numbers.
fn check_infinity(path: &Path, columns: &FeatureColumns) -> Result<()> {
    for (field, column) in columns.schema_ref().fields().iter().zip(columns.columns()) {
        let Some((row, text)) = first_infinite(column) else { continue };
        let name = field.name();
        let cause = format!(
            "the column {name:?} has {text}, and DuckDB cannot hold this time: it means infinity there"
        );
        // No format of wellread has such a time in another unit.
        let is_nanos = matches!(column.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _));
        let formats = if is_nanos { "choose parquet, lance or vortex, which can hold it; or " } else { "" };
        return Err(Error::new(path, cause).row(row).column(name).choice().hint(format_args!(
            "{formats}put another time or NULL in its place, or leave the column out ({})",
            option("without_column")
        )));
    }
    Ok(())
}

/// Refuses times that the appender would make nulls of, or others: it casts these types.
fn check_times(path: &Path, columns: &FeatureColumns) -> Result<()> {
    const MICROS: i64 = i64::MAX / 1_000_000;
    const DAYS: i64 = i32::MAX as i64 * 86_400;
    for (field, column) in columns.schema_ref().fields().iter().zip(columns.columns()) {
        let (seconds, what) = match column.data_type() {
            DataType::Timestamp(_, Some(_)) => (-MICROS..MICROS, "times with a zone"),
            DataType::Date64 => (-DAYS..DAYS, "dates"),
            _ => continue,
        };
        if let Some((row, text)) = first_outside(column, &seconds) {
            let cause =
                format!("the column {:?} has {text}, which DuckDB's {what} do not hold", field.name());
            return Err(Error::new(path, cause).row(row).choice().hint(format_args!(
                "put another time or NULL in its place, or leave the column out ({})",
                option("without_column")
            )));
        }
    }
    Ok(())
}
