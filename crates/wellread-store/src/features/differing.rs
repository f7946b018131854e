//! Which columns of two sets of the same images have other values.

use super::{as_written, key_at, without_seconds};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

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
    let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if !(a.is_integer() && b.is_integer() || is_text(a) && is_text(b)) {
        return false;
    }
    let written = |column: &ArrayRef, row| key_at(column, row).map(|value| as_written(&value));
    (0..one.len()).any(|row| written(one, row) != written(other, row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        DurationSecondArray, Float64Array, Int32Array, Int64Array, LargeStringArray, StringArray,
        TimestampMillisecondArray, TimestampSecondArray,
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
        // Times in milliseconds where a format has none in seconds.
        let seconds = batch(vec![("time", column(TimestampSecondArray::from(vec![Some(7), None])))]);
        let times =
            |ms: i64| batch(vec![("time", column(TimestampMillisecondArray::from(vec![Some(ms), None])))]);
        assert!(differing(&seconds, &times(7000)).is_empty());
        assert_eq!(differing(&seconds, &times(7001)), ["time"]);
    }
}
