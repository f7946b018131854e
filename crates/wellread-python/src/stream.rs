//! Record batches of a stream in C, as producers write them and not only as the specification says.
//!
//! Arrow's own reader refuses arrays of nulls that come with a buffer, as polars writes them; OME-Arrow has such a column
//! (`masks`). Here they lose it before they are read.

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use std::ffi::{CStr, c_void};
use std::sync::Arc;

/// `ArrowArray` of the C data interface.
#[repr(C)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

const _: () = assert!(size_of::<RawArray>() == size_of::<FFI_ArrowArray>());

/// Takes the buffers of arrays of nulls, which have none, out of an array of this type and those below it.
///
/// # Safety
/// `array` points to an array of the C data interface that is not released.
unsafe fn without_null_buffers(array: *mut RawArray, data_type: &DataType) {
    // SAFETY: by the caller; children are arrays as well, as many as are counted.
    let (array, children) = unsafe {
        let array = &mut *array;
        let count = usize::try_from(array.n_children).unwrap_or(0);
        let is_none = count == 0 || array.children.is_null();
        let children: &[*mut RawArray] =
            if is_none { &[] } else { std::slice::from_raw_parts(array.children, count) };
        (array, children)
    };
    let below = |i: usize, data_type: &DataType| {
        if let Some(child) = children.get(i).filter(|child| !child.is_null()) {
            // SAFETY: a child of an array that is not released is not released.
            unsafe { without_null_buffers(*child, data_type) }
        }
    };
    match data_type {
        DataType::Null => array.n_buffers = 0,
        DataType::Struct(fields) => {
            fields.iter().enumerate().for_each(|(i, field)| below(i, field.data_type()));
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => below(0, field.data_type()),
        _ => {}
    }
}

/// All batches of a stream, and the schema that they have.
///
/// # Errors
/// The producer's error, and arrays that are not those of its schema.
pub(crate) fn read(mut stream: FFI_ArrowArrayStream) -> Result<(SchemaRef, Vec<RecordBatch>), ArrowError> {
    let gone = || ArrowError::CDataInterface("the stream was taken before".to_owned());
    let (get_schema, get_next) = stream.get_schema().zip(stream.get_next()).ok_or_else(gone)?;
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the stream is not released, since its callbacks are there.
    let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
    if code != 0 {
        return Err(failure(&mut stream, code));
    }
    let schema = Arc::new(Schema::try_from(&schema)?);
    let data_type = DataType::Struct(schema.fields().clone());
    let mut batches = vec![];
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as above.
        let code = unsafe { get_next(&raw mut stream, &raw mut array) };
        if code != 0 {
            return Err(failure(&mut stream, code));
        }
        if array.is_released() {
            return Ok((schema, batches));
        }
        // SAFETY: both structs are that of the C data interface, and the array was given a moment ago.
        unsafe { without_null_buffers((&raw mut array).cast(), &data_type) };
        // SAFETY: a conforming producer gave it, of the type that its schema says.
        let rows = StructArray::from(unsafe { from_ffi_and_data_type(array, data_type.clone()) }?);
        let (_, columns, nulls) = rows.into_parts();
        if nulls.is_some_and(|nulls| nulls.null_count() > 0) {
            return Err(ArrowError::CDataInterface("rows of a stream cannot be null".to_owned()));
        }
        batches.push(RecordBatch::try_new(Arc::clone(&schema), columns)?);
    }
}

/// The producer's message about a failed call.
fn failure(stream: &mut FFI_ArrowArrayStream, code: i32) -> ArrowError {
    let said = stream.get_last_error().and_then(|get| {
        // SAFETY: the stream is not released; the text lives until the next call.
        unsafe {
            let text = get(&raw mut *stream);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    });
    ArrowError::CDataInterface(said.unwrap_or_else(|| format!("the stream failed with code {code}")))
}
