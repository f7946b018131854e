//! Several sets as one: a list of paths, a glob, a folder of tables, hive partitions.
//!
//! ```text
//!  path ──find──▶ one set ────────────────────────────▶ registry
//!             └─▶ `plates/*.parquet`, a folder of tables
//!                    │ parts: path, what it is called, keys such as plate=BR1
//!                    ▼
//!                 registry, a few threads ──▶ Concat: rows of one part after the other
//!                                               │ read: requests of each part together
//!                                               ▼
//!                                             part's store ──▶ blocks, by the number of their request
//! ```
//!
//! Parts may be of several formats, and images of several shapes and types, as within a set. All parts are opened at once, by a few
//! threads: a table's footer, a folder's listing, no pixel.
//!
//! | module | what it holds |
//! |---|---|
//! | `open` | paths to parts to a set |
//! | `glob`, `tables` | which paths a pattern fits; the tables in a folder |
//! | `names` | whether images of two parts may be called the same |
//! | `parts` | what parts are called, and the keys in their folders' names |
//! | `store`, `pages`, `columns`, `sites` | the set; what it keeps; its columns; what its sites lack |

mod columns;
mod glob;
mod names;
mod open;
mod pages;
mod parts;
mod sites;
mod store;
mod tables;

pub(crate) use glob::is_pattern;
pub(crate) use open::open_listed;
pub use open::{open, open_all};
pub use store::{Concat, Part};
