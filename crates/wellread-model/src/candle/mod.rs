//! The embedded backend: candle, with a convolution of its own on the CPU.
//!
//! Why candle, and why not its convolution: docs/decisions/0001-embedded-model-backend.md.
//!
//! | module | what it holds |
//! |---|---|
//! | `conv` | [`crate::convolution`] as candle operators with gradients |
//! | `runtime` | device and threads of one model |
//! | `trained` | what the models have in common: parameters from a seed, target, SGD |
//! | [`linear_probe`] | the light model of the `loop` benchmark, its default |
//! | [`small_cnn`] | upstream's embedding CNN |
//!
//! Each model has a thread pool of its own, as many threads as asked for, in which everything runs: candle's
//! operators and ours use the pool they are called from. After `fork` the child must make a new model, since
//! threads do not survive it.

mod conv;
pub mod linear_probe;
mod runtime;
pub mod small_cnn;
mod trained;

pub(crate) use runtime::{Runtime, thread_pool};
