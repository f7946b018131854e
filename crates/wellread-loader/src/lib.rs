//! From a store to batches: sampler, fetch, transform, batch.
//!
//! ```text
//!  Dataset ──builder──▶ Loader ──iter──▶ Batches ──next──▶ Batch   N C Y X (or N T C Z Y X)
//!                                          │ slices of batches, in order, claimed by threads
//!                                          ▼
//!      order: position → row      transform: row → Placement (crop, flip, turn), the same whoever asks
//!                                          ▼
//!      Store::read(requests by position on disk) ──Block──▶ fused sink: one pass from decoded bytes
//!                                                           to scaled numbers in the batch's memory
//! ```
//!
//! All random draws are a function of (seed, epoch, row). The order is one of (seed, epoch, position), never of the
//! thread or of time. Where an order has a row more than once in an epoch, position tells the times apart. So the
//! batches of an epoch are bit-identical for any number of workers, and an epoch is resumed from one small record. All
//! large memory is reused: in steady state nothing is allocated.
//!
//! Imports go one way, from above to below:
//!
//! ```text
//!  builder                               what was asked for becomes a loader
//!  loader                                what a loader is asked
//!  pipeline                              the iterator and its threads
//!  ring                                  the batches that threads fill
//!  ahead                                 bytes that are remote, asked for early
//!  plan                                  what epochs have in common
//!  item                                  rows to batches: what one thread does
//!  budget                                the bound on memory
//!  compiled_transform                    a transform for the rows of a set
//!  row_groups                            rows with statistics of their own
//!  targets · stats · row_channels · row_fields · postprocess · resample
//!  dataset · transform · batch · sink · state
//!  order · kernels · pool · percentiles
//!  cache · dtype · traffic · skip · memory · draw · math · orientation · simd · reader_faults · recorded
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`dataset`] | [`Dataset`]: a store that is cheap to clone, its splits |
//! | `item` | rows to batches and single items: what one thread does |
//! | `targets` | [`Targets`]: a second set beside the images, such as masks |
//! | [`cache`] | [`Cache`]: what is kept of images that have been read |
//! | [`loader`], `builder` | [`Loader`], and [`LoaderBuilder`], which checks what was asked for |
//! | `plan` | what the epochs of a loader have in common |
//! | `ahead` | how far ahead bytes are asked for that are remote |
//! | `ring` | the batches of an epoch that threads fill |
//! | [`pipeline`] | [`Batches`], the iterator that owns the worker threads |
//! | [`batch`] | [`Batch`], whose aligned memory comes from a pool, or from you ([`BatchMemory`]) |
//! | `pool` | [`BatchMemory`], and the pool that buffers of batches come from and return to |
//! | [`order`] | [`Order`], [`Grouping`], keyed permutations; how random an order is |
//! | `budget` | [`MemoryUse`]: the bound on memory, and what it is made of |
//! | [`state`] | [`LoaderState`], where an epoch is: saved and resumed |
//! | [`skip`] | [`OnError`]: what becomes of rows that cannot be read |
//! | [`transform`] | [`Transform`], [`Placement`] and what they are made of |
//! | `compiled_transform`, `sink`, `reader_faults` | a transform for one pixel type; the one pass from decoded bytes to the batch; what no reader may deliver |
//! | `postprocess`, `resample`, `percentiles` | what one pass cannot do: noise and intensities; resize and rotation; percentiles |
//! | `row_groups`, `row_channels`, `row_fields` | what a row has of its own: statistics, places of its channels, illumination |
//! | `draw`, `orientation` | random numbers as functions of the row; flips and turns as integers |
//! | [`field`] | [`Field`]: illumination |
//! | [`stats`] | [`Stats`]: means, deviations, percentiles and histograms of a set |
//! | [`dtype`] | [`Output`], [`DType`]: what the numbers of a batch are |
//! | [`kernels`] | bytes of any pixel type to the numbers of a batch, at the CPU's best vector width |
//! | `simd`, `math` | a kernel for each vector width, chosen at run time; functions with the same bits at every width |
//! | [`traffic`] | [`Traffic`]: bytes read for the bytes used; [`LoaderStats`]: with what went over a link |
//! | [`memory`] | [`MemoryStore`]: images in RAM, as a store |

mod ahead;
pub mod batch;
mod budget;
mod builder;
pub mod cache;
mod compiled_transform;
pub mod dataset;
mod draw;
pub mod dtype;
mod item;
pub mod kernels;
pub mod loader;
mod math;
pub mod memory;
pub mod order;
mod orientation;
mod percentiles;
pub mod pipeline;
mod plan;
mod pool;
mod postprocess;
mod reader_faults;
#[cfg(test)]
mod recorded;
mod resample;
mod ring;
mod row_channels;
mod row_fields;
mod row_groups;
pub mod simd;
mod sink;
pub mod skip;
pub mod state;
pub mod stats;
mod targets;
pub mod traffic;
pub mod transform;

pub use batch::{Batch, BatchArray};
pub use budget::MemoryUse;
pub use builder::LoaderBuilder;
pub use cache::{Cache, CacheReport};
pub use dataset::Dataset;
pub use dtype::{DType, Element, Output};
pub use item::ItemContext;
pub use loader::Loader;
pub use memory::MemoryStore;
pub use order::{Grouping, Order, OrderQuality, Uneven};
pub use pipeline::{Batches, Stopper};
pub use pool::BatchMemory;
pub use skip::{OnError, Skipped};
pub use state::LoaderState;
pub use stats::{GroupStats, Stats};
pub use targets::{Pairing, TargetKind, Targets};
pub use traffic::{LoaderStats, Traffic};
pub use transform::field::{self, Field};
pub use transform::{
    ChannelNormalize, ChannelRange, Crop, Filter, GroupFields, GroupNormalize, Jitter, Noise, Normalize,
    Placement, Resize, RightAngles, Scale, Transform, TransformError,
};
