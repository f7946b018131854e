//! Which columns of two sets of the same images have other values, and in which row.

use super::{joint_key, key_at, without_seconds};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use std::slice::from_ref;

/// Names of the columns of `wanted` whose values `found` has otherwise, row by row. Columns that `found` has not are left out, and so
/// are those of types that cannot be compared, as times of another unit. Those that Parquet has in place of others can.
pub fn differing(wanted: &RecordBatch, found: &RecordBatch) -> Vec<String> {
    let [wanted, found] =
        [wanted, found].map(|batch| without_seconds(batch).unwrap_or_else(|_| batch.clone()));
    let schema = wanted.schema_ref();
    let columns = schema.fields().iter().zip(wanted.columns());
    let others = columns.filter(|(field, column)| {
        found.column_by_name(field.name()).is_some_and(|other| differ(column, other))
    });
    others.map(|(field, _)| field.name().clone()).collect()
}

fn differ(one: &ArrayRef, other: &ArrayRef) -> bool {
    if one.len() != other.len() {
        return true;
    }
    let (a, b) = (one.data_type(), other.data_type());
    if a == b {
        return one.to_data() != other.to_data();
    }
    if !(a.is_integer() && b.is_integer() || is_text(a) && is_text(b)) {
        return false;
    }
    (0..one.len()).any(|row| key_at(one, row) != key_at(other, row))
}

/// The first column of `wanted` that `found` has with other values, and the first row that differs. Columns that `found` has not are left
/// out. Types may differ where a format has another for the same values: these are compared by value. Types of which neither
/// holds the values of the other are not compared.
pub(crate) fn first_difference(wanted: &RecordBatch, found: &RecordBatch) -> Option<(String, usize)> {
    let schema = wanted.schema_ref();
    schema.fields().iter().zip(wanted.columns()).find_map(|(field, column)| {
        let row = first_row(column, found.column_by_name(field.name())?)?;
        Some((field.name().clone(), row))
    })
}

/// The first row in which two columns differ.
fn first_row(one: &ArrayRef, other: &ArrayRef) -> Option<usize> {
    let (a, b) = (one.data_type(), other.data_type());
    let rows = one.len().min(other.len());
    let is_same_type = a == b;
    if is_same_type && one.to_data() == other.to_data() {
        return None;
    }
    let differs: fn(&ArrayRef, &ArrayRef, usize) -> bool = if a.is_floating() && b.is_floating() {
        |one, other, row| {
            !are_same_floats(key_at(one, row), key_at(other, row), is_wide(one) && is_wide(other))
        }
    } else if is_same_type
        || a.is_integer() && b.is_integer()
        || is_text(a) && is_text(b)
        || is_clock(a) && is_clock(b)
    {
        |one, other, row| key_at(one, row) != key_at(other, row)
    } else if is_moment(a) && is_moment(b) && !is_cut(a, b) {
        |one, other, row| joint_key(from_ref(one), row) != joint_key(from_ref(other), row)
    } else {
        return None;
    };
    let first = (0..rows).find(|&row| differs(one, other, row));
    first.or_else(|| (one.len() != other.len()).then_some(rows))
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_clock(kind: &DataType) -> bool {
    matches!(kind, DataType::Time32(_) | DataType::Time64(_))
}

fn is_moment(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64)
}

/// Whether times with a zone lose their nanoseconds between these types: [`crate::Format::keeps_zoned_nanoseconds`].
fn is_cut(one: &DataType, other: &DataType) -> bool {
    let is_zoned_nanos = |of: &DataType| matches!(of, DataType::Timestamp(TimeUnit::Nanosecond, Some(_)));
    is_zoned_nanos(one) != is_zoned_nanos(other)
}

fn is_wide(column: &ArrayRef) -> bool {
    *column.data_type() == DataType::Float64
}

/// Whether two numbers, given as texts, are the same. All bits of NaN are the same number.
fn are_same_floats(one: Option<String>, other: Option<String>, are_wide: bool) -> bool {
    if one == other {
        return true;
    }
    let (Some(one), Some(other)) = (one, other) else { return false };
    if are_wide {
        return matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(a), Ok(b)) if a == b);
    }
    matches!((one.parse::<f32>(), other.parse::<f32>()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        Date32Array, Date64Array, DurationSecondArray, Float32Array, Float64Array, Int32Array, Int64Array,
        LargeStringArray, StringArray, TimestampMillisecondArray, TimestampSecondArray,
    };
    use std::sync::Arc;

    fn column(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    #[test]
    fn other_values_are_found_whatever_the_types() {
        let batch = |columns: Vec<(&str, ArrayRef)>| RecordBatch::try_from_iter(columns).unwrap();
        let wanted = batch(vec![
            ("a", column(Int64Array::from(vec![Some(1), None]))),
            ("b", column(StringArray::from(vec!["x", "y"]))),
            ("c", column(Float64Array::from(vec![0.5, f64::NAN]))),
            ("d", column(DurationSecondArray::from(vec![1, 2]))),
            ("e", column(Int64Array::from(vec![1, 2]))),
        ]);
        assert!(differing(&wanted, &wanted).is_empty());
        let same = batch(vec![
            ("a", column(Int32Array::from(vec![Some(1), None]))),
            ("b", column(LargeStringArray::from(vec!["x", "y"]))),
            ("d", column(Int64Array::from(vec![1, 2]))),
        ]);
        assert!(differing(&wanted, &same).is_empty());
        let other = batch(vec![
            ("a", column(Int32Array::from(vec![1, 0]))),
            ("b", column(LargeStringArray::from(vec!["x", "z"]))),
            ("c", column(Float64Array::from(vec![0.25, f64::NAN]))),
            ("e", column(Int64Array::from(vec![1, 2]))),
        ]);
        assert_eq!(differing(&wanted, &other), ["a", "b", "c"]);
        // No text is another one.
        let plate = |array: ArrayRef| batch(vec![("plate", array)]);
        let plates = plate(column(StringArray::from(vec!["01"])));
        assert_eq!(differing(&plates, &plate(column(LargeStringArray::from(vec!["1"])))), ["plate"]);
        // Times in milliseconds where a format has none in seconds.
        let seconds = batch(vec![("time", column(TimestampSecondArray::from(vec![Some(7), None])))]);
        let times =
            |ms: i64| batch(vec![("time", column(TimestampMillisecondArray::from(vec![Some(ms), None])))]);
        assert!(differing(&seconds, &times(7000)).is_empty());
        assert_eq!(differing(&seconds, &times(7001)), ["time"]);
    }

    #[test]
    fn the_first_row_that_differs_is_found_by_value() {
        let first = |one: ArrayRef, other: ArrayRef| first_row(&one, &other);
        let floats = column(Float64Array::from(vec![Some(0.5), Some(f64::NAN), None, Some(-0.0)]));
        let nan = f64::from_bits(f64::NAN.to_bits() ^ 1);
        assert_eq!(
            first(floats.clone(), column(Float64Array::from(vec![Some(0.5), Some(nan), None, Some(0.0)]))),
            None
        );
        let other = column(Float64Array::from(vec![Some(0.5), Some(f64::NAN), Some(0.0), Some(0.0)]));
        assert_eq!(first(floats.clone(), other), Some(2));
        assert_eq!(first(floats.clone(), floats.slice(0, 3)), Some(3));
        let narrow = |values: Vec<f32>| column(Float32Array::from(values));
        assert_eq!(
            first(narrow(vec![0.1, 0.2]), column(Float64Array::from(vec![f64::from(0.1_f32), 0.3]))),
            Some(1)
        );
        // No text is another one here, as it may be where columns are joined.
        let texts = column(StringArray::from(vec!["a", "01"]));
        assert_eq!(first(texts.clone(), column(LargeStringArray::from(vec!["a", "01"]))), None);
        assert_eq!(first(texts.clone(), column(LargeStringArray::from(vec!["a", "1"]))), Some(1));
        let numbers = column(Int64Array::from(vec![Some(1), None]));
        assert_eq!(first(numbers.clone(), column(Int32Array::from(vec![Some(1), Some(0)]))), Some(1));
        assert_eq!(first(numbers, texts), None);
        let seconds = column(TimestampSecondArray::from(vec![Some(86_400), Some(7)]));
        let millis = |ms: i64| column(TimestampMillisecondArray::from(vec![86_400_000, ms]));
        assert_eq!(first(seconds.clone(), millis(7000)), None);
        assert_eq!(first(seconds, millis(7001)), Some(1));
        let dates = column(Date64Array::from(vec![86_400_000, 86_400_500]));
        assert_eq!(first(dates.clone(), millis(86_400_500)), None);
        assert_eq!(first(dates, column(Date32Array::from(vec![1, 1]))), Some(1));
    }
}
