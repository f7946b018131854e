//! The small embedding CNN that upstream's end-to-end loop feeds.
//!
//! ```text
//! N x C x H x W ─▶ Conv 3x3 C→32 ─▶ ReLU ─▶ Conv 3x3 32→64 ─▶ ReLU ─▶ mean over the image ─▶ Linear 64→128
//! ```
//!
//! 27,136 parameters for one channel; both convolutions keep the size (padding 1). A training step is plain SGD
//! with learning rate 0.01 on the mean squared error against a target that the batch itself decides: the mean
//! of each channel, times a fixed matrix of uniform numbers in ±1 drawn from the seed. The network averages
//! over the image too, so it can learn this target and the loss falls.

use super::{Runtime, conv};
use crate::init::{Uniform, default_weights};
use crate::model::check_batch;
use crate::{Error, Model, ModelEntry, ModelOptions, NamedArray, Output, Result, StateDict};
use candle_core::{Tensor, Var};
use wellread_trace::{Kind, span};

/// The entry in the [registry](crate::registry).
pub static MODEL: ModelEntry = ModelEntry {
    name: "small-cnn",
    about: "two 3x3 convolutions, global mean and a linear layer: a 128-number embedding (candle)",
    create: |options| Ok(Box::new(SmallCnn::new(options)?)),
};

const FEATURES: [usize; 2] = [32, 64];
const KERNEL: usize = 3;
const EMBEDDING: usize = 128;
const LEARNING_RATE: f64 = 0.01;
/// Stream of the seed from which the target's matrix is drawn; the parameters have streams 0 to 5.
const TARGET_STREAM: u64 = 1000;

/// Names in the order of [`SmallCnn::parameters`].
const NAMES: [&str; 6] = ["conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc.weight", "fc.bias"];

/// The model; see the [module](self).
pub struct SmallCnn {
    runtime: Runtime,
    in_channels: usize,
    /// Convolution weights as `out x K x K x in`, the linear layer's as `out x in`.
    parameters: [Var; 6],
    /// `in_channels x EMBEDDING`, from channel means to the target.
    target: Vec<f32>,
}

impl SmallCnn {
    /// The model with initial weights drawn from the seed.
    ///
    /// # Errors
    /// A device or a number of threads that cannot be had.
    pub fn new(options: &ModelOptions) -> Result<Self> {
        let runtime = Runtime::new(options)?;
        let mut uniform = Uniform::new(options.seed, TARGET_STREAM);
        let target = (0..options.in_channels * EMBEDDING).map(|_| uniform.next_within(1.0)).collect();
        let shapes = shapes(options.in_channels);
        let mut parameters = Vec::with_capacity(shapes.len());
        for (i, shape) in shapes.iter().enumerate() {
            // A bias has the fan-in of the weights before it.
            let fan_in = shapes[i - i % 2][1..].iter().product();
            let values = default_weights(options.seed, i as u64, shape.iter().product(), fan_in);
            parameters.push(Var::from_tensor(&to_device(&values, shape, &runtime)?)?);
        }
        let parameters = parameters.try_into().map_err(|_| Error::new("the small CNN has six parameters"))?;
        Ok(Self { runtime, in_channels: options.in_channels, parameters, target })
    }

    fn input(&self, pixels: &[f32], shape: [usize; 4]) -> Result<Tensor> {
        check_batch(pixels, shape, self.in_channels)?;
        let tensor = Tensor::from_slice(pixels, shape.as_slice(), &self.runtime.device)?;
        // Channels last, by strides alone.
        Ok(tensor.permute((0, 2, 3, 1))?)
    }

    /// Channel means times the target matrix, `N x EMBEDDING`.
    fn target(&self, pixels: &[f32], [n, c, h, w]: [usize; 4]) -> Result<Tensor> {
        let mut target = vec![0.0f32; n * EMBEDDING];
        for (i, plane) in pixels.chunks_exact(h * w).enumerate() {
            // Sums of rows in single precision, of the image in double: fast and exact enough.
            let sum: f64 = plane.chunks_exact(w).map(|row| f64::from(row.iter().sum::<f32>())).sum();
            let mean = (sum / (h * w) as f64) as f32;
            let matrix = &self.target[i % c * EMBEDDING..][..EMBEDDING];
            let row = &mut target[i / c * EMBEDDING..][..EMBEDDING];
            row.iter_mut().zip(matrix).for_each(|(t, &m)| *t += mean * m);
        }
        Ok(Tensor::from_vec(target, (n, EMBEDDING), &self.runtime.device)?)
    }
}

/// Shapes in PyTorch's order of axes.
fn shapes(in_channels: usize) -> [Vec<usize>; 6] {
    let [first, second] = FEATURES;
    [
        vec![first, in_channels, KERNEL, KERNEL],
        vec![first],
        vec![second, first, KERNEL, KERNEL],
        vec![second],
        vec![EMBEDDING, second],
        vec![EMBEDDING],
    ]
}

/// A parameter from PyTorch's layout to ours.
fn to_device(values: &[f32], shape: &[usize], runtime: &Runtime) -> candle_core::Result<Tensor> {
    let tensor = Tensor::from_slice(values, shape, &runtime.device)?;
    if shape.len() == 4 { tensor.permute((0, 2, 3, 1))?.contiguous() } else { Ok(tensor) }
}

/// The network; `p` in the order of [`NAMES`].
fn network(x: &Tensor, p: &[Tensor; 6]) -> candle_core::Result<Tensor> {
    let x = conv::conv(x, &p[0], &p[1], true)?;
    let x = conv::conv_relu_mean(&x, &p[2], &p[3])?;
    x.matmul(&p[4].t()?)?.broadcast_add(&p[5])
}

impl Model for SmallCnn {
    fn name(&self) -> &str {
        MODEL.name
    }

    fn backend(&self) -> &str {
        &self.runtime.name
    }

    fn parameters(&self) -> usize {
        self.parameters.iter().map(|p| p.elem_count()).sum()
    }

    fn forward(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<Output> {
        let x = self.input(pixels, shape)?;
        // Detached, so that candle keeps nothing for a gradient.
        let parameters = self.parameters.each_ref().map(Var::as_detached_tensor);
        let values = self.runtime.pool.install(|| {
            let _forward = span(Kind::Forward);
            network(&x, &parameters)?.flatten_all()?.to_vec1::<f32>()
        })?;
        Output::new(values, EMBEDDING)
    }

    fn train_step(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<f32> {
        let x = self.input(pixels, shape)?;
        let target = self.target(pixels, shape)?;
        let parameters = &self.parameters;
        let loss = self.runtime.pool.install(|| {
            let tracked = parameters.each_ref().map(|p| p.as_tensor().clone());
            let forward = span(Kind::Forward);
            let loss = (network(&x, &tracked)? - target)?.sqr()?.mean_all()?;
            let value = loss.to_scalar::<f32>()?;
            drop(forward);
            if !value.is_finite() {
                return Ok(value);
            }
            let backward = span(Kind::Backward);
            let gradients = loss.backward()?;
            drop(backward);
            let _optimiser = span(Kind::Optimiser);
            for parameter in parameters {
                if let Some(gradient) = gradients.get(parameter) {
                    parameter.set(&(parameter.as_tensor() - (gradient * LEARNING_RATE)?)?)?;
                }
            }
            candle_core::Result::Ok(value)
        })?;
        if loss.is_finite() {
            return Ok(loss);
        }
        Err(Error::new(format_args!("the training step diverged: the loss is {loss}"))
            .hint("scale the pixels to [0, 1], which is the loader's default"))
    }

    fn state_dict(&self) -> Result<StateDict> {
        let shapes = shapes(self.in_channels);
        let mut state = StateDict::new();
        for ((parameter, shape), name) in self.parameters.iter().zip(shapes).zip(NAMES) {
            let tensor = parameter.as_detached_tensor();
            let tensor = if shape.len() == 4 { tensor.permute((0, 3, 1, 2))? } else { tensor };
            state.push(NamedArray { name: name.to_owned(), shape, values: tensor.flatten_all()?.to_vec1()? });
        }
        Ok(state)
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let mut tensors = Vec::with_capacity(NAMES.len());
        for (shape, name) in shapes(self.in_channels).iter().zip(NAMES) {
            let Some(array) = state.iter().find(|a| a.name == name) else {
                return Err(Error::new(format_args!("the parameter {name} is missing")));
            };
            if &array.shape != shape || array.values.len() != shape.iter().product::<usize>() {
                return Err(Error::new(format_args!(
                    "the parameter {name} has shape {:?} and {} values; the model wants {shape:?}",
                    array.shape,
                    array.values.len()
                )));
            }
            tensors.push(to_device(&array.values, shape, &self.runtime)?);
        }
        if let Some(surplus) = state.iter().find(|a| !NAMES.contains(&a.name.as_str())) {
            return Err(Error::new(format_args!("the model has no parameter {}", surplus.name)));
        }
        for (parameter, tensor) in self.parameters.iter().zip(&tensors) {
            parameter.set(tensor)?;
        }
        Ok(())
    }
}
