//! From a region of one image to blocks of pixels.
//!
//! ```text
//!  region ─▶ planes ─▶ pieces: rows of uncompressed strips, whole strips, tiles ─▶ groups that lie together
//!                                                                                     │ one pread each
//!  sink ◀── Block ◀── unpack, de-interleave ◀── predictor ◀── byte order ◀── codec ◀──┘
//! ```
//!
//! A group is at most [`GROUP`] bytes, unless one piece is larger: what was read is still in the second-level
//! cache when it is decoded, and what was decoded when the sink takes it. Pixels that are stored as they are
//! go from the read buffer straight to the sink; those of narrow crops of a file that stays open, once it was read over in them,
//! from the mapped file (`docs/decisions/0033-mapped-files.md`).
//! Of a long LZW strip only what its wanted rows need is read and decoded; what lies before is followed by its lengths alone, once
//! ([`super::restarts`]).
//!
//! Long because which pieces are read together and how each is decoded depend on the same fields of a piece.

use super::codec::{Codec, Decompressors};
use super::ifd::TRUNCATED;
use super::image::{Page, PageFormat, SampleKind, Segment};
use super::index::FileIndex;
use super::lzw;
use super::predictor;
use super::restarts::{MIN_STRIP, Restart, Restarts};
use super::samples::{grow, separate, unpack};
use super::series::{CONVERT, PlaneRef, Series};
use super::sums;
use crate::mapping::{self, Mapping};
use crate::open_files::{OpenFile, OpenFiles};
use crate::place::{self, File, count_read};
use crate::{Block, Error, PixelSink, Result, RowInfo, Scratch};
use std::path::Path;
use std::sync::Arc;
use wellread_image::Region;
use wellread_trace::{Kind, span};

/// Bytes read and delivered at a time.
const GROUP: u64 = 256 << 10;
/// Unneeded bytes between two pieces that are read along rather than skipped.
const GAP: u64 = 4 << 10;
/// Rows this many times as wide as what is wanted of them, and of so many bytes together, are worth a map.
const MAPPED_WIDTH: usize = 4;
const MAPPED_ROWS: u64 = 32 << 10;

/// Decoded bytes between a place of an LZW strip and the wanted ones from which on a nearer one is looked for.
const WORTH_SKIMMING: usize = 32 << 10;
/// Stored bytes that are read beside those that some decoded ones take at most: clear codes, and those of the end.
const BESIDE_BYTES: usize = 1 << 10;

/// What a thread keeps between reads.
#[derive(Default)]
pub(super) struct Context {
    tools: Decompressors,
    handle: Handle,
    pub(super) pieces: Vec<Piece>,
    /// Checksums of the pieces.
    pub(super) sums: Vec<u32>,
    spare: Vec<u8>,
}

/// Identifies an open file: the number of an image's file among all of this process, and which of those it refers to.
pub(super) type FileKey = (u64, u32);

/// The file read last, kept open: the next read is often from the same one.
#[derive(Default)]
struct Handle {
    open: Option<(FileKey, Arc<OpenFile>)>,
}

impl Handle {
    fn get(&mut self, files: &OpenFiles<FileKey>, key: FileKey, path: &Path) -> Result<&OpenFile> {
        if self.open.as_ref().is_none_or(|(k, _)| *k != key) {
            // Close first: many threads with two files each may be too many.
            self.open = None;
            let file =
                files.get(key, || place::open(path)).map_err(|e| Error::io(path, "cannot open", &e))?;
            self.open = Some((key, file));
        }
        Ok(&self.open.as_ref().expect("just opened").1)
    }
}

impl Context {
    /// Opens a file and keeps it for the read that follows; also its length.
    pub(super) fn file(&mut self, files: &OpenFiles<FileKey>, id: u64, path: &Path) -> Result<(&File, u64)> {
        self.handle.get(files, (id, 0), path).map(|opened| (&opened.file, opened.length))
    }
}

/// A run of rows, a strip or a tile that is read and decoded at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) segment: Segment,
    /// Place in the image, in pixels: of a tile, whole, even where it juts out of the image.
    y: usize,
    x: usize,
    rows: usize,
    width: usize,
    /// Planes along Z that follow each other.
    depth: usize,
    /// Rows that the stored strip or tile has, and those that a last strip may be filled up to.
    stored_rows: usize,
    padded_rows: usize,
    /// Of an LZW strip of which only a part is wanted: how many rows at its top are not. It may be entered below its start.
    enter: Option<usize>,
    /// Which of the checksums are of its stored bytes: none, one, or one for each plane.
    sums: (usize, usize),
}

impl Piece {
    /// The piece without rows at its top that are not wanted.
    fn without_top(&self) -> Self {
        let skip = self.enter.unwrap_or(0);
        Self { y: self.y + skip, rows: self.rows - skip, ..*self }
    }
}

/// One request.
pub(super) struct Job<'a> {
    pub(super) request: usize,
    pub(super) info: RowInfo,
    pub(super) region: &'a Region,
    pub(super) index: &'a FileIndex,
    pub(super) series: &'a Series,
    pub(super) path: &'a Path,
    /// Identifies the file among all files of all stores of this process.
    pub(super) id: u64,
    /// Files of the store that stay open.
    pub(super) files: &'a OpenFiles<FileKey>,
    /// Where strips of the store can be entered.
    pub(super) restarts: &'a Restarts,
}

impl Job<'_> {
    /// Reads the region and hands it to `sink`.
    pub(super) fn run(&self, scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let Scratch { raw, decoded, pixels, context, .. } = scratch;
        let context = context.get::<Context>();
        let [t0, c0, z0, y0, x0] = self.region.start;
        let [nt, nc, nz, ny, nx] = self.region.size;
        let shape = self.info.shape;
        for t in t0..t0 + nt {
            for c in c0..c0 + nc {
                let mut z = z0;
                while z < z0 + nz {
                    let at = (t * shape.c() + c) * shape.z() + z;
                    let plane = self.series.planes[at];
                    let source = self.source(plane, [t, c, z], context, raw)?;
                    let page = self.page(&source, plane)?;
                    let format = &*page.format;
                    let samples = format.interleaved();
                    if samples > 1 && plane.sample > 0 && c > c0 {
                        // Delivered with the first sample of its page.
                        z += 1;
                        continue;
                    }
                    if let Some(refusal) = format.refusal.clone().or_else(|| format.codec.refusal()) {
                        return Err(refusal.error(source.path, "", CONVERT));
                    }
                    let run = if ny == shape.y() && nx == shape.x() {
                        self.run_of_planes(&self.series.planes[at..at + (z0 + nz - z)], source.pages)
                    } else {
                        1
                    };
                    let Context { pieces, sums, .. } = &mut *context;
                    pieces.clear();
                    sums.clear();
                    plan(page, plane.sample as usize, [y0, x0], [ny, nx], run, pieces, sums);
                    for plane in &self.series.planes[at + 1..at + run] {
                        let of_plane = source.pages[plane.page as usize].sums.as_deref().unwrap_or_default();
                        sums.extend(of_plane.get(plane.sample as usize));
                    }
                    let opened = context.handle.get(self.files, (self.id, plane.source), source.path)?;
                    let mut work = Work {
                        format,
                        path: source.path,
                        len: source.len,
                        file: &opened.file,
                        map: self.map(opened, page),
                        key: (self.id, plane.source),
                        restarts: self.restarts,
                        tools: &mut context.tools,
                        raw,
                        decoded,
                        pixels,
                        spare: &mut context.spare,
                    };
                    let c = c - if samples > 1 { plane.sample as usize } else { 0 };
                    work.pieces(&context.pieces, &context.sums, &mut |piece, data| {
                        let region = Region {
                            start: [t, c, z, piece.y, piece.x],
                            size: [1, samples, piece.depth, piece.rows, piece.width],
                        };
                        sink.put(self.request, &Block { region, data, dtype: self.info.dtype })
                    })?;
                    z += run;
                }
            }
        }
        Ok(())
    }

    /// The file that holds a plane, with its pages.
    pub(super) fn source(
        &self,
        plane: PlaneRef,
        [t, c, z]: [usize; 3],
        context: &mut Context,
        raw: &mut Vec<u8>,
    ) -> Result<SourceFile<'_>> {
        if plane.source == 0 {
            return Ok(SourceFile { path: self.path, len: self.index.len, pages: &self.index.pages });
        }
        let Some(other) = (plane.source as usize).checked_sub(1).and_then(|i| self.series.others.get(i))
        else {
            return Err(Error::new(
                self.path,
                format_args!("plane t={t}, c={c}, z={z} is declared, but lies in no page of the file"),
            )
            .hint("the acquisition was probably stopped early; read a region without it"));
        };
        let file = &context.handle.get(self.files, (self.id, plane.source), &other.path)?.file;
        let (len, pages) = other.pages(file, raw)?;
        Ok(SourceFile { path: &other.path, len: *len, pages })
    }

    /// The mapped file, where a part of an image is read that is stored as it is.
    fn map<'o>(&self, opened: &'o OpenFile, page: &Page) -> Option<&'o Mapping> {
        let [.., ny, nx] = self.region.size;
        let format = &*page.format;
        if !format.is_plain() || page.sums.is_some() || (ny, nx) == (format.height, format.width) {
            return None;
        }
        let bytes = (ny * format.row_bytes()) as u64;
        let is_narrow = nx * MAPPED_WIDTH <= format.width && bytes >= MAPPED_ROWS;
        if is_narrow { opened.map_for_part(bytes) } else { opened.map() }
    }

    pub(super) fn page<'p>(&self, source: &SourceFile<'p>, plane: PlaneRef) -> Result<&'p Page> {
        let Some(page) = source.pages.get(plane.page as usize) else {
            return Err(Error::new(
                source.path,
                format_args!("page {} is asked for, but there are {}", plane.page, source.pages.len()),
            ));
        };
        let format = &*page.format;
        let shape = self.info.shape;
        let fits = (format.width, format.height) == (shape.x(), shape.y())
            && format.dtype() == Ok(self.info.dtype)
            && format.samples == self.series.samples
            && (plane.sample as usize) < format.samples;
        if !fits {
            return Err(Error::new(
                source.path,
                format_args!(
                    "page {} is of {} x {} pixels with {} samples, unlike the image's first page",
                    plane.page, format.width, format.height, format.samples
                ),
            ));
        }
        Ok(page)
    }

    /// How many of the planes follow each other in the file, stored as they are, up to [`GROUP`] bytes.
    fn run_of_planes(&self, planes: &[PlaneRef], pages: &[Page]) -> usize {
        let start = |plane: &PlaneRef| {
            let page = pages.get(plane.page as usize)?;
            let one = page.format.is_plain() && page.format.grid()[1] == 1;
            let same = (page.format.width, page.format.height) == (self.info.shape.x(), self.info.shape.y())
                && page.format.dtype() == Ok(self.info.dtype);
            let segment = page.segments.get(plane.sample as usize).filter(|s| !s.is_empty())?;
            (one && same).then_some((segment.offset, page.sums.is_some()))
        };
        let Some((first, has_sums)) = start(&planes[0]) else { return 1 };
        let bytes = (self.info.shape.y() * self.info.shape.x() * self.info.dtype.size()) as u64;
        let most = (GROUP / bytes).clamp(1, planes.len() as u64) as usize;
        let follows = |i: &usize| {
            planes[*i].source == planes[0].source
                && start(&planes[*i]) == Some((first + *i as u64 * bytes, has_sums))
        };
        1 + (1..most).take_while(follows).count()
    }
}

/// One of the files that hold an image.
pub(super) struct SourceFile<'a> {
    pub(super) path: &'a Path,
    len: u64,
    pages: &'a [Page],
}

/// Lists the pieces of a page that intersect rows and columns `start..start + size`, and the checksums of the first of the
/// planes that they hold.
pub(super) fn plan(
    page: &Page,
    sample: usize,
    start: [usize; 2],
    size: [usize; 2],
    depth: usize,
    pieces: &mut Vec<Piece>,
    sums: &mut Vec<u32>,
) {
    let format = &*page.format;
    let [w, h] = format.segment;
    let [across, down] = format.grid();
    let first = if format.planar { sample * across * down } else { 0 };
    let (y0, y1) = (start[0], start[0] + size[0]);
    let row_bytes = format.row_bytes() as u64;
    for sy in y0 / h..y1.div_ceil(h) {
        let top = sy * h;
        let mut sum_of = |segment: usize| {
            let sum = page.sums.as_ref().map(|of| of[segment]);
            sums.extend(sum);
            (sums.len() - usize::from(sum.is_some()), if sum.is_some() { depth } else { 0 })
        };
        if page.has_rows_alone() {
            let segment = page.segments[first + sy];
            let (from, to) = (y0.max(top), y1.min(top + format.rows(sy)));
            // Of very wide rows read only the columns, row by row.
            let narrow = format.is_plain() && row_bytes >= 16 << 10 && size[1] * 4 <= format.width;
            let step = if narrow { 1 } else { (GROUP / row_bytes.max(1)).max(1) as usize };
            let pixel = u64::from(format.bits) / 8;
            let mut y = from;
            while y < to {
                let rows = step.min(to - y);
                let at = (y - top) as u64 * row_bytes;
                let (x, width, skip, len) = if narrow {
                    (start[1], size[1], start[1] as u64 * pixel, size[1] as u64 * pixel)
                } else {
                    (0, format.width, 0, (rows * depth) as u64 * row_bytes)
                };
                let segment = if segment.is_empty() {
                    segment
                } else {
                    Segment { offset: segment.offset.saturating_add(at + skip), len }
                };
                let (stored_rows, padded_rows) = (rows, rows);
                let (enter, sums) = (None, (0, 0));
                pieces.push(Piece {
                    segment,
                    y,
                    x,
                    rows,
                    width,
                    depth,
                    stored_rows,
                    padded_rows,
                    enter,
                    sums,
                });
                y += rows;
            }
            continue;
        }
        for sx in start[1] / w..(start[1] + size[1]).div_ceil(w) {
            let mut segment = page.segments[first + sy * across + sx];
            segment.len = segment.len.saturating_mul(depth as u64);
            let sums = sum_of(first + sy * across + sx);
            let stored_rows = format.rows(sy);
            let rows = if segment.is_empty() { stored_rows.min(format.height - top) } else { stored_rows };
            // Of what is stored as it is all is checked, and so all can be had.
            let rows = if format.is_plain() { rows } else { rows.min(y1 - top) };
            let width = if segment.is_empty() { w.min(format.width - sx * w) } else { w };
            let is_last_strip = !format.tiled && sy + 1 == down;
            let padded_rows = if is_last_strip { stored_rows.max(format.padded_rows) } else { stored_rows };
            let (x, y) = (sx * w, top);
            let skip = y0.saturating_sub(top);
            let is_long = format.codec == Codec::Lzw && segment.len >= MIN_STRIP;
            let may_enter = is_long && !format.tiled && !format.reversed && (skip > 0 || rows < stored_rows);
            let enter = may_enter.then_some(skip);
            pieces.push(Piece { segment, y, x, rows, width, depth, stored_rows, padded_rows, enter, sums });
        }
    }
}

/// Everything needed to turn pieces of one page into pixels.
struct Work<'a> {
    format: &'a PageFormat,
    path: &'a Path,
    len: u64,
    file: &'a File,
    /// The same file, mapped, where its bytes are taken from there.
    map: Option<&'a Mapping>,
    /// Identifies the file.
    key: FileKey,
    restarts: &'a Restarts,
    tools: &'a mut Decompressors,
    raw: &'a mut Vec<u8>,
    decoded: &'a mut Vec<u8>,
    pixels: &'a mut Vec<u8>,
    spare: &'a mut Vec<u8>,
}

impl Work<'_> {
    fn pieces(
        &mut self,
        pieces: &[Piece],
        sums: &[u32],
        each: &mut dyn FnMut(&Piece, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if let Some(map) = self.map
            && self.mapped(map, pieces, each)?
        {
            return Ok(());
        }
        let path = self.path;
        let mut next = 0;
        while next < pieces.len() {
            let first = pieces[next];
            if first.segment.is_empty() {
                self.zeros(&first, each)?;
                next += 1;
                continue;
            }
            if let Some(skip) = first.enter.filter(|_| first.sums.1 == 0)
                && let Some(data) = self.entered(&first, skip)
            {
                each(&first.without_top(), data)?;
                next += 1;
                continue;
            }
            let start = first.segment.offset;
            let mut end = self.end(&first)?;
            let mut last = next + 1;
            while let Some(piece) = pieces.get(last).filter(|p| !p.segment.is_empty()) {
                let offset = piece.segment.offset;
                if offset < end || offset - end > GAP || offset - start + piece.segment.len > GROUP {
                    break;
                }
                end = self.end(piece)?;
                last += 1;
            }
            let n = (end - start) as usize;
            grow(self.raw, n).map_err(|e| Error::new(self.path, e))?;
            self.file
                .read_exact_at(&mut self.raw[..n], start)
                .map_err(|e| Error::io(self.path, "cannot read", &e))?;
            for piece in &pieces[next..last] {
                let at = (piece.segment.offset - start) as usize;
                let decompress = (self.format.codec != Codec::None)
                    .then(|| span(Kind::Decompress).with(piece.segment.len, self.bytes_of(piece)));
                let sums = &sums[piece.sums.0..piece.sums.0 + piece.sums.1];
                let data = self.decode(piece, at, sums).map_err(|e| {
                    Error::new(
                        path,
                        format_args!("the strip or tile at row {}, column {}: {e}", piece.y, piece.x),
                    )
                    .hint("the file is probably corrupt; copy or write it again")
                })?;
                drop(decompress);
                each(&piece.without_top(), data)?;
            }
            next = last;
        }
        Ok(())
    }

    /// Delivers pieces that are stored as they are out of the mapped file; `false` where they reach beyond the map.
    fn mapped(
        &mut self,
        map: &Mapping,
        pieces: &[Piece],
        each: &mut dyn FnMut(&Piece, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        let mut end = 0;
        for piece in pieces.iter().filter(|piece| !piece.segment.is_empty()) {
            end = self.end(piece)?.max(end);
        }
        let bytes: &[u8] = map.as_ref();
        let Some(file) = self.file.local().filter(|_| end <= bytes.len() as u64) else { return Ok(false) };
        mapping::before_reading();
        for piece in pieces {
            let Segment { offset, len } = piece.segment;
            if piece.segment.is_empty() {
                self.zeros(piece, each)?;
            } else {
                count_read(len as usize);
                each(piece, &bytes[offset as usize..(offset + len) as usize])?;
            }
        }
        map.check(file, self.path, end).map_err(|error| {
            error.hint("do not write to a file that is being read: write beside it and rename; open it again")
        })?;
        Ok(true)
    }

    /// Bytes of a piece, decompressed.
    fn bytes_of(&self, piece: &Piece) -> u64 {
        (piece.rows * piece.depth * self.format.row_bytes()) as u64
    }

    /// The end of a piece in the file, once that is known to lie inside it.
    fn end(&self, piece: &Piece) -> Result<u64> {
        let Segment { offset, len } = piece.segment;
        offset.checked_add(len).filter(|&end| end <= self.len).ok_or_else(|| {
            Error::new(
                self.path,
                format_args!(
                    "the {len} bytes at offset {offset}, from pixel row {} on, lie beyond the end of the \
                     file ({} bytes)",
                    piece.y, self.len
                ),
            )
            .hint(TRUNCATED)
        })
    }

    /// Delivers a piece that was never written, in parts of moderate size.
    fn zeros(&mut self, piece: &Piece, each: &mut dyn FnMut(&Piece, &[u8]) -> Result<()>) -> Result<()> {
        let size = usize::from(self.format.bits).div_ceil(8).next_power_of_two();
        // Channels of one page go together, so one row at a time.
        let samples = self.format.interleaved();
        let row = piece.width * size * samples;
        let step = if samples > 1 { 1 } else { (GROUP as usize / row.max(1)).max(1) };
        let mut done = 0;
        while done < piece.rows {
            let rows = step.min(piece.rows - done);
            let n = rows * row;
            grow(self.pixels, n).map_err(|e| Error::new(self.path, e))?;
            self.pixels[..n].fill(0);
            let part = Piece { y: piece.y + done, rows, ..*piece };
            each(&part, &self.pixels[..n])?;
            done += rows;
        }
        Ok(())
    }

    /// The pixels of the wanted rows of an LZW strip, `skip` rows below its top: decoded from the last place above them that
    /// is known, or that is found from there. `None` if anything is not as it should be: that the whole strip shows, or says.
    fn entered(&mut self, piece: &Piece, skip: usize) -> Option<&[u8]> {
        let (format, segment) = (self.format, piece.segment);
        self.end(piece).ok()?;
        let row_bytes = format.row_bytes();
        let (from, to) = (skip * row_bytes, piece.rows * row_bytes);
        if to as u64 > format.codec.at_most(segment.len) {
            return None;
        }
        let strip = (self.key, segment.offset);
        let mut places = self.restarts.of(strip);
        let end = places.behind(to);
        let start = places.before(from).unwrap_or(Restart::START);
        // With the clear code, to see that it is one still.
        let first = (start.bit as usize).saturating_sub(9) / 8;
        // Where no place behind is known: a code has 12 bits at most, and stands for a byte at least. Of the last rows all is read, to
        // see whether there is more.
        let is_last = piece.rows == piece.stored_rows;
        let guess = (first + BESIDE_BYTES + (to - start.pos as usize) / 2 * 3) as u64;
        let last = match end {
            Some(place) => u64::from(place.bit).div_ceil(8),
            None if is_last => segment.len,
            None => guess,
        };
        let n = usize::try_from(last.min(segment.len).checked_sub(first as u64)?).ok()?;
        let (bit, pos) = (start.bit as usize - first * 8, start.pos as usize);
        grow(self.raw, n).ok()?;
        let raw = &mut self.raw[..n];
        self.file.read_exact_at(raw, segment.offset + first as u64).ok()?;
        if start != Restart::START && !lzw::is_cleared(raw, bit) {
            self.restarts.forget(strip);
            return None;
        }
        let _span = span(Kind::Decompress).with(n as u64, (to - pos) as u64);
        let (bit, pos) = if from - pos > WORTH_SKIMMING {
            let mut note = |bit: usize, at: usize| places.note(first * 8 + bit, pos + at);
            let (bit, skipped) = self.tools.skim_lzw(raw, bit, from - pos, &mut note);
            (bit, pos + skipped)
        } else {
            (bit, pos)
        };
        grow(self.decoded, to - pos).ok()?;
        let mut note = |bit: usize, at: usize| places.note(first * 8 + bit, pos + at);
        let made = self.tools.decode_lzw(raw, bit, &mut self.decoded[..to - pos], &mut note);
        let Ok(made) = made else {
            self.restarts.forget(strip);
            return None;
        };
        if made.more && is_last {
            return None;
        }
        self.restarts.keep(strip, &places);
        let data = &mut self.decoded[from - pos..to - pos];
        to_pixels(format, data, piece.rows - skip, self.pixels, self.spare).ok()
    }

    /// The pixels of a piece whose stored bytes are in `raw` from `at` on and match `sums`.
    fn decode(&mut self, piece: &Piece, at: usize, sums: &[u32]) -> Result<&[u8], String> {
        let format = self.format;
        let raw = &mut self.raw[at..at + piece.segment.len as usize];
        sums::check(raw, sums)?;
        if format.is_plain() {
            // Pieces without checksums may be a part of their rows.
            let wanted =
                if sums.is_empty() { raw.len() } else { piece.rows * piece.depth * format.row_bytes() };
            let have = raw.len();
            return raw.get(..wanted).ok_or_else(|| format!("it has {have} of {wanted} bytes"));
        }
        if format.reversed {
            for byte in raw.iter_mut() {
                *byte = byte.reverse_bits();
            }
        }
        let row_bytes = format.row_bytes();
        let rows = piece.rows * piece.depth;
        let wanted = rows * row_bytes;
        let skip = piece.enter.unwrap_or(0);
        let data: &mut [u8] = if format.codec == Codec::None {
            let have = raw.len();
            raw.get_mut(..wanted).ok_or_else(|| format!("it has {have} of {wanted} bytes"))?
        } else {
            let at_most = format.codec.at_most(raw.len() as u64);
            if wanted as u64 > at_most {
                return Err(format!("its {} stored bytes cannot hold {wanted} bytes", raw.len()));
            }
            let whole = piece.stored_rows * row_bytes;
            // Decoders that can stop early are spared the rows that nobody asked for; not those of a tile that juts out of
            // the image, of which all that can be seen was asked for: damage there is damage of the tile.
            let visible = piece.stored_rows.min(format.height - piece.y) * row_bytes;
            let size = if format.codec.stops_early() && wanted < visible { wanted } else { whole };
            // What cannot be there needs no room.
            let size = size.min(usize::try_from(at_most).unwrap_or(size)).max(wanted);
            grow(self.decoded, size)?;
            let first = if piece.enter.is_some() && sums.is_empty() {
                let strip = (self.key, piece.segment.offset);
                let mut places = self.restarts.of(strip);
                let mut note = |bit: usize, at: usize| places.note(bit, at);
                let made = self.tools.decode_lzw(raw, 0, &mut self.decoded[..size], &mut note);
                if made.is_ok() {
                    self.restarts.keep(strip, &places);
                }
                made
            } else {
                self.tools.decode(format.codec, raw, &mut self.decoded[..size])
            };
            let fits = first.as_ref().is_ok_and(|made| !made.more || size < whole);
            let padded =
                piece.padded_rows.checked_mul(row_bytes).filter(|&n| n > whole && n as u64 <= at_most);
            let made = match padded {
                // Some writers fill the last strip up to the height of the others.
                Some(padded) if !fits && size == whole => {
                    grow(self.decoded, padded)?;
                    let again = self.tools.decode(format.codec, raw, &mut self.decoded[..padded]);
                    again.ok().filter(|made| made.bytes == padded && !made.more).map_or(first, Ok)?
                }
                // A tile may have been stored without what juts out.
                _ if first.is_err() && visible < whole && format.codec.stops_early() => {
                    let again = self.tools.decode(format.codec, raw, &mut self.decoded[..visible]);
                    again.ok().filter(|made| made.bytes == visible && !made.more).map_or(first, Ok)?
                }
                _ => first?,
            };
            if format.tiled && size == whole && made.bytes < whole && made.bytes != visible {
                return Err(format!("it decodes to {} of {whole} bytes", made.bytes));
            }
            if made.bytes < wanted {
                return Err(format!("it decodes to {} of {wanted} bytes", made.bytes));
            }
            if made.more && size == whole && format.exact_lengths {
                return Err(format!("it decodes to more than the {whole} bytes of its rows"));
            }
            &mut self.decoded[skip * row_bytes..wanted]
        };
        to_pixels(format, data, rows - skip, self.pixels, self.spare)
    }
}

/// Turns decompressed rows of a page into pixels.
fn to_pixels<'b>(
    format: &PageFormat,
    data: &'b mut [u8],
    rows: usize,
    pixels: &'b mut Vec<u8>,
    spare: &'b mut Vec<u8>,
) -> Result<&'b [u8], String> {
    let row_bytes = format.row_bytes();
    let samples = format.interleaved();
    let size = usize::from(format.bits) / 8;
    if !matches!(format.bits, 8 | 16 | 32 | 64) {
        let size = if format.bits < 8 { 1 } else { 2 };
        let per_row = format.segment[0] * samples;
        unpack(data, row_bytes, per_row, format.bits, pixels)?;
        if samples == 1 {
            return Ok(&pixels[..rows * per_row * size]);
        }
        separate(&pixels[..rows * per_row * size], samples, size, spare)?;
        return Ok(&spare[..rows * per_row * size]);
    }
    if format.predictor == predictor::FLOAT {
        debug_assert_eq!(format.kind, SampleKind::Float);
        predictor::undo_float(data, row_bytes, samples, size, spare);
    } else {
        predictor::to_little_endian(data, size, format.endian);
        if format.predictor == predictor::HORIZONTAL {
            predictor::undo_horizontal(data, row_bytes, samples, size);
        }
    }
    if samples == 1 {
        return Ok(data);
    }
    separate(data, samples, size, pixels)?;
    Ok(&pixels[..data.len()])
}
