//! The interface of a model for the rest of wellread.

use crate::{Error, Result};
use std::fmt;

/// A model that can be fed batches.
///
/// Batches are `N x C x H x W` floats in C order, as the loader delivers them; `pixels` is not changed.
pub trait Model: Send {
    /// Name in the [registry](crate::registry), such as `small-cnn`.
    fn name(&self) -> &str;

    /// The backend and its device, such as `wellread's own kernels, AVX2 (cpu, 2 threads)`: for reports.
    fn backend(&self) -> &str;

    /// Number of trainable parameters.
    fn parameters(&self) -> usize;

    /// One inference pass: a row of numbers per image. No gradient is prepared.
    ///
    /// # Errors
    /// A shape that does not fit `pixels` or the model; a failure of the backend.
    fn forward(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<Output>;

    /// One training step (forward, backward, update of the weights); returns the loss before the update.
    ///
    /// The target is made from the batch by the model itself, so the same batches give the same losses; each
    /// model documents which.
    ///
    /// # Errors
    /// As [`Self::forward`], and a loss that is not finite.
    fn train_step(&mut self, pixels: &[f32], shape: [usize; 4]) -> Result<f32>;

    /// All parameters, with PyTorch's names and memory layouts.
    ///
    /// # Errors
    /// A failure of the backend.
    fn state_dict(&self) -> Result<StateDict>;

    /// Replaces all parameters.
    ///
    /// # Errors
    /// A missing, surplus or misshapen parameter; nothing is changed then.
    fn load_state_dict(&mut self, state: &StateDict) -> Result<()>;
}

/// How to make a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOptions {
    /// Seed of the initial weights (and of the training target).
    pub seed: u64,
    /// Threads of the backend on the CPU; 0 takes all there are.
    pub threads: usize,
    /// Channels of the images.
    pub in_channels: usize,
    /// Where to run.
    pub device: Device,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self { seed: 0, threads: 0, in_channels: 1, device: Device::Cpu }
    }
}

/// One model: its name, what it is, how to make it.
pub struct ModelEntry {
    /// Name as in `--model`, such as `small-cnn`.
    pub name: &'static str,
    /// One line for help texts.
    pub about: &'static str,
    /// Makes it.
    pub create: fn(&ModelOptions) -> Result<Box<dyn Model>>,
}

/// Where a model runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// The NVIDIA GPU of that index; needs the cargo feature `cuda`.
    Cuda(usize),
}

#[cfg(not(any(feature = "cuda", all(feature = "candle", test))))]
impl Device {
    /// The error of a build that has nothing which runs on GPUs.
    pub(crate) fn without_candle(self) -> Error {
        Error::new(format_args!("this build runs models on the cpu only, not on {self}"))
            .hint("build it with the cargo feature `cuda`, which needs the CUDA toolkit; or run on the cpu")
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// The result of a forward pass: one row of floats per image, such as an embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    values: Vec<f32>,
    width: usize,
}

impl Output {
    /// Rows of `width` floats each.
    ///
    /// # Errors
    /// When `values` is not whole rows.
    pub fn new(values: Vec<f32>, width: usize) -> Result<Self> {
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(Error::new(format_args!("{} values are not whole rows of {width}", values.len())));
        }
        Ok(Self { values, width })
    }

    /// All values, row after row.
    pub fn as_slice(&self) -> &[f32] {
        &self.values
    }

    /// Number of rows: one per image.
    pub fn rows(&self) -> usize {
        self.values.len() / self.width
    }

    /// Floats per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The row of image `index` of the batch.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.width..][..self.width]
    }
}

/// One parameter: its name, shape and values in C order.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedArray {
    /// Name as in PyTorch, such as `conv1.weight`.
    pub name: String,
    /// Shape as in PyTorch: convolutions `C_out x C_in x K x K`, linear layers `out x in`.
    pub shape: Vec<usize>,
    /// As many values as the shape says.
    pub values: Vec<f32>,
}

/// All parameters of a model, in its own order.
pub type StateDict = Vec<NamedArray>;

/// Checks that a batch has the memory that its shape says and the channels that the model takes.
///
/// # Errors
/// An empty axis, a wrong number of pixels, or wrong channels.
pub fn check_batch(pixels: &[f32], shape: [usize; 4], in_channels: usize) -> Result<()> {
    let [n, c, h, w] = shape;
    let count = shape.iter().try_fold(1usize, |total, &axis| total.checked_mul(axis));
    if count != Some(pixels.len()) || pixels.is_empty() {
        return Err(Error::new(format_args!(
            "a batch of shape {n}x{c}x{h}x{w} (NCHW) does not fit {} pixels",
            pixels.len()
        )));
    }
    if c != in_channels {
        return Err(Error::new(format_args!(
            "the batch has {c} channels, but the model was made for {in_channels}"
        ))
        .hint("make the model with the channels of the data, or choose channels when reading"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_do_not_fit_are_refused() {
        let pixels = [0.0; 24];
        check_batch(&pixels, [2, 1, 3, 4], 1).unwrap();
        assert!(check_batch(&pixels, [2, 1, 3, 5], 1).unwrap_err().cause().contains("24 pixels"));
        assert!(check_batch(&pixels, [1, 2, 3, 4], 1).unwrap_err().hint_text().is_some());
        assert!(check_batch(&[], [0, 1, 3, 4], 1).is_err());
        assert!(check_batch(&pixels, [usize::MAX, 1, usize::MAX, 24], 1).is_err());
    }

    #[test]
    fn output_is_whole_rows() {
        let output = Output::new(vec![1.0, 2.0, 3.0, 4.0], 2).unwrap();
        assert_eq!((output.rows(), output.row(1)), (2, &[3.0, 4.0][..]));
        assert!(Output::new(vec![1.0; 3], 2).is_err());
        assert!(Output::new(vec![], 0).is_err());
    }
}
