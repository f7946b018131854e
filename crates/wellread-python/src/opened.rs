//! A set of images by its path or several, opened anew by itself in forked processes.

use crate::errors::{Activity, abandonable, detached, detached_from};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use wellread::Result;

/// The path to open, or several as one set.
#[derive(FromPyObject)]
pub(crate) enum Paths {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

impl Paths {
    /// The first of them; an empty one of none.
    pub(crate) fn first(&self) -> &Path {
        match self {
            Self::One(path) => path,
            Self::Several(paths) => paths.first().map_or(Path::new(""), PathBuf::as_path),
        }
    }
}

/// A set of images, and the process that opened it.
pub(crate) struct Opened {
    original: wellread::Dataset,
    /// The process that opened it.
    process: u32,
    /// Opened anew in a process that was forked from it, and which.
    forked: Mutex<Option<(u32, wellread::Dataset)>>,
}

impl Opened {
    pub(crate) fn new(original: wellread::Dataset) -> Self {
        Self { original, process: wellread::store::process::id(), forked: Mutex::new(None) }
    }

    /// The set as it was opened first: for what no file is read for.
    pub(crate) fn original(&self) -> &wellread::Dataset {
        &self.original
    }

    /// Names of the columns beside the images. To tell whether `row_id` is one, its values may be read.
    pub(crate) fn column_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, Activity::Opening, |dataset| Ok(dataset.store().hints().feature_names()))
    }

    /// The set that this process reads from.
    pub(crate) fn of_this_process(&self) -> Result<wellread::Dataset> {
        let process = wellread::store::process::id();
        if process == self.process {
            return Ok(self.original.clone());
        }
        // Not waited for: in a child of a child, a thread that is not here may hold it.
        let mut kept = self.forked.try_lock();
        if let Ok(kept) = &kept
            && let Some((_, dataset)) = kept.as_ref().filter(|(of, _)| *of == process)
        {
            return Ok(dataset.clone());
        }
        let dataset = self.original.reopened()?;
        if let Ok(kept) = &mut kept {
            // The parent's state is not dropped here: its threads are not in this process.
            std::mem::forget(kept.replace((process, dataset.clone())));
        }
        Ok(dataset)
    }

    /// As [`Self::of_this_process`], without the interpreter. Ctrl-C is answered where a set behind a network is opened anew.
    fn wait_for_own(&self, py: Python<'_>, doing: Activity) -> PyResult<wellread::Dataset> {
        let may_wait = self.original.is_remote() && self.process != wellread::store::process::id();
        detached_from(py, may_wait, doing, || self.of_this_process())
    }

    /// Does `work` with what this process reads from, without the interpreter. On this machine it is done at once; behind a
    /// network, where anything may wait for a request, Ctrl-C is answered meanwhile.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        doing: Activity,
        work: impl FnOnce(&wellread::Dataset) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        if self.original.is_remote() {
            return self.run_interruptible(py, doing, |dataset, _| work(dataset));
        }
        detached(py, doing, || work(&self.of_this_process()?))
    }

    /// As [`Self::with`], of work that may take long: Ctrl-C is answered meanwhile, and tells it to stop.
    pub(crate) fn run_interruptible<T: Send + 'static>(
        &self,
        py: Python<'_>,
        doing: Activity,
        work: impl FnOnce(&wellread::Dataset, &AtomicBool) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let dataset = self.wait_for_own(py, doing)?;
        abandonable(py, doing, move |stop| work(&dataset, stop))
    }
}
