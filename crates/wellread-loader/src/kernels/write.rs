//! What pixels become once they lie in the order of the target.

use super::narrow::narrow;
use super::place::Raw;
use super::Affine;
use crate::dtype::Output;
use crate::simd::Level;
use std::marker::PhantomData;

/// Turns contiguous pixels, given as raw bytes, into as many contiguous numbers.
pub(super) trait Write<R>: Copy {
    /// The numbers.
    type Out: Copy;

    fn write(self, source: &[R], out: &mut [Self::Out]);
}

/// The bytes themselves.
#[derive(Clone, Copy)]
pub(super) struct Same;

impl<R: Raw> Write<R> for Same {
    type Out = R;

    #[inline(always)]
    fn write(self, source: &[R], out: &mut [R]) {
        out.copy_from_slice(source);
    }
}

/// A pixel type: how its bytes widen to `f32`.
pub(super) trait Pixel: Copy {
    type Raw: Raw;

    /// The value of little-endian bytes, rounded to `f32`.
    fn widen(bytes: Self::Raw) -> f32;
}

macro_rules! pixel {
    ($($type:ty),*) => {$(
        impl Pixel for $type {
            type Raw = [u8; size_of::<$type>()];

            #[inline(always)]
            fn widen(bytes: Self::Raw) -> f32 {
                <$type>::from_le_bytes(bytes) as f32
            }
        }
    )*};
}
pixel!(u8, i8, u16, i16, u32, i32, f32, f64);

/// Scaled floats.
#[derive(Clone, Copy)]
pub(super) struct Floats<P> {
    affine: Affine,
    pixel: PhantomData<P>,
}

impl<P> Floats<P> {
    pub(super) const fn new(affine: Affine) -> Self {
        Self { affine, pixel: PhantomData }
    }
}

/// Pixels converted together: one vector of the widest level. Of fixed length, so that short runs are vectorised as
/// long ones are.
const LANES: usize = 16;

impl<P: Pixel> Write<P::Raw> for Floats<P> {
    type Out = f32;

    #[inline(always)]
    fn write(self, source: &[P::Raw], out: &mut [f32]) {
        let Affine { scale, offset } = self.affine;
        let (source, source_rest) = source.as_chunks::<LANES>();
        let (out, out_rest) = out.as_chunks_mut::<LANES>();
        for (out, source) in out.iter_mut().zip(source) {
            for i in 0..LANES {
                out[i] = P::widen(source[i]) * scale + offset;
            }
        }
        for (out, source) in out_rest.iter_mut().zip(source_rest) {
            *out = P::widen(*source) * scale + offset;
        }
    }
}

/// Scaled floats, rounded to half precision.
#[derive(Clone, Copy)]
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

/// Floats between widening and narrowing: a kilobyte, which stays in the first-level cache.
const BETWEEN: usize = 256;

impl<P: Pixel> Write<P::Raw> for Halves<P> {
    type Out = u16;

    #[inline(always)]
    fn write(self, source: &[P::Raw], out: &mut [u16]) {
        let mut between = [0f32; BETWEEN];
        for (source, out) in source.chunks(BETWEEN).zip(out.chunks_mut(BETWEEN)) {
            let between = &mut between[..source.len()];
            self.floats.write(source, between);
            narrow(self.level, self.output, between, out);
        }
    }
}
