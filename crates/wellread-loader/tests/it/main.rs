//! Tests of datasets and loaders from outside, on stores in memory.

// First, for the macro in it.
#[macro_use]
mod support;

mod cache_policies;
mod caching;
mod cells;
mod channels;
mod crops;
mod errors;
#[cfg(target_os = "linux")]
mod fork;
mod groups;
mod hints;
mod intensities;
mod occurrences;
mod orders;
mod outputs;
mod reference;
mod resizing;
mod resume;
mod same_batches;
mod skipping;
mod statistics;
mod targets;
mod threads;
mod uneven;
mod views;
