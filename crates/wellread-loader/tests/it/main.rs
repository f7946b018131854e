//! Tests of datasets and loaders from outside, on stores in memory.

mod allocation;
mod cache_policies;
mod caching;
mod errors;
#[cfg(target_os = "linux")]
mod fork;
mod orders;
mod reference;
mod resume;
mod same_batches;
mod skipping;
mod support;
mod threads;
