//! [`StoreWriter`] over any engine.

use super::TableSink;
use crate::finished::Finished;
use crate::ome_arrow::Collector;
use crate::{Error, ImageView, Result, StoreWriter, Tune, WriteOptions, threads};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use wellread_image::ImageMetadata;

/// Bytes of pixels that are collected before they become a record batch.
const BATCH_BYTES: usize = 8 << 20;
/// Images that are collected at most.
const BATCH_ROWS: usize = 1024;

/// Makes an engine's sink once the columns are known.
pub type MakeSink = Box<dyn FnOnce(SchemaRef) -> Result<Box<dyn TableSink>> + Send>;

/// Writes images to an OME-Arrow column of an engine's table. Pixels are lists of the type that holds those of all images
/// ([`WriteOptions::types`]).
pub struct TableWriter {
    collector: Collector,
    make: Option<MakeSink>,
    sink: Option<Box<dyn TableSink>>,
    target: PathBuf,
    /// Bytes of pixels of a record batch: what engines take as a hint for the size of their own pieces.
    batch_bytes: usize,
    /// Rows that an interrupted run has left; `None` where nothing would be kept.
    resumed: Option<usize>,
}

impl TableWriter {
    /// A writer to `target`. `make` is called with the columns. That is when the first batch is ready, or at once to go on with
    /// an interrupted run.
    ///
    /// # Errors
    /// Options that a table of images cannot follow; the error of `make`.
    pub fn create(target: &Path, options: &WriteOptions, make: MakeSink) -> Result<Self> {
        if let Some(variant) = options.variant.as_deref().filter(|v| *v != "typed") {
            return Err(Error::new(
                target,
                format_args!("there is no variant {variant:?} of OME-Arrow tables"),
            )
            .choice()
            .hint("the one that is written is \"typed\""));
        }
        if options.shard.is_some() {
            return Err(Error::new(target, "tables have no shards")
                .choice()
                .hint("leave the shard size out"));
        }
        if options.resume.is_some() && options.types.is_empty() {
            return Err(Error::new(
                target,
                "a table is gone on with only where the types of its images are known",
            )
            .hint("give them in WriteOptions::types"));
        }
        let collector = Collector::new(target, options, |dtype| dtype)?;
        let batch_bytes = if options.tune == Tune::Random { BATCH_BYTES } else { 4 * BATCH_BYTES };
        let target = target.to_owned();
        let mut writer = Self { collector, make: Some(make), sink: None, target, batch_bytes, resumed: None };
        if options.resume.is_some() {
            writer.begin()?;
            writer.resumed = writer.sink.as_ref().map(|sink| sink.complete());
        }
        Ok(writer)
    }

    /// Makes the sink, unless it was made.
    fn begin(&mut self) -> Result<()> {
        if let Some(make) = self.make.take() {
            self.sink = Some(make(self.collector.schema())?);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.begin()?;
        let batch = self.collector.take()?;
        let Some(sink) = self.sink.as_mut() else {
            return Err(Error::new(&self.target, "an earlier image could not be written"));
        };
        let result = batch.map_or(Ok(()), |batch| sink.write(batch));
        if result.is_err() {
            // A half-written table must not be continued.
            self.sink = None;
        }
        result
    }
}

impl StoreWriter for TableWriter {
    fn write(&mut self, image: &ImageView<'_>) -> Result<()> {
        self.collector.check(image)?;
        if !self.collector.has_room(image.shape) {
            self.flush()?;
        }
        self.collector.push(image);
        if self.collector.pending() >= BATCH_ROWS || self.collector.bytes() >= self.batch_bytes {
            self.flush()?;
        }
        Ok(())
    }

    fn complete(&self) -> usize {
        self.resumed.unwrap_or(0)
    }

    fn skip(&mut self, _: &ImageMetadata) -> Result<()> {
        self.collector.skip();
        Ok(())
    }

    fn complete_output(mut self: Box<Self>) -> Result<Finished> {
        self.flush()?;
        match self.sink.take() {
            Some(sink) => sink.complete_output(),
            None => Err(Error::new(&self.target, "an earlier image could not be written")),
        }
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        // Images that wait are complete: a later run need not read them again.
        if self.resumed.is_some() && self.sink.is_some() && !std::thread::panicking() {
            let _ = self.flush();
        }
    }
}

/// A sink for engines that pull: their writer runs in a thread of its own, fed through a channel that holds two
/// batches.
pub struct ThreadSink {
    target: PathBuf,
    batches: Option<Sender<RecordBatch>>,
    thread: Option<JoinHandle<Result<()>>>,
    output: Option<Box<dyn FnOnce() -> Result<Finished> + Send>>,
    complete: usize,
}

impl ThreadSink {
    /// Starts `work`, which takes batches until there are no more; `output` is the finished output then. It
    /// owns the staged output, which goes with it when it is dropped without being called.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn spawn(
        target: PathBuf,
        work: impl FnOnce(Receiver<RecordBatch>) -> Result<()> + Send + 'static,
        output: impl FnOnce() -> Result<Finished> + Send + 'static,
    ) -> Result<Self> {
        let (send, receive) = bounded(2);
        let thread = threads::spawn(&target, move || work(receive))?;
        Ok(Self {
            target,
            batches: Some(send),
            thread: Some(thread),
            output: Some(Box::new(output)),
            complete: 0,
        })
    }

    /// With rows that an interrupted run has left.
    pub fn after(mut self, complete: usize) -> Self {
        self.complete = complete;
        self
    }

    /// Ends the thread and tells what it came to.
    fn join(&mut self) -> Result<()> {
        self.batches = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(Error::new(&self.target, "the engine's writer panicked")
                .hint("this is a defect; please report it")),
            None => Err(Error::new(&self.target, "an earlier image could not be written")),
        }
    }
}

impl TableSink for ThreadSink {
    fn complete(&self) -> usize {
        self.complete
    }

    fn write(&mut self, batch: RecordBatch) -> Result<()> {
        if self.batches.as_ref().is_some_and(|b| b.send(batch).is_ok()) {
            return Ok(());
        }
        // The thread has hung up: it says why.
        self.join()?;
        Err(Error::new(&self.target, "the engine stopped taking images"))
    }

    fn complete_output(mut self: Box<Self>) -> Result<Finished> {
        self.join()?;
        let Some(output) = self.output.take() else {
            return Err(Error::new(&self.target, "was completed before"));
        };
        output()
    }
}

impl Drop for ThreadSink {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // The engine's output at the early end is removed with the staged output, or a later run goes on
            // with it.
            let _ = self.join();
        }
    }
}
