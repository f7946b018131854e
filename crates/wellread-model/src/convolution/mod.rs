//! Convolution and its gradients on plain slices, in two and three dimensions, divided among threads.
//!
//! ```text
//! images N x D x H x W x C ──rows──▶ padded block ──kernel──▶ N x D x H x W x C_out
//! gradient of that         ──rows──▶ padded block ──kernel──▶ gradients of images, weights and bias
//! ```
//!
//! The arithmetic is in `kernel`, which knows planes. A volume is a row of planes. An output plane of a kernel
//! `K_d` planes deep is the plane convolution of `K_d` neighbouring input planes, stacked as channels. They are stacked
//! row by row while a block is loaded, so nothing is copied beforehand.
//!
//! Work is divided into bands of rows of one plane, the same for any number of threads. Sums are taken in the
//! order of the bands. So results do not depend on the number of threads.

pub(crate) mod kernel;

use crate::{Error, Result};
use kernel::{Block, Geometry, Packed};
use rayon::prelude::*;

/// Most bands that one plane is divided into.
const BANDS: usize = 8;
/// Most parts that the weights' gradient is summed in: the bound on memory, and on threads that have work.
const PARTS: usize = 32;

/// Sizes of a convolution with odd kernel, stride 1 and zero padding that keeps the size.
///
/// Images are `N x depth x height x width x c_in`, weights `c_out x kernel x kernel x kernel_depth x c_in` (rows and
/// columns of the kernel before its planes), results `N x depth x height x width x c_out`; all in C order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Planes of an image; 1 in two dimensions.
    pub depth: usize,
    /// Rows of a plane.
    pub height: usize,
    /// Columns of a plane.
    pub width: usize,
    /// Channels of the images.
    pub c_in: usize,
    /// Channels of the result.
    pub c_out: usize,
    /// Rows and columns of the kernel, odd.
    pub kernel: usize,
    /// Planes of the kernel, odd; 1 in two dimensions.
    pub kernel_depth: usize,
}

impl Convolution {
    /// Number of weights, without the `c_out` biases.
    pub const fn weights(&self) -> usize {
        self.c_out * self.kernel * self.kernel * self.kernel_depth * self.c_in
    }

    fn geometry(&self) -> Geometry {
        let c_in = self.kernel_depth * self.c_in;
        Geometry { height: self.height, width: self.width, c_in, c_out: self.c_out, kernel: self.kernel }
    }

    /// Number of images, after checking that all sizes fit.
    fn batch(&self, x: &[f32], weights: &[f32], out: usize) -> Result<usize> {
        let pixels = self.depth * self.height * self.width;
        let image = pixels * self.c_in;
        let odd = self.kernel % 2 == 1 && self.kernel_depth % 2 == 1;
        if image == 0
            || self.c_out == 0
            || !odd
            || !x.len().is_multiple_of(image)
            || weights.len() != self.weights()
        {
            return Err(Error::new(format_args!(
                "convolution: {} pixels and {} weights do not fit {self:?}",
                x.len(),
                weights.len()
            )));
        }
        let batch = x.len() / image;
        if out != batch * pixels * self.c_out {
            return Err(Error::new(format_args!("convolution: {out} results do not fit {self:?}")));
        }
        Ok(batch)
    }

    /// Writes row `y` of plane `plane` and its neighbours, stacked as channels.
    fn row(&self, x: &[f32], plane: usize, y: usize, to: &mut [f32]) {
        let (row, c) = (self.width * self.c_in, self.c_in);
        let at = |plane: usize| &x[(plane * self.height + y) * row..][..row];
        if self.kernel_depth == 1 {
            to.copy_from_slice(at(plane));
            return;
        }
        let (z, pad) = (plane % self.depth, self.kernel_depth / 2);
        for k in 0..self.kernel_depth {
            if (z + k).checked_sub(pad).is_some_and(|z| z < self.depth) {
                for (to, from) in
                    to.chunks_exact_mut(self.kernel_depth * c).zip(at(plane + k - pad).chunks_exact(c))
                {
                    to[k * c..][..c].copy_from_slice(from);
                }
            }
        }
    }

    /// Convolution of `x` plus `bias`, and ReLU if `relu`, into `out`.
    ///
    /// # Errors
    /// Sizes that do not fit.
    pub fn forward(
        &self,
        x: &[f32],
        weights: &[f32],
        bias: &[f32],
        relu: bool,
        out: &mut [f32],
    ) -> Result<()> {
        self.batch(x, weights, out.len())?;
        if bias.len() != self.c_out {
            return Err(Error::new(format_args!("convolution: {} biases do not fit {self:?}", bias.len())));
        }
        let g = self.geometry();
        forward(&g, &Packed::forward(&g, weights), bias, relu, |n, y, to| self.row(x, n, y, to), out);
        Ok(())
    }

    /// Gradients of weights and bias, given the `gradient` of the result (before any ReLU); that of `x` goes to
    /// `x_gradient`, if it is wanted.
    ///
    /// # Errors
    /// Sizes that do not fit.
    pub fn backward(
        &self,
        x: &[f32],
        weights: &[f32],
        gradient: &[f32],
        x_gradient: Option<&mut [f32]>,
    ) -> Result<(Vec<f32>, Vec<f32>)> {
        let planes = self.batch(x, weights, gradient.len())? * self.depth;
        if let Some(wanted) = &x_gradient
            && wanted.len() != x.len()
        {
            return Err(Error::new(format_args!(
                "convolution: {} gradients for {} pixels",
                wanted.len(),
                x.len()
            )));
        }
        let g = self.geometry();
        let (row, step) = (self.width * self.c_out, g.reversed().c_in);
        let gradient_row = |n: usize, y: usize, to: &mut [f32]| {
            let from = &gradient[(n * self.height + y) * row..][..row];
            for (to, from) in to.chunks_exact_mut(step).zip(from.chunks_exact(self.c_out)) {
                to[..self.c_out].copy_from_slice(from);
            }
        };
        let load = |n: usize, y: usize, to: &mut [f32]| self.row(x, n, y, to);
        Ok(match x_gradient {
            Some(x_gradient) if self.kernel_depth > 1 => {
                let mut stacked = vec![0.0; x.len() * self.kernel_depth];
                let gradients = backward(&g, planes, weights, load, gradient_row, Some(&mut stacked));
                self.unstack(&stacked, x_gradient);
                gradients
            }
            x_gradient => backward(&g, planes, weights, load, gradient_row, x_gradient),
        })
    }

    /// Adds up what each plane's gradient is made of: its part in the stacks of its neighbours.
    fn unstack(&self, stacked: &[f32], x_gradient: &mut [f32]) {
        let (c, pad) = (self.c_in, self.kernel_depth / 2);
        let plane = self.height * self.width * c;
        x_gradient.par_chunks_mut(plane).enumerate().for_each(|(n, to)| {
            to.fill(0.0);
            for k in 0..self.kernel_depth {
                // Plane z is part k of the stack of plane z + pad - k.
                let Some(z) = (n % self.depth + pad).checked_sub(k).filter(|&z| z < self.depth) else {
                    continue;
                };
                let from = &stacked[(n - n % self.depth + z) * plane * self.kernel_depth..]
                    [..plane * self.kernel_depth];
                for (to, from) in to.chunks_exact_mut(c).zip(from.chunks_exact(self.kernel_depth * c)) {
                    to.iter_mut().zip(&from[k * c..][..c]).for_each(|(to, from)| *to += from);
                }
            }
        });
    }
}

/// Rows of a band: whole blocks.
fn band_rows(g: &Geometry) -> usize {
    g.height.div_ceil(BANDS).next_multiple_of(g.block_rows())
}

/// Divides an array of `batch x height` rows into bands: plane, first row, part of the array.
pub(crate) fn bands<'a, T>(g: &Geometry, row: usize, array: &'a mut [T]) -> Vec<(usize, usize, &'a mut [T])> {
    let rows = band_rows(g);
    array
        .chunks_mut(g.height * row)
        .enumerate()
        .flat_map(|(n, image)| {
            image.chunks_mut(rows * row).enumerate().map(move |(i, band)| (n, i * rows, band))
        })
        .collect()
}

/// Convolves all planes; `rows(n, y, to)` writes row `y` of plane `n`, `width * c_in` floats.
pub(crate) fn forward(
    g: &Geometry,
    weights: &Packed,
    bias: &[f32],
    relu: bool,
    rows: impl Fn(usize, usize, &mut [f32]) + Sync,
    out: &mut [f32],
) {
    let row = g.width * g.c_out;
    bands(g, row, out).into_par_iter().for_each_init(Block::default, |block, (n, y0, band)| {
        for (i, part) in band.chunks_mut(g.block_rows() * row).enumerate() {
            let y = y0 + i * g.block_rows();
            block.load(g, (y, part.len() / row), |y, to| rows(n, y, to));
            kernel::convolve(g, block, weights, bias, relu, part);
        }
    });
}

/// Gradients of weights (`c_out x kernel x kernel x c_in`) and bias, and of the planes if they are wanted.
///
/// `rows` as in [`forward`]; `gradient_rows(n, y, to)` writes row `y` of the gradient of the result, before the ReLU,
/// with `g.reversed().c_in` floats per pixel.
pub(crate) fn backward(
    g: &Geometry,
    planes: usize,
    weights: &[f32],
    rows: impl Fn(usize, usize, &mut [f32]) + Sync,
    gradient_rows: impl Fn(usize, usize, &mut [f32]) + Sync,
    x_gradient: Option<&mut [f32]>,
) -> (Vec<f32>, Vec<f32>) {
    let reversed = g.reversed();
    let packed = x_gradient.is_some().then(|| Packed::flipped(g, weights));
    let row = g.width * g.c_in;
    // An array of nothing stands for a gradient that is not wanted.
    let mut unwanted = vec![(); if x_gradient.is_some() { 0 } else { planes * g.height }];
    let mut tasks: Vec<(usize, usize, usize, Option<&mut [f32]>)> = match x_gradient {
        Some(wanted) => bands(g, row, wanted)
            .into_iter()
            .map(|(n, y, band)| (n, y, band.len() / row, Some(band)))
            .collect(),
        None => bands(g, 1, &mut unwanted).into_iter().map(|(n, y, band)| (n, y, band.len(), None)).collect(),
    };
    let share = tasks.len().div_ceil(PARTS).max(1);
    let parts: Vec<(Vec<f32>, Vec<f64>)> = tasks
        .par_chunks_mut(share)
        .map_init(<(Block, Block)>::default, |(input, gradient), tasks| {
            let mut sums = (vec![0.0; kernel::gradient_len(g)], vec![0.0; g.c_out]);
            for (n, y0, rows_of_band, x_gradient) in tasks {
                for first in (0..*rows_of_band).step_by(g.block_rows()) {
                    let count = g.block_rows().min(*rows_of_band - first);
                    let at = (*y0 + first, count);
                    input.load(g, at, |y, to| rows(*n, y, to));
                    gradient.load(&reversed, at, |y, to| gradient_rows(*n, y, to));
                    kernel::weight_gradient(g, input, gradient, count, &mut sums.0);
                    kernel::bias_gradient(g, gradient, count, &mut sums.1);
                    if let (Some(band), Some(packed)) = (x_gradient.as_mut(), &packed) {
                        let part = &mut band[first * row..][..count * row];
                        kernel::convolve(&reversed, gradient, packed, &[], false, part);
                    }
                }
            }
            sums
        })
        .collect();
    let mut total = (vec![0.0f32; kernel::gradient_len(g)], vec![0.0f64; g.c_out]);
    for (weights, bias) in parts {
        total.0.iter_mut().zip(weights).for_each(|(sum, value)| *sum += value);
        total.1.iter_mut().zip(bias).for_each(|(sum, value)| *sum += value);
    }
    (kernel::unpack_gradient(g, &total.0), total.1.into_iter().map(|sum| sum as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::Uniform;
    use proptest::prelude::*;

    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut uniform = Uniform::new(seed, 0);
        (0..count).map(|_| uniform.next_within(1.0)).collect()
    }

    /// Calls `tap(index of x, index of weights, index of the result)` for every product that the definition asks for.
    fn each_tap(c: &Convolution, batch: usize, mut tap: impl FnMut(usize, usize, usize)) {
        let pads = [c.kernel_depth / 2, c.kernel / 2, c.kernel / 2];
        let [d, h, w] = [c.depth, c.height, c.width];
        for n in 0..batch {
            for at in 0..d * h * w {
                for k in 0..c.kernel_depth * c.kernel * c.kernel {
                    let offset = [k / (c.kernel * c.kernel), k / c.kernel % c.kernel, k % c.kernel];
                    let from = [0, 1, 2]
                        .map(|a| ([at / (h * w), at / w % h, at % w][a] + offset[a]).wrapping_sub(pads[a]));
                    if from[0] >= d || from[1] >= h || from[2] >= w {
                        continue;
                    }
                    let pixel = ((n * d + from[0]) * h + from[1]) * w + from[2];
                    for o in 0..c.c_out {
                        for i in 0..c.c_in {
                            let weight = ((o * c.kernel + offset[1]) * c.kernel + offset[2]) * c.kernel_depth
                                + offset[0];
                            tap(pixel * c.c_in + i, weight * c.c_in + i, (n * d * h * w + at) * c.c_out + o);
                        }
                    }
                }
            }
        }
    }

    fn assert_close(ours: &[f32], theirs: &[f64], what: &str) {
        assert_eq!(ours.len(), theirs.len());
        let scale = theirs.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
            assert!((f64::from(*a) - b).abs() <= 2e-5 * scale, "{what}[{i}]: {a} against {b}");
        }
    }

    /// Results and gradients of two images against the definition.
    fn check(c: Convolution) {
        let Convolution { depth, height, width, c_in, c_out, .. } = c;
        let (batch, pixels) = (2, depth * height * width);
        let x = numbers(1, batch * pixels * c_in);
        let (weights, bias) = (numbers(2, c.weights()), numbers(3, c_out));
        let gradient = numbers(4, batch * pixels * c_out);
        let mut out = vec![0.0; gradient.len()];
        c.forward(&x, &weights, &bias, false, &mut out).unwrap();
        let mut x_gradient = vec![0.0; x.len()];
        let (dw, db) = c.backward(&x, &weights, &gradient, Some(&mut x_gradient)).unwrap();
        let mut expected: Vec<f64> = (0..out.len()).map(|i| f64::from(bias[i % c_out])).collect();
        let (mut dx, mut weights_gradient) = (vec![0.0f64; x.len()], vec![0.0f64; weights.len()]);
        each_tap(&c, batch, |i, w, o| {
            expected[o] += f64::from(x[i]) * f64::from(weights[w]);
            dx[i] += f64::from(gradient[o]) * f64::from(weights[w]);
            weights_gradient[w] += f64::from(gradient[o]) * f64::from(x[i]);
        });
        let mut bias_gradient = vec![0.0f64; c_out];
        gradient.iter().enumerate().for_each(|(i, &g)| bias_gradient[i % c_out] += f64::from(g));
        assert_close(&out, &expected, "result");
        assert_close(&x_gradient, &dx, "gradient of the image");
        assert_close(&dw, &weights_gradient, "gradient of the weights");
        assert_close(&db, &bias_gradient, "gradient of the bias");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn agrees_with_the_definition(
            depth in 1usize..6, height in 1usize..12, width in 1usize..12, c_in in 1usize..6, c_out in 1usize..20,
            kernel in prop::sample::select(vec![1usize, 3]), kernel_depth in prop::sample::select(vec![1usize, 3, 5]),
        ) {
            check(Convolution { depth, height, width, c_in, c_out, kernel, kernel_depth });
        }
    }

    #[test]
    fn agrees_with_the_definition_on_many_blocks_and_spans() {
        // Wider than a span, higher than a band, channels beyond four vectors.
        let plane =
            Convolution { depth: 1, height: 70, width: 150, c_in: 5, c_out: 80, kernel: 3, kernel_depth: 1 };
        check(plane);
        // A linear layer of many rows.
        check(Convolution { height: 1, width: 131, c_in: 70, c_out: 130, kernel: 1, ..plane });
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let c = Convolution { depth: 1, height: 4, width: 4, c_in: 2, c_out: 3, kernel: 3, kernel_depth: 1 };
        let (x, weights) = (vec![0.0; 32], vec![0.0; c.weights()]);
        let mut out = vec![0.0; 48];
        c.forward(&x, &weights, &[0.0; 3], true, &mut out).unwrap();
        assert!(c.forward(&x[1..], &weights, &[0.0; 3], true, &mut out).is_err());
        assert!(c.forward(&x, &weights[1..], &[0.0; 3], true, &mut out).is_err());
        assert!(c.forward(&x, &weights, &[0.0; 2], true, &mut out).is_err());
        assert!(c.forward(&x, &weights, &[0.0; 3], true, &mut out[1..]).is_err());
        assert!(c.backward(&x, &weights, &out, Some(&mut [0.0; 31])).is_err());
        assert!(Convolution { kernel: 2, ..c }.forward(&x, &weights, &[0.0; 3], true, &mut out).is_err());
    }
}
