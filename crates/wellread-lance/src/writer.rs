//! Writing: batches of images become one version of a Lance dataset, written under a temporary name.

use crate::error::CANNOT_WRITE;
use crate::export;
use crate::runtime::wait;
use arrow_array_58::RecordBatchIterator;
use arrow_schema::{DataType, Field, FieldRef, Metadata, Schema, SchemaRef};
use crossbeam_channel::Receiver;
use lance::dataset::{InsertBuilder, WriteMode, WriteParams};
use lance_encoding::constants::{COMPRESSION_LEVEL_META_KEY, COMPRESSION_META_KEY};
use lance_file::version::LanceFileVersion;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::ome_arrow::field;
use wellread_store::staged::Staged;
use wellread_store::table::{TableSink, TableWriter, ThreadSink};
use wellread_store::{Compression, Error, Result, StoreWriter, Tune, WriteOptions};

/// Name of the one table of a LanceDB folder that is written.
const TABLE: &str = "images.lance";

/// How pixels are encoded: metadata of their field, by which Lance chooses.
type Encoding = Vec<(&'static str, String)>;

/// A writer to a Lance dataset, or to a LanceDB folder with one where the target ends in `.lancedb`.
pub(crate) fn create(target: &Path, options: &WriteOptions) -> Result<Box<dyn StoreWriter>> {
    let encoding = encoding(target, options)?;
    let staged = Staged::new(target, options.overwrite)?;
    let make = Box::new(move |schema: SchemaRef| sink(staged, &encoding, &schema));
    Ok(Box::new(TableWriter::create(target, options, make)?))
}

/// What the options mean to Lance.
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
            .hint("it has default (bit packing), none, lz4, zstd[:LEVEL]")),
    }
}

/// The sink of a schema that is now known.
fn sink(staged: Staged, encoding: &Encoding, schema: &Schema) -> Result<Box<dyn TableSink>> {
    let target = staged.target().to_owned();
    let mut folder = staged.create_dir()?.to_owned();
    if target.extension().is_some_and(|e| e.eq_ignore_ascii_case("lancedb")) {
        folder.push(TABLE);
    }
    let schema = Arc::new(with_encoding(schema, encoding));
    let errors = target.clone();
    let work = move |batches| write(&errors, folder, schema, batches);
    Ok(Box::new(ThreadSink::spawn(target, work, move || staged.commit())))
}

/// Writes all batches to the dataset in `folder`; errors are of `target`.
fn write(
    target: &Path,
    folder: PathBuf,
    schema: SchemaRef,
    batches: Receiver<arrow_array::RecordBatch>,
) -> Result<()> {
    let refuse = |why: String| Error::new(target, format_args!("{CANNOT_WRITE}: {why}"));
    let address = folder.into_os_string().into_string().map_err(|_| {
        Error::new(target, "Lance cannot write to a path that is not valid UTF-8").hint("rename the folder")
    })?;
    let empty = export(arrow_array::RecordBatch::new_empty(schema)).map_err(refuse)?;
    let schema = empty.schema();
    let kept = Arc::clone(&schema);
    let theirs = batches.into_iter().map(move |batch| {
        let batch = export(batch).map_err(arrow_schema_58::ArrowError::CDataInterface)?;
        batch.with_schema(Arc::clone(&kept))
    });
    let params = WriteParams {
        mode: WriteMode::Create,
        data_storage_version: Some(LanceFileVersion::Stable),
        ..WriteParams::default()
    };
    wait(target, CANNOT_WRITE, async {
        let insert = InsertBuilder::new(address.as_str()).with_params(&params);
        insert.execute_stream(RecordBatchIterator::new(theirs, schema)).await.map(|_| ())
    })
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
