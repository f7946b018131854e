//! Tests of datasets and loaders from outside, on stores in memory.

mod allocation;
mod caching;
mod crops;
mod errors;
mod intensities;
mod outputs;
mod reference;
mod resizing;
mod same_batches;
mod statistics;
mod support;
mod threads;
