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
//! ```text
//!  cells · with_columns · convert · parted · verify …  whole sets, through the trait alone
//!  concat                                          several sets as one: globs, folders of tables, hive partitions
//!  registry                                        the list of formats; opening and creating by name and content
//!  sites                                           images of several files each
//!  direct                                          what engines of tables share that read bytes themselves
//!  parquet · tiff · ome_zarr · image_folder · table · profiles
//!  staged · ome_arrow · features                   what several formats share
//!  format · read_only · probe                      what a format is, and which there are
//!  store · store_layout · hints · write · finished · numbers · error   traits and plain types
//!  place                                           where bytes lie: the file system, and places that others register
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`ahead`] | asking remote places for the bytes of rows before they are read |
//! | [`store`], `request` | [`Store`], [`Block`], [`PixelSink`]; [`Request`] and [`RowInfo`] |
//! | [`each_row`] | shapes or names of rows one after the other, asked for ahead where they are far away |
//! | `sinks` | [`Discard`], [`NumberedSink`] |
//! | `store_layout` | [`StoreLayout`]: how a set keeps its pixels, in words |
//! | `delegate` | [`delegate_store!`], [`delegate_columns!`], [`default_answers!`], [`default_columns!`], [`unknown_facts!`]: methods that a store hands on to another one, or has no better answer to; facts of rows that it does not know |
//! | [`hints`] | [`Hints`], [`RowHints`]: how a set and its rows are read best, what is kept, which columns stand beside them |
//! | [`write`](mod@write) | [`StoreWriter`], [`WriteOptions`], [`Compression`] |
//! | `format`, `read_only`, `probe` | [`Format`], [`OpenOptions`], [`formats`]; a format that is only read; what is told of a path before it is opened |
//! | [`registry`] | the list of formats, recognition by content, [`create`] |
//! | [`concat`] | [`open`], [`open_all`]: a path, a glob, a folder of tables, several paths as one set |
//! | [`error`], `refusal` | [`Error`]: file, row, cause and what to do; whether a file is damaged or of a kind that is not read |
//! | [`entries`], `folders` | what lies in a folder, and what of it is no part of a set; folders below it |
//! | `file_rows`, `file_names`, `name_index` | rows that are files or folders; their names and those of images; the file that tells both |
//! | `image_writers`, `set_names` | images written to a file each, in threads; what these are called |
//! | `byte_budget` | bytes of pixels that may wait at once |
//! | [`disk_cache`] | bytes of remote objects, kept on a disk of this machine |
//! | `amount`, `free_space` | amounts of memory and of disk as users write them; what a disk still takes |
//! | [`guard`] | panics of libraries become errors |
//! | [`place`] | where bytes lie: files opened without waiting and read by position, folders listed, wherever they are |
//! | [`mapping`] | files mapped into memory, read without a signal when they are shortened |
//! | `open_files`, [`fd_table`], [`stamp`] | files that stay open; room for them; whether one was written to meanwhile |
//! | `lazy`, `text_cache`, `try_alloc` | values made once; values by the text they were parsed from; memory that may be refused |
//! | `finished`, [`staged`], [`journal`] | output written beside its place and renamed when complete; what of it is complete |
//! | [`parted`], `part_list` | a set that several processes write in parts, and the list of them |
//! | [`spool`] | copies of files of other places, for libraries that open files themselves |
//! | [`parquet`] | OME-Arrow columns in Parquet |
//! | [`table`], `ome_arrow` | OME-Arrow columns in the tables of any engine; their arrays to images and back |
//! | [`direct`] | what engines share whose files are read past their libraries |
//! | [`tiff`] | TIFF and OME-TIFF, files and folders |
//! | [`ome_zarr`] | OME-Zarr 0.4 and 0.5 |
//! | [`image_folder`] | PNG and JPEG folders |
//! | [`checksum`], [`convert`], [`read_back`], [`verify`] | whole-set operations over any store |
//! | `delimited`, `text_columns` | CSV and its kin, every quote of which is closed; as columns of types |
//! | `found` | what was left out, counted and named |
//! | `numbers`, `stored_type` | stored numbers, narrowed to pixels; types that TIFF and OME-Zarr have and images do not |
//! | [`features`], [`profiles`] | columns of plain values beside images; profiles joined to them |
//! | [`labels`] | label images that lie beside images, which are no rows |
//! | [`unkept`] | what a format says of images and no conversion keeps |
//! | [`masks`] | masks among images, told by names |
//! | [`mixed_channels`] | images that have other channels at the same numbers |
//! | [`sites`] | images of several files each, put together by the files' names |
//! | [`planes`], [`subset`] | a set seen plane by plane; some rows of a set |
//! | [`colors`] | pictures of any colours as red, green and blue |
//! | [`row_location`] | where rows lie, in errors about them |
//! | `outer_rows` | rows in the errors of a set that is read through another one |
//! | [`with_columns`] | a set with the columns of a table in memory beside its images |
//! | [`cells`], [`cover`] | a set seen cell by cell; which boxes of an image to ask for when several crops of it are wanted |
//! | [`trace`] | a timeline of what threads do, written to a file |
//! | [`threads`] | threads where the system may have no more; work that they share |
//! | [`process`] | which process this is, which forks change |
//! | [`python`] | the Python in whose packages engines look for libraries |
//! | [`prefetch()`] | memory that is going to be copied, asked for beforehand |
//! | [`bare_codec`] | decompressors on their own, to hold readers against |
//! | [`preview`], `png_encoder` | contrast-stretched thumbnails of rows; pictures as PNG |
//! | [`suggested`] | the columns that a name which is not there may have been meant for |
//! | [`surface`] | what options are called in messages: flags, or arguments of Python |
//! | [`words`] | numbers and lists of things in sentences |

pub mod ahead;
mod amount;
pub mod bare_codec;
mod byte_budget;
pub mod cells;
pub mod checksum;
pub mod colors;
pub mod concat;
pub mod convert;
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
mod file_rows;
mod finished;
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
mod folders;
mod format;
mod found;
mod free_space;
pub mod guard;
pub mod hints;
#[cfg(feature = "image-folder")]
pub mod image_folder;
mod image_writers;
pub mod journal;
pub mod labels;
mod lazy;
pub mod mapping;
pub mod masks;
pub mod mixed_channels;
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
mod refusal;
pub mod registry;
mod request;
pub mod row_location;
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
    FeatureTable, Hints, LeftOut, PageCache, PartTable, Renamed, RowCut, RowFacts, RowHints, SetPart,
    SiteSummary, SiteTable,
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
