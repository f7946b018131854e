//! The frameworks that there are: one line each.

use super::interface::Backend;
use super::{candle, jax, onnxruntime, pytorch};

/// One line per framework, in the order of tables.
pub static BACKENDS: &[&dyn Backend] =
    &[&pytorch::PyTorch, &jax::Jax, &onnxruntime::OnnxRuntime, &candle::Candle];

/// The backend of that name.
pub fn named(name: &str) -> Option<&'static dyn Backend> {
    BACKENDS.iter().copied().find(|backend| backend.name() == name)
}
