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
//! | `architecture` | [`Architecture`]: what goes in, what comes out, how the network is built |
//! | [`resnet50`], [`vit_b_16`] | the architectures, one file each |
//! | `registry` | [`architectures`]: the list of them |
//! | [`weights`] | seeded weights as safetensors, written and read |
//! | [`candle`] | the Rust-native sessions: `cpu` with kernels of our own, `candle_ops` in candle's operators (cargo feature `cuda`) |
//! | [`onnx`] | ONNX files from the same network and weights |
//! | `onnxruntime` | ONNX Runtime sessions (cargo feature `onnxruntime`) |
//! | [`session`] | the [`Session`] trait, its [`SessionOptions`] and [`Dtype`] |
//!
//! A new architecture is one file and one line in `registry.rs`; parameters, sessions and the ONNX file
//! follow from it.

mod architecture;
pub mod candle;
#[cfg(any(feature = "cuda", all(feature = "candle", test)))]
mod candle_ops;
mod cpu;
pub mod network;
pub mod onnx;
#[cfg(feature = "onnxruntime")]
pub mod onnxruntime;
mod registry;
pub mod resnet50;
pub mod session;
pub mod vit_b_16;
pub mod weights;

pub use architecture::Architecture;
pub use onnx::{onnx_file, onnx_file_in};
pub use registry::{architecture, architectures};
pub use session::{Dtype, Session, SessionOptions};
pub use weights::{Weights, remove_unfinished, weights_file};
