//! The output of pixels once they lie in the order of the target.

use super::affine::Affine;
use super::narrow::{bf16_of, f16_of};
use super::raw::Raw;
use crate::dtype::Output;
use crate::simd::Level;
use std::marker::PhantomData;

/// Turns contiguous pixels, given as raw bytes, into as many contiguous numbers.
pub(super) trait Write<R> {
    /// The numbers.
    type Out: bytemuck::Pod;

    fn write(&mut self, source: &[R], out: &mut [Self::Out]);

    /// The numbers as raw bytes, where they are nothing else.
    fn as_raw(_: &mut [Self::Out]) -> Option<&mut [R]> {
        None
    }
}

/// The bytes themselves.
pub(super) struct UnchangedBytes;

impl<R: Raw> Write<R> for UnchangedBytes {
    type Out = R;

    #[inline(always)]
    fn write(&mut self, source: &[R], out: &mut [R]) {
        out.copy_from_slice(source);
    }

    #[inline(always)]
    fn as_raw(out: &mut [R]) -> Option<&mut [R]> {
        Some(out)
    }
}

/// A pixel type: how its bytes widen to `f32`.
pub(super) trait Pixel: Copy {
    type Raw: Raw;

    /// Whether `f32` may round values.
    const IS_WIDE: bool = size_of::<Self>() > 2;

    /// The value of little-endian bytes, rounded to `f32`.
    fn widen(bytes: Self::Raw) -> f32;

    /// The value of little-endian bytes.
    fn exact(bytes: Self::Raw) -> f64;
}

macro_rules! pixel {
    ($($type:ty),*) => {$(
        impl Pixel for $type {
            type Raw = [u8; size_of::<$type>()];

            #[inline(always)]
            fn widen(bytes: Self::Raw) -> f32 {
                <$type>::from_le_bytes(bytes) as f32
            }

            #[inline(always)]
            fn exact(bytes: Self::Raw) -> f64 {
                <$type>::from_le_bytes(bytes) as f64
            }
        }
    )*};
}
pixel!(u8, i8, u16, i16, u32, i32, f32, f64);

/// Scaled floats.
pub(super) struct Floats<P> {
    affine: Affine,
    pixel: PhantomData<P>,
}

impl<P> Floats<P> {
    pub(super) const fn new(affine: Affine) -> Self {
        Self { affine, pixel: PhantomData }
    }
}

impl<P: Pixel> Write<P::Raw> for Floats<P> {
    type Out = f32;

    #[inline(always)]
    fn write(&mut self, source: &[P::Raw], out: &mut [f32]) {
        let affine = self.affine;
        if P::IS_WIDE && affine.pivot != 0.0 {
            for (out, source) in out.iter_mut().zip(source) {
                *out = affine.of_wide(P::exact(*source));
            }
            return;
        }
        for (out, source) in out.iter_mut().zip(source) {
            *out = affine.of(P::widen(*source));
        }
    }
}

/// Scaled floats, rounded to half precision.
pub(super) struct Halves<P> {
    floats: Floats<P>,
    output: Output,
    level: Level,
}

impl<P> Halves<P> {
    pub(super) const fn new(floats: Floats<P>, output: Output, level: Level) -> Self {
        Self { floats, output, level }
    }
}

impl<P: Pixel> Write<P::Raw> for Halves<P> {
    type Out = u16;

    #[inline(always)]
    fn write(&mut self, source: &[P::Raw], out: &mut [u16]) {
        let affine = self.floats.affine;
        let value = |raw: P::Raw| affine.of(P::widen(raw));
        let wide = |raw: P::Raw| affine.of_wide(P::exact(raw));
        match (self.output == Output::F16, P::IS_WIDE && affine.pivot != 0.0) {
            (true, false) => f16_of(self.level, source, value, out),
            (true, true) => f16_of(self.level, source, wide, out),
            (false, false) => bf16_of(source, value, out),
            (false, true) => bf16_of(source, wide, out),
        }
    }
}
