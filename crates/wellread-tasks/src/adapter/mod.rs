//! How an experiment of a branch is run: one file per kind of experiment.
//!
//! An adapter turns a task into a process. Everything else (worktree, environment, time limit, memory, log, results) is
//! the same for all. The process reports its phases as JSON lines in the file that `WELLREAD_PHASES` names
//! ([`crate::phases`]), in any language.
//!
//! ```text
//!  Row + Branch ──suits──▶ the adapter (--adapter auto) ──check──▶ errors that can be known before anything runs
//!  Task + Site ──command──▶ Command ── WELLREAD_TASK, WELLREAD_PHASES, the worktree as its folder ──▶ process
//! ```
//!
//! A new one is a file with a type that implements [`Adapter`] and a line in [`ADAPTERS`].

mod command;
mod cyto_dl;
mod experiments;
mod interface;
mod lightning;
mod native;
mod python;
mod registry;

pub use experiments::{EXPERIMENTS, experiment_file, experiments, spelled};
pub use interface::{Adapter, Site};
pub use registry::{ADAPTERS, choose, names};
