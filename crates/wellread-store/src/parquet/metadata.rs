//! Names, channels, physical sizes and times of the images of a row group.

use super::file::{PositionalFile, guarded};
use super::schema::ImageColumn;
use crate::ome_arrow::MetadataRows;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};

/// Reads the metadata columns of a row group.
pub(super) fn read(
    file: &PositionalFile,
    metadata: &ArrowReaderMetadata,
    column: &ImageColumn,
    group: usize,
) -> Result<MetadataRows> {
    let mask = ProjectionMask::leaves(metadata.parquet_schema(), column.metadata.iter().copied());
    let batches = guarded(file, "cannot read the images' metadata", || {
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(4096)
            .build()?;
        reader.map(|batch| Ok(batch?)).collect::<parquet::errors::Result<Vec<_>>>()
    })?;
    let mut rows = MetadataRows::default();
    for batch in batches {
        let images = batch
            .column(0)
            .as_struct_opt()
            .ok_or_else(|| Error::new(file.path(), format_args!("column {:?} is no struct", column.name)))?;
        rows.push(images);
    }
    Ok(rows)
}
