//! The description of a model of the `loop` benchmark: [`Network`], which its file implements.

use super::parameters::Parameter;
use crate::Result;

/// A function of parameters and a batch, and its gradients. It owns the arrays of a step.
///
/// Parameters come in the order of [`Self::layout`]; those of convolutions lie as `out x K x K x in`. Batches are
/// `N x C x H x W`, checked before.
pub(super) trait Network: Default + Send {
    /// Name in the [registry](crate::registry).
    const NAME: &'static str;

    /// Parameters for images of that many channels: weights and bias in turns. The last is the bias of the output.
    fn layout(in_channels: usize) -> Vec<Parameter>;

    /// A row of numbers per image. Keeps what [`Self::backward`] needs.
    ///
    /// # Errors
    /// Sizes that do not fit.
    fn forward(&mut self, parameters: &[Vec<f32>], pixels: &[f32], shape: [usize; 4]) -> Result<Vec<f32>>;

    /// Gradients of all parameters, given the `gradient` of what the last [`Self::forward`] made of the same batch.
    ///
    /// # Errors
    /// Sizes that do not fit.
    fn backward(
        &mut self,
        parameters: &[Vec<f32>],
        pixels: &[f32],
        shape: [usize; 4],
        gradient: &[f32],
    ) -> Result<Vec<Vec<f32>>>;
}
