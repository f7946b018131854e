//! The small embedding CNN that upstream's end-to-end loop feeds.
//!
//! ```text
//! N x C x H x W ─▶ Conv 3x3 C→32 ─▶ ReLU ─▶ Conv 3x3 32→64 ─▶ ReLU ─▶ mean over the image ─▶ Linear 64→128
//!     pixels                          hidden                                  means              embedding
//! ```
//!
//! 27,136 parameters for one channel; both convolutions keep the size (padding 1). The network averages over the image,
//! as its target does (`target`), so it can learn this target and the loss falls.

use super::conv_relu_mean::ConvReluMean;
use super::linear::linear;
use super::network::Network;
use super::parameters::Parameter;
use super::trained::Trained;
use crate::convolution;
use crate::convolution::kernel::{Geometry, Packed};
use crate::{ModelEntry, Result};

/// The entry in the [registry](crate::registry).
pub(crate) static MODEL: ModelEntry = ModelEntry {
    name: NAME,
    about: "two 3x3 convolutions, global mean and a linear layer: a 128-number embedding (wellread's own kernels)",
    create: |options| Ok(Box::new(Trained::<SmallCnn>::new(options)?)),
};

/// Name in the [registry](crate::registry).
pub(crate) const NAME: &str = "small-cnn";
const FEATURES: [usize; 2] = [32, 64];
const KERNEL: usize = 3;
const EMBEDDING: usize = 128;

/// The model; see the [module](self).
#[derive(Default)]
pub(super) struct SmallCnn {
    /// Activations of the first convolution, `N x H x W x 32`.
    hidden: Vec<f32>,
    /// Their gradient.
    hidden_gradient: Vec<f32>,
    second: ConvReluMean,
    /// Means of the second convolution's activations, `N x 64`.
    means: Vec<f32>,
}

/// Its parameters.
pub(crate) fn layout(in_channels: usize) -> Vec<Parameter> {
    let [first, second] = FEATURES;
    vec![
        ("conv1.weight", vec![first, in_channels, KERNEL, KERNEL]),
        ("conv1.bias", vec![first]),
        ("conv2.weight", vec![second, first, KERNEL, KERNEL]),
        ("conv2.bias", vec![second]),
        ("fc.weight", vec![EMBEDDING, second]),
        ("fc.bias", vec![EMBEDDING]),
    ]
}

/// Sizes of both convolutions.
fn geometries([_, c_in, height, width]: [usize; 4]) -> [Geometry; 2] {
    let [first, second] = FEATURES;
    [(c_in, first), (first, second)].map(|(c_in, c_out)| Geometry {
        height,
        width,
        c_in,
        c_out,
        kernel: KERNEL,
    })
}

/// Row `y` of image `n` of a batch that is `N x C x H x W`, channels last.
fn image_row(pixels: &[f32], [_, c, h, w]: [usize; 4], n: usize, y: usize, to: &mut [f32]) {
    for channel in 0..c {
        let row = &pixels[((n * c + channel) * h + y) * w..][..w];
        if c == 1 {
            to.copy_from_slice(row);
        } else {
            to[channel..].iter_mut().step_by(c).zip(row).for_each(|(to, &pixel)| *to = pixel);
        }
    }
}

impl Network for SmallCnn {
    const NAME: &'static str = NAME;

    fn layout(in_channels: usize) -> Vec<Parameter> {
        layout(in_channels)
    }

    fn forward(&mut self, p: &[Vec<f32>], pixels: &[f32], shape: [usize; 4]) -> Result<Vec<f32>> {
        let [n, _, h, w] = shape;
        let [first, second] = geometries(shape);
        self.hidden.resize(n * h * w * first.c_out, 0.0);
        let rows = |n: usize, y: usize, to: &mut [f32]| image_row(pixels, shape, n, y, to);
        convolution::forward(&first, &Packed::forward(&first, &p[0]), &p[1], true, rows, &mut self.hidden);
        self.means = self.second.forward(&second, &self.hidden, &p[2], &p[3]);
        let mut out = vec![0.0; n * EMBEDDING];
        linear(n, second.c_out, EMBEDDING).forward(&self.means, &p[4], &p[5], false, &mut out)?;
        Ok(out)
    }

    fn backward(
        &mut self,
        p: &[Vec<f32>],
        pixels: &[f32],
        shape: [usize; 4],
        gradient: &[f32],
    ) -> Result<Vec<Vec<f32>>> {
        let Self { hidden, hidden_gradient, second: layer, means } = self;
        let [n, ..] = shape;
        let [first, second] = geometries(shape);

        let mut means_gradient = vec![0.0; means.len()];
        let last = linear(n, second.c_out, EMBEDDING);
        let (fc, fc_bias) = last.backward(means, &p[4], gradient, Some(&mut means_gradient))?;

        hidden_gradient.resize(hidden.len(), 0.0);
        let (conv2, conv2_bias) = layer.backward(&second, hidden, &p[2], &means_gradient, hidden_gradient);

        let (row, step) = (first.width * first.c_out, first.reversed().c_in);
        let rows = |n: usize, y: usize, to: &mut [f32]| image_row(pixels, shape, n, y, to);
        let gradient_rows = |n: usize, y: usize, to: &mut [f32]| {
            let start = (n * first.height + y) * row;
            let [gradient, activations] = [&*hidden_gradient, &*hidden]
                .map(|array| array[start..start + row].chunks_exact(first.c_out));
            for ((to, gradient), activations) in to.chunks_exact_mut(step).zip(gradient).zip(activations) {
                for ((to, &gradient), &activation) in to.iter_mut().zip(gradient).zip(activations) {
                    *to = if activation > 0.0 { gradient } else { 0.0 };
                }
            }
        };
        // Nobody needs the gradient of the pixels.
        let (conv1, conv1_bias) = convolution::backward(&first, n, &p[0], rows, gradient_rows, None);
        Ok(vec![conv1, conv1_bias, conv2, conv2_bias, fc, fc_bias])
    }
}
