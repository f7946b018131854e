//! Pixels of chunks and planes from Arrow lists, borrowed where they are stored as the image's own type.

use super::arrays::pixel_type;
use super::lists::Lists;
use crate::numbers::{self, BadValue, LeafType, Numbers};
use crate::try_alloc;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
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
    /// The pixels of piece `k`, which must be `shape.pixels()` many, as `dtype`. They come straight from the array where it
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
        let all: &'a ArrayRef = self.pixels.values();
        if all.null_count() > 0 {
            let nulls = all.slice(range.start, range.len()).null_count();
            if nulls > 0 {
                return Err(format!("{nulls} pixels of chunk {k} are null"));
            }
        }
        let unknown = || format!("pixels of type {} cannot be read", all.data_type());
        let (bytes, size) = bytes_of(all).zip(all.data_type().primitive_width()).ok_or_else(unknown)?;
        let bytes = &bytes[range.start * size..range.end * size];
        pixels_as(k, shape, Numbers { data_type: all.data_type(), bytes }, dtype, out)
    }
}

/// The pixels of piece `k`, which must be `shape.pixels()` many, as `dtype`: as they are where they have that type, converted
/// in `out` where not.
pub(crate) fn pixels_as<'a>(
    k: usize,
    shape: Shape,
    stored: Numbers<'a>,
    dtype: PixelType,
    out: &'a mut Vec<u8>,
) -> Result<&'a [u8], String> {
    let Numbers { data_type, bytes } = stored;
    let unknown = || format!("pixels of type {data_type} cannot be read");
    let count = bytes.len() / data_type.primitive_width().ok_or_else(unknown)?;
    if count != shape.pixels() {
        return Err(format!("chunk {k} has {count} pixels, its shape {shape} says {}", shape.pixels()));
    }
    if *data_type == pixel_type(dtype) {
        return Ok(bytes);
    }
    // Every byte is written over.
    try_alloc::resize(out, count * dtype.size())?;
    let narrow = |bytes: &[u8], leaf, out: &mut [u8]| match numbers::narrow(bytes, leaf, dtype, out) {
        Ok(()) => Ok(()),
        Err(BadValue::Range(text)) => Err(text),
        Err(BadValue::Corrupt(text)) => Err(text.to_owned()),
    };
    // Types of 8 and 16 bits are widened a block at a time, which stays in the nearest cache.
    macro_rules! widened {
        ($t:ty, $wide:ty, $leaf:ident) => {{
            const BLOCK: usize = 1024;
            let mut wide = [<$wide>::default(); BLOCK];
            let values = bytes.as_chunks::<{ size_of::<$t>() }>().0;
            values.chunks(BLOCK).zip(out.chunks_mut(BLOCK * dtype.size())).try_for_each(|(from, to)| {
                for (w, &v) in wide.iter_mut().zip(from) {
                    *w = <$wide>::from(<$t>::from_le_bytes(v));
                }
                narrow(bytemuck::cast_slice(&wide[..from.len()]), LeafType::$leaf, to)
            })
        }};
    }
    match data_type {
        DataType::Int8 => widened!(i8, i32, I32),
        DataType::Int16 => widened!(i16, i32, I32),
        DataType::Int32 => narrow(bytes, LeafType::I32, out),
        DataType::Int64 => narrow(bytes, LeafType::I64, out),
        DataType::UInt8 => widened!(u8, u32, U32),
        DataType::UInt16 => widened!(u16, u32, U32),
        DataType::UInt32 => narrow(bytes, LeafType::U32, out),
        DataType::UInt64 => narrow(bytes, LeafType::U64, out),
        DataType::Float16 => widened!(<Float16Type as ArrowPrimitiveType>::Native, f32, F32),
        DataType::Float32 => narrow(bytes, LeafType::F32, out),
        DataType::Float64 => narrow(bytes, LeafType::F64, out),
        _ => Err(unknown()),
    }?;
    Ok(out)
}

/// The bytes of an array of numbers.
fn bytes_of(values: &ArrayRef) -> Option<&[u8]> {
    macro_rules! bytes {
        ($($t:ident),*) => {
            match values.data_type() {
                $(t if *t == $t::DATA_TYPE => Some(bytemuck::cast_slice(values.as_primitive::<$t>().values())),)*
                DataType::Float16 => Some(values.as_primitive::<Float16Type>().values().inner().as_slice()),
                _ => None,
            }
        };
    }
    bytes!(
        Int8Type,
        Int16Type,
        Int32Type,
        Int64Type,
        UInt8Type,
        UInt16Type,
        UInt32Type,
        UInt64Type,
        Float32Type,
        Float64Type
    )
}
