//! The register tile of every matrix product and convolution here: a few pixels times a few vectors of channels.
//!
//! [`pulp`] chooses the instruction set at run time (AVX-512, AVX2 with FMA, NEON, or portable code). Only what is
//! inlined into its entry point is compiled for it, hence `#[inline(always)]`.

#![allow(clippy::inline_always, reason = "see the module's documentation")]

use pulp::{Arch, Simd, WithSimd};

/// Channels are padded to a multiple of this in packed arrays: the widest vector that `pulp` uses.
pub(crate) const LANES: usize = 16;

/// `sums[p][v] += pixels[p][t] * weights[t][column + v]` for all `t`, vectors of channels `v`.
///
/// `weights` has rows of `stride` floats, at least as many as each of `pixels` has floats.
#[inline(always)]
pub(crate) fn accumulate<S: Simd, const P: usize, const V: usize>(
    simd: S,
    pixels: [&[f32]; P],
    (weights, stride, column): (&[f32], usize, usize),
    mut sums: [[S::f32s; V]; P],
) -> [[S::f32s; V]; P] {
    let run = pixels[0].len();
    let pixels = pixels.map(|pixel| &pixel[..run]);
    let mut vectors = [simd.splat_f32s(0.0); V];
    for (t, row) in weights.chunks_exact(stride).take(run).enumerate() {
        let (row, _) = S::as_simd_f32s(&row[column..][..V * S::F32_LANES]);
        vectors.copy_from_slice(row);
        for p in 0..P {
            let value = simd.splat_f32s(pixels[p][t]);
            for v in 0..V {
                sums[p][v] = simd.mul_add_e_f32s(value, vectors[v], sums[p][v]);
            }
        }
    }
    sums
}

/// The instructions that `pulp` chose, for reports.
pub(crate) fn instruction_set() -> &'static str {
    struct Name;
    impl WithSimd for Name {
        type Output = &'static str;
        fn with_simd<S: Simd>(self, _: S) -> &'static str {
            match S::F32_LANES {
                16 => "AVX-512",
                8 => "AVX2",
                4 => "NEON",
                _ => "portable code",
            }
        }
    }
    Arch::new().dispatch(Name)
}
