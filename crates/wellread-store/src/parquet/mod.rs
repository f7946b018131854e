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
//! where lists begin. Upstream expands all of it to Python objects. But the chunks' shapes show where lists
//! begin. No level is expanded here and no Arrow array built. Each page is decoded once, to the image's own
//! type, and images are slices of it.
//!
//! | module | what it does |
//! |---|---|
//! | `format`, `recognise` | [`FORMAT`], [`DEFAULT_FORMAT`]; which files are of them |
//! | `file`, `footer`, `footer_checksum` | positional reads; the footer and its checksum |
//! | `schema` | finds the image column and its leaves |
//! | `layout`, `pieces` | rows, chunks, and their places in the pixel leaf |
//! | `metadata` | names, channels, physical sizes (by [`crate::ome_arrow`]) |
//! | `thrift`, `pages`, `pixel_pages` | page headers and offset indexes; pages found, compared with their checksums |
//! | `load` | pages read, decompressed and taken apart |
//! | `sums` | checksums of the pages of whole columns |
//! | `varint` | numbers in as many bytes as they need |
//! | `levels`, `values`, `dictionary`, `delta`, `unpack` | levels compared; values decoded and narrowed (by [`crate::numbers`]) |
//! | `cache`, `fast` | decoded pages shared by threads; blocks from them |
//! | `general`, `check` | the slow path that takes everything, and what must hold before it may |
//! | `store`, `reading` | [`ParquetStore`]: row groups; which path reads which row |
//! | `row_facts` | where a row lies, and the memory that reading it takes |
//! | `ranges`, `pages_ahead` | where the pages of rows lie; their headers, asked for before they are walked |
//! | `plain`, `columns` | columns of plain values, read; which stand beside the images |
//! | `int96` | times of Spark that nanoseconds do not hold |
//! | `writer` | [`ParquetWriter`] |
//! | `codec_name` | names of codecs, as users write and see them |
//! | [`dataset`] | another layout: the folder of tables that `ome-arrow` calls a dataset |

mod cache;
mod check;
mod codec_name;
mod columns;
pub mod dataset;
mod delta;
mod dictionary;
mod fast;
mod file;
mod footer;
mod footer_checksum;
mod format;
mod general;
mod int96;
mod layout;
mod levels;
mod load;
mod metadata;
mod pages;
mod pages_ahead;
mod pieces;
mod pixel_pages;
mod plain;
mod ranges;
mod reading;
mod recognise;
mod row_facts;
mod schema;
mod store;
mod sums;
mod thrift;
mod unpack;
mod values;
mod varint;
mod writer;

pub use format::{DEFAULT_FORMAT, FORMAT};
pub(crate) use plain::{PlainColumns, PlainNames, plain_names, read_plain, read_plain_columns};
pub use store::ParquetStore;
#[cfg(feature = "ome-zarr")]
pub(crate) use writer::table_bytes;
pub use writer::{ParquetWriter, write_error};
