//! Images collected until they are worth a record batch: what every writer of OME-Arrow columns shares.

use super::arrays::{self, Pending};
use crate::{Error, ImageView, Result, WriteOptions};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::{PixelType, Shape, ome_arrow};

/// Checks images, cuts them into chunks, and makes record batches of them with the feature columns beside.
pub(crate) struct Collector {
    target: PathBuf,
    chunk: Option<[usize; 5]>,
    /// Element type of the pixel lists for images of some type.
    list_of: fn(PixelType) -> PixelType,
    list: Option<PixelType>,
    features: Option<RecordBatch>,
    pending: Pending,
    /// Rows in batches already made.
    done: usize,
}

impl Collector {
    /// For a table at `target`, with the chunks, types and features of `options`.
    ///
    /// # Errors
    /// Chunks that OME-Arrow does not have.
    pub fn new(target: &Path, options: &WriteOptions, list_of: fn(PixelType) -> PixelType) -> Result<Self> {
        if let Some(chunk) = options.chunk.filter(|c| c[..2] != [1, 1] || c.contains(&0)) {
            return Err(Error::new(
                target,
                format_args!("a chunk of {chunk:?} (TCZYX) is not possible in OME-Arrow"),
            )
            .choice()
            .hint("a chunk has one time point, one channel, and at least one pixel: 1,1,Z,Y,X"));
        }
        Ok(Self {
            target: target.to_owned(),
            chunk: options.chunk,
            list_of,
            list: ome_arrow::common_list(&options.types).map(list_of),
            features: options.features.clone(),
            pending: Pending::default(),
            done: 0,
        })
    }

    /// Images collected so far, those of earlier batches included.
    pub fn rows(&self) -> usize {
        self.done + self.pending.len()
    }

    /// Images that wait.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Bytes of pixels that wait.
    pub fn bytes(&self) -> usize {
        self.pending.bytes()
    }

    /// Whether list offsets of 32 bits still reach the end of one more image.
    pub fn has_room(&self, shape: Shape) -> bool {
        self.pending.has_room(shape)
    }

    /// Columns of every batch; the marks of a wellread table as metadata.
    pub fn schema(&self) -> SchemaRef {
        let mut fields = arrays::columns(self.list()).to_vec();
        if let Some(features) = &self.features {
            fields.extend(features.schema().fields().iter().cloned());
        }
        let marks = [
            (ome_arrow::FILE_TYPE_KEY, ome_arrow::TYPE),
            (ome_arrow::FILE_VERSION_KEY, ome_arrow::VERSION),
            (ome_arrow::FILE_WRITER_KEY, env!("CARGO_PKG_VERSION")),
        ];
        let marks: HashMap<_, _> = marks.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        Arc::new(Schema::new_with_metadata(fields, marks))
    }

    /// Element type of the pixel lists, as far as the images until now tell.
    pub fn list(&self) -> PixelType {
        self.list.unwrap_or((self.list_of)(PixelType::U16))
    }

    /// Checks that an image can follow those before it; the bytes of its pixels.
    ///
    /// # Errors
    /// Wrong number of bytes, a shape or a type that the column cannot hold, more images than rows of features.
    pub fn check(&mut self, image: &ImageView<'_>) -> Result<usize> {
        let row = self.rows();
        let refuse = |cause: String| Error::new(&self.target, cause).row(row);
        let bytes = image.shape.checked_bytes(image.dtype).map_err(|e| refuse(e.to_string()))?;
        if bytes != image.pixels.len() {
            return Err(refuse(format!(
                "{} bytes of pixels were given for an image of {} {}",
                image.pixels.len(),
                image.shape,
                image.dtype
            )));
        }
        arrays::check(image.shape).map_err(refuse)?;
        match self.list {
            None => self.list = Some((self.list_of)(image.dtype)),
            Some(list) if !ome_arrow::list_holds(list, image.dtype) => {
                return Err(refuse(format!(
                    "an image of type {} does not fit a column whose pixels are {list}, by the images before it",
                    image.dtype
                ))
                .hint("give the types of all images before the first is written (WriteOptions::types)"));
            }
            Some(_) => {}
        }
        if self.features.as_ref().is_some_and(|f| f.num_rows() <= row) {
            return Err(refuse("there are more images than rows of feature columns".into()));
        }
        Ok(bytes)
    }

    /// Counts an image that an earlier run has written.
    pub fn skip(&mut self) {
        self.done += 1;
    }

    /// Adds an image that was checked.
    pub fn push(&mut self, image: &ImageView<'_>) {
        self.pending.push(image, self.chunk, self.list());
    }

    /// The waiting rows, as a record batch.
    ///
    /// # Errors
    /// Arrays that do not fit together, which is a defect.
    pub fn take(&mut self) -> Result<Option<RecordBatch>> {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(None);
        }
        let rows = pending.len();
        let mut columns: Vec<ArrayRef> = pending.into_columns(self.list(), self.done as i64);
        if let Some(features) = &self.features {
            columns.extend(features.columns().iter().map(|c| c.slice(self.done, rows)));
        }
        let batch = RecordBatch::try_new(self.schema(), columns)
            .map_err(|e| Error::new(&self.target, format_args!("cannot write: {e}")))?;
        self.done += rows;
        Ok(Some(batch))
    }
}
