//! Tests of datasets and loaders from outside, on stores in memory.

mod allocation;
mod cache_policies;
mod caching;
mod errors;
mod reference;
mod same_batches;
mod support;
mod threads;
