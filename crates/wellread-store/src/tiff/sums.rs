//! Checksums of strips, tiles and directories, which TIFF itself has no place for.
//!
//! Deflate carries a checksum of its content, and Zstandard may. Uncompressed pixels, LZW and PackBits carry none, and the
//! tags that define the pixels have none either. So each directory that is written here has one private tag more, which
//! other readers skip:
//!
//! ```text
//!  tag 65301, LONG: [ MAGIC | CRC-32 of the directory | bytes of the directory | CRC-32 of strip 0 | of strip 1 | … ]
//! ```
//!
//! A directory is its entries, the offset of the next one and the values behind them, in one piece. Its own CRC counts as
//! zero in it. A strip's CRC is of its bytes as they lie in the file. CRC-32 is that of gzip, zlib and PNG.

use super::endian::Endian;
use super::ifd::{FileView, Ifd, tag};
use crate::Result;

/// The beginning of the values of the tag: other programs that use the number mean something else.
const MAGIC: u32 = 0x774c_5231;
/// Values in front of those of strips and tiles.
pub(super) const HEAD: usize = 3;
/// Bytes of one value.
const VALUE: usize = 4;

/// The tag's values for strips or tiles of these checksums; [`put_directory_sum`] completes them.
pub(super) fn values(segments: &[u32]) -> Vec<u32> {
    [MAGIC, 0, 0].iter().chain(segments).copied().collect()
}

/// Puts length and checksum of `directory` into the tag's values, which are at `at` in it.
pub(super) fn put_directory_sum(directory: &mut [u8], at: usize, endian: Endian) {
    let put = |index: usize, value: u32, directory: &mut [u8]| {
        let bytes = if endian == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() };
        directory[at + index * VALUE..][..VALUE].copy_from_slice(&bytes);
    };
    put(2, directory.len() as u32, directory);
    let sum = libdeflater::crc32(directory);
    put(1, sum, directory);
}

/// The checksums of the `segments` strips or tiles of the page that `ifd` describes, once the directory is known to be
/// whole. `None` where the page has none.
///
/// # Errors
/// A directory that does not match its checksum, or checksums of another number of strips.
pub(super) fn read(
    view: &mut FileView<'_>,
    endian: Endian,
    ifd: &Ifd,
    segments: usize,
) -> Result<Option<Box<[u32]>>> {
    let Some((at, count, bytes)) = ifd.longs(view, tag::CHECKSUMS)? else { return Ok(None) };
    let mut values = bytes.chunks_exact(VALUE).map(|value| endian.u32(value));
    if values.next() != Some(MAGIC) {
        return Ok(None);
    }
    let (expected, length) = (values.next().unwrap_or(0), values.next().unwrap_or(0));
    let sums: Box<[u32]> = values.collect();
    let corrupt = |view: &FileView<'_>, what: std::fmt::Arguments<'_>| {
        view.error(format_args!("{what} (directory at offset {})", ifd.offset))
            .hint("the file is corrupt; copy or write it again")
    };
    let place = at.checked_sub(ifd.offset).map(|place| place + VALUE as u64);
    let inside = place.filter(|place| place + VALUE as u64 <= u64::from(length));
    let Some(place) = inside.filter(|_| count >= HEAD as u64) else {
        return Err(corrupt(view, format_args!("a directory's checksum is damaged")));
    };
    let directory = view.bytes(ifd.offset, u64::from(length))?;
    let (before, after) = directory.split_at(place as usize);
    let mut sum = libdeflater::Crc::new();
    sum.update(before);
    sum.update(&[0; VALUE]);
    sum.update(&after[VALUE..]);
    if sum.sum() != expected {
        return Err(corrupt(view, format_args!("a directory does not match its checksum")));
    }
    if sums.len() != segments {
        let what = format_args!("there are {} checksums for {segments} strips or tiles", sums.len());
        return Err(corrupt(view, what));
    }
    Ok(Some(sums))
}

/// Compares stored bytes, which consist of as many equal parts as there are `sums`.
///
/// # Errors
/// A part that does not match.
pub(super) fn check(bytes: &[u8], sums: &[u32]) -> Result<(), String> {
    let part = bytes.len().checked_div(sums.len()).unwrap_or(0).max(1);
    let fits = bytes.chunks(part).zip(sums).all(|(part, &sum)| libdeflater::crc32(part) == sum);
    if fits { Ok(()) } else { Err("its checksum does not match".into()) }
}
