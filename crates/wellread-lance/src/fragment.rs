//! Reading rows of a fragment by Lance's decoders: those that [`crate::direct`] leaves to them.
//!
//! ```text
//!  columns ──▶ of each data file those that it has ──FileReader──▶ batches ┐
//!          └─▶ those that no file has ─────────────────────────▶ nulls    ┴─merge──▶ batches in the order asked for
//! ```
//!
//! A column that was added to a dataset lies in a data file of its own, or in none where all its values are null.

use crate::dataset::{self, Dataset};
use arrow_array_58::{RecordBatch, new_null_array};
use arrow_schema_58::{Field as ArrowField, Schema as ArrowSchema};
use futures::future::{ready, try_join_all};
use futures::stream::{BoxStream, StreamExt, iter};
use futures::{FutureExt, TryFutureExt};
use lance_arrow::RecordBatchExt;
use lance_core::Result;
use lance_core::cache::LanceCache;
use lance_core::datatypes::{OnMissing, OnTypeMismatch, Schema};
use lance_encoding::decoder::{DecoderPlugins, FilterExpression};
use lance_file::LanceEncodingsIo;
use lance_file::reader::{CachedFileMetadata, FileReader, FileReaderOptions, ReaderProjection};
use lance_file::version::ConcreteFileVersion;
use lance_file::versions::{reader_projection_from_field_ids, v1};
use lance_io::ReadBatchParams;
use lance_table::format::{DataFile, Fragment};
use lance_table::utils::stream::{ReadBatchTask, ReadBatchTaskStream, merge_streams};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a batch that Lance decodes.
const BATCH_BYTES: u64 = 8 << 20;
/// Rows of a batch that Lance decodes, at most.
const BATCH_ROWS: u32 = 4096;
/// Batches that Lance decodes ahead.
const BATCHES_AHEAD: usize = 2;

/// Batches as they are decoded.
pub(crate) type Batches = BoxStream<'static, Result<RecordBatch>>;

/// Some columns of a fragment, open for reading.
pub(crate) struct FragmentReader {
    files: Vec<FileColumns>,
    /// Columns that no file has.
    absent: Arc<ArrowSchema>,
    /// All columns, as they are delivered.
    schema: Arc<ArrowSchema>,
}

/// The columns that a data file has.
enum FileColumns {
    /// A file of a format since 2.0.
    Current(FileReader, ReaderProjection),
    /// A file of the first format, which is called 0.1.
    Oldest(Arc<v1::reader::FileReader>, Arc<Schema>),
}

impl FragmentReader {
    /// Opens the files that have the columns of `projection`. `known` has the metadata of a file where it was read.
    ///
    /// # Errors
    /// Files that are missing, damaged or of a format that this release of Lance does not know.
    pub async fn open(
        dataset: &Dataset,
        fragment: &Fragment,
        projection: &Schema,
        known: impl Fn(&DataFile) -> Option<Arc<CachedFileMetadata>>,
    ) -> Result<Self> {
        let mut files = vec![];
        let mut present = HashSet::new();
        for file in &fragment.files {
            let own = projection.intersection_ignore_types(&file.schema(dataset.schema()))?;
            if own.fields.is_empty() {
                continue;
            }
            present.extend(own.field_ids());
            files.push(match file.file_version()? {
                ConcreteFileVersion::V1 => {
                    let reader = dataset.oldest(fragment, file).await?;
                    let columns =
                        reader.schema().project_by_schema(&own, OnMissing::Error, OnTypeMismatch::Error)?;
                    FileColumns::Oldest(Arc::new(reader), Arc::new(columns))
                }
                version => {
                    let pairs = file.fields.iter().zip(file.column_indices.iter());
                    let columns: BTreeMap<u32, u32> = pairs
                        .filter_map(|(&id, &at)| Some((u32::try_from(id).ok()?, u32::try_from(at).ok()?)))
                        .collect();
                    let columns = reader_projection_from_field_ids(version, &own, &columns)?;
                    FileColumns::Current(open_file(dataset, file, known(file)).await?, columns)
                }
            });
        }
        let absent: Vec<i32> =
            projection.field_ids().into_iter().filter(|id| *id >= 0 && !present.contains(id)).collect();
        let absent = nullable(&ArrowSchema::from(&projection.project_by_ids(&absent, true)));
        Ok(Self { files, absent: Arc::new(absent), schema: Arc::new(ArrowSchema::from(projection)) })
    }

    /// Rows at ascending `positions` of the fragment, deleted ones too.
    ///
    /// # Errors
    /// Bytes that cannot be read or decoded: here, or in the stream.
    pub async fn read(&self, positions: &[u32]) -> Result<Batches> {
        let mut streams = try_join_all(self.files.iter().map(|file| file.read(positions))).await?;
        if !self.absent.fields().is_empty() {
            streams.push(nulls(&self.absent, positions.len()));
        }
        let schema = Arc::clone(&self.schema);
        let batches = merge_streams(streams).map(move |batch| {
            let schema = Arc::clone(&schema);
            batch.task.and_then(move |batch| ready(batch.project_by_schema(&schema).map_err(Into::into)))
        });
        Ok(batches.buffered(BATCHES_AHEAD).boxed())
    }
}

impl FileColumns {
    async fn read(&self, positions: &[u32]) -> Result<ReadBatchTaskStream> {
        match self {
            Self::Current(reader, columns) => {
                let runs = crate::rows::runs(positions, u32::MAX);
                let runs: Arc<[Range<u64>]> = runs.map(|r| u64::from(r.start)..u64::from(r.end)).collect();
                let tasks = reader.read_tasks(
                    ReadBatchParams::Ranges(runs),
                    BATCH_ROWS,
                    Some(columns.clone()),
                    FilterExpression::no_filter(),
                );
                let tasks = tasks.await?;
                Ok(tasks.map(|t| ReadBatchTask { task: t.task, num_rows: t.num_rows }).boxed())
            }
            Self::Oldest(reader, columns) => {
                let blocks: Vec<Vec<u32>> =
                    positions.chunks(BATCH_ROWS as usize).map(<[u32]>::to_vec).collect();
                let (reader, columns) = (Arc::clone(reader), Arc::clone(columns));
                let task = move |block: Vec<u32>| {
                    let (reader, columns) = (Arc::clone(&reader), Arc::clone(&columns));
                    let num_rows = block.len() as u32;
                    let task = async move { reader.take(&block, &columns).await };
                    ReadBatchTask { task: task.boxed(), num_rows }
                };
                Ok(iter(blocks).map(task).boxed())
            }
        }
    }
}

async fn open_file(
    dataset: &Dataset,
    file: &DataFile,
    known: Option<Arc<CachedFileMetadata>>,
) -> Result<FileReader> {
    let options = FileReaderOptions { batch_size_bytes: Some(BATCH_BYTES), ..FileReaderOptions::default() };
    let scheduler = dataset.scheduler(file).await?;
    let metadata = match known {
        Some(metadata) => metadata,
        None => dataset::metadata(&scheduler).await?,
    };
    let path = scheduler.reader().path().clone();
    let io = LanceEncodingsIo::new(scheduler).with_read_chunk_size(options.read_chunk_size);
    FileReader::try_open_with_file_metadata(
        Arc::new(io),
        path,
        None,
        Arc::<DecoderPlugins>::default(),
        metadata,
        &LanceCache::no_cache(),
        options,
    )
    .await
}

/// A schema whose columns may all be null.
fn nullable(schema: &ArrowSchema) -> ArrowSchema {
    let fields = schema.fields().iter().map(|f| ArrowField::clone(f).with_nullable(true));
    ArrowSchema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
}

/// `rows` rows of nulls, as batches.
fn nulls(schema: &Arc<ArrowSchema>, rows: usize) -> ReadBatchTaskStream {
    let schema = Arc::clone(schema);
    let most = BATCH_ROWS as usize;
    let batch = move |start: usize| {
        let rows = most.min(rows - start);
        let columns = schema.fields().iter().map(|f| new_null_array(f.data_type(), rows)).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(Into::into);
        ReadBatchTask { task: ready(batch).boxed(), num_rows: rows as u32 }
    };
    iter((0..rows).step_by(most).map(batch)).boxed()
}
