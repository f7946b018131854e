//! Tests of datasets and loaders from outside, on stores in memory.

mod cache_policies;
mod caching;
mod crops;
mod errors;
#[cfg(target_os = "linux")]
mod fork;
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
mod support;
mod threads;
mod uneven;
