//! The parts that the models of the `loop` benchmark share on the CPU: threads, parameters, steps of SGD,
//! states.

use super::network::Network;
use super::parameters::{
    Parameter, channels_first, channels_last, from_state, initial, output_width, to_state,
};
use super::target::{LEARNING_RATE, Target, diverged, mean_squared_error};
use crate::model::check_batch;
use crate::threads::{own_kernels, thread_pool};
use crate::{Model, ModelOptions, Output, Result, StateDict};
use rayon::ThreadPool;
use wellread_trace::{Kind, span};

/// A network with its parameters, trained on the [target](super::target) in threads of its own.
pub(super) struct Trained<N> {
    network: N,
    pool: ThreadPool,
    backend: String,
    in_channels: usize,
    layout: Vec<Parameter>,
    /// As the [network](Network) wants them.
    parameters: Vec<Vec<f32>>,
    target: Target,
}

impl<N: Network> Trained<N> {
    /// Initial weights drawn from the seed.
    ///
    /// # Errors
    /// Threads that cannot be started.
    pub fn new(options: &ModelOptions) -> Result<Self> {
        let pool = thread_pool(options.threads)?;
        let layout = N::layout(options.in_channels);
        let parameters = for_kernels(&layout, &initial(&layout, options.seed));
        Ok(Self {
            network: N::default(),
            backend: own_kernels(&pool),
            pool,
            in_channels: options.in_channels,
            parameters,
            target: Target::new(options.seed, options.in_channels, output_width(&layout)),
            layout,
        })
    }
}

/// Parameters from PyTorch's layouts to those of the kernels.
fn for_kernels(layout: &[Parameter], values: &[impl AsRef<[f32]>]) -> Vec<Vec<f32>> {
    layout.iter().zip(values).map(|((_, shape), values)| channels_last(values.as_ref(), shape)).collect()
}

impl<N: Network> Model for Trained<N> {
    fn name(&self) -> &str {
        N::NAME
    }

    fn backend(&self) -> &str {
        &self.backend
    }

    fn parameters(&self) -> usize {
        self.parameters.iter().map(Vec::len).sum()
    }

    fn forward(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<Output> {
        check_batch(pixels, shape, self.in_channels)?;
        let Self { network, pool, parameters, layout, .. } = self;
        let values = pool.install(|| {
            let _forward = span(Kind::Forward);
            network.forward(parameters, pixels, shape)
        })?;
        Output::new(values, output_width(layout))
    }

    fn train_step(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<f32> {
        check_batch(pixels, shape, self.in_channels)?;
        let Self { network, pool, parameters, target, .. } = self;
        pool.install(|| {
            let target = target.of(pixels, shape);
            let forward = span(Kind::Forward);
            let mut gradient = network.forward(parameters, pixels, shape)?;
            let loss = mean_squared_error(&mut gradient, &target);
            drop(forward);
            if !loss.is_finite() {
                return Err(diverged(loss));
            }
            let backward = span(Kind::Backward);
            let gradients = network.backward(parameters, pixels, shape, &gradient)?;
            drop(backward);
            let _optimiser = span(Kind::Optimiser);
            for (parameter, gradient) in parameters.iter_mut().zip(&gradients) {
                parameter.iter_mut().zip(gradient).for_each(|(value, g)| *value -= LEARNING_RATE * g);
            }
            Ok(loss)
        })
    }

    fn state_dict(&self) -> Result<StateDict> {
        let values = self.parameters.iter().zip(&self.layout);
        Ok(to_state(&self.layout, values.map(|(values, (_, shape))| channels_first(values, shape))))
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        self.parameters = for_kernels(&self.layout, &from_state(&self.layout, state)?);
        Ok(())
    }
}
