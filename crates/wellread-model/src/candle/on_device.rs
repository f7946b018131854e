//! The parts that the models of the `loop` benchmark share on a device of candle's: parameters there, steps of SGD
//! by candle's automatic differentiation. Initial weights, target, loss and states are those of [`crate::training`].

use super::runtime::Runtime;
use crate::model::check_batch;
use crate::training::parameters::{Parameter, from_state, initial, output_width, to_state};
use crate::training::target::{LEARNING_RATE, Target, diverged};
use crate::{Model, ModelOptions, Output, Result, StateDict};
use candle_core::{Device, Tensor, Var};
use wellread_trace::{Kind, span};

/// The definition of a model.
pub(super) struct Definition {
    /// Name in the [registry](crate::registry).
    pub name: &'static str,
    /// Parameters for images of that many channels.
    pub layout: fn(usize) -> Vec<Parameter>,
    /// The part of a batch, `N x C x H x W`, that goes to the device.
    pub input: fn(&[f32], [usize; 4], &Device) -> candle_core::Result<Tensor>,
    /// A row of numbers per image, given the parameters in the order of the layout.
    pub network: fn(&Tensor, &[Tensor]) -> candle_core::Result<Tensor>,
}

/// A model on its device.
pub(super) struct OnDevice {
    definition: &'static Definition,
    runtime: Runtime,
    in_channels: usize,
    layout: Vec<Parameter>,
    parameters: Vec<Var>,
    target: Target,
    width: usize,
}

impl OnDevice {
    /// Initial weights drawn from the seed.
    ///
    /// # Errors
    /// A device or a number of threads that cannot be had.
    pub fn new(definition: &'static Definition, options: &ModelOptions) -> Result<Self> {
        let runtime = Runtime::new(options)?;
        let layout = (definition.layout)(options.in_channels);
        let mut parameters = Vec::with_capacity(layout.len());
        for (values, (_, shape)) in initial(&layout, options.seed).into_iter().zip(&layout) {
            let tensor = Tensor::from_vec(values, shape.as_slice(), &runtime.device)?;
            parameters.push(Var::from_tensor(&tensor)?);
        }
        let width = output_width(&layout);
        let target = Target::new(options.seed, options.in_channels, width);
        Ok(Self { definition, runtime, in_channels: options.in_channels, layout, parameters, target, width })
    }

    fn step(&self, pixels: &[f32], shape: [usize; 4]) -> candle_core::Result<f32> {
        let device = &self.runtime.device;
        let target = Tensor::from_vec(self.target.of(pixels, shape), (shape[0], self.width), device)?;
        let tracked: Vec<Tensor> = self.parameters.iter().map(|p| p.as_tensor().clone()).collect();
        let forward = span(Kind::Forward);
        let input = (self.definition.input)(pixels, shape, device)?;
        let loss = ((self.definition.network)(&input, &tracked)? - target)?.sqr()?.mean_all()?;
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
                let step = (gradient * f64::from(LEARNING_RATE))?;
                parameter.set(&(parameter.as_tensor() - step)?)?;
            }
        }
        Ok(value)
    }
}

impl Model for OnDevice {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn backend(&self) -> &str {
        &self.runtime.name
    }

    fn parameters(&self) -> usize {
        self.parameters.iter().map(|p| p.elem_count()).sum()
    }

    fn forward(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<Output> {
        check_batch(pixels, shape, self.in_channels)?;
        // Detached, so that candle keeps nothing for a gradient.
        let parameters: Vec<Tensor> = self.parameters.iter().map(Var::as_detached_tensor).collect();
        let (definition, device) = (self.definition, &self.runtime.device);
        let values = self.runtime.pool.install(|| {
            let _forward = span(Kind::Forward);
            let input = (definition.input)(pixels, shape, device)?;
            (definition.network)(&input, &parameters)?.flatten_all()?.to_vec1::<f32>()
        })?;
        Output::new(values, self.width)
    }

    fn train_step(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<f32> {
        check_batch(pixels, shape, self.in_channels)?;
        let loss = self.runtime.pool.install(|| self.step(pixels, shape))?;
        if loss.is_finite() { Ok(loss) } else { Err(diverged(loss)) }
    }

    fn state_dict(&self) -> Result<StateDict> {
        let values = |p: &Var| p.as_detached_tensor().flatten_all()?.to_vec1::<f32>();
        let values = self.parameters.iter().map(values).collect::<candle_core::Result<Vec<_>>>()?;
        Ok(to_state(&self.layout, values))
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let mut tensors = Vec::with_capacity(self.layout.len());
        for (values, (_, shape)) in from_state(&self.layout, state)?.into_iter().zip(&self.layout) {
            tensors.push(Tensor::from_slice(values, shape.as_slice(), &self.runtime.device)?);
        }
        for (parameter, tensor) in self.parameters.iter().zip(&tensors) {
            parameter.set(tensor)?;
        }
        Ok(())
    }
}
