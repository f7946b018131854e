//! A small convolutional network: a few numbers for a whole image, such as a class or a count.
//!
//! ```text
//! image ─▶ levels.0 ─pool─▶ levels.1 ─pool─▶ … ─▶ mean over all pixels ─▶ head (linear) ─▶ c_out numbers
//!          a level is one block of convolution 3 x 3, norm, ReLU
//! ```
//!
//! Level `l` has `width * 2^l` channels. Rows and columns must be multiples of `2^depth`.

use super::block::{Block, BlockSpec, Tape};
use super::resize::{pool, unpool};
use super::{Network, NormKind, Param, Tensor};
use anyhow::{Result, ensure};
use std::sync::Arc;
use wellread_store::words::counted;

/// The parts of a [`Cnn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnnSpec {
    /// Channels of the images.
    pub c_in: usize,
    /// Numbers of the result.
    pub c_out: usize,
    /// Channels of the first level.
    pub width: usize,
    /// Levels, after each of which the size is halved.
    pub depth: usize,
    /// Normalisation after each convolution.
    pub norm: NormKind,
}

/// A convolutional network with its parameters.
#[derive(Clone, Debug)]
pub struct Cnn {
    spec: CnnSpec,
    levels: Vec<Block>,
    head: Block,
}

/// The values of a forward pass that [`Cnn::backward`] needs.
pub struct CnnPass {
    /// Result of the network, `N x 1 x 1 x 1 x c_out`.
    pub output: Tensor,
    /// For each level the block, and the pixels that the pooling took.
    levels: Vec<(Tape, Vec<u8>)>,
    /// Shape of the tensor that the mean is taken of.
    last: [usize; 5],
    head: Tape,
}

impl Cnn {
    /// A network whose weights are drawn from the seed.
    ///
    /// # Errors
    /// Sizes that make no sense.
    pub fn new(spec: CnnSpec, seed: u64) -> Result<Self> {
        ensure!(
            spec.width > 0 && spec.c_in > 0 && spec.c_out > 0,
            "the width and the numbers of channels must be at least 1"
        );
        ensure!((1..=8).contains(&spec.depth), "the depth is {}: choose 1 to 8", spec.depth);
        let c = |level: usize| spec.width << level;
        let block = |level: usize| {
            let c_in = if level == 0 { spec.c_in } else { c(level - 1) };
            let of_level =
                BlockSpec { c_in, c_out: c(level), kernel: 3, planes: false, norm: spec.norm, relu: true };
            Block::new(&format!("levels.{level}"), of_level, [seed, level as u64 + 1])
        };
        let head = BlockSpec {
            c_in: c(spec.depth - 1),
            c_out: spec.c_out,
            kernel: 1,
            planes: false,
            norm: NormKind::None,
            relu: false,
        };
        let levels = (0..spec.depth).map(block).collect();
        Ok(Self { spec, levels, head: Block::new("head", head, [seed, 0]) })
    }

    fn check(&self, x: &Tensor) -> Result<()> {
        let [n, d, h, w, c] = x.shape;
        let step = 1usize << self.spec.depth;
        ensure!(
            c == self.spec.c_in && n > 0,
            "the images have {}, the model takes {}",
            counted(c, "channel"),
            self.spec.c_in
        );
        ensure!(
            d == 1 && h > 0 && w > 0 && h.is_multiple_of(step) && w.is_multiple_of(step),
            "{} of {h} x {w} pixels: the model takes one, whose rows and columns are multiples of {step}",
            counted(d, "plane")
        );
        Ok(())
    }

    /// Forward pass for training.
    ///
    /// # Errors
    /// Other channels or sizes than the model's.
    pub fn forward(&mut self, x: &Tensor) -> Result<CnnPass> {
        self.check(x)?;
        let mut at = Arc::new(x.clone());
        let mut levels = vec![];
        for block in &mut self.levels {
            let tape = block.train(at)?;
            let (smaller, which) = pool(&tape.output(), false);
            at = Arc::new(smaller);
            levels.push((tape, which));
        }
        let head = self.head.train(Arc::new(mean(&at)))?;
        let output = (*head.output()).clone();
        Ok(CnnPass { output, levels, last: at.shape, head })
    }

    /// Adds to the gradients of all parameters, given that of the result.
    ///
    /// # Errors
    /// A gradient of another shape than the result.
    pub fn backward(&mut self, pass: CnnPass, gradient: &Tensor) -> Result<()> {
        ensure!(
            gradient.shape == pass.output.shape,
            "the gradient's shape {:?} is not the result's {:?}",
            gradient.shape,
            pass.output.shape
        );
        let CnnPass { levels, last, head, .. } = pass;
        let of_means = self.head.backward(&head, gradient.clone(), true)?.unwrap_or_default();
        let mut gradient = spread(&of_means, last);
        for (level, (block, (tape, which))) in self.levels.iter_mut().zip(levels).enumerate().rev() {
            let of_block = unpool(&gradient, &which, tape.output().shape, false);
            gradient = block.backward(&tape, of_block, level > 0)?.unwrap_or_default();
        }
        Ok(())
    }

    /// Result for inference.
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub fn infer(&self, x: &Tensor) -> Result<Tensor> {
        self.check(x)?;
        let mut at = x.clone();
        for block in &self.levels {
            (at, _) = pool(&block.infer(&at)?, false);
        }
        self.head.infer(&mean(&at))
    }
}

impl Network for Cnn {
    fn params(&self) -> impl Iterator<Item = &Param> {
        self.levels.iter().chain([&self.head]).flat_map(Block::params)
    }

    fn params_mut(&mut self) -> impl Iterator<Item = &mut Param> {
        self.levels.iter_mut().chain([&mut self.head]).flat_map(|block| block.params_mut().iter_mut())
    }
}

/// The mean of each channel over all pixels of an image.
fn mean(x: &Tensor) -> Tensor {
    let (image, c) = (x.image_len(), x.channels());
    let pixels = (image / c) as f64;
    let mut out = Tensor::zeros([x.shape[0], 1, 1, 1, c]);
    for (means, image) in out.data.chunks_exact_mut(c).zip(x.data.chunks_exact(image)) {
        let mut sums = vec![0.0f64; c];
        for pixel in image.chunks_exact(c) {
            sums.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        means.iter_mut().zip(sums).for_each(|(mean, sum)| *mean = (sum / pixels) as f32);
    }
    out
}

/// The gradient of [`mean`]'s input of `shape`, given that of its result.
fn spread(gradient: &Tensor, shape: [usize; 5]) -> Tensor {
    let mut out = Tensor::zeros(shape);
    let (image, c) = (out.image_len(), out.channels());
    let pixels = (image / c) as f32;
    for (image, of_means) in out.data.chunks_exact_mut(image).zip(gradient.data.chunks_exact(c)) {
        for pixel in image.chunks_exact_mut(c) {
            pixel.iter_mut().zip(of_means).for_each(|(to, g)| *to = g / pixels);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_each_image_and_channel_and_their_gradient_is_shared_by_the_pixels() {
        let shape = [2, 1, 1, 2, 2];
        let x = Tensor::new(vec![1.0, 10.0, 3.0, 20.0, -1.0, 0.0, 0.0, 8.0], shape).unwrap();
        let means = mean(&x);
        assert_eq!((means.shape, means.data), ([2, 1, 1, 1, 2], vec![2.0, 15.0, -0.5, 4.0]));
        let gradient = Tensor::new(vec![2.0, -4.0, 1.0, 0.0], [2, 1, 1, 1, 2]).unwrap();
        let of_x = spread(&gradient, shape);
        assert_eq!((of_x.shape, of_x.data), (shape, vec![1.0, -2.0, 1.0, -2.0, 0.5, 0.0, 0.5, 0.0]));
    }

    #[test]
    fn images_that_do_not_fit_are_refused() {
        let spec = CnnSpec { c_in: 2, c_out: 1, width: 4, depth: 2, norm: NormKind::Batch };
        let net = Cnn::new(spec, 1).unwrap();
        let refusal = |shape| net.infer(&Tensor::zeros(shape)).unwrap_err().to_string();
        assert_eq!(net.infer(&Tensor::zeros([3, 1, 8, 12, 2])).unwrap().shape, [3, 1, 1, 1, 1]);
        assert_eq!(refusal([1, 1, 8, 8, 1]), "the images have 1 channel, the model takes 2");
        let size = "1 plane of 8 x 10 pixels: the model takes one, whose rows and columns are multiples of 4";
        assert_eq!(refusal([1, 1, 8, 10, 2]), size);
        assert!(refusal([1, 3, 8, 8, 2]).starts_with("3 planes of 8 x 8"));
        assert!(Cnn::new(CnnSpec { depth: 0, ..spec }, 1).is_err());
        assert!(Cnn::new(CnnSpec { c_out: 0, ..spec }, 1).is_err());
    }
}
