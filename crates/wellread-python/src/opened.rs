//! A set of images, opened anew by itself in forked processes.

use crate::errors::{Activity, abandonable, detached, detached_from};
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use wellread::Result;

/// A set of images, and the process that opened it.
pub(crate) struct Opened {
    home: wellread::Dataset,
    /// The process that opened it.
    process: u32,
    /// Opened anew in a process that was forked from it, and which.
    forked: Mutex<Option<(u32, wellread::Dataset)>>,
}

impl Opened {
    pub(crate) fn new(home: wellread::Dataset) -> Self {
        Self { home, process: wellread::store::process::id(), forked: Mutex::new(None) }
    }

    /// The set as it was opened first: for what no file is read for.
    pub(crate) fn home(&self) -> &wellread::Dataset {
        &self.home
    }

    /// Names of the columns beside the images. To tell whether `row_id` is one, its values may be read.
    pub(crate) fn column_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, Activity::Opening, |dataset| Ok(dataset.store().hints().feature_names()))
    }

    /// The set that this process reads from.
    pub(crate) fn here(&self) -> Result<wellread::Dataset> {
        let process = wellread::store::process::id();
        if process == self.process {
            return Ok(self.home.clone());
        }
        // Not waited for: in a child of a child, a thread that is not here may hold it.
        let mut kept = self.forked.try_lock();
        if let Ok(kept) = &kept
            && let Some((_, dataset)) = kept.as_ref().filter(|(of, _)| *of == process)
        {
            return Ok(dataset.clone());
        }
        let dataset = self.home.reopened()?;
        if let Ok(kept) = &mut kept {
            // The parent's state is not dropped here: its threads are not in this process.
            std::mem::forget(kept.replace((process, dataset.clone())));
        }
        Ok(dataset)
    }

    /// As [`Self::here`], without the interpreter. Ctrl-C is answered where a set behind a network is opened anew.
    fn awaited(&self, py: Python<'_>, doing: Activity) -> PyResult<wellread::Dataset> {
        let may_wait = self.home.is_remote() && self.process != wellread::store::process::id();
        detached_from(py, may_wait, doing, || self.here())
    }

    /// Does `work` with what this process reads from, without the interpreter. On this machine it is done at once; behind a
    /// network, where anything may wait for a request, Ctrl-C is answered meanwhile.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        doing: Activity,
        work: impl FnOnce(&wellread::Dataset) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        if self.home.is_remote() {
            return self.long(py, doing, |dataset, _| work(dataset));
        }
        detached(py, doing, || work(&self.here()?))
    }

    /// As [`Self::with`], of work that may take long: Ctrl-C is answered meanwhile, and tells it to stop.
    pub(crate) fn long<T: Send + 'static>(
        &self,
        py: Python<'_>,
        doing: Activity,
        work: impl FnOnce(&wellread::Dataset, &AtomicBool) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let dataset = self.awaited(py, doing)?;
        abandonable(py, doing, move |stop| work(&dataset, stop))
    }
}
