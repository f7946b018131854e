//! What the models of the `loop` benchmark have in common: parameters drawn from a seed, a target, steps of SGD.
//!
//! A model is a function of its parameters and a batch. It is trained by plain SGD with learning rate 0.01 on the mean
//! squared error against a target that the batch itself decides: the mean of each channel, times a fixed matrix of
//! uniform numbers in ±1 drawn from the seed. The same batches therefore give the same losses.

use super::runtime::Runtime;
use crate::init::{Uniform, default_weights};
use crate::model::check_batch;
use crate::{Error, ModelOptions, NamedArray, Output, Result, StateDict};
use candle_core::{Tensor, Var};
use rayon::prelude::*;
use wellread_trace::{Kind, span};

const LEARNING_RATE: f64 = 0.01;
/// Stream of the seed from which the target's matrix is drawn; the parameters have streams 0, 1, ….
const TARGET_STREAM: u64 = 1000;
/// Sums that are taken side by side, so that the compiler makes vectors of them.
const LANES: usize = 16;

/// Name and shape of a parameter, as PyTorch has them.
pub(super) type Parameter = (&'static str, Vec<usize>);

/// Parameters of a model, in pairs of weights and bias, and what it is to learn.
pub(super) struct Trained {
    pub runtime: Runtime,
    in_channels: usize,
    layout: Vec<Parameter>,
    /// Convolution weights as `out x K x K x in`, those of linear layers as `out x in`.
    parameters: Vec<Var>,
    /// `in_channels x width`, from channel means to the target.
    target: Vec<f32>,
    /// Numbers that the model gives for an image.
    width: usize,
}

impl Trained {
    /// Initial weights drawn from the seed: uniform in ±1/sqrt(fan in), a stream for each parameter. The last parameter
    /// is the bias of the output.
    ///
    /// # Errors
    /// A device or a number of threads that cannot be had.
    pub fn new(options: &ModelOptions, layout: Vec<Parameter>) -> Result<Self> {
        let runtime = Runtime::new(options)?;
        let width = layout.last().map_or(1, |(_, shape)| shape.iter().product());
        let mut uniform = Uniform::new(options.seed, TARGET_STREAM);
        let target = (0..options.in_channels * width).map(|_| uniform.next_within(1.0)).collect();
        let mut parameters = Vec::with_capacity(layout.len());
        for (i, (_, shape)) in layout.iter().enumerate() {
            // A bias has the fan-in of the weights before it.
            let fan_in = layout[i - i % 2].1[1..].iter().product();
            let values = default_weights(options.seed, i as u64, shape.iter().product(), fan_in);
            parameters.push(Var::from_tensor(&to_device(&values, shape, &runtime)?)?);
        }
        Ok(Self { runtime, in_channels: options.in_channels, layout, parameters, target, width })
    }

    /// Number of trainable numbers.
    pub fn count(&self) -> usize {
        self.parameters.iter().map(|p| p.elem_count()).sum()
    }

    /// Checks that a batch has the memory that its shape says and the channels that the model takes.
    ///
    /// # Errors
    /// One that has not.
    pub fn check(&self, pixels: &[f32], shape: [usize; 4]) -> Result<()> {
        check_batch(pixels, shape, self.in_channels)
    }

    /// A row per image by `network`, which is given the parameters in the order of the layout.
    ///
    /// # Errors
    /// A failure of the backend.
    pub fn forward(
        &self,
        network: impl FnOnce(&[Tensor]) -> candle_core::Result<Tensor> + Send,
    ) -> Result<Output> {
        // Detached, so that candle keeps nothing for a gradient.
        let parameters: Vec<Tensor> = self.parameters.iter().map(Var::as_detached_tensor).collect();
        let values = self.runtime.pool.install(|| {
            let _forward = span(Kind::Forward);
            network(&parameters)?.flatten_all()?.to_vec1::<f32>()
        })?;
        Output::new(values, self.width)
    }

    /// One step of SGD; the loss before it.
    ///
    /// # Errors
    /// A failure of the backend, and a loss that is not finite.
    pub fn train_step(
        &self,
        pixels: &[f32],
        shape: [usize; 4],
        network: impl FnOnce(&[Tensor]) -> candle_core::Result<Tensor> + Send,
    ) -> Result<f32> {
        let loss = self.runtime.pool.install(|| {
            let target = self.target(pixels, shape)?;
            let tracked: Vec<Tensor> = self.parameters.iter().map(|p| p.as_tensor().clone()).collect();
            let forward = span(Kind::Forward);
            let loss = (network(&tracked)? - target)?.sqr()?.mean_all()?;
            let value = loss.to_scalar::<f32>()?;
            drop(forward);
            if !value.is_finite() {
                return Ok(value);
            }
            let backward = span(Kind::Backward);
            let gradients = loss.backward()?;
            drop(backward);
            let _optimiser = span(Kind::Optimiser);
            for parameter in &self.parameters {
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

    /// Channel means times the target matrix, `N x width`.
    fn target(&self, pixels: &[f32], [n, c, h, w]: [usize; 4]) -> candle_core::Result<Tensor> {
        let mut target = vec![0.0f32; n * self.width];
        let images = target.par_chunks_exact_mut(self.width).zip(pixels.par_chunks_exact(c * h * w));
        images.for_each(|(row, image)| {
            for (plane, matrix) in image.chunks_exact(h * w).zip(self.target.chunks_exact(self.width)) {
                let mean = mean(plane, w);
                row.iter_mut().zip(matrix).for_each(|(t, &m)| *t += mean * m);
            }
        });
        Tensor::from_vec(target, (n, self.width), &self.runtime.device)
    }

    /// All parameters, with PyTorch's names and memory layouts.
    ///
    /// # Errors
    /// A failure of the backend.
    pub fn state_dict(&self) -> Result<StateDict> {
        let mut state = StateDict::new();
        for (parameter, (name, shape)) in self.parameters.iter().zip(&self.layout) {
            let tensor = parameter.as_detached_tensor();
            let tensor = if shape.len() == 4 { tensor.permute((0, 3, 1, 2))? } else { tensor };
            let values = tensor.flatten_all()?.to_vec1()?;
            state.push(NamedArray { name: (*name).to_owned(), shape: shape.clone(), values });
        }
        Ok(state)
    }

    /// Replaces all parameters.
    ///
    /// # Errors
    /// A missing, surplus or misshapen parameter; nothing is changed then.
    pub fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let mut tensors = Vec::with_capacity(self.layout.len());
        for (name, shape) in &self.layout {
            let Some(array) = state.iter().find(|a| a.name == *name) else {
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
        let known = |name: &str| self.layout.iter().any(|(known, _)| *known == name);
        if let Some(surplus) = state.iter().find(|a| !known(&a.name)) {
            return Err(Error::new(format_args!("the model has no parameter {}", surplus.name)));
        }
        for (parameter, tensor) in self.parameters.iter().zip(&tensors) {
            parameter.set(tensor)?;
        }
        Ok(())
    }
}

/// A parameter from PyTorch's layout to ours.
fn to_device(values: &[f32], shape: &[usize], runtime: &Runtime) -> candle_core::Result<Tensor> {
    let tensor = Tensor::from_slice(values, shape, &runtime.device)?;
    if shape.len() == 4 { tensor.permute((0, 2, 3, 1))?.contiguous() } else { Ok(tensor) }
}

/// The mean of a plane with rows of `w` pixels: sums of rows in single precision, of the image in double, which is fast
/// and exact enough.
fn mean(plane: &[f32], w: usize) -> f32 {
    let sum: f64 = plane.chunks_exact(w).map(|row| f64::from(sum(row))).sum();
    (sum / plane.len() as f64) as f32
}

/// The sum of some numbers, in [`LANES`] parts.
pub(super) fn sum(values: &[f32]) -> f32 {
    let (groups, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for group in groups {
        lanes.iter_mut().zip(group).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
}
