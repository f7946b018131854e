//! Parts and columns of the set, put together to the table.
//!
//! ```text
//!  parts: row, features ─┐
//!  set: columns, names ──┴─ Table::batch ─▶ groups of rows ─▶ one file, looked at again
//! ```

use super::parts::{GROUP_BYTES, LEFT_OUT, PartReader, create, word};
use super::table::{FEATURES, FeatureLayout, Table};
use crate::source::Unreadable;
use anyhow::{Result, ensure};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::KeyValue;
use std::fs::File;
use std::path::Path;
use wellread_store::Error;
use wellread_store::parquet::write_error;
use wellread_store::words::counted;

/// Where a table says what it is made of.
pub(super) const MADE_OF: &str = "wellread.embed";
/// Rows of a group at least.
const GROUP_ROWS: usize = 1024;

/// The rows of a table.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    /// Images.
    pub rows: usize,
    /// Features of each.
    pub width: usize,
    /// Images that were left out.
    pub left_out: Vec<Unreadable>,
}

/// The parts to put together.
pub(super) struct Parts<'a> {
    /// Folder of the parts.
    pub folder: &'a Path,
    /// How many there are.
    pub number: usize,
    /// Images of the set.
    pub images: usize,
    /// The table that comes of it, which errors speak of.
    pub target: &'a Path,
}

impl Parts<'_> {
    /// Writes the table to `path`, of what [`Self::look`] has found, with these words beside it.
    ///
    /// # Errors
    /// Parts that are damaged; a disk that is full.
    pub fn join(
        &self,
        mut joined: Joined,
        path: &Path,
        metadata: RecordBatch,
        layout: FeatureLayout,
        words: Vec<KeyValue>,
    ) -> Result<Joined> {
        let table = Table::new(metadata, layout, joined.width);
        let out = create(path, self.target)?;
        let failed = |e: &parquet::errors::ParquetError| write_error(self.target, e);
        let mut writer = ArrowWriter::try_new(out, table.schema(), Some(table.properties(words)))
            .map_err(|e| failed(&e))?;
        let mut written = 0;
        for number in 0..self.number {
            let mut part = PartReader::open(self.folder, number)?;
            while let Some((rows, features)) = part.next()? {
                let batch = table.batch(&rows, &features)?;
                written += batch.num_rows();
                writer.write(&batch).map_err(|e| failed(&e))?;
                if writer.in_progress_rows() >= GROUP_ROWS && writer.memory_size() >= GROUP_BYTES {
                    writer.flush().map_err(|e| failed(&e))?;
                }
            }
        }
        joined.left_out.sort_by_key(|image| image.row);
        let left_out = serde_json::to_string(&joined.left_out)?;
        writer.append_key_value_metadata(KeyValue::new(LEFT_OUT.to_owned(), left_out));
        writer.close().map_err(|e| failed(&e))?;
        // The content that lies there, not the one that was meant to be written.
        let there = look_at(path).map_or(0, |(_, found)| found.rows);
        if written != joined.rows || there != written {
            let cause = format!("{there} of {} rows were written", joined.rows);
            return Err(Error::new(self.target, cause)
                .hint("run the command with --resume once more")
                .into());
        }
        Ok(joined)
    }

    /// Checks the parts together: each image once, in it or left out.
    ///
    /// # Errors
    /// Parts that do not fit together; no image at all.
    pub fn look(&self) -> Result<Joined> {
        let mut all = Joined { rows: 0, width: 0, left_out: Vec::new() };
        for number in 0..self.number {
            let part = PartReader::open(self.folder, number)?;
            all.rows += part.rows;
            all.left_out.extend(part.left_out);
            if part.width > 0 {
                ensure!(
                    all.width == 0 || all.width == part.width,
                    "parts have {} and {} features per image; run the command without --resume, which begins anew",
                    all.width,
                    part.width
                );
                all.width = part.width;
            }
        }
        ensure!(
            all.rows + all.left_out.len() == self.images,
            "the parts have {} of {}; run the command without --resume, which begins anew",
            all.rows + all.left_out.len(),
            counted(self.images, "image")
        );
        if all.rows == 0 {
            let why = all.left_out.first().map_or("", |image| image.reason.as_str());
            let cause =
                format!("no image is left: all of {} were left out, the first: {why}", all.left_out.len());
            return Err(Error::new(self.target, cause).into());
        }
        Ok(all)
    }
}

/// The sources that an existing table names, and its content; `None` where no `wellread embed` has written it.
pub(super) fn look_at(path: &Path) -> Option<(String, Joined)> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).ok()?).ok()?;
    let of_file = builder.metadata().file_metadata();
    let made_of = word(of_file, MADE_OF)?;
    let left_out = serde_json::from_str(&word(of_file, LEFT_OUT)?).ok()?;
    let fields = builder.schema().fields();
    let width = match fields.last()?.data_type() {
        DataType::FixedSizeList(_, width) => usize::try_from(*width).ok()?,
        _ => fields.iter().filter(|field| field.name().starts_with(FEATURES)).count(),
    };
    Some((made_of, Joined { rows: usize::try_from(of_file.num_rows()).ok()?, width, left_out }))
}

#[cfg(test)]
mod tests {
    use super::super::features::Features;
    use super::super::parts::PartWriter;
    use super::*;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Float32Type;
    use arrow_array::{ArrayRef, StringArray};
    use std::sync::Arc;

    /// Two parts of three images, of which one was left out.
    fn parts(folder: &Path) {
        let target = Path::new("out.parquet");
        let mut first = PartWriter::new(folder, target, 0);
        first.put(&[0, 1], &Features { width: 2, values: vec![1.0, 2.0, 3.0, 4.0] }).unwrap();
        first.finish().unwrap();
        let mut second = PartWriter::new(folder, target, 1);
        second.leave_out(Unreadable { row: 2, name: "c".into(), reason: "no picture".into() });
        second.put(&[3], &Features { width: 2, values: vec![7.0, 8.0] }).unwrap();
        second.finish().unwrap();
    }

    fn names() -> RecordBatch {
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
        RecordBatch::try_from_iter([("Metadata_name", names)]).unwrap()
    }

    #[test]
    fn parts_become_one_table_in_the_order_of_the_set() {
        let dir = tempfile::tempdir().unwrap();
        parts(dir.path());
        let target = Path::new("out.parquet");
        let all = Parts { folder: dir.path(), number: 2, images: 4, target };
        for layout in FeatureLayout::ALL {
            let path = dir.path().join(layout.name());
            let words = vec![KeyValue::new(MADE_OF.to_owned(), "a line".to_owned())];
            let joined = all.join(all.look().unwrap(), &path, names(), layout, words).unwrap();
            assert_eq!((joined.rows, joined.width, joined.left_out[0].row), (3, 2, 2));
            let (made_of, found) = look_at(&path).unwrap();
            assert_eq!((made_of.as_str(), found.rows, found.width), ("a line", 3, 2));
            assert_eq!(found.left_out, joined.left_out);
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
            let table = reader.build().unwrap().next().unwrap().unwrap();
            let found: Vec<_> = table.column(0).as_string::<i32>().iter().flatten().collect();
            assert_eq!(found, ["a", "b", "d"]);
            match layout {
                FeatureLayout::Columns => {
                    let second = table.column_by_name("embedding_0001").unwrap();
                    assert_eq!(second.as_primitive::<Float32Type>().values(), &[2.0, 4.0, 8.0]);
                }
                FeatureLayout::List => {
                    let last = table.column_by_name("embedding").unwrap().as_fixed_size_list().value(2);
                    assert_eq!(last.as_primitive::<Float32Type>().values(), &[7.0, 8.0]);
                }
            }
        }
    }

    #[test]
    fn parts_that_are_not_all_there_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        parts(dir.path());
        let said = |number, images| {
            let all = Parts { folder: dir.path(), number, images, target: Path::new("out.parquet") };
            all.look().unwrap_err().to_string()
        };
        assert!(said(2, 5).contains("4 of 5 images"), "{}", said(2, 5));
        assert!(said(3, 4).contains("part-000002"), "{}", said(3, 4));
        std::fs::write(dir.path().join("other"), "x").unwrap();
        assert!(look_at(&dir.path().join("other")).is_none());
    }
}
