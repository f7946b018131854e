//! Bounds of a loader: `--memory` and `--prefetch`, and their results.

use crate::config::Config;
use wellread_loader::{Loader, LoaderBuilder};

/// Bounds a loader as `--memory` and `--prefetch` ask for.
pub(crate) fn bounded(builder: LoaderBuilder, memory: Option<u64>, prefetch: Option<usize>) -> LoaderBuilder {
    let builder = match memory {
        Some(bytes) => builder.memory(usize::try_from(bytes).unwrap_or(usize::MAX)),
        None => builder,
    };
    match prefetch {
        Some(batches) => builder.prefetch(batches),
        None => builder,
    }
}

/// The result of a loader that is bounded as the configuration asks for: `memory_bytes`, `prefetch`.
pub(crate) fn bounds(loader: &Loader, config: &Config) -> impl Iterator<Item = (&'static str, f64)> {
    let memory = loader.memory().map(|memory| ("memory_bytes", memory.total() as f64));
    let asked = memory.is_some() || config.prefetch.is_some();
    memory.into_iter().chain(asked.then(|| ("prefetch", loader.prefetch() as f64)))
}
