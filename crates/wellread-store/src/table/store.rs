//! [`Store`] over any engine.
//!
//! Long because one type answers for every engine. It has the shapes of rows, the list of two that they are read from, and two
//! ways to read.

use super::row::{Arrays, Pieces};
use super::{ImageTable, Rows};
use crate::ahead::HeldBytes;
use crate::features::{self, RowId, unique_schema};
use crate::format::format_named;
use crate::lazy::{self, Lazy};
use crate::ome_arrow::{
    CHUNKS, ImageColumn, LISTS, MetadataRows, PLANES, PieceBox, PixelColumn, SmallColumns, covers, eight_bit,
    no_image, unkept,
};
use crate::place::{self, WantedRanges};
use crate::words::counted_with;
use crate::{
    Block, CopySink, EachImage, Error, FeatureTable, FormatContext, Hints, LeftOut, LeftOutCounts,
    OpenOptions, PixelSink, ReadExtent, Request, Result, RowFacts, RowHints, RowInfo, Scratch, Store,
    StoreLayout, check_request, default_answers, default_columns, try_alloc, unknown_facts,
};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StructArray};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use wellread_image::ome_arrow::ROW_ID;
use wellread_image::{ImageMetadata, Shape};

/// Rows whose shapes are read together.
const BLOCK: usize = 4096;

/// Shape and type of a row, or why it is no image.
type Info = std::result::Result<RowInfo, Box<str>>;

/// The shape and type of some rows.
enum Infos {
    /// All the same: nothing needs to be kept for each.
    Alike(RowInfo),
    Each(Box<[Info]>),
}

impl Infos {
    fn new(infos: Vec<Info>) -> Self {
        match infos.as_slice() {
            [Ok(first), rest @ ..] if rest.iter().all(|info| info.as_ref() == Ok(first)) => {
                Self::Alike(*first)
            }
            _ => Self::Each(infos.into()),
        }
    }

    fn at(&self, index: usize) -> std::result::Result<RowInfo, &str> {
        match self {
            Self::Alike(info) => Ok(*info),
            Self::Each(infos) => infos[index].as_ref().map(|info| *info).map_err(|why| &**why),
        }
    }
}

/// The next step for a row that is not as it should be.
const WRITE_AGAIN: &str =
    "other rows can still be read; if the table was not written like this, write it again";
/// Images of up to so many bytes have memory without more ado.
const FREE_BYTES: usize = 64 << 20;
/// Larger ones may have so many times the bytes of the table's files. Beyond that, the pieces are checked first.
const MAX_EXPANSION: usize = 1024;

/// Images in an OME-Arrow column of an engine's table, open for reading.
pub struct TableStore {
    table: Box<dyn ImageTable>,
    column: ImageColumn,
    /// Whether images declared `uint16` are `uint8`: [`wellread_image::ome_arrow::declared_type_is_clamped`].
    clamped: bool,
    /// The declared shape and type of all rows, where the engine says that they are alike.
    all: Lazy<Option<RowInfo>>,
    /// Else what each is.
    blocks: Vec<Lazy<Infos>>,
    /// Bytes of the table's files, asked for where an image is said to be large.
    on_disk: Lazy<u64>,
    /// Metadata of the block that was asked for last.
    latest: Mutex<Option<(usize, Arc<MetadataRows>)>>,
    /// Whether rows were found whose pixels are not in the list that is read first.
    has_others: AtomicBool,
    row_id: RowId,
    /// Bytes that the first reads want, where the table is remote.
    _first: HeldBytes,
}

impl TableStore {
    /// Takes an open table: finds its image column.
    ///
    /// Where a table of another writer declares `uint16`, it looks at the pixels, up to the first above 255. If
    /// there is none, the images are `uint8`, which `ome-arrow` widens before it notes the type. Sets of more than
    /// 65,536 images or 1 GiB of pixels are read as declared.
    ///
    /// # Errors
    /// No image column (the message lists the columns there are).
    pub fn open(table: Box<dyn ImageTable>, options: &OpenOptions) -> Result<Self> {
        let mut column = ImageColumn::find(table.path(), &table.schema(), options.column.as_deref())?;
        column.leave_out(table.columns_left_out());
        let blocks = (0..table.len().div_ceil(BLOCK)).map(|_| Lazy::new()).collect();
        let mut wanted = WantedRanges::default();
        if place::is_remote(table.path()) {
            table.first_look(&column.index(), column.pieces(first_list(&column)), &mut wanted);
        }
        let mut store = Self {
            table,
            column,
            clamped: false,
            all: Lazy::new(),
            blocks,
            on_disk: Lazy::new(),
            latest: Mutex::new(None),
            has_others: AtomicBool::new(false),
            row_id: RowId::new(),
            _first: HeldBytes::of(&wanted),
        };
        if !store.table.types_are_trusted() && eight_bit::is_proven(&store) {
            store.clamped = true;
        }
        Ok(store)
    }

    fn info(&self, row: usize) -> Result<RowInfo> {
        if row >= self.table.len() {
            return Err(Error::no_such_row(self.path(), row, self.table.len()));
        }
        let declared = if let Some(info) = self.all.get(|| self.read_all_alike()).map_err(|e| e.row(row))? {
            Ok(*info)
        } else {
            let infos = self.blocks[row / BLOCK].get(|| self.read_infos(self.rows_of(row / BLOCK)));
            infos.map_err(|e| e.row(row))?.at(row % BLOCK)
        };
        let declared = declared.map(|info| if self.clamped { eight_bit::narrowed(info) } else { info });
        declared.map_err(|cause| no_image(self.path(), row, cause, WRITE_AGAIN))
    }

    fn rows_of(&self, block: usize) -> Range<usize> {
        block * BLOCK..((block + 1) * BLOCK).min(self.table.len())
    }

    /// The shape and type of all rows, by the first, where the engine says that all are like one.
    fn read_all_alike(&self) -> Result<Option<RowInfo>> {
        if self.table.is_empty() || !self.table.is_constant(&self.column.index()) {
            return Ok(None);
        }
        Ok(self.read_infos(0..1)?.at(0).ok())
    }

    fn read_infos(&self, rows: Range<usize>) -> Result<Infos> {
        let mut infos = Vec::with_capacity(rows.len());
        self.read_column(
            Rows::Range(rows.clone()),
            &self.column.index(),
            &mut FormatContext::default(),
            &mut |images| {
                let small = SmallColumns::new(images, CHUNKS).map_err(|why| Error::new(self.path(), why))?;
                infos.extend((0..images.len()).map(|i| -> Info {
                    if images.is_null(i) {
                        return Err(Error::NULL_IMAGE.into());
                    }
                    small.info(i, false).map_err(Into::into)
                }));
                Ok(())
            },
        )?;
        if infos.len() != rows.len() {
            return Err(self.missing_rows(infos.len(), rows.len()));
        }
        Ok(Infos::new(infos))
    }

    fn missing_rows(&self, found: usize, wanted: usize) -> Error {
        let asked = counted_with(wanted, "row", ["was", "were"]);
        Error::new(self.path(), format_args!("{asked} asked for, {found} delivered"))
            .hint("the table is corrupt, or was changed while it was open; open it again")
    }

    /// Reads fields of the image column.
    fn read_column(
        &self,
        rows: Rows<'_>,
        paths: &[Vec<String>],
        context: &mut FormatContext,
        each: &mut dyn FnMut(&StructArray) -> Result<()>,
    ) -> Result<()> {
        let _query = query(&rows);
        self.table.read(rows, paths, context, &mut |batch| each(self.images(&batch)?))
    }

    /// Reads the pixels of `rows` from one of the lists, calling `each(position in rows, pieces)`.
    fn read_pieces(
        &self,
        rows: &Rows<'_>,
        list: usize,
        context: &mut FormatContext,
        each: &mut dyn FnMut(usize, &Pieces<'_>) -> Result<()>,
    ) -> Result<()> {
        let (columns, axes) = (self.column.pieces(list), self.column.axes(list));
        let mut at = 0;
        let mut left = rows.clone();
        let _query = query(rows);
        if let Rows::Chosen(rows) = rows {
            at = if self.column.is_cheap[list] { self.read_in_memory(rows, list, each)? } else { 0 };
            at += self.table.read_pieces(&rows[at..], columns, context, &mut |i, row| {
                each(at + i, &Pieces::Row { row, axes })
            })?;
            left = Rows::Chosen(rows.get(at..).unwrap_or_default());
        }
        if left.is_empty() {
            return Ok(());
        }
        self.table.read(left, columns, context, &mut |batch| {
            let images = self.images(&batch)?;
            let arrays = self.arrays_of(images, list)?;
            for i in 0..images.len() {
                each(at, &arrays.row(i))?;
                at += 1;
            }
            Ok(())
        })?;
        if at == rows.len() { Ok(()) } else { Err(self.missing_rows(at, rows.len())) }
    }

    /// As [`Self::read_pieces`], from record batches that are in memory: how many rows are.
    fn read_in_memory(
        &self,
        rows: &[usize],
        list: usize,
        each: &mut dyn FnMut(usize, &Pieces<'_>) -> Result<()>,
    ) -> Result<usize> {
        let mut at = 0;
        while let Some((batch, span)) = rows.get(at).and_then(|&row| self.table.batch_of(row)) {
            let arrays = self.arrays_of(self.images(batch)?, list)?;
            while let Some(row) = rows.get(at).filter(|row| span.contains(row)) {
                each(at, &arrays.row(row - span.start))?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// The image column of a batch.
    fn images<'a>(&self, batch: &'a RecordBatch) -> Result<&'a StructArray> {
        let name = self.column.name.as_str();
        let images = batch.column_by_name(name).and_then(|c| c.as_struct_opt());
        images.ok_or_else(|| Error::new(self.path(), format_args!("column {name:?} is no struct")))
    }

    /// The arrays of an image column's pieces.
    fn arrays_of<'a>(&self, images: &'a StructArray, list: usize) -> Result<Arrays<'a>> {
        let small = SmallColumns::new(images, list).map_err(|why| Error::new(self.path(), why))?;
        Ok(Arrays { small, pixels: PixelColumn::new(images, LISTS[list]) })
    }

    /// Hands the pieces of a row to `put`. `false` where the row has none in this list.
    fn deliver(
        &self,
        row: usize,
        pieces: &Pieces<'_>,
        boxes: &mut Vec<PieceBox>,
        buffer: &mut Vec<u8>,
        put: &mut dyn FnMut(&Block<'_>) -> Result<()>,
    ) -> Result<bool> {
        let info = self.info(row)?;
        if !self.boxes(row, info.shape, pieces, boxes)? {
            return Ok(false);
        }
        for (k, piece) in boxes.iter().enumerate() {
            let region = piece.region();
            let data = pieces.pixels(k, region.shape(), info.dtype, buffer);
            let data = data.map_err(|cause| self.refused(row, cause))?;
            put(&Block { region, data, dtype: info.dtype })?;
        }
        Ok(true)
    }

    /// Checks the boxes of an image of so many bytes before there is memory for them. It does so where the table's
    /// files are too small for such a row. A damaged size must not cost gigabytes.
    fn check_size(&self, row: usize, bytes: usize) -> Result<()> {
        if bytes <= FREE_BYTES
            || (bytes / MAX_EXPANSION) as u64 <= *self.on_disk.get(|| self.bytes_on_disk())?
        {
            return Ok(());
        }
        let mut boxes = vec![];
        for list in [CHUNKS, PLANES] {
            if self.column.has[list] && self.fits(row, list, &mut boxes)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether an image has pieces in this list, which must cover it.
    fn fits(&self, row: usize, list: usize, boxes: &mut Vec<PieceBox>) -> Result<bool> {
        let (mut found, mut context) = (false, FormatContext::default());
        self.read_pieces(&Rows::Chosen(&[row]), list, &mut context, &mut |_, pieces| {
            found = self.boxes(row, self.info(row)?.shape, pieces, boxes)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// Replaces `boxes` by those of a row's pieces, which cover its image. `false` where it has none in this list.
    fn boxes(
        &self,
        row: usize,
        shape: Shape,
        pieces: &Pieces<'_>,
        boxes: &mut Vec<PieceBox>,
    ) -> Result<bool> {
        let checked = pieces
            .boxes(shape, boxes)
            .and_then(|()| if boxes.is_empty() { Ok(()) } else { covers(boxes, shape) });
        checked.map_err(|cause| self.refused(row, cause))?;
        Ok(!boxes.is_empty())
    }

    /// The error of a row that is not as it should be.
    fn refused(&self, row: usize, cause: String) -> Error {
        Error::new(self.path(), cause).row(row).hint(WRITE_AGAIN)
    }

    /// The list that is read first.
    fn first_list(&self) -> usize {
        first_list(&self.column)
    }

    /// The lists that pixels of these rows are asked for in, as far as is known.
    fn lists_read(&self) -> impl Iterator<Item = usize> {
        let first = self.first_list();
        let other = self.has_others.load(Ordering::Relaxed) && self.column.has[PLANES] && first != PLANES;
        std::iter::once(first).chain(other.then_some(PLANES))
    }

    fn no_pixels(&self, row: usize) -> Error {
        Error::new(self.path(), "the image has neither chunks nor planes").row(row)
    }

    fn metadata_block(&self, block: usize) -> Result<Arc<MetadataRows>> {
        let mut latest = lazy::locked(&self.latest);
        if let Some((known, rows)) = &*latest
            && *known == block
        {
            return Ok(Arc::clone(rows));
        }
        let mut rows = MetadataRows::default();
        self.read_column(
            Rows::Range(self.rows_of(block)),
            &self.column.metadata(),
            &mut FormatContext::default(),
            &mut |images| {
                rows.push(images);
                Ok(())
            },
        )?;
        let rows = Arc::new(rows);
        *latest = Some((block, Arc::clone(&rows)));
        Ok(rows)
    }
}

/// The list of pixels that is read first.
fn first_list(column: &ImageColumn) -> usize {
    if column.has[CHUNKS] { CHUNKS } else { PLANES }
}

/// Rows in ascending order, each once, without those that are not there.
fn ascending(rows: impl Iterator<Item = usize>, len: usize) -> Vec<usize> {
    let mut rows: Vec<_> = rows.filter(|&row| row < len).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Notes that an engine is asked for rows, as long as this is held.
fn query(rows: &Rows<'_>) -> wellread_trace::Span {
    wellread_trace::span(wellread_trace::Kind::Query).with(rows.len() as u64, 0)
}

/// Memory of a read, used again for the next one.
#[derive(Debug, Default)]
struct ReadMemory {
    /// Requests in the order of their rows, and those of rows that the first list has not.
    order: Vec<usize>,
    without: Vec<usize>,
    /// The rows asked for, each once.
    rows: Vec<usize>,
    boxes: Vec<PieceBox>,
    /// The engine's own.
    engine: FormatContext,
}

impl Store for TableStore {
    default_answers!(remote_path, name, files_of);

    fn format(&self) -> &'static str {
        self.table.format()
    }

    fn path(&self) -> &Path {
        self.table.path()
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        self.info(row)
    }

    fn check(&self, request: &Request) -> Result<RowInfo> {
        let info = check_request(self, request)?;
        self.check_size(request.row, info.shape.pixels() * info.dtype.size())?;
        Ok(info)
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.info(row)?;
        let rows = self.metadata_block(row / BLOCK).map_err(|e| e.row(row))?;
        Ok(rows.row(row % BLOCK))
    }

    /// As the engine's format says of itself.
    fn has_checksums(&self) -> bool {
        format_named(self.format()).is_ok_and(|format| format.has_checksums)
    }

    fn hints(&self) -> Hints<'_> {
        Hints {
            rows_per_read: self.table.rows_per_read(),
            page_cache: self.table.pages(),
            columns: Some(self),
            sites: None,
            parts: None,
            missing_parts: &[],
            left_out: LeftOutCounts::default(),
            is_last_mask: false,
            are_crops: false,
        }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        Ok(RowHints::new(self, row))
    }

    fn layout(&self) -> Result<StoreLayout> {
        let mut layout = self.table.layout()?;
        let mut filled = [false; 2];
        for list in [CHUNKS, PLANES] {
            if self.column.has[list] && !self.is_empty() {
                self.read_pieces(
                    &Rows::Chosen(&[0]),
                    list,
                    &mut FormatContext::default(),
                    &mut |_, pieces| {
                        filled[list] = pieces.has_any();
                        Ok(())
                    },
                )?;
            }
        }
        let own = std::mem::take(&mut layout.variant);
        let separator = if own.is_empty() { "" } else { ", " };
        layout.variant = format!("{}{separator}{own}", self.column.variant(filled));
        if self.clamped {
            layout.variant += ", ";
            layout.variant += eight_bit::NOTE;
        }
        Ok(layout)
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        self.table.files()
    }

    fn heads(&self, rows: &[usize], _: ReadExtent, wanted: &mut WantedRanges) {
        let rows = ascending(rows.iter().copied(), self.len());
        for list in self.lists_read() {
            self.table.heads(&rows, self.column.pieces(list), wanted);
        }
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        let rows = ascending(requests.iter().map(|request| request.row), self.len());
        let mut lists = self.lists_read();
        lists.try_for_each(|list| self.table.ranges(&rows, self.column.pieces(list), wanted))
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        for request in requests {
            self.check(request)?;
        }
        let Scratch { pixels: buffer, context, .. } = scratch;
        let ReadMemory { order, without, rows, boxes, engine } = context.get();
        order.clear();
        order.extend(0..requests.len());
        order.sort_unstable_by_key(|&i| (requests[i].row, i));
        let mut list = self.first_list();
        loop {
            rows.clear();
            rows.extend(order.iter().map(|&i| requests[i].row));
            rows.dedup();
            without.clear();
            let mut next = 0;
            self.read_pieces(&Rows::Chosen(rows), list, engine, &mut |at, pieces| {
                let from = next;
                while order.get(next).is_some_and(|&i| requests[i].row == rows[at]) {
                    next += 1;
                }
                let own = &order[from..next];
                let found = self.deliver(rows[at], pieces, boxes, buffer, &mut |block| {
                    own.iter()
                        .filter(|&&i| block.region.intersects(&requests[i].region))
                        .try_for_each(|&i| sink.put(i, block))
                })?;
                if !found {
                    without.extend_from_slice(own);
                }
                Ok(())
            })?;
            match without.first() {
                None => return Ok(()),
                Some(_) if list == CHUNKS && self.column.has[PLANES] => {
                    self.has_others.store(true, Ordering::Relaxed);
                    list = PLANES;
                    std::mem::swap(order, without);
                }
                Some(&i) => return Err(self.no_pixels(requests[i].row)),
            }
        }
    }

    fn scan(&self, rows: Range<usize>, each: &mut EachImage<'_>) -> Result<()> {
        let mut buffer = vec![];
        let (mut pixels, mut boxes) = (vec![], vec![]);
        let (mut scratch, mut context) = (Scratch::default(), FormatContext::default());
        let list = self.first_list();
        self.read_pieces(&Rows::Range(rows.clone()), list, &mut context, &mut |at, pieces| {
            let row = rows.start + at;
            let info = self.info(row)?;
            let bytes = info.shape.pixels() * info.dtype.size();
            if bytes > FREE_BYTES {
                self.boxes(row, info.shape, pieces, &mut boxes)?;
            }
            pixels.clear();
            try_alloc::resize(&mut pixels, bytes).map_err(|cause| Error::new(self.path(), cause).row(row))?;
            let mut sink = CopySink::new(vec![(info.shape.full(), info.dtype, pixels.as_mut_slice())]);
            let found =
                self.deliver(row, pieces, &mut boxes, &mut buffer, &mut |block| sink.put(0, block))?;
            drop(sink);
            if !found {
                if list == PLANES || !self.column.has[PLANES] {
                    return Err(self.no_pixels(row));
                }
                crate::read_region(self, row, &info.shape.full(), &mut scratch, &mut pixels)?;
            }
            each(row, info, &pixels)
        })
    }
}

impl FeatureTable for TableStore {
    default_columns!(columns_renamed, columns_in_utc);

    fn feature_names(&self) -> Vec<String> {
        let read = || self.features(&[ROW_ID.to_owned()]);
        self.row_id.features(self.column.features.clone(), &self.table.schema(), read)
    }

    fn columns_left_out(&self) -> Vec<LeftOut> {
        self.column.left_out.clone()
    }

    fn has_row_numbers(&self) -> bool {
        features::is_own_number(&self.column.features, &self.feature_names())
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        // Without rows an engine gives no batch.
        if names.is_empty() || self.is_empty() {
            return Ok(None);
        }
        // An engine is asked for columns by name, and would give one of them for the other.
        let (_, several) = unique_schema(&self.table.schema(), &|_| false);
        if let Some(column) = several.iter().find(|column| names.contains(&column.from)) {
            let cause = format_args!("several columns are called {:?}", column.from);
            return Err(Error::new(self.path(), cause).hint("write the table again with names that differ"));
        }
        let paths: Vec<_> = names.iter().map(|name| vec![name.clone()]).collect();
        let mut batches = vec![];
        self.table.read(Rows::Range(0..self.len()), &paths, &mut FormatContext::default(), &mut |batch| {
            batches.push(batch);
            Ok(())
        })?;
        let has_infinity = self.table.has_infinity();
        features::gathered(self.path(), &batches, names, has_infinity).map(Some)
    }
}

impl RowFacts for TableStore {
    unknown_facts!(position, grid, file, cut, working_bytes);

    fn metadata_rows(&self, _: usize) -> usize {
        BLOCK
    }

    fn unkept(&self, row: usize) -> Vec<&'static str> {
        let rows = self.metadata_block(row / BLOCK);
        unkept(rows.is_ok_and(|rows| rows.has_image_type(row % BLOCK)), self.column.has_masks())
    }
}
