//! [DLPack](https://dmlc.github.io/dlpack/latest/): memory handed to another library without a copy.
//!
//! The structs are those of `dlpack.h`, version 1.0 (of which later 1.x are extensions) and the older unversioned one.
//! Both end in a deleter that may be called by any thread, with or without the interpreter: all it does is to drop an
//! [`Arc`].

use crate::pixels::Pixels;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::{ffi, types::PyAny};
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;
use wellread::DType;

/// `kDLCPU`: memory of the host.
pub(crate) const CPU: (i32, i32) = (1, 0);
/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
const IS_COPIED: u64 = 2;
/// Names of capsules before and after their tensor was taken.
const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

#[repr(C)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DlDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`, before version 1.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// An export: memory, the type of its numbers, and the allowed access.
pub(crate) struct Export {
    pub(crate) pixels: Arc<Pixels>,
    pub(crate) dtype: DType,
    pub(crate) is_read_only: bool,
    pub(crate) is_copy: bool,
}

impl Export {
    fn tensor(&self) -> DlTensor {
        let (code, bits) = match self.dtype {
            DType::I8 => (0, 8),
            DType::I16 => (0, 16),
            DType::I32 => (0, 32),
            DType::U8 => (1, 8),
            DType::U16 => (1, 16),
            DType::U32 => (1, 32),
            DType::F16 => (2, 16),
            DType::F32 => (2, 32),
            DType::F64 => (2, 64),
            DType::BF16 => (4, 16),
        };
        let pixels = &self.pixels;
        DlTensor {
            data: pixels.start().as_ptr().cast(),
            device: DlDevice { kind: CPU.0, id: CPU.1 },
            // At most six axes.
            ndim: pixels.shape().len() as i32,
            dtype: DlDataType { code, bits, lanes: 1 },
            // Consumers read shape and strides and never write them; they live as long as the pixels.
            shape: pixels.shape().as_ptr().cast_mut(),
            strides: pixels.strides().as_ptr().cast_mut(),
            byte_offset: 0,
        }
    }

    /// A capsule with the tensor: versioned if the consumer knows version 1.
    ///
    /// # Errors
    /// Memory that must not be written to, for a consumer that could not be told so.
    pub(crate) fn capsule(self, py: Python<'_>, is_versioned: bool) -> PyResult<Bound<'_, PyAny>> {
        let tensor = self.tensor();
        let context = |pixels: Arc<Pixels>| Arc::into_raw(pixels).cast_mut().cast();
        if is_versioned {
            let flags =
                if self.is_read_only { READ_ONLY } else { 0 } | if self.is_copy { IS_COPIED } else { 0 };
            let managed = ManagedVersioned {
                version: [1, 0],
                context: context(self.pixels),
                deleter: Some(delete_versioned),
                flags,
                tensor,
            };
            return new(py, managed, VERSIONED, destroy_versioned);
        }
        if self.is_read_only {
            return Err(PyBufferError::new_err(
                "these pixels are read-only, which DLPack can only say from version 1.0 on; ask for max_version=(1, 0), \
                 or copy them",
            ));
        }
        let managed = Managed { tensor, context: context(self.pixels), deleter: Some(delete) };
        new(py, managed, LEGACY, destroy)
    }
}

fn new<'py, T>(
    py: Python<'py>,
    managed: T,
    name: &'static CStr,
    destroy: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    let managed = Box::into_raw(Box::new(managed));
    // SAFETY: the pointer is not null, the name lives for ever, and the destructor fits the type.
    unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(managed.cast(), name.as_ptr(), Some(destroy)))
    }
}

/// Called by the consumer when it no longer needs the tensor.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: the consumer calls this once, with what `Export::capsule` made.
    unsafe { drop(Arc::from_raw(Box::from_raw(managed).context.cast::<Pixels>())) }
}

/// As [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    unsafe { drop(Arc::from_raw(Box::from_raw(managed).context.cast::<Pixels>())) }
}

/// Frees the tensor of a capsule that nobody took: the taker of one renames the capsule.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with the capsule that `new` made.
    let managed = unsafe { unconsumed(capsule, LEGACY) };
    if !managed.is_null() {
        // SAFETY: not taken, so nobody else deletes it.
        unsafe { delete(managed.cast()) }
    }
}

/// As [`destroy`].
unsafe extern "C" fn destroy_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `destroy`.
    let managed = unsafe { unconsumed(capsule, VERSIONED) };
    if !managed.is_null() {
        // SAFETY: as in `destroy`.
        unsafe { delete_versioned(managed.cast()) }
    }
}

/// # Safety
/// `capsule` is a capsule, and the interpreter is held.
unsafe fn unconsumed(capsule: *mut ffi::PyObject, name: &CStr) -> *mut c_void {
    // SAFETY: by the caller.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 1 {
            ffi::PyCapsule_GetPointer(capsule, name.as_ptr())
        } else {
            ptr::null_mut()
        }
    }
}
