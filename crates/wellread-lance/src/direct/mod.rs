//! Pages read here instead of by Lance: numbers in structs and lists, without nulls but those of whole rows.
//!
//! ```text
//!  rows of a fragment ──Page──▶ values and starts of lists, leaf by leaf ──tree──▶ record batch
//!                                                                         ──pieces──▶ chunks and planes, row by row
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `reader`, `tree` | columns of a fragment; how leaves make them up, and reading one |
//! | `pieces` | chunks and planes row by row, without arrays |
//! | `page` | pages of a leaf: which rows each has |
//! | `constant_page`, `mini_blocks` | the two layouts of a page: one value; chunks of a few KiB |
//! | `chunk`, [`levels`], [`values`] | a chunk in its parts: where lists start, and the numbers in them |
//! | `packing`, `general` | numbers of a few bits each; chunks within zstd or LZ4 |
//! | `input`, [`ahead`], `buffers` | bytes of a file; those of a bucket, fetched together; memory used again |
//! | [`claims`] | sizes that pieces claim, looked at before Lance decodes them |
//! | `constant`, `encoding` | the one value of a column; how it is stored, in words |
//!
//! For a file in a bucket, the chunks of all rows of a batch are fetched at once before they are read
//! ([`ahead`]).
//!
//! Lance's metadata gives the places and encodings of pages, and its codecs decode rare ones. This module reads the
//! bytes of chunks, with their levels as runs ([`levels`]) and their values unpacked to where they belong ([`values`]).
//! A page of another kind is left to Lance ([`Direct::new`] gives `None`), and so are rows with irregular bytes
//! ([`wellread_store::direct::Stop`]): Lance gives their error. Bytes compressed by zstd or LZ4 are not left to Lance.
//! It asks for as much memory as they declare, and the process ends where there is not so much
//! ([`Direct::has_prefixes`]). [`claims`] looks at these sizes before Lance reads a page of another kind.

mod ahead;
mod buffers;
mod chunk;
mod claims;
mod constant;
mod constant_page;
mod encoding;
mod general;
mod input;
mod levels;
mod mini_blocks;
mod packing;
mod page;
mod pieces;
mod reader;
mod tree;
mod values;

pub(crate) use claims::CheckedPages;
pub(crate) use constant::only_value;
pub(crate) use encoding::encoding;
pub(crate) use input::Input;
pub(crate) use reader::Direct;
