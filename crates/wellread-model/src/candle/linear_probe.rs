//! A linear probe on pooled pixels: a model so light that loading can bind.
//!
//! ```text
//! N x C x H x W ─▶ mean over each cell of an 8 x 8 grid ─▶ Linear 64·C→128
//! ```
//!
//! 8,320 parameters for one channel. A step reads every pixel twice, for the cells and for the target (`trained`), and
//! then has little to do, so that in the `loop` benchmark the loaders of formats differ; with [`super::small_cnn`] the
//! processor is busy with the model. The target is the mean of the image, a linear function of its cells: the probe can
//! learn it, and the loss falls.
//!
//! Cells are those of PyTorch's `AdaptiveAvgPool2d(8)`: cell `i` of `L` pixels begins at `i·L/8`, rounded down, and ends at
//! `(i+1)·L/8`, rounded up, so that an image may have any size. They are computed where the batch is, in the processor's
//! memory, and handed to the device.

use super::trained::{Parameter, Trained, sum};
use crate::{Model, ModelEntry, ModelOptions, Output, Result, StateDict};
use candle_core::Tensor;
use rayon::prelude::*;
use std::ops::Range;

/// The entry in the [registry](crate::registry).
pub static MODEL: ModelEntry = ModelEntry {
    name: "linear-probe",
    about: "means over an 8x8 grid and a linear layer: light, so that waiting for data shows (candle)",
    create: |options| Ok(Box::new(LinearProbe::new(options)?)),
};

/// Cells of an image along each axis.
const GRID: usize = 8;
const EMBEDDING: usize = 128;

/// The model; see the [module](self).
pub struct LinearProbe(Trained);

impl LinearProbe {
    /// The model with initial weights drawn from the seed.
    ///
    /// # Errors
    /// A device or a number of threads that cannot be had.
    pub fn new(options: &ModelOptions) -> Result<Self> {
        Ok(Self(Trained::new(options, layout(options.in_channels))?))
    }
}

fn layout(in_channels: usize) -> Vec<Parameter> {
    vec![("fc.weight", vec![EMBEDDING, in_channels * GRID * GRID]), ("fc.bias", vec![EMBEDDING])]
}

/// Pixels of cell `i` along an axis of `length` pixels.
fn cell(i: usize, length: usize) -> Range<usize> {
    i * length / GRID..((i + 1) * length).div_ceil(GRID)
}

/// Means of the cells, `N x (C·GRID·GRID)`.
fn pooled(pixels: &[f32], [n, c, h, w]: [usize; 4], p: &Tensor) -> candle_core::Result<Tensor> {
    let mut cells = vec![0.0f32; n * c * GRID * GRID];
    let planes = cells.par_chunks_exact_mut(GRID * GRID).zip(pixels.par_chunks_exact(h * w));
    planes.with_min_len(c).for_each_init(
        || vec![0.0f32; w],
        |columns, (cells, plane)| {
            for (i, cells) in cells.chunks_exact_mut(GRID).enumerate() {
                let rows = cell(i, h);
                let count = rows.len();
                columns.fill(0.0);
                for row in plane[rows.start * w..rows.end * w].chunks_exact(w) {
                    columns.iter_mut().zip(row).for_each(|(sum, pixel)| *sum += pixel);
                }
                for (j, mean) in cells.iter_mut().enumerate() {
                    let columns = &columns[cell(j, w)];
                    *mean = sum(columns) / (count * columns.len()) as f32;
                }
            }
        },
    );
    Tensor::from_vec(cells, (n, c * GRID * GRID), p.device())
}

/// The network; `p` in the order of [`layout`].
fn network(pixels: &[f32], shape: [usize; 4], p: &[Tensor]) -> candle_core::Result<Tensor> {
    pooled(pixels, shape, &p[0])?.matmul(&p[0].t()?)?.broadcast_add(&p[1])
}

impl Model for LinearProbe {
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
        self.0.check(pixels, shape)?;
        self.0.forward(|p| network(pixels, shape, p))
    }

    fn train_step(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<f32> {
        self.0.check(pixels, shape)?;
        self.0.train_step(pixels, shape, |p| network(pixels, shape, p))
    }

    fn state_dict(&self) -> Result<StateDict> {
        self.0.state_dict()
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        self.0.load_state_dict(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cover_an_axis_and_have_a_pixel_each() {
        for length in [1, 3, 8, 9, 20, 24, 101] {
            let cells: Vec<_> = (0..GRID).map(|i| cell(i, length)).collect();
            assert!(cells.iter().all(|cell| !cell.is_empty() && cell.end <= length), "{length}: {cells:?}");
            assert_eq!((cells[0].start, cells[GRID - 1].end), (0, length));
            assert!(cells.windows(2).all(|pair| pair[1].start <= pair[0].end), "{length}: {cells:?}");
        }
        assert_eq!([cell(0, 20), cell(1, 20), cell(7, 20)], [0..3, 2..5, 17..20]);
    }
}
