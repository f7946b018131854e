//! The target that the models of the `loop` benchmark learn, and the training.
//!
//! A model is trained by plain SGD on the mean squared error against a target that the batch itself decides. That is
//! the mean of each channel, times a fixed matrix of uniform numbers in ±1 drawn from the seed. The same batches
//! therefore give the same losses.

use super::pooling::plane_mean;
use crate::Error;
use crate::init::Uniform;
use rayon::prelude::*;

/// Factor of the gradients in a step.
pub(crate) const LEARNING_RATE: f32 = 0.01;
/// Stream of the seed from which the matrix is drawn; the parameters have streams 0, 1, ….
const STREAM: u64 = 1000;

/// The target of every batch.
pub(crate) struct Target {
    /// `in_channels x width`, from channel means to the target.
    matrix: Vec<f32>,
    width: usize,
}

impl Target {
    /// For a model that makes `width` numbers of an image.
    pub fn new(seed: u64, in_channels: usize, width: usize) -> Self {
        let mut uniform = Uniform::new(seed, STREAM);
        Self { matrix: (0..in_channels * width).map(|_| uniform.next_within(1.0)).collect(), width }
    }

    /// Channel means times the matrix, `N x width`.
    pub fn of(&self, pixels: &[f32], [n, c, h, w]: [usize; 4]) -> Vec<f32> {
        let mut target = vec![0.0f32; n * self.width];
        let images = target.par_chunks_exact_mut(self.width).zip(pixels.par_chunks_exact(c * h * w));
        images.for_each(|(row, image)| {
            for (plane, matrix) in image.chunks_exact(h * w).zip(self.matrix.chunks_exact(self.width)) {
                let mean = plane_mean(plane, w);
                row.iter_mut().zip(matrix).for_each(|(t, &m)| *t += mean * m);
            }
        });
        target
    }
}

/// Mean squared error of `values` against `target`, which leaves its gradient in `values`.
pub(super) fn mean_squared_error(values: &mut [f32], target: &[f32]) -> f32 {
    let (count, mut sum) = (values.len() as f64, 0.0f64);
    let scale = (2.0 / count) as f32;
    for (value, target) in values.iter_mut().zip(target) {
        let difference = *value - target;
        sum += f64::from(difference * difference);
        *value = scale * difference;
    }
    (sum / count) as f32
}

/// The error of a step whose loss is not finite.
pub(crate) fn diverged(loss: f32) -> Error {
    Error::new(format_args!("the training step diverged: the loss is {loss}"))
        .hint("scale the pixels to [0, 1], which is the loader's default")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_a_mean_and_leaves_its_gradient() {
        let mut values = [1.0, 2.0, 3.0, -1.0];
        assert_eq!(mean_squared_error(&mut values, &[1.0, 0.0, 4.0, 0.0]), 1.5);
        assert_eq!(values, [0.0, 1.0, -0.5, -0.5]);
        assert!(!mean_squared_error(&mut [1e30], &[0.0]).is_finite());
        assert!(mean_squared_error(&mut [f32::NAN], &[0.0]).is_nan());
    }

    #[test]
    fn the_target_is_linear_in_channel_means() {
        let target = Target::new(4, 2, 3);
        let pixels = [1.0, 3.0, 10.0, 30.0, 0.0, 0.0, 5.0, 5.0];
        let found = target.of(&pixels, [2, 2, 1, 2]);
        for (image, means) in [[2.0, 20.0], [0.0, 5.0]].iter().enumerate() {
            for o in 0..3 {
                let wanted = means[0] * target.matrix[o] + means[1] * target.matrix[3 + o];
                assert!((found[image * 3 + o] - wanted).abs() < 1e-5, "{found:?}");
            }
        }
    }
}
