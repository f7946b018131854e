//! Tables as files: Parquet to keep, CSV and JSON to look at.
//!
//! The table's name travels in the Parquet footer (`wellread.table`), so that a renamed file is still known.

use super::{Column, Table, Values};
use crate::{Error, Result, staged};
use arrow_array::cast::AsArray;
use arrow_array::types as at;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Key of the table's name in the Parquet footer.
const NAME_KEY: &str = "wellread.table";

impl Table {
    /// Writes the table as Parquet (zstd), whole or not at all.
    pub fn write_parquet(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let fields: Vec<_> = self
            .columns
            .iter()
            .map(|c| {
                let kind = match c.values {
                    Values::F64(_) => DataType::Float64,
                    Values::I64(_) => DataType::Int64,
                    Values::Bool(_) => DataType::Boolean,
                    Values::Str(_) => DataType::Utf8,
                };
                Field::new(&c.name, kind, true)
            })
            .collect();
        let arrays = self.columns.iter().map(|c| -> ArrayRef {
            match &c.values {
                Values::F64(v) => Arc::new(Float64Array::from(v.clone())),
                Values::I64(v) => Arc::new(Int64Array::from(v.clone())),
                Values::Bool(v) => Arc::new(BooleanArray::from(v.clone())),
                Values::Str(v) => Arc::new(StringArray::from(v.clone())),
            }
        });
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("wellread {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(vec![KeyValue::new(NAME_KEY.to_owned(), self.name.clone())]))
            .build();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let arrays = arrays.collect();
        staged::write_with(path, |out| {
            let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
                .map_err(|e| e.to_string())?;
            let mut writer =
                ArrowWriter::try_new(out, schema, Some(properties)).map_err(|e| e.to_string())?;
            writer.write(&batch).map_err(|e| e.to_string())?;
            writer.close().map_err(|e| e.to_string())?;
            Ok(())
        })
    }

    /// Reads a table back. Its name is the one it was written under, else the file's.
    ///
    /// # Errors
    /// Unreadable file, no Parquet, a damaged file, or a column of a type that result tables do not have.
    pub fn read_parquet(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, "cannot read", &e))?;
        let bytes = bytes::Bytes::from(bytes);
        // The Parquet reader checks most of what it reads, but a damaged page can still trip an assertion in
        // it; a report must say so, not die of it.
        let read = catch_unwind(AssertUnwindSafe(|| read_bytes(path, bytes)))
            .unwrap_or_else(|_| Err("a page of it does not decode".to_owned()));
        read.map_err(|cause| {
            Error::new(path, format_args!("is no result table that can be read: {cause}"))
                .hint("give a folder that `wellread bench --out` wrote; a damaged one is made again by running the benchmark")
        })
    }

    /// Writes the table as CSV with a header line, whole or not at all; nulls are empty.
    pub fn write_csv(&self, path: impl AsRef<Path>) -> Result<()> {
        staged::write_with(path.as_ref(), |out| {
            let mut writer = csv::Writer::from_writer(out);
            let e = |e: csv::Error| e.to_string();
            writer.write_record(self.columns.iter().map(|c| c.name.as_str())).map_err(e)?;
            for row in 0..self.rows {
                writer.write_record(self.columns.iter().map(|c| c.values.get(row).text())).map_err(e)?;
            }
            writer.flush().map_err(|e| e.to_string())
        })
    }

    /// Writes the table as a JSON list of records, whole or not at all; NaN and infinities are null.
    pub fn write_json(&self, path: impl AsRef<Path>) -> Result<()> {
        staged::write_with(path.as_ref(), |out| {
            let rows: Vec<_> = (0..self.rows).map(|r| self.row_json(r)).collect();
            serde_json::to_writer_pretty(&mut *out, &rows).map_err(|e| e.to_string())?;
            out.write_all(b"\n").map_err(|e| e.to_string())
        })
    }
}

fn read_bytes(path: &Path, bytes: bytes::Bytes) -> Result<Table, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| e.to_string())?;
    let named = builder
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .and_then(|kv| kv.iter().find(|kv| kv.key == NAME_KEY)?.value.clone())
        .or_else(|| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let mut table = Table::new(named.unwrap_or_default());
    for field in builder.schema().fields() {
        let values = match field.data_type() {
            t if t.is_integer() => Values::I64(vec![]),
            t if t.is_floating() => Values::F64(vec![]),
            DataType::Null => Values::F64(vec![]),
            DataType::Boolean => Values::Bool(vec![]),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Values::Str(vec![]),
            other => {
                let other = match other {
                    DataType::Struct(_) => "a struct".to_owned(),
                    DataType::List(_) | DataType::LargeList(_) => "a list".to_owned(),
                    other => format!("of type {other}"),
                };
                return Err(format!(
                    "column {:?} is {other}, not a plain number, text or boolean",
                    field.name()
                ));
            }
        };
        table.columns.push(Column { name: field.name().clone(), values });
    }
    for batch in builder.build().map_err(|e| e.to_string())? {
        let batch = batch.map_err(|e| e.to_string())?;
        table.rows += batch.num_rows();
        for (column, array) in table.columns.iter_mut().zip(batch.columns()) {
            append(&mut column.values, array).map_err(|e| format!("column {:?}: {e}", column.name))?;
        }
    }
    match table.columns.iter().find(|c| c.values.len() != table.rows) {
        Some(c) => Err(format!("column {:?} has {} values for {} rows", c.name, c.values.len(), table.rows)),
        None => Ok(table),
    }
}

/// Appends an Arrow array to the column it was declared for.
fn append(values: &mut Values, array: &ArrayRef) -> Result<(), String> {
    macro_rules! numbers {
        ($out:ident, $($kind:ident => $type:ty),*) => {
            match array.data_type() {
                $(DataType::$kind => $out.extend(array.as_primitive::<$type>().iter().map(|v| v.map(Into::into))),)*
                other => return Err(format!("unexpected type {other}")),
            }
        };
    }
    if *array.data_type() == DataType::Null {
        (0..array.len()).for_each(|_| values.push_null());
        return Ok(());
    }
    match values {
        Values::F64(out) => {
            numbers!(out, Float64 => at::Float64Type, Float32 => at::Float32Type, Float16 => at::Float16Type);
        }
        Values::I64(out) if *array.data_type() == DataType::UInt64 => {
            for v in array.as_primitive::<at::UInt64Type>() {
                let v = v.map(|v| i64::try_from(v).map_err(|_| format!("{v} does not fit 64 bits signed")));
                out.push(v.transpose()?);
            }
        }
        Values::I64(out) => {
            numbers!(out, Int64 => at::Int64Type, Int32 => at::Int32Type, Int16 => at::Int16Type, Int8 => at::Int8Type,
            UInt32 => at::UInt32Type, UInt16 => at::UInt16Type, UInt8 => at::UInt8Type);
        }
        Values::Bool(out) => out.extend(array.as_boolean().iter()),
        Values::Str(out) => match array.data_type() {
            DataType::LargeUtf8 => out.extend(array.as_string::<i64>().iter().map(|v| v.map(str::to_owned))),
            DataType::Utf8View => out.extend(array.as_string_view().iter().map(|v| v.map(str::to_owned))),
            _ => out.extend(array.as_string::<i32>().iter().map(|v| v.map(str::to_owned))),
        },
    }
    Ok(())
}
