//! The models of the `loop` benchmark, trained on the CPU with gradients of our own, without a tensor library
//! (why: docs/decisions/0042-candle-only-for-gpus.md).
//!
//! ```text
//! pixels, N x C x H x W ──Network::forward──▶ N x D numbers ──minus target──▶ loss
//!          ▲                                                       │ its gradient
//!    parameters ◀──minus 0.01 x gradients── Network::backward ◀────┘
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `linear_probe` | the light model, which is the default |
//! | `small_cnn` | upstream's embedding CNN |
//! | `network` | what a model says of itself: parameters, forward, backward |
//! | `trained` | what the models have in common: threads, steps of SGD, states |
//! | `parameters` | names, shapes, initial values, layouts |
//! | `target` | what is learned, and the loss |
//! | `pooling` | sums and means of pixels |
//! | `linear`, `conv_relu_mean` | layers, of the convolution's kernels |
//!
//! Work is divided the same whatever the number of threads: losses and weights do not depend on it. A step reads the pixels
//! where the loader left them and keeps its arrays for the next step.

mod conv_relu_mean;
mod linear;
pub(crate) mod linear_probe;
mod network;
pub(crate) mod parameters;
pub(crate) mod pooling;
pub(crate) mod small_cnn;
pub(crate) mod target;
mod trained;

#[cfg(test)]
mod tests;
