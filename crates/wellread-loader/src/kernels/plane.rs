//! The operations on whole planes before or after they are converted: the maximum over depth, fields.

use super::patch::Patch;
use crate::simd::{Kernel, Level, dispatch};
use std::marker::PhantomData;
use wellread_image::PixelType;

/// A pixel type's order, on its bytes.
trait Ordered {
    type Raw: bytemuck::Pod;
    /// Below or equal to all others.
    const LOWEST: Self::Raw;

    /// The greater of two; NaN where one is.
    fn greater(a: Self::Raw, b: Self::Raw) -> Self::Raw;
}

macro_rules! ordered {
    ($($type:ty, $lowest:expr);*) => {$(
        impl Ordered for $type {
            type Raw = [u8; size_of::<$type>()];
            const LOWEST: Self::Raw = <$type>::to_le_bytes($lowest);

            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn greater(a: Self::Raw, b: Self::Raw) -> Self::Raw {
                let (x, y) = (<$type>::from_le_bytes(a), <$type>::from_le_bytes(b));
                // A number that is not itself is NaN.
                if y > x || y != y { b } else { a }
            }
        }
    )*};
}
ordered!(
    u8, u8::MIN; i8, i8::MIN; u16, u16::MIN; i16, i16::MIN; u32, u32::MIN; i32, i32::MIN;
    f32, f32::NEG_INFINITY; f64, f64::NEG_INFINITY
);

macro_rules! by_type {
    ($dtype:expr, $Type:ident => $do:expr) => {
        match $dtype {
            PixelType::U8 => {
                type $Type = u8;
                $do
            }
            PixelType::I8 => {
                type $Type = i8;
                $do
            }
            PixelType::U16 => {
                type $Type = u16;
                $do
            }
            PixelType::I16 => {
                type $Type = i16;
                $do
            }
            PixelType::U32 => {
                type $Type = u32;
                $do
            }
            PixelType::I32 => {
                type $Type = i32;
                $do
            }
            PixelType::F32 => {
                type $Type = f32;
                $do
            }
            PixelType::F64 => {
                type $Type = f64;
                $do
            }
        }
    };
}

/// Fills planes with the value that [`maximum`] starts from.
pub(crate) fn fill_lowest(dtype: PixelType, planes: &mut [u8]) {
    by_type!(dtype, P => {
        bytemuck::cast_slice_mut::<u8, <P as Ordered>::Raw>(planes).fill(P::LOWEST);
    });
}

/// Raises the pixels of a plane, `width` to a row, to those of a patch that starts at `[y, x]`.
pub(crate) fn maximum(level: Level, patch: &Patch<'_>, [y, x]: [usize; 2], width: usize, plane: &mut [u8]) {
    by_type!(patch.dtype, P => {
        let plane = &mut bytemuck::cast_slice_mut(plane)[y * width + x..];
        dispatch(level, Maximum::<P> { patch, width, plane, pixel: PhantomData });
    });
}

struct Maximum<'a, P: Ordered> {
    patch: &'a Patch<'a>,
    width: usize,
    plane: &'a mut [P::Raw],
    pixel: PhantomData<P>,
}

impl<P: Ordered> Kernel for Maximum<'_, P> {
    #[inline(always)]
    fn run(self) {
        let &Patch { data, rows, columns, stride, .. } = self.patch;
        let size = size_of::<P::Raw>();
        for y in 0..rows {
            let source: &[P::Raw] = bytemuck::cast_slice(&data[y * stride * size..][..columns * size]);
            let target = &mut self.plane[y * self.width..][..columns];
            for (target, source) in target.iter_mut().zip(source) {
                *target = P::greater(*target, *source);
            }
        }
    }
}

/// Part of a field of the size of images: the values subtracted from and multiplied with each pixel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldPart<'a> {
    pub(crate) dark: Option<&'a [f32]>,
    pub(crate) gain: &'a [f32],
    /// Pixels from one row of the field to the next.
    pub(crate) stride: usize,
}

/// `(v - dark) * gain` for a plane of rows of `width` pixels.
pub(crate) fn correct(level: Level, field: FieldPart<'_>, width: usize, plane: &mut [f32]) {
    dispatch(level, FieldCorrection { field, width, plane });
}

/// Makes the pixels of a plane 0 that a mask did not leave in: those of which `own` has 0.
pub(crate) fn zero_others(own: &[u8], plane: &mut [f32]) {
    for (value, own) in plane.iter_mut().zip(own) {
        *value = if *own == 0 { 0.0 } else { *value };
    }
}

struct FieldCorrection<'a> {
    field: FieldPart<'a>,
    width: usize,
    plane: &'a mut [f32],
}

impl Kernel for FieldCorrection<'_> {
    #[inline(always)]
    fn run(self) {
        let FieldPart { dark, gain, stride } = self.field;
        for (y, row) in self.plane.chunks_exact_mut(self.width).enumerate() {
            let gain = &gain[y * stride..][..self.width];
            if let Some(dark) = dark {
                let dark = &dark[y * stride..][..self.width];
                row.iter_mut().zip(gain).zip(dark).for_each(|((v, gain), dark)| *v = (*v - dark) * gain);
            } else {
                row.iter_mut().zip(gain).for_each(|(v, gain)| *v *= gain);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_that_of_the_type_and_keeps_nan() {
        for level in Level::available() {
            for dtype in PixelType::ALL {
                let mut plane = vec![0; 6 * dtype.size()];
                fill_lowest(dtype, &mut plane);
                let patches: [&[f64]; 2] = [&[1.0, 2.0, 3.0, 4.0], &[4.0, 1.0, 1.0, 5.0]];
                for values in patches {
                    let data: Vec<u8> = values.iter().flat_map(|v| bytes(dtype, *v)).collect();
                    let patch = Patch { data: &data, dtype, rows: 2, columns: 2, stride: 2 };
                    maximum(level, &patch, [0, 1], 3, &mut plane);
                }
                let got: Vec<f64> = (0..6).map(|i| dtype.value_at(&plane, i)).collect();
                let mut lowest = vec![0; dtype.size()];
                fill_lowest(dtype, &mut lowest);
                let low = dtype.value_at(&lowest, 0);
                assert_eq!(got, [low, 4.0, 2.0, low, 3.0, 5.0], "{dtype} {level:?}");
            }
            for values in [[f32::NAN, 1.0], [1.0, f32::NAN]] {
                let mut plane = vec![0; 4];
                fill_lowest(PixelType::F32, &mut plane);
                for v in values {
                    let data = v.to_le_bytes();
                    let patch = Patch { data: &data, dtype: PixelType::F32, rows: 1, columns: 1, stride: 1 };
                    maximum(level, &patch, [0, 0], 1, &mut plane);
                }
                assert!(PixelType::F32.value_at(&plane, 0).is_nan());
            }
        }
    }

    fn bytes(dtype: PixelType, v: f64) -> Vec<u8> {
        match dtype {
            PixelType::F32 => (v as f32).to_le_bytes().to_vec(),
            PixelType::F64 => v.to_le_bytes().to_vec(),
            _ => (v as i64).to_le_bytes()[..dtype.size()].to_vec(),
        }
    }

    #[test]
    fn fields_are_cropped_with_the_image() {
        let (dark, gain) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.5, 2.0, 1.0, 0.25, 4.0]);
        for level in Level::available() {
            let mut plane = [10.0, 10.0, 10.0, 10.0];
            let part = FieldPart { dark: Some(&dark[1..]), gain: &gain[1..], stride: 3 };
            correct(level, part, 2, &mut plane);
            assert_eq!(plane, [4.0, 14.0, 1.25, 16.0]);
        }
    }
}
