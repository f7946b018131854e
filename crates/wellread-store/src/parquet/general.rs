//! The general reader: any pixel column that the `parquet` crate can read, in one pass over the rows asked for.
//!
//! Everything that the fast path does not take on comes here: rare encodings and codecs, nulls inside, levels
//! that do not match the shapes. It builds Arrow arrays and is many times slower. Its pixels are the same,
//! byte for byte, and it can name the fault where there is one.

use super::file::PositionalFile;
use super::file::guarded;
use super::schema::ImageColumn;
use crate::ome_arrow::{CHUNKS, PixelColumn, PixelLists};
use crate::{Error, Result};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use wellread_image::ome_arrow::field;

/// Reads the pixel lists of chosen rows of a row group, one row at a time.
pub(super) struct GeneralReader {
    reader: ParquetRecordBatchReader,
    file: PositionalFile,
    list: &'static str,
}

impl GeneralReader {
    /// A reader of `rows` (ascending, within the row group of `total` rows) that yields one row per call.
    pub fn new(
        file: &PositionalFile,
        metadata: &ArrowReaderMetadata,
        column: &ImageColumn,
        source: usize,
        group: usize,
        rows: &[usize],
        total: usize,
    ) -> Result<Self> {
        let pieces = column.pieces[source].as_ref().expect("rows come from a list that is there");
        let mask = ProjectionMask::leaves(metadata.parquet_schema(), [pieces.pixels.leaf]);
        let ranges = rows.iter().map(|&row| row..row + 1);
        let reader = guarded(file, "cannot read pixels", || {
            ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_row_selection(RowSelection::from_consecutive_ranges(ranges, total))
                .with_batch_size(1)
                .build()
        })?;
        let list = if source == CHUNKS { field::CHUNKS } else { field::PLANES };
        Ok(Self { reader, file: file.clone(), list })
    }

    /// The next row's pixel lists.
    pub fn next_row(&mut self) -> Result<PixelLists> {
        let corrupt =
            |why: &str| Error::new(self.file.path(), why).hint("the file is corrupt; copy or write it again");
        let batch = guarded(&self.file, "cannot read pixels", || Ok(self.reader.next().transpose()?))?
            .ok_or_else(|| corrupt("the row group ends before this row"))?;
        let images = batch.column(0).as_struct_opt().filter(|s| s.len() == 1);
        let lists = images.and_then(|images| PixelColumn::new(images, self.list)?.row(0));
        lists.ok_or_else(|| corrupt("the image has no pixels"))
    }
}
