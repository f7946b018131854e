//! Types of columns: Arrow's as DuckDB's, and batches as its appender takes them.

use crate::sql::quoted;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Time64NanosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, StructArray, new_null_array};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use std::sync::Arc;

/// An Arrow type as DuckDB's.
pub(crate) fn sql_type(of: &DataType) -> std::result::Result<String, String> {
    Ok(match of {
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int8 => "TINYINT".into(),
        DataType::Int16 => "SMALLINT".into(),
        DataType::Int32 => "INTEGER".into(),
        DataType::Int64 => "BIGINT".into(),
        DataType::UInt8 => "UTINYINT".into(),
        DataType::UInt16 => "USMALLINT".into(),
        DataType::UInt32 => "UINTEGER".into(),
        DataType::UInt64 => "UBIGINT".into(),
        DataType::Float16 | DataType::Float32 => "FLOAT".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMPTZ".into(),
        DataType::Timestamp(TimeUnit::Second, None) => "TIMESTAMP_S".into(),
        DataType::Timestamp(TimeUnit::Millisecond, None) => "TIMESTAMP_MS".into(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP".into(),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP_NS".into(),
        DataType::Date32 | DataType::Date64 => "DATE".into(),
        DataType::Time64(TimeUnit::Nanosecond) => "TIME_NS".into(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".into(),
        DataType::Duration(_) | DataType::Interval(_) => "INTERVAL".into(),
        DataType::Decimal128(width, scale) => format!("DECIMAL({width}, {scale})"),
        // DuckDB's type for columns without values is not one that Arrow can be appended to.
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => "VARCHAR".into(),
        DataType::List(element) | DataType::LargeList(element) => {
            format!("{}[]", sql_type(element.data_type())?)
        }
        DataType::Struct(fields) => {
            let fields =
                fields.iter().map(|f| Ok(format!("{} {}", quoted(f.name()), sql_type(f.data_type())?)));
            format!("STRUCT({})", fields.collect::<std::result::Result<Vec<_>, String>>()?.join(", "))
        }
        other => return Err(format!("DuckDB tables of wellread have no columns of type {other}")),
    })
}

/// The batch as DuckDB's appender takes it. Texts stand for columns without a type and for times of day in nanoseconds. Numbers of
/// 16 bits with a point are wider.
pub(crate) fn as_taken(batch: &RecordBatch) -> RecordBatch {
    let columns: Vec<ArrayRef> = batch.columns().iter().map(typed).collect();
    let fields: Fields = batch.schema().fields().iter().zip(&columns).map(|(f, c)| field_of(f, c)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("as many rows as before")
}

fn field_of(field: &Field, column: &ArrayRef) -> Field {
    Field::new(field.name(), column.data_type().clone(), true)
}

fn typed(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Null => new_null_array(&DataType::Utf8, column.len()),
        DataType::Float16 => {
            Arc::new(column.as_primitive::<Float16Type>().unary::<_, Float32Type>(f32::from))
        }
        // The appender of Arrow would cut these to microseconds, and DuckDB makes times of texts.
        DataType::Time64(TimeUnit::Nanosecond) => {
            let times = column.as_primitive::<Time64NanosecondType>().iter();
            Arc::new(times.map(|time| time.map(time_of_day)).collect::<StringArray>())
        }
        DataType::Struct(fields) if fields.iter().any(|f| has_null_type(f.data_type())) => {
            let structure = column.as_struct();
            let columns: Vec<ArrayRef> = structure.columns().iter().map(typed).collect();
            let fields: Fields = fields.iter().zip(&columns).map(|(f, c)| field_of(f, c)).collect();
            Arc::new(StructArray::new(fields, columns, structure.nulls().cloned()))
        }
        _ => Arc::clone(column),
    }
}

/// A time in nanoseconds since midnight as `HH:MM:SS.NNNNNNNNN`.
fn time_of_day(ns: i64) -> String {
    let (seconds, ns) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    format!("{:02}:{:02}:{:02}.{ns:09}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn has_null_type(of: &DataType) -> bool {
    match of {
        DataType::Null => true,
        DataType::Struct(fields) => fields.iter().any(|f| has_null_type(f.data_type())),
        _ => false,
    }
}
