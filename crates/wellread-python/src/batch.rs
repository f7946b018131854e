//! [`Batch`]: images in memory, as Python's array libraries see them.

use crate::dlpack::{self, Export};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ptr::NonNull;
use std::sync::Arc;
use wellread::DType;

/// Memory in pieces of a cache line, which aligns it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes aligned as those of batches are, to 64 bytes.
pub(crate) struct AlignedVec {
    lines: Vec<Line>,
    bytes: usize,
}

impl AlignedVec {
    /// So many bytes, all 0; `None` when memory is exhausted.
    pub(crate) fn zeroed(bytes: usize) -> Option<Self> {
        let mut lines = Vec::new();
        lines.try_reserve_exact(bytes.div_ceil(64)).ok()?;
        lines.resize(bytes.div_ceil(64), Line([0; 64]));
        Some(Self { lines, bytes })
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the lines are that many bytes at least, all initialised, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.bytes) }
    }
}

/// Whom the memory belongs to.
enum Owner {
    Loader(wellread::Batch),
    /// Its rows stand beside it.
    Own(#[expect(dead_code, reason = "kept for its memory")] AlignedVec, Vec<usize>),
}

/// Pixels that views in other libraries share. Given back with the last of them, by whichever thread.
pub(crate) struct Pixels {
    /// Where they begin, as long as `owner` lives.
    start: NonNull<u8>,
    bytes: usize,
    /// Six axes at most, of which so many are there.
    shape: [i64; 6],
    strides: [i64; 6],
    axes: usize,
    dtype: DType,
    owner: Owner,
}

// SAFETY: the memory behind `start` belongs to `owner`, which may be sent and shared. It is written to by whoever has a
// view, as NumPy's and torch's memory is; nobody in Rust reads it while Python has it.
unsafe impl Send for Pixels {}
// SAFETY: as above.
unsafe impl Sync for Pixels {}

impl Pixels {
    fn new(start: NonNull<u8>, shape: &[usize], dtype: DType, owner: Owner) -> Self {
        let axes = shape.len();
        let mut own = ([1; 6], [1; 6]);
        // Axes of images in memory: far below 2^63.
        own.0.iter_mut().zip(shape).for_each(|(own, &n)| *own = n as i64);
        for axis in (1..axes).rev() {
            own.1[axis - 1] = own.1[axis] * own.0[axis];
        }
        let bytes = shape.iter().product::<usize>() * dtype.size();
        Self { start, bytes, shape: own.0, strides: own.1, axes, dtype, owner }
    }

    pub(crate) fn of_loader(mut batch: wellread::Batch) -> Self {
        let start = NonNull::from(batch.bytes_mut()).cast();
        let axes = batch.shape().len();
        let mut shape = [1; 6];
        shape[..axes].copy_from_slice(batch.shape());
        let dtype = batch.dtype();
        Self::new(start, &shape[..axes], dtype, Owner::Loader(batch))
    }

    /// Images of these rows: `pixels` has as many bytes as the shape says.
    pub(crate) fn own(mut pixels: AlignedVec, shape: &[usize], dtype: DType, rows: Vec<usize>) -> Self {
        let start = NonNull::from(pixels.as_mut_slice()).cast();
        Self::new(start, shape, dtype, Owner::Own(pixels, rows))
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn shape(&self) -> &[i64] {
        &self.shape[..self.axes]
    }

    pub(crate) fn strides(&self) -> &[i64] {
        &self.strides[..self.axes]
    }

    fn rows(&self) -> &[usize] {
        match &self.owner {
            Owner::Loader(batch) => batch.rows(),
            Owner::Own(_, rows) => rows,
        }
    }

    /// The same numbers in memory of their own; `None` when there is none.
    fn copied(&self) -> Option<Self> {
        let mut copy = AlignedVec::zeroed(self.bytes)?;
        // SAFETY: that many bytes are there, and the copy is no part of them.
        unsafe { self.start.as_ptr().copy_to_nonoverlapping(copy.as_mut_slice().as_mut_ptr(), self.bytes) };
        let shape: Vec<usize> = self.shape().iter().map(|&n| n as usize).collect();
        Some(Self::own(copy, &shape, self.dtype, self.rows().to_vec()))
    }
}

/// Images in memory, C order: what a loader delivers, before a library has made its array of it.
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
        let dtype = pixels.dtype;
        Self { pixels: Arc::new(pixels), dtype, readonly: false }
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
        self.pixels.start.addr().get()
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
        match &self.pixels.owner {
            Owner::Loader(batch) => Some(batch.index()),
            Owner::Own(..) => None,
        }
    }

    /// The epoch that it belongs to; None for images that were read by themselves.
    #[getter]
    fn epoch(&self) -> Option<u64> {
        match &self.pixels.owner {
            Owner::Loader(batch) => Some(batch.epoch()),
            Owner::Own(..) => None,
        }
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
                "the pixels are in memory of the host, (1, 0), and are not copied to device {device:?} by DLPack; move the \
                 array that you make of them"
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
