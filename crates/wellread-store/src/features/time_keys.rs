//! Times as texts: equal values have one text, in whatever unit a column has them.
//!
//! ```text
//!  timestamp(s, ms, us, ns), date32, date64 ─▶ 2020-01-31, 2020-01-31T08:30:00.25
//!  time32, time64                           ─▶ 08:30:00.25
//!  duration                                 ─▶ 90.25 s, in joins alone
//! ```
//!
//! Midnight is the day, so that dates equal timestamps. A time with a zone is that of UTC.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_schema::{DataType, TimeUnit};
use std::fmt::Write;

const SECONDS_PER_DAY: i64 = 86_400;
const NANOSECONDS: i64 = 1_000_000_000;

/// The moment, the day or the time of day in a row, which is not null; `None` in columns of other types.
pub(super) fn time_at(column: &ArrayRef, row: usize) -> Option<String> {
    macro_rules! value {
        ($of:ty) => {
            column.as_primitive::<$of>().value(row)
        };
    }
    Some(match column.data_type() {
        DataType::Timestamp(unit, _) => moment(match unit {
            TimeUnit::Second => (value!(TimestampSecondType), 0),
            TimeUnit::Millisecond => parts(value!(TimestampMillisecondType), *unit),
            TimeUnit::Microsecond => parts(value!(TimestampMicrosecondType), *unit),
            TimeUnit::Nanosecond => parts(value!(TimestampNanosecondType), *unit),
        }),
        DataType::Date32 => moment((i64::from(value!(Date32Type)) * SECONDS_PER_DAY, 0)),
        DataType::Date64 => moment(parts(value!(Date64Type), TimeUnit::Millisecond)),
        DataType::Time32(TimeUnit::Second) => clock((i64::from(value!(Time32SecondType)), 0)),
        DataType::Time32(_) => clock(parts(i64::from(value!(Time32MillisecondType)), TimeUnit::Millisecond)),
        DataType::Time64(TimeUnit::Nanosecond) => {
            clock(parts(value!(Time64NanosecondType), TimeUnit::Nanosecond))
        }
        DataType::Time64(_) => clock(parts(value!(Time64MicrosecondType), TimeUnit::Microsecond)),
        _ => return None,
    })
}

/// The duration in a row, which is not null; `None` in columns of other types.
pub(super) fn duration_at(column: &ArrayRef, row: usize) -> Option<String> {
    let DataType::Duration(unit) = column.data_type() else { return None };
    let ticks = match unit {
        TimeUnit::Second => column.as_primitive::<DurationSecondType>().value(row),
        TimeUnit::Millisecond => column.as_primitive::<DurationMillisecondType>().value(row),
        TimeUnit::Microsecond => column.as_primitive::<DurationMicrosecondType>().value(row),
        TimeUnit::Nanosecond => column.as_primitive::<DurationNanosecondType>().value(row),
    };
    let (per_second, length) = (per_second(*unit).unsigned_abs(), ticks.unsigned_abs());
    let nanoseconds = length % per_second * (NANOSECONDS.unsigned_abs() / per_second);
    let mut text = if ticks < 0 { "-".to_owned() } else { String::new() };
    let _ = write!(text, "{}", length / per_second);
    push_fraction(&mut text, nanoseconds);
    text.push_str(" s");
    Some(text)
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => NANOSECONDS,
    }
}

/// The whole seconds before a time, and the nanoseconds after them.
fn parts(ticks: i64, unit: TimeUnit) -> (i64, u64) {
    let per_second = per_second(unit);
    let rest = ticks.rem_euclid(per_second) * (NANOSECONDS / per_second);
    (ticks.div_euclid(per_second), rest.unsigned_abs())
}

/// A moment by its seconds since 1970. It has no limits: columns hold years that calendars of libraries refuse.
fn moment((seconds, nanoseconds): (i64, u64)) -> String {
    let mut text = day(seconds.div_euclid(SECONDS_PER_DAY));
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    if (of_day, nanoseconds) != (0, 0) {
        text.push('T');
        text.push_str(&clock((of_day, nanoseconds)));
    }
    text
}

/// The day of this number in the Gregorian calendar, 1970-01-01 being 0.
fn day(number: i64) -> String {
    // Years begin with March here, so that the day of a leap year is the last. An era has 400 years.
    let from_march = number + 719_468;
    let (era, of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{of_month:02}")
}

fn clock((seconds, nanoseconds): (i64, u64)) -> String {
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    push_fraction(&mut text, nanoseconds);
    text
}

fn push_fraction(text: &mut String, nanoseconds: u64) {
    if nanoseconds > 0 {
        let digits = format!("{nanoseconds:09}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        Array, Date32Array, Date64Array, DurationMillisecondArray, DurationNanosecondArray,
        DurationSecondArray, Int64Array, Time32MillisecondArray, Time32SecondArray, Time64MicrosecondArray,
        Time64NanosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
        TimestampNanosecondArray, TimestampSecondArray,
    };
    use std::sync::Arc;

    fn texts(of: impl Fn(&ArrayRef, usize) -> Option<String>, array: impl Array + 'static) -> Vec<String> {
        let column: ArrayRef = Arc::new(array);
        (0..column.len()).filter_map(|row| of(&column, row)).collect()
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = vec![0, -1, 18_262, 11_016, 11_017, 19_782, 19_783, -719_528, 2_932_896, 2_932_897];
        let wanted = [
            "1970-01-01",
            "1969-12-31",
            "2020-01-01",
            "2000-02-29",
            "2000-03-01",
            "2024-02-29",
            "2024-03-01",
            "0000-01-01",
            "9999-12-31",
            "10000-01-01",
        ];
        assert_eq!(texts(time_at, Date32Array::from(days)), wanted);
    }

    #[test]
    fn equal_times_have_one_text_in_each_unit() {
        let wanted = ["2020-01-01", "2020-01-01T00:00:01", "1969-12-31T23:59:59"];
        let seconds = [1_577_836_800, 1_577_836_801, -1];
        let times = |per: i64| seconds.iter().map(|s| s * per).collect::<Vec<i64>>();
        assert_eq!(texts(time_at, TimestampSecondArray::from(times(1))), wanted);
        let milliseconds = TimestampMillisecondArray::from(times(1000));
        assert_eq!(texts(time_at, milliseconds.clone().with_timezone("Europe/Berlin")), wanted);
        assert_eq!(texts(time_at, milliseconds), wanted);
        assert_eq!(texts(time_at, TimestampMicrosecondArray::from(times(1_000_000))), wanted);
        assert_eq!(texts(time_at, TimestampNanosecondArray::from(times(NANOSECONDS))), wanted);
        assert_eq!(texts(time_at, Date64Array::from(times(1000))), wanted);
        let fine = TimestampNanosecondArray::from(vec![-1, 1_500_000_000]);
        assert_eq!(texts(time_at, fine), ["1969-12-31T23:59:59.999999999", "1970-01-01T00:00:01.5"]);
        // The ends of a column are times as well.
        let ends = texts(time_at, TimestampSecondArray::from(vec![i64::MAX, i64::MIN]));
        assert_eq!(ends.len(), 2);
        let microseconds = texts(time_at, TimestampMicrosecondArray::from(vec![i64::MAX]));
        assert_eq!(microseconds, ["294247-01-10T04:00:54.775807"]);
    }

    #[test]
    fn times_of_day_and_durations_have_one_text_in_each_unit() {
        let wanted = ["08:30:00", "00:00:00"];
        assert_eq!(texts(time_at, Time32SecondArray::from(vec![30_600, 0])), wanted);
        assert_eq!(texts(time_at, Time32MillisecondArray::from(vec![30_600_000, 0])), wanted);
        assert_eq!(texts(time_at, Time64MicrosecondArray::from(vec![30_600_000_000, 0])), wanted);
        let fine = Time64NanosecondArray::from(vec![30_600_250_000_000]);
        assert_eq!(texts(time_at, fine), ["08:30:00.25"]);
        assert_eq!(texts(duration_at, DurationSecondArray::from(vec![90, -1])), ["90 s", "-1 s"]);
        let milliseconds = DurationMillisecondArray::from(vec![90_000, -1000, -250]);
        assert_eq!(texts(duration_at, milliseconds), ["90 s", "-1 s", "-0.25 s"]);
        let smallest = texts(duration_at, DurationNanosecondArray::from(vec![i64::MIN]));
        assert_eq!(smallest, ["-9223372036.854775808 s"]);
        // Numbers and durations are no times.
        assert!(texts(time_at, Int64Array::from(vec![1])).is_empty());
        assert!(texts(time_at, DurationSecondArray::from(vec![1])).is_empty());
        assert!(texts(duration_at, Int64Array::from(vec![1])).is_empty());
    }
}
