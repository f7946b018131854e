//! The frameworks, one file each, with a line in [`BACKENDS`].

mod candle;
mod interface;
mod jax;
pub mod onnxruntime;
mod pytorch;
mod registry;

pub use interface::Backend;
pub use registry::{BACKENDS, named};
