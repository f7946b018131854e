//! The parts that benchmarks share. Nothing here knows any of them.
//!
//! ```text
//!  Session ─▶ Benchmark::run: variants, those of frameworks beside them ─▶ variants::run ─▶ Results
//!                                                                                             │ a table
//!                          Ranked ◀─ Judge ◀─ series of the table ◀─ Benchmark::findings ◀────┘
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`benchmark`] | what a benchmark is to the suite |
//! | [`session`] | what a benchmark is given, and how far the run is |
//! | [`measurement`] | variants, measurements, results |
//! | [`variants`] | running variants, statistics |
//! | `ranks` | which variants are left out first |
//! | `table` | the rows of a table |
//! | [`frameworks`] | the Python processes of frameworks |
//! | `python_sources` | what frameworks in Python read, and one turn of it |
//! | [`access`] | which rows a run reads |
//! | `bounds` | what a loader holds at most |
//! | `series` | values of a table's configurations, run by run |
//! | [`judge`] | whether two series differ |
//! | `words` | figures in words |

pub mod access;
pub mod benchmark;
pub(crate) mod bounds;
pub mod frameworks;
pub mod judge;
pub mod measurement;
pub(crate) mod python_sources;
mod ranks;
pub(crate) mod series;
pub mod session;
mod table;
pub mod variants;
pub(crate) mod words;

pub use benchmark::Benchmark;
pub use session::Session;
