//! The general reader: any pixel column that the `parquet` crate can read, in one pass over the rows asked for.
//!
//! Everything that the fast path does not take on comes here: rare encodings and codecs, nulls inside,
//! levels that do not match the shapes. It builds Arrow arrays and is many times slower; what it delivers
//! is the same, byte for byte, and where something is wrong it can say what.

use super::file::{PositionalFile, guarded};
use super::schema::{CHUNKS, ImageColumn, LeafType};
use super::values;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ListArray};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use wellread_image::ome_arrow::field;
use wellread_image::{PixelType, Shape};

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
        let reader = guarded(file.path(), "cannot read pixels", || {
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
        let batch =
            guarded(self.file.path(), "cannot read pixels", || Ok(self.reader.next().transpose()?))?
                .ok_or_else(|| corrupt("the row group ends before this row"))?;
        let lists = batch
            .column(0)
            .as_struct_opt()
            .and_then(|s| s.column_by_name(self.list))
            .and_then(|c| c.as_list_opt::<i32>())
            .filter(|l| l.len() == 1 && !l.is_null(0))
            .and_then(|l| l.value(0).as_struct_opt().and_then(|s| s.column_by_name(field::PIXELS).cloned()))
            .and_then(|p| p.as_list_opt::<i32>().cloned())
            .ok_or_else(|| corrupt("the image has no pixels"))?;
        Ok(PixelLists(lists))
    }
}

/// The pixel lists of one row, piece by piece.
pub(super) struct PixelLists(ListArray);

impl PixelLists {
    /// The pixels of piece `k`, which must be `shape.pixels()` many, converted to `dtype` in `out`.
    pub fn pixels(
        &self,
        k: usize,
        shape: Shape,
        dtype: PixelType,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), String> {
        if k >= self.0.len() || self.0.is_null(k) {
            return Err(format!("chunk {k} has no pixels"));
        }
        let array = self.0.value(k);
        if array.len() != shape.pixels() {
            return Err(format!(
                "chunk {k} has {} pixels, its shape {shape} says {}",
                array.len(),
                shape.pixels()
            ));
        }
        if array.null_count() > 0 {
            return Err(format!("{} pixels of chunk {k} are null", array.null_count()));
        }
        out.resize(array.len() * dtype.size(), 0);
        let mut narrow = |bytes: &[u8], leaf| match values::narrow(bytes, leaf, dtype, out) {
            Ok(()) => Ok(()),
            Err(values::BadValue::Range(text)) => Err(text),
            Err(values::BadValue::Corrupt(text)) => Err(text.to_owned()),
        };
        macro_rules! direct {
            ($t:ty, $leaf:ident) => {{
                let bytes: Vec<u8> =
                    array.as_primitive::<$t>().values().iter().flat_map(|v| v.to_le_bytes()).collect();
                narrow(&bytes, LeafType::$leaf)
            }};
        }
        macro_rules! widened {
            ($t:ty, $wide:ty, $leaf:ident) => {{
                let values = array.as_primitive::<$t>().values().iter();
                let bytes: Vec<u8> = values.flat_map(|&v| <$wide>::from(v).to_le_bytes()).collect();
                narrow(&bytes, LeafType::$leaf)
            }};
        }
        match array.data_type() {
            DataType::Int8 => widened!(Int8Type, i32, I32),
            DataType::Int16 => widened!(Int16Type, i32, I32),
            DataType::Int32 => direct!(Int32Type, I32),
            DataType::Int64 => direct!(Int64Type, I64),
            DataType::UInt8 => widened!(UInt8Type, u32, U32),
            DataType::UInt16 => widened!(UInt16Type, u32, U32),
            DataType::UInt32 => direct!(UInt32Type, U32),
            DataType::UInt64 => direct!(UInt64Type, U64),
            DataType::Float16 => widened!(Float16Type, f32, F32),
            DataType::Float32 => direct!(Float32Type, F32),
            DataType::Float64 => direct!(Float64Type, F64),
            other => Err(format!("pixels of type {other} cannot be read")),
        }
    }
}
