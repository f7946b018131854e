//! The parts that all decoders of a chunk share: the array that they are for, and the checks of lengths and
//! checksums.
//!
//! The size of the result is known before. A chunk that would decompress to anything else is an error, and no
//! buffer grows beyond what [`MAX_RATIO`] times the bytes on disk could fill.

use crate::stored_type::StoredType;

/// No codec expands its input more than this: a Zstandard block of one repeated byte is 4 bytes for 128 KiB.
pub(super) const MAX_RATIO: usize = 32_768;

/// The array that codecs are resolved for.
pub(super) struct Target<'a> {
    /// TCZYX axis of each dimension.
    pub axes: &'a [usize],
    /// Chunk length along each dimension.
    pub chunk: &'a [usize],
    pub stored: StoredType,
    /// One pixel, little-endian.
    pub fill: [u8; 8],
}

/// Strips and checks the CRC32C at the end of `encoded`.
pub(super) fn checked(encoded: &[u8]) -> Result<&[u8], String> {
    let (data, crc) = encoded.split_last_chunk::<4>().ok_or("it is too short for its checksum")?;
    if crc32c::crc32c(data) == u32::from_le_bytes(*crc) {
        Ok(data)
    } else {
        Err("its CRC32C does not match".to_owned())
    }
}

/// Whether a decoded chunk is as long as it should be.
pub(super) fn same_length(length: usize, expected: usize) -> Result<(), String> {
    if length == expected {
        Ok(())
    } else {
        Err(format!("it holds {length} bytes of pixels where a chunk has {expected}"))
    }
}
