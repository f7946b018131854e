//! OME-Arrow images in [Vortex](https://docs.vortex.dev/specs/file-format.html) files.
//!
//! A Vortex file is a tree of layouts (structs by field, columns by chunk). Its leaves are compressed arrays that
//! can be cut without being decompressed. `wellread_store::table` knows what an image is; this crate fetches the
//! columns and rows that it asks for, and writes the record batches that it makes.
//!
//! ```text
//!  file ──mapped──▶ layouts ──tree──▶ column ──▶ piece (a chunk of rows)        once, when first asked for
//!                                                  │ piece: lists opened up, values left compressed ──▶ cache
//!  rows ──────────────────────────────────────────▶│ gather: the rows' values, decompressed
//!                                                  ▼
//!                                            RecordBatch ──▶ TableStore
//!  rows ──rows──▶ chunks and planes where they lie, without arrays ──▶ TableStore     values that are not compressed
//!
//!  TableWriter ──bridge──▶ RecordBatch ──cut──▶ arrays ──strategy (compressors)──▶ segments, footer
//! ```
//!
//! The library's own scan is not used because it plans anew for every call. To fetch one list, it decompresses
//! the values of all lists of its chunk. In files of default settings these are the pixels of 8,192 images.
//!
//! | module | what it does |
//! |---|---|
//! | `session` | what the library needs to be told: registries, runtime; its errors in words |
//! | `file` | the mapped file: end marker, footer, metadata |
//! | `remote` | a file in a bucket or on a web server: its segments as ranges, fetched together |
//! | `tree`, `piece`, `cache` | layouts; arrays opened up for gathering; those that are kept |
//! | `bridge`, `types` | batches handed between the library's release of Arrow and this workspace's; types of columns in both |
//! | `gather` | Arrow arrays of chosen rows, of this workspace's release; what the library has to decode comes over the bridge |
//! | `rows` | where rows lie; their images handed on from there |
//! | `plan` | which pieces hold the rows of a batch, and their parts as its arrays |
//! | `table` | [`VortexTable`] |
//! | `times` | dates and times that the library does not take |
//! | `writer`, `strategy` | files written; how they are cut and compressed |
//!
//! Lance and DuckDB also read past their libraries, and share code with this crate:
//! [`wellread_store::direct`].

mod bridge;
mod cache;
mod file;
mod gather;
mod piece;
mod plan;
mod remote;
mod rows;
mod session;
mod strategy;
mod table;
mod times;
mod tree;
mod types;
mod writer;

pub use table::VortexTable;

use wellread_store::Format;
use wellread_store::features::is_own_of_tables;
use wellread_store::table::TableStore;

/// Release of the `vortex` crate that is built in; a test compares it with the lock file.
pub const LIBRARY: &str = "0.90.0";

/// OME-Arrow columns in Vortex files.
pub static FORMAT: Format = Format {
    name: table::NAME,
    about: "OME-Arrow columns in Vortex files",
    endings: &[".vortex"],
    set_ending: ".vortex",
    is_folder: false,
    holds_images: file::holds_images,
    parts: &[],
    inner_folders: &[],
    foreign_entry: |_| Ok(None),
    keeps_features: true,
    features_beside: false,
    join_parts: None,
    own_columns: is_own_of_tables,
    names_tell: |_, _| false,
    keeps_durations: false,
    keeps_seconds: true,
    keeps_zoned_nanoseconds: true,
    keeps_zones: true,
    holds_bare_pixels: false,
    has_checksums: false,
    has_tables: false,
    has_columns: true,
    has_levels: false,
    has_display_settings: false,
    uses_tune: |_| true,
    cannot_resume: Some(
        "a Vortex file is readable only by the layout at its end, which is written last, so no part of one can be \
         continued",
    ),
    engine: || {
        Ok(format!(
            "vortex {LIBRARY} (file format {}, writes edition {})",
            vortex::file::VERSION,
            vortex::editions::DEFAULT_CORE_EDITION
        ))
    },
    recognise: |probe| !probe.is_dir && probe.head.starts_with(&vortex::file::MAGIC_BYTES),
    open: |path, options| Ok(Box::new(TableStore::open(Box::new(VortexTable::open(path)?), options)?)),
    create: |path, options| Ok(Box::new(writer::create(path, options)?)),
};

wellread_store::register_format!(FORMAT);
