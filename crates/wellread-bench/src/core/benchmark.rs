//! The interface of a benchmark for the suite: a value with all that is particular to it.

use super::judge::{Judge, Ranked};
use super::measurement::Results;
use super::session::Session;
use crate::choices::Preset;
use crate::config::Config;
use anyhow::Result;
use wellread_report::Table;

/// One benchmark: its name, its measurement, and the findings of its table.
pub struct Benchmark {
    /// Name on the command line and of its result files.
    pub name: &'static str,
    /// One line for help texts.
    pub about: &'static str,
    /// Measures.
    pub run: fn(&Session<'_>) -> Result<Results>,
    /// Transforms whose floats it has delivered and compares with [`Session::expected`].
    pub transforms: fn(&Config) -> Vec<Preset>,
    /// Columns of its table that fit a terminal.
    pub headline: &'static [&'static str],
    /// The findings of its table, in sentences.
    pub findings: fn(&Table, &Judge) -> Vec<Ranked>,
}
