//! The figure of each benchmark, drawn from the columns of its table.
//!
//! A table that has no figure of its own (`registry`) is drawn by `generic`: a new benchmark needs nothing here.
//!
//! A figure is a function of the table and of a few words about it. So the same figure comes from a benchmark
//! that has just run and from a results folder. A format whose rows say `status = unavailable` keeps its place
//! in every panel and says why.
//!
//! ```text
//!  Table ──select──▶ series, variants, rows ──panel──▶ marks, panels, sections ──draw──▶ Figure, with its notes
//!                     by the file of its benchmark, which `registry` lists, or `generic`
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `spec` | what the figure of a table registers, and the chart of an answer |
//! | `select`, `panel` | which rows are shown; marks, panels and sections of them |
//! | `storage`, `dataset`, `dataloader`, `loop_`, `conversion`, `inference`, `tasks` | the sections of a benchmark's figure |
//! | `storage_compression`, `storage_layout`, `generic` | those of a sweep's figure, and of any other table |
//! | `registry` | the tables with figures of their own, in the order of a report |
//! | `samples` | figures of single measurements |
//! | `answer`, [`decision`] | the chart that a report begins with; that of formats, by codec |
//! | `codec_name`, `demand` | its parts, and the line across it: what the model takes by itself |
//! | `notes`, `draw` | what stands below; the whole figure, and its files |

pub(crate) mod answer;
mod codec_name;
mod conversion;
mod dataloader;
mod dataset;
pub mod decision;
mod demand;
mod draw;
mod generic;
mod inference;
mod loop_;
mod notes;
mod panel;
mod registry;
pub(crate) mod samples;
mod select;
mod spec;
mod storage;
mod storage_compression;
mod storage_layout;
mod tasks;

pub use draw::{figure, write_figures};
pub use notes::missing;
pub(crate) use notes::{labelled_name, noise_text};
pub use registry::how_to_read;
pub(crate) use registry::{heading, rank};

#[cfg(test)]
mod tests;
