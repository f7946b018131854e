//! Convolutions and linear layers as one matrix product over blocked activations ([`super::layout`]).
//!
//! For one row of a kernel, the values of a block under it are contiguous: a "run" of `kernel x block` floats. A
//! result is the sum over all runs of run times weights, whatever the kernel, its step, or the border. A linear
//! layer is a kernel of 1 x 1. Nothing is unfolded in memory.
//!
//! ```text
//! weights: panel of 64 outputs ▸ run (block, ky) ▸ (kx, channel) ▸ 64 outputs      packed once, when loaded
//! task: one panel x a range of pixels; the panel is read in chunks that stay in the L2 cache
//! tile: 6 pixels x 64 outputs in registers
//! ```
//!
//! Every result is summed in the same order however the work is divided. So results depend neither on the number
//! of threads nor on the batch.

#![allow(clippy::inline_always, reason = "see crate::tile")]

use super::layout::{BLOCK, Layout};
use super::pointwise::gelu;
use crate::tile::accumulate;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// Pixels of a tile.
const TILE: usize = 6;
/// Rows of a panel that are used at a time: 256 KiB, a part of the L2 cache of a core.
const CHUNK: usize = 1024;
/// Tasks per thread, so that a thread which is held up does not hold up all.
const TASKS: usize = 8;

/// Kernel, step and border of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub kernel: usize,
    pub stride: usize,
    pub pad: usize,
}

impl Window {
    /// A linear layer.
    pub const POINT: Self = Self { kernel: 1, stride: 1, pad: 0 };
}

/// The function after the product and the residual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    None,
    Relu,
    Gelu,
}

/// Packed weights and bias of a convolution or linear layer.
#[derive(Debug)]
pub(super) struct Product {
    window: Window,
    activation: Activation,
    /// Rows of a panel: `blocks x kernel x kernel x block`.
    rows: usize,
    /// `panels x rows x BLOCK`.
    weights: Vec<f32>,
    /// `panels x BLOCK`.
    bias: Vec<f32>,
}

impl Product {
    /// From weights `out x channels x kernel x kernel` and a bias of `out`, for inputs of that layout.
    pub fn pack(
        (weights, bias): (&[f32], &[f32]),
        input: &Layout,
        window: Window,
        activation: Activation,
    ) -> Self {
        let (kernel, channels, block) = (window.kernel, input.channels, input.block);
        let (taps, panels) = (kernel * kernel, bias.len().div_ceil(BLOCK));
        let rows = input.blocks() * taps * block;
        let mut packed = vec![0.0; panels * rows * BLOCK];
        packed.par_chunks_mut(rows * BLOCK).enumerate().for_each(|(panel, packed)| {
            for (row, packed) in packed.chunks_exact_mut(BLOCK).enumerate() {
                let (tap, channel) = (row / block % taps, row / (block * taps) * block + row % block);
                if channel >= channels {
                    continue;
                }
                for (column, value) in packed.iter_mut().enumerate().take(bias.len() - panel * BLOCK) {
                    *value = weights[((panel * BLOCK + column) * channels + channel) * taps + tap];
                }
            }
        });
        let mut padded = vec![0.0; panels * BLOCK];
        padded[..bias.len()].copy_from_slice(bias);
        Self { window, activation, rows, weights: packed, bias: padded }
    }

    /// Computes `batch` images into `out`, whose border is left alone; `residual` lies as `out` does.
    pub fn apply(
        &self,
        batch: usize,
        (input, from): (&[f32], &Layout),
        residual: Option<&[f32]>,
        (out, to): (&mut [f32], &Layout),
    ) {
        let pixels = batch * to.pixels();
        let size = batch * to.image();
        let panels = self.bias.len() / BLOCK;
        let ranges = (TASKS * rayon::current_num_threads()).div_ceil(panels).min(pixels.div_ceil(TILE));
        let step = pixels.div_ceil(ranges).next_multiple_of(TILE);
        let runs = runs(batch, from, self.window);
        let mut tasks = Vec::with_capacity(panels * ranges);
        for (panel, mut rest) in out.chunks_exact_mut(size).enumerate() {
            let mut taken = 0;
            for first in (0..pixels).step_by(step) {
                let count = step.min(pixels - first);
                let (start, end) = (to.offset(first), to.offset(first + count - 1) + BLOCK);
                let (part, after) = rest.split_at_mut(end - taken);
                rest = after;
                tasks.push((panel, first..first + count, start, &mut part[start - taken..]));
                taken = end;
            }
        }
        let arch = Arch::new();
        tasks.into_par_iter().for_each(|(panel, pixels, start, out)| {
            let residual = residual.map(|r| &r[panel * size + start..][..out.len()]);
            arch.dispatch(Task {
                window: self.window,
                weights: &self.weights[panel * self.rows * BLOCK..][..self.rows * BLOCK],
                bias: &self.bias[panel * BLOCK..][..BLOCK],
                input,
                runs: &runs,
                from,
                to,
                pixels,
                start,
                residual,
                relu: self.activation == Activation::Relu,
                out: &mut *out,
            });
            if self.activation == Activation::Gelu {
                gelu(arch, out);
            }
        });
    }
}

/// Where each run begins, from the pixel at the upper left corner of the window.
pub(super) fn runs(batch: usize, from: &Layout, window: Window) -> Vec<usize> {
    let size = batch * from.image();
    (0..from.blocks())
        .flat_map(|block| (0..window.kernel).map(move |ky| block * size + ky * from.row()))
        .collect()
}

/// One panel of outputs for a range of pixels.
pub(super) struct Task<'a> {
    pub window: Window,
    /// One panel, `rows x BLOCK`.
    pub weights: &'a [f32],
    /// The first values of the sums, `BLOCK` floats.
    pub bias: &'a [f32],
    pub input: &'a [f32],
    /// See [`runs`].
    pub runs: &'a [usize],
    pub from: &'a Layout,
    pub to: &'a Layout,
    /// Pixels of all images, numbered as in [`Layout::offset`].
    pub pixels: Range<usize>,
    /// Where `out` and `residual` begin within their panel.
    pub start: usize,
    pub residual: Option<&'a [f32]>,
    pub relu: bool,
    pub out: &'a mut [f32],
}

impl WithSimd for Task<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Accumulators take most of the registers: 24 of 32 for AVX-512 and NEON, 12 of 16 for AVX2.
        match (BLOCK / S::F32_LANES, S::REGISTER_COUNT) {
            (4.., 32..) => self.run::<S, 4>(simd),
            (2.., 16..) => self.run::<S, 2>(simd),
            _ => self.run::<S, 1>(simd),
        }
    }
}

impl Task<'_> {
    #[inline(always)]
    fn run<S: Simd, const V: usize>(mut self, simd: S) {
        let run = self.window.kernel * self.from.block;
        let per_chunk = (CHUNK / run).max(1);
        let chunks = self.runs.len().div_ceil(per_chunk);
        for (chunk, runs) in self.runs.chunks(per_chunk).enumerate() {
            let weights = &self.weights[chunk * per_chunk * run * BLOCK..][..runs.len() * run * BLOCK];
            for first in self.pixels.clone().step_by(TILE) {
                let count = TILE.min(self.pixels.end - first);
                let mut places = [(0, 0); TILE];
                for (i, place) in places.iter_mut().enumerate() {
                    // A tile at the end computes its last pixel several times.
                    *place = self.offsets(first + i.min(count - 1));
                }
                for column in (0..BLOCK).step_by(V * S::F32_LANES) {
                    let ends = (chunk == 0, chunk + 1 == chunks);
                    self.tile::<S, V>(simd, &places, count, (runs, run, weights), column, ends);
                }
            }
        }
    }

    /// Where a pixel's window begins in the input, and the pixel in `out`.
    #[inline(always)]
    fn offsets(&self, pixel: usize) -> (usize, usize) {
        let (from, window) = (self.from, self.window);
        let (image, rest) = (pixel / self.to.pixels(), pixel % self.to.pixels());
        let (y, x) = (rest / self.to.width, rest % self.to.width);
        let (top, left) =
            (y * window.stride + from.pad - window.pad, x * window.stride + from.pad - window.pad);
        (image * from.image() + top * from.row() + left * from.block, self.to.offset(pixel) - self.start)
    }

    #[inline(always)]
    fn tile<S: Simd, const V: usize>(
        &mut self,
        simd: S,
        places: &[(usize, usize); TILE],
        count: usize,
        (runs, run, weights): (&[usize], usize, &[f32]),
        column: usize,
        (is_first, is_last): (bool, bool),
    ) {
        let zero = simd.splat_f32s(0.0);
        let mut sums = [[zero; V]; TILE];
        for (sums, place) in sums.iter_mut().zip(places) {
            let start = if is_first { self.bias } else { &self.out[place.1..][..BLOCK] };
            sums.copy_from_slice(S::as_simd_f32s(&start[column..][..V * S::F32_LANES]).0);
        }
        for (&at, weights) in runs.iter().zip(weights.chunks_exact(run * BLOCK)) {
            let mut pixels: [&[f32]; TILE] = [&[]; TILE];
            for (pixel, place) in pixels.iter_mut().zip(places) {
                *pixel = &self.input[place.0 + at..][..run];
            }
            sums = accumulate(simd, pixels, (weights, BLOCK, column), sums);
        }
        for p in 0..TILE {
            // Not a loop that ends at `count`: sums stay in registers only where every index is a constant.
            if p >= count {
                break;
            }
            let (sums, at) = (&sums[p], places[p].1 + column);
            let out = S::as_mut_simd_f32s(&mut self.out[at..][..V * S::F32_LANES]).0;
            if !is_last {
                out.copy_from_slice(sums);
                continue;
            }
            let residual = self.residual.map(|r| S::as_simd_f32s(&r[at..][..V * S::F32_LANES]).0);
            for (v, out) in out.iter_mut().enumerate() {
                let sum = residual.map_or(sums[v], |r| simd.add_f32s(sums[v], r[v]));
                *out = if self.relu { simd.max_f32s(sum, zero) } else { sum };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::network::Shape;
    use crate::init::Uniform;

    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut uniform = Uniform::new(seed, 0);
        (0..count).map(|_| uniform.next_within(1.0)).collect()
    }

    /// The first panel of a 3 x 3 convolution of one image, with the instruction set `simd`.
    fn run(simd: impl Simd, channels: usize) -> Vec<f32> {
        let (height, width) = (5, 7);
        let from = Layout::of(Shape { channels, height, width }, 1);
        let to = Layout::of(Shape { channels: BLOCK, height: 3, width: 4 }, 0);
        let window = Window { kernel: 3, stride: 2, pad: 1 };
        let weights = numbers(1, BLOCK * channels * 9);
        let bias = numbers(2, BLOCK);
        let product = Product::pack((&weights, &bias), &from, window, Activation::Relu);
        let (input, residual) = (numbers(3, from.floats(1)), numbers(4, to.floats(1)));
        let mut out = vec![f32::NAN; to.floats(1)];
        simd.vectorize(Task {
            window,
            weights: &product.weights,
            bias: &product.bias,
            input: &input,
            runs: &runs(1, &from, window),
            from: &from,
            to: &to,
            pixels: 0..to.pixels(),
            start: 0,
            residual: Some(&residual),
            relu: true,
            out: &mut out,
        });
        out
    }

    #[test]
    fn every_instruction_set_of_this_machine_agrees_with_portable_code() {
        // With 300 channels the panel is used in several chunks.
        for channels in [64, 300] {
            let portable = run(pulp::Scalar, channels);
            assert!(portable.iter().all(|v| v.is_finite()) && portable.iter().any(|&v| v > 0.0));
            let check = |ours: Vec<f32>| {
                for (a, b) in ours.iter().zip(&portable) {
                    assert!((a - b).abs() < 1e-4, "{a} against {b}");
                }
            };
            #[cfg(target_arch = "x86_64")]
            {
                if let Some(simd) = pulp::x86::V3::try_new() {
                    check(run(simd, channels));
                }
                if let Some(simd) = pulp::x86::V4::try_new() {
                    check(run(simd, channels));
                }
            }
            #[cfg(target_arch = "aarch64")]
            if let Some(simd) = pulp::aarch64::Neon::try_new() {
                check(run(simd, channels));
            }
        }
    }
}
