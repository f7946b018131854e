//! Tests of datasets and loaders from outside, on stores in memory.

mod cache_policies;
mod caching;
mod cells;
mod channels;
mod colors;
mod crops;
mod errors;
#[cfg(target_os = "linux")]
mod fork;
#[cfg(target_os = "linux")]
mod fork_writers;
mod groups;
mod hints;
mod intensities;
mod large_values;
mod nodes;
mod occurrences;
mod orders;
mod outputs;
mod reference;
mod reopened;
mod resizing;
mod resume;
mod same_batches;
mod single_items;
mod skipping;
mod statistics;
mod support;
mod targets;
mod threads;
mod uneven;
mod views;
