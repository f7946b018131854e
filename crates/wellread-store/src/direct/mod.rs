//! The code that engines share which read the bytes of their files themselves, past their libraries. Lance, Vortex and
//! DuckDB give only where their values lie and how those are decoded.
//!
//! ```text
//!  file ──TestedVersion──▶ of a version that this was tested with? else the library reads it
//!  columns ──Plans──▶ what they take, worked out once ──each_part──▶ as many rows at a time as make a batch
//!                        ├─▶ values, lists ──arrays──▶ record batch
//!                        ├─▶ PieceValues ──PiecesOfRow──▶ chunks and planes of a row, without arrays
//!                        └─▶ Fault ──Stop──▶ rest_by_library
//! ```
//!
//! All of it is compiled for the engine that uses it: nothing in here is called by a table of functions.
//!
//! Three things look alike and are not shared:
//!
//! * Parquet's fast path: its faults name a page's offset, and its rows are left one by one.
//! * Bounds of lists. Lance's reader notes where a list begins while it takes the values. Its end may lie in the next chunk.
//!   DuckDB's follows the ends of lists first, and only then knows which elements to read. Vortex's lists may lie in any
//!   order, so each has both bounds.
//! * The memory of values. Lance and DuckDB keep buffers of one thread, one for each leaf. Vortex keeps pieces that all
//!   threads of a table share, up to a number of bytes.

pub mod arrays;
mod bytes;
mod fault;
mod parts;
mod pieces;
mod place_error;
mod plans;
mod rows;
mod runs;
mod tested;
mod wanted;

pub use bytes::{UNREADABLE, grown, little_endian, read_at};
pub use fault::{EachBatch, Fault, OTHER_TYPE, Stop, handed_on, rest_by_library};
pub use parts::{each_part, rows_of_a_batch, take_back, trim};
pub use pieces::{PieceColumns, PieceValues, PiecesOfRow};
pub use place_error::PlaceError;
pub use plans::Plans;
pub use runs::{Run, append, joined};
pub use tested::TestedVersion;
pub use wanted::{ALL, WantedFields};
