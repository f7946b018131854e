//! Dates, times and durations as text in ISO 8601, and those that other tables and libraries have no value for.
//!
//! ```text
//!  date32, date64   ──▶ 2026-11-21, beyond four digits +012026-11-21
//!  timestamp        ──▶ 2026-11-21T05:38:56.4, with a zone as a time of UTC: 2026-11-21T05:38:56.4Z
//!  time32, time64   ──▶ 05:38:56.4
//!  duration         ──▶ PT1M30S
//! ```
//!
//! Every number has a text: years of more than four digits are written as ISO 8601 extends it. A library of times would
//! refuse them, or panic.

use crate::Error;
use crate::surface::option;
use arrow_array::{Array, ArrayRef, downcast_primitive_array};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, TimeUnit};
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

/// Seconds of a day.
const DAY: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;

/// The text of a date, time or duration; `None` in columns of other types, and where there is no value.
pub(super) fn text_at(column: &ArrayRef, row: usize) -> Option<String> {
    let (seconds, nanos) = moment(column, row)?;
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    Some(match column.data_type() {
        DataType::Date32 => date(days),
        DataType::Date64 if (second, nanos) == (0, 0) => date(days),
        DataType::Time32(_) | DataType::Time64(_) => clock(seconds, nanos),
        DataType::Duration(_) => jiff::SignedDuration::new(seconds, nanos as i32).to_string(),
        DataType::Timestamp(_, Some(_)) => format!("{}T{}Z", date(days), clock(second, nanos)),
        _ => format!("{}T{}", date(days), clock(second, nanos)),
    })
}

/// The row and the text of the first date or time that is not within `seconds`. They count from 1970, for times of day from midnight.
/// `None` also in columns of other types.
pub fn first_outside(column: &ArrayRef, seconds: &Range<i64>) -> Option<(usize, String)> {
    parts_of_second(column.data_type())?;
    let is_outside = |row: &usize| moment(column, *row).is_some_and(|(second, _)| !seconds.contains(&second));
    let row = (0..column.len()).find(is_outside)?;
    Some((row, text_at(column, row)?))
}

/// The row and the text of the first date or time of which the number is infinity in DuckDB. With a zone, DuckDB stores microseconds.
/// `None` also in columns of other types.
pub fn first_infinite(column: &ArrayRef) -> Option<(usize, String)> {
    let (of, parts) = match column.data_type() {
        // DuckDB stores days.
        DataType::Date64 => (&DataType::Date32, DAY * 1000),
        of @ (DataType::Date32
        | DataType::Timestamp(_, None)
        | DataType::Timestamp(TimeUnit::Microsecond, Some(_))) => (of, 1),
        _ => return None,
    };
    let is_infinite =
        |row: &usize| number(column, *row).is_some_and(|number| is_infinity(of, number / parts));
    let row = (0..column.len()).find(is_infinite)?;
    Some((row, text_at(column, row)?))
}

/// Whether a number of this type is infinity in DuckDB, of either sign.
fn is_infinity(of: &DataType, number: i64) -> bool {
    let most = match of {
        DataType::Date32 => i64::from(i32::MAX),
        DataType::Date64 | DataType::Timestamp(_, _) => i64::MAX,
        _ => return false,
    };
    number == most || number == -most
}

/// The row of the first value that is no time anywhere else, and what it is. The largest number is DuckDB's infinity, in nanoseconds
/// where `has_infinity` says so: pandas ends there. Parquet has no seconds, and its milliseconds end earlier.
pub(super) fn no_time(column: &ArrayRef, has_infinity: bool) -> Option<(usize, String)> {
    let of = column.data_type();
    if !matches!(of, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _)) {
        return None;
    }
    let is_nanos = matches!(of, DataType::Timestamp(TimeUnit::Nanosecond, _));
    let is_seconds = matches!(of, DataType::Timestamp(TimeUnit::Second, _));
    (0..column.len()).find_map(|row| {
        let number = number(column, row)?;
        let what = if number == i64::MIN {
            format!("the number {number}, which NumPy takes for no time")
        } else if is_infinity(of, number) && (!is_nanos || has_infinity) {
            let sign = if number < 0 { "-" } else { "" };
            format!("the time {sign}infinity, which other tables and libraries do not have")
        } else if is_seconds && number.checked_mul(1000).is_none() {
            format!("the time {}, which milliseconds do not hold", text_at(column, row)?)
        } else {
            return None;
        };
        Some((row, what))
    })
}

/// The error of a value that [`no_time`] found in a column.
pub(super) fn refusal(path: &Path, name: &str, what: &str) -> Error {
    Error::new(path, format_args!("the column {name:?} has {what}")).column(name).hint(format_args!(
        "put NULL or another time in its place, or leave the column out ({})",
        option("without_column")
    ))
}

/// Parts of a second that a number of this type counts, or `None` for types of something else. Days have none: see [`moment`].
fn parts_of_second(of: &DataType) -> Option<i64> {
    let unit = match of {
        DataType::Date32 => &TimeUnit::Second,
        DataType::Date64 => &TimeUnit::Millisecond,
        DataType::Time32(unit)
        | DataType::Time64(unit)
        | DataType::Timestamp(unit, _)
        | DataType::Duration(unit) => unit,
        _ => return None,
    };
    Some(match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => NANOS,
    })
}

/// Whole seconds, rounded down, and the nanoseconds behind them.
fn moment(column: &ArrayRef, row: usize) -> Option<(i64, i64)> {
    let parts = parts_of_second(column.data_type())?;
    let number = number(column, row)?;
    if *column.data_type() == DataType::Date32 {
        return Some((number * DAY, 0));
    }
    Some((number.div_euclid(parts), number.rem_euclid(parts) * (NANOS / parts)))
}

/// The number of a value; `None` where there is none.
fn number(column: &ArrayRef, row: usize) -> Option<i64> {
    if column.is_null(row) {
        return None;
    }
    let array: &dyn Array = column;
    downcast_primitive_array!(
        array => array.value(row).to_i64(),
        _ => None
    )
}

/// A day since 1970, in the Gregorian calendar, also before it began.
fn date(days: i64) -> String {
    // Years begin in March, so that the day of a leap year is their last one; eras have 400 years.
    let from_march = days + 719_468;
    let (era, day) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + 400 * era + next;
    if (0..10_000).contains(&year) {
        format!("{year:04}-{month:02}-{day:02}")
    } else {
        format!("{year:+07}-{month:02}-{day:02}")
    }
}

/// Seconds since midnight.
fn clock(seconds: i64, nanos: i64) -> String {
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if nanos > 0 {
        let fraction = format!("{nanos:09}");
        let _ = write!(text, ".{}", fraction.trim_end_matches('0'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        Date32Array, Date64Array, DurationSecondArray, Int64Array, Time32SecondArray, Time64NanosecondArray,
        TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
    };
    use std::sync::Arc;

    fn column(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    #[test]
    fn dates_and_times_are_text_in_iso_8601() {
        let texts = |column: ArrayRef| -> Vec<Option<String>> {
            (0..column.len()).map(|row| text_at(&column, row)).collect()
        };
        let all = |column: ArrayRef| -> Vec<String> { texts(column).into_iter().flatten().collect() };
        assert_eq!(
            all(column(Date32Array::from(vec![0, -1, 11_016, 19_782, 20_778, -719_528, -719_529]))),
            [
                "1970-01-01",
                "1969-12-31",
                "2000-02-29",
                "2024-02-29",
                "2026-11-21",
                "0000-01-01",
                "-000001-12-31"
            ]
        );
        assert_eq!(
            all(column(Date64Array::from(vec![86_400_000, 86_400_500]))),
            ["1970-01-02", "1970-01-02T00:00:00.5"]
        );
        let micros = TimestampMicrosecondArray::from(vec![Some(1_700_000_000_400_000), None, Some(-1)]);
        assert_eq!(
            texts(column(micros.clone())),
            [Some("2023-11-14T22:13:20.4".to_owned()), None, Some("1969-12-31T23:59:59.999999".to_owned())]
        );
        assert_eq!(all(column(micros.with_timezone("Europe/Vienna")))[0], "2023-11-14T22:13:20.4Z");
        // No zone has to be known.
        let zoned = TimestampMillisecondArray::from(vec![1]).with_timezone("Mars/Base");
        assert_eq!(all(column(zoned)), ["1970-01-01T00:00:00.001Z"]);
        assert_eq!(
            all(column(TimestampNanosecondArray::from(vec![1, i64::MAX]))),
            ["1970-01-01T00:00:00.000000001", "2262-04-11T23:47:16.854775807"]
        );
        assert_eq!(all(column(Time32SecondArray::from(vec![0, 86_399]))), ["00:00:00", "23:59:59"]);
        assert_eq!(
            all(column(Time64NanosecondArray::from(vec![20_336_000_000_001, 86_400_000_000_000]))),
            ["05:38:56.000000001", "24:00:00"]
        );
        assert_eq!(all(column(DurationSecondArray::from(vec![90, 0, -1]))), ["PT1M30S", "PT0S", "-PT1S"]);
        assert_eq!(text_at(&column(Int64Array::from(vec![7])), 0), None);
    }

    #[test]
    fn every_number_has_a_text() {
        let text = |column: ArrayRef| text_at(&column, 0).unwrap();
        assert_eq!(text(column(Date32Array::from(vec![i32::MAX]))), "+5881580-07-11");
        assert_eq!(
            text(column(TimestampMicrosecondArray::from(vec![i64::MAX]))),
            "+294247-01-10T04:00:54.775807"
        );
        assert_eq!(
            text(column(TimestampMicrosecondArray::from(vec![-i64::MAX]))),
            "-290308-12-21T19:59:05.224193"
        );
        for number in [i64::MIN, i64::MAX] {
            let seconds = text(column(TimestampSecondArray::from(vec![number])));
            assert!(seconds.len() > 25 && seconds.contains("292277"), "{seconds}");
            assert!(!text(column(DurationSecondArray::from(vec![number]))).is_empty());
        }
    }

    #[test]
    fn values_that_are_no_times_elsewhere_are_found() {
        let infinite = "the time infinity, which other tables and libraries do not have";
        let found = |row: usize, what: &str| Some((row, what.to_owned()));
        let micros = |numbers: Vec<Option<i64>>| column(TimestampMicrosecondArray::from(numbers));
        assert_eq!(no_time(&micros(vec![None, Some(0), Some(i64::MAX)]), false), found(2, infinite));
        let before = no_time(&micros(vec![Some(-i64::MAX)]), false).unwrap().1;
        assert!(before.contains("-infinity"), "{before}");
        assert_eq!(no_time(&micros(vec![Some(i64::MAX - 1), None]), false), None);
        let smallest = no_time(&micros(vec![Some(i64::MIN)]), false).unwrap().1;
        assert_eq!(smallest, "the number -9223372036854775808, which NumPy takes for no time");
        assert_eq!(no_time(&column(Date32Array::from(vec![0, i32::MAX])), false), found(1, infinite));
        // The last time of pandas.
        let nanos = column(TimestampNanosecondArray::from(vec![i64::MAX]));
        assert_eq!((no_time(&nanos, false), no_time(&nanos, true)), (None, found(0, infinite)));
        let seconds = column(TimestampSecondArray::from(vec![1_700_000_000, 9_223_372_036_854_776]));
        let (row, what) = no_time(&seconds, false).unwrap();
        assert_eq!((row, what.contains("which milliseconds do not hold")), (1, true), "{what}");
        assert_eq!(no_time(&column(Int64Array::from(vec![i64::MAX])), true), None);
        let error = refusal(Path::new("a.duckdb"), "until", infinite).row(2);
        assert_eq!(error.column_name(), Some("until"));
        let error = error.to_string();
        assert!(error.starts_with("a.duckdb: row 2: the column \"until\" has the time infinity"), "{error}");
        assert!(error.contains("put NULL or another time in its place"), "{error}");
    }

    #[test]
    fn numbers_that_are_infinity_in_duckdb_are_found() {
        let row = |column: ArrayRef| first_infinite(&column).map(|(row, _)| row);
        let nanos = column(TimestampNanosecondArray::from(vec![Some(i64::MAX - 1), None, Some(i64::MAX)]));
        assert_eq!(first_infinite(&nanos), Some((2, "2262-04-11T23:47:16.854775807".to_owned())));
        assert_eq!(row(column(TimestampNanosecondArray::from(vec![-i64::MAX]))), Some(0));
        assert_eq!(row(column(TimestampSecondArray::from(vec![0, i64::MAX]))), Some(1));
        assert_eq!(row(column(TimestampMillisecondArray::from(vec![0, -i64::MAX]))), Some(1));
        let micros = TimestampMicrosecondArray::from(vec![0, i64::MAX]);
        assert_eq!(row(column(micros.clone())), Some(1));
        assert_eq!(row(column(micros.with_timezone("UTC"))), Some(1));
        // They are cut to microseconds.
        assert_eq!(row(column(TimestampNanosecondArray::from(vec![i64::MAX]).with_timezone("UTC"))), None);
        assert_eq!(row(column(Date32Array::from(vec![1 - i32::MAX, -i32::MAX]))), Some(1));
        let days = i64::from(i32::MAX);
        assert_eq!(row(column(Date64Array::from(vec![(days - 1) * 86_400_000, days * 86_400_000]))), Some(1));
        assert_eq!(row(column(Int64Array::from(vec![i64::MAX]))), None);
    }

    #[test]
    fn the_first_time_outside_of_a_range_is_found() {
        let years = TimestampSecondArray::from(vec![Some(0), None, Some(253_402_300_800)]);
        let outside = (2, "+010000-01-01T00:00:00".to_owned());
        assert_eq!(first_outside(&column(years.clone()), &(0..253_402_300_800)), Some(outside));
        assert_eq!(first_outside(&column(years), &(0..253_402_300_801)), None);
        assert_eq!(first_outside(&column(Int64Array::from(vec![7])), &(0..1)), None);
    }
}
