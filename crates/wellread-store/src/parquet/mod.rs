//! OME-Arrow columns in Parquet: read as fast as their pages decompress, written as `ome-arrow` expects them.
//!
//! Specifications: [OME-Arrow](https://github.com/WayScience/ome-arrow) (see
//! [`wellread_image::ome_arrow`] for the struct and the variants met in the wild) and
//! [Parquet](https://parquet.apache.org/docs/file-format/). Written by `ome-arrow`, pyarrow, DuckDB, polars
//! and others; all of these read what is written here.
//!
//! ```text
//!  footer ──schema──▶ image column, its leaves                       once, when opened
//!    │
//!  statistics, small leaves ──layout──▶ per row: shape, type, chunks,   once per row group, when first needed
//!    │                      and where each chunk's values lie in the pixel leaf
//!  offset index, page headers ──pages──▶ which page holds which values
//!    │
//!  page ──levels (compared with the layout)──values──▶ pixels ──cache──▶ Blocks       for every request
//!    └──anything unusual──▶ general: the parquet crate's Arrow reader
//! ```
//!
//! An image is a list of chunks, a chunk a list of numbers, and so every pixel carries two levels that say
//! where lists begin. Upstream expands all of it to Python objects. But where lists begin is known from the
//! chunks' shapes: no level is expanded here and no Arrow array built; each page is decoded once, to the
//! image's own type, and images are slices of it.
//!
//! | module | what it does |
//! |---|---|
//! | `file` | positional reads |
//! | `schema` | finds the image column and its leaves |
//! | `layout`, `pieces` | rows, chunks, and their places in the pixel leaf |
//! | `metadata` | names, channels, physical sizes (by [`crate::ome_arrow`]) |
//! | `thrift`, `pages`, `pixel_pages` | page headers and offset indexes; pages found, read, checked and decompressed |
//! | `levels`, `values`, `dictionary` | levels compared; values decoded and narrowed |
//! | `cache`, `fast` | decoded pages shared by threads; blocks from them |
//! | `general`, `check` | the slow path that takes everything, and what must hold before it may |
//! | `store`, `reading` | [`ParquetStore`]: row groups; which path reads which row |
//! | `plain` | columns of plain values |
//! | `writer` | [`ParquetWriter`] |
//! | [`dataset`] | another layout: the folder of tables that `ome-arrow` calls a dataset |

mod cache;
mod check;
pub mod dataset;
mod delta;
mod dictionary;
mod fast;
mod file;
mod general;
mod layout;
mod levels;
mod metadata;
mod pages;
mod pieces;
mod pixel_pages;
mod plain;
mod reading;
mod recognise;
mod schema;
mod store;
mod thrift;
mod unpack;
pub(crate) mod values;
mod writer;

pub(crate) use plain::read_plain_columns;
pub use store::ParquetStore;
pub use writer::ParquetWriter;

use crate::{Format, Tune, WriteOptions};

/// Why writing Parquet cannot be resumed.
const NO_APPENDING: &str = "a Parquet file is readable only by the index at its end, which is written last, so no part \
    of it can be gone on with";

/// OME-Arrow columns in Parquet files.
pub static FORMAT: Format = Format {
    name: "parquet",
    about: "OME-Arrow columns in Parquet files, typed or inferred",
    endings: &[".parquet"],
    set_ending: ".parquet",
    holds_images: recognise::holds_images,
    parts: &[],
    keeps_features: true,
    keeps_durations: true,
    holds_bare_pixels: false,
    has_checksums: true,
    has_tables: false,
    has_columns: true,
    has_levels: false,
    heeds_tune: |_| true,
    cannot_resume: Some(NO_APPENDING),
    engine: || {
        let library = parquet::file::properties::DEFAULT_CREATED_BY;
        Ok(format!("parquet {} (own page reader)", library.rsplit(' ').next().unwrap_or(library)))
    },
    recognise: recognise::recognise,
    open: |path, options| Ok(Box::new(ParquetStore::open(path, options)?)),
    create: |path, options| Ok(Box::new(ParquetWriter::create(path, options)?)),
};

/// The same with the Parquet library's own defaults (dictionaries, pages of 1 MiB, large row groups), whatever is
/// asked for: much of what newer formats claim over Parquet is configuration, so comparisons show both.
pub static DEFAULT_FORMAT: Format = Format {
    name: "parquet-default",
    about: "OME-Arrow Parquet with the Parquet library's defaults, to be compared with the tuned one",
    endings: &[],
    set_ending: "-default.parquet",
    heeds_tune: |_| false,
    recognise: |_| false,
    create: |path, options| {
        let options = WriteOptions { tune: Tune::Reference, ..options.clone() };
        Ok(Box::new(ParquetWriter::create(path, &options)?))
    },
    ..FORMAT
};
