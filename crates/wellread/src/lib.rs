//! Load microscopy images in batches of floats.
//!
//! Open a file or folder in any format that wellread knows, and iterate over batches of `f32`. Formats are OME-Arrow
//! in Parquet, Lance, Vortex and DuckDB, TIFF and OME-TIFF, OME-Zarr, PNG and JPEG folders:
//!
//! ```no_run
//! let dataset = wellread::Dataset::open("plate.parquet")?;
//! let loader = wellread::Loader::builder(&dataset)
//!     .batch_size(16)
//!     .shuffle(42)
//!     .workers(2)
//!     .crop(96, 96)
//!     .scale_to_unit()
//!     .build()?;
//! for batch in &loader {
//!     let batch = batch?;
//!     println!("{:?} of rows {:?}, first pixel {}", batch.shape(), batch.rows(), batch.pixels()[0]);
//! }
//! # Ok::<(), wellread::Error>(())
//! ```
//!
//! Pixels go from the file's decoded bytes to their place in the batch in one pass. They are widened, cropped,
//! flipped, turned, scaled and normalised on the way. The same seed gives the same batches, to the bit,
//! with any number of workers. In steady state nothing is allocated (a read of Lance, Vortex or DuckDB makes some small
//! Arrow objects). Errors name file and row, and say what to do.
//!
//! Images that a program already has come in through [`MemoryStore`], so this example needs no file:
//!
//! ```
//! use wellread::image::{PixelType, Shape};
//! use wellread::{Dataset, Loader, MemoryStore, Transform};
//!
//! // Twenty 16-bit images of two channels, 64 x 64, each of one brightness.
//! let mut store = MemoryStore::new("brightness");
//! let shape = Shape([1, 2, 1, 64, 64]);
//! for i in 0..20u16 {
//!     store.push(format!("image {i}"), shape, PixelType::U16, (3000 * i).to_le_bytes().repeat(shape.pixels()))?;
//! }
//! let dataset = Dataset::from_store(Box::new(store));
//!
//! let loader = Loader::builder(&dataset).batch_size(8).shuffle(42).workers(2).crop(48, 48).scale_to_unit().build()?;
//! let mut images = 0;
//! for batch in &loader {
//!     let batch = batch?;
//!     assert_eq!(batch.shape(), [batch.len(), 2, 48, 48]);
//!     for (i, &row) in batch.rows().iter().enumerate() {
//!         let brightness = 3000.0 * row as f32 * (1.0 / 65535.0);
//!         assert!(batch.image(i).iter().all(|&v| v == brightness));
//!     }
//!     images += batch.len();
//! }
//! assert_eq!(images, 20);
//!
//! // Single items, with buffers that are reused.
//! let (mut pixels, mut context) = (Vec::new(), wellread::ItemContext::new());
//! let recipe = Transform::default().channels([1]).resize(32, 32).scale_to_unit();
//! let shape = dataset.sample_into(5, &recipe, &mut pixels, &mut context)?;
//! assert_eq!((shape.0, pixels.len()), ([1, 1, 1, 32, 32], 1024));
//! # Ok::<(), wellread::Error>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`loader`] | datasets, loaders, transforms, batches |
//! | [`store`] | the storage formats and their trait: open, read regions, write, convert, verify |
//! | [`trace`] | a timeline of what each thread does, for Perfetto |
//! | [`image`] | shapes, pixel types, metadata, synthetic images |
//! | `engines`, `link` | which engines and places are linked; choices for the link to a network |

mod engines;
mod link;

/// The Rust snippets of the documentation, which `cargo test` compiles as doctests. `tests/python/test_docs.py` looks
/// that no page with such a snippet is left out.
#[cfg(doctest)]
mod docs {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../README.md")]
    struct CratePage;
    #[doc = include_str!("../../../docs/transforms.md")]
    struct Transforms;
    #[doc = include_str!("../../../docs/tutorial.md")]
    struct Tutorial;
}

pub use link::Link;
pub use wellread_image as image;
pub use wellread_loader as loader;
pub use wellread_store as store;
pub use wellread_store::trace;

pub use wellread_image::{ImageMetadata, PixelType, Region, Shape};
pub use wellread_loader::{
    Batch, BatchArray, BatchMemory, Batches, Cache, CacheReport, ChannelNormalize, ChannelRange, Crop, DType,
    Dataset, Field, Filter, GroupFields, GroupNormalize, GroupStats, Grouping, ItemContext, Jitter, Loader,
    LoaderBuilder, LoaderState, LoaderStats, MemoryStore, Noise, Normalize, OnError, Order, OrderQuality,
    Output, Pairing, Placement, Resize, RightAngles, Scale, Skipped, Stats, TargetKind, Targets, Traffic,
    Transform, Uneven,
};
pub use wellread_store::{Error, OpenOptions, Result, Store};
