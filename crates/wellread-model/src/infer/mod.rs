//! Inference: architectures with torchvision's weights, and sessions that run them.
//!
//! ```text
//! Architecture ──▶ Network ──seed──▶ weights_file (safetensors) ──▶ candle::open ──────┐
//!                                                    └─▶ onnx_file ─▶ onnxruntime::open ┴─▶ dyn Session
//! Session: load(images) once, then run() as often as wanted, then logits()
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`network`] | a network as data: nodes, shapes, parameters |
//! | [`resnet50`], [`vit_b_16`] | the architectures, one file each |
//! | [`weights`] | seeded weights as safetensors, written and read |
//! | [`candle`] | the Rust-native sessions: `cpu` with kernels of our own, `library` in candle's operators |
//! | [`onnx`] | ONNX files from the same network and weights |
//! | `onnxruntime` | ONNX Runtime sessions (cargo feature `onnxruntime`) |
//! | [`session`] | the [`Session`] trait, its [`SessionOptions`] and [`Dtype`] |
//!
//! A new architecture is one file and one line in [`architectures`]; parameters, sessions and the ONNX file
//! follow from it.

pub mod candle;
mod cpu;
mod library;
pub mod network;
pub mod onnx;
#[cfg(feature = "onnxruntime")]
pub mod onnxruntime;
pub mod resnet50;
pub mod session;
pub mod vit_b_16;
pub mod weights;

pub use onnx::{onnx_file, onnx_file_in};
pub use session::{Dtype, Session, SessionOptions};
pub use weights::{Weights, remove_unfinished, weights_file};

use crate::{Error, Result};
use network::Network;

/// A model that can be measured: what goes in, what comes out, how it is built.
#[derive(Clone, Debug)]
pub struct Architecture {
    /// Name as in `--model`, which is torchvision's.
    pub name: &'static str,
    /// One line for help texts.
    pub about: &'static str,
    /// Channels, rows and columns of an image.
    pub input: [usize; 3],
    /// Numbers per image that come out.
    pub classes: usize,
    /// Builds the network for `input` and `classes`.
    pub build: fn(&Architecture) -> Result<Network>,
}

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

impl Architecture {
    /// The network.
    ///
    /// # Errors
    /// An `input` that the architecture cannot take.
    pub fn network(&self) -> Result<Network> {
        (self.build)(self)
    }

    /// The same architecture for images of `[channels, height, width]`.
    ///
    /// # Errors
    /// Images that it cannot take: other than three channels, too small or, for ViT, of another size.
    pub fn with_input(&self, input: [usize; 3]) -> Result<Self> {
        /// Rows or columns beyond which sizes of arrays could overflow.
        const LARGEST: usize = 1 << 15;
        let [channels, height, width] = input;
        if channels != self.input[0] {
            return Err(Error::new(format_args!(
                "{} reads images of {} channels, not {channels}",
                self.name, self.input[0]
            )));
        }
        if height > LARGEST || width > LARGEST {
            return Err(Error::new(format_args!(
                "images of {height} x {width} pixels are too large: {LARGEST} at most a side"
            )));
        }
        let changed = Self { input, ..self.clone() };
        changed.network()?;
        Ok(changed)
    }

    /// Floats per image.
    pub fn pixels(&self) -> usize {
        self.input.iter().product()
    }
}
