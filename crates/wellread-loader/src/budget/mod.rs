//! The bound on what a loader holds at once ([`LoaderBuilder::memory`](crate::LoaderBuilder::memory)).
//!
//! ```text
//!  limit  ≥  (prefetch + 1 delivered) × batch  +  threads × share  +  extra  +  caches
//!             ring                                scratch, pieces     of images larger than most
//! ```
//!
//! The memory for reading a row follows from its shape and from its store's pieces
//! ([`RowHints::working_bytes`](wellread_store::RowHints::working_bytes)): [`MemoryEstimate`]. A thread may use its
//! share without asking. For an image that takes more it waits until the extra part is free ([`WorkingMemory`]), and
//! gives its buffers back afterwards. Where all that exceeds the limit, first joined reads become shorter, then the
//! thread that waits for batches does not read. Then fewer batches are read ahead, then fewer threads read ([`fit`]).
//! Not counted are descriptions of the set (its index, names, shapes) and batches that the caller keeps.

mod estimate;
mod fit;
mod memory_use;
mod working;

pub(crate) use estimate::{MAX_INTERMEDIATE_FLOATS, MemoryEstimate, SPLIT_BYTES};
pub(crate) use fit::{FitRequest, ReadAhead, ahead_share, fit};
pub use memory_use::MemoryUse;
pub(crate) use working::WorkingMemory;
