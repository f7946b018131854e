//! `f32` to half precision, round to nearest, ties to even.
//!
//! NaN stays NaN: sign and upper payload bits are kept, the quiet bit is set, as CPUs and the `half` crate do.
//! (AVX-512's own instruction for bfloat16 takes subnormal numbers for zero and is of no use here.)

use crate::dtype::Output;
use crate::simd::{Kernel, Level, dispatch};

/// Rounds `floats` to [`Output::F16`] or [`Output::BF16`], as bits.
pub(crate) fn narrow(level: Level, output: Output, floats: &[f32], out: &mut [u16]) {
    match output {
        Output::F16 => dispatch(level, ToF16 { level, floats, out }),
        Output::BF16 => dispatch(level, ToBf16 { floats, out }),
        Output::F32 | Output::Stored => unreachable!("not of half precision"),
    }
}

struct ToF16<'a> {
    level: Level,
    floats: &'a [f32],
    out: &'a mut [u16],
}

impl Kernel for ToF16<'_> {
    #[inline(always)]
    fn run(self) {
        f16_of(self.level, self.floats, |v| v, self.out);
    }
}

struct ToBf16<'a> {
    floats: &'a [f32],
    out: &'a mut [u16],
}

impl Kernel for ToBf16<'_> {
    #[inline(always)]
    fn run(self) {
        bf16_of(self.floats, |v| v, self.out);
    }
}

/// Rounds what `value` makes of each of `source` to half precision. It uses the instruction for it where `level`,
/// the one that this is compiled for, has one. Values before the rounding stay in registers.
#[inline(always)]
pub(super) fn f16_of<T: Copy>(level: Level, source: &[T], value: impl Fn(T) -> f32, out: &mut [u16]) {
    #[cfg(target_arch = "x86_64")]
    macro_rules! by_instruction {
        ($lanes:literal, $round:ident) => {{
            let (chunks, rest) = source.as_chunks::<$lanes>();
            let (out, out_rest) = out.as_chunks_mut::<$lanes>();
            for (out, chunk) in out.iter_mut().zip(chunks) {
                // SAFETY: the level has the instruction, see `Level::available`; levels the CPU lacks are not given out.
                *out = unsafe { $round(chunk.map(&value)) };
            }
            (rest, out_rest)
        }};
    }
    let (rest, out_rest) = match level {
        Level::Baseline => (source, out),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => by_instruction!(8, f16_by_eight),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => by_instruction!(16, f16_by_sixteen),
    };
    for (out, source) in out_rest.iter_mut().zip(rest) {
        *out = f16_bits(value(*source));
    }
}

/// Rounds what `value` makes of each of `source` to the upper half of a float.
#[inline(always)]
pub(super) fn bf16_of<T: Copy>(source: &[T], value: impl Fn(T) -> f32, out: &mut [u16]) {
    // Widening first, then narrowing: each is vectorised. Long runs go through the first-level cache, the rest through
    // registers.
    let (long, rest) = source.as_chunks::<512>();
    let (out_long, out_rest) = out.as_chunks_mut::<512>();
    let mut floats = [0f32; 512];
    for (out, chunk) in out_long.iter_mut().zip(long) {
        for (float, source) in floats.iter_mut().zip(chunk) {
            *float = value(*source);
        }
        for (out, float) in out.iter_mut().zip(&floats) {
            *out = bf16_bits(*float);
        }
    }
    let (short, rest) = rest.as_chunks::<32>();
    let (out_short, out_rest) = out_rest.as_chunks_mut::<32>();
    for (out, chunk) in out_short.iter_mut().zip(short) {
        let mut floats = [0f32; 32];
        for (float, source) in floats.iter_mut().zip(chunk) {
            *float = value(*source);
        }
        for (out, float) in out.iter_mut().zip(&floats) {
            *out = bf16_bits(*float);
        }
    }
    for (out, source) in out_rest.iter_mut().zip(rest) {
        *out = bf16_bits(value(*source));
    }
}

#[inline(always)]
fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    (if value.is_nan() { bits >> 16 | 0x40 } else { rounded }) as u16
}

/// Without branches, so that it is vectorised: all three cases are computed and one is taken.
#[inline(always)]
fn f16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    // Normal numbers: the exponent's bias goes from 127 to 15, half of the last place is added to round. Values above
    // the largest half carry over into the bits of infinity.
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
    // Subnormal halves are multiples of 2^-24, the last place of 0.5: adding 0.5 rounds to one.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal.min(0x7c00) };
    (sign | if magnitude > 0x7f80_0000 { nan } else { finite }) as u16
}

/// Eight floats by one instruction.
///
/// # Safety
/// The CPU has F16C.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn f16_by_eight(floats: [f32; 8]) -> [u16; 8] {
    use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm256_cvtps_ph};
    // SAFETY: as the caller promises; arrays and registers are of equal size, and any bits are numbers.
    unsafe {
        std::mem::transmute(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(std::mem::transmute::<
            [f32; 8],
            std::arch::x86_64::__m256,
        >(floats)))
    }
}

/// Sixteen floats by one instruction.
///
/// # Safety
/// The CPU has AVX-512 F.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn f16_by_sixteen(floats: [f32; 16]) -> [u16; 16] {
    use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm512_cvtps_ph};
    // SAFETY: as the caller promises; arrays and registers are of equal size, and any bits are numbers.
    unsafe {
        std::mem::transmute(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(std::mem::transmute::<
            [f32; 16],
            std::arch::x86_64::__m512,
        >(floats)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f32]) {
        for level in Level::available() {
            let mut out = vec![0; values.len()];
            narrow(level, Output::F16, values, &mut out);
            for (v, o) in values.iter().zip(&out) {
                assert_eq!(*o, half::f16::from_f32_const(*v).to_bits(), "{v:e} {:x} {level:?}", v.to_bits());
            }
            narrow(level, Output::BF16, values, &mut out);
            for (v, o) in values.iter().zip(&out) {
                assert_eq!(*o, half::bf16::from_f32_const(*v).to_bits(), "{v:e} {:x} {level:?}", v.to_bits());
            }
        }
    }

    /// Every sign, exponent and upper fraction, with the lower bits that decide about rounding.
    #[test]
    fn halves_are_rounded_to_nearest_even() {
        const LOW: [u32; 11] = [0, 1, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff];
        let all = (0..=u32::from(u16::MAX)).flat_map(|high| LOW.map(|low| f32::from_bits(high << 16 | low)));
        check(&all.collect::<Vec<_>>());
        let edges =
            [0.0, -0.0, 65504.0, 65519.99, 65520.0, 65536.0, 1e9, f32::MAX, f32::INFINITY, f32::NEG_INFINITY];
        let small = [
            f32::NAN,
            -f32::NAN,
            5.96e-8,
            2.98e-8,
            2.981e-8,
            8.94e-8,
            6.1e-5,
            6.097_6e-5,
            1e-40,
            f32::MIN_POSITIVE,
        ];
        check(&[edges, small].concat());
    }

    /// All halves come back from single precision as they were.
    #[test]
    fn every_half_is_itself() {
        let values: Vec<f32> = (0..=u16::MAX).map(|bits| half::f16::from_bits(bits).to_f32_const()).collect();
        check(&values);
    }
}
