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
//! | module | what it holds |
//! |---|---|
//! | [`config`] | [`Config`], what can be asked for, with upstream's defaults |
//! | [`embed`] | features of every image of a set by a model, as a table: `wellread embed` |
//! | `launch` | the process of a framework |
//! | [`backend`] | the [`Backend`](backend::Backend) trait, one file per framework, the list of them |
//! | `check_config` | whether there is what a [`Config`] asks for |
//! | [`models`] | what is run: an architecture with its files, or a user's ONNX file |
//! | [`protocol`], `shared` | requests and answers; images and logits in shared memory |
//! | [`serve`] | the worker's side of it for backends in Rust |
//! | [`runner`] | a framework's process, asked |
//! | [`source`] | images: synthetic, or any set of images with the model's preprocessing |
//! | [`measure`] | warm-up and rounds of one configuration |
//! | [`check`] | outputs compared |
//! | `record` | from what was measured to a row |
//! | [`statistics`] | from nanoseconds to the columns of a row |
//! | [`results`] | [`Row`], [`Record`], [`Run`] |
//! | [`result_files`] | the CSV and JSON files |
//! | [`report`] | the same as table, sentences and `report.html` |
//! | [`suite`] | all of it in order |
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
