//! Which columns of an Arrow schema hold plain values and so are features, why others are none, and the text of a value.

use crate::hints::LeftOut;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType, Schema};

/// The kind of values in a column without any.
pub(crate) const ONLY_NULLS: &str = "nothing but nulls";

/// Names of columns of plain values: numbers, times, truth values and text, neither nested nor binary. Every format of tables takes
/// these.
pub(crate) fn plain_columns(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.fields().iter().filter(|f| why_left_out(f.data_type()).is_none()).map(|f| f.name().as_str())
}

/// All other columns, and why they are none of these.
pub(crate) fn other_columns(schema: &Schema) -> impl Iterator<Item = LeftOut> {
    schema
        .fields()
        .iter()
        .filter_map(|f| why_left_out(f.data_type()).map(|why| LeftOut { name: f.name().clone(), why }))
}

/// The kind of values in a column of this type, where it is no feature.
fn why_left_out(t: &DataType) -> Option<&'static str> {
    match t {
        // The categories of pandas and polars, DuckDB's ENUM.
        DataType::Dictionary(_, values) => why_left_out(values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => None,
        DataType::Null => Some(ONLY_NULLS),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Some("binary values")
        }
        // DuckDB alone has a type for months, days and parts of a day at once.
        DataType::Interval(_) => Some("calendar intervals"),
        DataType::Decimal256(precision, _) if *precision > DECIMAL128_MAX_PRECISION => {
            Some("decimals of more than 38 digits")
        }
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale)
            if *scale < 0 =>
        {
            Some("decimals of a negative scale")
        }
        DataType::RunEndEncoded(_, _) => Some("run-end encoded values"),
        other => (!other.is_primitive()).then_some("nested values"),
    }
}

/// Columns that are left out as a text, those of one kind together: `a, b (nested values); c (binary values)`.
pub fn left_out_in_words(columns: &[LeftOut]) -> String {
    let mut kinds: Vec<(&str, Vec<&str>)> = vec![];
    for LeftOut { name, why } in columns {
        if let Some((_, names)) = kinds.iter_mut().find(|(kind, _)| kind == why) {
            names.push(name.as_str());
        } else {
            kinds.push((*why, vec![name.as_str()]));
        }
    }
    let kinds = kinds.iter().map(|(why, names)| format!("{} ({why})", names.join(", ")));
    kinds.collect::<Vec<_>>().join("; ")
}

/// The columns of `schema` that are features: see [`plain_columns`]. The row number is among them: whether it is data tell its
/// values ([`super::RowId`]).
pub(crate) fn names(schema: &Schema, image: &str) -> Vec<String> {
    plain_columns(schema).filter(|name| *name != image).map(str::to_owned).collect()
}

/// The columns of `schema` that are neither features nor the image. They are other columns of images too, also where one has the name of a
/// written table's own.
pub(crate) fn left_out(schema: &Schema, image: &str) -> Vec<LeftOut> {
    other_columns(schema).filter(|column| column.name != image).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{Field, IntervalUnit};

    #[test]
    fn columns_that_no_table_can_hold_are_left_out_and_it_is_said_why() {
        let category = |values| DataType::Dictionary(Box::new(DataType::Int8), Box::new(values));
        let columns = [
            ("drug", category(DataType::Utf8)),
            ("dose", DataType::Decimal256(38, 2)),
            ("wait", DataType::Interval(IntervalUnit::MonthDayNano)),
            ("list", DataType::new_list(DataType::Int64, true)),
            ("void", DataType::Null),
            ("sum", DataType::Decimal256(39, 2)),
            ("tens", DataType::Decimal128(20, -1)),
            ("raw", category(DataType::Binary)),
            ("age", DataType::Interval(IntervalUnit::YearMonth)),
            ("image", DataType::Struct(vec![Field::new("a", DataType::Int8, true)].into())),
        ];
        let fields: Vec<Field> = columns.into_iter().map(|(name, of)| Field::new(name, of, true)).collect();
        let schema = Schema::new(fields);
        assert_eq!(names(&schema, "image"), ["drug", "dose"]);
        assert_eq!(
            left_out_in_words(&left_out(&schema, "image")),
            "wait, age (calendar intervals); list (nested values); void (nothing but nulls); sum (decimals of more \
             than 38 digits); tens (decimals of a negative scale); raw (binary values)"
        );
    }
}
