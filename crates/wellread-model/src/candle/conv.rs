//! Convolution operators for candle, with their gradients.
//!
//! candle's own convolution is slow on the CPU (docs/decisions/0001-embedded-model-backend.md has the numbers).
//! These operators replace it there; they are ordinary [`CustomOp3`]s, so candle's automatic differentiation
//! runs through them. Tensors are channels-last: images `N x H x W x C`, weights `C_out x K x K x C_in`, K odd,
//! stride 1, zero padding that keeps the size.
//!
//! | operator | result | what is kept for the gradient |
//! |---|---|---|
//! | [`conv`] | `N x H x W x C_out` | the result itself |
//! | [`conv_relu_mean`] | `N x C_out`, the mean over each image | one bit per activation |
//!
//! [`conv_relu_mean`] never stores the activations that it averages: for the small CNN these would be two
//! thirds of the memory, and their gradient as much again.
//!
//! The work is done, and divided among threads, by [`crate::convolution`]: results do not depend on the number of
//! threads.
//!
//! On other devices than the CPU, [`library`] says the same in candle's own operators. The tests hold the two
//! against each other.

use crate::convolution::kernel::{self, Block, Geometry, Packed};
use crate::convolution::{self, bands};
use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Storage, Tensor, bail};
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Convolution plus bias, and ReLU if `relu`.
pub(super) fn conv(x: &Tensor, weights: &Tensor, bias: &Tensor, relu: bool) -> Result<Tensor> {
    if x.device().is_cpu() {
        x.apply_op3(weights, bias, Conv { relu })
    } else {
        library(x, weights, bias, relu)
    }
}

/// Convolution plus bias, ReLU, then the mean over rows and columns.
pub(super) fn conv_relu_mean(x: &Tensor, weights: &Tensor, bias: &Tensor) -> Result<Tensor> {
    if x.device().is_cpu() {
        x.apply_op3(weights, bias, ConvReluMean::default())
    } else {
        library(x, weights, bias, true)?.mean((1, 2))
    }
}

/// [`conv`] in candle's own operators.
pub(super) fn library(x: &Tensor, weights: &Tensor, bias: &Tensor, relu: bool) -> Result<Tensor> {
    let pad = weights.dim(1)? / 2;
    let x = x.permute((0, 3, 1, 2))?.contiguous()?;
    let weights = weights.permute((0, 3, 1, 2))?.contiguous()?;
    let y = x.conv2d(&weights, pad, 1, 1, 1)?.permute((0, 2, 3, 1))?.broadcast_add(bias)?;
    if relu { y.relu() } else { Ok(y) }
}

struct Conv {
    relu: bool,
}

/// `positive` is what the forward pass leaves for the backward pass: one bit per activation, set where the ReLU
/// let it through, each row of an image starting a new word.
#[derive(Default)]
struct ConvReluMean {
    positive: Mutex<Arc<Vec<u64>>>,
}

/// Sizes, after checking that the three shapes fit together.
fn geometry(x: &Layout, weights: &Layout, bias: &Layout) -> Result<(usize, Geometry)> {
    let (batch, height, width, c_in) = x.shape().dims4()?;
    let (c_out, kernel, k2, w_in) = weights.shape().dims4()?;
    let fits = w_in == c_in && k2 == kernel && kernel % 2 == 1 && bias.shape().dims1()? == c_out;
    if !fits || batch * height * width * c_in * c_out == 0 {
        bail!(
            "convolution: input {:?}, weights {:?} and bias {:?} do not fit together",
            x.shape(),
            weights.shape(),
            bias.shape()
        );
    }
    Ok((batch, Geometry { height, width, c_in, c_out, kernel }))
}

/// The values of a tensor that lies in one piece.
fn dense<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => bail!("convolution: weights and bias must be contiguous"),
    }
}

fn cpu(storage: &Storage) -> Result<&CpuStorage> {
    match storage {
        Storage::Cpu(storage) => Ok(storage),
        _ => bail!("convolution: the gradient was asked for on another device than the CPU"),
    }
}

/// An `N x H x W x C` tensor with any strides: NCHW input is read as it lies.
struct Images<'a> {
    values: &'a [f32],
    strides: [usize; 4],
    channels: usize,
}

impl<'a> Images<'a> {
    fn new(storage: &'a CpuStorage, layout: &Layout) -> Result<Self> {
        let (.., channels) = layout.shape().dims4()?;
        let strides = layout.stride();
        Ok(Self {
            values: &storage.as_slice::<f32>()?[layout.start_offset()..],
            strides: [strides[0], strides[1], strides[2], strides[3]],
            channels,
        })
    }

    /// Copies row `y` of image `n`; `step` floats per pixel in `to`, at least `channels`.
    fn row(&self, n: usize, y: usize, to: &mut [f32], step: usize) {
        let [sn, sy, sx, sc] = self.strides;
        let from = &self.values[n * sn + y * sy..];
        if sc == 1 && sx == self.channels && step == self.channels {
            to.copy_from_slice(&from[..to.len()]);
            return;
        }
        for (x, pixel) in to.chunks_exact_mut(step).enumerate() {
            for (c, value) in pixel[..self.channels].iter_mut().enumerate() {
                *value = from[x * sx + c * sc];
            }
        }
    }
}

impl CustomOp3 for Conv {
    fn name(&self) -> &'static str {
        "conv-channels-last"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weights: &CpuStorage,
        weights_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, g) = geometry(x_layout, weights_layout, bias_layout)?;
        let images = Images::new(x, x_layout)?;
        let packed = Packed::forward(&g, dense(weights, weights_layout)?);
        let bias = dense(bias, bias_layout)?;
        let mut out = vec![0.0f32; batch * g.height * g.width * g.c_out];
        convolution::forward(&g, &packed, bias, self.relu, |n, y, to| images.row(n, y, to, g.c_in), &mut out);
        Ok((CpuStorage::F32(out), Shape::from((batch, g.height, g.width, g.c_out))))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weights: &Tensor,
        bias: &Tensor,
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (_, g) = geometry(x.layout(), weights.layout(), bias.layout())?;
        let (gradient_storage, gradient_layout) = gradient.storage_and_layout();
        let gradient = Images::new(cpu(&gradient_storage)?, gradient_layout)?;
        let (result_storage, result_layout) = result.storage_and_layout();
        let result = dense(cpu(&result_storage)?, result_layout)?;
        let step = g.reversed().c_in;
        backward(x, weights, bias, |n, y, to| {
            gradient.row(n, y, to, step);
            if self.relu {
                let row = g.width * g.c_out;
                let result = &result[(n * g.height + y) * row..][..row];
                for (to, result) in to.chunks_exact_mut(step).zip(result.chunks_exact(g.c_out)) {
                    for (to, &result) in to.iter_mut().zip(result) {
                        *to = if result > 0.0 { *to } else { 0.0 };
                    }
                }
            }
        })
    }
}

impl CustomOp3 for ConvReluMean {
    fn name(&self) -> &'static str {
        "conv-relu-mean-channels-last"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weights: &CpuStorage,
        weights_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, g) = geometry(x_layout, weights_layout, bias_layout)?;
        let images = Images::new(x, x_layout)?;
        let packed = Packed::forward(&g, dense(weights, weights_layout)?);
        let bias = dense(bias, bias_layout)?;
        let (row, words) = (g.width * g.c_out, (g.width * g.c_out).div_ceil(64));
        let mut positive = vec![0u64; batch * g.height * words];
        let sums: Vec<(usize, Vec<f64>)> = bands(&g, words, &mut positive)
            .into_par_iter()
            .map_init(
                || (Block::default(), vec![0.0f32; g.block_rows() * row]),
                |(block, activations), (n, y0, band)| {
                    let mut sums = vec![0.0; g.c_out];
                    for (i, part) in band.chunks_mut(g.block_rows() * words).enumerate() {
                        let (y, rows) = (y0 + i * g.block_rows(), part.len() / words);
                        let activations = &mut activations[..rows * row];
                        block.load(&g, (y, rows), |y, to| images.row(n, y, to, g.c_in));
                        kernel::convolve(&g, block, &packed, bias, true, activations);
                        for (line, part) in activations.chunks_exact(row).zip(part.chunks_exact_mut(words)) {
                            add_row(line, &mut sums);
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
        let means = means.into_iter().map(|sum| (sum / pixels) as f32).collect();
        *self.positive.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(positive);
        Ok((CpuStorage::F32(means), Shape::from((batch, g.c_out))))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weights: &Tensor,
        bias: &Tensor,
        _result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (_, g) = geometry(x.layout(), weights.layout(), bias.layout())?;
        let share = 1.0 / (g.height * g.width) as f32;
        let gradient: Vec<f32> =
            gradient.flatten_all()?.to_vec1::<f32>()?.into_iter().map(|value| value * share).collect();
        let positive = Arc::clone(&self.positive.lock().unwrap_or_else(PoisonError::into_inner));
        let (step, words) = (g.reversed().c_in, (g.width * g.c_out).div_ceil(64));
        backward(x, weights, bias, |n, y, to| {
            let gradient = &gradient[n * g.c_out..][..g.c_out];
            let bits = &positive[(n * g.height + y) * words..][..words];
            for (x, to) in to.chunks_exact_mut(step).enumerate() {
                for (c, (to, &value)) in to.iter_mut().zip(gradient).enumerate() {
                    let bit = x * g.c_out + c;
                    *to = if bits[bit / 64] >> (bit % 64) & 1 == 1 { value } else { 0.0 };
                }
            }
        })
    }
}

/// Adds the sum over one row of pixels to `sums`, in single precision within the row.
fn add_row(line: &[f32], sums: &mut [f64]) {
    let mut row = vec![0.0f32; sums.len()];
    for pixel in line.chunks_exact(row.len()) {
        row.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += value);
    }
    sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(value));
}

/// One bit per value of `line`: whether it is positive.
fn mark_positive(line: &[f32], words: &mut [u64]) {
    for (values, word) in line.chunks(64).zip(words) {
        *word = values.iter().enumerate().fold(0, |bits, (i, &v)| bits | u64::from(v > 0.0) << i);
    }
}

/// Gradients of input (if anything depends on it), weights and bias.
///
/// `gradient_row(n, y, to)` writes row `y` of the gradient of image `n`'s output, before the ReLU, with
/// `g.reversed().c_in` floats per pixel.
fn backward(
    x: &Tensor,
    weights: &Tensor,
    bias: &Tensor,
    gradient_row: impl Fn(usize, usize, &mut [f32]) + Sync,
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    let (batch, g) = geometry(x.layout(), weights.layout(), bias.layout())?;
    let (x_storage, x_layout) = x.storage_and_layout();
    let images = Images::new(cpu(&x_storage)?, x_layout)?;
    let (weights_storage, weights_layout) = weights.storage_and_layout();
    let values = dense(cpu(&weights_storage)?, weights_layout)?;
    // Nobody needs the gradient of the pixels.
    let mut x_gradient = x.track_op().then(|| vec![0.0f32; batch * g.height * g.width * g.c_in]);
    let (weights_gradient, bias_gradient) = convolution::backward(
        &g,
        batch,
        values,
        |n, y, to| images.row(n, y, to, g.c_in),
        gradient_row,
        x_gradient.as_deref_mut(),
    );
    let device = x.device();
    let x_gradient = x_gradient.map(|values| Tensor::from_vec(values, x.shape(), device)).transpose()?;
    let weights_gradient = Tensor::from_vec(weights_gradient, weights.shape(), device)?;
    Ok((x_gradient, Some(weights_gradient), Some(Tensor::from_vec(bias_gradient, bias.shape(), device)?)))
}

#[cfg(test)]
mod tests;
