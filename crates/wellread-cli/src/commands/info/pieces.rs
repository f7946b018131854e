//! Bytes of the pieces that pixels lie in, such as chunks.

use crate::output::Outcome;
use std::path::{Path, PathBuf};
use wellread_store::{Error, StoreLayout};

/// Names of files of metadata beside chunks.
const ZARR_METADATA: [&str; 5] = ["zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"];

/// Bytes of those of `files` that hold pixels.
pub(super) fn bytes_of_pieces(files: &[PathBuf]) -> Outcome<u64> {
    let is_metadata = |file: &Path| {
        file.file_name().is_some_and(|name| ZARR_METADATA.iter().any(|metadata| name == *metadata))
    };
    let mut sum = 0;
    for file in files.iter().filter(|file| !is_metadata(file)) {
        sum +=
            wellread_store::place::metadata(file).map_err(|e| Error::io(file, "cannot look at", &e))?.length;
    }
    Ok(sum)
}

/// Bytes of an image of this shape in whole chunks, where `layout` has some; of a pixel of so many bytes.
pub(super) fn bytes_in_chunks(shape: [usize; 5], pixel: usize, layout: &StoreLayout) -> u128 {
    let chunk = layout.chunk.unwrap_or([1; 5]);
    let sizes = shape.iter().zip(chunk).map(|(&n, chunk)| n.next_multiple_of(chunk.max(1)) as u128);
    sizes.product::<u128>() * pixel as u128
}
