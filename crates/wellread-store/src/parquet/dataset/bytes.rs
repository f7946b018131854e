//! Values of a byte-array column, by row within a row group: the bytes of chunks.

use super::super::file::{PositionalFile, guarded};
use super::super::levels::{Run, Runs, packed_at};
use super::super::load::{Body, Codecs, load_within};
use super::super::pages::{ColumnPages, FastPathError};
use super::super::sums::check_sums;
use super::super::thrift::Encoding;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};

/// Buffers that a thread keeps.
#[derive(Default)]
pub(super) struct Buffers {
    pub codecs: Codecs,
    raw: Vec<u8>,
    decoded: Vec<u8>,
    dictionary_raw: Vec<u8>,
    dictionary: Vec<u8>,
    /// Pixels of a chunk in a narrower type.
    pub narrowed: Vec<u8>,
}

/// A byte-array column of a row group.
pub(super) struct ByteColumn<'a> {
    pub file: &'a PositionalFile,
    pub metadata: &'a ArrowReaderMetadata,
    pub group: usize,
    /// Index of the column among the leaves.
    pub leaf: usize,
    pub pages: &'a ColumnPages,
    /// Bytes that one value may have at most.
    pub longest: usize,
}

impl ByteColumn<'_> {
    /// Hands over the values of `rows` (ascending, within the row group) as `each(position in rows, bytes)`; every
    /// page is decompressed once.
    ///
    /// # Errors
    /// Pages that cannot be decoded, a null among the rows, or the error of `each`.
    pub fn read(
        &self,
        rows: &[usize],
        buffers: &mut Buffers,
        each: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        match self.read_pages(rows, buffers, each) {
            Ok(()) => Ok(()),
            Err(FastPathError::Error(error)) => Err(error),
            Err(FastPathError::General) => self.read_general(rows, each),
        }
    }

    fn corrupt(&self, why: &str) -> FastPathError {
        FastPathError::Error(
            Error::new(self.file.path(), format_args!("row group {}, pixel_bytes: {why}", self.group))
                .hint("the file is corrupt; copy or write it again"),
        )
    }

    fn read_pages(
        &self,
        rows: &[usize],
        buffers: &mut Buffers,
        each: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> std::result::Result<(), FastPathError> {
        let Buffers { codecs, raw, decoded, dictionary_raw, dictionary, .. } = buffers;
        let codec = self.pages.codec;
        // A nullable column at the top level, as ome-arrow's is, or a required one; nothing nested.
        let descriptor = self.metadata.parquet_schema().column(self.leaf);
        let max = (descriptor.max_rep_level(), descriptor.max_def_level());
        if max.0 != 0 || max.1 > 1 {
            return Err(FastPathError::General);
        }
        let entry_limit = self.longest.saturating_add(64);
        let mut entries: Option<Vec<&[u8]>> = None;
        // Kept apart from the data pages' buffers, because values borrow from it.
        let dictionary_body = match &self.pages.dictionary {
            Some(page) => {
                let limit = page.header.values.saturating_mul(entry_limit).saturating_add(4096);
                Some((
                    load_within(self.file, page, codec, (0, 0), limit, dictionary_raw, dictionary, codecs)?,
                    page.header.values,
                ))
            }
            None => None,
        };
        let mut next = 0;
        for page in &self.pages.data {
            let Some(&row) = rows.get(next) else { break };
            if page.levels.end <= row as u64 {
                continue;
            }
            let first = next;
            while rows.get(next).is_some_and(|&row| (row as u64) < page.levels.end) {
                next += 1;
            }
            let count = page.header.values;
            let limit = count.saturating_mul(entry_limit).saturating_add(4096);
            let Body { definition, values, .. } =
                load_within(self.file, page, codec, max, limit, raw, decoded, codecs)?;
            let wanted = rows[first..next].iter().map(|&row| row - page.levels.start as usize);
            if max.1 == 1 && !all_present(definition, count) {
                return Err(FastPathError::General);
            }
            match page.header.encoding {
                Encoding::Plain => {
                    let mut at = 0;
                    let mut values = Values(values);
                    for (i, index) in wanted.enumerate() {
                        let value = values
                            .nth(index - at)
                            .ok_or_else(|| self.corrupt("a page ends within a value"))?;
                        at = index + 1;
                        each(first + i, value)?;
                    }
                }
                Encoding::Dictionary => {
                    let Some((body, declared)) = &dictionary_body else {
                        return Err(self.corrupt("a page refers to a dictionary that is not there"));
                    };
                    let entries =
                        entries.get_or_insert_with(|| Values(body.values).take(*declared).collect());
                    for (i, index) in wanted.enumerate() {
                        let entry = index_at(values, count, index)
                            .and_then(|entry| entries.get(entry as usize))
                            .ok_or_else(|| self.corrupt("a dictionary index is out of range"))?;
                        each(first + i, entry)?;
                    }
                }
                _ => return Err(FastPathError::General),
            }
        }
        if next < rows.len() { Err(self.corrupt("it has fewer rows than its row group")) } else { Ok(()) }
    }

    /// The same through the parquet crate's reader: nulls, rare encodings.
    fn read_general(&self, rows: &[usize], each: &mut dyn FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        check_sums(self.file, self.metadata, self.group, std::iter::once(self.leaf))?;
        let mut failed = Ok(());
        guarded(self.file, "cannot read the bytes of chunks", || {
            let wanted = ProjectionMask::leaves(self.metadata.parquet_schema(), [self.leaf]);
            let reader =
                ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
                    .with_projection(wanted)
                    .with_row_groups(vec![self.group])
                    .with_batch_size(16)
                    .build()?;
            let (mut at, mut next) = (0, 0);
            for batch in reader {
                let batch = batch?;
                let column = batch.column(0);
                while let Some(row) = rows.get(next).filter(|&&row| row < at + batch.num_rows()) {
                    let i = row - at;
                    let value = column.as_binary_opt::<i32>().map(|c| c.value(i));
                    let value = value.or_else(|| column.as_binary_opt::<i64>().map(|c| c.value(i)));
                    let value = value.filter(|_| !column.is_null(i));
                    let result = value.map_or_else(
                        || {
                            Err(Error::new(
                                self.file.path(),
                                format_args!("row group {}: the bytes of chunk {row} are null", self.group),
                            ))
                        },
                        |value| each(next, value),
                    );
                    if let Err(error) = result {
                        failed = Err(error);
                        return Ok(());
                    }
                    next += 1;
                }
                at += batch.num_rows();
            }
            if next < rows.len() {
                failed = Err(Error::new(
                    self.file.path(),
                    format_args!("row group {} has fewer rows than it declares", self.group),
                ));
            }
            Ok(())
        })?;
        failed
    }
}

/// Plain byte arrays: a 32-bit length, then that many bytes.
struct Values<'a>(&'a [u8]);

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        Some(value)
    }
}

/// Whether all `count` definition levels are 1.
fn all_present(levels: &[u8], count: usize) -> bool {
    Runs::new(levels, 1, count).all(|run| match run {
        Some(Run::Repeat { value, .. }) => value == 1,
        Some(Run::Packed { bytes, count }) => (0..count).all(|i| packed_at(bytes, 1, i) == 1),
        None => false,
    })
}

/// Dictionary index number `wanted` of a page of `count`.
fn index_at(bytes: &[u8], count: usize, wanted: usize) -> Option<u32> {
    let (&width, bytes) = bytes.split_first()?;
    if width > 32 {
        return None;
    }
    let mut at = 0;
    for run in Runs::new(bytes, u32::from(width), count) {
        let run = run?;
        if wanted < at + run.count() {
            return Some(match run {
                Run::Repeat { value, .. } => value,
                Run::Packed { bytes, .. } => packed_at(bytes, u32::from(width), wanted - at),
            });
        }
        at += run.count();
    }
    None
}
