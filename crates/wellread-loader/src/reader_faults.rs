//! Faults of readers: blocks of another size or type than they are to have, and pixels that never come.

use std::path::Path;
use wellread_image::PixelType;
use wellread_store::{Block, Error, Result};

/// The hint where a reader breaks its promise.
const DEFECT: &str = "this is a defect of the format's reader, or the file is corrupt";

/// The error of a reader that has delivered too few pixels of a row.
pub(crate) fn too_few(path: &Path, row: usize, missing: usize) -> Error {
    Error::new(path, format_args!("the reader delivered {missing} pixels too few")).row(row).hint(DEFECT)
}

/// Checks that a block of a row has as many bytes as its pixels of this type have.
///
/// # Errors
/// Another type, more or fewer bytes.
pub(crate) fn check_block(path: &Path, row: usize, dtype: PixelType, block: &Block<'_>) -> Result<()> {
    let (bytes, pixels) = (block.data.len(), block.region.pixels());
    if block.dtype == dtype && bytes == pixels * dtype.size() {
        return Ok(());
    }
    let of = block.dtype;
    let cause = format_args!("the reader delivered {bytes} bytes of {of} for {pixels} pixels of {dtype}");
    Err(Error::new(path, cause).row(row).hint(DEFECT))
}
