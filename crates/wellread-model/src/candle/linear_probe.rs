//! [`crate::training::linear_probe`] in candle's operators. Means of cells are taken where the batch is, in the processor's
//! memory, and handed to the device.

use super::on_device::Definition;
use crate::training::linear_probe::{NAME, layout};
use crate::training::pooling::{GRID, cell_means};
use candle_core::{Device, Result, Tensor};

pub(super) static MODEL: Definition = Definition { name: NAME, layout, input, network };

fn input(pixels: &[f32], shape: [usize; 4], device: &Device) -> Result<Tensor> {
    let mut cells = Vec::new();
    cell_means(pixels, shape, &mut cells);
    Tensor::from_vec(cells, (shape[0], shape[1] * GRID * GRID), device)
}

fn network(cells: &Tensor, p: &[Tensor]) -> Result<Tensor> {
    cells.matmul(&p[0].t()?)?.broadcast_add(&p[1])
}
