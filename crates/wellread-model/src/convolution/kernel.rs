//! Direct convolution on the CPU: the arithmetic, without any tensor library.
//!
//! A convolution with a square odd kernel, stride 1 and zero padding that keeps the size ("same"), on
//! channels-last data (`N x H x W x C`). Channels-last puts the values that an output pixel needs for one
//! kernel row side by side: `kernel * c_in` *contiguous* floats starting at its left neighbour. So a
//! convolution is `kernel` matrix products whose left operand is the image itself, read through overlapping
//! rows. Nothing is unfolded (no im2col) and nothing is transposed.
//!
//! ```text
//! source row ─▶ padded block (a few rows + halo, in L2) ─▶ register tile: 6 pixels x 4 vectors of channels
//!                                                           acc += splat(pixel value) * weight vector
//! ```
//!
//! * [`convolve`]: one block of output rows, with bias and optional ReLU. With [`Packed::flipped`] weights and
//!   the gradient of the output as source, the same function is the gradient with respect to the input.
//! * [`weight_gradient`]: the gradient with respect to the weights, from the same padded block.
//!
//! [`pulp`] chooses the instruction set at run time (AVX-512, AVX2 with FMA, NEON, or portable code) and keeps
//! the code free of `unsafe`. Work is divided by the callers: [`super`].

#![allow(
    clippy::inline_always,
    reason = "only what is inlined into pulp's entry point is compiled for the instruction set"
)]

use crate::tile::{LANES, accumulate};
use pulp::{Arch, Simd, WithSimd};

/// Pixels (or weights, in [`weight_gradient`]) per register tile.
const TILE: usize = 6;
/// Columns of the image that [`weight_gradient`] sums at a time, so that they stay in the L1 cache.
const SPAN: usize = 128;

/// Sizes of one convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Rows of the image.
    pub height: usize,
    /// Columns of the image.
    pub width: usize,
    /// Channels of the input.
    pub c_in: usize,
    /// Channels of the output.
    pub c_out: usize,
    /// Side of the kernel, odd.
    pub kernel: usize,
}

impl Geometry {
    /// Floats of one weight array, `c_out x kernel x kernel x c_in`.
    pub fn weights(&self) -> usize {
        self.c_out * self.kernel * self.kernel * self.c_in
    }

    /// Rows worked on at a time: few enough for the padded block and its output to stay in the L2 cache.
    pub fn block_rows(&self) -> usize {
        (65_536 / (self.width * self.c_in.max(self.c_out))).clamp(4, 32)
    }

    /// The convolution that leads from the output's gradient back to the input's. Its input has the output's
    /// channels and zeros up to whole vectors, as [`weight_gradient`] wants them.
    pub fn reversed(&self) -> Self {
        Self { c_in: padded(self.c_out), c_out: self.c_in, ..*self }
    }
}

/// `n` rounded up to whole vectors.
fn padded(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

/// Weights in the order in which the tiles read them: `(ky, kx, channel in) x padded channels out`.
pub(crate) struct Packed {
    values: Vec<f32>,
    columns: usize,
}

impl Packed {
    /// From `c_out x kernel x kernel x c_in`.
    pub fn forward(g: &Geometry, weights: &[f32]) -> Self {
        let taps = g.kernel * g.kernel;
        Self::new(taps * g.c_in, g.c_out, |row, out| weights[out * taps * g.c_in + row])
    }

    /// The same weights for [`Geometry::reversed`]: the kernel turned by 180°, input and output channels
    /// swapped.
    pub fn flipped(g: &Geometry, weights: &[f32]) -> Self {
        let (taps, channels) = (g.kernel * g.kernel, padded(g.c_out));
        Self::new(taps * channels, g.c_in, |row, c_in| {
            let (tap, c_out) = (row / channels, row % channels);
            if c_out < g.c_out { weights[(c_out * taps + (taps - 1 - tap)) * g.c_in + c_in] } else { 0.0 }
        })
    }

    fn new(rows: usize, columns: usize, at: impl Fn(usize, usize) -> f32) -> Self {
        let stride = padded(columns);
        let mut values = vec![0.0; rows * stride];
        for (row, packed) in values.chunks_exact_mut(stride).enumerate() {
            for (column, value) in packed[..columns].iter_mut().enumerate() {
                *value = at(row, column);
            }
        }
        Self { values, columns: stride }
    }
}

/// A few rows of an image with a border of zeros, reused from block to block.
#[derive(Default)]
pub(crate) struct Block {
    values: Vec<f32>,
    stride: usize,
    channels: usize,
}

impl Block {
    /// Loads rows `y0 .. y0 + rows` and `kernel / 2` rows around them; `row(y, to)` writes row `y` of the
    /// image, `width * c_in` floats (those it leaves alone are zero).
    pub fn load(&mut self, g: &Geometry, (y0, rows): (usize, usize), row: impl Fn(usize, &mut [f32])) {
        let (pad, channels) = (g.kernel / 2, g.c_in);
        self.channels = channels;
        self.stride = (g.width + 2 * pad) * channels;
        self.values.clear();
        self.values.resize((rows + 2 * pad) * self.stride, 0.0);
        for (r, line) in self.values.chunks_exact_mut(self.stride).enumerate() {
            if let Some(y) = (y0 + r).checked_sub(pad).filter(|&y| y < g.height) {
                row(y, &mut line[pad * channels..][..g.width * channels]);
            }
        }
    }
}

/// Convolves a block loaded with `g`: `out` gets its rows, `rows x width x c_out`.
///
/// `bias` is empty or `c_out` floats. With `relu`, negative results become zero.
pub(crate) fn convolve(
    g: &Geometry,
    block: &Block,
    weights: &Packed,
    bias: &[f32],
    relu: bool,
    out: &mut [f32],
) {
    let mut start = vec![0.0; weights.columns];
    start[..bias.len()].copy_from_slice(bias);
    Arch::new().dispatch(Convolve { g, block, weights, start: &start, relu, out });
}

struct Convolve<'a> {
    g: &'a Geometry,
    block: &'a Block,
    weights: &'a Packed,
    start: &'a [f32],
    relu: bool,
    out: &'a mut [f32],
}

impl WithSimd for Convolve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let rows = self.out.len() / (self.g.width * self.g.c_out);
        for y in 0..rows {
            let mut column = 0;
            while column < self.weights.columns {
                let vectors = (self.weights.columns - column) / S::F32_LANES;
                // Four vectors of accumulators per pixel need 24 registers of the 32 that AVX-512 and NEON have.
                column += S::F32_LANES
                    * if vectors >= 4 && S::REGISTER_COUNT >= 32 {
                        self.columns::<S, 4>(simd, y, column)
                    } else if vectors >= 2 {
                        self.columns::<S, 2>(simd, y, column)
                    } else {
                        self.columns::<S, 1>(simd, y, column)
                    };
            }
        }
    }
}

impl Convolve<'_> {
    /// One output row, `V` vectors of channels from `column`; returns `V`.
    #[inline(always)]
    fn columns<S: Simd, const V: usize>(&mut self, simd: S, y: usize, column: usize) -> usize {
        let width = self.g.width;
        if width < TILE {
            (0..width).for_each(|x| self.tile::<S, 1, V>(simd, y, x, column));
        } else {
            for x in (0..width).step_by(TILE) {
                // The last tile overlaps the one before: the same pixels are computed again, to the same values.
                self.tile::<S, TILE, V>(simd, y, x.min(width - TILE), column);
            }
        }
        V
    }

    #[inline(always)]
    fn tile<S: Simd, const P: usize, const V: usize>(&mut self, simd: S, y: usize, x: usize, column: usize) {
        let (g, lanes) = (self.g, S::F32_LANES);
        let run = g.kernel * g.c_in;
        let zero = simd.splat_f32s(0.0);
        let mut first = [zero; V];
        let (start, _) = S::as_simd_f32s(&self.start[column..][..V * lanes]);
        first.copy_from_slice(start);
        let mut sums = [first; P];
        for ky in 0..g.kernel {
            let line = &self.block.values[(y + ky) * self.block.stride..][..self.block.stride];
            let mut pixels: [&[f32]; P] = [&[]; P];
            for (p, pixel) in pixels.iter_mut().enumerate() {
                *pixel = &line[(x + p) * g.c_in..][..run];
            }
            let weights = &self.weights.values[ky * run * self.weights.columns..];
            sums = accumulate(simd, pixels, (weights, self.weights.columns, column), sums);
        }
        for (p, sums) in sums.iter().enumerate() {
            let pixel = &mut self.out[(y * g.width + x + p) * g.c_out..][..g.c_out];
            for (v, &sum) in sums.iter().enumerate() {
                let sum = if self.relu { simd.max_f32s(sum, zero) } else { sum };
                let at = column + v * lanes;
                if at + lanes <= g.c_out {
                    S::as_mut_simd_f32s(&mut pixel[at..at + lanes]).0[0] = sum;
                } else if at < g.c_out {
                    simd.partial_store_f32s(&mut pixel[at..], sum);
                }
            }
        }
    }
}

/// Floats of the array that [`weight_gradient`] adds to.
pub(crate) fn gradient_len(g: &Geometry) -> usize {
    g.kernel * g.kernel * g.c_in * padded(g.c_out)
}

/// Adds one block's part of the weights' gradient to `sums`, laid out as [`Packed::forward`].
///
/// `input` was loaded with `g`, `gradient` (of the output, before the ReLU) with [`Geometry::reversed`]; both
/// from the same `rows` rows.
pub(crate) fn weight_gradient(g: &Geometry, input: &Block, gradient: &Block, rows: usize, sums: &mut [f32]) {
    Arch::new().dispatch(WeightGradient { g, input, gradient, rows, sums });
}

/// Adds one block's part of the bias's gradient, the sum over its pixels, to `sums`.
pub(crate) fn bias_gradient(g: &Geometry, gradient: &Block, rows: usize, sums: &mut [f64]) {
    let (pad, channels) = (g.kernel / 2, gradient.channels);
    for line in gradient.values.chunks_exact(gradient.stride).skip(pad).take(rows) {
        let mut row = vec![0.0f32; channels];
        for pixel in line[pad * channels..][..g.width * channels].chunks_exact(channels) {
            row.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += value);
        }
        sums.iter_mut().zip(&row).for_each(|(sum, &value)| *sum += f64::from(value));
    }
}

/// Back from the layout of [`weight_gradient`] to `c_out x kernel x kernel x c_in`.
pub(crate) fn unpack_gradient(g: &Geometry, sums: &[f32]) -> Vec<f32> {
    let taps = g.kernel * g.kernel * g.c_in;
    let columns = padded(g.c_out);
    let mut weights = vec![0.0; g.weights()];
    for (out, weights) in weights.chunks_exact_mut(taps).enumerate() {
        for (tap, weight) in weights.iter_mut().enumerate() {
            *weight = sums[tap * columns + out];
        }
    }
    weights
}

struct WeightGradient<'a> {
    g: &'a Geometry,
    input: &'a Block,
    gradient: &'a Block,
    rows: usize,
    sums: &'a mut [f32],
}

impl WithSimd for WeightGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let run = self.g.kernel * self.g.c_in;
        for y in 0..self.rows {
            for x in (0..self.g.width).step_by(SPAN) {
                for ky in 0..self.g.kernel {
                    let whole = run - run % TILE;
                    for t in (0..whole).step_by(TILE) {
                        self.taps::<S, TILE>(simd, (y, x), ky, t);
                    }
                    for t in whole..run {
                        self.taps::<S, 1>(simd, (y, x), ky, t);
                    }
                }
            }
        }
    }
}

impl WeightGradient<'_> {
    /// Taps `t .. t + T` of kernel row `ky`, all output channels, one span of one row.
    #[inline(always)]
    fn taps<S: Simd, const T: usize>(&mut self, simd: S, at: (usize, usize), ky: usize, t: usize) {
        let columns = self.gradient.channels;
        let mut column = 0;
        while column < columns {
            let vectors = (columns - column) / S::F32_LANES;
            column += S::F32_LANES
                * if vectors >= 4 && S::REGISTER_COUNT >= 32 {
                    self.tile::<S, T, 4>(simd, at, ky, t, column)
                } else if vectors >= 2 {
                    self.tile::<S, T, 2>(simd, at, ky, t, column)
                } else {
                    self.tile::<S, T, 1>(simd, at, ky, t, column)
                };
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const T: usize, const V: usize>(
        &mut self,
        simd: S,
        (y, x): (usize, usize),
        ky: usize,
        t: usize,
        column: usize,
    ) -> usize {
        let (g, lanes) = (self.g, S::F32_LANES);
        let (pad, columns) = (g.kernel / 2, self.gradient.channels);
        let span = SPAN.min(g.width - x);
        let zero = simd.splat_f32s(0.0);
        let mut sums = [[zero; V]; T];
        let first = (ky * g.kernel * g.c_in + t) * columns + column;
        for (i, sums) in sums.iter_mut().enumerate() {
            let (row, _) = S::as_simd_f32s(&self.sums[first + i * columns..][..V * lanes]);
            sums.copy_from_slice(row);
        }
        // The last pixel's slice may be shorter than `c_in`: hence `T` floats, not a chunk.
        let input = &self.input.values[(y + ky) * self.input.stride + x * g.c_in + t..];
        let gradient = &self.gradient.values[(y + pad) * self.gradient.stride + (x + pad) * columns..];
        for (p, pixel) in gradient.chunks_exact(columns).take(span).enumerate() {
            let (pixel, _) = S::as_simd_f32s(&pixel[column..][..V * lanes]);
            let mut vectors = [zero; V];
            vectors.copy_from_slice(pixel);
            let values = &input[p * g.c_in..][..T];
            for i in 0..T {
                let value = simd.splat_f32s(values[i]);
                for v in 0..V {
                    sums[i][v] = simd.mul_add_e_f32s(value, vectors[v], sums[i][v]);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            let (row, _) = S::as_mut_simd_f32s(&mut self.sums[first + i * columns..][..V * lanes]);
            row.copy_from_slice(sums);
        }
        V
    }
}

#[cfg(test)]
mod tests;
