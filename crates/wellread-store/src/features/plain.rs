//! Which columns of an Arrow schema hold plain values and so are features, and the text of a value.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Schema};

/// Names of columns of plain values: numbers, times, truth values and text, neither nested nor binary.
pub(crate) fn plain_columns(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.fields().iter().filter(|f| is_plain(f.data_type())).map(|f| f.name().as_str())
}

/// Names of all other columns: of nulls alone, nested and binary ones.
pub(crate) fn other_columns(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.fields().iter().filter(|f| !is_plain(f.data_type())).map(|f| f.name().as_str())
}

/// Whether a column of this type is a feature.
pub(crate) fn is_plain(t: &DataType) -> bool {
    let is_text = matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    t.is_primitive() || is_text || *t == DataType::Boolean
}

/// The columns of `schema` that are features: see [`plain_columns`]. The row number is among them: whether it is data tell its
/// values ([`super::RowId`]).
pub(crate) fn names(schema: &Schema, image: &str) -> Vec<String> {
    plain_columns(schema).filter(|name| *name != image).map(str::to_owned).collect()
}

/// The columns of `schema` that are neither features nor the image: other columns of images too, also where one has the name of a
/// written table's own.
pub(crate) fn left_out(schema: &Schema, image: &str) -> Vec<String> {
    other_columns(schema).filter(|name| *name != image).map(str::to_owned).collect()
}

/// The text at `i` of a string or binary array; `None` for nulls and other types.
pub(crate) fn text(array: &dyn Array, i: usize) -> Option<&str> {
    if array.is_null(i) {
        return None;
    }
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(i)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(i)),
        DataType::Utf8View => Some(array.as_string_view().value(i)),
        DataType::Binary => std::str::from_utf8(array.as_binary::<i32>().value(i)).ok(),
        _ => None,
    }
}
