//! The benchmarks: the work of a user's own code, timed.
//!
//! ```text
//!  Config ─▶ data::prepare (every format, checked by SHA-256) ─▶ Session
//!                                                                 │ one file per benchmark: a list of variants
//!                                                                 ▼
//!      core::variants::run: interleaved rounds, warm-up apart, A/A twin, intervals ─▶ Table ─▶ report
//! ```
//!
//! A benchmark calls what users call and nothing else. Adding one is one file with a [`Benchmark`] value, which
//! brings its variants, what is verified, its headline columns and its findings. It also takes one line in [`BENCHMARKS`].
//!
//! Each of these layers knows those below it only:
//!
//! | layer | module | what it holds |
//! |---|---|---|
//! | entry | [`suite`] | the benchmarks that were asked for in order, and the results folder |
//! | | [`outcome`] | tables, findings and facts put together |
//! | | [`findings`], `next_step` | sentences computed from the results, in order; what to do next |
//! | | `usage` | [`WrongUsage`]: what was asked for does not go with the images |
//! | | `histograms` | the times of items as files |
//! | | [`benchmarks`] | the list of all benchmarks |
//! | studies | [`stages`] | which stage binds: `wellread doctor --data` |
//! | | [`advise`] | format, codec, chunks and loader for a user's own set, and what to expect: `wellread advise` |
//! | benchmarks | [`sweep`] | storage over codecs and chunk layouts |
//! | | [`storage`], [`dataset`], [`dataloader`], [`model_loop`], [`conversion`] | one benchmark each, with what it does in Python |
//! | | `scratch_sets` | the sets that measured writes leave behind |
//! | machine | [`roofline`] | the limits of this machine beside what a loader delivers |
//! | | [`feed`] | one loop fed from cold files, warm files, memory or full batches |
//! | | [`link`] | latency and bandwidth of the link to a set behind a network |
//! | | `page_files` | files whose pages go from the page cache and come back, and files that have none |
//! | | `traffic` | bytes read for each byte of pixels used |
//! | core | [`core`](mod@core) | what benchmarks share: session, variants, frameworks, judging |
//! | base | [`config`], [`choices`] | everything that can be asked for, and what can be chosen by name |
//! | | [`data`] | the sets that are measured |
//! | | [`sample`] | a bounded part of a user's own set |
//! | | [`expected`] | what must be delivered: hashes computed by a second, simple way |
//! | | [`budget`] | how a run keeps to its time budget |
//! | | `live` | [`RunObserver`]: progress and current figures of a running benchmark |
//! | | [`machine`] | the machine in words |

pub mod advise;
pub mod benchmarks;
pub mod budget;
pub mod choices;
pub mod config;
pub mod conversion;
pub mod core;
pub mod data;
pub mod dataloader;
pub mod dataset;
pub mod expected;
pub mod feed;
pub mod findings;
mod histograms;
pub mod link;
mod live;
pub mod machine;
pub mod model_loop;
mod next_step;
pub mod outcome;
mod page_files;
pub mod roofline;
pub mod sample;
mod scratch_sets;
pub mod stages;
pub mod storage;
pub mod suite;
pub mod sweep;
#[cfg(test)]
mod test_store;
mod traffic;
mod usage;

pub use crate::core::{Benchmark, Session};
pub use benchmarks::BENCHMARKS;
pub use config::Config;
pub use live::RunObserver;
pub use suite::run;
pub use usage::WrongUsage;
