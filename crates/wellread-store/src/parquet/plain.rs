//! Columns of plain values, read whole: features beside images, and tables of profiles.

use super::file::{PositionalFile, guarded};
use super::footer::footer;
use super::sums::check_sums;
use crate::features::{self, other_columns, plain_columns};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use std::path::Path;

/// Bytes of plain columns that are read at most: a table of profiles is megabytes, one of single cells gigabytes.
const MAX_PLAIN_BYTES: i64 = 2 << 30;

/// All plain columns of a Parquet table, and the names of the others.
///
/// # Errors
/// A file that is missing, corrupt, no Parquet, or larger than features are.
pub(crate) fn read_plain_columns(path: &Path) -> Result<(RecordBatch, Vec<String>)> {
    let file = PositionalFile::open(path)?;
    let metadata = footer(&file)?;
    let names: Vec<String> = plain_columns(metadata.schema()).map(str::to_owned).collect();
    let others = other_columns(metadata.schema()).map(str::to_owned).collect();
    Ok((read_columns(&file, &metadata, &names)?, others))
}

/// Names of the plain columns of a Parquet table, and how many rows it has.
///
/// # Errors
/// A file that is missing, corrupt or no Parquet.
pub(crate) fn plain_names(path: &Path) -> Result<(Vec<String>, usize)> {
    let file = PositionalFile::open(path)?;
    let metadata = footer(&file)?;
    let rows = metadata.metadata().file_metadata().num_rows();
    let names = plain_columns(metadata.schema()).map(str::to_owned).collect();
    Ok((names, usize::try_from(rows).unwrap_or(0)))
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

/// The columns `names` of an open file, top-level and plain.
pub(super) fn read_columns(
    file: &PositionalFile,
    metadata: &ArrowReaderMetadata,
    names: &[String],
) -> Result<RecordBatch> {
    let schema = metadata.parquet_schema();
    let leaves: Vec<usize> = (0..schema.num_columns())
        .filter(|&i| matches!(schema.column(i).path().parts(), [name] if names.contains(name)))
        .collect();
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
    for group in 0..groups.len() {
        check_sums(file, metadata, group, leaves.iter().copied())?;
    }
    let mask = ProjectionMask::leaves(schema, leaves);
    let batches = guarded(file, "cannot read the feature columns", || {
        ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
            .with_projection(mask)
            .with_batch_size(4096)
            .build()?
            .map(|batch| Ok(batch?))
            .collect::<parquet::errors::Result<Vec<_>>>()
    })?;
    if batches.is_empty() {
        return Err(Error::new(file.path(), "the table has no rows"));
    }
    let batch = features::gathered(file.path(), &batches, names)?;
    // Arrow's own schema is left aside but for what Parquet has no type for.
    let pairs = metadata.metadata().file_metadata().key_value_metadata();
    let declared = guarded(file, "cannot read the Arrow schema", || parquet_to_arrow_schema(schema, pairs));
    match declared {
        Ok(declared) => features::with_durations(&batch, &declared).map_err(|e| Error::new(file.path(), e)),
        // Of another's file, whose Parquet can be read: that is what counts.
        Err(_) => Ok(batch),
    }
}
