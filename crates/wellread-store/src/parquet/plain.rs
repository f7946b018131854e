//! Columns of plain values, read whole: features beside images, and tables of profiles.
//!
//! ```text
//!  footer ──named──▶ columns that are plain, under names that differ ──read_columns, in threads──▶ RecordBatch
//! ```

use super::file::{PositionalFile, guarded};
use super::footer::footer;
use super::int96;
use super::pages_ahead;
use super::sums::check_sums;
use crate::features::{self, other_columns, plain_columns, unique_names, unique_schema};
use crate::{Error, LeftOut, Renamed, Result, threads};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use parquet::basic::{Repetition, Type as Physical};
use parquet::file::metadata::KeyValue;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes of plain columns that are read at most: a table of profiles is megabytes, one of single cells gigabytes.
const MAX_PLAIN_BYTES: i64 = 2 << 30;

/// Values that are worth a thread to decode.
const VALUES_PER_THREAD: usize = 16 << 10;

/// The columns of a Parquet table.
pub(crate) struct PlainColumns {
    /// All plain ones.
    pub columns: RecordBatch,
    /// The others.
    pub left_out: Vec<LeftOut>,
    /// Those that have another name here than in the file: see [`named`].
    pub renamed: Vec<Renamed>,
}

/// The columns of a Parquet table, but those of `without`, which are not read.
///
/// # Errors
/// A file that is missing, corrupt, no Parquet, or larger than features are.
pub(crate) fn read_plain_columns(path: &Path, without: &[String]) -> Result<PlainColumns> {
    let file = PositionalFile::open(path)?;
    let metadata = footer(&file)?;
    let (schema, renamed) = named(&metadata);
    let is_read = |name: &str| without.iter().all(|other| other != name);
    let names: Vec<String> = plain_columns(&schema).filter(|name| is_read(name)).map(str::to_owned).collect();
    let left_out = other_columns(&schema).filter(|column| is_read(&column.name)).collect();
    Ok(PlainColumns { columns: read_columns(&file, &metadata, &names)?, left_out, renamed })
}

/// The names of a table's columns, without their values.
pub(crate) struct PlainNames {
    /// The plain columns.
    pub names: Vec<String>,
    /// The others.
    pub left_out: Vec<LeftOut>,
    /// Those that have another name in the file.
    pub renamed: Vec<Renamed>,
    /// How many rows the table has.
    pub rows: usize,
}

/// Names of the columns of a Parquet table, and how many rows it has.
///
/// # Errors
/// A file that is missing, corrupt or no Parquet.
pub(crate) fn plain_names(path: &Path) -> Result<PlainNames> {
    let file = PositionalFile::open(path)?;
    let metadata = footer(&file)?;
    let rows = metadata.metadata().file_metadata().num_rows();
    let (schema, renamed) = named(&metadata);
    let names = plain_columns(&schema).map(str::to_owned).collect();
    let left_out = other_columns(&schema).collect();
    Ok(PlainNames { names, left_out, renamed, rows: usize::try_from(rows).unwrap_or(0) })
}

/// The plain columns `names` of a Parquet table, in that order; no other is read.
///
/// # Errors
/// As [`read_plain_columns`].
pub(crate) fn read_plain(path: &Path, names: &[String]) -> Result<RecordBatch> {
    let file = PositionalFile::open(path)?;
    let metadata = footer(&file)?;
    read_columns(&file, &metadata, names)
}

/// The columns of a file, each with a name of its own, and which of them have another one in the file.
pub(super) fn named(metadata: &ArrowReaderMetadata) -> (Schema, Vec<Renamed>) {
    unique_schema(metadata.schema(), &|_| false)
}

/// A column that is read: its leaf, and its name here.
struct Leaf {
    number: usize,
    name: String,
    is_renamed: bool,
}

/// The leaves of the columns `names` of a file, in its order: of those that are plain and not within another.
fn leaves_of(schema: &SchemaDescriptor, names: &[String]) -> Vec<Leaf> {
    let roots: Vec<usize> = (0..schema.num_columns()).map(|leaf| schema.get_column_root_idx(leaf)).collect();
    let mut columns = roots.clone();
    columns.dedup();
    let fields = schema.root_schema().get_fields();
    let in_file: Vec<&str> =
        columns.iter().map(|&root| fields.get(root).map_or("", |field| field.name())).collect();
    let here = unique_names(&in_file, &|_| false);
    let leaf = |(number, root): (usize, &usize)| {
        let at = columns.binary_search(root).ok()?;
        let name = here.get(at)?;
        let is_plain = schema.column(number).path().parts().len() == 1;
        let is_wanted = is_plain && names.contains(name);
        is_wanted.then(|| Leaf { number, name: name.clone(), is_renamed: name != in_file[at] })
    };
    roots.iter().enumerate().filter_map(leaf).collect()
}

/// The columns `names` of an open file, top-level and plain; names are those of [`named`].
pub(super) fn read_columns(
    file: &PositionalFile,
    metadata: &ArrowReaderMetadata,
    names: &[String],
) -> Result<RecordBatch> {
    let schema = metadata.parquet_schema();
    let wanted = leaves_of(schema, names);
    let leaves: Vec<usize> = wanted.iter().map(|leaf| leaf.number).collect();
    let groups = metadata.metadata().row_groups();
    let sizes = groups.iter().flat_map(|g| leaves.iter().map(|&leaf| g.column(leaf).uncompressed_size()));
    let bytes = sizes.fold(0i64, |sum, n| sum.saturating_add(n.max(0)));
    if bytes > MAX_PLAIN_BYTES {
        return Err(Error::new(
            file.path(),
            format_args!(
                "the columns beside the images have {bytes} bytes; at most {MAX_PLAIN_BYTES} are taken along"
            ),
        )
        .hint("leave columns out, or aggregate the table to one row per image"));
    }
    let all = groups.iter().flat_map(|group| leaves.iter().map(|&leaf| group.column(leaf)));
    let _held = pages_ahead::columns(file, all);
    for group in 0..groups.len() {
        check_sums(file, metadata, group, leaves.iter().copied())?;
    }
    for leaf in &wanted {
        int96::check(file, metadata, leaf.number, &leaf.name)?;
    }
    let of_leaves = |run: Range<usize>| -> Result<Vec<RecordBatch>> {
        let wanted = &wanted[run];
        let mask = ProjectionMask::leaves(schema, wanted.iter().map(|leaf| leaf.number));
        let batches = guarded(file, "cannot read the feature columns", || {
            ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
                .with_projection(mask)
                .with_batch_size(4096)
                .build()?
                .map(|batch| Ok(batch?))
                .collect::<parquet::errors::Result<Vec<_>>>()
        })?;
        if !wanted.iter().any(|leaf| leaf.is_renamed) {
            return Ok(batches);
        }
        let batches = batches.iter().map(|batch| with_names(batch, wanted));
        batches.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| Error::new(file.path(), e))
    };
    let rows = usize::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
    let columns_per_thread = (VALUES_PER_THREAD / rows.max(1)).max(1);
    let runs = if wanted.is_empty() {
        vec![of_leaves(0..0)]
    } else {
        threads::in_runs(wanted.len(), columns_per_thread, of_leaves)
    };
    let mut batches = vec![];
    // Those of each run have its columns: they are put together by name.
    for of_run in runs {
        batches.append(&mut of_run?);
    }
    if batches.is_empty() {
        return Err(Error::new(file.path(), "the table has no rows"));
    }
    let batch = features::gathered(file.path(), &batches, names, false)?;
    // Arrow's own schema is left aside but for what Parquet has no type for.
    let pairs = metadata.metadata().file_metadata().key_value_metadata();
    let declared = guarded(file, "cannot read the Arrow schema", || declared_schema(schema, pairs));
    match declared {
        Ok(declared) => {
            let (declared, _) = unique_schema(&declared, &|_| false);
            features::with_durations(&batch, &declared).map_err(|e| Error::new(file.path(), e))
        }
        // Another program's file, whose Parquet can be read: that is enough.
        Err(_) => Ok(batch),
    }
}

/// The columns as Arrow's schema in the file declares them. Columns of 64-bit integers are taken for numbers, because Arrow's reader
/// ignores declared times of another unit. pyarrow writes seconds as milliseconds.
fn declared_schema(
    schema: &SchemaDescriptor,
    pairs: Option<&Vec<KeyValue>>,
) -> parquet::errors::Result<Schema> {
    let as_number = |column: &TypePtr| -> parquet::errors::Result<TypePtr> {
        let info = column.get_basic_info();
        let is_list = !info.has_repetition() || info.repetition() == Repetition::REPEATED;
        if is_list || !column.is_primitive() || column.get_physical_type() != Physical::INT64 {
            return Ok(Arc::clone(column));
        }
        let number = Type::primitive_type_builder(column.name(), Physical::INT64);
        Ok(Arc::new(number.with_repetition(info.repetition()).build()?))
    };
    let root = schema.root_schema();
    let columns = root.get_fields().iter().map(as_number).collect::<parquet::errors::Result<Vec<_>>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(columns).build()?;
    parquet_to_arrow_schema(&SchemaDescriptor::new(Arc::new(root)), pairs)
}

/// A batch of the columns `leaves`, in their order, under their names here.
fn with_names(batch: &RecordBatch, leaves: &[Leaf]) -> std::result::Result<RecordBatch, ArrowError> {
    let fields = batch.schema_ref().fields().iter().zip(leaves);
    let fields: Vec<Field> =
        fields.map(|(field, leaf)| Field::clone(field).with_name(leaf.name.as_str())).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, TimestampNanosecondType};
    use arrow_schema::{DataType, TimeUnit};
    use parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
    use parquet::data_type::{Int64Type as Whole, Int96, Int96Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    #[test]
    fn times_are_declared_in_another_unit_too() {
        let message = "message table { optional int64 seen (TIMESTAMP(MILLIS,true)); required int64 count; }";
        let schema = SchemaDescriptor::new(Arc::new(parse_message_type(message).unwrap()));
        let seen = DataType::Timestamp(TimeUnit::Second, Some("Europe/Vienna".into()));
        let fields = vec![Field::new("seen", seen, true), Field::new("count", DataType::Int64, false)];
        let arrow = Schema::new(fields);
        let pair = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&arrow));
        let found = declared_schema(&schema, Some(&vec![pair])).unwrap();
        assert_eq!(found.fields(), arrow.fields());
    }

    /// A table of three rows: a column of numbers, and times in INT96, of which the second row has none.
    fn table(path: &Path, days: [i64; 2]) {
        let schema =
            parse_message_type("message table { required int64 count; optional int96 seen; }").unwrap();
        let file = std::fs::File::create(path).unwrap();
        let properties = Arc::new(WriterProperties::default());
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut counts = group.next_column().unwrap().unwrap();
        counts.typed::<Whole>().write_batch(&[1, 2, 3], None, None).unwrap();
        counts.close().unwrap();
        let time = |day: i64| {
            let mut time = Int96::new();
            // Nanoseconds of the day in the lower words, then the number of the day; 1970 began with this one.
            time.set_data(5, 0, (2_440_588 + day) as u32);
            time
        };
        let mut seen = group.next_column().unwrap().unwrap();
        seen.typed::<Int96Type>().write_batch(&days.map(time), Some(&[1, 0, 1]), None).unwrap();
        seen.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn times_that_nanoseconds_do_not_hold_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("spark.parquet");
        let [count, seen] = ["count", "seen"].map(|name| [name.to_owned()]);
        table(&path, [1, 106_751]);
        let found = read_plain(&path, &seen).unwrap();
        let nanos = found.column(0).as_primitive::<TimestampNanosecondType>();
        assert_eq!(
            nanos.iter().collect::<Vec<_>>(),
            [Some(86_400_000_000_005), None, Some(9_223_286_400_000_000_005)]
        );
        // The last day of the year 9999, which Spark users take for no end.
        table(&path, [1, 2_932_896]);
        let error = read_plain(&path, &seen).unwrap_err().to_string();
        assert!(
            error.contains("row 2: the column \"seen\" has the time 9999-12-31T00:00:00 in INT96"),
            "{error}"
        );
        assert!(error.contains("times in microseconds") && !error.contains("corrupt"), "{error}");
        let counts = read_plain(&path, &count).unwrap();
        assert_eq!(counts.column(0).as_primitive::<Int64Type>().values(), &[1, 2, 3]);
    }
}
