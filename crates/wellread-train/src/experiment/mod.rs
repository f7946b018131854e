//! The differences between experiments; they share all else.
//!
//! One file per experiment with a `pub static EXPERIMENT: Experiment`, and a line in [`EXPERIMENTS`].

mod interface;
pub mod labelfree;
mod registry;
pub mod segmentation;

pub use interface::Experiment;
pub use registry::{EXPERIMENTS, named};
