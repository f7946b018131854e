//! From a store to batches of `f32`: sampler, fetch, transform, batch.
//!
//! ```text
//!  Dataset ──builder──▶ Loader ──iter──▶ Batches ──next──▶ Batch   &[f32], N C Y X (or N T C Z Y X)
//!                                          │ slices of batches, in order, claimed by threads
//!                                          ▼
//!      order: position → row      transform: row → Placement (crop, flip, turn), the same whoever asks
//!                                          ▼
//!      Store::read(requests by position on disk) ──Block──▶ fused sink: one pass from decoded bytes
//!                                                           to scaled floats in the batch's memory
//! ```
//!
//! Everything that is random is a function of (seed, epoch, row), never of the thread or of time: the
//! batches of an epoch are bit-identical whatever the number of workers. Everything that is large is
//! reused: in steady state nothing is allocated.
//!
//! | module | what it holds |
//! |---|---|
//! | [`dataset`] | [`Dataset`]: a store that is cheap to clone, single items |
//! | [`cache`] | [`Cache`]: what is kept of images that have been read |
//! | [`loader`] | [`Loader`] and [`LoaderBuilder`] |
//! | [`pipeline`] | [`Batches`], the iterator that owns the worker threads |
//! | [`batch`] | [`Batch`] and the pool of aligned buffers behind it |
//! | [`order`] | [`Order`], [`Grouping`], keyed permutations |
//! | [`transform`] | [`Transform`], [`Placement`] and what they are made of |
//! | [`kernels`] | bytes of any pixel type to scaled floats, at the CPU's best vector width |
//! | [`memory`] | [`MemoryStore`]: images in RAM, as a store |

pub mod batch;
mod builder;
pub mod cache;
pub mod dataset;
mod draw;
mod item;
pub mod kernels;
pub mod loader;
pub mod memory;
pub mod order;
mod orientation;
pub mod pipeline;
mod resample;
pub mod simd;
mod sink;
pub mod transform;

pub use batch::Batch;
pub use builder::LoaderBuilder;
pub use cache::{Cache, CacheReport};
pub use dataset::Dataset;
pub use item::ItemContext;
pub use loader::Loader;
pub use memory::MemoryStore;
pub use order::{Grouping, Order};
pub use pipeline::Batches;
pub use transform::{
    Crop, Filter, Normalize, Placement, Resize, RightAngles, Scale, Transform, TransformError,
};
