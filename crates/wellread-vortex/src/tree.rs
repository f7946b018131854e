//! The layouts of a file: which columns there are, and in which pieces their rows lie.

use crate::cache::Cache;
use crate::piece::{Decode, Opening, Piece};
use crate::remote::Segments;
use crate::session::{Cause, Session};
use arrow_schema::{DataType, Field};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use vortex::array::{MaskFuture, VortexSessionExecute};
use vortex::dtype::DType;
use vortex::expr::root;
use vortex::io::runtime::BlockingRuntime;
use vortex::layout::segments::{SegmentId, SegmentSource};
use vortex::layout::{LayoutChildType, LayoutReaderContext, LayoutRef};

/// Rows that are read together where a layout has no pieces of its own.
const WINDOW: usize = 8192;
/// The same for lists and structs, whose rows may be large.
const NESTED_WINDOW: usize = 64;

/// A column, or the whole table as one.
pub(crate) enum Column {
    /// A struct whose fields lie apart.
    Struct { validity: Option<Series>, fields: Vec<(String, Column)> },
    /// Anything that lies together.
    Series(Series),
}

/// Where the values of a column lie.
pub(crate) struct Series {
    /// Which of the table's series it is, for the cache.
    id: u32,
    layout: LayoutRef,
    len: usize,
    spans: OnceLock<Vec<Span>>,
}

/// Rows of a column that lie together.
struct Span {
    rows: Range<usize>,
    layout: LayoutRef,
    /// The same rows as the layout counts them.
    within: Range<u64>,
}

/// The source of a read.
pub(crate) struct Source {
    pub segments: Arc<dyn SegmentSource>,
    /// The same, where they are fetched from another place than the file system.
    pub remote_segments: Option<Segments>,
    pub cache: Cache,
    /// Bytes of a column's values that may be kept decompressed where they are slow to cut.
    pub decoded: AtomicUsize,
    /// As [`Opening::limit`] and [`Opening::is_tested`].
    pub limit: usize,
    pub is_tested: bool,
}

impl Column {
    /// Finds the columns below `layout`; `ids` counts them.
    pub fn new(layout: LayoutRef, ids: &mut u32) -> Result<Self, Cause> {
        let layout = unwrapped(layout)?;
        if layout.encoding_id().as_ref() != "vortex.struct" {
            return Ok(Self::Series(Series::new(layout, ids)?));
        }
        let mut validity = None;
        let mut fields = vec![];
        for slot in 0..layout.nslots() {
            let Some(child) = layout.slot(slot)? else { continue };
            if child.row_count() != layout.row_count() {
                return Err(Cause::from("the fields of a struct differ in their number of rows".to_owned()));
            }
            match layout.slot_type(slot) {
                Some(LayoutChildType::Field(name)) => {
                    fields.push((name.as_ref().to_owned(), Self::new(child, ids)?));
                }
                _ => validity = Some(Series::new(child, ids)?),
            }
        }
        Ok(Self::Struct { validity, fields })
    }
}

/// A layout without those around it that only add statistics.
fn unwrapped(mut layout: LayoutRef) -> Result<LayoutRef, Cause> {
    while ["vortex.zoned", "vortex.stats"].contains(&layout.encoding_id().as_ref()) {
        layout = layout.slot(0)?.ok_or_else(|| "a column has no data".to_owned())?;
    }
    Ok(layout)
}

impl Series {
    fn new(layout: LayoutRef, ids: &mut u32) -> Result<Self, Cause> {
        *ids += 1;
        Ok(Self { id: *ids, len: usize::try_from(layout.row_count())?, layout, spans: OnceLock::new() })
    }

    /// Whether its values differ so much in size that they need to be weighed.
    pub fn is_nested(&self) -> bool {
        is_nested(self.layout.dtype())
    }

    fn spans(&self) -> Result<&[Span], Cause> {
        if let Some(spans) = self.spans.get() {
            return Ok(spans);
        }
        let mut spans = vec![];
        collect(Arc::clone(&self.layout), 0, &mut spans)?;
        let mut next = 0;
        for span in &spans {
            if span.rows.start != next {
                return Err(Cause::from("the chunks of a column do not follow each other".to_owned()));
            }
            next = span.rows.end;
        }
        if next != self.len {
            return Err(
                format!("the chunks of a column have {next} rows, the column has {}", self.len).into()
            );
        }
        Ok(self.spans.get_or_init(|| spans))
    }

    /// Number of pieces.
    pub fn pieces(&self) -> Result<usize, Cause> {
        Ok(self.spans()?.len())
    }

    /// The piece that holds `row`, and which rows it has.
    pub fn piece(&self, row: usize, source: &Source) -> Result<(Arc<Piece>, Range<usize>), Cause> {
        let spans = self.spans()?;
        let at = spans.partition_point(|s| s.rows.end <= row);
        let span = spans.get(at).ok_or_else(|| format!("there is no row {row}"))?;
        let decode = Decode::UpTo(source.decoded.load(Ordering::Relaxed) / spans.len());
        let piece = source.cache.get((self.id, u32::try_from(at)?), || span.open(source, decode))?;
        Ok((piece, span.rows.clone()))
    }

    /// Has what the pieces of some rows take fetched together, as far as they are not kept, where the file lies elsewhere.
    pub fn fetch(&self, rows: &[usize], source: &Source) -> Result<(), Cause> {
        let Some(segments) = &source.remote_segments else { return Ok(()) };
        Ok(segments.fetch(&mut self.missing(rows, source)?)?)
    }

    /// The segments of the pieces of some rows, without those of pieces that are kept.
    pub fn missing(&self, rows: &[usize], source: &Source) -> Result<Vec<SegmentId>, Cause> {
        let spans = self.spans()?;
        let (mut wanted, mut last) = (vec![], None);
        for &row in rows {
            let at = spans.partition_point(|s| s.rows.end <= row);
            if last.replace(at) == Some(at) {
                continue;
            }
            if let Some(span) = spans.get(at)
                && !source.cache.has((self.id, u32::try_from(at)?))
            {
                wanted.extend(span.layout.segment_ids());
            }
        }
        Ok(wanted)
    }

    /// A piece by its number, with its values as they are encoded.
    pub fn raw_piece(&self, at: usize, source: &Source) -> Result<Piece, Cause> {
        let span = self.spans()?.get(at).ok_or_else(|| format!("there is no piece {at}"))?;
        span.open(source, Decode::Nothing)
    }
}

fn is_nested(dtype: &DType) -> bool {
    matches!(dtype, DType::List(..) | DType::Struct(..) | DType::FixedSizeList(..))
}

/// Appends the pieces of `layout`, whose first row is `start`.
fn collect(layout: LayoutRef, start: usize, spans: &mut Vec<Span>) -> Result<(), Cause> {
    let layout = unwrapped(layout)?;
    let len = usize::try_from(layout.row_count())?;
    let end = start.checked_add(len).ok_or_else(|| "a column has too many rows".to_owned())?;
    match layout.encoding_id().as_ref() {
        "vortex.chunked" => {
            for slot in 0..layout.nslots() {
                let offset = layout.slot_type(slot).and_then(|t| t.row_offset()).unwrap_or(0);
                let Some(child) = layout.slot(slot)? else { continue };
                let first = usize::try_from(offset)?.checked_add(start).filter(|first| *first <= end);
                collect(child, first.ok_or_else(|| "a chunk starts beyond its column".to_owned())?, spans)?;
            }
        }
        "vortex.flat" => {
            if len > 0 {
                spans.push(Span { rows: start..end, within: 0..layout.row_count(), layout });
            }
        }
        _ => {
            let window = if is_nested(layout.dtype()) { NESTED_WINDOW } else { WINDOW };
            for first in (0..len).step_by(window) {
                let last = (first + window).min(len);
                spans.push(Span {
                    rows: start + first..start + last,
                    within: first as u64..last as u64,
                    layout: Arc::clone(&layout),
                });
            }
        }
    }
    Ok(())
}

impl Span {
    fn open(&self, source: &Source, decode: Decode) -> Result<Piece, Cause> {
        let Session { runtime, session } = Session::reading();
        let segments = Arc::clone(&source.segments);
        let reader = self.layout.new_reader("".into(), segments, session, &LayoutReaderContext::default())?;
        let all = root().bind(reader.dtype())?;
        let mask = MaskFuture::new_true(self.rows.len());
        let array = runtime.block_on(reader.projection_evaluation(&self.within, &all, mask)?)?;
        if array.len() != self.rows.len() {
            return Err(format!("a chunk has {} rows, not {}", array.len(), self.rows.len()).into());
        }
        let mut ctx = session.create_execution_ctx();
        let &Source { limit, is_tested, .. } = source;
        let is_mapped = source.remote_segments.is_none();
        Opening { ctx: &mut ctx, limit, decode, is_tested, is_mapped }.open(array)
    }
}

/// A type as this crate hands it on: text and bytes as Arrow's classic types, not as views.
pub(crate) fn plain(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(f) | DataType::LargeList(f) => DataType::List(Arc::new(plain(f))),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|f| Arc::new(plain(f))).collect()),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}
