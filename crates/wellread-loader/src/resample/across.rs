//! The pass along a row, where neighbouring output pixels need different source pixels: no plain loop vectorises.
//!
//! ```text
//!   two taps, growing    16 outputs lie within 17 source pixels:  load ─▶ permute ─▶ × weights ─▶ +   (AVX2, AVX-512)
//!   two taps             pairs one by one ─▶ × weights ─▶ +
//!   more taps            per output: 4 or 8 neighbours × weights padded with zeros ─▶ sum of the lanes
//! ```
//!
//! Where a weight is only there to fill up, the pixel is masked to zero first. A NaN that it is would be carried over
//! otherwise. The order of additions is the same at every level, so all give the same bits.

use super::axis::Axis;
use crate::simd::Level;

/// Output pixels that are made together.
const BLOCK: usize = 16;

/// The weights of an [`Axis`], laid out for rows.
#[derive(Debug, Default)]
pub(super) struct RowWeights {
    /// Weights of each output pixel: 2, 4 or a multiple of 8.
    lanes: usize,
    /// Whether the first source pixels of 16 neighbouring outputs lie within 16 pixels.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    is_dense: bool,
    /// First source pixel of each output pixel; of two lanes, filled up to whole blocks.
    first: Vec<usize>,
    /// The same in 32 bits, from which blocks take differences; of two lanes only.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    low: Vec<i32>,
    /// With two lanes: the first weight of each output pixel, then the second of each. Else of each output pixel its
    /// weights.
    weights: Vec<f32>,
    /// For each weight all bits where it is one, none where it fills up; of two lanes, for the second weights only.
    masks: Vec<u32>,
}

impl RowWeights {
    /// Lays the weights of `axis` out.
    pub(super) fn prepare(&mut self, axis: &Axis) {
        let Self { lanes, is_dense, first, low, weights, masks } = self;
        *lanes = match axis.most_taps() {
            0..=2 => 2,
            3 | 4 => 4,
            more => more.next_multiple_of(8),
        };
        *is_dense = axis.grows();
        first.clear();
        low.clear();
        weights.clear();
        masks.clear();
        if *lanes > 2 {
            for i in 0..axis.len() {
                let (start, taps) = axis.taps(i);
                let filling = *lanes - taps.len();
                first.push(start);
                weights.extend_from_slice(taps);
                weights.extend(std::iter::repeat_n(0.0, filling));
                masks.extend(std::iter::repeat_n(u32::MAX, taps.len()));
                masks.extend(std::iter::repeat_n(0, filling));
            }
            return;
        }
        let whole = axis.len().next_multiple_of(BLOCK);
        weights.resize(2 * whole, 0.0);
        let (one, two) = weights.split_at_mut(whole);
        for i in 0..axis.len() {
            let (start, taps) = axis.taps(i);
            first.push(start);
            low.push(start as i32);
            one[i] = taps[0];
            two[i] = taps.get(1).copied().unwrap_or(0.0);
            masks.push(if taps.len() > 1 { u32::MAX } else { 0 });
        }
        first.resize(whole, axis.source() - 1);
        low.resize(whole, (axis.source() - 1) as i32);
        masks.resize(whole, 0);
    }

    /// Pixels behind the end of a row that are read, and of no account whatever they are.
    pub(super) fn margin(&self) -> usize {
        self.lanes.max(BLOCK + 1)
    }

    /// Makes a row of `row`, which has [`Self::margin`] more pixels than the axis. `level` is the one that this is compiled for.
    #[inline(always)]
    pub(super) fn run(&self, level: Level, row: &[f32], out: &mut [f32]) {
        match (self.lanes, level) {
            // SAFETY: a caller with a level has its instructions (`dispatch` asserts that).
            #[cfg(target_arch = "x86_64")]
            (2, Level::Avx2) if self.is_dense => unsafe { self.permute_eight(row, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            (2, Level::Avx512) if self.is_dense => unsafe { self.permute_sixteen(row, out) },
            (2, _) => self.pairs(row, out),
            (4, _) => self.sum_four(row, out),
            _ => self.sum_eights(row, out),
        }
    }

    #[inline(always)]
    fn pairs(&self, row: &[f32], out: &mut [f32]) {
        let (one, two) = self.weights.split_at(self.weights.len() / 2);
        let weights = one.as_chunks::<BLOCK>().0.iter().zip(two.as_chunks::<BLOCK>().0);
        let places = self.first.as_chunks::<BLOCK>().0.iter().zip(self.masks.as_chunks::<BLOCK>().0);
        for (((first, masks), (one, two)), out) in places.zip(weights).zip(out.chunks_mut(BLOCK)) {
            let (mut left, mut right) = ([0f32; BLOCK], [0f32; BLOCK]);
            for i in 0..BLOCK {
                let pair = &row[first[i]..first[i] + 2];
                (left[i], right[i]) = (pair[0], pair[1]);
            }
            let mut mixed = [0f32; BLOCK];
            for i in 0..BLOCK {
                mixed[i] = left[i] * one[i] + masked(right[i], masks[i]) * two[i];
            }
            out.copy_from_slice(&mixed[..out.len()]);
        }
    }

    #[inline(always)]
    fn sum_four(&self, row: &[f32], out: &mut [f32]) {
        let tables = self.weights.as_chunks::<4>().0.iter().zip(self.masks.as_chunks::<4>().0);
        for ((&first, (weights, masks)), out) in self.first.iter().zip(tables).zip(out) {
            let source = &row[first..first + 4];
            let mut parts = [0f32; 4];
            for i in 0..4 {
                parts[i] = masked(source[i], masks[i]) * weights[i];
            }
            *out = (parts[0] + parts[2]) + (parts[1] + parts[3]);
        }
    }

    #[inline(always)]
    fn sum_eights(&self, row: &[f32], out: &mut [f32]) {
        let tables = self.weights.chunks_exact(self.lanes).zip(self.masks.chunks_exact(self.lanes));
        for ((&first, (weights, masks)), out) in self.first.iter().zip(tables).zip(out) {
            let source = &row[first..first + self.lanes];
            let mut parts = [0f32; 8];
            let tables = weights.as_chunks::<8>().0.iter().zip(masks.as_chunks::<8>().0);
            for (source, (weights, masks)) in source.as_chunks::<8>().0.iter().zip(tables) {
                for i in 0..8 {
                    parts[i] += masked(source[i], masks[i]) * weights[i];
                }
            }
            let mut half = [0f32; 4];
            for i in 0..4 {
                half[i] = parts[i] + parts[i + 4];
            }
            *out = (half[0] + half[2]) + (half[1] + half[3]);
        }
    }

    /// Eight output pixels at once.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn permute_eight(&self, row: &[f32], out: &mut [f32]) {
        use std::arch::x86_64::{
            __m256i, _mm256_add_ps, _mm256_and_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_permutevar8x32_ps,
            _mm256_set1_epi32, _mm256_storeu_ps, _mm256_sub_epi32,
        };
        let (one, two) = self.weights.split_at(self.weights.len() / 2);
        let weights = one.as_chunks::<8>().0.iter().zip(two.as_chunks::<8>().0);
        let low = self.low.as_chunks::<8>().0;
        let places = self.first.as_chunks::<8>().0.iter().zip(low).zip(self.masks.as_chunks::<8>().0);
        for ((((first, low), masks), (one, two)), out) in places.zip(weights).zip(out.chunks_mut(8)) {
            let source = &row[first[0]..first[0] + 9];
            let mut mixed = [0f32; 8];
            let to = if out.len() == 8 { out.as_mut_ptr() } else { mixed.as_mut_ptr() };
            // SAFETY: each pointer is to eight numbers at least: of `source` there are nine, the rest are arrays of eight.
            unsafe {
                let places = low.as_ptr().cast::<__m256i>().read_unaligned();
                let at = _mm256_sub_epi32(places, _mm256_set1_epi32(low[0]));
                let left = _mm256_permutevar8x32_ps(_mm256_loadu_ps(source.as_ptr()), at);
                let right = _mm256_permutevar8x32_ps(_mm256_loadu_ps(source[1..].as_ptr()), at);
                let right = _mm256_and_ps(right, _mm256_loadu_ps(masks.as_ptr().cast::<f32>()));
                let left = _mm256_mul_ps(left, _mm256_loadu_ps(one.as_ptr()));
                let right = _mm256_mul_ps(right, _mm256_loadu_ps(two.as_ptr()));
                _mm256_storeu_ps(to, _mm256_add_ps(left, right));
            }
            let n = out.len();
            if n < 8 {
                out.copy_from_slice(&mixed[..n]);
            }
        }
    }

    /// Sixteen output pixels at once.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn permute_sixteen(&self, row: &[f32], out: &mut [f32]) {
        use std::arch::x86_64::{
            __m512i, _mm512_add_ps, _mm512_and_ps, _mm512_loadu_ps, _mm512_mul_ps, _mm512_permutexvar_ps,
            _mm512_set1_epi32, _mm512_storeu_ps, _mm512_sub_epi32,
        };
        let (one, two) = self.weights.split_at(self.weights.len() / 2);
        let weights = one.as_chunks::<16>().0.iter().zip(two.as_chunks::<16>().0);
        let low = self.low.as_chunks::<16>().0;
        let places = self.first.as_chunks::<16>().0.iter().zip(low).zip(self.masks.as_chunks::<16>().0);
        for ((((first, low), masks), (one, two)), out) in places.zip(weights).zip(out.chunks_mut(16)) {
            let source = &row[first[0]..first[0] + 17];
            let mut mixed = [0f32; 16];
            let to = if out.len() == 16 { out.as_mut_ptr() } else { mixed.as_mut_ptr() };
            // SAFETY: each pointer is to 16 numbers at least: of `source` there are 17, the rest are arrays of 16.
            unsafe {
                let places = low.as_ptr().cast::<__m512i>().read_unaligned();
                let at = _mm512_sub_epi32(places, _mm512_set1_epi32(low[0]));
                let left = _mm512_permutexvar_ps(at, _mm512_loadu_ps(source.as_ptr()));
                let right = _mm512_permutexvar_ps(at, _mm512_loadu_ps(source[1..].as_ptr()));
                let right = _mm512_and_ps(right, _mm512_loadu_ps(masks.as_ptr().cast::<f32>()));
                let left = _mm512_mul_ps(left, _mm512_loadu_ps(one.as_ptr()));
                let right = _mm512_mul_ps(right, _mm512_loadu_ps(two.as_ptr()));
                _mm512_storeu_ps(to, _mm512_add_ps(left, right));
            }
            let n = out.len();
            if n < 16 {
                out.copy_from_slice(&mixed[..n]);
            }
        }
    }
}

/// The number, or 0 where the mask is 0.
#[inline(always)]
fn masked(value: f32, mask: u32) -> f32 {
    f32::from_bits(value.to_bits() & mask)
}
