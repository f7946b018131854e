//! A small table of plain columns as a whole file in memory, with the checksums that files of images have.
//!
//! ```text
//!  record batch ─▶ [`PageWriter`]: pages with checksums ─▶ footer ─▶ its own checksum into its metadata
//! ```

use super::super::footer_checksum;
use super::pages::PageWriter;
use arrow_array::RecordBatch;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{DEFAULT_CREATED_BY, EnabledStatistics, WriterProperties};

/// A record batch as a file of Parquet, compressed by Zstandard.
///
/// # Errors
/// Columns that Parquet has no place for.
pub(crate) fn table_bytes(batch: &RecordBatch) -> Result<Vec<u8>> {
    let version = env!("CARGO_PKG_VERSION");
    let sum = KeyValue::new(footer_checksum::FOOTER_KEY.to_owned(), footer_checksum::NO_SUM.to_owned());
    let properties = WriterProperties::builder()
        .set_created_by(format!("wellread version {version} ({DEFAULT_CREATED_BY})"))
        .set_key_value_metadata(Some(vec![sum]))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // Statistics of pages stand in their headers, which have no checksum.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build();
    let mut bytes = vec![];
    let mut writer = PageWriter::new(&mut bytes, &batch.schema(), properties, true, None)?;
    writer.write(batch)?;
    writer.finish()?;
    drop(writer);
    footer_checksum::put_in(&mut bytes)
        .ok_or_else(|| ParquetError::General("the footer has no place for its checksum".to_owned()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet::read_plain_columns;
    use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
    use std::sync::Arc;

    fn table() -> RecordBatch {
        let columns: [(&str, ArrayRef); 4] = [
            ("image", Arc::new(StringArray::from(vec!["0", "1", "2", "3"]))),
            ("Metadata_Well", Arc::new(StringArray::from(vec![Some("A01"), Some("A01"), None, Some("B07")]))),
            ("Metadata_Site", Arc::new(Int64Array::from(vec![1, 2, 1, 3]))),
            ("dose", Arc::new(Float64Array::from(vec![Some(0.5), None, Some(1.5), Some(0.25)]))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, name != "image")))
            .unwrap()
    }

    #[test]
    fn a_flipped_bit_gives_no_other_values() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("columns.parquet");
        let bytes = table_bytes(&table()).unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_plain_columns(&path, &[]).map(|read| read.columns)
        };
        let expected = read(&bytes).unwrap();
        assert_eq!(expected.num_rows(), 4);
        assert_eq!(expected.columns(), table().columns());
        let mut refused = 0;
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match read(&damaged) {
                Ok(found) => assert_eq!(found, expected, "bit {bit} of {}", bytes.len() * 8),
                Err(_) => refused += 1,
            }
        }
        // Nobody reads the other bits.
        assert!(refused > bytes.len() * 4, "{refused} of {} bits", bytes.len() * 8);
    }
}
