//! The architectures of this build, one line each.

use super::architecture::Architecture;
use super::{resnet50, vit_b_16};
use crate::{Error, Result};

/// One line per architecture.
static ARCHITECTURES: &[&Architecture] = &[&resnet50::RESNET50, &vit_b_16::VIT_B_16];

/// All architectures of this build.
pub fn architectures() -> &'static [&'static Architecture] {
    ARCHITECTURES
}

/// The architecture of that name.
///
/// # Errors
/// No such architecture; the message lists those there are.
pub fn architecture(name: &str) -> Result<&'static Architecture> {
    architectures().iter().find(|a| a.name == name).copied().ok_or_else(|| {
        let known: Vec<_> = architectures().iter().map(|a| a.name).collect();
        Error::new(format_args!("there is no model {name:?} for inference"))
            .hint(format_args!("there are: {}; or give a FILE.onnx", known.join(", ")))
    })
}
