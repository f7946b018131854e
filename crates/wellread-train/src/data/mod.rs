//! Images and targets: matched, divided, read in patches or whole.
//!
//! ```text
//! images ─▶ names ─▶ Subset ─┐ row i                             two loaders, one seed: the same rows, crops, flips
//!                            ├▶ Pairs ─▶ training rows, validation rows ─▶ Patches ─▶ Tensor, Tensor
//! targets ─▶ names ─▶ Subset ┘ row i (masks as 0 and 1)                └─▶ whole images
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`pairs`] | [`Pairs`]: which target belongs to which image |
//! | [`binary`] | masks of any labels as 0 and 1 |
//! | [`normal`] | what intensities are normalised by |
//! | [`patches`] | [`Patches`]: random patches of image and target |
//! | [`elastic`] | elastic deformation of both |

pub mod binary;
pub mod elastic;
pub mod normal;
pub mod pairs;
pub mod patches;

pub use normal::Normal;
pub use pairs::Pairs;
pub use patches::Patches;
