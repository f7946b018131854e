//! Dates and times that the library does not take: it panics where it finds them in a column.
//!
//! ```text
//!  columns that are written ──check──▶ an error with the column and the row, before anything is written
//!  columns that are read ──named──▶ the library's error with the column, and what to do
//! ```

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use vortex::dtype::{DType, Nullability};
use vortex::extension::datetime::{TimeUnit, Timestamp};
use vortex::scalar::{PValue, Scalar, ScalarValue};
use wellread_store::features::{FeatureColumns, first_outside};
use wellread_store::surface::option;
use wellread_store::table::arrow_array::Array;
use wellread_store::table::arrow_schema::DataType;
use wellread_store::{Error, Result};

/// Seconds from 1970 that the library takes: the years from -9999 to 9999, as far as they are in every zone.
const SECONDS: Range<i64> = -377_705_023_201..253_402_207_201;
/// Seconds of a time of day.
const OF_DAY: Range<i64> = 0..86_400;

/// Refuses columns with times that the library does not take.
///
/// # Errors
/// A zone that it does not know, a year beyond those that it has, a time of day beyond midnight.
pub(crate) fn check(target: &Path, columns: Option<&FeatureColumns>) -> Result<()> {
    let Some(columns) = columns else { return Ok(()) };
    for (field, column) in columns.schema_ref().fields().iter().zip(columns.columns()) {
        let name = field.name();
        let seconds = match column.data_type() {
            DataType::Timestamp(_, zone) => {
                if let Some(zone) = zone
                    && column.null_count() < column.len()
                    && !is_known(zone)
                {
                    let cause =
                        format!("the column {name:?} has times of the zone {zone:?}, which it does not know");
                    return Err(refusal(target, &cause).hint(format_args!(
                        "install the system's tzdata if that is a zone's name; else give the column another one, such as UTC, or \
                         leave it out ({})",
                        option("without_column")
                    )));
                }
                SECONDS
            }
            DataType::Time32(_) | DataType::Time64(_) => OF_DAY,
            _ => continue,
        };
        if let Some((row, text)) = first_outside(column, &seconds) {
            let cause = format!("the column {name:?} has the time {text}, which it does not hold");
            return Err(refusal(target, &cause).row(row).hint(format_args!(
                "put another time or NULL in its place, leave the column out ({}), or choose another format",
                option("without_column")
            )));
        }
    }
    Ok(())
}

fn refusal(target: &Path, cause: &str) -> Error {
    Error::new(target, format_args!("Vortex cannot be written: {cause}")).choice()
}

/// Whether the library knows a zone. It asks the system's database of zones for names.
fn is_known(zone: &Arc<str>) -> bool {
    let of = Timestamp::new_with_tz(TimeUnit::Seconds, Some(Arc::clone(zone)), Nullability::NonNullable);
    let first = ScalarValue::Primitive(PValue::I64(0));
    Scalar::try_new(DType::Extension(of.erased()), Some(first)).is_ok()
}

/// The error of a read with the column in which it was found, where the library refused a time or a zone there. Such a file is not
/// corrupt.
pub(crate) fn named(error: Error, column: Option<(&str, usize)>) -> Error {
    let cause = error.cause();
    let is_of_times = [
        "Invalid timestamp scalar",
        "Invalid timezone for timestamp scalar",
        "Invalid time scalar",
        "seconds is out of bounds",
        "unknown timezone",
    ];
    let Some((name, row)) = column.filter(|_| is_of_times.iter().any(|text| cause.contains(*text))) else {
        return error;
    };
    let text = format!("the column {name:?} has a time or a zone that Vortex does not take: {cause}");
    Error::new(error.path(), text).row(row).column(name).hint(format_args!(
        "write the file again with another time or zone, or leave the column out ({})",
        option("without_column")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_store::table::arrow_array::{
        ArrayRef, RecordBatch, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampSecondArray,
    };

    fn checked(column: ArrayRef) -> Result<()> {
        let columns = RecordBatch::try_from_iter([("seen", column)]).unwrap();
        check(Path::new("a.vortex"), Some(&columns))
    }

    #[test]
    fn times_that_the_library_panics_at_are_refused_by_name() {
        let micros = |values: Vec<Option<i64>>| TimestampMicrosecondArray::from(values);
        assert!(checked(Arc::new(micros(vec![None, Some(0), Some(253_402_207_200_999_999)]))).is_ok());
        assert!(checked(Arc::new(TimestampSecondArray::from(vec![SECONDS.start]))).is_ok());
        let error = checked(Arc::new(micros(vec![None, Some(253_402_300_800_000_000)]))).unwrap_err();
        assert!(error.is_choice() && error.row_index() == Some(1), "{error}");
        assert!(
            error.to_string().contains("the column \"seen\" has the time +010000-01-01T00:00:00"),
            "{error}"
        );
        for before in [-377_705_023_202, i64::MIN] {
            let error = checked(Arc::new(TimestampSecondArray::from(vec![before]))).unwrap_err();
            assert!(error.cause().contains("which it does not hold"), "{error}");
        }
        let noon = Time64MicrosecondArray::from(vec![43_200_000_000, 86_400_000_000]);
        let error = checked(Arc::new(noon)).unwrap_err();
        assert!(error.cause().contains("the time 24:00:00"), "{error}");
    }

    #[test]
    fn zones_that_the_library_does_not_know_are_refused_by_name() {
        let zoned = |zone: &str, values: Vec<Option<i64>>| {
            checked(Arc::new(TimestampMicrosecondArray::from(values).with_timezone(zone)))
        };
        for known in ["UTC", "+05:30"] {
            assert!(zoned(known, vec![Some(0)]).is_ok(), "{known}");
        }
        let error = zoned("Mars/Base", vec![Some(0)]).unwrap_err();
        assert!(
            error.to_string().contains("the column \"seen\" has times of the zone \"Mars/Base\""),
            "{error}"
        );
        // No time is in it.
        assert!(zoned("Mars/Base", vec![None]).is_ok());
    }

    #[test]
    fn errors_of_times_name_the_column_and_others_stay() {
        let said = "cannot read rows: Invalid timestamp scalar: out of range";
        let error = || Error::new("a.vortex", said).hint("the file is probably corrupt");
        let of_column = named(error(), Some(("seen", 7))).to_string();
        assert!(of_column.starts_with("a.vortex: row 7: the column \"seen\" has a time"), "{of_column}");
        assert!(of_column.contains(said) && !of_column.contains("corrupt"), "{of_column}");
        assert!(named(error(), None).to_string().contains("corrupt"));
        let damaged =
            Error::new("a.vortex", "cannot read rows: a chunk ends").hint("the file is probably corrupt");
        assert!(named(damaged, Some(("seen", 7))).to_string().contains("corrupt"));
    }
}
