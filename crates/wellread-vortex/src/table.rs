//! [`VortexTable`]: rows and columns of a Vortex file.
//!
//! ```text
//!  columns ──selection──▶ types and series, once ─┬─ pixels that lie plain ──read_rows──▶ pieces of each row
//!  rows ──────────────────────────────────────────┴─ all else ──Plan──▶ RecordBatch
//! ```

use crate::cache::Cache;
use crate::file::OpenFile;
use crate::gather::{BufferPool, LEVELS};
use crate::plan::Plan;
use crate::rows::{ImageList, Located, NotBorrowable};
use crate::session::{Cause, Session, reading};
use crate::times;
use crate::tree::{Column, Source, plain};
use crate::types::Type;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vortex::arrow::ArrowSessionExt;
use vortex::layout::segments::SegmentSource;
use wellread_image::ome_arrow::{FILE_WRITER_KEY, field};
use wellread_store::direct::{Plans, WantedFields, handed_on};
use wellread_store::mapping;
use wellread_store::table::arrow_array::RecordBatch;
use wellread_store::table::arrow_schema::{DataType, SchemaRef};
use wellread_store::table::{Columns, EachRow, ImageTable, Rows};
use wellread_store::words::counted;
use wellread_store::{Error, FormatContext, PageCache, Result, StoreLayout, place};

/// Name of the format.
pub(crate) const NAME: &str = "vortex";

/// Bytes of a batch at which it ends. More would leave the nearer caches before they are used.
const BATCH: usize = 2 << 20;
/// Bytes of opened pieces that a table keeps.
const KEPT: usize = 256 << 20;
/// Bytes of decompressed pixels among them, of encodings that are slow to cut: as many as Parquet's pages.
const DECODED: usize = 64 << 20;

/// Rows that are looked up together: the data of each of them are asked of memory while the others' are on their
/// way.
const ROWS_AHEAD: usize = 16;

/// Sets of columns that are remembered: a loader asks for few.
const SELECTIONS: usize = 16;

/// Pieces that are looked at, at most, to tell how pixels are encoded.
const LOOKED_AT: usize = 16;

/// A Vortex file with a column of images, open for reading.
pub struct VortexTable {
    file: OpenFile,
    source: Source,
    /// The whole table as one column.
    columns: Column,
    /// Its type: a struct of the columns.
    types: Type,
    /// The earlier selections: loaders ask for the same columns again and again.
    selections: Plans<Arc<Selection>>,
    schema: SchemaRef,
    metadata: HashMap<String, String>,
}

/// Columns that are asked for.
struct Selection {
    wanted: WantedFields,
    /// The table's type without all others.
    types: Type,
    /// How they are read without arrays, where they are chunks or planes, and whether that is worth trying. Once one was
    /// found to be compressed, it is not.
    list: Option<ImageList>,
    lies_plain: AtomicBool,
}

/// Memory of a read, used again for the next one.
#[derive(Default)]
struct ReadMemory {
    pool: BufferPool,
    located: Located,
}

impl VortexTable {
    /// Opens a file: reads its footer, no rows.
    ///
    /// # Errors
    /// A file that is missing, no Vortex, of a newer version, truncated or corrupt, or not a table.
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenFile::open(path)?;
        let text = |(key, value): (&str, &vortex::buffer::ByteBuffer)| {
            (key.to_owned(), String::from_utf8_lossy(value.as_slice()).into_owned())
        };
        let metadata: HashMap<_, _> = file.vortex.metadata_segments().map(text).collect();
        let (columns, types, schema) = reading(path, "cannot read the columns", || {
            let session = &Session::reading().session;
            let schema = session.arrow().to_arrow_schema(file.vortex.dtype())?;
            let fields = schema.fields().iter().map(|f| plain(f)).collect::<Vec<_>>();
            let theirs = arrow_schema::Schema::new(fields).with_metadata(metadata.clone());
            let ours = crate::bridge::import_schema(&theirs)?.with_metadata(metadata.clone());
            let types = Type::of_table(&theirs, &ours)?;
            Ok((Column::new(Arc::clone(file.vortex.footer().layout()), &mut 0)?, types, ours))
        })?;
        let remote_segments = file.segments();
        let segments: Arc<dyn SegmentSource> = match &remote_segments {
            Some(segments) => Arc::new(segments.clone()),
            None => file.vortex.segment_source(),
        };
        let source = Source {
            segments,
            remote_segments,
            cache: Cache::new(KEPT),
            decoded: AtomicUsize::new(DECODED),
            limit: usize::try_from(file.length.saturating_mul(8)).unwrap_or(usize::MAX),
            is_tested: file.is_tested,
        };
        let selections = Plans::new(SELECTIONS);
        Ok(Self { file, source, columns, types, selections, schema: Arc::new(schema), metadata })
    }

    /// The selection of a call.
    fn selection(&self, columns: &Columns) -> Result<Arc<Selection>> {
        self.selections.get(columns, || {
            if let Some(names) = columns.iter().find(|names| !self.types.has_path(names)) {
                return Err(Error::new(&self.file.path, format_args!("has no column {:?}", names.join("."))));
            }
            let wanted = WantedFields::of(columns);
            let types = self.types.only(&wanted);
            let list = ImageList::new(columns, &self.columns);
            let lies_plain = AtomicBool::new(list.is_some());
            Ok(Arc::new(Selection { wanted, types, list, lies_plain }))
        })
    }

    /// How pixels are encoded, by a look at some pieces, and how many rows lie together.
    fn describe(&self, name: &str, list: &str) -> Result<Option<(String, String)>, Cause> {
        let mut column = &self.columns;
        let mut path = &[name, list, field::PIXELS][..];
        while let (Column::Struct { fields, .. }, Some((name, rest))) = (column, path.split_first()) {
            let Some((_, below)) = fields.iter().find(|(n, _)| n == name) else { return Ok(None) };
            (column, path) = (below, rest);
        }
        let Column::Series(series) = column else { return Ok(None) };
        let pieces = series.pieces()?;
        let mut codecs: Vec<String> = vec![];
        for at in (0..pieces).step_by(pieces.div_ceil(LOOKED_AT).max(1)) {
            let piece = series.raw_piece(at, &self.source)?;
            let Some(leaf) = piece.leaf(path).filter(|leaf| !leaf.values.is_empty()) else { continue };
            let codec = codec(&leaf.values);
            if !codecs.contains(&codec) {
                codecs.push(codec);
            }
        }
        if codecs.is_empty() {
            return Ok(None);
        }
        let rows = self.len().div_ceil(pieces.max(1));
        let pieces = format!("{} of about {}", counted(pieces, "chunk"), counted(rows, "image"));
        Ok(Some((codecs.join(", "), pieces)))
    }

    /// Columns with lists of pixels, and those lists.
    fn pixel_lists(&self) -> impl Iterator<Item = (&str, &str)> {
        self.schema.fields().iter().flat_map(|column| {
            let DataType::Struct(fields) = column.data_type() else { return vec![] };
            let lists = [field::CHUNKS, field::PLANES].into_iter();
            let there = lists.filter(|list| fields.iter().any(|f| f.name() == list));
            there.map(|list| (column.name().as_str(), list)).collect::<Vec<_>>()
        })
    }
}

impl ImageTable for VortexTable {
    fn format(&self) -> &'static str {
        NAME
    }

    fn path(&self) -> &Path {
        &self.file.path
    }

    fn len(&self) -> usize {
        self.file.vortex.row_count() as usize
    }

    fn pages(&self) -> Option<&dyn PageCache> {
        Some(&self.source)
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn types_are_trusted(&self) -> bool {
        self.metadata.contains_key(FILE_WRITER_KEY)
    }

    fn layout(&self) -> Result<StoreLayout> {
        let found = self.file.while_whole(|| {
            reading(&self.file.path, "cannot read the layout", || {
                self.pixel_lists().find_map(|(name, list)| self.describe(name, list).transpose()).transpose()
            })
        })?;
        let (codec, pieces) = found.unwrap_or_else(|| ("none".to_owned(), "no pixels".to_owned()));
        Ok(StoreLayout { codec, pieces, ..StoreLayout::default() })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(vec![self.file.path.clone()])
    }

    fn read(
        &self,
        rows: Rows<'_>,
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.file.while_whole(|| self.read_batches(&rows, columns, context, each))
    }

    fn read_pieces(
        &self,
        rows: &[usize],
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut EachRow<'_>,
    ) -> Result<usize> {
        self.file.while_whole(|| self.read_rows(rows, columns, context, each))
    }

    /// The footer, which is in memory, says where all segments lie.
    fn ranges(&self, rows: &[usize], columns: &Columns, wanted: &mut place::WantedRanges) -> Result<()> {
        let Some(segments) = &self.source.remote_segments else { return Ok(()) };
        let selection = self.selection(columns)?;
        let missing = reading(&self.file.path, "cannot read the columns", || {
            let mut plan = Plan::default();
            plan.pick(&self.columns, &selection.types, &selection.wanted)?;
            plan.missing(rows, &self.source)
        })?;
        for (offset, length) in segments.ranges(&missing) {
            wanted.push(&self.file.path, offset, length);
        }
        Ok(())
    }
}

impl PageCache for Source {
    fn max_bytes(&self) -> usize {
        self.decoded.load(Ordering::Relaxed)
    }

    fn keep_at_most(&self, bytes: usize) {
        self.decoded.fetch_min(bytes, Ordering::Relaxed);
    }

    fn forget_all(&self) {
        self.cache.forget();
    }
}

impl VortexTable {
    /// Reads rows as record batches.
    fn read_batches(
        &self,
        rows: &Rows<'_>,
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let path = &self.file.path;
        let selection = self.selection(columns)?;
        if let Some(row) = rows.last().filter(|row| *row >= self.len()) {
            return Err(Error::no_such_row(path, row, self.len()));
        }
        let mut rows = (0..rows.len()).map(|i| rows.at(i));
        let mut next = Vec::with_capacity(ROWS_AHEAD);
        let ReadMemory { pool, .. } = context.get();
        let mut plan = Plan::default();
        let pick = reading(path, "cannot read the columns", || {
            plan.pick(&self.columns, &selection.types, &selection.wanted)
        })?;
        loop {
            // Reading all of a large set takes minutes.
            mapping::before_reading();
            let batch = reading(path, "cannot read rows", || {
                plan.clear();
                let mut weight = 0;
                while weight < BATCH {
                    if plan.looked_up == plan.taken {
                        next.clear();
                        next.extend(rows.by_ref().take(ROWS_AHEAD));
                        plan.look_up(&next, &self.source)?;
                    }
                    let Some(bytes) = plan.add() else { break };
                    weight += bytes;
                }
                if plan.rows == 0 {
                    return Ok(None);
                }
                plan.batch(&pick, pool).map(Some)
            });
            let batch = batch.map_err(|error| times::named(error, plan.being_read()))?;
            match batch {
                Some(batch) => each(batch)?,
                None => return Ok(()),
            }
            pool.take_back();
        }
    }

    /// Hands rows on one by one, as they lie; tells how many.
    fn read_rows(
        &self,
        rows: &[usize],
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut EachRow<'_>,
    ) -> Result<usize> {
        let selection = self.selection(columns)?;
        let list = selection.list.as_ref().filter(|_| selection.lies_plain.load(Ordering::Relaxed));
        let Some((list, series)) = list.and_then(|list| Some((list, list.series(&self.columns)?))) else {
            return Ok(0);
        };
        if let Some(&row) = rows.last().filter(|&&row| row >= self.len()) {
            return Err(Error::no_such_row(&self.file.path, row, self.len()));
        }
        let ReadMemory { located, .. } = context.get();
        let wanted = selection.wanted.below(list.names());
        // Rows of another table, if a reader of that never came to its end.
        located.clear();
        let mut done = 0;
        // Ends with an error, or with none where the rest is left to others.
        let read = rows.chunks(ROWS_AHEAD).try_for_each(|rows| {
            located.release();
            let found = reading(&self.file.path, "cannot read rows", || {
                located.look_up(rows, series, wanted, &self.source)
            });
            found.map_err(Some)?;
            for level in 1..=LEVELS {
                located.prefetch(wanted, level);
            }
            let mut open = None;
            for &(number, at) in &located.found {
                mapping::before_reading();
                let lists = match open.take().filter(|(of, _)| *of == number) {
                    Some((_, lists)) => lists,
                    None => list.open(&located.held[number].piece).map_err(|why| {
                        if why == NotBorrowable::Compressed {
                            selection.lies_plain.store(false, Ordering::Relaxed);
                        }
                        None
                    })?,
                };
                each(done, &lists.row(at).ok_or(None)?).map_err(Some)?;
                open = Some((number, lists));
                done += 1;
            }
            Ok(())
        });
        located.clear();
        handed_on(done, read)
    }
}

/// The encodings of values, outermost first, such as `for+bitpacked` (frame of reference, bit-packed).
fn codec(values: &vortex::array::ArrayRef) -> String {
    let mut names: Vec<String> = vec![];
    for array in values.depth_first_traversal() {
        let id = array.encoding_id();
        // Such as `bitpacked` of `fastlanes.bitpacked.v2`.
        let short = id.as_ref().split('.').nth(1).unwrap_or_default();
        if !["primitive", "bool", "slice"].contains(&short) && !names.iter().any(|n| n == short) {
            names.push(short.to_owned());
        }
    }
    if names.is_empty() { "none".to_owned() } else { names.join("+") }
}
