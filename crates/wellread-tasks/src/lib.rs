//! Training and inference benchmarks across git branches: did this branch make it faster, and which part of it?
//!
//! ```text
//!  table ─▶ plan ── everything checked that can be known ──▶ suite: rounds of runs
//!             │ repository: a worktree per commit               │ process: one run, watched and ended
//!             │ adapter: what is started                        ▼
//!             └ environment: a Python per branch      phases ─▶ metrics ─▶ results (JSON, after every run)
//!                                                                            │
//!                                                              comparison ◀──┴──▶ report, text
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | [`Config`](config::Config): what can be asked for |
//! | [`table`] | the CSV of tasks |
//! | [`task`] | a row, and what a process is told |
//! | [`repository`] | branches in worktrees, the user's checkout untouched |
//! | [`adapter`] | the [`Adapter`](adapter::Adapter) trait and one file per kind of experiment |
//! | [`environment`] | the Python of a branch |
//! | [`plan`] | what will run, checked |
//! | [`search_path`] | where paths of the table are looked for |
//! | [`process`] | one run: process group, time limit, memory |
//! | [`phases`] | what a process says of its phases |
//! | [`hardware`] | the state of the machine beside every run |
//! | [`metrics`], [`results`] | upstream's JSON list |
//! | [`comparison`] | ratios with intervals, verdicts, sentences |
//! | [`summary`] | a row per task, a row per compared phase |
//! | [`report`], [`text`] | `report.html`, tables for a terminal |
//! | [`suite`] | all of it in order |
//! | [`stop`] | what Ctrl-C ends and removes |
//! | [`nearest`] | names that resemble one that is not there |

pub mod adapter;
pub mod comparison;
pub mod config;
pub mod environment;
pub mod hardware;
pub mod metrics;
pub mod nearest;
pub mod phases;
pub mod plan;
pub mod process;
pub mod report;
pub mod repository;
pub mod results;
pub mod search_path;
pub mod stop;
pub mod suite;
pub mod summary;
pub mod table;
pub mod task;
pub mod text;

/// The error of this crate.
pub use anyhow::Error;
