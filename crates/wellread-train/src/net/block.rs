//! Convolution, normalisation and ReLU as one: the part that a U-Net is made of.

use super::norm::{self, EPSILON, NormKind, Statistics};
use super::{Param, Tensor};
use anyhow::Result;
use std::sync::Arc;
use wellread_model::convolution::Convolution;

/// How fast running statistics follow those of batches, as in PyTorch.
const MOMENTUM: f32 = 0.1;

/// Sizes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSpec {
    /// Channels it takes.
    pub c_in: usize,
    /// Channels it gives.
    pub c_out: usize,
    /// Rows and columns of the kernel, odd.
    pub kernel: usize,
    /// Whether the kernel is as deep as it is wide.
    pub planes: bool,
    /// Normalisation after the convolution.
    pub norm: NormKind,
    /// Whether a ReLU follows. Normalisation always has one.
    pub relu: bool,
}

/// A block with its parameters.
#[derive(Clone, Debug)]
pub struct Block {
    spec: BlockSpec,
    /// Convolution's weights and bias. With normalisation, also its scale and shift; with that of batches, also running
    /// mean and variance.
    params: Vec<Param>,
}

/// The values that the backward pass needs.
#[derive(Debug)]
pub struct Tape {
    input: Arc<Tensor>,
    /// The normalised values, and their statistics.
    normalised: Option<(Tensor, Statistics)>,
    output: Arc<Tensor>,
}

const WEIGHT: usize = 0;
const BIAS: usize = 1;
const SCALE: usize = 2;
const SHIFT: usize = 3;
const RUNNING_MEAN: usize = 4;
const RUNNING_VARIANCE: usize = 5;

impl Block {
    /// A block called `name` whose weights are drawn from stream `seed[1]` of seed `seed[0]`.
    pub fn new(name: &str, spec: BlockSpec, seed: [u64; 2]) -> Self {
        let BlockSpec { c_in, c_out, kernel, planes, .. } = spec;
        let sizes = [c_out, c_in, kernel, if planes { kernel } else { 1 }];
        let channels = |part: &str, value: f32, learnt| {
            Param::channels(format!("{name}.{part}"), vec![value; c_out], learnt)
        };
        let mut params = vec![
            Param::kernel(format!("{name}.conv.weight"), sizes, planes, seed),
            channels("conv.bias", 0.0, true),
        ];
        if spec.norm != NormKind::None {
            params.extend([channels("norm.weight", 1.0, true), channels("norm.bias", 0.0, true)]);
        }
        if spec.norm == NormKind::Batch {
            params.extend([
                channels("norm.running_mean", 0.0, false),
                channels("norm.running_var", 1.0, false),
            ]);
        }
        Self { spec, params }
    }

    /// Channels that the block gives.
    pub const fn c_out(&self) -> usize {
        self.spec.c_out
    }

    /// All parameters, running statistics included.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The same, to be changed.
    pub fn params_mut(&mut self) -> &mut [Param] {
        &mut self.params
    }

    fn convolution(&self, x: &Tensor) -> Convolution {
        let [_, depth, height, width, c_in] = x.shape;
        let BlockSpec { c_out, kernel, planes, .. } = self.spec;
        Convolution {
            depth,
            height,
            width,
            c_in,
            c_out,
            kernel,
            kernel_depth: if planes { kernel } else { 1 },
        }
    }

    fn convolve(&self, x: &Tensor, weights: &[f32], bias: &[f32], relu: bool) -> Result<Tensor> {
        let [n, d, h, w, _] = x.shape;
        let mut y = Tensor::zeros([n, d, h, w, self.spec.c_out]);
        self.convolution(x).forward(&x.data, weights, bias, relu, &mut y.data)?;
        Ok(y)
    }

    /// The result for training, and the values that [`Self::backward`] needs. Running statistics follow.
    ///
    /// # Errors
    /// Another number of channels than the block's.
    pub fn train(&mut self, x: Arc<Tensor>) -> Result<Tape> {
        let plain = self.spec.norm == NormKind::None;
        let relu = self.spec.relu && plain;
        let y = self.convolve(&x, &self.params[WEIGHT].values, &self.params[BIAS].values, relu)?;
        if plain {
            return Ok(Tape { input: x, normalised: None, output: Arc::new(y) });
        }
        let groups = if self.spec.norm == NormKind::Batch { 1 } else { y.shape[0] };
        let statistics = norm::statistics(&y, groups);
        if self.spec.norm == NormKind::Batch {
            let pixels = (y.data.len() / y.channels()) as f32;
            let unbiased = pixels / (pixels - 1.0).max(1.0);
            let mut follow = |index: usize, values: &[f32], factor: f32| {
                for (running, &value) in self.params[index].values.iter_mut().zip(values) {
                    *running += MOMENTUM * (value * factor - *running);
                }
            };
            follow(RUNNING_MEAN, &statistics.mean, 1.0);
            follow(RUNNING_VARIANCE, &statistics.variance, unbiased);
        }
        let output = norm::forward(&y, &statistics, &self.params[SCALE].values, &self.params[SHIFT].values);
        Ok(Tape { input: x, normalised: Some((y, statistics)), output: Arc::new(output) })
    }

    /// The result for inference: batch normalisation by running statistics, folded into the weights.
    ///
    /// # Errors
    /// As [`Self::train`].
    pub fn infer(&self, x: &Tensor) -> Result<Tensor> {
        let [weights, bias] = [&self.params[WEIGHT].values, &self.params[BIAS].values];
        match self.spec.norm {
            NormKind::None => self.convolve(x, weights, bias, self.spec.relu),
            NormKind::Instance => {
                let y = self.convolve(x, weights, bias, false)?;
                let statistics = norm::statistics(&y, y.shape[0]);
                Ok(norm::forward(&y, &statistics, &self.params[SCALE].values, &self.params[SHIFT].values))
            }
            NormKind::Batch => {
                let [scale, shift, mean, variance] =
                    [SCALE, SHIFT, RUNNING_MEAN, RUNNING_VARIANCE].map(|i| &self.params[i].values);
                let factor: Vec<f32> =
                    scale.iter().zip(variance).map(|(scale, v)| scale / (v + EPSILON).sqrt()).collect();
                let taps = weights.len() / self.spec.c_out;
                let weights: Vec<f32> =
                    weights.iter().enumerate().map(|(i, weight)| weight * factor[i / taps]).collect();
                let bias: Vec<f32> =
                    (0..bias.len()).map(|c| (bias[c] - mean[c]) * factor[c] + shift[c]).collect();
                self.convolve(x, &weights, &bias, true)
            }
        }
    }

    /// Adds to the gradients of the parameters, given that of the result, and returns that of the input if `wanted`.
    ///
    /// # Errors
    /// A gradient of another shape than the result's.
    pub fn backward(&mut self, tape: &Tape, mut gradient: Tensor, wanted: bool) -> Result<Option<Tensor>> {
        if let Some((y, statistics)) = &tape.normalised {
            let scale = &self.params[SCALE].values;
            let (d_scale, d_shift) = norm::backward(y, statistics, scale, &tape.output, &mut gradient);
            add(&mut self.params[SCALE], d_scale);
            add(&mut self.params[SHIFT], d_shift);
        } else if self.spec.relu {
            norm::relu_backward(&tape.output, &mut gradient);
        }
        let mut of_input = wanted.then(|| Tensor::zeros(tape.input.shape));
        let (d_weights, d_bias) = self.convolution(&tape.input).backward(
            &tape.input.data,
            &self.params[WEIGHT].values,
            &gradient.data,
            of_input.as_mut().map(|tensor| &mut tensor.data[..]),
        )?;
        add(&mut self.params[WEIGHT], d_weights);
        add(&mut self.params[BIAS], d_bias);
        Ok(of_input)
    }
}

impl Tape {
    /// The block's result.
    pub fn output(&self) -> Arc<Tensor> {
        Arc::clone(&self.output)
    }
}

fn add(param: &mut Param, gradient: Vec<f32>) {
    if param.gradient.is_empty() {
        param.gradient = gradient;
    } else {
        param.gradient.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
    }
}
