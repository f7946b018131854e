//! From pixels of any type to numbers of any output: chooses [`Reorient`] and write for the types at hand.
//!
//! ```text
//!   convert, convert_at ──▶ convert_plane ──▶ convert_patch ──by type──▶ Reorient<raw bytes, write>
//! ```

use super::affine::Affine;
use super::patch::Patch;
use super::reorient::Reorient;
use super::write::{Floats, Halves, UnchangedBytes};
use crate::dtype::Output;
use crate::orientation::{Orientation, Turn};
use crate::simd::{Level, dispatch};
use wellread_image::PixelType;

/// Converts contiguous pixels: `out[i] = data[i] as f32 * scale + offset`, or with the pivot (see [`Affine`]).
///
/// # Panics
/// When `data` does not hold exactly `out.len()` pixels.
pub fn convert(dtype: PixelType, data: &[u8], affine: Affine, out: &mut [f32]) {
    convert_at(Level::detect(), dtype, data, affine, out);
}

/// As [`convert`], at a level of [`Level::available`]; all levels give the same bits.
///
/// # Panics
/// When `data` does not hold exactly `out.len()` pixels, or the CPU lacks the level.
pub fn convert_at(level: Level, dtype: PixelType, data: &[u8], affine: Affine, out: &mut [f32]) {
    convert_plane(level, dtype, data, [1, out.len()], Turn::default(), affine, Output::F32, bytes_of(out));
}

/// Converts a contiguous plane of `[rows, columns]` pixels, turned, to numbers of type `output`, given as bytes.
///
/// # Panics
/// When `data` or `out` are not of the size of the plane, `out` is not aligned for its numbers, or the CPU lacks
/// the level.
pub fn convert_plane(
    level: Level,
    dtype: PixelType,
    data: &[u8],
    [rows, columns]: [usize; 2],
    turn: Turn,
    affine: Affine,
    output: Output,
    out: &mut [u8],
) {
    assert_eq!(data.len(), rows * columns * dtype.size(), "bytes do not match the number of pixels");
    assert_eq!(
        out.len(),
        rows * columns * output.dtype(dtype).size(),
        "room does not match the number of pixels"
    );
    let to = Orientation::new([rows, columns], turn);
    let patch = Patch { data, dtype, rows, columns, stride: columns };
    convert_patch(level, &patch, to, affine, output, out);
}

/// Floats as the bytes that kernels write to.
pub(crate) fn bytes_of(floats: &mut [f32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(floats)
}

/// Writes a patch to where `to` sends its pixels in `plane`: numbers of type `output`, aligned. For
/// [`Output::Stored`] the bytes stay as they are, and `affine` has no effect.
pub(crate) fn convert_patch(
    level: Level,
    patch: &Patch<'_>,
    to: Orientation,
    affine: Affine,
    output: Output,
    plane: &mut [u8],
) {
    if patch.rows == 0 || patch.columns == 0 {
        return;
    }
    macro_rules! reorient {
        ($raw:ty, $write:expr) => {
            dispatch(
                level,
                Reorient::<$raw, _>::new(level, patch, to, $write, bytemuck::cast_slice_mut(plane)),
            )
        };
    }
    macro_rules! by_type {
        ($($variant:ident => $type:ty),*) => {
            match (output, patch.dtype) {
                $(
                    (Output::F32, PixelType::$variant) => {
                        reorient!([u8; size_of::<$type>()], Floats::<$type>::new(affine));
                    }
                    (Output::F16 | Output::BF16, PixelType::$variant) => {
                        let write = Halves::new(Floats::<$type>::new(affine), output, level);
                        reorient!([u8; size_of::<$type>()], write);
                    }
                )*
                (Output::Stored, dtype) => match dtype.size() {
                    1 => reorient!([u8; 1], UnchangedBytes),
                    2 => reorient!([u8; 2], UnchangedBytes),
                    4 => reorient!([u8; 4], UnchangedBytes),
                    _ => reorient!([u8; 8], UnchangedBytes),
                },
            }
        };
    }
    by_type!(U8 => u8, I8 => i8, U16 => u16, I16 => i16, U32 => u32, I32 => i32, F32 => f32, F64 => f64);
}
