//! [`Batch`]: images in memory, as Python's array libraries see them.

use crate::dlpack::{self, Export};
use crate::pixels::Pixels;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use wellread::DType;

/// Images in memory, C order, as a loader delivers them, before a library has made its array of it.
///
/// Implements DLPack (`__dlpack__`), NumPy's array interface, and with the package's help the buffer protocol. All views
/// share the memory; it goes back to the loader with the last of them.
#[pyclass(frozen, weakref, module = "wellread._native")]
pub(crate) struct Batch {
    pixels: Arc<Pixels>,
    /// As what the numbers are seen.
    dtype: DType,
    readonly: bool,
}

impl Batch {
    pub(crate) fn new(pixels: Pixels) -> Self {
        Self::shared(Arc::new(pixels))
    }

    pub(crate) fn shared(pixels: Arc<Pixels>) -> Self {
        let dtype = pixels.dtype;
        Self { pixels, dtype, readonly: false }
    }

    /// A capsule over the memory, of the kind that every consumer takes.
    pub(crate) fn into_capsule(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let Self { pixels, dtype, readonly } = self;
        Export { pixels, dtype, is_read_only: readonly, is_copy: false }.capsule(py, false)
    }

    /// The name of the type in NumPy's array interface.
    fn typestr(&self) -> PyResult<&'static str> {
        Ok(match self.dtype {
            DType::U8 => "|u1",
            DType::I8 => "|i1",
            DType::U16 => "<u2",
            DType::I16 => "<i2",
            DType::U32 => "<u4",
            DType::I32 => "<i4",
            DType::F16 => "<f2",
            DType::F32 => "<f4",
            DType::F64 => "<f8",
            DType::BF16 => {
                return Err(PyTypeError::new_err(
                    "NumPy has no bfloat16 of its own: ask for float32 or float16, or take torch or JAX",
                ));
            }
        })
    }
}

#[pymethods]
impl Batch {
    /// Sizes of the axes: (N, C, Y, X), or (N, T, C, Z, Y, X) where there is more than one time point or depth.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.pixels.shape())
    }

    /// Name of the numbers' type: "float32", "uint16", "bfloat16" …
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Bytes of all pixels.
    #[getter]
    fn nbytes(&self) -> usize {
        self.pixels.bytes
    }

    /// Address of the first pixel, a multiple of 64.
    #[getter]
    fn address(&self) -> usize {
        self.pixels.start().addr().get()
    }

    /// Whether views are told not to write.
    #[getter]
    fn readonly(&self) -> bool {
        self.readonly
    }

    /// The dataset's row of each image.
    #[getter]
    fn rows(&self) -> Vec<usize> {
        self.pixels.rows().to_vec()
    }

    /// Which batch of its epoch it is, from 0; None for images that were read by themselves.
    #[getter]
    fn index(&self) -> Option<usize> {
        self.pixels.batch().map(wellread::Batch::index)
    }

    /// The epoch that it belongs to; None for images that were read by themselves.
    #[getter]
    fn epoch(&self) -> Option<u64> {
        self.pixels.batch().map(wellread::Batch::epoch)
    }

    fn __len__(&self) -> usize {
        self.pixels.shape().first().map_or(0, |&n| n as usize)
    }

    fn __repr__(&self) -> String {
        format!("<wellread.Batch {:?} {}>", self.pixels.shape(), self.dtype)
    }

    /// The same memory, whose views are told not to write.
    fn toreadonly(&self) -> Self {
        Self { pixels: Arc::clone(&self.pixels), dtype: self.dtype, readonly: true }
    }

    /// The same memory seen as uint16: for libraries without bfloat16.
    fn bits(&self) -> PyResult<Self> {
        if self.dtype.size() != 2 {
            return Err(PyTypeError::new_err("only numbers of two bytes can be seen as uint16"));
        }
        Ok(Self { pixels: Arc::clone(&self.pixels), dtype: DType::U16, readonly: self.readonly })
    }

    /// The pixels as a memoryview of their shape (halves as bytes), by the buffer protocol.
    fn memoryview<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("wellread._buffer")?.call_method1("view", (slf,))
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item(pyo3::intern!(py, "data"), (self.address(), self.readonly))?;
        interface.set_item(pyo3::intern!(py, "shape"), self.shape(py)?)?;
        interface.set_item(pyo3::intern!(py, "typestr"), self.typestr()?)?;
        interface.set_item(pyo3::intern!(py, "version"), 3)?;
        Ok(interface)
    }

    /// Where the pixels are: (1, 0), memory of the host.
    #[allow(clippy::unused_self)]
    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    /// A DLPack capsule over the same memory: versioned when `max_version` is (1, 0) or later.
    ///
    /// Raises BufferError for a device other than the host and, of read-only pixels, for consumers before DLPack 1.0.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Memory of the host has no streams: it is ready when it is there.
        drop(stream);
        if let Some(device) = dl_device.filter(|&device| device != dlpack::CPU) {
            return Err(PyBufferError::new_err(format!(
                "the pixels are in the host's memory, (1, 0), and DLPack does not copy them to device {device:?}: move the \
                 array afterwards"
            )));
        }
        let is_versioned = max_version.is_some_and(|(major, _)| major >= 1);
        if copy == Some(true) {
            let copied = py.detach(|| self.pixels.copied()).map(Arc::new);
            let pixels = copied.ok_or_else(|| {
                pyo3::exceptions::PyMemoryError::new_err(format!("no memory for {} bytes", self.pixels.bytes))
            })?;
            return Export { pixels, dtype: self.dtype, is_read_only: false, is_copy: true }
                .capsule(py, is_versioned);
        }
        let Self { pixels, dtype, readonly } = self;
        let pixels = Arc::clone(pixels);
        Export { pixels, dtype: *dtype, is_read_only: *readonly, is_copy: false }.capsule(py, is_versioned)
    }
}
