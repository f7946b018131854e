//! The OME-Arrow dataset of `ome-arrow` 0.1 and later: a folder of Parquet tables, pixels as bytes of chunks.
//!
//! Reference implementation: [`ome_arrow.dataset`](https://github.com/WayScience/ome-arrow). The folder holds
//!
//! | file | one row is | columns |
//! |---|---|---|
//! | `images.parquet` | an image | `image_id, name, dtype, size_t … size_x, layout, chunk_t … chunk_x, channels_json` |
//! | `chunks.parquet` | a chunk | `image_id, chunk_id, t … x, shape_t … shape_x, dtype, pixel_bytes` |
//! | `index.parquet` | a chunk, without pixels | the same places, and `row_group_id`, `fragment_path`; may be absent |
//! | `_ome_arrow_dataset.json` | | version, layout and chunk shape for people |
//!
//! ```text
//!  images, index (else the small columns of chunks) ──tables──▶ per image: shape, type, its chunks' places
//!                                                                                       │ request
//!  row group ──▶ which row holds which chunk_id ──▶ pages of `pixel_bytes` ──bytes──▶ Block ──▶ sink
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `format`, `names` | the folder as a format; names of its files and columns |
//! | `tables`, `image` | the small tables; what they say of one image and of its chunks |
//! | `bytes`, `ranges` | the bytes of chunks, by row; where they lie, for those who ask ahead |
//! | `store`, `writer` | reading; writing |
//!
//! Feature columns stand in `images.parquet` beside the table's own. A region touches the chunks that it overlaps and nothing else. Pixels are stored as bytes, so a decompressed
//! page is handed on as it is. Only the bytes of the type that `images.parquet` names are accepted, and chunks must
//! tile their image. A hole, which the reference reads as zeros, is an error.
//! (The library turns 8-bit images into `uint16` before it writes them. They are read as the `uint16` that the table
//! names, as the reference reader does. Where statistics tell the truth, in OME-Arrow Parquet, they are used; bytes
//! have none.)

mod bytes;
mod format;
mod image;
mod names;
mod ranges;
mod store;
mod tables;
mod writer;

pub use format::FORMAT;
