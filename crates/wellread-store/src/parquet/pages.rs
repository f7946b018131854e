//! The pages of a column chunk: found by their headers, compared with their checksums. [`super::load`] reads them.

use super::file::PositionalFile;
use super::thrift::{Encoding, HeaderError, PageHeader, PageKind};
use crate::{Error, Result};
use parquet::basic::Compression;
use parquet::file::metadata::ColumnChunkMetaData;
use std::ops::Range;

/// Why the fast path cannot go on.
#[derive(Debug)]
pub(super) enum FastPathError {
    /// Something unusual but perhaps valid: the general reader decides.
    General,
    /// The file is damaged or cannot be read.
    Error(Error),
}

impl From<Error> for FastPathError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Where a page is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Page {
    /// Offset of its first byte after the header.
    pub offset: u64,
    pub header: PageHeader,
    /// Entries of levels, counted from the start of the column chunk.
    pub levels: Range<u64>,
}

/// The pages of a column chunk.
#[derive(Clone, Debug)]
pub(super) struct ColumnPages {
    pub dictionary: Option<Page>,
    pub data: Vec<Page>,
    pub codec: Compression,
}

/// Bytes that are read to parse a header, at first.
pub(super) const HEADER: u64 = 256;

/// Where the first page of a column lies, a dictionary or a page of values.
pub(super) fn start(chunk: &ColumnChunkMetaData) -> Option<u64> {
    // Writers without a dictionary may put zero instead of nothing.
    let dictionary = chunk.dictionary_page_offset().filter(|&offset| offset != 0);
    u64::try_from(dictionary.unwrap_or_else(|| chunk.data_page_offset())).ok()
}

/// The header of the first page of a column.
///
/// # Errors
/// One that is damaged, or encrypted.
pub(super) fn first(file: &PositionalFile, chunk: &ColumnChunkMetaData) -> Result<PageHeader> {
    let at = start(chunk).unwrap_or(u64::MAX);
    let size = u64::try_from(chunk.compressed_size()).unwrap_or(0);
    let end = at.saturating_add(size).min(file.length());
    let header = header_at(file, at, end, &mut vec![]);
    header
        .and_then(|header| header.map_err(|why| corrupt_column(file, chunk, why)))
        .map_err(|error| file.encrypted_or(error))
}

fn corrupt_column(file: &PositionalFile, chunk: &ColumnChunkMetaData, why: &str) -> Error {
    Error::new(file.path(), format_args!("column {}: {why}", chunk.column_path().string()))
        .hint("the file is corrupt; copy or write it again")
}

/// Finds the pages of a column chunk by walking from header to header, checking each against what the
/// footer says of the whole.
///
/// # Errors
/// Headers that are damaged, or encrypted.
pub(super) fn scan(file: &PositionalFile, chunk: &ColumnChunkMetaData) -> Result<ColumnPages> {
    walk(file, chunk).map_err(|error| file.encrypted_or(error))
}

fn walk(file: &PositionalFile, chunk: &ColumnChunkMetaData) -> Result<ColumnPages> {
    let corrupt = |why: &str| corrupt_column(file, chunk, why);
    let number = |n: i64, what: &str| u64::try_from(n).map_err(|_| corrupt(&format!("{what} is {n}")));
    let data = number(chunk.data_page_offset(), "the offset of its pages")?;
    let size = number(chunk.compressed_size(), "its size")?;
    let entries = number(chunk.num_values(), "its number of values")?;
    let total = number(chunk.uncompressed_size(), "its size")?;
    let mut at = match chunk.dictionary_page_offset() {
        // Writers without a dictionary may put zero instead of nothing.
        None | Some(0) => data,
        Some(offset) => {
            let dictionary = number(offset, "the offset of its dictionary")?;
            if dictionary > data {
                return Err(corrupt("its dictionary lies behind its pages"));
            }
            dictionary
        }
    };
    let end = at
        .checked_add(size)
        .filter(|&end| end <= file.length())
        .ok_or_else(|| corrupt("its pages lie beyond the end of the file"))?;
    let mut pages = ColumnPages { dictionary: None, data: vec![], codec: chunk.compression() };
    // No checksum is of the headers of pages. By an encoding that was flipped, values would be others without a word.
    let encodings: Option<Vec<Encoding>> = file
        .is_footer_verified()
        .then(|| chunk.encodings().map(|encoding| Encoding::from(encoding as i32)).collect());
    let mut seen = 0u64;
    let mut buffer = vec![];
    while at < end && seen < entries {
        let header = header_at(file, at, end, &mut buffer)?.map_err(&corrupt)?;
        let offset = at + header.length as u64;
        at = offset
            .checked_add(header.compressed as u64)
            .filter(|&after| after <= end)
            .ok_or_else(|| corrupt("a page exceeds its column"))?;
        // The footer's total counts headers too; some writers leave it unset.
        if total >= size && header.uncompressed as u64 > total {
            return Err(corrupt("a page declares more bytes than its whole column has"));
        }
        let has_values = !matches!(header.kind, PageKind::Unknown);
        if has_values && encodings.as_ref().is_some_and(|all| !all.contains(&header.encoding)) {
            return Err(corrupt("a page has an encoding that its column has not"));
        }
        match header.kind {
            PageKind::V1 { .. } | PageKind::V2 { .. } => {
                let levels = seen..seen + header.values as u64;
                seen = levels.end;
                pages.data.push(Page { offset, header, levels });
            }
            PageKind::Dictionary if header.values as u64 > entries => {
                return Err(corrupt("its dictionary has more entries than there are values"));
            }
            PageKind::Dictionary if pages.data.is_empty() && pages.dictionary.is_none() => {
                pages.dictionary = Some(Page { offset, header, levels: 0..0 });
            }
            PageKind::Dictionary => return Err(corrupt("it has a second dictionary")),
            PageKind::Unknown => {}
        }
    }
    if seen != entries {
        return Err(corrupt(&format!("its pages hold {seen} values, the footer says {entries}")));
    }
    Ok(pages)
}

/// The dictionary page of a column chunk, at `at`.
///
/// `None` where what is there is none, or declares more than the column has.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn dictionary(
    file: &PositionalFile,
    at: u64,
    end: u64,
    chunk: &ColumnChunkMetaData,
) -> Result<Option<Page>> {
    let Ok(header) = header_at(file, at, end, &mut vec![])? else { return Ok(None) };
    let offset = at + header.length as u64;
    let inside = offset.checked_add(header.compressed as u64).is_some_and(|after| after <= end);
    let fits = header.values as i64 <= chunk.num_values()
        && header.uncompressed as i64 <= chunk.uncompressed_size().max(chunk.compressed_size());
    let is_one = header.kind == PageKind::Dictionary && inside && fits;
    Ok(is_one.then_some(Page { offset, header, levels: 0..0 }))
}

/// Parses the header at `at`, reading more where statistics make it long.
fn header_at(
    file: &PositionalFile,
    at: u64,
    end: u64,
    buffer: &mut Vec<u8>,
) -> Result<std::result::Result<PageHeader, &'static str>> {
    for window in [HEADER, 16 << 10, 1 << 20] {
        let n = end.saturating_sub(at).min(window) as usize;
        file.read(at, n, buffer)?;
        match PageHeader::parse(buffer) {
            Ok(header) => return Ok(Ok(header)),
            Err(HeaderError::Corrupt(why)) => return Ok(Err(why)),
            Err(HeaderError::Short) if (n as u64) < window => break,
            Err(HeaderError::Short) => {}
        }
    }
    Ok(Err("a page header does not end"))
}

/// The error of a page that is not what it should be.
pub(super) fn damaged(file: &PositionalFile, offset: u64, why: &dyn std::fmt::Display) -> Error {
    Error::new(file.path(), format_args!("page at offset {offset}: {why}"))
        .hint("the file is corrupt; copy or write it again")
}

/// Compares the bytes of a page, all after its header, with its checksum, if it has one.
pub(super) fn check_sum(file: &PositionalFile, offset: u64, header: &PageHeader, raw: &[u8]) -> Result<()> {
    match header.crc {
        Some(crc) if libdeflater::crc32(raw) != crc => {
            Err(damaged(file, offset, &"its checksum does not match"))
        }
        _ => Ok(()),
    }
}
