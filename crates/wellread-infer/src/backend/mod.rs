//! The frameworks, one file each, with a line in [`BACKENDS`].

mod callable;
mod candle;
mod interface;
mod jax;
pub mod onnxruntime;
mod pytorch;
mod registry;

pub use callable::CALLABLE;
pub use interface::Backend;
pub use registry::{BACKENDS, named};
