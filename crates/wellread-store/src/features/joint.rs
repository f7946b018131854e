//! The keys of joins: values of columns as both sides write them, and which columns can have equal ones.
//!
//! ```text
//!  1, 1.0, "01" beside 1     ─▶ 1
//!  "01" beside texts         ─▶ 01, which is not 1
//!  1.50 (decimal), 1.5       ─▶ 1.5
//!  timestamps in any unit    ─▶ 2020-01-31T08:30:00, or 2020-01-31 for midnight
//!  durations in any unit     ─▶ PT1.5S
//!  a time against a number   ─▶ an error
//! ```

use super::{joined, known_at};
use crate::{Error, Result};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::path::Path;

/// A value as both sides write it: whole numbers without a fraction or zeros in front, so that 1, 1.0 and 01 are the same.
pub(crate) fn as_written(value: &str) -> String {
    let value = value.trim();
    let whole = value.strip_suffix(".0").unwrap_or(value);
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        let digits = digits.trim_start_matches('0');
        // Nothing is below zero in -0.0.
        return if digits.is_empty() { "0".to_owned() } else { format!("{sign}{digits}") };
    }
    value.to_owned()
}

/// The values of some columns in a row as one text, whatever the other side has; `None` where one of them is null or NaN. Decimals have no zeros at their end, so that
/// 0.50 is the 0.5 of a float. Times are the same in each unit, with a zone or as a text. A time without a zone is of UTC.
pub(crate) fn joint_key(columns: &[ArrayRef], row: usize) -> Option<String> {
    key_of(columns, &[], row)
}

/// As [`joint_key`]; texts of the columns that are `exact` stay as they are, but for spaces around them.
fn key_of(columns: &[ArrayRef], exact: &[bool], row: usize) -> Option<String> {
    let values = columns.iter().enumerate().map(|(i, column)| {
        let value = known_at(column, row)?;
        if exact.get(i).is_some_and(|exact| *exact) {
            return Some(value.trim().to_owned());
        }
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

/// How the values of two sides are compared, column by column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    /// Whether both sides have texts, so that "01" and "1" are two values.
    exact: Vec<bool>,
}

impl Comparison {
    /// That of columns of a table, `path`, with those of the images. Times are not compared with numbers, nor with durations. The
    /// numbers of two such columns may be equal, but they are of other things.
    ///
    /// # Errors
    /// The first such column.
    pub fn of(
        path: &Path,
        (names, columns): (&[String], &[ArrayRef]),
        (their_names, theirs): (&[String], &[ArrayRef]),
    ) -> Result<Self> {
        let pairs = names.iter().zip(columns).zip(their_names.iter().zip(theirs));
        let mut exact = Vec::with_capacity(columns.len());
        for ((name, column), (their_name, their)) in pairs {
            let (own, other) = (column.data_type(), their.data_type());
            let kinds = [own, other].map(Kind::of);
            if kinds[0] == kinds[1] || kinds.contains(&Kind::Text) {
                exact.push(kinds == [Kind::Text; 2]);
                continue;
            }
            let cause = format!(
                "column {name:?} has Arrow's type {own}, and the images' column {their_name:?} has {other}: times and numbers \
                 are never equal"
            );
            let hint = "cast one column, so that both are times, both are durations or both are numbers";
            return Err(Error::new(path, cause).hint(hint).choice());
        }
        Ok(Self { exact })
    }

    /// The same of all columns but one.
    pub fn without(&self, column: usize) -> Self {
        let others = self.exact.iter().enumerate().filter(|(at, _)| *at != column);
        Self { exact: others.map(|(_, exact)| *exact).collect() }
    }

    /// Whether both sides have texts in all columns.
    pub fn is_of_texts(&self) -> bool {
        self.exact.iter().all(|exact| *exact)
    }

    /// The values of some columns in a row as one text; `None` where one of them is null or NaN.
    pub fn key(&self, columns: &[ArrayRef], row: usize) -> Option<String> {
        key_of(columns, &self.exact, row)
    }
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
    fn texts_beside_texts_are_compared_as_they_are() {
        let names = ["plate".to_owned(), "site".to_owned()];
        let plates = column(StringArray::from(vec!["01", "1", " 001 ", "1.0"]));
        let texts = column(StringArray::from(vec!["2", "2", "2", "2"]));
        let sites = column(Int64Array::from(vec![2, 2, 2, 2]));
        let (own, theirs) = ([Arc::clone(&plates), texts], [Arc::clone(&plates), sites]);
        let both = Comparison::of(Path::new("t"), (&names, &own), (&names, &theirs)).unwrap();
        let keys =
            |columns: &[ArrayRef]| (0..4).map(|row| both.key(columns, row).unwrap()).collect::<Vec<_>>();
        assert_eq!(keys(&own), keys(&theirs));
        let mut apart = keys(&own);
        apart.sort();
        apart.dedup();
        assert_eq!(apart.len(), 4, "{apart:?}");
        // Beside numbers all four are 1.
        let numbers = column(Int64Array::from(vec![1, 1, 1, 1]));
        let (name, plates, numbers) =
            (&names[..1], std::slice::from_ref(&plates), std::slice::from_ref(&numbers));
        let mixed = Comparison::of(Path::new("t"), (name, plates), (name, numbers)).unwrap();
        let found: Vec<_> = (0..4).map(|row| mixed.key(plates, row)).collect();
        assert_eq!(found, (0..4).map(|row| mixed.key(numbers, row)).collect::<Vec<_>>());
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
            Comparison::of(Path::new("t"), (&own, a), (&others, b)).err()
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
