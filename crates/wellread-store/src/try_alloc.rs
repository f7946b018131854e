//! Memory in proportion to data: asked for in a way that may fail, so that too little of it is an error.

/// Makes `buffer` exactly `length` bytes long; new ones are zero.
///
/// # Errors
/// There is not so much memory; the error, in words.
pub(crate) fn resize(buffer: &mut Vec<u8>, length: usize) -> Result<(), String> {
    reserve(buffer, length)?;
    buffer.resize(length, 0);
    Ok(())
}

/// Makes `buffer` at least `length` bytes long.
///
/// # Errors
/// As [`resize`].
pub(crate) fn grow(buffer: &mut Vec<u8>, length: usize) -> Result<(), String> {
    if buffer.len() < length { resize(buffer, length) } else { Ok(()) }
}

/// Makes room in `buffer` for `length` bytes in all.
///
/// # Errors
/// As [`resize`].
pub(crate) fn reserve(buffer: &mut Vec<u8>, length: usize) -> Result<(), String> {
    let more = length.saturating_sub(buffer.len());
    buffer.try_reserve(more).map_err(|_| format!("not enough memory for {length} bytes"))
}

/// A copy of some bytes.
///
/// # Errors
/// As [`resize`].
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
pub(crate) fn copied(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut copy = vec![];
    copy.try_reserve_exact(bytes.len())
        .map_err(|_| format!("not enough memory for {} bytes", bytes.len()))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// A decompressor for Zstandard, which the library panics about where there is no memory for it.
///
/// # Errors
/// There is none; the library's error.
pub(crate) fn zstd_decompressor() -> Result<zstd::bulk::Decompressor<'static>, String> {
    zstd::zstd_safe::DCtx::try_create().ok_or("not enough memory for a Zstandard decompressor")?;
    zstd::bulk::Decompressor::new().map_err(|e| format!("cannot start Zstandard: {e}"))
}

/// As [`zstd_decompressor`], for compression.
///
/// # Errors
/// As [`zstd_decompressor`].
#[cfg(feature = "ome-zarr")]
pub(crate) fn zstd_compressor(level: i32) -> Result<zstd::bulk::Compressor<'static>, String> {
    zstd::zstd_safe::CCtx::try_create().ok_or("not enough memory for a Zstandard compressor")?;
    zstd::bulk::Compressor::new(level).map_err(|e| format!("cannot start Zstandard: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_an_error() {
        let mut buffer = vec![1, 2, 3];
        resize(&mut buffer, 2).unwrap();
        grow(&mut buffer, 1).unwrap();
        grow(&mut buffer, 4).unwrap();
        assert_eq!(buffer, [1, 2, 0, 0]);
        let error = resize(&mut buffer, 1 << 62).unwrap_err();
        assert_eq!((error.as_str(), buffer.len()), ("not enough memory for 4611686018427387904 bytes", 4));
        assert_eq!(copied(&buffer), Ok(buffer));
    }
}
