//! Model backends that need no Python and no download, and the models that the benchmarks feed.
//!
//! A [`Model`] takes a batch as the loader delivers it, `N x C x H x W` floats in one piece of memory. It runs
//! a forward pass or one training step on it. The backend decides the inside: the tensor library, the memory
//! layout, the threads.
//!
//! ```text
//! batch memory &[f32] ──▶ forward ──▶ Output (N x D embedding)
//!                    └──▶ train_step ──▶ loss, weights moved
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`model`] | the [`Model`] trait, its [`ModelOptions`], [`Output`] and [`StateDict`]; what a [`ModelEntry`] is |
//! | [`registry`] | [`models`], [`create`]: the models of this build, one line each |
//! | [`init`] | seeded initial weights, the same on every platform |
//! | [`tensor`] | host memory to a tensor that owns its own, with and without a copy (the `conversion` benchmark) |
//! | [`convolution`] | convolution and its gradients on plain slices, in two and three dimensions |
//! | `tile`, `threads` | the register tile of all products; the pool of threads that a model runs in |
//! | `training` | the models of the `loop` benchmark on the CPU, with gradients of our own |
//! | `candle` | the same models in candle, for NVIDIA GPUs (cargo feature `cuda`; also in unit tests) |
//! | [`infer`] | inference: ResNet-50 and ViT-B/16, their weights, sessions and ONNX files |
//! | [`error`] | the one error type |
//!
//! A new model is one file in `training` with a network (parameters, forward, backward) and a [`ModelEntry`], plus one line
//! in [`registry`].
//!
//! ```
//! # fn main() -> wellread_model::Result<()> {
//! use wellread_model::{ModelOptions, create};
//! let mut model = create("small-cnn", &ModelOptions { in_channels: 1, ..Default::default() })?;
//! let pixels = vec![0.5; 2 * 32 * 32];
//! let output = model.forward(&pixels, [2, 1, 32, 32])?;
//! assert_eq!((output.rows(), output.width()), (2, 128));
//! let first = model.train_step(&pixels, [2, 1, 32, 32])?;
//! let second = model.train_step(&pixels, [2, 1, 32, 32])?;
//! assert!(second < first);
//! # Ok(())
//! # }
//! ```

#[cfg(any(feature = "cuda", all(feature = "candle", test)))]
mod candle;
pub mod convolution;
pub mod error;
pub mod infer;
pub mod init;
pub mod model;
pub mod registry;
pub mod tensor;
mod threads;
mod tile;
mod training;

pub use error::{Error, Result};
pub use model::{Device, Model, ModelEntry, ModelOptions, NamedArray, Output, StateDict};
pub use registry::{create, models};
pub use tensor::{TensorHandle, tensor_from_slice_copy, tensor_from_vec};
