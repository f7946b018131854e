//! [`Loader`] and [`Batches`]: epochs of batches, waited for without holding the interpreter.

use crate::batch::Batch;
use crate::choices::Choices;
use crate::dataset::Dataset;
use crate::errors::{
    Activity, SIGNAL_POLL_INTERVAL, abandonable, detached, detached_from, exception, interruptible,
};
use crate::pixels::Pixels;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use wellread::{Error, LoaderState};

/// Reads that take longer are made interruptible.
const INTERRUPTIBLE_AFTER: Duration = Duration::from_millis(20);
/// Lists of more rows are made in a thread of their own, so that Ctrl-C is answered meanwhile.
const DETACHED_LIST_ROWS: usize = 1 << 20;
/// Rows that become Python's between two looks for signals.
const LIST_CHUNK_ROWS: usize = 1 << 16;

type Next = Option<wellread::Result<wellread::Batch>>;

/// Delivers a dataset in batches, epoch after epoch.
#[pyclass(frozen, module = "wellread._native")]
pub(crate) struct Loader {
    loader: Arc<wellread::Loader>,
    /// Whether batches are in memory that Python lends.
    is_lent: bool,
}

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(signature = (dataset, choices, targets=None))]
    fn new(
        py: Python<'_>,
        dataset: &Dataset,
        choices: Choices,
        targets: Option<PyRef<'_, Dataset>>,
    ) -> PyResult<Self> {
        let is_lent = choices.is_lent();
        let (row, skips) = (choices.first_row(), choices.skips());
        // A first image that cannot be read is no wrong choice.
        dataset.opened().run_interruptible(py, Activity::Reading, move |set, _| {
            if row < set.len() && !skips { set.row_info(row).map(drop) } else { Ok(()) }
        })?;
        let targets = targets
            .map(|targets| targets.opened().with(py, Activity::Choosing, |targets| Ok(targets.clone())));
        let targets = targets.transpose()?;
        // Names, columns, and files of fields and statistics may take long to read.
        let loader = dataset.opened().run_interruptible(py, Activity::Choosing, move |set, _| {
            choices.apply(wellread::Loader::builder(set), targets.as_ref())?.build().map(Arc::new)
        })?;
        Ok(Self { loader, is_lent })
    }

    fn __len__(&self) -> usize {
        self.loader.len()
    }

    /// Images of an epoch, of this rank.
    #[getter]
    fn images(&self) -> usize {
        self.loader.images()
    }

    /// Shape (T, C, Z, Y, X) of each image as delivered.
    #[getter]
    fn image_shape(&self) -> [usize; 5] {
        self.loader.image_shape().0
    }

    /// Name of the type of the pixels of batches.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.loader.output_dtype().name()
    }

    /// Each array of a batch, views and then their targets: shape (T, C, Z, Y, X) of its images, and its type's name.
    #[getter]
    fn arrays(&self) -> Vec<([usize; 5], &'static str)> {
        let loader = &self.loader;
        let views = (0..loader.views()).filter_map(|view| loader.view_shape(view));
        let images = views.map(|shape| (shape.0, loader.output_dtype().name()));
        let targets = (0..loader.views()).filter_map(|view| loader.target_of(view));
        images.chain(targets.map(|(shape, dtype)| (shape.0, dtype.name()))).collect()
    }

    /// How targets were found for the images, "order" or "names"; None without targets.
    #[getter]
    fn pairing(&self) -> Option<String> {
        self.loader.pairing().map(|pairing| pairing.to_string())
    }

    /// Factor and summand that take the range of the stored type to `[0, 1]`, as the loader itself would.
    #[getter]
    fn unit_scale(&self) -> (f32, f32) {
        let affine = wellread::Transform::default().scale_to_unit().affine(self.loader.dtype(), 0);
        (affine.scale, affine.offset)
    }

    /// Whether a channel that is delivered is a mask, whose values are not scaled.
    #[getter]
    fn has_mask(&self) -> bool {
        self.loader.has_mask()
    }

    /// Bytes of memory of each batch.
    #[getter]
    fn batch_bytes(&self) -> usize {
        self.loader.batch_bytes()
    }

    /// Batches read ahead.
    #[getter]
    fn prefetch(&self) -> usize {
        self.loader.prefetch()
    }

    /// Threads that read ahead.
    #[getter]
    fn workers(&self) -> usize {
        self.loader.workers()
    }

    /// Threads that read while a batch is waited for.
    #[getter]
    fn readers(&self) -> usize {
        self.loader.readers()
    }

    /// The epoch that the next iteration will run.
    #[getter]
    fn epoch(&self) -> u64 {
        self.loader.epoch()
    }

    /// Sets the epoch that the next iteration runs.
    fn set_epoch(&self, epoch: u64) {
        self.loader.set_epoch(epoch);
    }

    /// Forgets decoded pixels that the set keeps, as if it were opened anew: for benchmarks.
    fn forget_pages(&self) {
        self.loader.dataset().store().hints().forget_pages();
    }

    /// Bytes of files read so far, and bytes of stored pixels used of them.
    #[getter]
    fn traffic(&self, py: Python<'_>) -> (u64, u64) {
        let traffic = py.detach(|| self.loader.traffic());
        (traffic.read, traffic.used)
    }

    /// [`Self::traffic`] and, of a set behind a network, requests, bytes received and seconds waited.
    #[allow(clippy::type_complexity)]
    fn stats(&self, py: Python<'_>) -> (u64, u64, Option<(u64, u64, f64)>) {
        let stats = py.detach(|| self.loader.stats());
        let link = stats.link.map(|link| (link.requests, link.bytes, link.waited_s));
        (stats.traffic.read, stats.traffic.used, link)
    }

    /// Rows of an epoch in the order of delivery, of this rank.
    fn rows<'py>(&self, py: Python<'py>, epoch: u64) -> PyResult<Bound<'py, PyList>> {
        let rows = if self.loader.images() < DETACHED_LIST_ROWS {
            py.detach(|| self.loader.rows(epoch))
        } else {
            let loader = Arc::clone(&self.loader);
            abandonable(py, Activity::Reading, move |_| Ok(loader.rows(epoch)))?
        };
        let list = PyList::empty(py);
        for part in rows.chunks(LIST_CHUNK_ROWS) {
            py.check_signals()?;
            part.iter().try_for_each(|row| list.append(row))?;
        }
        Ok(list)
    }

    /// Runs the next epoch.
    fn run(&self, py: Python<'_>) -> PyResult<Batches> {
        let begun = detached_from(py, self.loader.is_remote(), Activity::Reading, || Ok(self.loader.iter()))?;
        Ok(Batches::new(begun, self))
    }

    /// The state of an iteration that has come this far ([`Batches::progress`]), having gone on from `since`, as JSON.
    #[pyo3(signature = (epoch, position, since=None))]
    fn state(&self, py: Python<'_>, epoch: u64, position: usize, since: Option<&str>) -> PyResult<String> {
        let since = || since.map(LoaderState::from_json).transpose();
        let state = || self.loader.state_since(since()?.as_ref(), epoch, position);
        detached(py, Activity::Reading, || state().map(|state| state.to_json()))
    }

    /// Goes on from a state of [`Self::state`]: one of several processes that take turns.
    #[pyo3(signature = (state, turn=0, turns=1))]
    fn resume(&self, py: Python<'_>, state: &str, turn: usize, turns: usize) -> PyResult<Batches> {
        let resume = || self.loader.resume_turn(&LoaderState::from_json(state)?, turn, turns);
        let begun = detached_from(py, self.loader.is_remote(), Activity::Choosing, resume)?;
        Ok(Batches::new(begun, self))
    }
}

/// The batches of one epoch, in order: an iterator.
#[pyclass(frozen, module = "wellread._native")]
pub(crate) struct Batches {
    /// `None` once closed.
    running: Mutex<Option<wellread::Batches>>,
    is_lent: bool,
    /// Whether there are no workers, so that the thread that asks for a batch reads it.
    reads: bool,
    /// Whether what it reads lies behind a network, where any batch may take long.
    is_remote: bool,
    /// In a forked process the lock may be closed for ever.
    process: u32,
    /// Without workers, whether the batch before took long enough to be interrupted.
    is_slow: AtomicBool,
}

/// A batch, or the address of the memory that it was lent, with its shape and rows. For batches with several arrays, it
/// has the place of each in that memory, its shape and type.
#[derive(IntoPyObject)]
pub(crate) enum Delivered {
    Own(Batch),
    Arrays(Vec<Batch>),
    Lent((usize, Vec<usize>, Vec<usize>)),
    LentArrays((usize, Vec<LentArray>, Vec<usize>)),
}

/// Where an array begins in the memory of its batch, its shape and type.
type LentArray = (usize, Vec<usize>, &'static str);

impl Batches {
    fn new(batches: wellread::Batches, loader: &Loader) -> Self {
        Self {
            running: Mutex::new(Some(batches)),
            is_lent: loader.is_lent,
            reads: loader.loader.workers() == 0,
            is_remote: loader.loader.is_remote(),
            process: wellread::store::process::id(),
            // Not known before the first.
            is_slow: AtomicBool::new(true),
        }
    }

    /// Reads the next batch of an iteration without workers, in a thread beside this one where that takes long. Signals
    /// reach Python in this one only.
    fn read(&self, py: Python<'_>) -> PyResult<Option<Poll<Next>>> {
        let start = Instant::now();
        let next = || self.with(py, |batches| Poll::Ready(batches.next()));
        let may_be_slow = self.is_remote || self.is_slow.load(Ordering::Relaxed);
        let read = if may_be_slow { self.read_in_thread(py) } else { next() };
        self.is_slow.store(start.elapsed() > INTERRUPTIBLE_AFTER, Ordering::Relaxed);
        read
    }

    fn read_in_thread(&self, py: Python<'_>) -> PyResult<Option<Poll<Next>>> {
        let Some(stopper) = self.with(py, |batches| batches.stopper())? else { return Ok(None) };
        // The thread ends at its next block, and gives up what it waits for in places.
        interruptible(
            py,
            Activity::Reading,
            || stopper.stop(),
            || {
                let mut batches = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(batches.as_mut().map(|batches| Poll::Ready(batches.next())))
            },
        )
    }

    /// Looks at the iteration, if it is not closed and was begun in this process.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut wellread::Batches) -> T + Send,
    ) -> PyResult<Option<T>> {
        let (own, process) = (self.process, wellread::store::process::id());
        if own != process {
            let cause = format_args!(
                "this iteration was begun in process {own}, and process {process} is a fork of it without its threads"
            );
            let error = Error::new("loader", cause).hint("begin an iteration in the forked process");
            return Err(exception(py, &error, Activity::Reading));
        }
        detached(py, Activity::Reading, || {
            Ok(self.running.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work))
        })
    }

    /// The next batch; `None` at the end.
    fn advance(&self, py: Python<'_>) -> PyResult<Option<wellread::Batch>> {
        loop {
            let next = if self.reads {
                self.read(py)?
            } else {
                self.with(py, |batches| batches.next_timeout(SIGNAL_POLL_INTERVAL))?
            };
            match next {
                None | Some(Poll::Ready(None)) => return Ok(None),
                Some(Poll::Ready(Some(Ok(batch)))) => return Ok(Some(batch)),
                Some(Poll::Ready(Some(Err(error)))) => return Err(exception(py, &error, Activity::Reading)),
                Some(Poll::Pending) => py.check_signals()?,
            }
        }
    }

    fn deliver(&self, mut batch: wellread::Batch) -> Delivered {
        let has_several = batch.arrays() > 1;
        if !self.is_lent {
            if !has_several {
                return Delivered::Own(Batch::new(Pixels::of_loader(batch)));
            }
            return Delivered::Arrays(Pixels::of_arrays(batch).into_iter().map(Batch::shared).collect());
        }
        let (shape, rows) = (batch.shape().to_vec(), batch.rows().to_vec());
        let mut arrays: Vec<LentArray> = vec![];
        if has_several {
            let first = batch.array_start(0).addr().get();
            for i in 0..batch.arrays() {
                let start = batch.array_start(i).addr().get() - first;
                let array = batch.array(i);
                arrays.push((start, array.shape().to_vec(), array.dtype().name()));
            }
        }
        let start = batch.release().expect("a loader that is lent memory has no other");
        let address = start.addr().get();
        if has_several {
            Delivered::LentArrays((address, arrays, rows))
        } else {
            Delivered::Lent((address, shape, rows))
        }
    }
}

#[pymethods]
impl Batches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Delivered>> {
        Ok(self.advance(py)?.map(|batch| self.deliver(batch)))
    }

    /// The next batch as what `from_dlpack` makes of a capsule over its memory; None at the end. For a library that takes
    /// capsules, in one call instead of three; of several arrays the first. Raises ValueError where memory was lent.
    fn next_from<'py>(
        &self,
        py: Python<'py>,
        from_dlpack: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.is_lent {
            return Err(PyValueError::new_err("batches in memory that was lent are delivered by __next__"));
        }
        let Some(batch) = self.advance(py)? else { return Ok(None) };
        let capsule = Batch::new(Pixels::of_loader(batch)).into_capsule(py)?;
        from_dlpack.call1((capsule,)).map(Some)
    }

    /// Batches still to come.
    fn __length_hint__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.with(py, |batches| batches.remaining())?.unwrap_or(0))
    }

    /// The epoch, and how many images of its order all ranks are past; None when it is closed.
    fn progress(&self, py: Python<'_>) -> PyResult<Option<(u64, usize)>> {
        self.with(py, |batches| batches.progress())
    }

    /// How many images were left out, and the first of them: row and error.
    fn skipped(&self, py: Python<'_>) -> PyResult<(usize, Vec<(usize, String)>)> {
        let found = self.with(py, |batches| {
            let skipped = batches.skipped();
            (skipped.count(), skipped.rows().iter().map(|(row, error)| (*row, error.to_string())).collect())
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Stops the threads, in the middle of a read if need be. The iteration is over then.
    fn close(&self, py: Python<'_>) {
        if self.process == wellread::store::process::id() {
            py.detach(|| drop(self.running.lock().unwrap_or_else(PoisonError::into_inner).take()));
        }
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        let batches = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // Its threads are waited for, which should not keep other Python threads from running. Where the interpreter is
        // about to end, there are none.
        if let Some(batches) = batches {
            let mut batches = Some(batches);
            Python::try_attach(|py| py.detach(|| drop(batches.take())));
        }
    }
}
