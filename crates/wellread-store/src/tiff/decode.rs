//! Pieces of a page as pixels: read in groups that lie together, decompressed, unpacked.
//!
//! ```text
//!  pieces ─▶ groups ── one pread each ─▶ codec ─▶ byte order ─▶ predictor ─▶ unpack, de-interleave ─▶ pixels of each piece
//! ```
//!
//! Uncompressed pixels go from the read buffer straight to the sink. Those of narrow crops of a file that stays open go
//! from the mapped file, once it was read over in them (`docs/decisions/0033-mapped-files.md`). In a long LZW strip,
//! only the part that its wanted rows need is read and decoded. The part before is followed by its lengths alone, once
//! ([`super::restarts`]).

use super::codec::{Codec, Decompressors};
use super::ifd::TRUNCATED;
use super::image::{PageFormat, SampleKind, Segment};
use super::lzw;
use super::pieces::{GROUP, Piece};
use super::predictor;
use super::restarts::{FileKey, Restart, Restarts};
use super::samples::{grow, separate, unpack};
use super::sums;
use crate::mapping::{self, Mapping};
use crate::place::{File, count_read};
use crate::{Error, Result};
use std::path::Path;
use wellread_trace::{Kind, span};

/// Unneeded bytes between two pieces that are read along rather than skipped.
const MAX_GAP_BYTES: u64 = 4 << 10;

/// Decoded bytes between a place of an LZW strip and the wanted ones from which on a nearer one is looked for.
const WORTH_SKIMMING: usize = 32 << 10;
/// Stored bytes that are read beside those that some decoded ones take at most: clear codes, and those of the end.
const BESIDE_BYTES: usize = 1 << 10;

/// Everything needed to turn pieces of one page into pixels.
pub(super) struct PageDecoder<'a> {
    pub(super) format: &'a PageFormat,
    pub(super) path: &'a Path,
    pub(super) len: u64,
    pub(super) file: &'a File,
    /// The same file, mapped, where its bytes are taken from there.
    pub(super) map: Option<&'a Mapping>,
    /// Identifies the file.
    pub(super) key: FileKey,
    pub(super) restarts: &'a Restarts,
    pub(super) tools: &'a mut Decompressors,
    pub(super) raw: &'a mut Vec<u8>,
    pub(super) decoded: &'a mut Vec<u8>,
    pub(super) pixels: &'a mut Vec<u8>,
    pub(super) spare: &'a mut Vec<u8>,
}

impl PageDecoder<'_> {
    pub(super) fn pieces(
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
                self.unwritten(&first, each)?;
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
                if offset < end || offset - end > MAX_GAP_BYTES || offset - start + piece.segment.len > GROUP
                {
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
                self.unwritten(piece, each)?;
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
    fn unwritten(&mut self, piece: &Piece, each: &mut dyn FnMut(&Piece, &[u8]) -> Result<()>) -> Result<()> {
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
            let unwritten = &self.format.unwritten[..size];
            let pixels = &mut self.pixels[..n];
            if unwritten.iter().all(|byte| *byte == 0) {
                pixels.fill(0);
            } else {
                pixels.chunks_exact_mut(size).for_each(|pixel| pixel.copy_from_slice(unwritten));
            }
            let part = Piece { y: piece.y + done, rows, ..*piece };
            each(&part, &self.pixels[..n])?;
            done += rows;
        }
        Ok(())
    }

    /// The pixels of the wanted rows of an LZW strip, `skip` rows below its top. They are decoded from the last place above them that
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
        // Where no place behind is known: a code has 12 bits at most, and stands for a byte at least. The last rows are
        // read whole, to see whether there is more.
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
            // Decoders that can stop early skip the rows that nobody asked for. A tile that juts out of the image is
            // decoded whole where all its visible rows are wanted: damage there is damage of the tile.
            let visible = piece.stored_rows.min(format.height - piece.y) * row_bytes;
            let size = if format.codec.stops_early() && wanted < visible { wanted } else { whole };
            // Bytes that cannot be there need no room.
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
