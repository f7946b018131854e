//! A number that tells columns beside images apart, for a run that goes on with an interrupted one. Tables keep the columns of rows
//! that are written, so all rows must have those of one run.

use super::text;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, downcast_primitive_array,
};
use arrow_buffer::ToByteSlice;
use arrow_schema::DataType;
use xxhash_rust::xxh3::Xxh3;

/// A number for the names, types and values of columns, in their order. It is the same in every run, whatever lies under nulls.
pub fn digest(columns: &RecordBatch) -> u64 {
    let mut sum = Xxh3::new();
    for (field, column) in columns.schema_ref().fields().iter().zip(columns.columns()) {
        add(&mut sum, Some(field.name().as_bytes()));
        add(&mut sum, Some(field.data_type().to_string().as_bytes()));
        add_values(&mut sum, column);
    }
    sum.digest()
}

/// Adds a value, or a null, so that no two series of values look alike.
fn add(sum: &mut Xxh3, value: Option<&[u8]>) {
    let length = value.map_or(u64::MAX, |value| value.len() as u64);
    sum.update(&length.to_le_bytes());
    sum.update(value.unwrap_or_default());
}

fn add_values(sum: &mut Xxh3, column: &ArrayRef) {
    let array: &dyn Array = column;
    downcast_primitive_array!(
        array => add_numbers(sum, array),
        DataType::Boolean => for value in array.as_boolean() {
            add(sum, value.map(|value| [u8::from(value)]).as_ref().map(<[u8; 1]>::as_slice));
        },
        _ => for row in 0..array.len() {
            add(sum, text(array, row).map(str::as_bytes));
        }
    );
}

fn add_numbers<T: ArrowPrimitiveType>(sum: &mut Xxh3, array: &PrimitiveArray<T>) {
    for value in array {
        add(sum, value.as_ref().map(ToByteSlice::to_byte_slice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, Float64Array, Int32Array, Int64Array, LargeStringArray, StringArray};
    use std::sync::Arc;

    fn of(name: &str, column: impl Array + 'static) -> u64 {
        digest(&RecordBatch::try_from_iter([(name, Arc::new(column) as ArrayRef)]).unwrap())
    }

    #[test]
    fn columns_that_differ_in_name_type_or_a_value_have_other_numbers() {
        let all = [
            of("a", Int64Array::from(vec![Some(1), None])),
            of("b", Int64Array::from(vec![Some(1), None])),
            of("a", Int64Array::from(vec![None, Some(1)])),
            of("a", Int64Array::from(vec![Some(1), Some(0)])),
            of("a", Int32Array::from(vec![Some(1), None])),
            of("a", Float64Array::from(vec![1.0, f64::NAN])),
            of("a", BooleanArray::from(vec![Some(true), None])),
            of("a", BooleanArray::from(vec![Some(true), Some(false)])),
            of("a", StringArray::from(vec![Some("xy"), Some("")])),
            of("a", StringArray::from(vec![Some("x"), Some("y")])),
            of("a", StringArray::from(vec![Some("xy"), None])),
            of("a", LargeStringArray::from(vec![Some("xy"), None])),
        ];
        let mut known = all.to_vec();
        known.sort_unstable();
        known.dedup();
        assert_eq!(known.len(), all.len(), "{all:?}");
    }

    #[test]
    fn equal_columns_have_one_number_wherever_they_lie() {
        let whole = Int64Array::from(vec![Some(9), Some(1), None]);
        assert_eq!(of("a", whole.slice(1, 2)), of("a", Int64Array::from(vec![Some(1), None])));
        // Under a null lies anything.
        let nulls = arrow_buffer::NullBuffer::from(vec![true, false]);
        let other = Int64Array::new(vec![1i64, 77].into(), Some(nulls));
        assert_eq!(of("a", other), of("a", Int64Array::from(vec![Some(1), None])));
        assert_eq!(of("a", Float64Array::from(vec![f64::NAN])), of("a", Float64Array::from(vec![f64::NAN])));
    }
}
