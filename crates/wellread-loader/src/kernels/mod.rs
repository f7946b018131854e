//! Bytes of any pixel type to the numbers of a batch, in one pass.
//!
//! A patch (rows of little-endian pixels, any alignment) goes through `value * scale + offset` straight to
//! its place in a plane of floats; a flip is a reversed row, a quarter turn a transposition in tiles that
//! stay in the first-level cache.
//!
//! ```text
//!   stored bytes ──turn──▶ 64 bytes in the order of the target ──write──▶ f32
//!                (straight rows: as they lie)                      ├─────▶ f32 in registers ──narrow──▶ f16, bf16
//!                                                                  └─────▶ the same bytes (stored types)
//! ```
//!
//! The arithmetic is that of NumPy's `x.astype(float32) * k + b`: the value is rounded to `f32` first, then one
//! rounding for the product and one for the sum, never fused; half precision is one rounding more. Stores are
//! ordinary ones: streaming past the cache saved nothing on large images when tried, and a small image is still
//! in the cache when the model asks for it.
//!
//! | module | what it holds |
//! |---|---|
//! | `place` | where pixels go: straight, reversed, transposed, as raw bytes |
//! | `write` | what they become: floats, halves, themselves |
//! | `narrow` | `f32` to half precision |
//! | `plane` | what is done to planes besides: maximum over depth, fields |

#![allow(clippy::inline_always)]

mod narrow;
mod place;
pub(crate) mod plane;
#[cfg(test)]
mod tests;
mod write;

use crate::dtype::Output;
use crate::orientation::Orientation;
use crate::simd::{Level, dispatch};
pub(crate) use narrow::narrow;
use place::{Place, Raw};
use wellread_image::PixelType;
use write::{Floats, Halves, Same};

/// What is done to each value: `value as f32 * scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    /// Factor.
    pub scale: f32,
    /// Summand. Negative zero, not zero, is the neutral one: `-0.0 + -0.0` is `-0.0`.
    pub offset: f32,
}

impl Affine {
    /// Changes nothing, not even the sign of zero.
    pub const IDENTITY: Self = Self { scale: 1.0, offset: -0.0 };
}

/// Converts contiguous pixels: `out[i] = data[i] as f32 * scale + offset`.
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

/// Flips and a quarter turn of a plane, for [`convert_plane`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Whether left and right are exchanged.
    pub flip_horizontal: bool,
    /// Whether top and bottom are exchanged.
    pub flip_vertical: bool,
    /// Turns by 90 degrees counter-clockwise, after the flips: 0 to 3.
    pub quarter_turns: u8,
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

/// A rectangle of source pixels.
pub(crate) struct Patch<'a> {
    /// Bytes from the first pixel of the first row on.
    pub(crate) data: &'a [u8],
    pub(crate) dtype: PixelType,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Pixels from one row to the next.
    pub(crate) stride: usize,
}

impl Patch<'_> {
    /// Pixels as elements of their size.
    fn elements<R: Raw>(&self) -> &[R] {
        let n = self.data.len() / size_of::<R>();
        bytemuck::cast_slice(&self.data[..n * size_of::<R>()])
    }
}

/// Writes a patch to where `to` sends its pixels in `plane`: numbers of type `output`, aligned. Of
/// [`Output::Stored`] the bytes stay as they are, and `affine` is of no effect.
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
    macro_rules! place {
        ($raw:ty, $write:expr) => {
            dispatch(level, Place::<$raw, _>::new(level, patch, to, $write, bytemuck::cast_slice_mut(plane)))
        };
    }
    macro_rules! by_type {
        ($($variant:ident => $type:ty),*) => {
            match (output, patch.dtype) {
                $(
                    (Output::F32, PixelType::$variant) => {
                        place!([u8; size_of::<$type>()], Floats::<$type>::new(affine));
                    }
                    (Output::F16 | Output::BF16, PixelType::$variant) => {
                        let write = Halves::new(Floats::<$type>::new(affine), output, level);
                        place!([u8; size_of::<$type>()], write);
                    }
                )*
                (Output::Stored, dtype) => match dtype.size() {
                    1 => place!([u8; 1], Same),
                    2 => place!([u8; 2], Same),
                    4 => place!([u8; 4], Same),
                    _ => place!([u8; 8], Same),
                },
            }
        };
    }
    by_type!(U8 => u8, I8 => i8, U16 => u16, I16 => i16, U32 => u32, I32 => i32, F32 => f32, F64 => f64);
}
