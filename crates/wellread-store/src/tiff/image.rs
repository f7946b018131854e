//! One page: what its tags say about its pixels, and where its strips or tiles lie.
//!
//! A [`Page`] is what stays in memory of a directory. It is a [`PageFormat`], shared by all pages of a file that
//! look alike, and a list of [`Segment`]s. Strips that follow each other without gap and compression are
//! merged into one, so that a reader may cut them where it likes.
//!
//! Long because what a page is follows from its tags together: each decides what others may say.

use super::codec::Codec;
use super::endian::Endian;
use super::ifd::{FileView, Header, Ifd, tag};
use super::{nodata, predictor, sums};
use crate::Result;
use crate::refusal::Refusal;
use std::sync::Arc;
use wellread_image::PixelType;

/// Rows per strip beyond which the number means "all in one strip" and no last strip is filled up to it.
const MAX_PADDED_ROWS: usize = 1 << 16;

/// Where a strip or tile lies in its file. Both zero: it was never written and stands for pixels of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Segment {
    /// Whether the segment was never written (sparse files).
    pub(super) fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// How samples are to be understood: tag 339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SampleKind {
    Unsigned,
    Signed,
    Float,
    Complex,
}

/// How numbers of a page are shown, by PhotometricInterpretation (tag 262).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Photometric {
    /// As they are: large numbers are bright, or samples are colours.
    Plain,
    /// Small numbers are bright.
    WhiteIsZero,
    /// They are indices into a palette.
    Palette,
}

impl Photometric {
    fn of(photometric: u64) -> Self {
        match photometric {
            0 => Self::WhiteIsZero,
            3 => Self::Palette,
            _ => Self::Plain,
        }
    }
}

/// Everything needed to turn segments into pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageFormat {
    pub(super) endian: Endian,
    pub(super) width: usize,
    pub(super) height: usize,
    /// Samples (channels) per pixel.
    pub(super) samples: usize,
    /// Whether each sample has segments of its own (planar configuration 2).
    pub(super) planar: bool,
    pub(super) kind: SampleKind,
    /// Bits of one sample.
    pub(super) bits: u16,
    pub(super) codec: Codec,
    pub(super) predictor: u16,
    /// Whether the bits of each byte are stored in reverse (fill order 2).
    pub(super) reversed: bool,
    pub(super) tiled: bool,
    /// Width and height of a strip or tile.
    pub(super) segment: [usize; 2],
    /// Whether the lengths of strips and tiles are stated. Otherwise other things may follow their data.
    pub(super) exact_lengths: bool,
    /// Rows that the last strip may be filled up to, where it has fewer; 0 where it may not.
    pub(super) padded_rows: usize,
    /// The change of pixels for display, which reading leaves out.
    pub(super) photometric: Photometric,
    /// The pixel of strips and tiles that were never written: the first of these bytes.
    pub(super) unwritten: [u8; 8],
    /// Anything that makes the page unreadable, though its size is known.
    pub(super) refusal: Option<Refusal>,
}

/// One page.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) format: Arc<PageFormat>,
    /// Rows of segments from top to bottom, each from left to right; for planar pages sample after sample.
    pub(super) segments: Box<[Segment]>,
    /// CRC-32 of the stored bytes of each, where the file has them: see [`sums`].
    pub(super) sums: Option<Box<[u32]>>,
}

impl PageFormat {
    /// The pixel type that is delivered.
    pub(super) fn dtype(&self) -> Result<PixelType, String> {
        use PixelType as P;
        Ok(match (self.kind, self.bits) {
            (SampleKind::Unsigned, 1..=8) => P::U8,
            (SampleKind::Unsigned, 9..=16) => P::U16,
            (SampleKind::Unsigned, 32) => P::U32,
            (SampleKind::Signed, 8) => P::I8,
            (SampleKind::Signed, 16) => P::I16,
            (SampleKind::Signed, 32) => P::I32,
            (SampleKind::Float, 32) => P::F32,
            (SampleKind::Float, 64) => P::F64,
            (kind, bits) => {
                let kind = match kind {
                    SampleKind::Unsigned => "unsigned integers",
                    SampleKind::Signed => "signed integers",
                    SampleKind::Float => "floating-point numbers",
                    SampleKind::Complex => "complex numbers",
                };
                return Err(format!("pixels are {kind} of {bits} bits, which wellread does not read"));
            }
        })
    }

    /// Samples that lie side by side in one segment.
    pub(super) fn interleaved(&self) -> usize {
        if self.planar { 1 } else { self.samples }
    }

    /// Bytes of one row of a segment, as stored once decompressed.
    pub(super) fn row_bytes(&self) -> usize {
        (self.segment[0] * self.interleaved() * usize::from(self.bits)).div_ceil(8)
    }

    /// Number of segments side by side, and on top of each other.
    pub(super) fn grid(&self) -> [usize; 2] {
        [self.width.div_ceil(self.segment[0]), self.height.div_ceil(self.segment[1])]
    }

    /// Rows of the segment in row `sy` of the grid: a tile's all, a last strip's fewer.
    pub(super) fn rows(&self, sy: usize) -> usize {
        if self.tiled { self.segment[1] } else { self.segment[1].min(self.height - sy * self.segment[1]) }
    }

    /// Whether the bytes of a segment are the pixels, as they are.
    pub(super) fn is_plain(&self) -> bool {
        self.codec == Codec::None
            && self.predictor == 1
            && !self.reversed
            && !self.tiled
            && self.refusal.is_none()
            && self.interleaved() == 1
            && matches!(self.bits, 8 | 16 | 32 | 64)
            && (self.bits == 8 || self.endian == Endian::Little)
    }
}

impl Page {
    /// Reads a page's tags.
    pub(super) fn read(view: &mut FileView<'_>, header: Header, ifd: &Ifd) -> Result<Self> {
        let endian = header.endian;
        let mut number =
            |tag: u16, default: u64| -> Result<u64> { Ok(ifd.number(view, endian, tag)?.unwrap_or(default)) };
        let width = number(tag::IMAGE_WIDTH, 0)?;
        let height = number(tag::IMAGE_LENGTH, 0)?;
        let samples = number(tag::SAMPLES_PER_PIXEL, 1)?;
        let compression = number(tag::COMPRESSION, 1)?;
        let predictor = number(tag::PREDICTOR, 1)?;
        let planar = number(tag::PLANAR_CONFIGURATION, 1)?;
        let fill_order = number(tag::FILL_ORDER, 1)?;
        let photometric = number(tag::PHOTOMETRIC, 1)?;
        let subsampling = number(tag::YCBCR_SUBSAMPLING, 2)?;
        let depth = number(tag::IMAGE_DEPTH, 1)?.max(number(tag::TILE_DEPTH, 1)?);
        let tile_width = number(tag::TILE_WIDTH, 0)?;
        let tile_height = number(tag::TILE_LENGTH, 0)?;
        let rows_per_strip = number(tag::ROWS_PER_STRIP, u64::from(u32::MAX))?;
        let bad = |view: &FileView<'_>, what: std::fmt::Arguments<'_>| {
            view.error(format_args!("{what} (directory at offset {})", ifd.offset))
                .hint("the file is probably corrupt; copy or write it again")
        };
        let small = |n: u64| usize::try_from(n).ok().filter(|&n| n > 0 && u32::try_from(n).is_ok());
        let (Some(width), Some(height)) = (small(width), small(height)) else {
            return Err(bad(view, format_args!("a page declares a size of {width} x {height} pixels")));
        };
        let Some(samples) = small(samples).filter(|&s| u16::try_from(s).is_ok()) else {
            return Err(bad(view, format_args!("a page declares {samples} samples per pixel")));
        };
        let bits = uniform(view, endian, ifd, tag::BITS_PER_SAMPLE, 1)?;
        let format = uniform(view, endian, ifd, tag::SAMPLE_FORMAT, 1)?;
        let bits = bits.and_then(|b| u16::try_from(b).ok()).filter(|b| (1..=128).contains(b));
        let kind = match format {
            Some(2) => SampleKind::Signed,
            Some(3) => SampleKind::Float,
            Some(5 | 6) => SampleKind::Complex,
            _ => SampleKind::Unsigned,
        };
        // Numbers beyond 16 bits are of no compression or predictor: they must not be taken for another's.
        let codec = u16::try_from(compression).map_or(Codec::Other(u16::MAX), Codec::from_tag);
        let predictor = u16::try_from(predictor).unwrap_or(u16::MAX);
        let refuse = |cause: &str| Some(Refusal::unsupported(cause));
        let mut refusal = match format {
            _ if bits.is_none() || format.is_none() => {
                refuse("its samples differ in type from each other, which wellread does not read")
            }
            // 4 is "undefined", which is mostly unsigned integers of an opaque meaning.
            Some(1..=6) => None,
            other => refuse(&format!("sample format {} is unknown", other.unwrap_or_default())),
        };
        if depth > 1 {
            refusal = refusal.or_else(|| refuse("its tiles have a depth, which wellread does not read"));
        }
        // A codec that is not read is named when the pixels are: JPEG is the reason of most such colours.
        if photometric == 6 && subsampling != 1 && codec.refusal().is_none() {
            refusal =
                refusal.or_else(|| refuse("its colours are subsampled YCbCr, which wellread does not read"));
        }
        if samples > 1 && !matches!(planar, 1 | 2) {
            refusal = refusal.or_else(|| refuse(&format!("planar configuration {planar} is unknown")));
        }
        if u16::try_from(compression).is_err() {
            refusal = refusal.or_else(|| refuse(&format!("compression number {compression} is unknown")));
        }
        let tiled = tile_width > 0 || tile_height > 0;
        let segment = if tiled {
            let (Some(w), Some(h)) = (small(tile_width), small(tile_height)) else {
                return Err(bad(view, format_args!("tiles of {tile_width} x {tile_height} pixels")));
            };
            [w, h]
        } else {
            [width, if rows_per_strip == 0 { height } else { height.min(rows_per_strip as usize) }]
        };
        let mut format = PageFormat {
            endian,
            width,
            height,
            samples,
            planar: planar == 2 && samples > 1,
            kind,
            bits: bits.unwrap_or(8),
            codec,
            predictor,
            reversed: fill_order == 2,
            tiled,
            segment,
            exact_lengths: true,
            padded_rows: usize::try_from(rows_per_strip).ok().filter(|&n| n <= MAX_PADDED_ROWS).unwrap_or(0),
            photometric: Photometric::of(photometric),
            unwritten: [0; 8],
            refusal,
        };
        let row_bits = (format.interleaved() as u64).checked_mul(segment[0] as u64);
        let row_bits = row_bits.and_then(|n| n.checked_mul(u64::from(format.bits)));
        if row_bits.and_then(|n| (n / 8 + 1).checked_mul(segment[1] as u64)).is_none_or(|n| n > 1 << 40) {
            return Err(bad(
                view,
                format_args!(
                    "strips or tiles of {} x {} pixels are too large to be true",
                    segment[0], segment[1]
                ),
            ));
        }
        // From here on the bytes of a page, or of any part of it, can be computed without overflow.
        if (format.row_bytes() as u64).checked_mul(height as u64).is_none_or(|n| n > 1 << 56) {
            return Err(bad(view, format_args!("{width} x {height} pixels are too many to be true")));
        }
        if format.refusal.is_none() {
            format.refusal = unsupported_predictor(&format).map(Refusal::unsupported);
        }
        let Listed { mut segments, is_trimmed, exact_lengths } = read_segments(view, header, ifd, &format)?;
        format.exact_lengths = exact_lengths;
        if is_trimmed {
            // Bytes behind the rows of the last strip may as well be rows that are not declared.
            format.padded_rows = 0;
        }
        if format.refusal.is_none() && has_short_strips(&format, &segments) {
            let cause = "its strips hold fewer bytes than their rows need: the file is corrupt";
            format.refusal = Some(Refusal::damaged(cause));
        }
        if segments.iter().any(|s| s.is_empty())
            && let Ok(dtype) = format.dtype()
            && let Some(text) = ifd.text(view, tag::GDAL_NODATA)?
        {
            format.unwritten = nodata::pixel(&text, dtype);
        }
        let sums = sums::read(view, endian, ifd, segments.len())?;
        // A piece with a checksum of its own is read whole.
        if sums.is_none() {
            merge_strips(&mut format, &mut segments);
        }
        Ok(Self { format: Arc::new(format), segments: segments.into(), sums })
    }

    /// The same page `bytes` further on in the file, for files that describe only their first page.
    pub(super) fn moved(&self, bytes: u64) -> Self {
        let mut page = self.clone();
        page.segments.iter_mut().for_each(|s| s.offset = s.offset.saturating_add(bytes));
        page.sums = None;
        page
    }

    /// Whether rows can be read without the others of their strip: these are stored as they are, and have no checksum.
    pub(super) fn has_rows_alone(&self) -> bool {
        self.format.codec == Codec::None && !self.format.tiled && self.sums.is_none()
    }

    /// Rows and columns of what is read as a whole: a row, a strip or a tile.
    pub(super) fn pieces(&self) -> [usize; 2] {
        let [width, height] = self.format.segment;
        [if self.has_rows_alone() { 1 } else { height }, width]
    }

    /// Whether two pages can be planes of one image.
    pub(super) fn alike(&self, other: &Self) -> bool {
        let of = |p: &Self| (p.format.width, p.format.height, p.format.samples, p.format.kind, p.format.bits);
        Arc::ptr_eq(&self.format, &other.format) || of(self) == of(other)
    }

    /// Bytes of the whole page when it is stored as it is, in one piece, or in one for each sample behind the other.
    pub(super) fn contiguous_bytes(&self) -> Option<u64> {
        let format = &*self.format;
        let pieces = if format.planar { format.samples } else { 1 };
        let each = format.row_bytes() as u64 * format.height as u64;
        let follows = |pair: &[Segment]| pair[0].offset.checked_add(each) == Some(pair[1].offset);
        let is_one = format.codec == Codec::None
            && !format.tiled
            && self.segments.len() == pieces
            && self.segments.windows(2).all(follows);
        if is_one { each.checked_mul(pieces as u64) } else { None }
    }

    /// The most bytes that the segments can decode to, given the file's length.
    pub(super) fn at_most(&self, file_len: u64) -> u64 {
        // Sparse pages decode to one value; a moderate one is believed, as nothing can be checked.
        const SPARSE: u64 = 64 << 20;
        let stored = |s: &Segment| s.len.min(file_len.saturating_sub(s.offset));
        let total: u64 = self.segments.iter().map(stored).fold(0, u64::saturating_add);
        let sparse = if self.segments.iter().any(|s| s.is_empty()) { SPARSE } else { 0 };
        self.format.codec.at_most(total.min(file_len)).saturating_add(sparse)
    }
}

/// The value of a per-sample tag when it is the same for all samples; `None` when it is not.
fn uniform(
    view: &mut FileView<'_>,
    endian: Endian,
    ifd: &Ifd,
    tag: u16,
    default: u64,
) -> Result<Option<u64>> {
    let values = ifd.numbers(view, endian, tag, u64::from(u16::MAX))?.unwrap_or_default();
    let first = values.first().copied().unwrap_or(default);
    Ok(values.iter().all(|&v| v == first).then_some(first))
}

fn unsupported_predictor(format: &PageFormat) -> Option<String> {
    let whole = matches!(format.bits, 8 | 16 | 32 | 64);
    let (predictor, bits) = (format.predictor, format.bits);
    match predictor {
        1 => None,
        predictor::HORIZONTAL if whole => None,
        predictor::FLOAT if format.kind == SampleKind::Float && matches!(bits, 32 | 64) => None,
        predictor::HORIZONTAL | predictor::FLOAT => {
            Some(format!("predictor {predictor} does not go with its pixels, which have {bits} bits"))
        }
        _ => Some(format!(
            "predictor {predictor} is unknown; wellread reads 1 (none), 2 (horizontal), 3 (float)"
        )),
    }
}

/// The places of segments by the tags.
struct Listed {
    segments: Vec<Segment>,
    /// Whether more are listed than the page needs.
    is_trimmed: bool,
    /// Whether all lengths are listed too.
    exact_lengths: bool,
}

/// Offsets and lengths of all segments.
fn read_segments(view: &mut FileView<'_>, header: Header, ifd: &Ifd, format: &PageFormat) -> Result<Listed> {
    let endian = header.endian;
    let (what, offsets_tag, counts_tag) = if format.tiled {
        ("tiles", tag::TILE_OFFSETS, tag::TILE_BYTE_COUNTS)
    } else {
        ("strips", tag::STRIP_OFFSETS, tag::STRIP_BYTE_COUNTS)
    };
    let [across, down] = format.grid();
    let planes = if format.planar { format.samples } else { 1 };
    let expected = (across as u64).checked_mul(down as u64).and_then(|n| n.checked_mul(planes as u64));
    let expected = expected.unwrap_or(u64::MAX);
    let one_more = expected.saturating_add(1);
    let offsets = ifd.numbers(view, endian, offsets_tag, one_more)?;
    // Some writers keep tile offsets under the strips' tag.
    let offsets = match offsets {
        None if format.tiled => ifd.numbers(view, endian, tag::STRIP_OFFSETS, one_more)?,
        some => some,
    };
    let mut offsets = offsets.unwrap_or_default();
    let is_trimmed = offsets.len() as u64 == one_more;
    if is_trimmed {
        offsets.pop();
    }
    if offsets.len() as u64 != expected {
        return Err(view
            .error(format_args!(
                "a page of {} x {} pixels needs {expected} {what}, but lists {} (directory at offset {})",
                format.width,
                format.height,
                offsets.len(),
                ifd.offset
            ))
            .hint("the file is probably corrupt; copy or write it again"));
    }
    let counts = ifd.numbers(view, endian, counts_tag, expected)?;
    let counts = match counts {
        None if format.tiled => ifd.numbers(view, endian, tag::STRIP_BYTE_COUNTS, expected)?,
        some => some,
    };
    let counts = counts.unwrap_or_default();
    let row_bytes = format.row_bytes() as u64;
    let segment = |(i, &offset): (usize, &u64)| {
        let declared = counts.get(i).copied();
        let rows = format.rows(i / across % down) as u64;
        let len = match declared {
            Some(0) if offset == 0 => 0,
            // Old writers leave the count out or at zero. An uncompressed segment has a known size, and any
            // other reaches to the next segment or to the end of the file.
            None | Some(0) if format.codec == Codec::None => rows * row_bytes,
            None => {
                let next = offsets.iter().copied().filter(|&o| o > offset).min().unwrap_or(view.len());
                next.saturating_sub(offset)
            }
            Some(n) => n,
        };
        Segment { offset, len }
    };
    if counts.is_empty() && format.codec != Codec::None && offsets.len() > 4096 {
        return Err(view.error(format_args!("the lengths of {} {what} are not given", offsets.len())));
    }
    let segments: Vec<Segment> = offsets.iter().enumerate().map(segment).collect();
    let header_bytes = if header.big { 16 } else { 8 };
    if let Some(segment) = segments.iter().find(|s| !s.is_empty() && s.offset < header_bytes) {
        return Err(view
            .error(format_args!(
                "{what} are said to start at offset {}, inside the file's header (directory at offset {})",
                segment.offset, ifd.offset
            ))
            .hint("the file is probably corrupt; copy or write it again"));
    }
    Ok(Listed { segments, is_trimmed, exact_lengths: counts.len() >= offsets.len() })
}

/// Whether a strip that is stored as it is holds less than its rows.
fn has_short_strips(format: &PageFormat, segments: &[Segment]) -> bool {
    let [_, down] = format.grid();
    let row_bytes = format.row_bytes() as u64;
    let short = |(i, s): (usize, &Segment)| !s.is_empty() && s.len < format.rows(i % down) as u64 * row_bytes;
    format.codec == Codec::None && !format.tiled && segments.iter().enumerate().any(short)
}

/// Merges strips that are stored as they are and follow each other into one strip per plane.
fn merge_strips(format: &mut PageFormat, segments: &mut Vec<Segment>) {
    if format.codec != Codec::None || format.tiled || format.refusal.is_some() {
        return;
    }
    let [_, down] = format.grid();
    let row_bytes = format.row_bytes() as u64;
    let bytes = |sy: usize| format.rows(sy) as u64 * row_bytes;
    if segments.iter().any(|s| s.is_empty()) {
        return;
    }
    let follows = |plane: &[Segment]| {
        let meets =
            |(sy, pair): (usize, &[Segment])| pair[0].offset.checked_add(bytes(sy)) == Some(pair[1].offset);
        plane.windows(2).enumerate().all(meets)
    };
    if !segments.chunks(down).all(follows) {
        return;
    }
    let merged = segments
        .chunks(down)
        .map(|plane| Segment { offset: plane[0].offset, len: row_bytes * format.height as u64 })
        .collect();
    *segments = merged;
    format.segment[1] = format.height;
}
