//! The store: a group, folder, plate or series of images, opened at one level. How their pixels are read is in `read.rs`.
//!
//! ```text
//!  path ──layout──▶ rows ──load_plan, at first use──▶ ArrayPlan, one for all rows of equal metadata ──read──▶ Blocks
//! ```

use super::array::ArrayPlan;
use super::chunk_codecs::Kind;
use super::consolidated::Consolidated;
use super::first_look;
use super::layout::{self, NAMING};
use super::metadata_file::read_after_if_exists;
use super::plans::Plans;
use super::plate::PlateColumns;
use super::plausible;
use super::series::SeriesColumns;
use super::shard::IndexCache;
use super::stamps::ChunkStamps;
use super::unkept;
use crate::fd_table;
use crate::file_names::path_text;
use crate::file_rows::{FileRow, FileRows};
use crate::format::Missing;
use crate::open_files::OpenFiles;
use crate::place::{self, PrefetchGuard, WantedRanges};
use crate::store::RowsAhead;
use crate::{
    Error, FeatureTable, Hints, LeftOutCounts, OpenOptions, PixelSink, ReadExtent, Request, Result, RowFacts,
    RowHints, RowInfo, Scratch, Store, StoreLayout, default_answers, default_columns, unknown_facts,
};
use arrow_array::RecordBatch;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wellread_image::ImageMetadata;

/// OME-Zarr images, open for reading at one resolution level.
#[derive(Debug)]
pub(super) struct OmeZarrStore {
    level: usize,
    /// Rows, with the plans of their arrays once read; rows of equal metadata share one.
    pub(super) rows: FileRows<Arc<ArrayPlan>>,
    /// Rows of a plate whose folders are not there: they look like the first that is there.
    pub(super) absent: BTreeSet<usize>,
    /// Whether those are read as 0; else they cannot be read.
    pub(super) is_zero: bool,
    /// The parts that the plate lacks, in sentences.
    missing_parts: Vec<String>,
    /// Rows that were left out, since their folders are not there.
    left_out: usize,
    /// Where the rows are those of a plate.
    plate: Option<PlateColumns>,
    /// Where they have a file of columns.
    series: Option<SeriesColumns>,
    plans: Plans,
    /// The metadata that the group of all images has of theirs, where it is remote.
    pub(super) consolidated: Consolidated,
    /// Whether metadata of an image were asked for.
    is_asked: AtomicBool,
    pub(super) shard_indices: IndexCache,
    /// Chunk and shard files that stay open, by row and number of the chunk.
    pub(super) files: OpenFiles<(usize, usize)>,
    /// Their stamps at the first read.
    pub(super) stamps: ChunkStamps,
}

impl OmeZarrStore {
    /// Opens a group, folder, plate or series; reads listings, no image metadata where avoidable.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        fd_table::reserve_descriptors();
        let _held = first_look::ask_for_group(path);
        let consolidated = Consolidated::of(path);
        let layout::Rows { locations, absent, missing_parts, left_out } =
            layout::rows_known(path, options, &consolidated)?;
        let store = Self {
            level: options.level,
            absent,
            is_zero: options.missing == Missing::Zero,
            missing_parts,
            left_out,
            rows: FileRows::new(path, locations),
            plate: PlateColumns::of(path, &consolidated),
            series: SeriesColumns::of(path)?,
            plans: Plans::default(),
            consolidated,
            is_asked: AtomicBool::new(false),
            shard_indices: IndexCache::default(),
            files: OpenFiles::default(),
            stamps: ChunkStamps::default(),
        };
        if store.level > 0
            && store.rows.len() > 0
            && let Err(error) = store.plan(0)
            && error.is_choice()
        {
            return Err(error);
        }
        Ok(store)
    }

    /// Adds the files of a row: metadata and chunks of the level that was opened, and the group's metadata.
    fn add_files(&self, row: usize, entry: &FileRow<Arc<ArrayPlan>>, files: &mut Vec<PathBuf>) -> Result<()> {
        if self.absent.contains(&row) {
            return Ok(());
        }
        let plan = self.plan(row)?;
        let dir = self.rows.path_of(entry);
        files.extend(
            ["zarr.json", ".zgroup", ".zattrs"]
                .map(|n| dir.join(n))
                .into_iter()
                .filter(|f| place::is_file(f)),
        );
        plausible::visit_files(&dir.join(&plan.dataset), &mut |path, _| {
            files.push(path.to_owned());
            true
        })
        .map_err(|e| e.row(row))
    }

    /// The row that says what a row looks like: itself, if it is there.
    fn model(&self, row: usize) -> usize {
        let other = || (0..self.rows.len()).find(|row| !self.absent.contains(row));
        if self.absent.contains(&row) { other().unwrap_or(row) } else { row }
    }

    pub(super) fn plan(&self, row: usize) -> Result<&Arc<ArrayPlan>> {
        self.rows.get(self.model(row), |dir| self.load_plan(dir))
    }

    fn load_plan(&self, dir: &Path) -> Result<Arc<ArrayPlan>> {
        let _held = self.ask_for_first(dir);
        let text = self.consolidated.read(dir)?;
        let level = self.plans.level(dir, &text, self.level)?;
        let array_dir = dir.join(&level.level.dataset);
        let file = array_dir.join(if level.zarr == 3 { "zarr.json" } else { ".zarray" });
        let mut key = level.key();
        if let Some(text) = self.consolidated.text(&file) {
            key.extend_from_slice(text);
        } else if !read_after_if_exists(&file, &mut key)? {
            return Err(Error::new(&file, "the array that the group's metadata names is not there")
                .hint("the image is incomplete; copy or write it again"));
        }
        let plan = self.plans.array(&file, &level, &key)?;
        plausible::check(&array_dir, &plan)?;
        Ok(plan)
    }

    /// Asks for all metadata of the image that is looked into first, in folder `dir`, at once. Those of others are asked for as
    /// [`Store::heads`] says.
    fn ask_for_first(&self, dir: &Path) -> Vec<PrefetchGuard> {
        if self.is_asked.swap(true, Ordering::Relaxed) || self.consolidated.has(dir) {
            return vec![];
        }
        first_look::ask_for_image(dir, self.level)
    }
}

impl Store for OmeZarrStore {
    default_answers!(scan, check);

    fn format(&self) -> &'static str {
        NAMING.name
    }

    fn path(&self) -> &Path {
        self.rows.root()
    }

    fn remote_path(&self) -> Option<&Path> {
        self.rows.remote_path()
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        Ok(self.plan(row)?.info)
    }

    fn name(&self, row: usize) -> Result<String> {
        Ok(self.rows.row(row)?.location.name.clone())
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        let entry = self.rows.row(row)?;
        let model = self.rows.row(self.model(row))?;
        let group = self.consolidated.load(&self.rows.path_of(model)).map_err(|e| e.row(row))?;
        group.metadata(&entry.location.name, self.level).map_err(|e| e.row(row))
    }

    fn has_checksums(&self) -> bool {
        self.plan(0).is_ok_and(|plan| plan.codecs.checked)
    }

    fn layout(&self) -> Result<StoreLayout> {
        let plan = self.plan(0)?;
        let dir = self.rows.path_of(self.rows.row(self.model(0))?);
        let group = self.consolidated.load(&dir)?;
        let pieces = match &plan.codecs.kind {
            Kind::Chunk(_) => format!("chunk {}", wellread_image::Shape(plan.chunk)),
            Kind::Shard(shard) => format!(
                "shard {} of chunk {}",
                wellread_image::Shape(plan.chunk),
                wellread_image::Shape(shard.inner)
            ),
        };
        Ok(StoreLayout {
            codec: plan.codecs.label.clone(),
            pieces,
            variant: format!("{} (zarr v{}){}", group.version(), group.zarr, plan.stored.remark()),
            chunk: Some(match &plan.codecs.kind {
                Kind::Chunk(_) => plan.chunk,
                Kind::Shard(shard) => shard.inner,
            }),
            ..StoreLayout::default()
        })
    }

    /// Metadata and chunk files of the level that was opened, and the groups' metadata.
    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = vec![];
        place::list_all_ahead(self.path());
        let unknown = |row| self.rows.row(row).is_ok_and(|entry| entry.loaded.get().is_none());
        let mut ahead = RowsAhead::of_heads(self, self.rows.len(), |row| unknown(row).then_some(row));
        for (row, entry) in self.rows.iter().enumerate() {
            ahead.before(row);
            self.add_files(row, entry, &mut files)?;
        }
        files.extend(self.series.as_ref().map(|series| series.file().to_owned()));
        Ok(files)
    }

    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        let mut files = vec![];
        for row in rows.iter().copied().collect::<BTreeSet<usize>>() {
            self.add_files(row, self.rows.row(row)?, &mut files)?;
        }
        Ok(files)
    }

    fn hints(&self) -> Hints<'_> {
        let has_some = self.plate.is_some() || self.series.is_some();
        let columns = has_some.then_some(self as &dyn FeatureTable);
        let left_out = LeftOutCounts { images: self.left_out, ..LeftOutCounts::default() };
        Hints { columns, missing_parts: &self.missing_parts, left_out, ..Hints::default() }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        Ok(RowHints::new(self, row))
    }

    fn heads(&self, rows: &[usize], extent: ReadExtent, wanted: &mut WantedRanges) {
        self.metadata_files(rows, extent, wanted);
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        self.chunk_ranges(requests, wanted)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        self.read_requests(requests, scratch, sink)
    }
}

impl FeatureTable for OmeZarrStore {
    default_columns!(columns_left_out, columns_renamed, columns_in_utc, has_row_numbers);

    fn feature_names(&self) -> Vec<String> {
        let of_series = || self.series.as_ref().map_or_else(Vec::new, SeriesColumns::names);
        self.plate.as_ref().map_or_else(of_series, PlateColumns::names)
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if let Some(plate) = &self.plate {
            let places: Vec<String> = self.rows.iter().map(|row| row.location.name.clone()).collect();
            return plate.columns(self.path(), names, &places);
        }
        let Some(series) = &self.series else { return Ok(None) };
        let groups: Vec<String> = self.rows.iter().map(|row| path_text(&row.location.below)).collect();
        series.columns(names, &groups)
    }
}

impl RowFacts for OmeZarrStore {
    unknown_facts!(position, cut, metadata_rows, working_bytes);

    fn file(&self, row: usize) -> Option<PathBuf> {
        self.rows.row(row).ok().map(|row| self.rows.path_of(row))
    }

    fn grid(&self, row: usize) -> Option<[usize; 2]> {
        let plan = self.plan(row).ok()?;
        let piece = match &plan.codecs.kind {
            Kind::Chunk(_) => plan.chunk,
            Kind::Shard(shard) => shard.inner,
        };
        Some([piece[3], piece[4]])
    }

    fn unkept(&self, row: usize) -> Vec<&'static str> {
        let Ok(entry) = self.rows.row(self.model(row)) else { return vec![] };
        unkept::of_image(&self.rows.path_of(entry), &entry.location.name)
    }
}
