//! [`RecordBatches`]: images of any store as record batches of the published OME-Arrow struct.

use crate::features::{self, is_own_of_tables};
use crate::guard::panic_message;
use crate::ome_arrow::Collector;
use crate::{Error, ImageView, Result, Scratch, Store, WriteOptions, read_region};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wellread_image::PixelType;

/// Bytes of pixels of a record batch, and images, at most; one image may be larger.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_ROWS: usize = 1024;

/// Rows of a store on their way into record batches. They have the number of the row, the images as OME-Arrow structs with typed
/// pixels, and the columns beside them.
pub struct RecordBatches {
    rows: Range<usize>,
    collector: Collector,
    scratch: Scratch,
    pixels: Vec<u8>,
    /// A panic has left it in an unknown state.
    has_panicked: bool,
}

impl RecordBatches {
    /// All rows of `store`. Reads the type of each, and the columns beside the images.
    ///
    /// # Errors
    /// Rows whose type is not known, columns that cannot be read.
    pub fn new(store: &dyn Store) -> Result<Self> {
        let mut types: Vec<PixelType> = vec![];
        for row in 0..store.len() {
            let dtype = store.row_info(row)?.dtype;
            if !types.contains(&dtype) {
                types.push(dtype);
            }
        }
        let columns = features::all(store)?;
        let columns = columns.map(|columns| features::renamed(&columns, &is_own_of_tables)).transpose();
        let features = columns.map_err(|e| Error::new(store.path(), e))?.map(|(columns, _)| columns);
        let options = WriteOptions { features, types, ..WriteOptions::default() };
        let collector = Collector::new(store.path(), &options, |dtype| dtype)?;
        let (scratch, pixels) = (Scratch::default(), vec![]);
        Ok(Self { rows: 0..store.len(), collector, scratch, pixels, has_panicked: false })
    }

    /// The columns of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.collector.schema()
    }

    /// The next rows; `None` after the last. `store` is the one that [`Self::new`] was given, or the same opened anew.
    ///
    /// # Errors
    /// An image that cannot be read, or is too large for the struct.
    pub fn next_batch(&mut self, store: &dyn Store) -> Result<Option<RecordBatch>> {
        while self.rows.start < self.rows.end
            && self.collector.pending() < BATCH_ROWS
            && self.collector.bytes() < BATCH_BYTES
        {
            let row = self.rows.start;
            let info = store.row_info(row)?;
            if self.collector.pending() > 0 && !self.collector.has_room(info.shape) {
                break;
            }
            let metadata = store.metadata(row)?;
            read_region(store, row, &info.shape.full(), &mut self.scratch, &mut self.pixels)?;
            let image =
                ImageView { metadata: &metadata, shape: info.shape, dtype: info.dtype, pixels: &self.pixels };
            self.collector.check(&image).map_err(|e| Error::new(store.path(), e.cause()).row(row))?;
            self.collector.push(&image);
            self.rows.start += 1;
        }
        self.collector.take()
    }

    /// As [`Self::next_batch`], for callers in C, whose process a panic would end: it becomes an error, and nothing comes after it.
    ///
    /// # Errors
    /// As [`Self::next_batch`]; a panic of a reader.
    pub fn next_caught(&mut self, store: &dyn Store) -> Result<Option<RecordBatch>> {
        if self.has_panicked {
            return Ok(None);
        }
        let row = self.rows.start;
        catch_unwind(AssertUnwindSafe(|| self.next_batch(store))).unwrap_or_else(|panic| {
            self.has_panicked = true;
            let cause = format_args!("panicked while reading rows from {row} on: {}", panic_message(&*panic));
            Err(Error::new(store.path(), cause).hint("this is a defect of wellread; please report it"))
        })
    }
}
