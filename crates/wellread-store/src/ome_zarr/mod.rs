//! OME-Zarr 0.4 (Zarr v2) and 0.5 (Zarr v3): image groups, folders of them, plates and Bio-Formats series.
//!
//! ```text
//!  path ──layout──▶ rows (group folder, name)               a directory listing, nothing else
//!                      │ first access of a row
//!                      ▼
//!        group: multiscales, axes, omero ──▶ array: shape, chunks, keys, codecs   (each distinct text parsed
//!                                               │                                   once, one shared plan)
//!        request ──read───▶ chunk files that the region touches ──codec──▶ Block ──▶ sink
//!                              └─ sharding: index once, then ranged reads of inner chunks
//! ```
//!
//! The codecs that OME-Zarr writers use are decoded here, straight from the chunk file into a reused buffer whose
//! size is known beforehand. They are `bytes` of either endianness, `transpose`, one of zstd, gzip, zlib, blosc
//! or lz4, `crc32c`, and `sharding_indexed` around them. Any other codec that `zarrs` knows is decoded by
//! `zarrs`.
//!
//! | module | what it holds |
//! |---|---|
//! | `format` | [`FORMAT`] |
//! | [`layout`] | which groups below a path are the rows |
//! | [`foreign`] | what lies in a folder beside what its metadata describe |
//! | [`group`] | OME metadata of a group: multiscales, axes, omero, plate, well |
//! | [`labels`] | label images beside images |
//! | [`consolidated`] | metadata of many groups in one file |
//! | [`first_look`] | what opening a remote set reads first, asked for at once |
//! | [`metadata_file`], [`units`] | files of metadata, read and parsed; names and symbols of units |
//! | [`array`] | array metadata of Zarr v2 and v3, resolved to a plan in TCZYX order |
//! | [`plans`] | plans by the text of metadata, each parsed once |
//! | `fill` | the value of chunks that are not there |
//! | [`chunk_codecs`] | the codecs of an array, resolved from its metadata |
//! | [`codec`], [`native`], [`chunk`] | decoding one chunk; the usual codecs; what all decoders share |
//! | [`general`] | chunks whose codecs only `zarrs` knows |
//! | [`shard`] | the index of a shard and the byte ranges to read |
//! | [`grid`], `ranges` | which chunks a region touches; where their bytes lie, for those who ask ahead |
//! | [`stamps`] | whether a chunk's file was written to after it was first read |
//! | [`plate`], [`fields`] | columns of a plate: well, field of view, acquisition; what a plate lacks |
//! | [`series`] | several images in one `.zarr`, with names and columns beside them |
//! | [`order`] | memory order: from any order of axes to TCZYX |
//! | [`plausible`] | declared sizes against what the files can hold |
//! | [`read`] | requests: chunk files and pieces of shards, to blocks |
//! | [`store`] | the [`crate::Store`] |
//! | [`writer`], [`encode`], [`write_metadata`] | the [`crate::StoreWriter`] |
//! | `unkept` | what an image's metadata say and no conversion keeps |
//!
//! Specifications: <https://ngff.openmicroscopy.org/0.4/>, <https://ngff.openmicroscopy.org/0.5/>,
//! <https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html>,
//! <https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html>.
//! Compatible with what ome-zarr-py, zarr-python, bioformats2raw and zarrs write.

mod array;
mod chunk;
mod chunk_codecs;
mod codec;
mod consolidated;
mod encode;
mod fields;
mod fill;
mod first_look;
mod foreign;
mod format;
mod general;
mod grid;
mod group;
pub(crate) mod labels;
mod layout;
mod metadata_file;
mod native;
mod order;
mod plans;
mod plate;
mod plausible;
mod ranges;
mod read;
mod series;
mod shard;
mod stamps;
mod store;
mod units;
mod unkept;
mod write_metadata;
mod writer;

pub use format::FORMAT;
pub(crate) use layout::plates_in;
