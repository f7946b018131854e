//! The limit of the link, of a set behind a network: bare requests of the ranges that a loader asks for, by the same client.
//!
//! ```text
//!  an epoch of a loader, recorded ─▶ ranges ─▶ asked for again, 8, 16, 32 … at a time, bytes thrown away ─▶ the fastest pass
//! ```

use crate::choices::Preset;
use crate::core::Session;
use crate::core::bounds::bounded;
use crate::data::FormatSet;
use crate::link::{fastest, pass};
use anyhow::Result;
use wellread_loader::order::Permutation;
use wellread_loader::{Dataset, Loader};
use wellread_store::place::{Link, Recording};
use wellread_store::subset::Subset;

/// Most images of the epoch, and bytes of their pixels unless there are fewer than [`MIN_IMAGES`].
const IMAGES: usize = 2048;
const BYTES: usize = 256 << 20;
const MIN_IMAGES: usize = 32;

/// Images per second that the link to a set gives at best; `None` where nothing went over it.
pub(super) fn limit(session: &Session<'_>, set: &FormatSet, link: &dyn Link) -> Result<Option<f64>> {
    let store = session.open(set)?;
    let info = store.row_info(0)?;
    let each = (info.shape.pixels() * info.dtype.size()).max(1);
    let images = store.len().min(IMAGES).min((BYTES / each).max(MIN_IMAGES));
    let config = session.config;
    let order = Permutation::new(store.len(), config.seed, 0);
    let mut rows: Vec<usize> = (0..images).map(|i| order.at(i)).collect();
    rows.sort_unstable();
    let dataset = Dataset::from_store(Box::new(Subset::of(store, rows)));
    let batch_size = config.batch_sizes.iter().copied().max().unwrap_or(1).clamp(1, images);
    let builder = Loader::builder(&dataset)
        .batch_size(batch_size)
        .shuffle(config.seed)
        .workers(config.workers.iter().copied().max().unwrap_or(0))
        .transform(session.transform(Preset::None)?);
    let loader = bounded(builder, config.memory, config.prefetch).build()?;
    // Requests of opening and of headers recur in later epochs too.
    for batch in &loader {
        batch?;
    }
    // A later epoch would find the pages of a small set, and ask for nothing.
    dataset.store().hints().forget_pages();
    let recording = Recording::start();
    let mut delivered = 0;
    for batch in &loader {
        delivered += batch?.rows().len();
    }
    let ranges = recording.take();
    if ranges.is_empty() {
        return Ok(None);
    }
    let (best, _) = fastest(|at_once| pass(link, &ranges, at_once))?;
    Ok(Some(delivered as f64 / best.as_secs_f64().max(1e-9)))
}
