//! The `wellread` command, what this build can read, and amounts of memory as the command takes them.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command with these arguments, of which the first is the program's name, and returns its exit code.
#[pyfunction]
pub(crate) fn run_cli(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    let program = program(py)?;
    Ok(py.detach(|| wellread_cli::run(program, args)))
}

/// What starts the command in a process of its own: this Python, with its environment's packages.
fn program(py: Python<'_>) -> PyResult<Vec<OsString>> {
    let python: OsString = py.import("sys")?.getattr("executable")?.extract()?;
    Ok(vec![python, "-m".into(), "wellread".into()])
}

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
