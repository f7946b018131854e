//! Names, channels, physical sizes and times of the images of a row group.

use super::file::PositionalFile;
use super::file::guarded;
use super::schema::ImageColumn;
use crate::ome_arrow::metadata;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use wellread_image::ImageMetadata;

/// The metadata columns of a row group.
#[derive(Debug)]
pub(super) struct GroupMetadata {
    /// Batches with the row that each starts at.
    batches: Vec<(usize, StructArray)>,
}

impl GroupMetadata {
    /// Reads them.
    pub fn read(
        file: &PositionalFile,
        metadata: &ArrowReaderMetadata,
        column: &ImageColumn,
        group: usize,
    ) -> Result<Self> {
        let mask = ProjectionMask::leaves(metadata.parquet_schema(), column.metadata.iter().copied());
        let batches = guarded(file.path(), "cannot read the images' metadata", || {
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(4096)
                .build()?;
            reader.map(|batch| Ok(batch?)).collect::<parquet::errors::Result<Vec<_>>>()
        })?;
        let mut out = vec![];
        let mut start = 0;
        for batch in batches {
            let images = batch.column(0).as_struct_opt().ok_or_else(|| {
                Error::new(file.path(), format_args!("column {:?} is no struct", column.name))
            })?;
            out.push((start, images.clone()));
            start += images.len();
        }
        Ok(Self { batches: out })
    }

    /// Metadata of row `row` of the group.
    pub fn row(&self, row: usize) -> ImageMetadata {
        let at = self.batches.partition_point(|(start, _)| *start <= row);
        let Some((start, images)) = at.checked_sub(1).map(|at| &self.batches[at]) else {
            return ImageMetadata::default();
        };
        let i = row - start;
        metadata(images, i)
    }
}
