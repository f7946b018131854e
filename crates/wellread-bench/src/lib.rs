//! The benchmarks: what a user's own code would do, timed.
//!
//! ```text
//!  Config ─▶ data::prepare (every format, checked by SHA-256) ─▶ Session
//!                                                                 │ one file per benchmark: a list of variants
//!                                                                 ▼
//!            variants::run: interleaved rounds, warm-up apart, A/A twin, intervals ─▶ Table ─▶ report
//! ```
//!
//! A benchmark calls what users call and nothing else. Adding one is one file with a [`Benchmark`] value, which
//! brings its variants, what is verified, its headline columns and its findings, and one line in [`BENCHMARKS`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | everything that can be asked for |
//! | [`choices`] | what can be chosen by name |
//! | [`data`] | the sets that are measured |
//! | [`expected`] | what must be delivered: hashes computed by a second, simple way |
//! | [`variants`] | running, statistics, table rows |
//! | [`budget`] | how a run keeps to its time budget |
//! | [`Watch`] | progress and current figures of a running benchmark |
//! | [`sweep`] | storage over codecs and chunk layouts |
//! | [`storage`], [`dataset`], [`dataloader`], [`model_loop`], [`conversion`] | one benchmark each |
//! | [`feed`] | one loop fed from cold files, warm files, memory or full batches |
//! | [`sample`] | a bounded part of a user's own set |
//! | [`stages`] | which stage binds: `wellread doctor --data` |
//! | [`advise`] | format, codec, chunks and loader for a user's own set, and what to expect: `wellread advise` |
//! | [`framework`] | the same benchmarks through PyTorch and JAX |
//! | [`machine`] | the machine in words |
//! | [`findings`] | sentences computed from the results, in order |
//! | [`suite`] | all of it in order, and the results folder |
//! | [`WrongUsage`] | what was asked for does not go with the images |
//! | [`outcome`] | tables, findings and facts put together |

pub mod advise;
pub mod budget;
mod caching;
pub mod choices;
pub mod config;
pub mod conversion;
mod crops;
pub mod data;
pub mod dataloader;
pub mod dataset;
pub mod expected;
pub mod feed;
pub mod findings;
pub mod framework;
mod histograms;
mod live;
pub mod machine;
pub mod model_loop;
mod next_step;
pub mod outcome;
pub mod roofline;
pub mod sample;
pub mod stages;
pub mod storage;
pub mod suite;
pub mod sweep;
mod traffic;
mod usage;
pub mod variants;
mod written;

pub use config::Config;
pub use live::Watch;
pub use suite::{BENCHMARKS, Benchmark, Session, run};
pub use usage::WrongUsage;
