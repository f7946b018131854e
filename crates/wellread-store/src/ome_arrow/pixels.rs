//! Pixels of chunks and planes from Arrow lists, borrowed where they are stored as the image's own type.

use super::lists::Lists;
use crate::parquet::values::{self, BadValue, LeafType};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;
use wellread_image::ome_arrow::field;
use wellread_image::{PixelType, Shape};

#[cfg(not(target_endian = "little"))]
compile_error!("pixels are borrowed from Arrow buffers as the little-endian bytes that they are");

/// The pixel lists of one row, piece by piece.
pub(crate) struct PixelLists {
    pixels: Lists,
    /// Index of the row's first piece among all pieces.
    first: usize,
    count: usize,
}

/// The pixel lists of the rows of an image column.
pub(crate) struct PixelColumn {
    pieces: Lists,
    pixels: Lists,
}

impl PixelColumn {
    /// Finds them: `list` is `chunks` or `planes`. `None` where there are none.
    pub fn new(images: &StructArray, list: &str) -> Option<Self> {
        let pieces = Lists::new(images.column_by_name(list)?)?;
        let pixels = Lists::new(pieces.values().as_struct_opt()?.column_by_name(field::PIXELS)?)?;
        Some(Self { pieces, pixels })
    }

    /// Those of row `i`; `None` where it has none.
    pub fn row(&self, i: usize) -> Option<PixelLists> {
        let range = (i < self.pieces.len()).then(|| self.pieces.range(i))??;
        Some(PixelLists { pixels: self.pixels.clone(), first: range.start, count: range.len() })
    }
}

impl PixelLists {
    /// The pixels of piece `k`, which must be `shape.pixels()` many, as `dtype`: straight from the array where it
    /// has that type, converted in `out` where not.
    pub fn pixels<'a>(
        &'a self,
        k: usize,
        shape: Shape,
        dtype: PixelType,
        out: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], String> {
        let range = (k < self.count).then(|| self.pixels.range(self.first + k)).flatten();
        let Some(range) = range else { return Err(format!("chunk {k} has no pixels")) };
        if range.len() != shape.pixels() {
            return Err(format!(
                "chunk {k} has {} pixels, its shape {shape} says {}",
                range.len(),
                shape.pixels()
            ));
        }
        let all: &'a ArrayRef = self.pixels.values();
        if all.null_count() > 0 {
            let nulls = all.slice(range.start, range.len()).null_count();
            if nulls > 0 {
                return Err(format!("{nulls} pixels of chunk {k} are null"));
            }
        }
        if let Some(bytes) = same_type(all, dtype) {
            let size = dtype.size();
            return Ok(&bytes[range.start * size..range.end * size]);
        }
        out.resize(range.len() * dtype.size(), 0);
        let narrow = |bytes: &[u8], leaf, out: &mut [u8]| match values::narrow(bytes, leaf, dtype, out) {
            Ok(()) => Ok(()),
            Err(BadValue::Range(text)) => Err(text),
            Err(BadValue::Corrupt(text)) => Err(text.to_owned()),
        };
        macro_rules! direct {
            ($t:ty, $leaf:ident) => {{
                let values = &all.as_primitive::<$t>().values()[range];
                narrow(bytemuck::cast_slice(values), LeafType::$leaf, out)
            }};
        }
        // Types of 8 and 16 bits are widened a block at a time, which stays in the nearest cache.
        macro_rules! widened {
            ($t:ty, $wide:ty, $leaf:ident) => {{
                const BLOCK: usize = 1024;
                let mut wide = [<$wide>::default(); BLOCK];
                let values = &all.as_primitive::<$t>().values()[range];
                values.chunks(BLOCK).zip(out.chunks_mut(BLOCK * dtype.size())).try_for_each(|(from, to)| {
                    for (w, &v) in wide.iter_mut().zip(from) {
                        *w = <$wide>::from(v);
                    }
                    narrow(bytemuck::cast_slice(&wide[..from.len()]), LeafType::$leaf, to)
                })
            }};
        }
        match all.data_type() {
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
        }?;
        Ok(out)
    }
}

/// The values' bytes where their type is `dtype`.
fn same_type(values: &ArrayRef, dtype: PixelType) -> Option<&[u8]> {
    macro_rules! bytes {
        ($t:ty) => {
            values.as_primitive_opt::<$t>().map(|v| bytemuck::cast_slice(v.values()))
        };
    }
    match dtype {
        PixelType::U8 => bytes!(UInt8Type),
        PixelType::I8 => bytes!(Int8Type),
        PixelType::U16 => bytes!(UInt16Type),
        PixelType::I16 => bytes!(Int16Type),
        PixelType::U32 => bytes!(UInt32Type),
        PixelType::I32 => bytes!(Int32Type),
        PixelType::F32 => bytes!(Float32Type),
        PixelType::F64 => bytes!(Float64Type),
    }
}
