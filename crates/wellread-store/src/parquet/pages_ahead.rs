//! Asks for the headers of pages, or for small columns, before they are walked. In a bucket each header would be a request of
//! its own, one after the other.
//!
//! ```text
//!  offset index ─▶ places of all headers ─┐
//!  no index: the whole column, if small ──┴─▶ asked for at once ─▶ pages::scan finds them there
//! ```
//!
//! Reading goes on as ever where nothing is asked for, as on this machine.

use super::file::{HEADERS, PositionalFile};
use super::pages::{self, HEADER};
use super::thrift::{PageLocation, page_locations};
use crate::Result;
use crate::ahead::Fetching;
use crate::place::{PrefetchGuard, WantedRanges};
use parquet::file::metadata::ColumnChunkMetaData;

/// Bytes of columns that are asked for whole, at most.
const MAX_WHOLE_BYTES: u64 = 16 << 20;

/// Asks for whole columns that are going to be read, as many of them as are small together. Keep the result until they are.
pub(super) fn columns<'c>(
    file: &PositionalFile,
    chunks: impl Iterator<Item = &'c ColumnChunkMetaData>,
) -> Vec<PrefetchGuard> {
    let Some(mut fetching) = Fetching::of(file.path(), None) else { return vec![] };
    let (mut wanted, mut sum) = (WantedRanges::default(), 0u64);
    for chunk in chunks {
        sum = sum.saturating_add(u64::try_from(chunk.compressed_size()).unwrap_or(0));
        if sum > MAX_WHOLE_BYTES {
            break;
        }
        push_column(file, chunk, &mut wanted);
    }
    fetching.fetch(&wanted)
}

/// Adds a whole column to what is wanted.
pub(super) fn push_column(file: &PositionalFile, chunk: &ColumnChunkMetaData, wanted: &mut WantedRanges) {
    if let Some((start, size)) = pages::start(chunk).zip(u64::try_from(chunk.compressed_size()).ok()) {
        // The library reads on behind the last header.
        push_up_to(file, start, size.saturating_add(HEADERS as u64), wanted);
    }
}

/// Adds so many bytes, or those that the file has.
fn push_up_to(file: &PositionalFile, at: u64, length: u64, wanted: &mut WantedRanges) {
    wanted.push(file.path(), at, length.min(file.length().saturating_sub(at)));
}

/// Asks for the headers of all pages of a column, or for all of it. Keep the result until they are walked.
pub(super) fn headers(file: &PositionalFile, chunk: &ColumnChunkMetaData) -> Vec<PrefetchGuard> {
    let Some(mut fetching) = Fetching::of(file.path(), None) else { return vec![] };
    let Some(pages) = offset_index(file, chunk) else { return columns(file, std::iter::once(chunk)) };
    let mut wanted = WantedRanges::default();
    for at in pages::start(chunk).into_iter().chain(pages.iter().map(|page| page.offset)) {
        push_up_to(file, at, HEADER, &mut wanted);
    }
    fetching.fetch(&wanted)
}

/// Asks for the first header of each of these columns. Keep the result until they are read.
pub(super) fn first_headers<'c>(
    file: &PositionalFile,
    chunks: impl Iterator<Item = &'c ColumnChunkMetaData>,
) -> Vec<PrefetchGuard> {
    let Some(mut fetching) = Fetching::of(file.path(), None) else { return vec![] };
    let mut wanted = WantedRanges::default();
    for at in chunks.filter_map(pages::start) {
        push_up_to(file, at, HEADER, &mut wanted);
    }
    fetching.fetch(&wanted)
}

/// Bytes of a page of a column without its codec, on average.
///
/// # Errors
/// Headers that are damaged, or encrypted.
pub(super) fn average_page(file: &PositionalFile, chunk: &ColumnChunkMetaData) -> Result<usize> {
    let has_dictionary = chunk.dictionary_page_offset().is_some_and(|offset| offset != 0);
    // By its index where it has one: a walk reads as many headers as there are pages.
    if let Some(pages) = offset_index(file, chunk).filter(|_| !has_dictionary) {
        let headers = pages.len().saturating_mul(pages::first(file, chunk)?.length);
        let all = usize::try_from(chunk.uncompressed_size()).unwrap_or(0);
        return Ok(all.saturating_sub(headers) / pages.len());
    }
    let _held = headers(file, chunk);
    let pages = pages::scan(file, chunk)?;
    let bytes: usize = pages.data.iter().map(|page| page.header.uncompressed).sum();
    Ok(bytes / pages.data.len().max(1))
}

/// Where the pages of a column lie, by its offset index; `None` where it has none that can be read.
pub(super) fn offset_index(file: &PositionalFile, chunk: &ColumnChunkMetaData) -> Option<Vec<PageLocation>> {
    let (at, length) = (chunk.offset_index_offset()?, chunk.offset_index_length()?);
    let mut bytes = vec![];
    file.read(u64::try_from(at).ok()?, usize::try_from(length).ok()?, &mut bytes).ok()?;
    page_locations(&bytes).ok().filter(|pages| !pages.is_empty())
}
