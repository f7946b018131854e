//! The parts that the examples share: images of NF1, and batches as the networks have them.

use anyhow::Result;
use std::path::Path;
use wellread_loader::{BatchArray, Cache, Dataset};
use wellread_store::OpenOptions;
use wellread_train::net::Tensor;

/// Files of NF1, such as `B7_01_1_3_DAPI_001.tif`: well B7, site 3, channel DAPI.
const NF1: &str = "{well}_01_*_{site}_{channel}_001.tif";
/// Bytes of decoded images that are kept.
const KEPT: usize = 2 << 30;

/// A set whose images stay decoded.
pub fn kept(path: &Path, options: &OpenOptions) -> Result<Dataset> {
    Ok(Dataset::open_with(path, options)?.with_cache(&Cache::Lru { limit: KEPT })?)
}

/// The sites in a folder of NF1, with the columns that the names of their files tell.
pub fn nf1_sites(folder: &Path) -> Result<Dataset> {
    let options = OpenOptions { pattern: Some(NF1.to_owned()), ..OpenOptions::default() };
    kept(&folder.join("images"), &options)
}

/// The pixels of a batch, channels last as the network has them.
pub fn channels_last(array: &BatchArray<'_>) -> Result<Tensor> {
    let &[n, c, height, width] = array.shape() else {
        anyhow::bail!("images of shape {:?} have several planes or time points", array.shape());
    };
    let (pixels, plane) = (array.pixels(), height * width);
    let mut values = Vec::with_capacity(pixels.len());
    for image in pixels.chunks_exact(c * plane) {
        for at in 0..plane {
            values.extend((0..c).map(|channel| image[channel * plane + at]));
        }
    }
    Tensor::new(values, [n, 1, height, width, c])
}

/// The folder of NF1 beside the repository, where there is one.
#[cfg(test)]
pub fn nf1_folder() -> Option<std::path::PathBuf> {
    let shared = std::env::var_os("WELLREAD_SHARED").map(std::path::PathBuf::from);
    let shared =
        shared.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").into());
    let folder = shared.join("nf1");
    if !folder.is_dir() {
        println!("skipped: no NF1 images below {} (set WELLREAD_SHARED)", shared.display());
        return None;
    }
    Some(folder)
}
