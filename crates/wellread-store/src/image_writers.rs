//! Writers of whole images, of which each is a file or a folder of its own: in the caller's thread, or in several.
//!
//! ```text
//!  StoreWriter::write ─▶ one job, on this machine: encoded and written ────────────────┐
//!                   └─▶ a copy of the pixels ─▶ queue ─▶ threads: encode, write ───────┴─▶ noted in the journal
//!                         └ waits while the copies are more bytes than may wait
//! ```
//!
//! Each file behind a network is a request, whose answer takes tens of milliseconds. So many images are written at once there,
//! however few jobs there are: the threads wait most of the time.

use crate::byte_budget::ByteBudget;
use crate::journal::Journal;
use crate::staged::Staged;
use crate::surface::option;
use crate::{Error, ImageView, Result, place, threads, try_alloc};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use wellread_image::{ImageMetadata, PixelType, Shape};

/// Images that are written at once behind a network, at most.
const REMOTE_WRITERS: usize = 32;
/// Bytes of these, about; more where there are as many jobs.
const REMOTE_BYTES: usize = 256 << 20;

/// Threads that have panicked, which is a defect.
const STOPPED: &str = "the writing threads have stopped";

/// A format's way to write one image.
pub(crate) trait WriteImage: Send + 'static {
    /// Writes image `row` to `path`.
    ///
    /// # Errors
    /// It cannot be encoded, or not be written.
    fn write(&mut self, row: usize, image: &ImageView<'_>, path: &Path) -> Result<()>;
}

/// Writes images as they are given.
pub(crate) struct ImageWriters<W> {
    target: PathBuf,
    jobs: usize,
    budget: Arc<ByteBudget>,
    journal: Option<Journal>,
    make: Box<dyn Fn() -> Result<W> + Send>,
    running: Option<Running<W>>,
    /// Whether an image could not be written, so that the set is never whole.
    has_failed: bool,
}

enum Running<W> {
    Here(W),
    Threads(Threads),
}

struct Threads {
    queue: Option<Sender<Job>>,
    budget: Arc<ByteBudget>,
    handles: Vec<JoinHandle<()>>,
    failure: Arc<Mutex<Option<Error>>>,
}

/// One image on its way to a thread.
struct Job {
    path: PathBuf,
    row: usize,
    metadata: ImageMetadata,
    shape: Shape,
    dtype: PixelType,
    pixels: Vec<u8>,
    /// After them: it counts them until they are dropped, also where its thread panics.
    _held: HeldBytes,
}

/// Bytes of an image that waits: they count until this is dropped.
struct HeldBytes {
    budget: Arc<ByteBudget>,
    bytes: u64,
}

impl HeldBytes {
    /// Counts so many, once there is room for them.
    fn of(budget: &Arc<ByteBudget>, bytes: u64) -> Self {
        budget.take(bytes);
        Self { budget: Arc::clone(budget), bytes }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

impl<W: WriteImage> ImageWriters<W> {
    /// For the set `staged`, with `jobs` writers that `make` makes, or more behind a network. They begin with the first image, and
    /// hold `memory` bytes of pixels at most, where that is bounded.
    pub fn new(
        staged: &Staged,
        jobs: usize,
        memory: Option<u64>,
        make: impl Fn() -> Result<W> + Send + 'static,
    ) -> Self {
        Self {
            target: staged.target().to_owned(),
            jobs: jobs.max(1),
            budget: Arc::new(ByteBudget::new(memory.unwrap_or(u64::MAX))),
            journal: staged.journal().cloned(),
            make: Box::new(make),
            running: None,
            has_failed: false,
        }
    }

    /// Writes image `row` to `path`, or hands it to a thread that does, and notes that it is complete.
    ///
    /// # Errors
    /// Those of [`WriteImage::write`], maybe of an earlier image; the journal cannot be written.
    pub fn write(&mut self, row: usize, image: &ImageView<'_>, path: PathBuf) -> Result<()> {
        let written = self.try_write(row, image, path);
        self.has_failed |= written.is_err();
        written
    }

    fn try_write(&mut self, row: usize, image: &ImageView<'_>, path: PathBuf) -> Result<()> {
        let running = match self.running.take() {
            Some(running) => running,
            None => self.start(image.pixels.len())?,
        };
        match self.running.insert(running) {
            Running::Here(writer) => {
                writer.write(row, image, &path).map_err(|e| e.row(row))?;
                self.journal.as_ref().map_or(Ok(()), |journal| journal.add(row))
            }
            Running::Threads(threads) => threads.give(row, image, path, &self.target),
        }
    }

    fn start(&self, bytes: usize) -> Result<Running<W>> {
        let is_remote = place::is_remote(&self.target);
        let count = if is_remote {
            self.jobs.max(REMOTE_WRITERS.min(REMOTE_BYTES / bytes.max(1)))
        } else {
            self.jobs
        };
        if count < 2 {
            return (self.make)().map(Running::Here);
        }
        let (queue, jobs) = bounded(self.jobs);
        let failure = Arc::new(Mutex::new(None));
        let start = |_| {
            let (writer, jobs, failure) = ((self.make)()?, jobs.clone(), Arc::clone(&failure));
            let journal = self.journal.clone();
            threads::spawn(&self.target, move || work(&jobs, writer, journal.as_ref(), &failure))
        };
        // Those that can be had: one at least.
        let first = start(0)?;
        let others = (1..count).map_while(|i| start(i).ok());
        let handles = std::iter::once(first).chain(others).collect();
        let budget = Arc::clone(&self.budget);
        Ok(Running::Threads(Threads { queue: Some(queue), budget, handles, failure }))
    }

    /// Waits until all images are written.
    ///
    /// # Errors
    /// The first one that could not be, also where [`Self::write`] has told of it.
    pub fn join(&mut self) -> Result<()> {
        if let Some(Running::Threads(threads)) = &mut self.running {
            threads.join(&self.target)?;
        }
        if self.has_failed {
            return Err(Error::new(&self.target, "an earlier image could not be written"));
        }
        Ok(())
    }
}

impl<W> Drop for ImageWriters<W> {
    fn drop(&mut self) {
        // Threads must end before the staged folder is removed under them.
        if let Some(Running::Threads(threads)) = &mut self.running {
            let _ = threads.join(&self.target);
        }
    }
}

impl Threads {
    fn give(&self, row: usize, image: &ImageView<'_>, path: PathBuf, target: &Path) -> Result<()> {
        if let Some(error) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        let held = HeldBytes::of(&self.budget, image.pixels.len() as u64);
        let pixels = try_alloc::copied(image.pixels).map_err(|cause| {
            Error::new(target, cause)
                .row(row)
                .hint(format_args!("write with fewer threads ({})", option("jobs")))
        })?;
        let (metadata, shape, dtype) = (image.metadata.clone(), image.shape, image.dtype);
        let job = Job { path, row, metadata, shape, dtype, pixels, _held: held };
        let sent = self.queue.as_ref().is_some_and(|queue| queue.send(job).is_ok());
        if sent { Ok(()) } else { Err(Error::new(target, STOPPED)) }
    }

    /// Waits until all threads have ended. One that panicked has not written its image, and has said why.
    fn join(&mut self, target: &Path) -> Result<()> {
        drop(self.queue.take());
        let mut has_panicked = false;
        for handle in self.handles.drain(..) {
            has_panicked |= handle.join().is_err();
        }
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)?;
        if has_panicked { Err(Error::new(target, STOPPED)) } else { Ok(()) }
    }
}

/// A writing thread: takes jobs until the queue closes; keeps the first failure of all threads.
fn work<W: WriteImage>(
    jobs: &Receiver<Job>,
    mut writer: W,
    journal: Option<&Journal>,
    failure: &Mutex<Option<Error>>,
) {
    for job in jobs {
        let image =
            ImageView { metadata: &job.metadata, shape: job.shape, dtype: job.dtype, pixels: &job.pixels };
        let written = writer.write(job.row, &image, &job.path);
        let noted = written.and_then(|()| journal.map_or(Ok(()), |journal| journal.add(job.row)));
        if let Err(error) = noted {
            let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error.row(job.row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::staged::Existing;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// A writer whose result follows from an image's row.
    struct Broken(fn(usize) -> Result<()>);

    impl WriteImage for Broken {
        fn write(&mut self, row: usize, _: &ImageView<'_>, _: &Path) -> Result<()> {
            self.0(row)
        }
    }

    /// The results of three images that are written with so many jobs, and the error of the whole.
    fn said(jobs: usize, what: fn(usize) -> Result<()>) -> (Vec<Result<()>>, String) {
        let dir = tempfile::tempdir().unwrap();
        let staged = Staged::new(&dir.path().join("set"), Existing::Kept).unwrap();
        let mut writers = ImageWriters::new(&staged, jobs, None, move || Ok(Broken(what)));
        let metadata = ImageMetadata::named("a");
        let image =
            ImageView { metadata: &metadata, shape: Shape::plane(1, 1), dtype: PixelType::U8, pixels: &[7] };
        let each = (0..3).map(|row| writers.write(row, &image, dir.path().join("a"))).collect();
        (each, writers.join().unwrap_err().to_string())
    }

    /// The set was complete without the image.
    #[test]
    fn a_thread_that_panics_is_an_error() {
        let (each, whole) = said(2, |row| {
            assert_ne!(row, 1, "a defect");
            Ok(())
        });
        assert!(each.iter().all(Result::is_ok), "{each:?}");
        assert!(whole.contains("the writing threads have stopped"), "{whole}");
    }

    /// Counts the images that it has written.
    struct Counting(Arc<AtomicUsize>);

    impl WriteImage for Counting {
        fn write(&mut self, _: usize, _: &ImageView<'_>, _: &Path) -> Result<()> {
            std::thread::sleep(Duration::from_millis(20));
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    /// Images of three bytes wait alone, also where fewer bytes may wait.
    #[test]
    fn no_more_bytes_wait_for_threads_than_may() {
        for (memory, may_wait) in [(0, 1), (5, 1), (6, 2)] {
            let dir = tempfile::tempdir().unwrap();
            let staged = Staged::new(&dir.path().join("set"), Existing::Kept).unwrap();
            let written = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&written);
            let make = move || Ok(Counting(Arc::clone(&counted)));
            let mut writers = ImageWriters::new(&staged, 4, Some(memory), make);
            let (metadata, pixels) = (ImageMetadata::named("a"), [1, 2, 3]);
            let (shape, dtype) = (Shape::plane(1, 3), PixelType::U8);
            for row in 0..6 {
                let image = ImageView { metadata: &metadata, shape, dtype, pixels: &pixels };
                writers.write(row, &image, dir.path().join("a")).unwrap();
                let complete = written.load(Ordering::SeqCst);
                assert!(row + 1 - complete <= may_wait, "{memory} bytes: {complete} of {}", row + 1);
            }
            writers.join().unwrap();
            assert_eq!(written.load(Ordering::SeqCst), 6);
        }
    }

    /// A caller may pass over the error of an image, and finish the set.
    #[test]
    fn a_set_with_an_image_that_failed_is_not_whole() {
        let full = |row: usize| if row == 1 { Err(Error::new("a", "the disk is full")) } else { Ok(()) };
        let (each, whole) = said(1, full);
        assert_eq!(each.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
        assert!(whole.contains("an earlier image could not be written"), "{whole}");
    }
}
