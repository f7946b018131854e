//! The Rust-native backend.
//!
//! On the CPU the kernels are our own ([`super::cpu`]): candle's take several times as long
//! (docs/decisions/0018-native-inference.md).

use super::cpu::CpuSession;
use super::{Architecture, Session, SessionOptions, Weights};
use crate::{Device, Error, Result};
use std::path::Path;

/// Opens `arch` with the weights of a safetensors file.
///
/// # Errors
/// Weights that do not fit, a device that is not there, a type that is not supported on it.
pub fn open(arch: &Architecture, weights: &Path, options: &SessionOptions) -> Result<Box<dyn Session>> {
    let weights = Weights::read(arch, weights)?;
    match options.device {
        Device::Cpu => Ok(Box::new(CpuSession::new(arch, &weights, options)?)),
        Device::Cuda(index) => Err(Error::new(format_args!("inference on cuda:{index} is not there yet"))),
    }
}
