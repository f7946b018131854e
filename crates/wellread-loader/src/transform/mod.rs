//! The steps of an image on its way into a batch.
//!
//! A [`Transform`] says which steps; a [`Placement`] is what its geometry came to for one row in one epoch. The order of
//! the steps is fixed:
//!
//! ```text
//! maximum over Z → channels → crop → illumination → flips → right-angle turns → resize → rotation by a few degrees →
//! scale → brightness → contrast → gamma → photon noise → Gaussian noise → normalise → channel drop-out
//! ```
//!
//! Channels, crop, flips, turns, scale, brightness and normalisation by given numbers are folded into the one pass that
//! reads the pixels. The other steps work on the image while it is in the cache. Random draws depend on (seed, epoch,
//! row, its occurrence where the epoch has it more than once, number of the crop) alone. Each step has draws of its
//! own, so switching one on changes no other.
//!
//! | module | what it holds |
//! |---|---|
//! | `steps`, [`field`], `fields`, `groups` | what a transform is made of |
//! | `channel_names`, `by_name` | statistics whose channels have names, put into the order of a set's channels |
//! | `compose` | [`Transform`]: steps put together |
//! | `check` | what makes no sense, or does not fit an image |
//! | `placement` | crops, flips and turns as drawn |
//! | `npy` | fields in NumPy's files |
//! | `affine` | factor and summand for the pass over the pixels |
//! | `error` | why a transform cannot be applied |

pub(crate) mod affine;
mod by_name;
mod channel_names;
mod check;
mod compose;
mod error;
pub mod field;
mod fields;
mod groups;
mod npy;
mod placement;
mod steps;

pub(crate) use channel_names::ChannelNames;
pub use channel_names::{ChannelNormalize, ChannelRange};
pub use compose::Transform;
pub use error::TransformError;
pub use fields::GroupFields;
pub(crate) use fields::{ChannelPaths, Piece};
pub use groups::GroupNormalize;
pub use placement::Placement;
pub use steps::{Crop, Filter, Jitter, Noise, Normalize, Resize, RightAngles, Scale};
