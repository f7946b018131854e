//! Times in INT96, as Spark, Hive and Impala write them. The reader makes nanoseconds of them: a year before 1677 or after 2262 would
//! become another one, without an error. So such a column is read once more, in seconds.

use super::file::{PositionalFile, guarded};
use crate::features::first_outside;
use crate::surface::option;
use crate::{Error, Result};
use arrow_schema::{DataType, Schema, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type as Physical;
use std::ops::Range;
use std::sync::Arc;

/// Seconds from 1970 that nanoseconds hold.
const SECONDS: Range<i64> = -(i64::MAX / 1_000_000_000)..i64::MAX / 1_000_000_000;

/// Refuses times in INT96 that nanoseconds do not hold, in the top-level column at a leaf.
///
/// # Errors
/// Such a time, by its row. A file that cannot be read.
pub(super) fn check(
    file: &PositionalFile,
    metadata: &ArrowReaderMetadata,
    leaf: usize,
    name: &str,
) -> Result<()> {
    let descriptor = metadata.parquet_schema();
    if descriptor.column(leaf).physical_type() != Physical::INT96 {
        return Ok(());
    }
    let root = descriptor.get_column_root_idx(leaf);
    let fields = metadata.schema().fields().iter().enumerate().map(|(i, field)| {
        if i == root {
            let seconds = DataType::Timestamp(TimeUnit::Second, None);
            Arc::new(field.as_ref().clone().with_data_type(seconds))
        } else {
            Arc::clone(field)
        }
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let outside = guarded(file, "cannot read the times", || {
        let options = ArrowReaderOptions::new().with_schema(schema);
        let seconds = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?;
        let batches = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), seconds)
            .with_projection(ProjectionMask::leaves(descriptor, [leaf]))
            .with_batch_size(4096)
            .build()?;
        let mut rows = 0;
        for batch in batches {
            let batch = batch?;
            let found = batch.columns().first().and_then(|column| first_outside(column, &SECONDS));
            if let Some((row, text)) = found {
                return Ok(Some((rows + row, text)));
            }
            rows += batch.num_rows();
        }
        Ok(None)
    })?;
    let Some((row, text)) = outside else { return Ok(()) };
    let cause =
        format_args!("the column {name:?} has the time {text} in INT96, which nanoseconds do not hold");
    Err(Error::new(file.path(), cause).row(row).column(name).hint(format_args!(
        "write the column anew with times in microseconds, or leave it out ({})",
        option("without_column")
    )))
}
