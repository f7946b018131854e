//! The loader of a study until something else is chosen.
//!
//! ```text
//!  batch size, workers, seed, crop ─▶ LoaderSettings: each image whole or its centre, scaled, nothing else; no cache
//! ```

use crate::feed::LoaderSettings;
use anyhow::{Context as _, Result};
use wellread_loader::{Cache, Crop, Transform};

/// The settings of a loader that does nothing but load.
///
/// # Errors
/// A loader without the transform `none`.
pub(crate) fn plain_loader(
    batch_size: usize,
    workers: usize,
    seed: u64,
    crop: Option<(usize, usize)>,
) -> Result<LoaderSettings> {
    let mut transform = Transform::preset("none").context("the loader has no transform none")?;
    if let Some((height, width)) = crop {
        transform.crop = Crop::Center { height, width };
    }
    Ok(LoaderSettings {
        batch_size,
        workers,
        seed,
        transform,
        cache: Cache::None,
        memory: None,
        prefetch: None,
    })
}
