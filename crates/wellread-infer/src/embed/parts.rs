//! Parts of the table while it is made: numbers of rows and their features, a file for so many images. A part has its name when it is
//! whole.
//!
//! ```text
//!  batches ─ put, leave_out ─▶ pending ─▶ part-000000.parquet.….tmp ─ finish ─▶ part-000000.parquet ─ read ─▶ PartReader
//! ```

use super::features::Features;
use super::table::{FEATURES, list, list_field, list_properties};
use crate::source::Unreadable;
use anyhow::{Context as _, Result};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{FileMetaData, KeyValue};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_store::Error;
use wellread_store::parquet::write_error;
use wellread_store::staged::process_mark;

/// The column of the images' rows in the set.
const ROW: &str = "row";
/// Where a file says which images were left out.
pub(super) const LEFT_OUT: &str = "wellread.left_out";
/// Bytes of features that are collected before they are written.
const PENDING_BYTES: usize = 8 << 20;
/// Bytes of a group of rows, about.
pub(super) const GROUP_BYTES: usize = 128 << 20;
/// Rows that are read at once.
const READ_ROWS: usize = 1024;

/// A writer of a table's file.
pub(super) type Writer = ArrowWriter<BufWriter<File>>;

/// Makes a file for a table; errors speak of `target`.
pub(super) fn create(path: &Path, target: &Path) -> Result<BufWriter<File>, Error> {
    let file = File::create(path).map_err(|e| Error::io(target, "cannot create a file beside it", &e))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

/// The file of a part that is whole.
pub(super) fn path_of(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("part-{number:06}.parquet"))
}

/// A part that is being written.
pub(super) struct PartWriter {
    folder: PathBuf,
    /// The table, which errors speak of.
    target: PathBuf,
    /// Which part it is.
    pub number: usize,
    writer: Option<Writer>,
    rows: Vec<u64>,
    values: Vec<f32>,
    width: usize,
    left_out: Vec<Unreadable>,
}

impl PartWriter {
    /// Nothing is written before there are features.
    pub fn new(folder: &Path, target: &Path, number: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            target: target.to_owned(),
            number,
            writer: None,
            rows: Vec::new(),
            values: Vec::new(),
            width: 0,
            left_out: Vec::new(),
        }
    }

    /// Takes the features of these rows.
    ///
    /// # Errors
    /// A disk that is full; features that are not as many as before.
    pub fn put(&mut self, rows: &[usize], features: &Features) -> Result<()> {
        if self.width != 0 && self.width != features.width && !rows.is_empty() {
            let cause = format!(
                "the model gave {} features for an image, and {} for those before",
                features.width, self.width
            );
            return Err(Error::new(&self.target, cause).into());
        }
        self.width = features.width;
        self.rows.extend(rows.iter().map(|&row| row as u64));
        self.values.extend_from_slice(&features.values);
        if self.values.len() * 4 >= PENDING_BYTES { self.write() } else { Ok(()) }
    }

    /// Notes an image that is left out.
    pub fn leave_out(&mut self, image: Unreadable) {
        self.left_out.push(image);
    }

    /// This process's own: another node may write the same part, if this one was taken for lost.
    fn temporary(&self) -> PathBuf {
        let mark = process_mark(std::process::id());
        path_of(&self.folder, self.number).with_extension(format!("parquet.{mark}.tmp"))
    }

    /// The writer, opened when it is first asked for.
    fn writer(&mut self) -> Result<&mut Writer> {
        let writer = if let Some(writer) = self.writer.take() {
            writer
        } else {
            let out = create(&self.temporary(), &self.target)?;
            let properties = list_properties().build();
            ArrowWriter::try_new(out, part_schema(self.width), Some(properties))
                .map_err(|e| write_error(&self.target, &e))?
        };
        Ok(self.writer.insert(writer))
    }

    /// Writes what was collected.
    fn write(&mut self) -> Result<()> {
        let rows: ArrayRef = Arc::new(UInt64Array::from(std::mem::take(&mut self.rows)));
        let values = std::mem::take(&mut self.values);
        let (width, target) = (self.width, self.target.clone());
        let writer = self.writer()?;
        let mut columns = vec![rows];
        if width > 0 {
            columns.push(list(values, width)?);
        }
        let batch = RecordBatch::try_new(part_schema(width), columns)?;
        let mut written = writer.write(&batch);
        if written.is_ok() && writer.memory_size() >= GROUP_BYTES {
            written = writer.flush();
        }
        written.map_err(|e| write_error(&target, &e).into())
    }

    /// Writes the rest and gives the file its name.
    ///
    /// # Errors
    /// A disk that is full.
    pub fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.write()?;
        }
        let left_out = serde_json::to_string(&self.left_out)?;
        let (from, to) = (self.temporary(), path_of(&self.folder, self.number));
        self.writer()?.append_key_value_metadata(KeyValue::new(LEFT_OUT.to_owned(), left_out));
        let writer = self.writer.take().context("the part was begun")?;
        // Closing flushes what is buffered, and says when that fails.
        writer.close().map_err(|e| write_error(&self.target, &e))?;
        std::fs::rename(from, to).map_err(|e| Error::io(&self.target, "cannot rename a part of it", &e))?;
        Ok(())
    }
}

/// The columns of a part.
fn part_schema(width: usize) -> Arc<Schema> {
    let mut fields = vec![Field::new(ROW, DataType::UInt64, false)];
    // The number of features of images that were all left out is unknown.
    fields.extend((width > 0).then(|| list_field(width)));
    Arc::new(Schema::new(fields))
}

/// A part that is whole.
pub(super) struct PartReader {
    /// Images that were left out.
    pub left_out: Vec<Unreadable>,
    /// Images in it.
    pub rows: usize,
    /// Features of each; 0 where there are no images.
    pub width: usize,
    batches: ParquetRecordBatchReader,
}

impl PartReader {
    /// Opens a part.
    ///
    /// # Errors
    /// It is not there, or damaged.
    pub fn open(folder: &Path, number: usize) -> Result<Self> {
        let path = path_of(folder, number);
        let file = File::open(&path).map_err(|e| Error::io(&path, "cannot open", &e))?;
        let damaged = |e: &dyn std::fmt::Display| {
            Error::new(&path, format_args!("a part of an interrupted run is damaged: {e}"))
                .hint("run the command without --resume, which begins anew")
        };
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(&e))?;
        let of_file = builder.metadata().file_metadata();
        let rows = usize::try_from(of_file.num_rows()).map_err(|e| damaged(&e))?;
        let said = word(of_file, LEFT_OUT).unwrap_or_default();
        let left_out = serde_json::from_str(&said).map_err(|e| damaged(&e))?;
        let width = match builder.schema().field_with_name(FEATURES).map(Field::data_type) {
            Ok(DataType::FixedSizeList(_, width)) => usize::try_from(*width).map_err(|e| damaged(&e))?,
            Ok(other) => return Err(damaged(&format_args!("features of type {other}")).into()),
            Err(_) => 0,
        };
        let batches = builder.with_batch_size(READ_ROWS).build().map_err(|e| damaged(&e))?;
        Ok(Self { left_out, rows, width, batches })
    }

    /// The next rows, and their features; `None` behind the last.
    ///
    /// # Errors
    /// A part that is damaged.
    pub fn next(&mut self) -> Result<Option<(UInt64Array, Vec<f32>)>> {
        let Some(batch) = self.batches.next() else { return Ok(None) };
        let batch =
            batch.context("a part of an interrupted run is damaged; run the command without --resume")?;
        let rows = batch.column_by_name(ROW).and_then(|column| column.as_primitive_opt::<UInt64Type>());
        let values = match batch.column_by_name(FEATURES) {
            Some(column) => {
                let list = column.as_fixed_size_list_opt().context("features are no lists")?;
                let values = list.values().as_primitive_opt::<Float32Type>();
                values.context("features are no numbers")?.values().to_vec()
            }
            None => Vec::new(),
        };
        Ok(Some((rows.context("rows are missing")?.clone(), values)))
    }
}

/// The value of a key in a file's metadata.
pub(super) fn word(of: &FileMetaData, key: &str) -> Option<String> {
    of.key_value_metadata()?.iter().find(|pair| pair.key == key)?.value.clone()
}

/// Whether a part is there and can be opened.
pub(super) fn is_whole(folder: &Path, number: usize) -> bool {
    PartReader::open(folder, number).is_ok()
}

/// How many of the first `parts` parts are there and can be opened, from the first on.
pub(super) fn whole(folder: &Path, parts: usize) -> usize {
    (0..parts).take_while(|&number| is_whole(folder, number)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let target = Path::new("out.parquet");
        let mut part = PartWriter::new(dir.path(), target, 0);
        part.put(&[0, 2], &Features { width: 2, values: vec![1.0, 2.0, 3.0, 4.0] }).unwrap();
        part.leave_out(Unreadable { row: 1, name: "b".into(), reason: "no picture".into() });
        part.put(&[3], &Features { width: 2, values: vec![f32::NAN, 6.0] }).unwrap();
        let other = part.put(&[4], &Features { width: 3, values: vec![0.0; 3] }).unwrap_err().to_string();
        assert!(other.contains("3 features") && other.contains("2 for those before"), "{other}");
        assert_eq!(whole(dir.path(), 2), 0, "a part has its name when it is whole");
        part.finish().unwrap();
        let mut empty = PartWriter::new(dir.path(), target, 1);
        empty.leave_out(Unreadable { row: 4, name: "e".into(), reason: "gone".into() });
        empty.finish().unwrap();
        assert_eq!(whole(dir.path(), 3), 2);
        let names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "nothing else is left: {names:?}");

        let mut read = PartReader::open(dir.path(), 0).unwrap();
        assert_eq!((read.rows, read.width, read.left_out.len()), (3, 2, 1));
        assert_eq!((read.left_out[0].row, read.left_out[0].reason.as_str()), (1, "no picture"));
        let (rows, values) = read.next().unwrap().unwrap();
        assert_eq!(rows.values(), &[0, 2, 3]);
        assert_eq!((&values[..4], values[4].is_nan(), values[5]), (&[1.0, 2.0, 3.0, 4.0][..], true, 6.0));
        assert!(read.next().unwrap().is_none());
        let empty = PartReader::open(dir.path(), 1).unwrap();
        assert_eq!((empty.rows, empty.width, empty.left_out[0].row), (0, 0, 4));
    }

    #[test]
    fn a_part_that_was_cut_off_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..3 {
            let mut part = PartWriter::new(dir.path(), Path::new("out"), number);
            part.put(&[number], &Features { width: 1, values: vec![1.0] }).unwrap();
            part.finish().unwrap();
        }
        let path = path_of(dir.path(), 1);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(whole(dir.path(), 3), 1);
        let error = PartReader::open(dir.path(), 1).err().unwrap().to_string();
        assert!(error.contains("damaged") && error.contains("--resume"), "{error}");
    }
}
