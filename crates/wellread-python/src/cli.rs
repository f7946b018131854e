//! The `wellread` command, and what this build can read.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command with these arguments, of which the first is the program's name, and returns its exit code.
#[pyfunction]
pub(crate) fn run_cli(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| wellread_cli::run(args))
}

/// Names of the storage formats of this build.
#[pyfunction]
pub(crate) fn formats() -> Vec<&'static str> {
    wellread::store::formats().iter().map(|format| format.name).collect()
}
