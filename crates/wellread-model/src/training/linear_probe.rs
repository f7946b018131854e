//! A linear probe on pooled pixels: a model so light that loading can bind.
//!
//! ```text
//! N x C x H x W ─▶ mean over each cell of an 8 x 8 grid ─▶ Linear 64·C→128
//! ```
//!
//! 8,320 parameters for one channel. A step reads every pixel twice, for the cells (`pooling`) and for the target
//! (`target`), and then has little to do. So the loaders of formats differ in the `loop` benchmark; with
//! [`super::small_cnn`] the processor is busy with the model. The target is the mean of the image, a linear function of
//! its cells: the probe can learn it, and the loss falls.

use super::linear::linear;
use super::network::Network;
use super::parameters::Parameter;
use super::pooling::{GRID, cell_means};
use super::trained::Trained;
use crate::{ModelEntry, Result};

/// The entry in the [registry](crate::registry).
pub(crate) static MODEL: ModelEntry = ModelEntry {
    name: NAME,
    about: "means over an 8x8 grid and a linear layer: light, so that waiting for data shows (wellread's own kernels)",
    create: |options| Ok(Box::new(Trained::<LinearProbe>::new(options)?)),
};

/// Name in the [registry](crate::registry).
pub(crate) const NAME: &str = "linear-probe";
const EMBEDDING: usize = 128;

/// The model; see the [module](self).
#[derive(Default)]
pub(super) struct LinearProbe {
    /// Means of the cells, `N x (C·GRID·GRID)`.
    cells: Vec<f32>,
}

/// Its parameters.
pub(crate) fn layout(in_channels: usize) -> Vec<Parameter> {
    vec![("fc.weight", vec![EMBEDDING, in_channels * GRID * GRID]), ("fc.bias", vec![EMBEDDING])]
}

impl Network for LinearProbe {
    const NAME: &'static str = NAME;

    fn layout(in_channels: usize) -> Vec<Parameter> {
        layout(in_channels)
    }

    fn forward(&mut self, p: &[Vec<f32>], pixels: &[f32], shape: [usize; 4]) -> Result<Vec<f32>> {
        let [n, c, ..] = shape;
        cell_means(pixels, shape, &mut self.cells);
        let mut out = vec![0.0; n * EMBEDDING];
        linear(n, c * GRID * GRID, EMBEDDING).forward(&self.cells, &p[0], &p[1], false, &mut out)?;
        Ok(out)
    }

    fn backward(
        &mut self,
        p: &[Vec<f32>],
        _: &[f32],
        [n, c, ..]: [usize; 4],
        gradient: &[f32],
    ) -> Result<Vec<Vec<f32>>> {
        let layer = linear(n, c * GRID * GRID, EMBEDDING);
        let (weights, bias) = layer.backward(&self.cells, &p[0], gradient, None)?;
        Ok(vec![weights, bias])
    }
}
