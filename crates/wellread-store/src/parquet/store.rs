//! The store: row groups, requests, and the choice between the fast path and the general reader.

use super::cache::Cache;
use super::check;
use super::codec_name::codec_name;
use super::file::PositionalFile;
use super::footer::{footer, is_own};
use super::layout::{self, GroupLayout};
use super::metadata;
use super::pages;
use super::pages_ahead;
use super::pieces::PieceTable;
use super::pixel_pages::PixelPages;
use super::recognise::NAME;
use super::schema::ImageColumn;
use super::sums::have_sums;
use crate::features::RowId;
use crate::lazy::{self, Lazy};
use crate::ome_arrow::{CHUNKS, MetadataRows, PLANES, Row, eight_bit, no_image};
use crate::place::{PrefetchGuard, WantedRanges};
use crate::words::counted;
use crate::{
    Error, Hints, OpenOptions, PixelSink, ReadExtent, Request, Result, RowInfo, Scratch, Store, StoreLayout,
    default_answers,
};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::file::metadata::ColumnChunkMetaData;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use wellread_image::{ImageMetadata, PixelType, ome_arrow};

/// Images in an OME-Arrow column of a Parquet file, open for reading.
pub struct ParquetStore {
    pub(super) file: PositionalFile,
    pub(super) metadata: ArrowReaderMetadata,
    pub(super) column: ImageColumn,
    /// Whether images declared `uint16` are `uint8`: [`ome_arrow::declared_type_is_clamped`].
    clamped: bool,
    pub(super) groups: Vec<Group>,
    pub(super) rows: usize,
    /// Values of all row groups in each pixel leaf.
    pixels: [u64; 2],
    pub(super) cache: Cache,
    /// Metadata of the row group that was asked for last.
    latest: Mutex<Option<(usize, Arc<MetadataRows>)>>,
    pub(super) row_id: RowId,
}

pub(super) struct Group {
    pub rows: Range<usize>,
    pub(super) layout: Lazy<GroupLayout>,
    pub pages: [Lazy<PixelPages>; 2],
    /// Whether the pages of pixels have been checked for the general reader.
    pub checked: [Lazy<()>; 2],
    /// Whether the fast path has met something that it leaves to the general reader.
    pub general: [AtomicBool; 2],
}

impl ParquetStore {
    /// Bytes of decoded pages that a store keeps unless told otherwise.
    pub const DEFAULT_CACHE: usize = 64 << 20;

    /// Opens a file: reads its footer, finds the image column.
    ///
    /// # Errors
    /// Missing, unreadable, truncated or corrupt file; no image column (the message lists the columns).
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let file = PositionalFile::open(path)?;
        let metadata = footer(&file)?;
        let column = ImageColumn::find(path, metadata.parquet_schema(), options.column.as_deref())?;
        let corrupt = |why: String| Error::new(path, why).hint("the file is corrupt; copy or write it again");
        let mut groups = vec![];
        let mut rows = 0usize;
        let mut pixels = [0u64; 2];
        for (i, group) in metadata.metadata().row_groups().iter().enumerate() {
            let n = usize::try_from(group.num_rows())
                .ok()
                .filter(|n| rows.checked_add(*n).is_some())
                .ok_or_else(|| corrupt(format!("row group {i} declares {} rows", group.num_rows())))?;
            // Every row, even a null one, has an entry in every column.
            for (pieces, pixels) in column.pieces.iter().zip(&mut pixels) {
                let Some(pieces) = pieces else { continue };
                let entries = group.column(pieces.pixels.leaf).num_values();
                if entries < n as i64 {
                    return Err(corrupt(format!(
                        "row group {i} declares {n} rows but only {entries} pixels"
                    )));
                }
                *pixels = pixels.saturating_add(entries.unsigned_abs());
            }
            groups.push(Group {
                rows: rows..rows + n,
                layout: Lazy::new(),
                pages: [Lazy::new(), Lazy::new()],
                checked: [Lazy::new(), Lazy::new()],
                general: [AtomicBool::new(false), AtomicBool::new(false)],
            });
            rows += n;
        }
        let mut store = Self {
            file,
            metadata,
            column,
            clamped: false,
            groups,
            rows,
            pixels,
            cache: Cache::new(Self::DEFAULT_CACHE),
            latest: Mutex::new(None),
            row_id: RowId::new(),
        };
        store.clamped = ome_arrow::declared_type_is_clamped(
            PixelType::U16,
            is_own(&store.metadata),
            layout::largest_pixel(&store.metadata, &store.column),
        );
        Ok(store)
    }

    /// Keeps up to `bytes` of decoded pages instead of [`Self::DEFAULT_CACHE`].
    pub fn with_cache(mut self, bytes: usize) -> Self {
        self.cache = Cache::new(bytes);
        self
    }

    /// Reads everything through the general reader: for comparing the two paths in tests.
    #[doc(hidden)]
    pub fn without_fast_path(self) -> Self {
        self.groups.iter().flat_map(|g| &g.general).for_each(|g| g.store(true, Ordering::Relaxed));
        self
    }

    /// Whether some row group has been left to the general reader: for tests that mean the fast path.
    #[doc(hidden)]
    pub fn left_fast_path(&self) -> bool {
        self.groups.iter().flat_map(|g| &g.general).any(|g| g.load(Ordering::Relaxed))
    }

    /// How many of 65,536 pages of pixels the cache has room for when they are decoded to `dtype`.
    pub(super) fn kept_share(&self, source: usize, dtype: PixelType) -> u32 {
        let all = self.pixels[source] as f64 * dtype.size() as f64;
        let room = self.cache.capacity() as f64;
        if all <= room {
            return 1 << 16;
        }
        // A tenth less, since pages differ in size and others are needed for a moment.
        (0.9 * room / all * f64::from(1 << 16)) as u32
    }

    pub(super) fn group_of(&self, row: usize) -> usize {
        self.groups.partition_point(|g| g.rows.end <= row)
    }

    pub(super) fn layout_of(&self, group: usize) -> Result<&GroupLayout> {
        self.groups[group].layout.get(|| {
            let told = self.layout_by_statistics(group);
            told.map_or_else(|| self.file.unless_written(self.read_layout(group)), Ok)
        })
    }

    fn read_layout(&self, group: usize) -> Result<GroupLayout> {
        let rows = self.groups[group].rows.len();
        let _held = self.columns_ahead(group, self.layout_leaves());
        self.check_pages(group, self.column.sizes.iter())?;
        for pieces in self.column.pieces.iter().flatten() {
            self.check_pages(group, pieces.positions.iter())?;
        }
        layout::read(&self.file, &self.metadata, &self.column, group, rows, self.clamped)
    }

    pub(super) fn layout_by_statistics(&self, group: usize) -> Option<GroupLayout> {
        let rows = self.groups[group].rows.len();
        let footer = self.metadata.metadata().row_group(group);
        // Rows beyond measure have to be in the file to be believed.
        let is_likely = rows as u64 <= self.file.length();
        if is_likely { layout::from_statistics(footer, &self.column, rows, self.clamped) } else { None }
    }

    /// Checks columns that the library is about to read: see [`check`].
    fn check_pages<'a>(&self, group: usize, leaves: impl Iterator<Item = &'a usize>) -> Result<()> {
        for &leaf in leaves {
            let chunk = self.chunk(group, leaf);
            let pages = pages::scan(&self.file, chunk)?;
            check::column(&self.file, chunk, &pages, self.groups[group].rows.len())?;
        }
        Ok(())
    }

    fn columns_ahead<'a>(&self, group: usize, leaves: impl Iterator<Item = &'a usize>) -> Vec<PrefetchGuard> {
        pages_ahead::columns(&self.file, leaves.map(|&leaf| self.chunk(group, leaf)))
    }

    pub(super) fn chunk(&self, group: usize, leaf: usize) -> &ColumnChunkMetaData {
        self.metadata.metadata().row_group(group).column(leaf)
    }

    pub(super) fn row(&self, row: usize) -> Result<(usize, &Row, RowInfo)> {
        if row >= self.rows {
            return Err(Error::no_such_row(self.path(), row, self.rows));
        }
        let group = self.group_of(row);
        let rows = &self.layout_of(group).map_err(|e| e.row(row))?.rows;
        let found = rows.at(row - self.groups[group].rows.start);
        match &found.info {
            Ok(info) => Ok((group, found, *info)),
            Err(cause) => {
                let hint =
                    "other rows can still be read; if the file was not written like this, copy it again";
                let hint = self.column.note.as_deref().unwrap_or(hint);
                Err(no_image(self.path(), row, cause, hint))
            }
        }
    }

    pub(super) fn metadata_of(&self, group: usize) -> Result<Arc<MetadataRows>> {
        let mut latest = lazy::locked(&self.latest);
        if let Some((g, metadata)) = &*latest
            && *g == group
        {
            return Ok(Arc::clone(metadata));
        }
        let read = || {
            let _held = self.columns_ahead(group, self.column.metadata.iter());
            self.check_pages(group, self.column.metadata.iter())?;
            metadata::read(&self.file, &self.metadata, &self.column, group)
        };
        let metadata = Arc::new(self.file.unless_written(read())?);
        *latest = Some((group, Arc::clone(&metadata)));
        Ok(metadata)
    }

    /// Checks the pages of pixels before the general reader sees them.
    pub(super) fn check_pixels(&self, group: usize, source: usize) -> Result<()> {
        let state = &self.groups[group];
        let chunk = self.pixel_chunk(group, source);
        let check = || {
            let _held = pages_ahead::headers(&self.file, chunk);
            check::column(&self.file, chunk, &pages::scan(&self.file, chunk)?, state.rows.len())
        };
        state.checked[source].get(check).copied()
    }

    pub(super) fn pixel_chunk(&self, group: usize, source: usize) -> &ColumnChunkMetaData {
        let pieces = self.column.pieces[source].as_ref().expect("rows come from a list that is there");
        self.chunk(group, pieces.pixels.leaf)
    }

    /// The pages of pixels, whose pieces are `table`.
    pub(super) fn pages_of(&self, group: usize, source: usize, table: &PieceTable) -> Result<&PixelPages> {
        let (state, chunk) = (&self.groups[group], self.pixel_chunk(group, source));
        state.pages[source].get(|| PixelPages::find(&self.file, chunk, table, state.rows.len()))
    }
}

impl Store for ParquetStore {
    default_answers!(remote_path, name, files_of, row_hints, check);

    fn format(&self) -> &'static str {
        NAME
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn len(&self) -> usize {
        self.rows
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        Ok(self.row(row)?.2)
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        let (group, ..) = self.row(row)?;
        let metadata = self.metadata_of(group).map_err(|e| e.row(row))?;
        Ok(metadata.row(row - self.groups[group].rows.start))
    }

    fn layout(&self) -> Result<StoreLayout> {
        // A list that is empty in every row has one entry of levels per row and nothing else.
        let filled = [CHUNKS, PLANES].map(|source| {
            let leaf = self.column.pieces[source].as_ref().map(|p| p.pixels.leaf);
            leaf.is_some_and(|leaf| {
                (0..self.groups.len())
                    .any(|g| self.chunk(g, leaf).num_values() > self.groups[g].rows.len() as i64)
            })
        });
        let mut variant = self.column.variant(filled).to_string();
        if self.clamped {
            variant += ", ";
            variant += eight_bit::NOTE;
        }
        let Some(group) = self.groups.iter().position(|g| !g.rows.is_empty()) else {
            return Ok(StoreLayout { variant, ..StoreLayout::default() });
        };
        let source = if self.column.pieces[CHUNKS].is_some() { CHUNKS } else { PLANES };
        let chunk = self.pixel_chunk(group, source);
        let average = pages_ahead::average_page(&self.file, chunk)?;
        Ok(StoreLayout {
            codec: codec_name(chunk.compression()).to_owned(),
            pieces: format!(
                "{} of up to {}, pages of {} KiB",
                counted(self.groups.len(), "row group"),
                counted(self.groups.iter().map(|g| g.rows.len()).max().unwrap_or(0), "image"),
                average.div_ceil(1024)
            ),
            variant,
            ..StoreLayout::default()
        })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(vec![self.path().to_owned()])
    }

    fn has_checksums(&self) -> bool {
        let leaves: Vec<usize> = self.column.pieces.iter().flatten().map(|list| list.pixels.leaf).collect();
        have_sums(&self.file, &self.metadata, &leaves)
    }

    fn hints(&self) -> Hints<'_> {
        Hints { page_cache: Some(&self.cache), columns: Some(self), ..Hints::default() }
    }

    fn heads(&self, rows: &[usize], _: ReadExtent, wanted: &mut WantedRanges) {
        self.index_ranges(rows, wanted);
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        self.page_ranges(requests, wanted)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        self.file.unless_written(self.read_groups(requests, scratch, sink))
    }

    fn scan(&self, rows: Range<usize>, each: &mut crate::EachImage<'_>) -> Result<()> {
        self.file.unless_written(self.scan_rows(rows, each))
    }
}

impl ParquetStore {
    /// Reads requests, row group by row group.
    fn read_groups(
        &self,
        requests: &[Request],
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        for request in requests {
            self.check(request)?;
        }
        // Taken out while it is used, since the readers below use the rest of the scratch memory.
        let mut order = std::mem::take(&mut scratch.order);
        order.clear();
        order.extend(0..requests.len());
        order.sort_unstable_by_key(|&i| (requests[i].row, i));
        let mut rest = order.as_slice();
        while let Some(&first) = rest.first() {
            let group = self.group_of(requests[first].row);
            let end = self.groups[group].rows.end;
            let n = rest.partition_point(|&i| requests[i].row < end);
            let (own, later) = rest.split_at(n);
            let at = |error: Error| error.row(requests[first].row);
            let done = self.read_fast(group, own, requests, scratch, sink).map_err(at)?;
            if done < own.len() {
                self.read_general(group, &own[done..], requests, scratch, sink).map_err(at)?;
            }
            rest = later;
        }
        scratch.order = order;
        Ok(())
    }
}
