//! Activations: `N x D x H x W x C` floats in one piece of memory, channels last; `D` is 1 in two dimensions.

use anyhow::{Result, ensure};
use rayon::prelude::*;

/// Pixels that one thread works on at a time in operators that go pixel by pixel.
pub(crate) const SPAN: usize = 2048;

/// An array of `N x D x H x W x C` floats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensor {
    /// Values in C order.
    pub data: Vec<f32>,
    /// Length of N, D, H, W and C.
    pub shape: [usize; 5],
}

impl Tensor {
    /// All zeros.
    pub fn zeros(shape: [usize; 5]) -> Self {
        Self { data: vec![0.0; shape.iter().product()], shape }
    }

    /// These values in that shape.
    ///
    /// # Errors
    /// Another number of values than the shape says.
    pub fn new(data: Vec<f32>, shape: [usize; 5]) -> Result<Self> {
        ensure!(
            shape.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis)) == Some(data.len()),
            "{} values do not have the shape {shape:?} (NDHWC)",
            data.len()
        );
        Ok(Self { data, shape })
    }

    /// Length of the last axis.
    pub const fn channels(&self) -> usize {
        self.shape[4]
    }

    /// Values of one image of the batch.
    pub const fn image_len(&self) -> usize {
        self.shape[1] * self.shape[2] * self.shape[3] * self.shape[4]
    }

    /// The box that starts at `from` (D, H, W) and has `size`, with pixels outside taken from the nearest edge.
    pub fn window(&self, from: [isize; 3], size: [usize; 3]) -> Self {
        let [n, d, h, w, c] = self.shape;
        let mut out = Self::zeros([n, size[0], size[1], size[2], c]);
        let row = size[2] * c;
        out.data.par_chunks_mut(row.max(1)).enumerate().for_each(|(i, to)| {
            let (y, z, n) = (i % size[1], i / size[1] % size[0], i / size[1] / size[0]);
            let at =
                |a: usize, start: isize, len: usize| (start + a as isize).clamp(0, len as isize - 1) as usize;
            let line = ((n * d + at(z, from[0], d)) * h + at(y, from[1], h)) * w * c;
            for (x, pixel) in to.chunks_exact_mut(c).enumerate() {
                pixel.copy_from_slice(&self.data[line + at(x, from[2], w) * c..][..c]);
            }
        });
        out
    }

    /// Adds zeros at the far ends of D, H and W until these are `size`. It leads the gradient of a
    /// [`Self::window`] back that cut them off.
    pub fn padded(&self, size: [usize; 3]) -> Self {
        let [n, d, h, w, c] = self.shape;
        if [d, h, w] == size {
            return self.clone();
        }
        let mut out = Self::zeros([n, size[0], size[1], size[2], c]);
        for (i, row) in self.data.chunks_exact(w * c).enumerate() {
            let (y, z, n) = (i % h, i / h % d, i / h / d);
            out.data[((n * size[0] + z) * size[1] + y) * size[2] * c..][..w * c].copy_from_slice(row);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_repeat_the_edge_and_padding_undoes_cutting() {
        let t = Tensor::new((0..12).map(|v| v as f32).collect(), [1, 1, 3, 4, 1]).unwrap();
        let w = t.window([0, -1, 2], [1, 3, 4]);
        assert_eq!(w.data, [2., 3., 3., 3., 2., 3., 3., 3., 6., 7., 7., 7.]);
        let cut = t.window([0, 0, 0], [1, 2, 3]);
        assert_eq!(cut.data, [0., 1., 2., 4., 5., 6.]);
        assert_eq!(cut.padded([1, 3, 4]).data, [0., 1., 2., 0., 4., 5., 6., 0., 0., 0., 0., 0.]);
        assert!(Tensor::new(vec![0.0; 3], [1, 1, 1, 1, 2]).is_err());
    }
}
