//! Writing: batches of images become one version of a Lance dataset, written under a temporary name.
//!
//! ```text
//!  batches ──▶ one fragment, one version                                      commit ──▶ its place
//!          └─▶ fragments that the journal notes (`parts`) ──▶ one version ──▶ commit     (resumable)
//! ```

use crate::bridge::export;
use crate::commit::{DataFileWriter, NewDataset};
use crate::dataset_folder;
use crate::error::CANNOT_WRITE;
use crate::parts::{PART_BYTES, Parts};
use crate::runtime::wait;
use arrow_schema::{DataType, Field, FieldRef, Metadata, Schema, SchemaRef};
use crossbeam_channel::Receiver;
use lance_core::datatypes::Schema as LanceSchema;
use lance_encoding::constants::{COMPRESSION_LEVEL_META_KEY, COMPRESSION_META_KEY};
use lance_table::format::Fragment;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_image::ome_arrow::field;
use wellread_store::features::refuse_nul;
use wellread_store::place;
use wellread_store::staged::{Finished, Staged};
use wellread_store::table::{TableSink, TableWriter, ThreadSink};
use wellread_store::{Compression, Error, Result, StoreWriter, Tune, WriteOptions};

/// Name of the one table of a LanceDB folder that is written.
const TABLE: &str = "images.lance";

/// Rows of a fragment and bytes of its file, at most, as Lance has them by default. Object stores take no more than
/// 100 GB at once.
const FRAGMENT_LIMITS: (u64, u64) = (1 << 20, 90 << 30);

/// How pixels are encoded: metadata of their field, by which Lance chooses.
type Encoding = Vec<(&'static str, String)>;

/// A writer to a Lance dataset, or to a LanceDB folder with one where the target ends in `.lancedb`.
pub(crate) fn create(target: &Path, options: &WriteOptions) -> Result<Box<dyn StoreWriter>> {
    // Its parts lie under another name until it is complete, and readers ask for the whole path as text.
    if place::absolute(target).is_ok_and(|whole| whole.to_str().is_none()) {
        return Err(not_utf8(target));
    }
    refuse_nul(target, "Lance", options.features.as_ref())?;
    let encoding = encoding(target, options)?;
    if options.overwrite {
        dataset_folder::refuse_tables(target)?;
    }
    let staged = Staged::for_table(target, options)?;
    let make = Box::new(move |schema: SchemaRef| sink(staged, &encoding, &schema));
    Ok(Box::new(TableWriter::create(target, options, make)?))
}

/// Where the dataset of `target` is while `folder` is what becomes of the target: in it, where that is a LanceDB folder.
pub(crate) fn dataset_in(folder: &Path, target: &Path) -> PathBuf {
    let is_database = target.extension().is_some_and(|e| e.eq_ignore_ascii_case("lancedb"));
    if is_database { folder.join(TABLE) } else { folder.to_owned() }
}

/// Lance takes paths as text.
pub(crate) fn not_utf8(target: &Path) -> Error {
    Error::new(target, "Lance cannot write to a path that is not valid UTF-8")
        .hint("choose another name, or another folder where it is the folder's")
}

/// The encoding that the options give in Lance.
fn encoding(target: &Path, options: &WriteOptions) -> Result<Encoding> {
    let named = |name: &str| vec![(COMPRESSION_META_KEY, name.to_owned())];
    let zstd = |level: i32| {
        let mut encoding = named("zstd");
        encoding.push((COMPRESSION_LEVEL_META_KEY, level.to_string()));
        encoding
    };
    match options.compression {
        Compression::Default if options.tune == Tune::Size => Ok(zstd(15)),
        // Bits that no pixel of a chunk uses are left out, which is Lance's own choice.
        Compression::Default => Ok(vec![]),
        Compression::None => Ok(named("none")),
        Compression::Lz4 => Ok(named("lz4")),
        Compression::Zstd(level) => Ok(zstd(level)),
        other => Err(Error::new(target, format_args!("Lance has no compression {other}"))
            .choice()
            .hint("it has default (bit packing), none, lz4, zstd[:LEVEL]")),
    }
}

/// The sink of a schema that is now known.
fn sink(staged: Staged, encoding: &Encoding, schema: &Schema) -> Result<Box<dyn TableSink>> {
    let target = staged.target().to_owned();
    let folder = dataset_in(staged.path(), &target);
    let schema = Arc::new(with_encoding(schema, encoding));
    let output = Output::new(target.clone(), &folder, schema)?;
    let Some(journal) = staged.journal().cloned() else {
        let work = move |batches| output.write_at_once(&batches);
        return Ok(Box::new(ThreadSink::spawn(target, work, move || Ok(finished(staged, &folder)))?));
    };
    let parts = Parts::open(&target, &folder, journal)?;
    let complete = parts.rows();
    let parts = Arc::new(Mutex::new(parts));
    let all = Arc::clone(&parts);
    let output = Arc::new(output);
    let whole = Arc::clone(&output);
    let work = move |batches| output.write_in_parts(&batches, &mut lock(&parts));
    let finished = move || {
        whole.commit(lock(&all).fragments())?;
        Ok(staged.finished())
    };
    Ok(Box::new(ThreadSink::spawn(target, work, finished)?.after(complete)))
}

/// The output, which is whole now. Its version makes a dataset of `folder`: where files are moved one by one, it goes last.
fn finished(staged: Staged, folder: &Path) -> Finished {
    let path = staged.path().to_owned();
    let last = folder.strip_prefix(&path).unwrap_or(Path::new("")).join(dataset_folder::VERSIONS);
    Finished::new(staged, path, move |staged| staged.commit_with_last(&last))
}

fn lock(parts: &Mutex<Parts>) -> MutexGuard<'_, Parts> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A dataset to be written.
struct Output {
    /// The path that errors are of.
    target: PathBuf,
    dataset: NewDataset,
    schema: LanceSchema,
    /// [`FRAGMENT_LIMITS`], but in tests.
    limits: (u64, u64),
}

impl Output {
    /// In `folder`.
    fn new(target: PathBuf, folder: &Path, schema: SchemaRef) -> Result<Self> {
        let Some(address) = folder.to_str().map(str::to_owned) else {
            return Err(not_utf8(&target));
        };
        let empty = export(arrow_array::RecordBatch::new_empty(schema));
        let theirs =
            empty.map_err(|why| Error::new(&target, format_args!("{CANNOT_WRITE}: {why}")))?.schema();
        let (dataset, schema) = wait(&target, CANNOT_WRITE, async {
            let mut schema = LanceSchema::try_from(theirs.as_ref())?;
            schema.try_reassign_field_ids(None)?;
            Ok((NewDataset::at(&address).await?, schema))
        })?;
        Ok(Self { target, dataset, schema, limits: FRAGMENT_LIMITS })
    }

    /// Writes all batches as one version.
    fn write_at_once(&self, batches: &Receiver<arrow_array::RecordBatch>) -> Result<()> {
        self.commit(&self.write_fragments(batches.iter())?)
    }

    /// Writes batches as fragments that no version has yet: one, but for very large sets.
    fn write_fragments(
        &self,
        batches: impl Iterator<Item = arrow_array::RecordBatch>,
    ) -> Result<Vec<Fragment>> {
        let mut fragments = vec![];
        let mut open: Option<DataFileWriter> = None;
        for batch in batches {
            let batch = export(batch)
                .map_err(|why| Error::new(&self.target, format_args!("{CANNOT_WRITE}: {why}")))?;
            let mut file = match open.take() {
                Some(file) => file,
                None => wait(&self.target, CANNOT_WRITE, self.dataset.data_file(&self.schema))?,
            };
            let (rows, bytes) = wait(&self.target, CANNOT_WRITE, file.write(&batch))?;
            if rows >= self.limits.0 || bytes >= self.limits.1 {
                fragments.push(wait(&self.target, CANNOT_WRITE, file.finish())?);
            } else {
                open = Some(file);
            }
        }
        if let Some(file) = open {
            fragments.push(wait(&self.target, CANNOT_WRITE, file.finish())?);
        }
        Ok(fragments)
    }

    /// Writes all batches as fragments that no version has yet, each noted when it is complete.
    fn write_in_parts(&self, batches: &Receiver<arrow_array::RecordBatch>, parts: &mut Parts) -> Result<()> {
        while let Ok(first) = batches.recv() {
            let limit = PART_BYTES.max(parts.bytes() / 8);
            let mut bytes = first.get_array_memory_size();
            let rest = std::iter::from_fn(|| {
                let batch = if bytes < limit { batches.recv().ok() } else { None }?;
                bytes += batch.get_array_memory_size();
                Some(batch)
            });
            parts.add(self.write_fragments(std::iter::once(first).chain(rest))?)?;
        }
        Ok(())
    }

    /// Makes a version of fragments that are written.
    fn commit(&self, fragments: &[Fragment]) -> Result<()> {
        wait(&self.target, CANNOT_WRITE, self.dataset.commit(&self.schema, fragments))
    }
}

/// Writes batches as a dataset in `folder`, in fragments of `rows` rows and a batch, at most.
#[cfg(test)]
pub(crate) fn write(
    folder: &Path,
    schema: SchemaRef,
    batches: &Receiver<arrow_array::RecordBatch>,
    rows: u64,
) -> Result<()> {
    let output = Output::new(folder.to_owned(), folder, schema)?;
    Output { limits: (rows, u64::MAX), ..output }.write_at_once(batches)
}

/// The schema with the encoding noted at the elements of all lists of pixels.
fn with_encoding(schema: &Schema, encoding: &Encoding) -> Schema {
    let fields = schema.fields().iter().map(|f| note(f, encoding, false)).collect::<Vec<_>>();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn note(field: &FieldRef, encoding: &Encoding, is_pixels: bool) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|f| note(f, encoding, f.name() == field::PIXELS));
            DataType::Struct(fields.collect())
        }
        DataType::List(element) => DataType::List(note(element, encoding, is_pixels)),
        other => other.clone(),
    };
    let mut noted = Field::clone(field).with_data_type(data_type);
    if is_pixels && !noted.data_type().is_nested() {
        let metadata: Metadata = encoding.iter().map(|(k, v)| (*k, v.clone())).collect();
        noted.set_metadata(metadata);
    }
    Arc::new(noted)
}
