//! The values of columns that tell groups of rows, as a program has them: it may give the values in place of the column.
//!
//! ```text
//!  times with a zone ──▶ without the zone: they are of UTC, as NumPy has them
//!  floats            ──▶ as those of 64 bits, of which libraries write the same digits; whole ones as whole numbers, as of
//!                        numbers some of which are missing; NaN is a missing one
//! ```

use super::{as_written, keys_of, known_at};
use crate::{Result, Store};
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_schema::DataType;

/// As [`super::keys`], of the values as a program has them that gives one key per row in place of a column. NaN and nulls are equal.
///
/// # Errors
/// As [`super::keys`].
pub fn group_keys(source: &dyn Store, columns: &[String]) -> Result<Vec<String>> {
    keys_of(source, columns, value_at)
}

/// As [`super::keys`], of the values as people write them. Whole numbers that are kept as floats, as where one is missing, have no point.
/// NaN and nulls are equal.
///
/// # Errors
/// As [`super::keys`].
pub fn written_keys(source: &dyn Store, columns: &[String]) -> Result<Vec<String>> {
    keys_of(source, columns, written_at)
}

/// The text of a value as people write it; `None` where there is none.
fn written_at(column: &ArrayRef, row: usize) -> Option<String> {
    let text = known_at(column, row)?;
    Some(if column.data_type().is_floating() { as_written(&text) } else { text })
}

/// The text of a value; `None` where there is none.
fn value_at(column: &ArrayRef, row: usize) -> Option<String> {
    let text = known_at(column, row)?;
    let float = |value: f64| Some(as_written(&format!("{value:?}")));
    match column.data_type() {
        DataType::Float16 => float(column.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => float(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row)),
        DataType::Timestamp(_, Some(_)) => Some(text.trim_end_matches('Z').to_owned()),
        // NumPy has milliseconds.
        DataType::Date64 if !text.contains('T') => Some(format!("{text}T00:00:00")),
        _ => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        Array, BooleanArray, Date64Array, Float32Array, Float64Array, StringArray, TimestampMillisecondArray,
    };
    use std::sync::Arc;

    #[test]
    fn values_are_those_that_a_program_has() {
        let texts = |column: ArrayRef| -> Vec<Option<String>> {
            (0..column.len()).map(|row| value_at(&column, row)).collect()
        };
        let some = |values: &[&str]| -> Vec<Option<String>> {
            values.iter().map(|&value| (value != "none").then(|| value.to_owned())).collect()
        };
        let times = TimestampMillisecondArray::from(vec![Some(1_577_836_800_000), Some(1_500), None]);
        let wanted = some(&["2020-01-01T00:00:00", "1970-01-01T00:00:01.5", "none"]);
        assert_eq!(texts(Arc::new(times.clone())), wanted);
        assert_eq!(texts(Arc::new(times.with_timezone("Europe/Berlin"))), wanted);
        let floats = vec![Some(1.0), Some(-0.0), Some(0.5), Some(1e20), Some(f64::NAN), None];
        let wanted = some(&["1", "0", "0.5", "1e20", "none", "none"]);
        assert_eq!(texts(Arc::new(Float64Array::from(floats))), wanted);
        // As a text of 32 bits 2.30078125 could end in 2 as well as in 3.
        let singles = Float32Array::from(vec![0.1, 0.5, 2.300_781_3]);
        assert_eq!(texts(Arc::new(singles)), some(&["0.10000000149011612", "0.5", "2.30078125"]));
        assert_eq!(texts(Arc::new(BooleanArray::from(vec![Some(true), None]))), some(&["true", "none"]));
        let days = Date64Array::from(vec![86_400_000, 86_400_500]);
        assert_eq!(texts(Arc::new(days)), some(&["1970-01-02T00:00:00", "1970-01-02T00:00:00.5"]));
        assert_eq!(texts(Arc::new(StringArray::from(vec!["1.0", "NaN"]))), some(&["1.0", "NaN"]));
    }

    #[test]
    fn whole_floats_are_written_without_a_point() {
        let texts = |column: ArrayRef| -> Vec<Option<String>> {
            (0..column.len()).map(|row| written_at(&column, row)).collect()
        };
        let some = |values: [&str; 2]| values.map(|value| Some(value.to_owned()));
        let floats = Float64Array::from(vec![Some(24277.0), Some(0.5), Some(f64::NAN), None]);
        let found = texts(Arc::new(floats));
        assert_eq!((&found[..2], &found[2..]), (&some(["24277", "0.5"])[..], &[None, None][..]));
        assert_eq!(texts(Arc::new(Float32Array::from(vec![0.1, 2.0]))), some(["0.1", "2"]));
        assert_eq!(texts(Arc::new(StringArray::from(vec!["01", "1.0"]))), some(["01", "1.0"]));
    }
}
