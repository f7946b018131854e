//! Bytes of files: read by position into memory that grows within what there is, and the numbers in them.

use super::fault::Fault::{self, Irregular};
use crate::place::File;

/// The number that a few bytes are, lowest first; of more than eight, the first eight.
#[inline]
pub fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// The first `length` values of `buffer`, which grows to hold them. Its content is written over, not cleared.
///
/// # Errors
/// There is no memory for so many.
#[inline]
pub fn grown<T: Copy + Default>(buffer: &mut Vec<T>, length: usize) -> Result<&mut [T], Fault> {
    if buffer.len() < length {
        let more = length - buffer.len();
        buffer.try_reserve(more).map_err(|_| Irregular("more bytes than there is memory for"))?;
        buffer.resize(length, T::default());
    }
    Ok(&mut buffer[..length])
}

/// Why bytes are not there, in the [`Fault`] of [`read_at`].
pub const UNREADABLE: &str = "the file cannot be read";

/// Fills `out` from `offset` of a file on.
///
/// # Errors
/// A file that ends before, or that cannot be read.
pub fn read_at(file: &File, out: &mut [u8], offset: u64) -> Result<(), Fault> {
    file.read_exact_at(out, offset).map_err(|_| Irregular(UNREADABLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_of_any_length() {
        assert_eq!(little_endian(&[]), 0);
        assert_eq!(little_endian(&[1, 2]), 513);
        assert_eq!(little_endian(&u64::MAX.to_le_bytes()), u64::MAX);
    }

    #[test]
    fn buffers_grow_within_the_memory_there_is() {
        let mut buffer = vec![7u64];
        assert_eq!(grown(&mut buffer, 2).unwrap(), [7, 0]);
        assert_eq!(grown(&mut buffer, 1).unwrap(), [7]);
        assert!(grown(&mut buffer, 1 << 58).is_err());
        assert_eq!(buffer.len(), 2);
    }
}
