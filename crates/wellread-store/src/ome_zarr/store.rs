//! Reading: requests to chunk files to blocks.
//!
//! Long because chunks of files and of shards are read by the same steps, which share their buffers.

use super::array::ArrayPlan;
use super::chain::Kind;
use super::codec::ChunkCodec;
use super::consolidated::Consolidated;
use super::first_look;
use super::grid::{block_region, covering, for_each_index, part_inside};
use super::layout::{self, NAMING};
use super::metadata_file::read_after_if_exists;
use super::native::Decoders;
use super::order::Reorder;
use super::plans::Plans;
use super::plate::PlateColumns;
use super::plausible;
use super::series::SeriesColumns;
use super::shard::{IndexCache, Piece, ShardCodec, at_once, fetch, joint_reads};
use super::stamps::ChunkStamps;
use crate::fd_table;
use crate::file_names::path_text;
use crate::file_rows::{FileRow, FileRows};
use crate::format::Missing;
use crate::open_files::{OpenFile, OpenFiles};
use crate::place::{self, Ticket, Wanted};
use crate::room;
use crate::stamp::written;
use crate::store::RowsAhead;
use crate::surface::option_as;
use crate::{
    Block, Error, FeatureTable, Hints, LeftOut, OpenOptions, PixelSink, Request, Result, RowFacts, RowHints,
    RowInfo, Scratch, Store, StoreLayout,
};
use arrow_array::RecordBatch;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wellread_image::{ImageMetadata, Region};

/// OME-Zarr images, open for reading at one resolution level.
#[derive(Debug)]
pub(super) struct OmeZarrStore {
    level: usize,
    /// Rows, with the plans of their arrays once read; rows of equal metadata share one.
    pub(super) rows: FileRows<Arc<ArrayPlan>>,
    /// Rows of a plate whose folders are not there: they look like the first that is there.
    pub(super) absent: BTreeSet<usize>,
    /// Whether those are read as 0; else they cannot be read.
    is_zero: bool,
    /// The parts that the plate lacks, in sentences.
    lacks: Vec<String>,
    /// Where the rows are those of a plate.
    plate: Option<PlateColumns>,
    /// Where they are a series with columns.
    series: Option<SeriesColumns>,
    plans: Plans,
    /// The metadata that the group of all images has of theirs, where it lies far away.
    pub(super) consolidated: Consolidated,
    /// Whether metadata of an image were asked for.
    is_asked: AtomicBool,
    pub(super) shard_indices: IndexCache,
    /// Chunk and shard files that stay open, by row and number of the chunk.
    pub(super) files: OpenFiles<(usize, usize)>,
    /// Their stamps at the first read.
    stamps: ChunkStamps,
}

/// The state that a reading thread keeps between calls.
#[derive(Default)]
struct Context {
    decoders: Decoders,
    file: PathBuf,
    key: String,
    pieces: Vec<Piece>,
}

impl Context {
    /// Writes the path of the chunk at `at` into `self.file`.
    fn name(&mut self, array_dir: PathBuf, plan: &ArrayPlan, at: [usize; 5]) {
        plan.key(at, &mut self.key);
        self.file = array_dir;
        self.file.push(&self.key);
    }
}

impl OmeZarrStore {
    /// Opens a group, folder, plate or series; reads listings, no image metadata where avoidable.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        fd_table::reserve_descriptors();
        let _held = first_look::ask_for_group(path);
        let consolidated = Consolidated::of(path);
        let layout::Rows { places, absent, lacks } = layout::rows_known(path, options, &consolidated)?;
        let store = Self {
            level: options.level,
            absent,
            is_zero: options.missing == Missing::Zero,
            lacks,
            rows: FileRows::new(path, places),
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
    fn ask_for_first(&self, dir: &Path) -> Vec<Ticket> {
        if self.is_asked.swap(true, Ordering::Relaxed) || self.consolidated.has(dir) {
            return vec![];
        }
        first_look::ask_for_image(dir, self.level)
    }

    /// Reads what one request needs of one row.
    fn read_row(
        &self,
        request: usize,
        Request { row, region }: &Request,
        context: &mut Context,
        buffers: &mut Buffers<'_>,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let plan = self.plan(*row)?;
        let entry = self.rows.row(*row)?;
        if !self.is_zero && self.absent.contains(row) {
            return Err(Error::new(
                self.rows.path_of(entry),
                "the field is not there, though the metadata name it",
            )
            .row(*row)
            .hint(format_args!(
                "{} leaves such fields out, {} reads them as 0",
                option_as("missing", "skip"),
                option_as("missing", "zero")
            )));
        }
        let (first, last) = covering(region, &plan.chunk);
        let array_dir = || self.rows.path_of(entry).join(&plan.dataset);
        for_each_index(first, last, |at| {
            let linear = (0..5).fold(0, |n, a| n * plan.grid[a] + at[a]);
            let opened = self.files.get((*row, linear), || {
                context.name(array_dir(), plan, at);
                place::open(&context.file)
            });
            let file = match opened {
                Ok(file) => Some(file),
                Err(e) if e.kind() == ErrorKind::NotFound => None,
                Err(e) => return Err(Error::io(&context.file, "cannot open", &e)),
            };
            let chunk = block_region(at, &plan.chunk);
            let mut out = Output { request, plan, wanted: region, sink: &mut *sink };
            let result = match (file.as_deref(), &plan.chain.kind) {
                (None, _) if self.absent.contains(row) => {
                    out.spread(&chunk, &[0u8; 16][..plan.info.dtype.size()], buffers.pixels)
                }
                (None, _) => out.fill(&chunk, buffers.pixels),
                (Some(file), Kind::Chunk(codec)) => match read_whole(file, buffers.raw) {
                    Ok(length) => {
                        // The raw bytes are lent beside the buffers that they are decoded into.
                        let raw = std::mem::take(buffers.raw);
                        let reorder = plan.chain.reorder;
                        let result = out.decode(&raw[..length], codec, reorder, &chunk, context, buffers);
                        *buffers.raw = raw;
                        result
                    }
                    Err(e) => {
                        context.name(array_dir(), plan, at);
                        Err(Failure::Sink(Error::io(&context.file, "cannot read", &e)))
                    }
                },
                (Some(file), Kind::Shard(codec)) => {
                    let shard = ShardOf { codec, file, origin: chunk.start, key: (*row, linear) };
                    self.read_shard(shard, &mut out, context, buffers)
                }
            };
            let is_other = match file.as_deref() {
                Some(file) => self.stamps.is_other((*row, linear), &file.file),
                None => self.stamps.has((*row, linear)),
            };
            let result = if is_other { Err(Failure::Written) } else { result };
            result.map_err(|failure| match failure {
                Failure::Written => {
                    context.name(array_dir(), plan, at);
                    written(&context.file)
                }
                Failure::Chunk(cause) => {
                    context.name(array_dir(), plan, at);
                    Error::new(&context.file, format_args!("the chunk cannot be decoded: {cause}"))
                        .hint("the file is truncated or corrupt; copy or write the image again")
                }
                Failure::Missing => {
                    context.name(array_dir(), plan, at);
                    Error::new(
                        &context.file,
                        "a chunk is missing of an image that was written with all of them",
                    )
                    .hint("copy or write the image again")
                }
                Failure::Sink(error) => error,
            })
        })
    }

    fn read_shard(
        &self,
        shard: ShardOf<'_>,
        out: &mut Output<'_, '_>,
        context: &mut Context,
        buffers: &mut Buffers<'_>,
    ) -> std::result::Result<(), Failure> {
        let ShardOf { codec, file: OpenFile { file, length, .. }, origin, key } = shard;
        let length = *length;
        let index = self.shard_indices.get(key, || codec.read_index(file, length))?;
        // The part of the request inside this shard, in the shard's own coordinates.
        let part = part_inside(out.wanted, origin, &out.plan.chunk);
        let (first, last) = covering(&part, &codec.inner);
        let region_of = |at: [usize; 5]| Region {
            start: std::array::from_fn(|a| origin[a] + at[a] * codec.inner[a]),
            size: codec.inner,
        };
        let mut pieces = std::mem::take(&mut context.pieces);
        pieces.clear();
        for_each_index(first, last, |at| match codec.piece(&index, at, length)? {
            Some(piece) => {
                pieces.push(piece);
                Ok(())
            }
            None => out.fill(&region_of(at), buffers.pixels),
        })?;
        let mut next = 0;
        let reads = joint_reads(&mut pieces);
        for reads in at_once(&reads, file) {
            let bytes = reads.iter().map(|(start, end, _)| (end - start) as usize).sum();
            room::grow(buffers.raw, bytes)?;
            fetch(file, reads, &mut buffers.raw[..bytes])
                .map_err(|e| Failure::Chunk(format!("cannot read: {e}")))?;
            let raw = std::mem::take(buffers.raw);
            let mut before = 0;
            for &(start, end, count) in reads {
                for piece in &pieces[next..next + count] {
                    let at = before + (piece.offset - start) as usize;
                    let raw = &raw[at..at + piece.length as usize];
                    let region = region_of(piece.at);
                    out.decode(raw, &codec.codec, codec.reorder, &region, context, buffers)?;
                }
                before += (end - start) as usize;
                next += count;
            }
            *buffers.raw = raw;
        }
        context.pieces = pieces;
        Ok(())
    }
}

/// A shard being read: its file, its first pixel in the image, and its key in the cache of indices.
#[derive(Clone, Copy)]
struct ShardOf<'a> {
    codec: &'a ShardCodec,
    file: &'a OpenFile,
    origin: [usize; 5],
    key: (usize, usize),
}

struct Buffers<'a> {
    raw: &'a mut Vec<u8>,
    decoded: &'a mut Vec<u8>,
    pixels: &'a mut Vec<u8>,
}

/// A chunk's own fault (its file is added by the caller), or somebody else's.
enum Failure {
    Chunk(String),
    /// There is no chunk where there must be one.
    Missing,
    /// The chunk's file is another than at its first read.
    Written,
    Sink(Error),
}

impl From<String> for Failure {
    fn from(cause: String) -> Self {
        Self::Chunk(cause)
    }
}

/// Where decoded chunks of one request go.
struct Output<'a, 's> {
    request: usize,
    plan: &'a ArrayPlan,
    wanted: &'a Region,
    sink: &'s mut dyn PixelSink,
}

impl Output<'_, '_> {
    /// Decodes one (inner) chunk that lies at `region` and hands it on.
    fn decode(
        &mut self,
        raw: &[u8],
        codec: &ChunkCodec,
        reorder: Option<Reorder>,
        region: &Region,
        context: &mut Context,
        buffers: &mut Buffers<'_>,
    ) -> std::result::Result<(), Failure> {
        let dtype = self.plan.info.dtype;
        let expected = region.pixels() * dtype.size();
        let data = codec.decode(raw, expected, dtype, &mut context.decoders, buffers.decoded)?;
        let data = match reorder {
            None => data,
            Some(reorder) => {
                room::grow(buffers.pixels, expected)?;
                reorder.apply(dtype, data, &mut buffers.pixels[..expected]);
                &buffers.pixels[..expected]
            }
        };
        self.sink.put(self.request, &Block { region: *region, data, dtype }).map_err(Failure::Sink)
    }

    /// Hands on the fill value for what the request wants of a chunk that does not exist.
    fn fill(&mut self, chunk: &Region, pixels: &mut Vec<u8>) -> std::result::Result<(), Failure> {
        if self.plan.complete {
            return Err(Failure::Missing);
        }
        let plan = self.plan;
        self.spread(chunk, &plan.fill[..plan.info.dtype.size()], pixels)
    }

    /// Hands on one value for what the request wants of a chunk.
    fn spread(
        &mut self,
        chunk: &Region,
        value: &[u8],
        pixels: &mut Vec<u8>,
    ) -> std::result::Result<(), Failure> {
        let dtype = self.plan.info.dtype;
        let Some(region) = chunk.intersection(self.wanted) else { return Ok(()) };
        let bytes = region.pixels() * dtype.size();
        room::grow(pixels, bytes)?;
        pixels[..bytes].chunks_exact_mut(dtype.size()).for_each(|pixel| pixel.copy_from_slice(value));
        self.sink.put(self.request, &Block { region, data: &pixels[..bytes], dtype }).map_err(Failure::Sink)
    }
}

impl Store for OmeZarrStore {
    fn format(&self) -> &'static str {
        NAMING.name
    }

    fn path(&self) -> &Path {
        self.rows.root()
    }

    fn far(&self) -> Option<&Path> {
        self.rows.far()
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        Ok(self.plan(row)?.info)
    }

    fn name(&self, row: usize) -> Result<String> {
        Ok(self.rows.row(row)?.place.name.clone())
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        let entry = self.rows.row(row)?;
        let model = self.rows.row(self.model(row))?;
        let group = self.consolidated.load(&self.rows.path_of(model)).map_err(|e| e.row(row))?;
        group.metadata(&entry.place.name, self.level).map_err(|e| e.row(row))
    }

    fn has_checksums(&self) -> bool {
        self.plan(0).is_ok_and(|plan| plan.chain.checked)
    }

    fn layout(&self) -> Result<StoreLayout> {
        let plan = self.plan(0)?;
        let dir = self.rows.path_of(self.rows.row(self.model(0))?);
        let group = self.consolidated.load(&dir)?;
        let pieces = match &plan.chain.kind {
            Kind::Chunk(_) => format!("chunk {}", wellread_image::Shape(plan.chunk)),
            Kind::Shard(shard) => format!(
                "shard {} of chunk {}",
                wellread_image::Shape(plan.chunk),
                wellread_image::Shape(shard.inner)
            ),
        };
        Ok(StoreLayout {
            codec: plan.chain.label.clone(),
            pieces,
            variant: format!("{} (zarr v{})", group.version(), group.zarr),
            chunk: Some(match &plan.chain.kind {
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
        Hints { columns, lacks: &self.lacks, ..Hints::default() }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        Ok(RowHints::new(self, row))
    }

    fn heads(&self, rows: &[usize], whole: bool, wanted: &mut Wanted) {
        self.metadata_files(rows, whole, wanted);
    }

    fn ranges(&self, requests: &[Request], wanted: &mut Wanted) -> Result<()> {
        self.chunk_ranges(requests, wanted)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let Scratch { raw, decoded, pixels, context, .. } = scratch;
        let mut buffers = Buffers { raw, decoded, pixels };
        let context = context.get::<Context>();
        requests.iter().enumerate().try_for_each(|(i, request)| {
            self.check(request)
                .and_then(|_| self.read_row(i, request, context, &mut buffers, sink))
                .map_err(|e| e.row(request.row))
        })
    }
}

impl FeatureTable for OmeZarrStore {
    fn feature_names(&self) -> Vec<String> {
        let of_series = || self.series.as_ref().map_or_else(Vec::new, SeriesColumns::names);
        self.plate.as_ref().map_or_else(of_series, PlateColumns::names)
    }

    fn columns_left_out(&self) -> Vec<LeftOut> {
        vec![]
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if let Some(plate) = &self.plate {
            let places: Vec<String> = self.rows.iter().map(|row| row.place.name.clone()).collect();
            return plate.columns(self.path(), names, &places);
        }
        let Some(series) = &self.series else { return Ok(None) };
        let groups: Vec<String> = self.rows.iter().map(|row| path_text(&row.place.below)).collect();
        series.columns(names, &groups)
    }
}

impl RowFacts for OmeZarrStore {
    fn file(&self, row: usize) -> Option<PathBuf> {
        self.rows.row(row).ok().map(|row| self.rows.path_of(row))
    }

    fn grid(&self, row: usize) -> Option<[usize; 2]> {
        let plan = self.plan(row).ok()?;
        let piece = match &plan.chain.kind {
            Kind::Chunk(_) => plan.chunk,
            Kind::Shard(shard) => shard.inner,
        };
        Some([piece[3], piece[4]])
    }

    fn working_bytes(&self, row: usize) -> Result<usize> {
        Ok(self.row_info(row)?.working_bytes())
    }
}

/// Reads a file into the start of `buffer`, which grows as needed but never shrinks; returns the number of bytes.
fn read_whole(file: &OpenFile, buffer: &mut Vec<u8>) -> std::io::Result<usize> {
    let length = usize::try_from(file.length).unwrap_or(usize::MAX);
    if buffer.len() < length {
        buffer.try_reserve_exact(length - buffer.len()).map_err(|_| ErrorKind::OutOfMemory)?;
        buffer.resize(length, 0);
    }
    file.file.read_exact_at(&mut buffer[..length], 0)?;
    Ok(length)
}
