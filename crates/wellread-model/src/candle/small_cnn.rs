//! [`crate::training::small_cnn`] in candle's operators.

use super::on_device::Definition;
use crate::training::small_cnn::{NAME, layout};
use candle_core::{Device, Result, Tensor};

pub(super) static MODEL: Definition = Definition { name: NAME, layout, input, network };

fn input(pixels: &[f32], shape: [usize; 4], device: &Device) -> Result<Tensor> {
    Tensor::from_slice(pixels, shape.as_slice(), device)
}

fn network(images: &Tensor, p: &[Tensor]) -> Result<Tensor> {
    let hidden = conv_relu(images, &p[0], &p[1])?;
    let means = conv_relu(&hidden, &p[2], &p[3])?.mean((2, 3))?;
    means.matmul(&p[4].t()?)?.broadcast_add(&p[5])
}

/// A convolution that keeps the size, with bias and ReLU.
fn conv_relu(x: &Tensor, weights: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let pad = weights.dim(2)? / 2;
    let bias = bias.reshape((1, bias.elem_count(), 1, 1))?;
    x.conv2d(weights, pad, 1, 1, 1)?.broadcast_add(&bias)?.relu()
}
