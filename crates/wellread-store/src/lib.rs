//! Storage formats behind one trait.
//!
//! ```text
//!  path ──registry──▶ Format::open ──▶ Box<dyn Store>     rows, shapes, names: no pixel is read
//!                                        │ read(requests, scratch, sink)
//!                                        ▼
//!                                      Block … Block      decoded chunks, strips, pages, clipped by the sink
//!                                        │
//!                          CopySink (native pixels) · the loader's fused sink (scaled floats in a batch slot)
//! ```
//!
//! A store never knows about batches, and its reader never knows about formats. Adding a format is one file
//! here (or one crate, for engines that are large to compile) with a [`Format`] value. It takes one
//! line in [`registry`].
//!
//! Imports go one way, from above to below:
//!
//! | layer | module | what it holds |
//! |---|---|---|
//! | whole sets | [`convert`], [`read_back`] | a set written in another format; what was written, read back before it is placed |
//! | | [`parted`] | a set that several processes write in parts |
//! | | [`verify`], [`checksum`] | pixels of a set held against sums or another set; the sums of its images |
//! | | [`preview`] | contrast-stretched thumbnails of rows |
//! | | [`bare_codec`] | decompressors on their own, to hold readers against |
//! | other views | [`cells`] | a set seen cell by cell |
//! | | [`planes`], [`subset`], [`colors`] | a set seen plane by plane; some rows of a set; pictures of any colours as red, green and blue |
//! | | [`with_columns`] | a set with the columns of a table in memory beside its images |
//! | facts of sets | [`masks`], [`labels`] | masks among images, told by names; label images that lie beside images, which are no rows |
//! | | [`mixed_channels`], [`unkept`] | images that have other channels at the same numbers; what a format says of images and no conversion keeps |
//! | several sets | [`concat`] | [`open`], [`open_all`]: a path, a glob, a folder of tables, several paths as one set |
//! | the list | [`registry`] | the list of formats, recognition by content, [`create`] |
//! | several files | [`sites`] | images of several files each, put together by the files' names |
//! | formats | [`parquet`] | OME-Arrow columns in Parquet |
//! | | [`tiff`] | TIFF and OME-TIFF, files and folders |
//! | | [`ome_zarr`] | OME-Zarr 0.4 and 0.5 |
//! | | [`image_folder`] | PNG and JPEG folders |
//! | | [`table`], [`direct`] | OME-Arrow columns in the tables of any engine; what engines share whose files are read past their libraries |
//! | | [`profiles`] | columns of plain values that are joined to images by name |
//! | shared by formats | `ome_arrow` | arrays of OME-Arrow to images and back |
//! | | [`features`] | columns of plain values beside images |
//! | | `image_writers`, `set_names` | images written to a file each, in threads; what these are called |
//! | | [`staged`], [`spool`] | output written beside its place and renamed when complete; copies of files of other places, for libraries that open files themselves |
//! | | [`trace`] | a timeline of what threads do, written to a file |
//! | what a format is | `format`, `read_only`, `probe` | [`Format`], [`OpenOptions`], [`formats`]; a format that is only read; what is told of a path before it is opened |
//! | | [`entries`], `folders`, `part_list` | what lies in a folder, and what of it is no part of a set; folders below it; the list of a set's parts |
//! | traits | [`store`] | [`Store`], [`Block`], [`PixelSink`] |
//! | | `delegate` | [`delegate_store!`], [`delegate_columns!`], [`default_answers!`], [`default_columns!`], [`unknown_facts!`]: methods that a store hands on to another one, or has no better answer to; facts of rows that it does not know |
//! | | `sinks` | [`Discard`], [`NumberedSink`] |
//! | | [`each_row`] | shapes or names of rows one after the other, asked for ahead where they are far away |
//! | | `outer_rows`, [`row_location`] | rows in the errors of a set that is read through another one; where rows lie, in errors about them; what sets are called in errors |
//! | files | [`ahead`] | asking remote places for the bytes of rows before they are read |
//! | | [`mapping`], `open_files`, [`stamp`] | files mapped into memory, read without a signal when they are shortened; files that stay open; whether one was written to meanwhile |
//! | | [`journal`], [`disk_cache`] | what of an unfinished output is complete; bytes of remote objects, kept on a disk of this machine |
//! | | `file_rows`, `name_index` | rows that are files or folders; the file that tells their names and those of images |
//! | | `delimited`, `text_columns` | CSV and its kin, every quote of which is closed; as columns of types |
//! | | [`guard`], `lazy`, [`threads`] | panics of libraries become errors; values made once; threads where the system may have no more, and work that they share |
//! | plain types | `request`, [`hints`] | [`Request`] and [`RowInfo`]; [`Hints`], [`RowHints`]: how a set and its rows are read best, what is kept, which columns stand beside them |
//! | | `store_layout` | [`StoreLayout`]: how a set keeps its pixels, in words |
//! | | [`write`](mod@write), `finished` | [`StoreWriter`], [`WriteOptions`], [`Compression`]; output that is whole and not yet at its place |
//! | | `numbers`, `stored_type` | stored numbers, narrowed to pixels; types that TIFF and OME-Zarr have and images do not |
//! | | [`error`], `refusal` | [`Error`]: file, row, cause and what to do; whether a file is damaged or of a kind that is not read |
//! | base | [`place`] | where bytes lie: files opened without waiting and read by position, folders listed, wherever they are |
//! | | [`fd_table`], `free_space`, `amount` | room for open files; what a disk still takes; amounts of memory and of disk as users write them |
//! | | [`process`], [`python`] | which process this is, which forks change; the Python in whose packages engines look for libraries |
//! | | `prefetch`, `try_alloc`, `byte_budget` | [`prefetch()`]: memory that is going to be copied, asked for beforehand; memory that may be refused; bytes of pixels that may wait at once |
//! | | `text_cache`, `file_names` | values by the text they were parsed from; names of files |
//! | | [`suggested`], `counted_names`, [`surface`] | the columns that a name which is not there may have been meant for; what was left out, counted and named; what options are called in messages: flags, or arguments of Python |
//! | | [`cover`], `png_encoder` | which boxes of an image to ask for when several crops of it are wanted; pictures as PNG |
//!
//! [`words`], numbers and lists of things in sentences, is handed on from `wellread-image`.

pub mod ahead;
mod amount;
pub mod bare_codec;
mod byte_budget;
pub mod cells;
pub mod checksum;
pub mod colors;
pub mod concat;
pub mod convert;
mod counted_names;
pub mod cover;
mod delegate;
mod delimited;
pub mod direct;
pub mod disk_cache;
pub mod each_row;
pub mod entries;
pub mod error;
pub mod fd_table;
pub mod features;
mod file_names;
#[cfg(any(feature = "ome-zarr", feature = "image-folder"))]
mod file_rows;
mod finished;
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
mod folders;
mod format;
mod free_space;
pub mod guard;
pub mod hints;
#[cfg(feature = "image-folder")]
pub mod image_folder;
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
mod image_writers;
pub mod journal;
pub mod labels;
mod lazy;
pub mod mapping;
pub mod masks;
pub mod mixed_channels;
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
mod name_index;
mod numbers;
mod ome_arrow;
#[cfg(feature = "ome-zarr")]
pub mod ome_zarr;
#[cfg(any(feature = "ome-zarr", feature = "tiff"))]
mod open_files;
mod outer_rows;
pub mod parquet;
mod part_list;
pub mod parted;
pub mod place;
pub mod planes;
mod png_encoder;
mod prefetch;
pub mod preview;
mod probe;
pub mod process;
pub mod profiles;
pub mod python;
pub mod read_back;
mod read_only;
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
mod refusal;
pub mod registry;
mod request;
pub mod row_location;
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
mod set_names;
mod sinks;
pub mod sites;
pub mod spool;
pub mod staged;
pub mod stamp;
pub mod store;
mod store_layout;
#[cfg(any(feature = "ome-zarr", feature = "tiff"))]
mod stored_type;
pub mod subset;
pub mod suggested;
pub mod surface;
pub mod table;
#[cfg(any(feature = "ome-zarr", feature = "tiff"))]
mod text_cache;
mod text_columns;
pub mod threads;
#[cfg(feature = "tiff")]
pub mod tiff;
pub mod trace;
mod try_alloc;
pub mod unkept;
pub mod verify;
pub mod with_columns;
pub mod write;

pub use amount::{bytes_text, parse_bytes};
pub use concat::{open, open_all};
pub use error::{Error, FILE_TOO_LARGE_HINT, Result};
pub use format::{Format, JoinParts, Missing, OpenOptions, Unmatched, formats, is_called_as_folder};
pub use hints::{
    FeatureTable, Hints, LeftOut, LeftOutCounts, PageCache, PartTable, Renamed, RowCut, RowFacts, RowHints,
    SetPart, SiteSummary, SiteTable,
};
pub use prefetch::prefetch;
pub use registry::create;
pub use sinks::{Discard, NumberedSink};
pub use store::{
    Block, CopySink, EachImage, FormatContext, PixelSink, ReadExtent, Request, RowInfo, Scratch, Store,
    check_request, read_image, read_region, scan_ahead,
};
pub use store_layout::{StoreLayout, without_checksum};
#[doc(hidden)]
pub use wellread_image::ImageMetadata;
pub use wellread_image::words;
pub use write::{Compression, ImageView, StoreWriter, Tune, WriteOptions};
