//! The keys of joins: values of columns as both sides write them, and which columns can have equal ones.
//!
//! ```text
//!  1, 1.0, "01"              ─▶ 1
//!  1.50 (decimal), 1.5       ─▶ 1.5
//!  timestamps in any unit    ─▶ 2020-01-31T08:30:00, or 2020-01-31 for midnight
//!  durations in any unit     ─▶ PT1.5S
//!  a time against a number   ─▶ an error
//! ```

use super::{joined, key_at};
use crate::{Error, Result};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::path::Path;

/// A value as both sides write it: whole numbers without a fraction or zeros in front, so that 1, 1.0 and 01 are the same.
pub(crate) fn as_written(value: &str) -> String {
    let whole = value.strip_suffix(".0").unwrap_or(value);
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        let digits = digits.trim_start_matches('0');
        // Nothing is below zero in -0.0.
        return if digits.is_empty() { "0".to_owned() } else { format!("{sign}{digits}") };
    }
    value.trim().to_owned()
}

/// The values of some columns in a row as one text; `None` where one of them is null. Decimals have no zeros at their end, so that
/// 0.50 is the 0.5 of a float. Times are the same in each unit, with a zone or as a text. A time without a zone is of UTC.
pub(crate) fn joint_key(columns: &[ArrayRef], row: usize) -> Option<String> {
    let values = columns.iter().map(|column| {
        let value = key_at(column, row)?;
        if column.data_type().is_decimal() && value.contains('.') {
            return Some(as_written(value.trim_end_matches('0').trim_end_matches('.')));
        }
        let value = as_written(&value);
        Some(match Kind::of(column.data_type()) {
            Kind::Moment | Kind::Text => plain_time(&value).map_or_else(|| value.clone(), str::to_owned),
            Kind::TimeOfDay | Kind::Duration | Kind::Number => value,
        })
    });
    values.collect::<Option<Vec<_>>>().map(|values| joined(&values))
}

/// A date and time in ISO 8601 without the zone of UTC, and midnight without its hours: the day. `None` for other texts.
fn plain_time(value: &str) -> Option<&str> {
    let (day, _) = value.split_once('T')?;
    let is_day = day.len() >= 10 && day.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+'));
    let time = value.strip_suffix('Z').unwrap_or(value);
    is_day.then(|| time.strip_suffix("T00:00:00").unwrap_or(time))
}

/// Values that can be equal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Moment,
    TimeOfDay,
    Duration,
    Number,
    /// A text may write any of them.
    Text,
}

impl Kind {
    fn of(kind: &DataType) -> Self {
        match kind {
            DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64 => Self::Moment,
            DataType::Time32(_) | DataType::Time64(_) => Self::TimeOfDay,
            DataType::Duration(_) => Self::Duration,
            other if other.is_numeric() || *other == DataType::Boolean => Self::Number,
            _ => Self::Text,
        }
    }
}

/// Refuses columns of a table, `path`, with which no column of the images can agree: times beside numbers, or beside durations. The
/// numbers of two such columns may be equal, but they are of other things.
///
/// # Errors
/// The first such column.
pub(crate) fn refuse_other_kinds(
    path: &Path,
    (names, columns): (&[String], &[ArrayRef]),
    (their_names, theirs): (&[String], &[ArrayRef]),
) -> Result<()> {
    let pairs = names.iter().zip(columns).zip(their_names.iter().zip(theirs));
    for ((name, column), (their_name, their)) in pairs {
        let (own, other) = (column.data_type(), their.data_type());
        let kinds = [own, other].map(Kind::of);
        if kinds[0] == kinds[1] || kinds.contains(&Kind::Text) {
            continue;
        }
        let cause = format!(
            "column {name:?} has Arrow's type {own}, and the images' column {their_name:?} has {other}: times and numbers \
             are never equal"
        );
        let hint = "cast one column, so that both are times, both are durations or both are numbers";
        return Err(Error::new(path, cause).hint(hint).choice());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        BooleanArray, Date32Array, DurationMillisecondArray, DurationSecondArray, Float64Array, Int64Array,
        StringArray, Time32MillisecondArray, Time32SecondArray, TimestampMicrosecondArray,
        TimestampMillisecondArray,
    };
    use std::sync::Arc;

    fn column(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    fn keys(column: &ArrayRef) -> Vec<Option<String>> {
        (0..column.len()).map(|row| joint_key(std::slice::from_ref(column), row)).collect()
    }

    #[test]
    fn numbers_below_zero_and_zero_itself_are_the_same_however_they_are_written() {
        let floats = keys(&column(Float64Array::from(vec![-0.0, 0.0, -1.0, -1.5])));
        let found: Vec<&str> = floats.iter().flatten().map(String::as_str).collect();
        assert_eq!(found, ["0", "0", "-1", "-1.5"]);
        assert_eq!(keys(&column(Int64Array::from(vec![0, 0, -1]))), floats[..3]);
        for (value, expected) in [("-01", "-1"), ("-", "-"), ("--1", "--1"), ("-A", "-A"), ("1-2", "1-2")] {
            assert_eq!(as_written(value), expected, "{value:?}");
        }
    }

    #[test]
    fn times_agree_in_each_unit_and_with_their_texts() {
        let milliseconds = keys(&column(TimestampMillisecondArray::from(vec![
            Some(1_577_836_800_000),
            Some(1_577_836_801_500),
            None,
        ])));
        let microseconds = TimestampMicrosecondArray::from(vec![
            Some(1_577_836_800_000_000),
            Some(1_577_836_801_500_000),
            None,
        ]);
        assert_eq!(keys(&column(microseconds)), milliseconds);
        let texts = StringArray::from(vec![Some("2020-01-01T00:00:00"), Some("2020-01-01T00:00:01.5"), None]);
        assert_eq!(keys(&column(texts)), milliseconds);
        assert_eq!(keys(&column(Date32Array::from(vec![18_262]))), milliseconds[..1]);
        let equal_number = column(TimestampMicrosecondArray::from(vec![1_577_836_800_000]));
        assert_ne!(keys(&equal_number), milliseconds[..1]);
        let seconds = keys(&column(DurationSecondArray::from(vec![1000])));
        assert_eq!(keys(&column(DurationMillisecondArray::from(vec![1_000_000]))), seconds);
        assert_ne!(keys(&column(DurationMillisecondArray::from(vec![1000]))), seconds);
        let seconds = keys(&column(Time32SecondArray::from(vec![60])));
        assert_eq!(keys(&column(Time32MillisecondArray::from(vec![60_000]))), seconds);
        assert_ne!(keys(&column(Time32MillisecondArray::from(vec![60]))), seconds);
    }

    #[test]
    fn times_are_not_compared_with_numbers() {
        let (own, others) = (["seen".to_owned()], ["at".to_owned()]);
        let refused = |a: &ArrayRef, b: &ArrayRef| {
            let (a, b) = (std::slice::from_ref(a), std::slice::from_ref(b));
            refuse_other_kinds(Path::new("t"), (&own, a), (&others, b)).err()
        };
        let number = column(Int64Array::from(vec![1]));
        let time = column(TimestampMillisecondArray::from(vec![1]));
        let duration = column(DurationSecondArray::from(vec![1]));
        let clock = column(Time32SecondArray::from(vec![1]));
        let text = column(StringArray::from(vec!["1"]));
        let truth = column(BooleanArray::from(vec![true]));
        for (a, b) in [(&number, &time), (&time, &duration), (&duration, &number), (&clock, &time)] {
            assert!(refused(a, b).is_some() && refused(b, a).is_some());
        }
        let error = refused(&number, &time).unwrap();
        let said = error.to_string();
        assert!(error.is_choice(), "{said}");
        assert!(said.contains("column \"seen\" has Arrow's type Int64"), "{said}");
        assert!(said.contains("column \"at\" has Timestamp"), "{said}");
        let day = column(Date32Array::from(vec![1]));
        let float = column(Float64Array::from(vec![1.0]));
        for (a, b) in [(&time, &day), (&number, &float), (&text, &time), (&text, &number), (&truth, &number)]
        {
            assert!(refused(a, b).is_none() && refused(b, a).is_none());
        }
    }
}
