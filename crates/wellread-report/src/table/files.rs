//! Tables as files: Parquet to keep, CSV and JSON to look at.
//!
//! The table's name travels in the Parquet footer (`wellread.table`), so that a renamed file is still known.

use super::{Column, EXACT, Table, Values};
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
        let (fields, arrays) = self.arrays();
        write_arrays(path.as_ref(), &self.name, fields, arrays, self.rows)
    }

    /// The columns in Arrow's terms.
    pub(super) fn arrays(&self) -> (Vec<Field>, Vec<ArrayRef>) {
        let column = |c: &Column| {
            let (kind, array): (_, ArrayRef) = match &c.values {
                Values::F64(v) => (DataType::Float64, Arc::new(Float64Array::from(v.clone()))),
                Values::I64(v) => (DataType::Int64, Arc::new(Int64Array::from(v.clone()))),
                Values::Bool(v) => (DataType::Boolean, Arc::new(BooleanArray::from(v.clone()))),
                Values::Str(v) => (DataType::Utf8, Arc::new(StringArray::from(v.clone()))),
            };
            (Field::new(&c.name, kind, true), array)
        };
        self.columns.iter().map(column).unzip()
    }

    /// Reads a table back. Its name is the one it was written under, else the file's.
    ///
    /// # Errors
    /// Unreadable file, no Parquet, a damaged file, or a column of a type that result tables do not have.
    pub fn read_parquet(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(read(path, None)?.0)
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

    /// Reads a table from CSV with a header line; its name is the file's. A column is of the first type that all its
    /// values are of: integers, floats, booleans, text. Empty values are null. An integer that a float would round makes its column text.
    ///
    /// # Errors
    /// Unreadable file, no header, a name given twice, a line with more or fewer values than the header.
    pub fn read_csv(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, "cannot read", &e))?;
        let bad = |cause: String| Error::new(path, format_args!("is no table that can be read: {cause}"));
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let header = reader.headers().map_err(|e| bad(e.to_string()))?.clone();
        let mut table = Self::new(path.file_stem().unwrap_or_default().to_string_lossy());
        if header.iter().all(str::is_empty) {
            return Err(bad("it has no header line".to_owned()));
        }
        if let Some(twice) =
            header.iter().enumerate().find(|(i, name)| header.iter().take(*i).any(|n| n == *name))
        {
            return Err(bad(format!("two columns are named {:?}", twice.1)));
        }
        let mut texts: Vec<Vec<Option<String>>> = vec![vec![]; header.len()];
        for record in reader.records() {
            let record = record.map_err(|e| bad(e.to_string()))?;
            for (column, text) in texts.iter_mut().zip(&record) {
                column.push((!text.is_empty()).then(|| text.to_owned()));
            }
            table.rows += 1;
        }
        let columns = header.iter().zip(texts);
        table.columns =
            columns.map(|(name, texts)| Column { name: name.to_owned(), values: typed(texts) }).collect();
        Ok(table)
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

/// Writes columns as Parquet (zstd), whole or not at all.
pub(super) fn write_arrays(
    path: &Path,
    name: &str,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
    rows: usize,
) -> Result<()> {
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("wellread {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(NAME_KEY.to_owned(), name.to_owned())]))
        .build();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    staged::write_with(path, |out| {
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
            .map_err(|e| e.to_string())?;
        let mut writer = ArrowWriter::try_new(out, schema, Some(properties)).map_err(|e| e.to_string())?;
        writer.write(&batch).map_err(|e| e.to_string())?;
        writer.close().map_err(|e| e.to_string())?;
        Ok(())
    })
}

/// Reads a table; with the lists of numbers of one column that is no part of it, where one is named.
pub(super) fn read(path: &Path, lists: Option<&str>) -> Result<(Table, Vec<Vec<f64>>)> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, "cannot read", &e))?;
    let bytes = bytes::Bytes::from(bytes);
    // The Parquet reader checks most of what it reads, but a damaged page can still trip an assertion in it. A report
    // must say so, not die of it.
    let read = catch_unwind(AssertUnwindSafe(|| read_bytes(path, bytes, lists)))
        .unwrap_or_else(|_| Err("a page of it does not decode".to_owned()));
    read.map_err(|cause| {
        Error::new(path, format_args!("is no result table that can be read: {cause}"))
            .hint("give a folder that `wellread bench --out` wrote; a damaged one is made again by running the benchmark")
    })
}

/// The values of a column of texts, as the first type that fits all.
fn typed(texts: Vec<Option<String>>) -> Values {
    fn all<T>(texts: &[Option<String>], parse: fn(&str) -> Option<T>) -> Option<Vec<Option<T>>> {
        texts.iter().map(|text| text.as_deref().map_or(Some(None), |text| parse(text).map(Some))).collect()
    }
    // Pandas and Python write booleans with a capital.
    let truth = |text: &str| text.to_ascii_lowercase().parse().ok();
    if texts.iter().all(Option::is_none) {
        Values::F64(vec![None; texts.len()])
    } else if let Some(values) = all(&texts, |text| text.parse().ok()) {
        Values::I64(values)
    } else if let Some(values) = all(&texts, float) {
        Values::F64(values)
    } else if let Some(values) = all(&texts, truth) {
        Values::Bool(values)
    } else {
        Values::Str(texts)
    }
}

/// A text as a float. `None` also for an integer that a float would round, such as a seed of 64 bits: it stays text. Large
/// floats are written without an exponent, and give the same text again.
fn float(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let is_large = text.parse::<i128>().is_ok_and(|whole| whole.unsigned_abs() > u128::from(EXACT));
    (!is_large || value.to_string() == text).then_some(value)
}

fn read_bytes(
    path: &Path,
    bytes: bytes::Bytes,
    lists: Option<&str>,
) -> Result<(Table, Vec<Vec<f64>>), String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| e.to_string())?;
    let named = builder
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .and_then(|kv| kv.iter().find(|kv| kv.key == NAME_KEY)?.value.clone())
        .or_else(|| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let mut table = Table::new(named.unwrap_or_default());
    let mut found = Vec::new();
    for field in builder.schema().fields().iter().filter(|field| Some(field.name().as_str()) != lists) {
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
        for column in &mut table.columns {
            let array = batch.column_by_name(&column.name).ok_or("a column is missing in a part of it")?;
            append(&mut column.values, array).map_err(|e| format!("column {:?}: {e}", column.name))?;
        }
        if let Some(name) = lists {
            let of = batch.column_by_name(name).and_then(|array| array.as_list_opt::<i32>());
            let of = of.ok_or_else(|| format!("it has no column {name:?} of lists"))?;
            for list in of {
                let numbers = list.as_ref().and_then(|list| list.as_primitive_opt::<at::Float64Type>());
                found.push(numbers.map_or(vec![], |numbers| numbers.values().to_vec()));
            }
        }
    }
    match table.columns.iter().find(|c| c.values.len() != table.rows) {
        Some(c) => Err(format!("column {:?} has {} values for {} rows", c.name, c.values.len(), table.rows)),
        None => Ok((table, found)),
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
