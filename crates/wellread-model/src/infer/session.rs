//! The interface of a running model, for every backend.

use crate::{Device, Error, Result};
use std::fmt;
use std::str::FromStr;

/// A model that is ready to run on one device with one data type.
///
/// `load` brings a batch into the backend's own memory and layout and is not measured; `run` is.
pub trait Session: Send {
    /// Library, version, device and threads in words: for reports.
    fn backend(&self) -> String;

    /// Takes a batch of `batch` images, `N x C x H x W` floats in C order.
    ///
    /// # Errors
    /// A number of pixels that does not fit, a batch that does not fit in memory, a failure of the backend.
    fn load(&mut self, images: &[f32], batch: usize) -> Result<()>;

    /// One forward pass over what was loaded; the outputs are done when it returns.
    ///
    /// # Errors
    /// Nothing was loaded; a failure of the backend.
    fn run(&mut self) -> Result<()>;

    /// The result of the last run: floats in C order, `batch x classes` of the architectures.
    ///
    /// # Errors
    /// Nothing was run; a failure of the backend.
    fn logits(&self) -> Result<Vec<f32>>;

    /// The axes of [`Self::logits`]: the output of a user's file may have any.
    ///
    /// # Errors
    /// Nothing was run.
    fn output_shape(&self) -> Result<Vec<usize>>;

    /// Lets go of the batch and of what was computed from it, so that their memory is free for another one.
    fn forget(&mut self);
}

/// How to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads on the CPU; 0 takes all there are.
    pub threads: usize,
    /// Where to run.
    pub device: Device,
    /// The type to compute in.
    pub dtype: Dtype,
    /// The output of an ONNX file that is wanted; `None` for the first. Architectures have one.
    pub output: Option<String>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { threads: 0, device: Device::Cpu, dtype: Dtype::Float32, output: None }
    }
}

/// Type of the numbers that a session computes with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// 32 bits.
    #[default]
    Float32,
    /// 16 bits, IEEE 754.
    Float16,
    /// 16 bits, the upper half of a `float32`.
    Bfloat16,
}

impl Dtype {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Float32, Self::Float16, Self::Bfloat16];

    /// Name as in `--dtype`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float16 => "float16",
            Self::Bfloat16 => "bfloat16",
        }
    }

    /// Checks that a backend computes in this type.
    ///
    /// # Errors
    /// It does not; the message lists what `backend` supports.
    pub fn check(self, backend: &str, supported: &[Self]) -> Result<()> {
        if supported.contains(&self) {
            return Ok(());
        }
        let names: Vec<_> = supported.iter().map(|d| d.name()).collect();
        Err(Error::new(format_args!("{backend} does not compute in {self}"))
            .hint(format_args!("it supports: {}", names.join(", "))))
    }

    /// As [`Dtype::check`], of a model's input. Not every command has a choice of the type, so the hint is about the file.
    #[cfg_attr(not(feature = "onnxruntime"), allow(dead_code))]
    pub(super) fn check_input(self, model: &str, supported: &[Self]) -> Result<()> {
        let is_lacking = self == Self::Float32 && !supported.contains(&self);
        if let Some(other) = supported.first().filter(|_| is_lacking) {
            let cause = format!("{model} takes images of {other}, and they are {self} here");
            return Err(Error::new(cause).hint(FLOAT32_INPUT));
        }
        self.check(model, supported)
    }
}

/// The way on with a model of another input type.
#[cfg_attr(not(feature = "onnxruntime"), allow(dead_code))]
pub(super) const FLOAT32_INPUT: &str =
    "export it with float32 input, or convert it (infer on a GPU takes float16 too)";

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dtype {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|d| d.name() == name).ok_or_else(|| {
            Error::new(format_args!("there is no data type {name:?} for inference"))
                .hint("there are: float32, float16, bfloat16")
        })
    }
}

/// Checks that `images` are `batch` images of `input`.
///
/// # Errors
/// An empty batch or a wrong number of pixels.
pub(super) fn check_images(images: &[f32], batch: usize, input: [usize; 3]) -> Result<()> {
    let [c, h, w] = input;
    crate::model::check_batch(images, [batch, c, h, w], c)
}

/// The error of [`Session::run`] and [`Session::logits`] before [`Session::load`].
pub(super) fn nothing_loaded() -> Error {
    Error::new("no images were loaded into the session").hint("call load, then run, then logits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_another_input_are_to_be_exported_with_float32() {
        let check = |asked: Dtype, supported: &[Dtype]| asked.check_input("the model a.onnx", supported);
        let error = check(Dtype::Float32, &[Dtype::Float16]).unwrap_err();
        assert!(error.to_string().contains("takes images of float16, and they are float32 here"), "{error}");
        assert!(
            error.hint_text().is_some_and(|hint| hint.starts_with("export it with float32 input")),
            "{error}"
        );
        // Only a command with a choice of the type asks for another one.
        let error = check(Dtype::Float16, &[Dtype::Float32]).unwrap_err();
        assert!(error.to_string().contains("does not compute in float16"), "{error}");
        assert_eq!(error.hint_text(), Some("it supports: float32"));
        assert!(check(Dtype::Float16, &[Dtype::Float32, Dtype::Float16]).is_ok());
    }
}
