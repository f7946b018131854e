//! The formats that this build can read, and amounts of memory as the command takes them.

use pyo3::prelude::*;

/// Bytes of an amount of memory, such as "512MiB".
#[pyfunction]
pub(crate) fn parse_bytes(text: &str) -> PyResult<u64> {
    wellread::loader::cache::parse_bytes(text).map_err(pyo3::exceptions::PyValueError::new_err)
}

/// Names of the storage formats of this build.
#[pyfunction]
pub(crate) fn formats() -> Vec<&'static str> {
    wellread::store::formats().iter().map(|format| format.name).collect()
}
