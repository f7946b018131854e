//! Arrow arrays of what was read, checked so that bytes which are not as they should be are a fault and no panic.

use super::fault::Fault::{self, Irregular};
use arrow_array::{ArrayRef, GenericListArray, OffsetSizeTrait, RecordBatch, StructArray, make_array};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef, Fields, SchemaRef};
use std::sync::Arc;

/// `length` numbers.
///
/// # Errors
/// Another number of bytes, or another type.
pub fn numbers(
    data_type: &DataType,
    length: usize,
    values: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault> {
    let data = ArrayData::builder(data_type.clone()).len(length).add_buffer(values).nulls(nulls);
    Ok(make_array(data.build().map_err(|_| Irregular("values do not fit their type"))?))
}

/// Structs of which none is null.
///
/// # Errors
/// Fields of different lengths or other types.
pub fn structure(fields: &Fields, children: Vec<ArrayRef>) -> Result<ArrayRef, Fault> {
    let array = StructArray::try_new(fields.clone(), children, None);
    Ok(Arc::new(array.map_err(|_| Irregular("fields of different lengths"))?))
}

/// Lists by their offsets, which are one more than lists; `empty_is_null` says that those without elements are null.
///
/// # Errors
/// No offset; offsets that do not ascend, or lead beyond the elements.
pub fn list<O: OffsetSizeTrait>(
    field: &FieldRef,
    offsets: Vec<O>,
    elements: ArrayRef,
    empty_is_null: bool,
) -> Result<ArrayRef, Fault> {
    let is_bad = |first: &O| *first < O::default();
    if offsets.first().is_none_or(is_bad) || offsets.windows(2).any(|w| w[0] > w[1]) {
        return Err(Irregular("lists out of order"));
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let nulls = empty_is_null.then(|| offsets.lengths().map(|length| length > 0).collect::<NullBuffer>());
    let array = GenericListArray::try_new(Arc::clone(field), offsets, elements, nulls);
    Ok(Arc::new(array.map_err(|_| Irregular("lists do not fit their elements"))?))
}

/// A batch of `rows` rows.
///
/// # Errors
/// Columns of another length or another type.
pub fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, Fault> {
    if columns.iter().any(|column| column.len() != rows) {
        return Err(Irregular("columns of another length"));
    }
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|_| Irregular("columns do not fit"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_schema::{Field, Schema};

    #[test]
    fn odd_bytes_are_a_fault() {
        let values = || Buffer::from_vec(vec![1u16, 2, 3]);
        let three = numbers(&DataType::UInt16, 3, values(), None).unwrap();
        assert!(numbers(&DataType::UInt16, 4, values(), None).is_err());

        let field = Arc::new(Field::new("item", DataType::UInt16, true));
        let lists = list(&field, vec![0i32, 2, 2, 3], Arc::clone(&three), true).unwrap();
        assert_eq!((lists.len(), lists.null_count()), (3, 1));
        assert_eq!(lists.as_list::<i32>().value(0).len(), 2);
        assert_eq!(list(&field, vec![0i64, 3], Arc::clone(&three), false).unwrap().null_count(), 0);
        for offsets in [vec![], vec![0i32, 2, 1], vec![0, 4], vec![-1, 2]] {
            assert!(list(&field, offsets, Arc::clone(&three), false).is_err());
        }

        let fields: Fields =
            vec![Field::new("a", DataType::UInt16, true), Field::new("b", DataType::UInt16, true)].into();
        assert!(structure(&fields, vec![Arc::clone(&three), three.slice(0, 2)]).is_err());
        let both = structure(&fields, vec![Arc::clone(&three), Arc::clone(&three)]).unwrap();
        let schema = Arc::new(Schema::new(vec![Field::new("x", both.data_type().clone(), true)]));
        assert_eq!(batch(&schema, vec![Arc::clone(&both)], 3).unwrap().num_rows(), 3);
        assert!(batch(&schema, vec![both], 2).is_err());
        assert!(batch(&schema, vec![three], 3).is_err());
    }
}
