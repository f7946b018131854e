//! The column `row_id` of a table: the table's own where it counts rows from 0, and somebody's data like any other column
//! otherwise. Its values tell, which are read once, when the columns are first asked for.

use crate::Result;
use crate::hints::{FeatureTable, Hints};
use crate::lazy::Lazy;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{DataType, Schema};
use wellread_image::ome_arrow::ROW_ID;

/// Whether the `row_id` of a table counts its rows, once that was asked.
pub(crate) struct RowId(Lazy<bool>);

impl RowId {
    /// For a table that was not looked into yet.
    pub const fn new() -> Self {
        Self(Lazy::new())
    }

    /// The names of a table's feature columns: `names`, without `row_id` where that counts rows. Where it is of integers, `read`
    /// gives its values. One that cannot be read is named, so that its reader gets the error.
    pub fn features(
        &self,
        mut names: Vec<String>,
        schema: &Schema,
        read: impl FnOnce() -> Result<Option<RecordBatch>>,
    ) -> Vec<String> {
        let Some(at) = names.iter().position(|name| name == ROW_ID) else { return names };
        let is_integer = schema.field_with_name(ROW_ID).is_ok_and(|field| field.data_type().is_integer());
        let counts = || -> Result<bool> {
            let batch = read()?;
            Ok(batch.as_ref().and_then(|batch| batch.columns().first()).is_none_or(counts_rows))
        };
        if is_integer && self.0.get(counts).copied().unwrap_or(false) {
            names.remove(at);
        }
        names
    }
}

impl Hints<'_> {
    /// Whether the set has a column `row_id` that counts its rows, which is none of [`Self::feature_names`]. [`Self::features`] reads it
    /// all the same: it is data where the set is a part of one that has other numbers in this column.
    pub fn has_row_numbers(self) -> bool {
        self.columns.is_some_and(FeatureTable::has_row_numbers)
    }
}

/// Whether `row_id` is among `all` columns of plain values, and not among those that are features.
pub(crate) fn is_own_number(all: &[String], features: &[String]) -> bool {
    let has = |names: &[String]| names.iter().any(|name| name == ROW_ID);
    has(all) && !has(features)
}

/// Whether the values are 0, 1, 2 and so on.
fn counts_rows(column: &ArrayRef) -> bool {
    column.null_count() == 0
        && match column.data_type() {
            DataType::Int8 => counts::<Int8Type>(column),
            DataType::Int16 => counts::<Int16Type>(column),
            DataType::Int32 => counts::<Int32Type>(column),
            DataType::Int64 => counts::<Int64Type>(column),
            DataType::UInt8 => counts::<UInt8Type>(column),
            DataType::UInt16 => counts::<UInt16Type>(column),
            DataType::UInt32 => counts::<UInt32Type>(column),
            DataType::UInt64 => counts::<UInt64Type>(column),
            _ => false,
        }
}

fn counts<T: ArrowPrimitiveType>(column: &ArrayRef) -> bool
where
    T::Native: TryInto<u64>,
{
    let values = column.as_primitive::<T>().values();
    values
        .iter()
        .zip(0u64..)
        .all(|(&value, row)| TryInto::<u64>::try_into(value).is_ok_and(|value| value == row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use arrow_array::{Int32Array, Int64Array, StringArray};
    use std::sync::Arc;

    fn features(column: ArrayRef) -> Vec<String> {
        let batch = RecordBatch::try_from_iter_with_nullable([(ROW_ID, column, true)]).unwrap();
        let names = vec!["dose".to_owned(), ROW_ID.to_owned()];
        RowId::new().features(names, &batch.schema(), || Ok(Some(batch.clone())))
    }

    #[test]
    fn a_row_id_that_counts_rows_is_no_feature() {
        assert_eq!(features(Arc::new(Int64Array::from(vec![0, 1, 2]))), ["dose"]);
        assert_eq!(features(Arc::new(Int32Array::from(vec![0, 1]))), ["dose"]);
        assert_eq!(features(Arc::new(Int64Array::from(Vec::<i64>::new()))), ["dose"]);
        for values in
            [vec![Some(0), Some(2), Some(1)], vec![Some(1), Some(2)], vec![Some(0), None], vec![Some(-1)]]
        {
            assert_eq!(features(Arc::new(Int64Array::from(values))), ["dose", ROW_ID]);
        }
        assert_eq!(features(Arc::new(StringArray::from(vec!["P1-A01"]))), ["dose", ROW_ID]);
    }

    #[test]
    fn a_row_id_that_is_no_feature_is_the_tables_own() {
        let names = |names: [&str; 2]| names.map(str::to_owned);
        let (both, other) = (names(["dose", ROW_ID]), names(["dose", "well"]));
        assert!(is_own_number(&both, &other));
        assert!(!is_own_number(&both, &both) && !is_own_number(&other, &other));
    }

    #[test]
    fn it_is_read_once_and_only_where_it_may_count() {
        let names = || vec![ROW_ID.to_owned()];
        let schema = |of| Schema::new(vec![arrow_schema::Field::new(ROW_ID, of, true)]);
        let refused = || Err(Error::new("f", "was read"));
        let text = RowId::new().features(names(), &schema(DataType::Utf8), || unreachable!("it is text"));
        assert_eq!(text, [ROW_ID]);
        assert_eq!(RowId::new().features(vec![], &schema(DataType::Int64), refused), Vec::<String>::new());
        let row_id = RowId::new();
        let batch =
            RecordBatch::try_from_iter([(ROW_ID, Arc::new(Int64Array::from(vec![0, 1])) as ArrayRef)]);
        let batch = batch.unwrap();
        assert_eq!(row_id.features(names(), &schema(DataType::Int64), refused), [ROW_ID]);
        let read = || Ok(Some(batch.clone()));
        assert_eq!(row_id.features(names(), &schema(DataType::Int64), read), Vec::<String>::new());
        assert_eq!(row_id.features(names(), &schema(DataType::Int64), refused), Vec::<String>::new());
    }
}
