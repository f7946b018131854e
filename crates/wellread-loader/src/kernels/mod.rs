//! Bytes of any pixel type to the numbers of a batch, in one pass.
//!
//! A patch (rows of little-endian pixels, any alignment) goes through `value * scale + offset` straight to
//! its place in a plane of floats. A flip is a reversed row, a quarter turn a transposition in tiles that
//! stay in the first-level cache.
//!
//! ```text
//!   stored bytes ──turn──▶ 64 bytes in the order of the target ──write──▶ f32
//!                (straight rows: as they lie)                      ├─────▶ f32 in registers ──narrow──▶ f16, bf16
//!                                                                  └─────▶ the same bytes (stored types)
//! ```
//!
//! The arithmetic is that of NumPy's `x.astype(float32) * k + b`. The value is rounded to `f32` first, then the
//! product and the sum are rounded once each, never fused; half precision is one rounding more. Values of more than
//! 16 bits whose leading digits would cancel have a pivot subtracted first, in `f64`. Stores are
//! ordinary ones: streaming past the cache saved nothing on large images when tried. A small image is still
//! in the cache when the model asks for it.
//!
//! | module | what it holds |
//! |---|---|
//! | `affine`, `patch` | factor and summand; source pixels |
//! | `convert` | the kernel for the types at hand |
//! | `raw` | pixels as raw bytes: reversed and transposed in registers |
//! | `reorient` | where pixels go: straight, reversed, transposed |
//! | `write` | what they become: floats, halves, themselves |
//! | `narrow` | `f32` to half precision |
//! | `plane` | what is done to planes besides: maximum over depth, fields |

#![allow(clippy::inline_always)]

mod affine;
mod convert;
mod narrow;
mod patch;
pub(crate) mod plane;
mod raw;
mod reorient;
#[cfg(test)]
mod tests;
mod write;

pub use crate::orientation::Turn;
pub use affine::Affine;
pub(crate) use convert::{bytes_of, convert_patch};
pub use convert::{convert, convert_at, convert_plane};
pub(crate) use narrow::narrow;
pub(crate) use patch::Patch;
