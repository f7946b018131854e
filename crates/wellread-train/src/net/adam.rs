//! Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019), as PyTorch's `AdamW`.

use super::Network;
use rayon::prelude::*;

const BETA: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;

/// The optimiser's state: the running mean of each gradient and of its square.
#[derive(Clone, Debug, Default)]
pub struct Adam {
    /// Steps done.
    pub steps: u64,
    /// For each learnt parameter, in the network's order: means of gradients, means of their squares.
    pub moments: Vec<[Vec<f32>; 2]>,
    /// Weights shrink by this share of the learning rate each step. Only kernels do; biases and scales are left alone.
    pub weight_decay: f64,
}

impl Adam {
    /// No step done.
    pub fn new(net: &impl Network, weight_decay: f64) -> Self {
        let learnt = net.params().filter(|p| p.learnt);
        let moments = learnt.map(|p| [vec![0.0; p.values.len()], vec![0.0; p.values.len()]]).collect();
        Self { steps: 0, moments, weight_decay }
    }

    /// Moves the parameters against their gradients and sets these back.
    pub fn step(&mut self, net: &mut impl Network, rate: f64) {
        self.steps += 1;
        let [first, second] = BETA.map(|beta| 1.0 - beta.powf(self.steps as f64));
        for (param, moments) in net.params_mut().filter(|p| p.learnt).zip(&mut self.moments) {
            if param.gradient.len() != param.values.len() {
                continue;
            }
            let decay = if param.shape().len() > 1 { 1.0 - rate * self.weight_decay } else { 1.0 };
            let [mean, square] = moments;
            let all = param.values.par_iter_mut().zip(&mut param.gradient).zip(mean).zip(square);
            all.with_min_len(1 << 14).for_each(|(((value, gradient), mean), square)| {
                let g = f64::from(*gradient);
                let m = BETA[0] * f64::from(*mean) + (1.0 - BETA[0]) * g;
                let v = BETA[1] * f64::from(*square) + (1.0 - BETA[1]) * g * g;
                (*mean, *square) = (m as f32, v as f32);
                let step = rate * (m / first) / ((v / second).sqrt() + EPSILON);
                *value = (f64::from(*value) * decay - step) as f32;
                *gradient = 0.0;
            });
        }
    }
}
