//! One inference benchmark across PyTorch, JAX, ONNX Runtime and candle. It measures latency, throughput and memory of the same
//! models with the same weights on the same images.
//!
//! ```text
//!  Config ─▶ models (one seeded weights file each) ─▶ a process per framework: FrameworkRunner
//!                                                        │ images and logits in shared memory
//!  source (synthetic, or a set through the loader) ──────┤
//!                                                        ▼
//!  measure: warm-up until steady, rounds in random order ─▶ raw nanoseconds ─▶ Row ─▶ CSV and JSON, after each
//!  check: logits of all frameworks compared ──────────────────────────────────┘
//! ```
//!
//! Every framework runs in a process of its own, candle and ONNX Runtime too ([`serve`]). So each has the same
//! processors, its memory is its own, and a crash ends that process alone. All processes speak one protocol.
//!
//! Imports go one way, from above to below:
//!
//! | layer | module | what it holds |
//! |---|---|---|
//! | report | [`report`] | results as table, sentences and `report.html` |
//! | runs | [`suite`] | the benchmark, in order |
//! | | [`embed`] | features of every image of a set by a model, as a table: `wellread embed` |
//! | steps | `check_config` | whether there is what a [`Config`] asks for |
//! | | [`measure`] | warm-up and rounds of one configuration |
//! | | [`check`] | outputs compared |
//! | | `record`, [`statistics`] | from what was measured to a row; from nanoseconds to its columns |
//! | | [`result_files`] | the CSV and JSON files |
//! | processes | [`runner`] | a framework's process, asked |
//! | | [`serve`] | the worker's side of it for backends in Rust |
//! | frameworks | [`backend`] | the [`Backend`](backend::Backend) trait, one file per framework, the list of them |
//! | base | [`models`] | what is run: an architecture with its files, or a user's ONNX file |
//! | | `launch` | the process of a framework |
//! | | [`results`] | [`Row`], [`Record`], [`Run`] |
//! | | [`source`] | images: synthetic, or any set of images with the model's preprocessing |
//! | | [`protocol`], `shared` | requests and answers; images and logits in shared memory |
//! | | [`config`] | [`Config`], what can be asked for, with upstream's defaults |
//!
//! A new framework is a file with a [`Backend`](backend::Backend) and a line in [`backend::BACKENDS`].

pub mod backend;
pub mod check;
mod check_config;
pub mod config;
pub mod embed;
mod launch;
pub mod measure;
pub mod models;
pub mod protocol;
mod record;
pub mod report;
pub mod result_files;
pub mod results;
pub mod runner;
pub mod serve;
mod shared;
pub mod source;
pub mod statistics;
pub mod suite;

pub use config::Config;
pub use results::{Record, Row, Run};
pub use suite::{Event, run};
