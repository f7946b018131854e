//! Rows read from the blocks of the file instead of by DuckDB: numbers in structs and lists.
//!
//! ```text
//!  columns ──Layout (pragma_storage_info)──▶ tree of columns, each with its segments      once
//!  rows ──tree──▶ which values of which leaf ──Segment──▶ values ──tree──▶ record batch    each read
//!                                                                ──pieces──▶ chunks and planes, row by row
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `layout`, `plan`, `tree` | where columns lie in the file; which can be read here; what they are made up of |
//! | `reader`, `scratch` | rows as record batches; memory of a read, used again |
//! | `pieces`, `piece_reader` | whether columns are pieces of images; these, row by row |
//! | `blocks`, `segment` | blocks of the file, with their checksums; the values of a column in one |
//! | `bitpacking`, `bits`, `alp` | packed integers; packs of 32; floating-point numbers |
//!
//! DuckDB decodes vectors of 2,048 rows, whatever is asked for. Here lists are followed first: where the elements of
//! the rows begin and end. Then only those are unpacked, to as few bytes as they have. DuckDB opens the file, gives the
//! places of segments, and reads the unusual parts. These are text, other compressions, rows that were deleted or
//! changed ([`Direct::new`] gives `None`), and irregular bytes ([`wellread_store::direct::Stop`]), for which DuckDB
//! gives the error.

mod alp;
mod bitpacking;
mod bits;
mod blocks;
mod layout;
mod piece_reader;
mod pieces;
mod plan;
mod reader;
mod scratch;
mod segment;
mod tree;

pub(crate) use blocks::{Blocks, HEADERS, checksum};
pub(crate) use layout::Layout;
pub(crate) use plan::Source;
pub(crate) use reader::Direct;

#[cfg(test)]
mod tests;
