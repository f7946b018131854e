//! The checksum of a footer, which the format has no place for.
//!
//! The footer defines how pages are read, and the format has no checksum for it. So its checksum stands under
//! [`FOOTER_KEY`] in its own metadata, as eight hexadecimal digits that count as zeros in it.
//!
//! ```text
//!  writer ─▶ footer with FOOTER_KEY: 00000000 ──put──▶ digits in place ─▶ file ──footer_matches──▶ reader
//! ```

use crate::place;
use std::io;
use std::path::Path;

/// The footer's metadata has its own checksum under this key.
pub(super) const FOOTER_KEY: &str = "wellread:footer_crc32";
/// The digits while the checksum is computed.
pub(super) const NO_SUM: &str = "00000000";

/// Puts the checksum of a finished file's footer into it.
///
/// # Errors
/// A file that cannot be written, or has no place for it.
pub(super) fn put(path: &Path) -> io::Result<()> {
    let (file, length) = place::open(path)?;
    let (mut tail, mut footer) = ([0; 8], vec![]);
    let end = length.checked_sub(8).ok_or(io::ErrorKind::InvalidData)?;
    file.peek_exact_at(&mut tail, end)?;
    let length = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    let start = end.checked_sub(u64::from(length)).ok_or(io::ErrorKind::InvalidData)?;
    file.peek_after(start, u64::from(length), &mut footer)?;
    let at = offset_of_sum(&footer).ok_or(io::ErrorKind::InvalidData)?;
    place::of(path).patch(path, start + at as u64, sum_of(&footer, at).as_bytes())
}

/// Puts the checksum of its footer into a finished file that is in memory; `None` where that has no place for it.
#[cfg(feature = "ome-zarr")]
pub(super) fn put_in(file: &mut [u8]) -> Option<()> {
    let end = file.len().checked_sub(8)?;
    let length = u32::from_le_bytes([file[end], file[end + 1], file[end + 2], file[end + 3]]);
    let start = end.checked_sub(length as usize)?;
    let footer = &mut file[start..end];
    let at = offset_of_sum(footer)?;
    let sum = sum_of(footer, at);
    footer[at..at + NO_SUM.len()].copy_from_slice(sum.as_bytes());
    Some(())
}

/// Where in a footer the digits of its checksum are.
fn offset_of_sum(footer: &[u8]) -> Option<usize> {
    // A string field with its length follows the key.
    let mark = [FOOTER_KEY.as_bytes(), &[0x18, NO_SUM.len() as u8]].concat();
    let at = footer.windows(mark.len()).rposition(|window| window == mark)? + mark.len();
    (at + NO_SUM.len() <= footer.len()).then_some(at)
}

/// The digits of a footer's checksum, whose place is `at`.
fn sum_of(footer: &[u8], at: usize) -> String {
    let mut sum = libdeflater::Crc::new();
    sum.update(&footer[..at]);
    sum.update(NO_SUM.as_bytes());
    sum.update(&footer[at + NO_SUM.len()..]);
    format!("{:08x}", sum.sum())
}

/// Whether a footer that has a checksum matches it.
pub(super) fn footer_matches(footer: &[u8]) -> bool {
    offset_of_sum(footer).is_some_and(|at| sum_of(footer, at).as_bytes() == &footer[at..at + NO_SUM.len()])
}
