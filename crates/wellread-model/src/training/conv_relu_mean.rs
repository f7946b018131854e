//! Convolution, ReLU and the mean over each image in one.
//!
//! Activations are averaged as they are made and never stored. For the small CNN these would be two thirds of the
//! memory, and their gradient as much again. The gradient needs one kept bit per activation.

use crate::convolution::kernel::{self, Block, Geometry, Packed};
use crate::convolution::{self, bands};
use rayon::prelude::*;

/// The layer, with what a forward pass leaves for the backward pass. Images are `N x H x W x C`, weights
/// `C_out x K x K x C`, results `N x C_out`.
#[derive(Default)]
pub(super) struct ConvReluMean {
    /// One bit per activation, set where the ReLU let it through; each row of an image starts a new word.
    positive: Vec<u64>,
}

impl ConvReluMean {
    /// Means of the activations.
    pub fn forward(&mut self, g: &Geometry, x: &[f32], weights: &[f32], bias: &[f32]) -> Vec<f32> {
        let packed = Packed::forward(g, weights);
        let batch = x.len() / (g.height * g.width * g.c_in);
        let (row, words) = (g.width * g.c_out, words(g));
        self.positive.resize(batch * g.height * words, 0);
        let sums: Vec<(usize, Vec<f64>)> = bands(g, words, &mut self.positive)
            .into_par_iter()
            .map_init(
                || (Block::default(), vec![0.0f32; g.block_rows() * row], vec![0.0f32; g.c_out]),
                |(block, activations, of_row), (n, y0, band)| {
                    let mut sums = vec![0.0; g.c_out];
                    for (i, part) in band.chunks_mut(g.block_rows() * words).enumerate() {
                        let (y, rows) = (y0 + i * g.block_rows(), part.len() / words);
                        let activations = &mut activations[..rows * row];
                        block.load(g, (y, rows), |y, to| image_row(g, x, n, y, to));
                        kernel::convolve(g, block, &packed, bias, true, activations);
                        for (line, part) in activations.chunks_exact(row).zip(part.chunks_exact_mut(words)) {
                            add_row(line, of_row, &mut sums);
                            mark_positive(line, part);
                        }
                    }
                    (n, sums)
                },
            )
            .collect();
        let mut means = vec![0.0f64; batch * g.c_out];
        for (n, sums) in sums {
            means[n * g.c_out..][..g.c_out].iter_mut().zip(sums).for_each(|(mean, sum)| *mean += sum);
        }
        let pixels = (g.height * g.width) as f64;
        means.into_iter().map(|sum| (sum / pixels) as f32).collect()
    }

    /// Gradients of weights and bias, given the `gradient` of the means of the last [`Self::forward`], which had the same
    /// `x`. That of `x` goes to `x_gradient`.
    pub fn backward(
        &self,
        g: &Geometry,
        x: &[f32],
        weights: &[f32],
        gradient: &[f32],
        x_gradient: &mut [f32],
    ) -> (Vec<f32>, Vec<f32>) {
        let share = 1.0 / (g.height * g.width) as f32;
        let gradient: Vec<f32> = gradient.iter().map(|value| value * share).collect();
        let (step, words) = (g.reversed().c_in, words(g));
        let gradient_row = |n: usize, y: usize, to: &mut [f32]| {
            let gradient = &gradient[n * g.c_out..][..g.c_out];
            let bits = &self.positive[(n * g.height + y) * words..][..words];
            for (x, to) in to.chunks_exact_mut(step).enumerate() {
                for (c, (to, &value)) in to.iter_mut().zip(gradient).enumerate() {
                    let bit = x * g.c_out + c;
                    *to = if bits[bit / 64] >> (bit % 64) & 1 == 1 { value } else { 0.0 };
                }
            }
        };
        let planes = gradient.len() / g.c_out;
        let rows = |n: usize, y: usize, to: &mut [f32]| image_row(g, x, n, y, to);
        convolution::backward(g, planes, weights, rows, gradient_row, Some(x_gradient))
    }
}

/// Words that the bits of a row of an image take.
fn words(g: &Geometry) -> usize {
    (g.width * g.c_out).div_ceil(64)
}

/// Copies row `y` of image `n`.
fn image_row(g: &Geometry, x: &[f32], n: usize, y: usize, to: &mut [f32]) {
    let row = g.width * g.c_in;
    to.copy_from_slice(&x[(n * g.height + y) * row..][..row]);
}

/// Adds the sum over one row of pixels to `sums`, in single precision within the row, for which `of_row` has room.
fn add_row(line: &[f32], of_row: &mut [f32], sums: &mut [f64]) {
    of_row.fill(0.0);
    for pixel in line.chunks_exact(of_row.len()) {
        of_row.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += value);
    }
    sums.iter_mut().zip(of_row).for_each(|(sum, value)| *sum += f64::from(*value));
}

/// One bit per value of `line`: whether it is positive.
fn mark_positive(line: &[f32], words: &mut [u64]) {
    for (values, word) in line.chunks(64).zip(words) {
        *word = values.iter().enumerate().fold(0, |bits, (i, &v)| bits | u64::from(v > 0.0) << i);
    }
}
