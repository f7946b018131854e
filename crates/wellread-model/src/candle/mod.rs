//! candle, for NVIDIA GPUs (cargo feature `cuda`; unit tests have it, too): the models of the `loop` benchmark
//! in candle's own operators. Inference is [`crate::infer`]'s affair.
//!
//! Why only there: docs/decisions/0042-candle-only-for-gpus.md. The tests run the same operators on the CPU, and hold them
//! against the gradients of our own in [`crate::training`].
//!
//! | module | what it holds |
//! |---|---|
//! | `registry` | the models, one line each |
//! | `linear_probe`, `small_cnn` | their networks |
//! | `on_device` | what the models have in common: parameters on the device, steps of SGD |
//! | `runtime` | device and threads of one model |
//!
//! Parameters have PyTorch's layouts here, and images are `N x C x H x W`, as candle wants them.

mod linear_probe;
mod on_device;
mod registry;
mod runtime;
mod small_cnn;

pub(crate) use registry::create;
pub(crate) use runtime::Runtime;

#[cfg(test)]
mod tests;
