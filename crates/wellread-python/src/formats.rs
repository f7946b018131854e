//! The formats that this build can read, addresses, and amounts of memory as the command takes them.

use pyo3::prelude::*;
use std::path::PathBuf;
use wellread::store::place;

/// Bytes of an amount of memory, such as "512MiB".
#[pyfunction]
pub(crate) fn parse_bytes(text: &str) -> PyResult<u64> {
    wellread::loader::cache::parse_bytes(text).map_err(pyo3::exceptions::PyValueError::new_err)
}

/// Whether a path is an address, such as `s3://bucket/plate.parquet`, and none of the file system.
#[pyfunction]
pub(crate) fn is_address(path: PathBuf) -> bool {
    place::scheme(&path).is_some()
}

/// Fields of a pattern that are columns of their own, and nearly called like a known one: each with that one.
#[pyfunction]
pub(crate) fn misspelt_fields(pattern: &str) -> Vec<(String, &'static str)> {
    wellread::store::sites::misspelt_fields(pattern)
}

/// Names of the storage formats of this build.
#[pyfunction]
pub(crate) fn formats() -> Vec<&'static str> {
    wellread::store::formats().iter().map(|format| format.name).collect()
}
