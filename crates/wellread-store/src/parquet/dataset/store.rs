//! Reading: requests to chunks, chunks to row groups, row groups to pages.

use super::super::codec_name::codec_name;
use super::super::file::{PositionalFile, guarded};
use super::super::footer::{footer, is_own};
use super::super::pages::{self, ColumnPages};
use super::super::pages_ahead;
use super::super::sums::have_sums;
use super::bytes::{Buffers, ByteColumn};
use super::image::{Chunk, Image};
use super::names::{CHUNKS, DESCRIPTION, IMAGES, INDEX, LAYOUT, NAME};
use super::tables::{Tables, without_id};
use crate::ahead::Fetching;
use crate::ome_arrow::eight_bit;
use crate::place::{self, PrefetchGuard, WantedRanges};
use crate::words::counted;
use crate::{
    Block, Error, FeatureTable, Hints, LeftOut, OpenOptions, PixelSink, Renamed, Request, Result, RowFacts,
    RowHints, RowInfo, Scratch, Store, StoreLayout, default_answers, default_columns, unknown_facts,
};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::file::statistics::Statistics;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use wellread_image::{ImageMetadata, Shape};

/// An OME-Arrow dataset, open for reading.
pub(super) struct DatasetStore {
    path: PathBuf,
    pub(super) tables: Tables,
    pub(super) file: PositionalFile,
    pub(super) metadata: ArrowReaderMetadata,
    /// Leaves of `chunk_id` and `pixel_bytes`.
    pub(super) leaves: [usize; 2],
    groups: Vec<OnceLock<Group>>,
    /// Bytes of the largest chunk.
    longest: usize,
    /// Whether images declared `uint16` are `uint8`: [`eight_bit`].
    clamped: bool,
}

/// The facts of a row group of chunks once one of them was read.
struct Group {
    /// `chunk_id` of each row and the row, sorted.
    ids: Vec<(i64, usize)>,
    pages: ColumnPages,
}

/// A chunk that some requests need.
struct Needed {
    group: u32,
    row: usize,
    chunk: usize,
    request: usize,
}

/// Asks for both ends of all tables of a remote dataset, which are read one after the other.
fn ends_ahead(folder: &Path) -> Vec<PrefetchGuard> {
    let mut wanted = WantedRanges::default();
    for table in [IMAGES, INDEX, CHUNKS].map(|name| folder.join(name)) {
        wanted.head(&table);
        wanted.tail(&table);
    }
    Fetching::of(folder, None).map(|mut fetching| fetching.fetch(&wanted)).unwrap_or_default()
}

/// The state that a thread keeps from read to read.
#[derive(Default)]
struct Kept {
    needed: Vec<Needed>,
    rows: Vec<usize>,
    buffers: Buffers,
}

impl DatasetStore {
    /// Opens a dataset folder. Reads its small tables and the footer of the chunks; of another writer's `uint16`
    /// also the pixels, up to the first above 255.
    pub fn open(path: &Path, _: &OpenOptions) -> Result<Self> {
        let _ends = ends_ahead(path);
        let tables = Tables::read(path)?;
        let chunks = path.join(CHUNKS);
        let file = PositionalFile::open(&chunks)?;
        let metadata = footer(&file)?;
        let schema = metadata.parquet_schema();
        let leaf = |name: &str| {
            let found = (0..schema.num_columns()).find(|&i| schema.column(i).path().parts() == [name]);
            found.ok_or_else(|| Error::new(&chunks, format_args!("there is no column {name}")))
        };
        let leaves = [leaf("chunk_id")?, leaf("pixel_bytes")?];
        let groups: Vec<_> = metadata.metadata().row_groups().iter().map(|_| OnceLock::new()).collect();
        if let Some(chunk) = tables.chunks.iter().find(|c| c.group as usize >= groups.len()) {
            return Err(Error::new(
                &chunks,
                format_args!(
                    "there are {} row groups, but the index looks for one in group {}",
                    groups.len(),
                    chunk.group
                ),
            )
            .row(chunk.image as usize)
            .hint("the files of the folder do not belong together; write the dataset again"));
        }
        let sizes = tables.images.iter().filter_map(|image| Some((image, image.info.as_ref().ok()?)));
        let longest = sizes
            .flat_map(|(image, info)| {
                tables.chunks[image.chunks.clone()].iter().map(|c| c.region().pixels() * info.dtype.size())
            })
            .max()
            .unwrap_or(0);
        let is_trusted = is_own(&metadata);
        let mut store =
            Self { path: path.to_owned(), tables, file, metadata, leaves, groups, longest, clamped: false };
        store.clamped = !is_trusted && eight_bit::is_proven(&store);
        Ok(store)
    }

    pub(super) fn image(&self, row: usize) -> Result<&Image> {
        let images = &self.tables.images;
        images.get(row).ok_or_else(|| Error::no_such_row(&self.path, row, images.len()))
    }

    fn group(&self, group: usize) -> Result<&Group> {
        if let Some(known) = self.groups[group].get() {
            return Ok(known);
        }
        let meta = self.metadata.metadata().row_group(group);
        let _held = pages_ahead::headers(&self.file, meta.column(self.leaves[1]));
        let pages = pages::scan(&self.file, meta.column(self.leaves[1]))?;
        // A group of one row, as ome-arrow writes, has its id in the footer.
        let only = match meta.column(self.leaves[0]).statistics() {
            Some(Statistics::Int64(s)) if meta.num_rows() == 1 && s.min_opt() == s.max_opt() => {
                s.min_opt().copied()
            }
            _ => None,
        };
        let of_rows = match only {
            Some(id) => vec![id],
            None => self.read_ids(group)?,
        };
        let mut ids: Vec<(i64, usize)> = of_rows.into_iter().zip(0..).collect();
        ids.sort_unstable();
        Ok(self.groups[group].get_or_init(|| Group { ids, pages }))
    }

    fn read_ids(&self, group: usize) -> Result<Vec<i64>> {
        let meta = self.metadata.metadata().row_group(group).column(self.leaves[0]);
        let pages = pages::scan(&self.file, meta)?;
        let rows = self.metadata.metadata().row_group(group).num_rows();
        super::super::check::column(&self.file, meta, &pages, usize::try_from(rows).unwrap_or(0))?;
        let batches = guarded(&self.file, "cannot read chunk_id", || {
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
                .with_projection(ProjectionMask::leaves(self.metadata.parquet_schema(), [self.leaves[0]]))
                .with_row_groups(vec![group])
                .build()?
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(Into::into)
        })?;
        let mut ids = vec![];
        for batch in &batches {
            let column = batch
                .column(0)
                .as_primitive_opt::<Int64Type>()
                .ok_or_else(|| Error::new(self.file.path(), "chunk_id is not a 64-bit integer"))?;
            // The value of a null is any number, such as the id of another chunk.
            if let Some(null) = (0..column.len()).find(|&row| column.is_null(row)) {
                let at = ids.len() + null;
                return Err(without_id(self.file.path(), format_args!("chunk {at} of row group {group}")));
            }
            ids.extend_from_slice(column.values());
        }
        Ok(ids)
    }

    /// Reads requests, row group by row group.
    fn read_requests(
        &self,
        requests: &[Request],
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let Kept { needed, rows, buffers } = scratch.context.get::<Kept>();
        needed.clear();
        for (i, request) in requests.iter().enumerate() {
            self.check(request)?;
            for chunk in self.tables.images[request.row].chunks.clone() {
                let place = &self.tables.chunks[chunk];
                if place.region().intersects(&request.region) {
                    let row = self.row_of(place).map_err(|e| e.row(request.row))?;
                    needed.push(Needed { group: place.group, row, chunk, request: i });
                }
            }
        }
        needed.sort_unstable_by_key(|n| (n.group, n.row, n.request));
        let mut groups = needed.chunk_by(|a, b| a.group == b.group);
        groups.try_for_each(|of_group| self.read_group(of_group, requests, rows, buffers, sink))
    }

    /// The row of a chunk in its row group. The id decides, as in the reference reader, not the index's row number.
    fn row_of(&self, chunk: &Chunk) -> Result<usize> {
        let ids = &self.group(chunk.group as usize)?.ids;
        let from = ids.partition_point(|&(id, _)| id < chunk.id);
        let mut found = ids[from..].iter().take_while(|&&(id, _)| id == chunk.id);
        let &(_, row) = found.next().ok_or_else(|| {
            let cause = format_args!(
                "chunk {} is not in row group {}, where the index has it",
                chunk.id, chunk.group
            );
            Error::new(self.file.path(), cause)
                .hint("the files of the folder do not belong together; write the dataset again")
        })?;
        if found.next().is_some() {
            let cause = format_args!(
                "row group {} has several chunks of chunk_id {}, which cannot be told apart",
                chunk.group, chunk.id
            );
            return Err(
                Error::new(self.file.path(), cause).hint("write the dataset again with ids that differ")
            );
        }
        Ok(row)
    }

    /// Reads some chunks of one row group, in order of their rows.
    fn read_group(
        &self,
        needed: &[Needed],
        requests: &[Request],
        rows: &mut Vec<usize>,
        buffers: &mut Buffers,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let group = needed[0].group as usize;
        rows.clear();
        rows.extend(needed.iter().map(|n| n.row));
        rows.dedup();
        let column = ByteColumn {
            file: &self.file,
            metadata: &self.metadata,
            group,
            leaf: self.leaves[1],
            pages: &self.group(group)?.pages,
            longest: self.longest,
        };
        let mut next = 0;
        let first_row = requests[needed[0].request].row;
        let mut narrowed = std::mem::take(&mut buffers.narrowed);
        let result = column.read(rows, buffers, &mut |i, data| {
            while let Some(n) = needed.get(next).filter(|n| n.row == rows[i]) {
                let row = requests[n.request].row;
                let declared = self.declared(row)?;
                let chunk = &self.tables.chunks[n.chunk];
                let region = chunk.region();
                let expected = region.pixels() * declared.dtype.size();
                let refuse = |why: std::fmt::Arguments<'_>| {
                    Error::new(self.file.path(), format_args!("chunk {} {why}", chunk.id)).row(row)
                };
                if data.len() != expected {
                    return Err(refuse(format_args!(
                        "has {} bytes, its shape and {} need {expected}",
                        data.len(),
                        declared.dtype
                    ))
                    .hint("the file is corrupt; write the dataset again"));
                }
                let dtype = self.row_info(row)?.dtype;
                let data = if dtype == declared.dtype {
                    data
                } else {
                    eight_bit::narrow(data, &mut narrowed)
                        .map_err(|why| refuse(format_args!("cannot be read as {dtype}: {why}")))?;
                    &narrowed
                };
                sink.put(n.request, &Block { region, data, dtype })?;
                next += 1;
            }
            Ok(())
        });
        buffers.narrowed = narrowed;
        result.map_err(|e| e.row(first_row))
    }

    /// Shape and type of a row as the table says.
    fn declared(&self, row: usize) -> Result<RowInfo> {
        self.image(row)?.info.clone().map_err(|why| Error::new(&self.path, why).row(row))
    }
}

impl Store for DatasetStore {
    default_answers!(remote_path, files_of, heads, scan, check);

    fn format(&self) -> &'static str {
        NAME
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> usize {
        self.tables.images.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        self.declared(row).map(|info| if self.clamped { eight_bit::narrowed(info) } else { info })
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        Ok(self.image(row)?.metadata())
    }

    fn name(&self, row: usize) -> Result<String> {
        Ok(self.image(row)?.name.to_string())
    }

    fn layout(&self) -> Result<StoreLayout> {
        let groups = self.metadata.metadata().row_groups();
        let codec = groups.first().map_or("", |g| codec_name(g.column(self.leaves[1]).compression()));
        let chunk = self.tables.chunks.first().map_or(Shape([0; 5]), |c| Shape(c.region().size));
        let layout = self.tables.images.first().map_or("", |i| &*i.layout);
        Ok(StoreLayout {
            codec: codec.to_owned(),
            pieces: format!(
                "chunk {chunk} ({layout}), {} in {}",
                counted(self.tables.chunks.len(), "chunk"),
                counted(groups.len(), "row group")
            ),
            variant: if self.clamped {
                format!("{}, {}", LAYOUT, eight_bit::NOTE)
            } else {
                LAYOUT.to_owned()
            },
            ..StoreLayout::default()
        })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let files = [IMAGES, CHUNKS, INDEX, DESCRIPTION].map(|name| self.path.join(name));
        Ok(files.into_iter().filter(|f| place::is_file(f)).collect())
    }

    fn has_checksums(&self) -> bool {
        have_sums(&self.file, &self.metadata, &self.leaves)
    }

    fn hints(&self) -> Hints<'_> {
        Hints { columns: Some(self), ..Hints::default() }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        Ok(RowHints::new(self, row))
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        self.chunk_ranges(requests, wanted)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        self.file.unless_written(self.read_requests(requests, scratch, sink))
    }
}

impl FeatureTable for DatasetStore {
    default_columns!(columns_in_utc, has_row_numbers);

    fn feature_names(&self) -> Vec<String> {
        self.tables.features.clone()
    }

    fn columns_left_out(&self) -> Vec<LeftOut> {
        self.tables.left_out.clone()
    }

    fn columns_renamed(&self) -> Vec<Renamed> {
        self.tables.renamed.clone()
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() || self.tables.images.is_empty() {
            return Ok(None);
        }
        self.tables.values(names).map(Some)
    }
}

impl RowFacts for DatasetStore {
    unknown_facts!(grid, file, cut, metadata_rows, unkept, working_bytes);

    fn position(&self, row: usize) -> u64 {
        let first = self.tables.images.get(row).and_then(|i| self.tables.chunks.get(i.chunks.start));
        first.map_or(row as u64, |c| u64::from(c.group) << 32 | (c.id as u64 & 0xffff_ffff))
    }
}
