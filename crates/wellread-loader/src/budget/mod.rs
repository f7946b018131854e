//! The bound on what a loader holds at once ([`LoaderBuilder::memory`](crate::LoaderBuilder::memory)).
//!
//! ```text
//!  limit  ≥  (prefetch + 1 delivered) × batch  +  threads × share  +  extra  +  caches
//!             ring                                scratch, pieces     of images larger than most
//! ```
//!
//! What a row takes while it is read follows from its shape and from what its store says of pieces
//! ([`RowHints::working_bytes`](wellread_store::RowHints::working_bytes)): [`Needs`]. A thread may use its share without
//! asking; for an image that takes more it waits until the extra part is free ([`Working`]), and gives its buffers back
//! afterwards. Where all that exceeds the limit, first joined reads become shorter, then the thread that waits for batches
//! does not read, then fewer batches are read ahead, then fewer threads read ([`fit`]).
//! Not counted are descriptions of the set (its index, names, shapes) and batches that the caller keeps.

mod fit;
mod memory_use;
mod needs;
mod working;

pub(crate) use fit::{Ahead, Wanted, fit};
pub use memory_use::MemoryUse;
pub(crate) use needs::{INTERMEDIATE, Needs, SPLIT};
pub(crate) use working::Working;
