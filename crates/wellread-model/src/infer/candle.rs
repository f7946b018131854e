//! The Rust-native backend, which goes by the name `candle`.
//!
//! | device | what computes | types |
//! |---|---|---|
//! | CPU | kernels of our own (`super::cpu`): candle's take several times as long, docs/decisions/0018 | `float32` |
//! | NVIDIA GPU, cargo feature `cuda` | candle's operators (`super::candle_ops`) | `float32`, `float16`, `bfloat16` |

#[cfg(any(feature = "cuda", all(feature = "candle", test)))]
use super::candle_ops::CandleOpsSession;
use super::cpu::CpuSession;
use super::{Architecture, Session, SessionOptions, Weights};
use crate::{Device, Result};
use std::path::Path;

/// Kinds of devices that this build has kernels for.
pub const DEVICES: &[&str] = if cfg!(feature = "cuda") { &["cpu", "cuda"] } else { &["cpu"] };

/// Opens `arch` with the weights of a safetensors file.
///
/// # Errors
/// Weights that do not fit, a device that is not there or not in this build, a type that is not supported on it.
pub fn open(arch: &Architecture, weights: &Path, options: &SessionOptions) -> Result<Box<dyn Session>> {
    let weights = Weights::read(arch, weights)?;
    match options.device {
        Device::Cpu => Ok(Box::new(CpuSession::new(arch, &weights, options)?)),
        #[cfg(any(feature = "cuda", all(feature = "candle", test)))]
        Device::Cuda(_) => Ok(Box::new(CandleOpsSession::new(arch, &weights, options)?)),
        #[cfg(not(any(feature = "cuda", all(feature = "candle", test))))]
        Device::Cuda(_) => Err(options.device.without_candle()),
    }
}
