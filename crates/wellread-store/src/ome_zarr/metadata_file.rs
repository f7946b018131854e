//! Files of metadata: read if they are there, and parsed.

use crate::{Error, Result, place};
use serde::Deserialize;
use std::io::ErrorKind;
use std::path::Path;

/// The bytes of a metadata file, or `None` when it does not exist.
pub(super) fn read_if_exists(file: &Path) -> Result<Option<Vec<u8>>> {
    let mut bytes = vec![];
    Ok(read_after_if_exists(file, &mut bytes)?.then_some(bytes))
}

/// Puts the bytes of a metadata file behind those of `bytes`; false when it does not exist.
pub(super) fn read_after_if_exists(file: &Path, bytes: &mut Vec<u8>) -> Result<bool> {
    match place::read_after(file, bytes) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io(file, "cannot read the metadata", &e)),
    }
}

/// Parses a metadata file.
pub(super) fn parse<'a, T: Deserialize<'a>>(file: &Path, bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| malformed(file, e))
}

/// The error of a metadata file that cannot be parsed.
pub(super) fn malformed(file: &Path, cause: impl std::fmt::Display) -> Error {
    Error::new(file, format_args!("malformed Zarr metadata: {cause}"))
        .hint("the file is truncated or corrupt; copy or write the image again")
}
