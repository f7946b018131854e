//! The skeleton of a TIFF file: header, image file directories (IFDs), tag values.
//!
//! Specifications: TIFF 6.0 (1992) and BigTIFF (AWare Systems). Every offset and count is checked against the
//! file's length before anything is read or allocated. A chain of directories that loops is cut with an
//! error. The bytes read on behalf of one file are limited to a small multiple of its length. So overlapping
//! directories cannot cost more than the file could hold.
//!
//! ```text
//!  file ──pread──▶ FileView (one window of bytes) ──▶ Header ──▶ Ifd … Ifd ──▶ numbers, text
//! ```

use super::endian::Endian;
use crate::place::File;
use crate::{Error, Result};
use std::collections::HashSet;
use std::path::Path;

/// Tags that are read or written.
pub(super) mod tag {
    pub const NEW_SUBFILE_TYPE: u16 = 254;
    pub const SUBFILE_TYPE: u16 = 255;
    pub const IMAGE_WIDTH: u16 = 256;
    pub const IMAGE_LENGTH: u16 = 257;
    pub const BITS_PER_SAMPLE: u16 = 258;
    pub const COMPRESSION: u16 = 259;
    pub const PHOTOMETRIC: u16 = 262;
    pub const FILL_ORDER: u16 = 266;
    pub const IMAGE_DESCRIPTION: u16 = 270;
    pub const STRIP_OFFSETS: u16 = 273;
    pub const SAMPLES_PER_PIXEL: u16 = 277;
    pub const ROWS_PER_STRIP: u16 = 278;
    pub const STRIP_BYTE_COUNTS: u16 = 279;
    pub const X_RESOLUTION: u16 = 282;
    pub const Y_RESOLUTION: u16 = 283;
    pub const PLANAR_CONFIGURATION: u16 = 284;
    pub const SOFTWARE: u16 = 305;
    pub const DATE_TIME: u16 = 306;
    pub const PREDICTOR: u16 = 317;
    pub const TILE_WIDTH: u16 = 322;
    pub const TILE_LENGTH: u16 = 323;
    pub const TILE_OFFSETS: u16 = 324;
    pub const TILE_BYTE_COUNTS: u16 = 325;
    pub const SAMPLE_FORMAT: u16 = 339;
    pub const YCBCR_SUBSAMPLING: u16 = 530;
    pub const IMAGE_DEPTH: u16 = 32997;
    pub const TILE_DEPTH: u16 = 32998;
    /// A number as text.
    pub const GDAL_NODATA: u16 = 42113;
    /// MetaMorph's: as many values as its stack has planes.
    pub const UIC2: u16 = 33629;
    /// Zeiss's LSM: bytes with the size of the image and the order of its scan.
    pub const CZ_LSMINFO: u16 = 34412;
    /// ImageJ's: see [`super::super::slice_labels`].
    pub const IMAGE_J_BYTE_COUNTS: u16 = 50838;
    pub const IMAGE_J_METADATA: u16 = 50839;
    /// Private: see [`super::super::sums`].
    pub const CHECKSUMS: u16 = 65301;
}

/// Bytes read ahead around a position asked for; a file up to [`WHOLE`] is read in one go.
const WINDOW: u64 = 16 << 10;
const WHOLE: u64 = 64 << 10;

/// Hint of errors about data beyond the end of the file.
pub(super) const TRUNCATED: &str = "the file is probably truncated; copy or write it again";

/// A file looked at through a window that moves.
pub(super) struct FileView<'a> {
    path: &'a Path,
    file: &'a File,
    len: u64,
    window: &'a mut Vec<u8>,
    start: u64,
    filled: usize,
    /// Bytes that may still be asked for.
    budget: u64,
}

impl<'a> FileView<'a> {
    /// Looks at `file`, `len` bytes long; `window` is memory to use.
    pub(super) fn new(path: &'a Path, file: &'a File, len: u64, window: &'a mut Vec<u8>) -> Self {
        let budget = len.saturating_mul(4).saturating_add(1 << 20);
        Self { path, file, len, window, start: 0, filled: 0, budget }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn path(&self) -> &'a Path {
        self.path
    }

    /// An error about this file.
    pub(super) fn error(&self, cause: impl std::fmt::Display) -> Error {
        Error::new(self.path, cause)
    }

    /// Part of the directory at `directory`: the `n` bytes at `offset`.
    fn table(&mut self, directory: u64, offset: u64, n: u64) -> Result<&[u8]> {
        if offset.checked_add(n).is_none_or(|end| end > self.len) {
            return Err(self
                .error(format_args!(
                    "the directory at offset {directory} reaches beyond the end of the file ({} bytes)",
                    self.len
                ))
                .hint(TRUNCATED));
        }
        self.bytes(offset, n)
    }

    /// The `n` bytes at `offset`.
    pub(super) fn bytes(&mut self, offset: u64, n: u64) -> Result<&[u8]> {
        let Some(end) = offset.checked_add(n).filter(|&end| end <= self.len) else {
            return Err(self
                .error(format_args!(
                    "{n} bytes at offset {offset} lie beyond the end of the file ({} bytes)",
                    self.len
                ))
                .hint(TRUNCATED));
        };
        self.budget = self
            .budget
            .checked_sub(n)
            .ok_or_else(|| self.error("its directories overlap: the file is corrupt"))?;
        if offset < self.start || end > self.start + self.filled as u64 {
            let start = if self.len <= WHOLE { 0 } else { offset };
            let size = if self.len <= WHOLE { self.len } else { n.max(WINDOW).min(self.len - start) };
            let size = usize::try_from(size).map_err(|_| self.error("too large for this machine"))?;
            if self.window.len() < size {
                self.window.resize(size, 0);
            }
            self.filled = 0;
            self.file
                .read_exact_at(&mut self.window[..size], start)
                .map_err(|e| Error::io(self.path, "cannot read", &e))?;
            self.start = start;
            self.filled = size;
        }
        let at = (offset - self.start) as usize;
        Ok(&self.window[at..at + n as usize])
    }
}

/// Byte order and kind of a file, and where its first directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) endian: Endian,
    pub(super) big: bool,
    pub(super) first: u64,
}

impl Header {
    /// Whether the first bytes of a file are those of a TIFF.
    pub(super) fn recognise(head: &[u8]) -> bool {
        matches!(head.get(..4), Some(b"II*\0" | b"MM\0*" | b"II+\0" | b"MM\0+"))
    }

    pub(super) fn read(view: &mut FileView<'_>) -> Result<Self> {
        if view.len < 8 {
            let what = if view.len == 0 { "the file is empty" } else { "the file is too short for a TIFF" };
            return Err(view.error(what).hint("copy or write it again"));
        }
        let head: [u8; 8] = view.bytes(0, 8)?.try_into().expect("8 bytes");
        if !Self::recognise(&head) {
            return Err(view.error(format_args!("is no TIFF: it starts with {:02x?}", &head[..4])));
        }
        let endian = if head[0] == b'I' { Endian::Little } else { Endian::Big };
        let big = head[2..4].contains(&b'+');
        let first = if big {
            if endian.u16(&head[4..]) != 8 || endian.u16(&head[6..]) != 0 {
                return Err(view.error("the BigTIFF header is corrupt: offsets are not of 8 bytes"));
            }
            endian.u64(view.bytes(8, 8)?)
        } else {
            u64::from(endian.u32(&head[4..]))
        };
        Ok(Self { endian, big, first })
    }
}

/// One tag of a directory: its value's type, count, and place.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u16,
    kind: u16,
    count: u64,
    /// Offset of the values in the file: of the entry's own value field when they fit there.
    at: u64,
}

/// One directory: the description of one page.
#[derive(Debug, Default)]
pub(super) struct Ifd {
    entries: Vec<Entry>,
    /// Where it was found.
    pub(super) offset: u64,
}

/// Size of one value of a type; `None` for unknown types.
fn size_of_kind(kind: u16) -> Option<u64> {
    Some(match kind {
        1 | 2 | 6 | 7 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16 | 17 | 18 => 8,
        _ => return None,
    })
}

/// Reads all directories of the main chain, calling `each` for every one.
pub(super) fn read_chain(
    view: &mut FileView<'_>,
    header: Header,
    mut each: impl FnMut(&mut FileView<'_>, &Ifd) -> Result<()>,
) -> Result<()> {
    let mut seen = HashSet::new();
    let mut offset = header.first;
    let mut ifd = Ifd::default();
    while offset != 0 {
        if !seen.insert(offset) {
            return Err(view.error(format_args!(
                "the chain of directories returns to offset {offset}: the file is corrupt"
            )));
        }
        offset = ifd.read(view, header, offset)?;
        each(view, &ifd)?;
    }
    Ok(())
}

impl Ifd {
    /// Reads the directory at `offset` and returns the offset of the next one, 0 after the last.
    fn read(&mut self, view: &mut FileView<'_>, header: Header, offset: u64) -> Result<u64> {
        let Header { endian, big, .. } = header;
        self.entries.clear();
        self.offset = offset;
        let (head, each, tail) = if big { (8, 20, 8) } else { (2, 12, 4) };
        let count = view.table(offset, offset, head)?;
        let count = if big { endian.u64(count) } else { u64::from(endian.u16(count)) };
        if count == 0 {
            return Err(view.error(format_args!("the directory at offset {offset} is empty")));
        }
        let size = count.saturating_mul(each).saturating_add(tail);
        let table = view.table(offset, offset + head, size)?;
        let (entries, next) = table.split_at((count * each) as usize);
        let next = if big { endian.u64(next) } else { u64::from(endian.u32(next)) };
        for (i, entry) in entries.chunks_exact(each as usize).enumerate() {
            let (tag, kind) = (endian.u16(entry), endian.u16(&entry[2..]));
            let Some(size) = size_of_kind(kind) else { continue };
            let (count, field, room) = if big {
                (endian.u64(&entry[4..]), 12, 8)
            } else {
                (u64::from(endian.u32(&entry[4..])), 8, 4)
            };
            let at = if count.saturating_mul(size) <= room {
                offset + head + i as u64 * each + field
            } else if big {
                endian.u64(&entry[12..])
            } else {
                u64::from(endian.u32(&entry[8..]))
            };
            self.entries.push(Entry { tag, kind, count, at });
        }
        Ok(next)
    }

    fn entry(&self, tag: u16) -> Option<&Entry> {
        self.entries.iter().find(|e| e.tag == tag)
    }

    /// How many values a tag has; 0 when it is absent.
    pub(super) fn count(&self, tag: u16) -> u64 {
        self.entry(tag).map_or(0, |entry| entry.count)
    }

    /// The raw bytes of a tag's first `limit` values, with their type.
    fn raw<'v>(
        &self,
        view: &'v mut FileView<'_>,
        tag: u16,
        limit: u64,
    ) -> Result<Option<(u16, u64, &'v [u8])>> {
        let Some(&Entry { kind, count, at, .. }) = self.entry(tag) else { return Ok(None) };
        let size = size_of_kind(kind).expect("entries of unknown types are left out");
        let n = count.min(limit);
        let bytes = n.checked_mul(size).filter(|&b| b <= view.len).ok_or_else(|| {
            view.error(format_args!("tag {tag} declares {count} values, more than the file can hold"))
                .hint("the file is probably corrupt; copy or write it again")
        })?;
        Ok(Some((kind, n, view.bytes(at, bytes)?)))
    }

    /// All values of a tag of whole numbers, at most `limit`; `None` when the tag is absent. Some writers choose a signed type for
    /// numbers that are never negative.
    pub(super) fn numbers(
        &self,
        view: &mut FileView<'_>,
        endian: Endian,
        tag: u16,
        limit: u64,
    ) -> Result<Option<Vec<u64>>> {
        let Some((kind, _, bytes)) = self.raw(view, tag, limit)? else { return Ok(None) };
        Ok(Some(match kind {
            1 | 6 | 7 => bytes.iter().map(|&b| u64::from(b)).collect(),
            3 | 8 => bytes.chunks_exact(2).map(|b| u64::from(endian.u16(b))).collect(),
            4 | 9 | 13 => bytes.chunks_exact(4).map(|b| u64::from(endian.u32(b))).collect(),
            16..=18 => bytes.chunks_exact(8).map(|b| endian.u64(b)).collect(),
            _ => return Err(view.error(format_args!("tag {tag} has type {kind}, not whole numbers"))),
        }))
    }

    /// Where the values of a tag of 32-bit numbers lie, how many they are, and their bytes. `None` where the tag is absent or
    /// of another type.
    pub(super) fn longs<'v>(
        &self,
        view: &'v mut FileView<'_>,
        tag: u16,
    ) -> Result<Option<(u64, u64, &'v [u8])>> {
        let Some(&Entry { kind: 4, at, .. }) = self.entry(tag) else { return Ok(None) };
        Ok(self.raw(view, tag, u64::MAX)?.map(|(_, count, bytes)| (at, count, bytes)))
    }

    /// The first value of a tag of whole numbers.
    pub(super) fn number(&self, view: &mut FileView<'_>, endian: Endian, tag: u16) -> Result<Option<u64>> {
        let Some((kind, n, bytes)) = self.raw(view, tag, 1)? else { return Ok(None) };
        if n == 0 {
            return Ok(None);
        }
        Ok(Some(match kind {
            1 | 6 | 7 => u64::from(bytes[0]),
            3 | 8 => u64::from(endian.u16(bytes)),
            4 | 9 | 13 => u64::from(endian.u32(bytes)),
            16..=18 => endian.u64(bytes),
            _ => return Err(view.error(format_args!("tag {tag} has type {kind}, not whole numbers"))),
        }))
    }

    /// A text tag, up to its first NUL; bytes that are not UTF-8 are taken as Latin-1.
    pub(super) fn text(&self, view: &mut FileView<'_>, tag: u16) -> Result<Option<String>> {
        let Some((kind, _, bytes)) = self.raw(view, tag, u64::MAX)? else { return Ok(None) };
        if !matches!(kind, 1 | 2 | 7) {
            return Ok(None);
        }
        let bytes = bytes.split(|&b| b == 0).next().unwrap_or(&[]);
        Ok(Some(match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|&b| char::from(b)).collect(),
        }))
    }

    /// Whether a text tag starts with `prefix`.
    pub(super) fn text_starts_with(&self, view: &mut FileView<'_>, tag: u16, prefix: &[u8]) -> Result<bool> {
        Ok(self.raw(view, tag, prefix.len() as u64)?.is_some_and(|(_, _, bytes)| bytes == prefix))
    }

    /// A positive, finite rational number.
    pub(super) fn rational(&self, view: &mut FileView<'_>, endian: Endian, tag: u16) -> Result<Option<f64>> {
        let Some((5, 1, bytes)) = self.raw(view, tag, 1)? else { return Ok(None) };
        let value = f64::from(endian.u32(bytes)) / f64::from(endian.u32(&bytes[4..]));
        Ok(Some(value).filter(|v| v.is_finite() && *v > 0.0))
    }
}
