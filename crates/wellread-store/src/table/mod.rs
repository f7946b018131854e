//! Images as rows of a table, whatever engine holds the table: one [`Store`](crate::Store) and one
//! [`StoreWriter`](crate::StoreWriter) for Lance, Vortex and DuckDB alike.
//!
//! ```text
//!  ImageTable (engine) ──read(rows, part)──▶ RecordBatch ──ome_arrow──▶ RowInfo, ImageMetadata, Blocks   TableStore
//!                      ──read_pieces(rows)──▶ RowPieces ──ome_arrow──▶ Blocks, without arrays
//!  ImageView ──ome_arrow──▶ RecordBatch ──write──▶ TableSink (engine)                                   TableWriter
//! ```
//!
//! An engine can fetch some columns of some rows, and append rows; this module knows the meaning of an OME-Arrow
//! column. Engines are bound to Arrow releases of their own. [`arrow_bridge!`](crate::arrow_bridge) moves record
//! batches between those and this crate's by the Arrow C data interface, without a copy.

mod batches;
mod bridge;
mod memory;
mod pieces;
mod row;
mod store;
mod writer;

#[doc(hidden)]
pub use {arrow_array, arrow_buffer, arrow_schema};

pub use crate::numbers::Numbers;
pub use batches::RecordBatches;
pub use memory::MemoryTable;
pub use pieces::RowPieces;
pub use store::TableStore;
pub use writer::{MakeSink, TableWriter, ThreadSink};

use crate::finished::Finished;
use crate::place::WantedRanges;
use crate::{FormatContext, LeftOut, PageCache, Result, StoreLayout};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Rows that are asked of an engine.
#[derive(Clone, Debug)]
pub enum Rows<'a> {
    /// All rows of a range, to be streamed.
    Range(Range<usize>),
    /// Chosen rows, in ascending order, each once.
    Chosen(&'a [usize]),
}

impl Rows<'_> {
    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::Chosen(rows) => rows.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Columns that are asked of an engine: paths of field names, outermost first, such as
/// `["ome_image", "chunks", "pixels"]`. A path leads through structs and lists of structs, and stands for all
/// that is below it.
pub type Columns = [Vec<String>];

/// A table with a column of images, open for reading in some engine. Methods may be called from many threads at
/// once.
pub trait ImageTable: Send + Sync {
    /// The format's name as in [`crate::Format::name`].
    fn format(&self) -> &'static str;

    /// The opened path.
    fn path(&self) -> &Path;

    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All columns, in this crate's Arrow types.
    fn schema(&self) -> SchemaRef;

    /// Columns beside images that hold no plain values although their Arrow types would, such as times that have an offset in the
    /// engine alone.
    fn columns_left_out(&self) -> Vec<LeftOut> {
        vec![]
    }

    /// Whether the largest number of a time is infinity, also in nanoseconds.
    fn has_infinity(&self) -> bool {
        false
    }

    /// Whether the table says that its images' declared type is their own ([`wellread_image::ome_arrow::FILE_WRITER_KEY`]).
    fn types_are_trusted(&self) -> bool;

    /// How many rows are worth asking for at once: see [`crate::Hints::rows_per_read`].
    fn rows_per_read(&self) -> usize {
        1
    }

    /// The decoded pixels that the table keeps, where it keeps some: see [`crate::Hints::page_cache`].
    fn pages(&self) -> Option<&dyn PageCache> {
        None
    }

    /// How pixels are kept. `variant` may be left empty: the store knows it.
    fn layout(&self) -> Result<StoreLayout>;

    /// Files that hold the table.
    fn files(&self) -> Result<Vec<PathBuf>>;

    /// Whether the engine's own records prove that each of `columns` has one value in all rows and is null in none.
    /// Then one row tells of all. `false` where that could only be told by reading rows.
    fn is_constant(&self, columns: &Columns) -> bool {
        let _ = columns;
        false
    }

    /// Reads `columns` of `rows`, handing on batches in the order of rows, together as many rows as asked for.
    /// Each batch has the outermost columns by their names. Below them may be more fields than asked for, where
    /// the engine cannot leave them out. `context` keeps what the engine uses again from read to read.
    ///
    /// # Errors
    /// The engine's error, as an error of [`Self::path`]; the error of `each`.
    fn read(
        &self,
        rows: Rows<'_>,
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()>;

    /// For tables whose record batches are in memory: the one that has a row, and which rows those of the batch are.
    fn batch_of(&self, row: usize) -> Option<(&RecordBatch, Range<usize>)> {
        let _ = row;
        None
    }

    /// As [`Self::read`], of chunks or planes, without arrays: `columns` are numbers of the structs in one list, and
    /// last their pixels. Calls `each(position in rows, pieces)` for rows from the first on, and returns the number of
    /// calls. The caller asks [`Self::read`] for the others, which the engine does not have like that. It also gives
    /// the error of rows that cannot be read. Whether the image itself is null is not told: the caller knows.
    ///
    /// # Errors
    /// The error of `each`, and the error that keeps any row from being read.
    fn read_pieces(
        &self,
        rows: &[usize],
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut EachRow<'_>,
    ) -> Result<usize> {
        let _ = (rows, columns, context, each);
        Ok(0)
    }

    /// Adds what has to be read before [`Self::ranges`] can tell where rows lie, as far as that is known without reading: see
    /// [`crate::Store::heads`]. `rows` are in ascending order, each once.
    fn heads(&self, rows: &[usize], columns: &Columns, wanted: &mut WantedRanges) {
        let _ = (rows, columns, wanted);
    }

    /// Adds bytes that the first reads of a table want which was just opened, as far as its metadata tell. These are values of the columns
    /// `index`, and bytes that tell where the rows of `pieces` lie. It is for tables that are remote, and may wait for their metadata.
    fn first_look(&self, index: &Columns, pieces: &Columns, wanted: &mut WantedRanges) {
        let _ = (index, pieces, wanted);
    }

    /// Adds the bytes of files that [`Self::read_pieces`] and [`Self::read`] are going to read for these columns of these rows. Rows
    /// are in ascending order, each once. Rows that the engine's library has to read by itself add nothing.
    ///
    /// # Errors
    /// The index of their positions cannot be read; rows that are not there may be errors, too.
    fn ranges(&self, rows: &[usize], columns: &Columns, wanted: &mut WantedRanges) -> Result<()> {
        let _ = (rows, columns, wanted);
        Ok(())
    }
}

/// The function that [`ImageTable::read_pieces`] calls with the position of a row among those asked for, and
/// its pieces.
pub type EachRow<'a> = dyn FnMut(usize, &dyn RowPieces) -> Result<()> + 'a;

/// A table being written in some engine. Dropping it without finishing removes what it wrote, unless the options say
/// [`resume`](crate::WriteOptions::resume): then all rows that it took are kept for a later run.
pub trait TableSink: Send {
    /// Rows that an interrupted run has left.
    fn complete(&self) -> usize {
        0
    }

    /// Appends rows. All batches have the schema of the first.
    fn write(&mut self, batch: RecordBatch) -> Result<()>;

    /// Completes the table where it was written, which is not yet its place.
    fn complete_output(self: Box<Self>) -> Result<Finished>;
}
