//! Bytes of any pixel type to scaled `f32`, in one pass.
//!
//! A patch (rows of little-endian pixels, any alignment) goes through `value * scale + offset` straight to
//! its place in a plane of floats; a flip is a reversed row, a quarter turn a transposition in tiles that
//! stay in the first-level cache. The arithmetic is that of NumPy's `x.astype(float32) * k + b`: the value is
//! rounded to `f32` first, then one rounding for the product and one for the sum; never fused. Stores are
//! ordinary ones: streaming past the cache saved nothing on large images when tried, and a small image is still
//! in the cache when the model asks for it.

#![allow(clippy::inline_always)]

use crate::orientation::Orientation;
use crate::simd::{Kernel, Level, dispatch};
use std::marker::PhantomData;
use wellread_image::PixelType;

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
    assert_eq!(data.len(), out.len() * dtype.size(), "bytes do not match the number of pixels");
    let columns = out.len();
    let straight = Orientation { first: 0, row_step: columns as isize, column_step: 1 };
    convert_patch(level, &Patch { data, dtype, rows: 1, columns, stride: columns }, straight, affine, out);
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

/// Writes a patch to where `to` sends its pixels in `plane`.
pub(crate) fn convert_patch(
    level: Level,
    patch: &Patch<'_>,
    to: Orientation,
    affine: Affine,
    plane: &mut [f32],
) {
    macro_rules! by_type {
        ($($variant:ident => $type:ty),*) => {
            match patch.dtype {
                $(PixelType::$variant => {
                    dispatch(level, Convert::<$type> { patch, to, affine, plane, pixel: PhantomData });
                })*
            }
        };
    }
    by_type!(U8 => u8, I8 => i8, U16 => u16, I16 => i16, U32 => u32, I32 => i32, F32 => f32, F64 => f64);
}

/// A pixel type as bytes.
trait Pixel {
    const BYTES: usize;
    /// Reads `BYTES` little-endian bytes and rounds the value to `f32`.
    fn widen(bytes: &[u8]) -> f32;
}

macro_rules! pixel {
    ($($type:ty),*) => {$(
        impl Pixel for $type {
            const BYTES: usize = size_of::<$type>();
            #[inline(always)]
            fn widen(bytes: &[u8]) -> f32 {
                let mut raw = [0; size_of::<$type>()];
                raw.copy_from_slice(bytes);
                <$type>::from_le_bytes(raw) as f32
            }
        }
    )*};
}
pixel!(u8, i8, u16, i16, u32, i32, f32, f64);

struct Convert<'a, P> {
    patch: &'a Patch<'a>,
    to: Orientation,
    affine: Affine,
    plane: &'a mut [f32],
    pixel: PhantomData<P>,
}

/// Rows and columns of a transposition tile: 16 floats are one cache line.
const TILE: usize = 16;

impl<P: Pixel> Kernel for Convert<'_, P> {
    #[inline(always)]
    fn run(self) {
        let Self { patch, to, affine, plane, .. } = self;
        let &Patch { data, rows, columns, stride, .. } = patch;
        let source = |y: usize, x: usize, n: usize| {
            let start = (y * stride + x) * P::BYTES;
            &data[start..start + n * P::BYTES]
        };
        let target = |y: usize, x: usize| to.at(y, x).first as usize;
        match to.column_step {
            1 if stride == columns && to.row_step == columns as isize => {
                let n = rows * columns;
                line::<P>(source(0, 0, n), affine, &mut plane[target(0, 0)..][..n]);
            }
            1 => {
                for y in 0..rows {
                    line::<P>(source(y, 0, columns), affine, &mut plane[target(y, 0)..][..columns]);
                }
            }
            -1 => {
                for y in 0..rows {
                    let out = &mut plane[target(y, columns - 1)..][..columns];
                    reversed_line::<P>(source(y, 0, columns), affine, out);
                }
            }
            // Axes are exchanged: rows of the source are columns of the target.
            _ => {
                let mut tile = [[0f32; TILE]; TILE];
                for y in (0..rows).step_by(TILE) {
                    let height = TILE.min(rows - y);
                    for x in (0..columns).step_by(TILE) {
                        let width = TILE.min(columns - x);
                        for (r, row) in tile.iter_mut().enumerate().take(height) {
                            line::<P>(source(y + r, x, width), affine, &mut row[..width]);
                        }
                        for c in 0..width {
                            if to.row_step == 1 {
                                let out = &mut plane[target(y, x + c)..][..height];
                                out.iter_mut().zip(&tile).for_each(|(o, row)| *o = row[c]);
                            } else {
                                let out = &mut plane[target(y + height - 1, x + c)..][..height];
                                out.iter_mut().rev().zip(&tile).for_each(|(o, row)| *o = row[c]);
                            }
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn line<P: Pixel>(source: &[u8], affine: Affine, out: &mut [f32]) {
    for (o, bytes) in out.iter_mut().zip(source.chunks_exact(P::BYTES)) {
        *o = P::widen(bytes) * affine.scale + affine.offset;
    }
}

#[inline(always)]
fn reversed_line<P: Pixel>(source: &[u8], affine: Affine, out: &mut [f32]) {
    for (o, bytes) in out.iter_mut().rev().zip(source.chunks_exact(P::BYTES)) {
        *o = P::widen(bytes) * affine.scale + affine.offset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(dtype: PixelType, bytes: &[u8], a: Affine) -> f32 {
        let widened = match dtype {
            PixelType::U8 => bytes[0] as f32,
            PixelType::I8 => bytes[0] as i8 as f32,
            PixelType::U16 => u16::from_le_bytes(bytes.try_into().unwrap()) as f32,
            PixelType::I16 => i16::from_le_bytes(bytes.try_into().unwrap()) as f32,
            PixelType::U32 => u32::from_le_bytes(bytes.try_into().unwrap()) as f32,
            PixelType::I32 => i32::from_le_bytes(bytes.try_into().unwrap()) as f32,
            PixelType::F32 => f32::from_le_bytes(bytes.try_into().unwrap()),
            PixelType::F64 => f64::from_le_bytes(bytes.try_into().unwrap()) as f32,
        };
        let product = std::hint::black_box(widened * a.scale);
        product + a.offset
    }

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    proptest! {
        /// Every level, type, alignment and length gives the bits of the scalar formula, NaN included.
        #[test]
        fn levels_agree_to_the_bit(
            bytes in prop::collection::vec(any::<u8>(), 0..700),
            shift in 0usize..8,
            scale in prop_oneof![Just(1.0f32), Just(1.0 / 255.0), -2.0f32..2.0],
            offset in prop_oneof![Just(-0.0f32), -1.0f32..1.0],
        ) {
            let affine = Affine { scale, offset };
            for dtype in PixelType::ALL {
                let data = &bytes[shift.min(bytes.len())..];
                let data = &data[..data.len() / dtype.size() * dtype.size()];
                for level in Level::available() {
                    let mut out = vec![f32::NAN; data.len() / dtype.size()];
                    convert_at(level, dtype, data, affine, &mut out);
                    for (o, b) in out.iter().zip(data.chunks_exact(dtype.size())) {
                        prop_assert!(same(*o, one(dtype, b, affine)), "{level:?} {dtype} {b:?}");
                    }
                }
            }
        }

        /// Patches inside larger rows, in every orientation, land where the orientation says and nowhere else.
        #[test]
        fn patches_land_where_they_belong(
            rows in 1usize..40, columns in 1usize..40, extra in 0usize..5,
            flip_horizontal: bool, flip_vertical: bool, quarter_turns in 0u8..4,
            y in 0usize..3, x in 0usize..3, below in 0usize..3, right in 0usize..3,
        ) {
            let (height, width) = (y + rows + below, x + columns + right);
            let placement = crate::Placement {
                top: 0, left: 0, height, width, flip_horizontal, flip_vertical, quarter_turns, degrees: 0.0,
            };
            let to = Orientation::of(&placement).at(y, x);
            let stride = columns + extra;
            let data: Vec<u8> = (0..rows * stride).flat_map(|i| (i as u16 + 1).to_le_bytes()).collect();
            let patch = Patch { data: &data, dtype: PixelType::U16, rows, columns, stride };
            let mut expected = vec![-1f32; height * width];
            for r in 0..rows {
                for c in 0..columns {
                    expected[to.at(r, c).first as usize] = (r * stride + c + 1) as f32;
                }
            }
            for level in Level::available() {
                let mut plane = vec![-1f32; height * width];
                convert_patch(level, &patch, to, Affine::IDENTITY, &mut plane);
                prop_assert_eq!(&plane, &expected);
            }
        }
    }

    #[test]
    fn identity_keeps_negative_zero() {
        let mut out = [1.0f32];
        convert(PixelType::F32, &(-0.0f32).to_le_bytes(), Affine::IDENTITY, &mut out);
        assert_eq!(out[0].to_bits(), (-0.0f32).to_bits());
    }
}
