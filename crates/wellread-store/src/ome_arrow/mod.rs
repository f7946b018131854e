//! The OME-Arrow column in memory: Arrow arrays to images and back, for every format that holds such a column.
//!
//! [`wellread_image::ome_arrow`] has the names and types; here are the arrays.
//!
//! ```text
//!  StructArray ──rows──▶ shape, type, boxes of chunks      ──metadata──▶ names, channels, sizes
//!              └─pixels─▶ bytes of each chunk, borrowed or converted
//!  images ──arrays──▶ record batch of the published struct
//! ```

pub(crate) mod arrays;
mod boxes;
mod collect;
mod column;
pub(crate) mod eight_bit;
mod lists;
mod metadata;
mod pixels;
mod rows;

pub(crate) use boxes::{AXES, NULL, PieceBox, SIZE_AXES, are_tiles, covers, read_boxes};
pub(crate) use collect::Collector;
pub(crate) use column::{CHUNKS, ImageColumn, LISTS, PLANES, no_image_column, no_such_column};
pub(crate) use metadata::{MetadataRows, unkept};
pub(crate) use pixels::{PixelColumn, PixelLists, pixels_as};
pub(crate) use rows::{Row, SmallColumns, declared_info, no_image};
