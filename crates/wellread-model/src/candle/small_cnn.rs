//! The small embedding CNN that upstream's end-to-end loop feeds.
//!
//! ```text
//! N x C x H x W ─▶ Conv 3x3 C→32 ─▶ ReLU ─▶ Conv 3x3 32→64 ─▶ ReLU ─▶ mean over the image ─▶ Linear 64→128
//! ```
//!
//! 27,136 parameters for one channel; both convolutions keep the size (padding 1). The network averages over the image,
//! as its target does (`trained`), so it can learn this target and the loss falls.

use super::conv;
use super::trained::{Parameter, Trained};
use crate::{Model, ModelEntry, ModelOptions, Output, Result, StateDict};
use candle_core::Tensor;

/// The entry in the [registry](crate::registry).
pub static MODEL: ModelEntry = ModelEntry {
    name: "small-cnn",
    about: "two 3x3 convolutions, global mean and a linear layer: a 128-number embedding (candle)",
    create: |options| Ok(Box::new(SmallCnn::new(options)?)),
};

const FEATURES: [usize; 2] = [32, 64];
const KERNEL: usize = 3;
const EMBEDDING: usize = 128;

/// The model; see the [module](self).
pub struct SmallCnn(Trained);

impl SmallCnn {
    /// The model with initial weights drawn from the seed.
    ///
    /// # Errors
    /// A device or a number of threads that cannot be had.
    pub fn new(options: &ModelOptions) -> Result<Self> {
        Ok(Self(Trained::new(options, layout(options.in_channels))?))
    }

    fn input(&self, pixels: &[f32], shape: [usize; 4]) -> Result<Tensor> {
        self.0.check(pixels, shape)?;
        let tensor = Tensor::from_slice(pixels, shape.as_slice(), &self.0.runtime.device)?;
        // Channels last, by strides alone.
        Ok(tensor.permute((0, 2, 3, 1))?)
    }
}

fn layout(in_channels: usize) -> Vec<Parameter> {
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

/// The network; `p` in the order of [`layout`].
fn network(x: &Tensor, p: &[Tensor]) -> candle_core::Result<Tensor> {
    let x = conv::conv(x, &p[0], &p[1], true)?;
    let x = conv::conv_relu_mean(&x, &p[2], &p[3])?;
    x.matmul(&p[4].t()?)?.broadcast_add(&p[5])
}

impl Model for SmallCnn {
    fn name(&self) -> &str {
        MODEL.name
    }

    fn backend(&self) -> &str {
        &self.0.runtime.name
    }

    fn parameters(&self) -> usize {
        self.0.count()
    }

    fn forward(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<Output> {
        let x = self.input(pixels, shape)?;
        self.0.forward(|p| network(&x, p))
    }

    fn train_step(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<f32> {
        let x = self.input(pixels, shape)?;
        self.0.train_step(pixels, shape, |p| network(&x, p))
    }

    fn state_dict(&self) -> Result<StateDict> {
        self.0.state_dict()
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        self.0.load_state_dict(state)
    }
}
