//! The fast path: from a chunk's place in the pixel leaf straight to blocks of pixels.
//!
//! ```text
//!  piece ─layout─▶ values 310000..320000 ─pages─▶ page 3, values 7280.. of it
//!                                                   │ cached? else read, decompress, compare levels with
//!                                                   ▼ shapes, decode to the image's own type
//!                                        decoded page ──slice──▶ Block (no copy)
//! ```
//!
//! A set that is too large to be kept decoded has a share of its pages kept, always the same ones. Random access finds
//! as much in the cache as if the latest were kept, and nothing is put there only to be thrown out. The other pages, if
//! they serve one image only, are decoded in bands that stay in the processor's cache. The sink takes them from there
//! ([`FastReader::decode_directly`]).
//!
//! Only what lies in two pages at once is put together in scratch memory: one line of pixels at a time.
//!
//! Long because the loop over pages and the decisions on what is decoded, kept and handed on share one reader's buffers.

use super::cache::{Cache, Entry, Key, StoredCoding};
use super::delta;
use super::dictionary::{PageCursor, Table};
use super::file::PositionalFile;
use super::levels;
use super::load::{self, Codecs};
use super::pages::FastPathError;
use super::pieces::PieceTable;
use super::pixel_pages::PixelPages;
use super::schema::PixelLeaf;
use super::thrift::Encoding;
use super::values::{self, Coding};
use crate::numbers::{BadValue, LeafType};
use crate::{Block, Error, PixelSink, RowInfo, Scratch, try_alloc};
use std::sync::Arc;
use wellread_image::{PixelType, Region};

/// A page that decodes to no more than this is decoded whole when first touched. A larger one only where its
/// pixels take no more room than its stored bytes.
const MAX_WHOLE_PAGE_BYTES: usize = 8 << 20;

/// Most bytes of a page that are decoded at once into scratch memory where it is kept as it is stored.
const BAND_BYTES: usize = 1 << 20;

/// Bytes of a band that stays in the processor's cache until the sink has taken it.
const CACHED_BAND: usize = 128 << 10;

/// Buffers larger than this are given back after use.
const MAX_KEPT_BUFFER_BYTES: usize = 16 << 20;

/// Reads pieces of one row group from one pixel leaf.
pub(super) struct FastReader<'a> {
    pub file: &'a PositionalFile,
    pub cache: &'a Cache,
    pub group: usize,
    pub source: usize,
    pub leaf: PixelLeaf,
    pub pages: &'a PixelPages,
    pub table: &'a PieceTable,
    /// How many of 65,536 pages the cache has room for, decoded.
    pub kept_share: u32,
    /// The page used last: pieces come in order of position.
    pub current: Option<(usize, PixelType, Arc<Entry>)>,
    /// Where the last part of that page ended, if it is kept as stored.
    pub walk: PageCursor,
    /// Values of the image that is read now, as far as known: see [`Self::begin`].
    pub wanted: std::ops::Range<u64>,
    /// The page whose bytes are in the scratch memory, on its way past the cache.
    pub loaded: Option<Loaded>,
}

/// A page in scratch memory, as stored.
pub(super) struct Loaded {
    page: usize,
    coding: StoredCoding,
    /// Whether its values are among the bytes as read, not the decompressed.
    is_raw: bool,
    values: std::ops::Range<usize>,
    walk: PageCursor,
}

impl Drop for FastReader<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

impl FastReader<'_> {
    /// Hands the pixels that piece `piece` and `region` share to `sink` as request `request`.
    pub fn deliver(
        &mut self,
        piece: usize,
        info: RowInfo,
        region: &Region,
        request: usize,
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<(), FastPathError> {
        let Some((part, offset)) = contiguous_part(&self.table.region(piece), region) else {
            return Ok(());
        };
        let (dtype, size) = (info.dtype, info.dtype.size());
        let first = self.table.values(piece).start + offset as u64;
        let [_, _, nz, ny, nx] = part.size;
        // All of it in one decoded page: one block, as it lies.
        let page = self.find(first)?;
        let inside = self.values_of(page);
        let is_whole = first + part.pixels() as u64 <= inside.end;
        if is_whole && self.is_decoded_directly(page) {
            return self.decode_directly(page, first, &part, dtype, request, scratch, sink);
        }
        if is_whole && let Entry::Pixels(pixels) = &*self.entry(page, dtype, scratch)? {
            let from = (first - inside.start) as usize * size;
            let data = &pixels[from..from + part.pixels() * size];
            return Ok(sink.put(request, &Block { region: part, data, dtype })?);
        }
        // Otherwise plane by plane, in bands of the lines that a page has whole.
        for z in 0..nz {
            let mut y = 0;
            while y < ny {
                let position = first + ((z * ny + y) * nx) as u64;
                let page = self.find(position)?;
                let inside = self.values_of(page);
                let whole = usize::try_from((inside.end - position) / nx as u64).unwrap_or(usize::MAX);
                let lines = whole.min(ny - y);
                let mut block = part;
                (block.start[2], block.size[2]) = (part.start[2] + z, 1);
                block.start[3] = part.start[3] + y;
                if lines == 0 {
                    block.size[3] = 1;
                    self.assemble(position, nx, dtype, scratch)?;
                    sink.put(request, &Block { region: block, data: &scratch.pixels[..nx * size], dtype })?;
                    y += 1;
                    continue;
                }
                if self.is_decoded_directly(page) {
                    block.size[3] = lines;
                    self.decode_directly(page, position, &block, dtype, request, scratch, sink)?;
                    y += lines;
                    continue;
                }
                let entry = self.entry(page, dtype, scratch)?;
                let from = (position - inside.start) as usize;
                if let Entry::Pixels(pixels) = &*entry {
                    block.size[3] = lines;
                    let data = &pixels[from * size..(from + lines * nx) * size];
                    sink.put(request, &Block { region: block, data, dtype })?;
                    y += lines;
                } else {
                    let lines = lines.min((BAND_BYTES / (nx * size)).max(1));
                    block.size[3] = lines;
                    self.decode_part(&entry, page, from, lines * nx, dtype, 0, scratch)?;
                    let data = &scratch.pixels[..lines * nx * size];
                    sink.put(request, &Block { region: block, data, dtype })?;
                    y += lines;
                }
            }
        }
        Ok(())
    }

    /// Begins with an image, of which the values `wanted` are going to be asked for: all, or none that are known.
    pub fn begin(&mut self, wanted: std::ops::Range<u64>) {
        self.wanted = wanted;
    }

    /// Ends with the image: the buffers' content belongs to nobody.
    pub fn end(&mut self, scratch: &mut Scratch) {
        if self.loaded.take().is_some() {
            give_back(&mut scratch.raw, &mut scratch.decoded);
        }
    }

    /// Whether a page is decoded for the present image alone: nobody else has much of it, and it is none of those that
    /// are kept.
    fn is_decoded_directly(&self, page: usize) -> bool {
        let inside = self.values_of(page);
        let shared = inside.end.min(self.wanted.end).saturating_sub(inside.start.max(self.wanted.start));
        shared > 0
            && shared >= (inside.end - inside.start).div_ceil(4) * 3
            && !is_kept(self.group, page, self.kept_share)
    }

    /// Decodes `part`, which starts at value `first` and lies in page `index`, into the sink without keeping it.
    fn decode_directly(
        &mut self,
        index: usize,
        first: u64,
        part: &Region,
        dtype: PixelType,
        request: usize,
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<(), FastPathError> {
        let leaf = self.leaf.values.ok_or(FastPathError::General)?;
        if self.loaded.as_ref().is_none_or(|loaded| loaded.page != index) {
            self.loaded = None;
            let table = self.table_of(dtype, scratch)?;
            let Scratch { raw, decoded, context, .. } = scratch;
            let (encoding, body) = self.body(index, raw, decoded, context.get())?;
            let coding = coding(encoding, body.values, leaf, table)?;
            let values = body.values.as_ptr_range();
            let is_raw = raw.as_ptr_range().contains(&values.start) || values.is_empty();
            let start = if is_raw { raw.as_ptr() } else { decoded.as_ptr() };
            let position = |at: *const u8| (at as usize).saturating_sub(start as usize);
            let values = position(values.start)..position(values.end);
            self.loaded = Some(Loaded { page: index, coding, is_raw, values, walk: PageCursor::default() });
        }
        let inside = self.values_of(index);
        let Some(loaded) = &mut self.loaded else { return Err(FastPathError::General) };
        let Loaded { coding, is_raw, values, walk, .. } = loaded;
        let Scratch { raw, decoded, pixels, .. } = scratch;
        let stored = if *is_raw { raw } else { decoded }.get(values.clone()).unwrap_or_default();
        let all = (inside.end - inside.start) as usize;
        let size = dtype.size();
        let [_, _, nz, ny, nx] = part.size;
        let coding = decoding(coding)?;
        let whole = part.pixels() * size <= CACHED_BAND;
        let lines = if whole { ny } else { (CACHED_BAND / (nx * size)).clamp(1, ny) };
        let mut at = (first - inside.start) as usize;
        for z in (0..nz).step_by(if whole { nz } else { 1 }) {
            for y in (0..ny).step_by(lines) {
                let mut block = *part;
                if !whole {
                    (block.start[2], block.size[2]) = (part.start[2] + z, 1);
                    (block.start[3], block.size[3]) = (part.start[3] + y, lines.min(ny - y));
                }
                let count = block.pixels();
                try_alloc::grow(pixels, count * size).map_err(|cause| no_room(self.file, &cause))?;
                let data = &mut pixels[..count * size];
                values::decode_on(stored, coding, leaf, all, at..at + count, dtype, data, walk)
                    .map_err(|wrong| FastPathError::Error(bad(self.file, wrong)))?;
                sink.put(request, &Block { region: block, data, dtype })?;
                at += count;
            }
        }
        Ok(())
    }

    /// Puts `count` pixels from `position` on together in `scratch.pixels`.
    fn assemble(
        &mut self,
        position: u64,
        count: usize,
        dtype: PixelType,
        scratch: &mut Scratch,
    ) -> Result<(), FastPathError> {
        let size = dtype.size();
        let mut done = 0;
        while done < count {
            let at = position + done as u64;
            let page = self.find(at)?;
            let inside = self.values_of(page);
            let n = usize::try_from(inside.end - at).unwrap_or(usize::MAX).min(count - done);
            let from = (at - inside.start) as usize;
            let entry = self.entry(page, dtype, scratch)?;
            if let Entry::Pixels(pixels) = &*entry {
                try_alloc::grow(&mut scratch.pixels, (done + n) * size)
                    .map_err(|cause| no_room(self.file, &cause))?;
                scratch.pixels[done * size..(done + n) * size]
                    .copy_from_slice(&pixels[from * size..(from + n) * size]);
            } else {
                self.decode_part(&entry, page, from, n, dtype, done, scratch)?;
            }
            done += n;
        }
        Ok(())
    }

    /// Decodes `count` values from `from` on of a page kept as stored, to `scratch.pixels` from pixel `to` on.
    fn decode_part(
        &mut self,
        entry: &Entry,
        page: usize,
        from: usize,
        count: usize,
        dtype: PixelType,
        to: usize,
        scratch: &mut Scratch,
    ) -> Result<(), FastPathError> {
        let Entry::Stored { bytes, coding } = entry else { return Err(FastPathError::General) };
        let coding = decoding(coding)?;
        let leaf = self.leaf.values.ok_or(FastPathError::General)?;
        let inside = self.values_of(page);
        let all = (inside.end - inside.start) as usize;
        let size = dtype.size();
        try_alloc::grow(&mut scratch.pixels, (to + count) * size)
            .map_err(|cause| no_room(self.file, &cause))?;
        let out = &mut scratch.pixels[to * size..(to + count) * size];
        values::decode_on(bytes, coding, leaf, all, from..from + count, dtype, out, &mut self.walk)
            .map_err(|wrong| FastPathError::Error(bad(self.file, wrong)))
    }

    /// The page that holds value `position`.
    fn find(&self, position: u64) -> Result<usize, FastPathError> {
        if let Some((page, ..)) = self.current
            && self.values_of(page).contains(&position)
        {
            return Ok(page);
        }
        self.pages.holding(position).ok_or(FastPathError::General)
    }

    /// Values of a page, as indices into the pixel leaf of the row group.
    fn values_of(&self, page: usize) -> std::ops::Range<u64> {
        self.pages.values(page)
    }

    fn entry(
        &mut self,
        page: usize,
        dtype: PixelType,
        scratch: &mut Scratch,
    ) -> Result<Arc<Entry>, FastPathError> {
        match &self.current {
            Some((p, d, entry)) if (*p, *d) == (page, dtype) => Ok(Arc::clone(entry)),
            _ => {
                let key = self.key(page as u32, dtype);
                self.loaded = None;
                self.release();
                let entry = self.cache.get(key, |buffer| self.load(page, dtype, scratch, buffer))?;
                self.current = Some((page, dtype, Arc::clone(&entry)));
                self.walk = PageCursor::default();
                Ok(entry)
            }
        }
    }

    /// Gives the page back that was read last.
    fn release(&mut self) {
        if let Some((.., entry)) = self.current.take() {
            self.cache.release(entry);
        }
    }

    fn key(&self, page: u32, dtype: PixelType) -> Key {
        Key { group: self.group as u32, source: self.source as u8, page, dtype }
    }

    /// A page, read and decompressed, with levels that are as the shapes say, and the encoding of its values.
    fn body<'b>(
        &self,
        index: usize,
        raw: &'b mut Vec<u8>,
        decoded: &'b mut Vec<u8>,
        codecs: &mut Codecs,
    ) -> Result<(Encoding, load::Body<'b>), FastPathError> {
        let max = (self.leaf.max_rep, self.leaf.max_def);
        let levels = self.pages.levels(index);
        let entries = levels.end - levels.start;
        let (encoding, body) = load::load_at(
            self.file,
            self.pages.location(index),
            entries,
            self.pages.codec,
            max,
            raw,
            decoded,
            codecs,
        )?;
        self.table.starts(levels, &mut codecs.starts);
        if levels::agree(body.repetition, body.definition, entries as usize, max, &codecs.starts) {
            Ok((encoding, body))
        } else {
            Err(FastPathError::General)
        }
    }

    /// The dictionary, where the column has one. To be asked for before a page's body, since it needs the same buffers.
    fn table_of(&self, dtype: PixelType, scratch: &mut Scratch) -> Result<Option<Arc<Entry>>, FastPathError> {
        if self.pages.dictionary.is_none() {
            return Ok(None);
        }
        match self.dictionary(dtype, scratch) {
            // Pages that do not need it can be read all the same.
            Err(FastPathError::General) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Reads, checks and decodes a page into `pixels`.
    fn load(
        &self,
        index: usize,
        dtype: PixelType,
        scratch: &mut Scratch,
        mut pixels: Vec<u8>,
    ) -> Result<Entry, FastPathError> {
        let leaf = self.leaf.values.ok_or(FastPathError::General)?;
        let table = self.table_of(dtype, scratch)?;
        let Scratch { raw, decoded, context, .. } = scratch;
        let (encoding, body) = self.body(index, raw, decoded, context.get())?;
        let inside = self.values_of(index);
        let count = (inside.end - inside.start) as usize;
        let stored = coding(encoding, body.values, leaf, table)?;
        let size = count.checked_mul(dtype.size()).ok_or(FastPathError::General)?;
        if size <= MAX_WHOLE_PAGE_BYTES.max(body.values.len()) {
            fit(&mut pixels, size);
            try_alloc::resize(&mut pixels, size).map_err(|cause| no_room(self.file, &cause))?;
            // A value that does not fit is an error of the image that has it, not of its neighbours. Then
            // the page is kept as it is.
            if values::decode(body.values, decoding(&stored)?, leaf, count, 0..count, dtype, &mut pixels)
                .is_ok()
            {
                give_back(raw, decoded);
                return Ok(Entry::Pixels(pixels));
            }
        }
        fit(&mut pixels, body.values.len());
        pixels.clear();
        pixels.extend_from_slice(body.values);
        let entry = Entry::Stored { bytes: pixels, coding: stored };
        give_back(raw, decoded);
        Ok(entry)
    }

    /// The dictionary, narrowed to `dtype`.
    fn dictionary(&self, dtype: PixelType, scratch: &mut Scratch) -> Result<Arc<Entry>, FastPathError> {
        let page = self.pages.dictionary.as_ref().ok_or(FastPathError::General)?;
        let leaf = self.leaf.values.ok_or(FastPathError::General)?;
        self.cache.get(self.key(Key::DICTIONARY, dtype), |_| {
            if !matches!(page.header.encoding, Encoding::Plain | Encoding::Dictionary) {
                return Err(FastPathError::General);
            }
            let Scratch { raw, decoded, context, .. } = scratch;
            let body = load::load(self.file, page, self.pages.codec, (0, 0), raw, decoded, context.get())?;
            Table::new(body.values, leaf, page.header.values, dtype)
                .map(Entry::Table)
                .map_err(|wrong| FastPathError::Error(bad(self.file, wrong)))
        })
    }
}

/// Gives memory up that is far more than `bytes`, or not enough: nothing in it is wanted.
fn fit(buffer: &mut Vec<u8>, bytes: usize) {
    if buffer.capacity() < bytes || buffer.capacity() > 2 * bytes {
        *buffer = vec![];
    }
}

/// The fault of memory that is not to be had.
fn no_room(file: &PositionalFile, cause: &str) -> FastPathError {
    FastPathError::Error(Error::new(file.path(), cause))
}

/// The error for a value.
fn bad(file: &PositionalFile, wrong: BadValue) -> Error {
    match wrong {
        BadValue::Range(text) => Error::new(file.path(), text)
            .hint("pixels_meta.type names a type that is too narrow for the pixels; write the file again"),
        BadValue::Corrupt(text) => {
            Error::new(file.path(), text).hint("the file is corrupt; copy or write it again")
        }
    }
}

/// How the `values` of a page, which are of type `leaf`, are encoded; `table` is its column's dictionary.
fn coding(
    encoding: Encoding,
    values: &[u8],
    leaf: LeafType,
    table: Option<Arc<Entry>>,
) -> Result<StoredCoding, FastPathError> {
    match (encoding, table) {
        (Encoding::Dictionary, Some(table)) => Ok(StoredCoding::Dictionary(table)),
        (Encoding::Plain, _) => Ok(StoredCoding::Plain),
        (Encoding::ByteStreamSplit, _) => Ok(StoredCoding::ByteStreamSplit),
        (Encoding::Delta, _) if leaf.is_integer() && delta::is_usual(values) => Ok(StoredCoding::Delta),
        _ => Err(FastPathError::General),
    }
}

/// The decoder for values that are stored so.
fn decoding(stored: &StoredCoding) -> Result<Coding<'_>, FastPathError> {
    Ok(match stored {
        StoredCoding::Plain => Coding::Plain,
        StoredCoding::ByteStreamSplit => Coding::ByteStreamSplit,
        StoredCoding::Delta => Coding::Delta,
        StoredCoding::Dictionary(table) => match &**table {
            Entry::Table(table) => Coding::Dictionary(table),
            _ => return Err(FastPathError::General),
        },
    })
}

/// Whether a page is one of those that stay decoded: `share` of 65,536.
///
/// Multiples of the golden ratio and, for row groups, of the root of two, without their whole parts. Among some hundred
/// pages or groups, the number below a share differs from the share by two at most. Left to chance it may be some more,
/// and those that are kept would drive each other out.
fn is_kept(group: usize, page: usize, share: u32) -> bool {
    const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
    const ROOT_OF_TWO: u64 = 0x6A09_E667_F3BC_C908;
    let place =
        (page as u64).wrapping_mul(GOLDEN_RATIO).wrapping_add((group as u64).wrapping_mul(ROOT_OF_TWO));
    // From the middle on, or the first page would always be kept.
    place.wrapping_add(1 << 63) >> 48 < u64::from(share)
}

fn give_back(raw: &mut Vec<u8>, decoded: &mut Vec<u8>) {
    for buffer in [raw, decoded] {
        if buffer.capacity() > MAX_KEPT_BUFFER_BYTES {
            *buffer = Vec::new();
        }
    }
}

/// The smallest part of `whole` that has all pixels of `wanted` in it and is contiguous in memory, with its
/// offset in pixels. `None` where they share nothing.
pub(super) fn contiguous_part(whole: &Region, wanted: &Region) -> Option<(Region, usize)> {
    let shared = whole.intersection(wanted)?;
    let mut part = *whole;
    let mut offset = 0;
    let mut stride = whole.pixels();
    for a in 0..5 {
        stride /= whole.size[a];
        (part.start[a], part.size[a]) = (shared.start[a], shared.size[a]);
        offset += (shared.start[a] - whole.start[a]) * stride;
        // Beyond an axis of several indices everything must be taken whole.
        if shared.size[a] > 1 {
            break;
        }
    }
    Some((part, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_pages_are_kept_as_there_is_room_for() {
        for (groups, pages) in [(1, 8), (1, 64), (1, 1000), (64, 1), (1000, 1), (10, 10), (10, 100), (33, 33)]
        {
            for share in (0..=100).map(|percent| percent * 65_536 / 100) {
                let all = (0..groups).flat_map(|group| (0..pages).map(move |page| (group, page)));
                let kept = all.filter(|&(group, page)| is_kept(group, page, share)).count() as f64;
                let room = f64::from(share) / 65_536.0 * (groups * pages) as f64;
                assert!((kept - room).abs() < 3.5, "{kept} of {room} of {groups} times {pages}");
            }
        }
    }

    #[test]
    fn parts_are_contiguous() {
        let whole = Region { start: [1, 0, 2, 0, 0], size: [1, 1, 3, 10, 20] };
        let wanted = |z, nz, y, ny| Region { start: [0, 0, z, y, 5], size: [9, 9, nz, ny, 6] };
        let (part, offset) = contiguous_part(&whole, &wanted(3, 1, 2, 4)).unwrap();
        assert_eq!(part, Region { start: [1, 0, 3, 2, 0], size: [1, 1, 1, 4, 20] });
        assert_eq!(offset, 200 + 40);
        let (part, offset) = contiguous_part(&whole, &wanted(3, 9, 2, 4)).unwrap();
        assert_eq!(part, Region { start: [1, 0, 3, 0, 0], size: [1, 1, 2, 10, 20] });
        assert_eq!(offset, 200);
        let (part, offset) = contiguous_part(&whole, &wanted(2, 1, 7, 1)).unwrap();
        assert_eq!(part, Region { start: [1, 0, 2, 7, 5], size: [1, 1, 1, 1, 6] });
        assert_eq!(offset, 145);
        assert_eq!(contiguous_part(&whole, &wanted(0, 2, 0, 1)), None);
    }
}
