//! Times in seconds and dates in milliseconds, which Parquet has no type for: other programs would read whole numbers.
//!
//! ```text
//!  timestamp(s), time32(s)      ──▶ timestamp(ms), time32(ms)
//!  date64, of whole days        ──▶ date32
//!  date64, of parts of days too ──▶ timestamp(ms)
//! ```

use super::durations::changed;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Time32MillisecondType, Time32SecondType, TimestampMillisecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use std::sync::Arc;

const DAY: i64 = 86_400_000;

/// The batch with times in milliseconds in place of those in seconds, and dates in days in place of those in milliseconds. A time that
/// milliseconds do not hold becomes the last or first one that they hold. Columns with such times are refused before, where they are
/// read. So the type does not depend on the values, and parts of a set agree.
///
/// # Errors
/// Arrow's error.
pub fn without_seconds(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    changed(batch, |_, column| Ok(finer(column)))
}

/// The batch with dates in days, or times in milliseconds where a date has a part of a day, in place of dates in milliseconds.
///
/// # Errors
/// Arrow's error.
pub fn without_date64(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    changed(batch, |_, column| Ok(finer(column).filter(|_| *column.data_type() == DataType::Date64)))
}

/// The column in a type that Parquet has; `None` where its own is one.
pub(crate) fn finer(column: &ArrayRef) -> Option<ArrayRef> {
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            let times = column.as_primitive::<TimestampSecondType>();
            let times = times.unary::<_, TimestampMillisecondType>(|s: i64| s.saturating_mul(1000));
            Some(Arc::new(times.with_timezone_opt(zone.clone())))
        }
        DataType::Time32(TimeUnit::Second) => {
            let times = column.as_primitive::<Time32SecondType>();
            Some(Arc::new(times.unary::<_, Time32MillisecondType>(|s: i32| s.saturating_mul(1000))))
        }
        DataType::Date64 => {
            let dates = column.as_primitive::<Date64Type>();
            let day = |ms: i64| if ms % DAY == 0 { i32::try_from(ms / DAY).map_err(drop) } else { Err(()) };
            if let Ok(days) = dates.try_unary::<_, Date32Type, ()>(day) {
                return Some(Arc::new(days));
            }
            Some(Arc::new(dates.unary::<_, TimestampMillisecondType>(|ms: i64| ms)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        Date32Array, Date64Array, Int64Array, Time32MillisecondArray, Time32SecondArray,
        TimestampMillisecondArray, TimestampSecondArray,
    };

    fn column(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    #[test]
    fn dates_alone_are_changed() {
        let seconds = column(TimestampSecondArray::from(vec![Some(7), None]));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("seen", Arc::clone(&seconds), true),
            ("day", column(Date64Array::from(vec![Some(DAY), None])), true),
            ("part", column(Date64Array::from(vec![Some(DAY + 1), None])), true),
        ]);
        let wanted = RecordBatch::try_from_iter_with_nullable([
            ("seen", seconds, true),
            ("day", column(Date32Array::from(vec![Some(1), None])), true),
            ("part", column(TimestampMillisecondArray::from(vec![Some(DAY + 1), None])), true),
        ]);
        assert_eq!(without_date64(&batch.unwrap()).unwrap(), wanted.unwrap());
    }

    #[test]
    fn times_and_dates_are_what_parquet_has() {
        let seconds = TimestampSecondArray::from(vec![Some(1_700_000_000), None]);
        let infinite = column(TimestampSecondArray::from(vec![Some(i64::MAX), None]));
        let count = column(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("seen", column(seconds.clone()), true),
            ("zoned", column(seconds.with_timezone("Europe/Berlin")), true),
            ("begun", column(Time32SecondArray::from(vec![Some(86_399), None])), true),
            ("day", column(Date64Array::from(vec![Some(-DAY), None])), true),
            ("part", column(Date64Array::from(vec![Some(-1), Some(DAY)])), true),
            ("infinite", infinite, true),
            ("count", Arc::clone(&count), true),
        ]);
        let found = without_seconds(&batch.unwrap()).unwrap();
        let times = TimestampMillisecondArray::from(vec![Some(1_700_000_000_000), None]);
        let wanted = RecordBatch::try_from_iter_with_nullable([
            ("seen", column(times.clone()), true),
            ("zoned", column(times.with_timezone("Europe/Berlin")), true),
            ("begun", column(Time32MillisecondArray::from(vec![Some(86_399_000), None])), true),
            ("day", column(Date32Array::from(vec![Some(-1), None])), true),
            ("part", column(TimestampMillisecondArray::from(vec![-1, DAY])), true),
            ("infinite", column(TimestampMillisecondArray::from(vec![Some(i64::MAX), None])), true),
            ("count", count, true),
        ]);
        assert_eq!(found, wanted.unwrap());
    }
}
