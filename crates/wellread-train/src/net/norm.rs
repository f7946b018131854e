//! Normalisation of activations by mean and variance, with scale, shift and ReLU in the same pass.
//!
//! Batch normalisation takes the statistics of a channel over the whole batch and keeps running ones for inference (as
//! PyTorch: momentum 0.1, unbiased running variance). Instance normalisation takes those of each image. One is the other
//! with another number of groups, so both are one piece of code: a group is a run of whole images.

use super::tensor::{SPAN, Tensor};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Added to variances, as in PyTorch.
pub const EPSILON: f32 = 1e-5;

/// Which statistics activations are normalised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    /// Statistics of the batch when training, running ones afterwards.
    Batch,
    /// Statistics of each image, always.
    Instance,
    /// None: no normalisation.
    None,
}

/// The values that the backward pass needs: mean and one over the deviation, for each group and channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Means.
    pub mean: Vec<f32>,
    /// One over the square root of the variance plus [`EPSILON`].
    pub inverse: Vec<f32>,
    /// Variances (population).
    pub variance: Vec<f32>,
}

/// Sums of `count` quantities over all pixels of `group`; `add(first value of the pixels, pixels, sums)`.
///
/// In single precision over a span and in double over the spans, in order.
fn sums(group: &[f32], c: usize, count: usize, add: impl Fn(usize, &[f32], &mut [f32]) + Sync) -> Vec<f64> {
    let parts: Vec<Vec<f32>> = group
        .par_chunks(SPAN * c)
        .enumerate()
        .map(|(i, span)| {
            let mut part = vec![0.0; count];
            add(i * SPAN * c, span, &mut part);
            part
        })
        .collect();
    let mut total = vec![0.0; count];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += f64::from(part));
    }
    total
}

/// Mean and variance of each channel of each of `groups` groups.
pub fn statistics(y: &Tensor, groups: usize) -> Statistics {
    let c = y.channels();
    let mut found = Statistics::default();
    for group in y.data.chunks_exact(y.data.len() / groups) {
        let pixels = (group.len() / c) as f64;
        let mean: Vec<f32> = sums(group, c, c, |_, span, sums| {
            for pixel in span.chunks_exact(c) {
                sums.iter_mut().zip(pixel).for_each(|(sum, &v)| *sum += v);
            }
        })
        .into_iter()
        .map(|sum| (sum / pixels) as f32)
        .collect();
        let squares = sums(group, c, c, |_, span, sums| {
            for pixel in span.chunks_exact(c) {
                for ((sum, &v), &mean) in sums.iter_mut().zip(pixel).zip(&mean) {
                    *sum += (v - mean) * (v - mean);
                }
            }
        });
        for sum in squares {
            let variance = (sum / pixels) as f32;
            found.variance.push(variance);
            found.inverse.push(1.0 / (variance + EPSILON).sqrt());
        }
        found.mean.extend(mean);
    }
    found
}

/// `relu((y - mean) / deviation * scale + shift)`.
pub fn forward(y: &Tensor, statistics: &Statistics, scale: &[f32], shift: &[f32]) -> Tensor {
    let c = y.channels();
    let mut out = Tensor::zeros(y.shape);
    let group = y.data.len() / (statistics.mean.len() / c);
    for (i, (y, out)) in y.data.chunks_exact(group).zip(out.data.chunks_exact_mut(group)).enumerate() {
        let at = i * c..(i + 1) * c;
        let factor: Vec<f32> = statistics.inverse[at.clone()].iter().zip(scale).map(|(i, s)| i * s).collect();
        let summand: Vec<f32> =
            (0..c).map(|j| shift[j] - statistics.mean[at.start + j] * factor[j]).collect();
        out.par_chunks_mut(SPAN * c).zip(y.par_chunks(SPAN * c)).for_each(|(out, y)| {
            for (out, y) in out.chunks_exact_mut(c).zip(y.chunks_exact(c)) {
                for (((out, &y), &factor), &summand) in out.iter_mut().zip(y).zip(&factor).zip(&summand) {
                    *out = (y * factor + summand).max(0.0);
                }
            }
        });
    }
    out
}

/// Turns the gradient of the result, `out`, into that of `y`, and returns those of scale and shift.
pub fn backward(
    y: &Tensor,
    statistics: &Statistics,
    scale: &[f32],
    out: &Tensor,
    gradient: &mut Tensor,
) -> (Vec<f32>, Vec<f32>) {
    let c = y.channels();
    let group = y.data.len() / (statistics.mean.len() / c);
    let (mut d_scale, mut d_shift) = (vec![0.0f64; c], vec![0.0f64; c]);
    relu_backward(out, gradient);
    for (i, (y, gradient)) in
        y.data.chunks_exact(group).zip(gradient.data.chunks_exact_mut(group)).enumerate()
    {
        let (mean, inverse) = (&statistics.mean[i * c..][..c], &statistics.inverse[i * c..][..c]);
        let of_gradient = &*gradient;
        // For each channel the sums of the gradient and of the gradient times the normalised value.
        let sums = sums(y, c, 2 * c, |first, span, sums| {
            let (plain, weighted) = sums.split_at_mut(c);
            for (y, g) in span.chunks_exact(c).zip(of_gradient[first..].chunks_exact(c)) {
                for j in 0..c {
                    plain[j] += g[j];
                    weighted[j] += g[j] * ((y[j] - mean[j]) * inverse[j]);
                }
            }
        });
        let pixels = (group / c) as f64;
        for j in 0..c {
            d_shift[j] += sums[j];
            d_scale[j] += sums[c + j];
        }
        // gradient of y = factor * gradient + slope * y + summand
        let factor: Vec<f32> = (0..c).map(|j| scale[j] * inverse[j]).collect();
        let slope: Vec<f32> =
            (0..c).map(|j| -factor[j] * inverse[j] * (sums[c + j] / pixels) as f32).collect();
        let summand: Vec<f32> =
            (0..c).map(|j| -factor[j] * (sums[j] / pixels) as f32 - slope[j] * mean[j]).collect();
        gradient.par_chunks_mut(SPAN * c).zip(y.par_chunks(SPAN * c)).for_each(|(gradient, y)| {
            for (g, y) in gradient.chunks_exact_mut(c).zip(y.chunks_exact(c)) {
                for j in 0..c {
                    g[j] = g[j] * factor[j] + y[j] * slope[j] + summand[j];
                }
            }
        });
    }
    let single = |values: Vec<f64>| values.into_iter().map(|v| v as f32).collect();
    (single(d_scale), single(d_shift))
}

/// Sets the gradient to zero where the ReLU's result `out` is.
pub fn relu_backward(out: &Tensor, gradient: &mut Tensor) {
    gradient.data.par_chunks_mut(SPAN * 16).zip(out.data.par_chunks(SPAN * 16)).for_each(
        |(gradient, out)| {
            for (g, &out) in gradient.iter_mut().zip(out) {
                *g = if out > 0.0 { *g } else { 0.0 };
            }
        },
    );
}
