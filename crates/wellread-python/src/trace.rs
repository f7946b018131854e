//! Timelines: the Rust part of `wellread.trace`.

use crate::errors::{Activity, detached};
use pyo3::prelude::*;
use std::path::PathBuf;
use wellread::trace;

/// Begins to record what threads do, for [`trace_finish`] to write to `path`.
#[pyfunction]
pub(crate) fn trace_start(py: Python<'_>, path: PathBuf, about: String) -> PyResult<()> {
    detached(py, Activity::Choosing, || trace::start(&path, &about))
}

/// Ends the recording and writes its file: the number of spans, and of those that were not kept. `None` without one.
#[pyfunction]
pub(crate) fn trace_finish(py: Python<'_>) -> PyResult<Option<(usize, u64)>> {
    let written = detached(py, Activity::Reading, trace::finish)?;
    Ok(written.map(|written| (written.spans, written.dropped)))
}

/// A step of the caller's own, under its name, from where it is made to [`Step::end`].
#[pyclass(frozen, module = "wellread._native")]
pub(crate) struct Step(trace::Mark);

#[pymethods]
impl Step {
    #[new]
    fn new() -> Self {
        Self(trace::Mark::now())
    }

    /// Ends it; on the timeline it is the calling thread's.
    fn end(&self, name: &str) {
        self.0.end(trace::Kind::Step, || name.to_owned());
    }
}
