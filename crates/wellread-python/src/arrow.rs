//! Columns beside the images as NumPy sees them, and sets of images as Arrow streams, out and in.
//!
//! Streams are PyCapsules of the [Arrow PyCapsule interface](
//! https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html), which pyarrow, polars, DuckDB and others
//! make and take without a copy.

use crate::errors::{Activity, abandonable};
use crate::opened::Opened;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, StringArray};
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};
use std::collections::HashSet;
use std::ffi::CStr;
use std::sync::Arc;
use wellread::store::suggested;
use wellread::store::table::{MemoryTable, RecordBatches, TableStore};
use wellread::store::with_columns::{JoinedColumns, OtherOrder, joined_beside, left_out};
use wellread::{Error, OpenOptions};

/// Values of a column: bytes and the name of NumPy's type, which values there are, or texts.
#[derive(IntoPyObject)]
enum Values<'py> {
    /// Bytes, type, and a byte for each value that tells whether it is there, where some are not.
    Plain((Bound<'py, PyBytes>, String, Option<Bound<'py, PyBytes>>)),
    Texts(Bound<'py, PyList>),
}

/// NumPy's name of an Arrow type of plain values that it lays out alike.
fn plain(data_type: &DataType) -> Option<String> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    };
    Some(match data_type {
        DataType::Int8 => "int8".to_owned(),
        DataType::Int16 => "int16".to_owned(),
        DataType::Int32 => "int32".to_owned(),
        DataType::Int64 => "int64".to_owned(),
        DataType::UInt8 => "uint8".to_owned(),
        DataType::UInt16 => "uint16".to_owned(),
        DataType::UInt32 => "uint32".to_owned(),
        DataType::UInt64 => "uint64".to_owned(),
        DataType::Float16 => "float16".to_owned(),
        DataType::Float32 => "float32".to_owned(),
        DataType::Float64 => "float64".to_owned(),
        DataType::Timestamp(u, _) => format!("datetime64[{}]", unit(u)),
        // Four bytes, where NumPy's dates have eight: the package widens them.
        DataType::Date32 => "date32".to_owned(),
        DataType::Date64 => "datetime64[ms]".to_owned(),
        DataType::Time64(u) | DataType::Duration(u) => format!("timedelta64[{}]", unit(u)),
        _ => return None,
    })
}

fn values<'py>(py: Python<'py>, name: &str, column: &ArrayRef) -> PyResult<Values<'py>> {
    let valid = (column.null_count() > 0).then(|| {
        let valid: Vec<u8> = (0..column.len()).map(|i| u8::from(column.is_valid(i))).collect();
        PyBytes::new(py, &valid)
    });
    if let Some(name) = plain(column.data_type()) {
        let data = column.to_data();
        let size = column.data_type().primitive_width().expect("plain values have a width");
        let bytes = &data.buffers()[0].as_slice()[data.offset() * size..][..data.len() * size];
        return Ok(Values::Plain((PyBytes::new(py, bytes), name, valid)));
    }
    if let Some(truths) = column.as_boolean_opt() {
        let bytes: Vec<u8> = (0..truths.len()).map(|i| u8::from(truths.value(i))).collect();
        return Ok(Values::Plain((PyBytes::new(py, &bytes), "bool".to_owned(), valid)));
    }
    if let Some(texts) = column.as_string_opt::<i32>() {
        return Ok(Values::Texts(PyList::new(py, texts.iter())?));
    }
    Err(PyTypeError::new_err(format!(
        "column {name:?}: Arrow's type {} has no counterpart in NumPy (hint: cast it, to float64 say, or take it by \
         pyarrow.table(dataset))",
        column.data_type()
    )))
}

/// The values of the column `name` beside the images, one per row.
pub(crate) fn column<'py>(py: Python<'py>, dataset: &Opened, name: &str) -> PyResult<Bound<'py, PyAny>> {
    columns(py, dataset, vec![name.to_owned()])?.get_item(0)
}

/// The values of each of these columns beside the images, one per row: all of them are read together.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    dataset: &Opened,
    names: Vec<String>,
) -> PyResult<Bound<'py, PyList>> {
    let there = dataset.column_names(py)?;
    let known: HashSet<&str> = there.iter().map(String::as_str).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name.as_str())) {
        return Err(no_column(name, &there));
    }
    let (names, table) = dataset.run_interruptible(py, Activity::Opening, move |dataset, _| {
        let table = dataset.store().hints().features(&names)?;
        Ok((names, table))
    })?;
    let mut found: Vec<Bound<'py, PyAny>> = Vec::with_capacity(names.len());
    for name in &names {
        let column = table.as_ref().and_then(|table| table.column_by_name(name));
        let column = column.ok_or_else(|| no_column(name, &there))?;
        found.push(values(py, name, column)?.into_pyobject(py)?);
    }
    PyList::new(py, found)
}

/// Most names that the error of a missing column lists.
const MAX_LISTED: usize = 12;

/// The message about a column that is not beside the images, with those that may have been meant and some that are there.
#[pyfunction]
pub(crate) fn missing_column(name: &str, there: Vec<String>) -> String {
    missing_column_of(name, &there)
}

fn missing_column_of(name: &str, there: &[String]) -> String {
    format!("no column {name:?} stands beside the images; {}", suggested::hint(name, there, MAX_LISTED))
}

fn no_column(name: &str, there: &[String]) -> PyErr {
    PyKeyError::new_err(missing_column_of(name, there))
}

/// Name of the capsule of a stream.
const STREAM: &CStr = c"arrow_array_stream";

/// A dataset's rows as record batches, read when they are asked for.
struct Rows {
    dataset: wellread::Dataset,
    batches: RecordBatches,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.batches.next_caught(self.dataset.store());
        next.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}

/// A stream of all rows: the row's number, the image as an OME-Arrow struct, the columns beside it.
pub(crate) fn export<'py>(py: Python<'py>, dataset: &Opened) -> PyResult<Bound<'py, PyAny>> {
    let rows = dataset.with(py, Activity::Reading, |dataset| {
        let batches = RecordBatches::new(dataset.store())?;
        Ok(Rows { dataset: dataset.clone(), batches })
    })?;
    let stream = Box::into_raw(Box::new(FFI_ArrowArrayStream::new(Box::new(rows))));
    // SAFETY: the pointer is not null, the name lives for ever, and the destructor fits the type.
    unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(stream.cast(), STREAM.as_ptr(), Some(destroy)))
    }
}

/// Frees a stream. The taker of a stream marks it as released, so nothing of it is freed twice.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with the capsule that `export` made.
    unsafe {
        let stream = ffi::PyCapsule_GetPointer(capsule, STREAM.as_ptr());
        if !stream.is_null() {
            drop(Box::from_raw(stream.cast::<FFI_ArrowArrayStream>()));
        }
    }
}

/// A stream that is taken out of its capsule, which is left a released one.
pub(crate) fn taken(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let stream: *mut FFI_ArrowArrayStream = capsule.pointer_checked(Some(STREAM))?.as_ptr().cast();
    // SAFETY: a capsule of this name holds a stream; taking it leaves a released one in its place.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(stream) })
}

/// The images of a table in memory, which the dataset shares with whoever made it.
pub(crate) fn import(
    py: Python<'_>,
    capsule: &Bound<'_, PyCapsule>,
    column: Option<String>,
    skip_null: bool,
) -> PyResult<wellread::Dataset> {
    let stream = taken(capsule)?;
    // The maker of the stream may take long, and cannot be told to stop.
    abandonable(py, Activity::Opening, move |_| {
        let (schema, batches) = crate::stream::read(stream).map_err(|why| Error::new("arrow", why))?;
        let table = MemoryTable::new("arrow", schema, batches);
        let options = OpenOptions { column, ..OpenOptions::default() };
        let set = wellread::Dataset::from_fn(move || {
            Ok(Box::new(TableStore::open(Box::new(table.clone()), &options)?))
        })?;
        if skip_null { set.without_nulls() } else { Ok(set) }
    })
}

/// The batches of a table's stream; an empty one, which has the columns, where there is none.
pub(crate) fn some_batches(stream: FFI_ArrowArrayStream) -> Result<Vec<RecordBatch>, Error> {
    let (schema, mut batches) = crate::stream::read(stream).map_err(|why| Error::new("<table>", why))?;
    if batches.is_empty() {
        batches.push(RecordBatch::new_empty(schema));
    }
    Ok(batches)
}

/// Texts as an Arrow array.
pub(crate) fn texts(values: Vec<String>) -> ArrayRef {
    Arc::new(StringArray::from(values))
}

/// A set with the columns of a table in memory beside its images. Also the names of the columns that are left out and
/// what they hold. Doubts come last.
pub(crate) type WithTable<D> = (D, Vec<(String, &'static str)>, Doubts);

/// A name in the table whose folders are not those of its image, a column that has another order, and whether the index has one.
pub(crate) type Doubts = (Option<String>, Option<String>, bool);

/// A set with the columns of a table in memory beside its images, which are told by the columns `on`, or by their order. `index` has
/// the texts of a frame's index that is none of its columns.
pub(crate) fn with_columns(
    py: Python<'_>,
    dataset: &Opened,
    capsule: &Bound<'_, PyCapsule>,
    index: Option<Vec<String>>,
    on: Vec<String>,
    nulls: bool,
) -> PyResult<WithTable<wellread::Dataset>> {
    let stream = taken(capsule)?;
    dataset.run_interruptible(py, Activity::Choosing, move |dataset, _| {
        let batches = some_batches(stream)?;
        let index = index.map(texts);
        let JoinedColumns { columns, other_folder, other_order } =
            joined_beside(dataset.store(), &batches, index.as_ref(), &on, nulls)?;
        let left_out = left_out(&batches).into_iter().map(|column| (column.name, column.why)).collect();
        let (column, of_index) = match other_order {
            Some(OtherOrder::Column(column)) => (Some(column), false),
            Some(OtherOrder::Index) => (None, true),
            None => (None, false),
        };
        Ok((dataset.with_columns(columns)?, left_out, (other_folder, column, of_index)))
    })
}
