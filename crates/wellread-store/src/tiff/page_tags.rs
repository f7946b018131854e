//! The tags of a page: what they say together about its pixels, and where its strips or tiles lie.
//!
//! ```text
//!  directory ─▶ Numbers ─▶ size ─┐
//!            ─▶ SampleType ──────┴─▶ PageFormat, perhaps refused ─▶ strips or tiles ─▶ Page
//! ```

use super::codec::Codec;
use super::endian::Endian;
use super::ifd::{FileView, Header, Ifd, tag};
use super::image::{Page, PageFormat, Photometric, SampleKind, Segment};
use super::{nodata, predictor, sums};
use crate::refusal::Refusal;
use crate::{Error, Result};
use std::fmt::Arguments;
use std::sync::Arc;

/// Rows per strip beyond which the number means "all in one strip" and no last strip is filled up to it.
const MAX_PADDED_ROWS: usize = 1 << 16;

impl Page {
    /// Reads a page's tags.
    pub(super) fn read(view: &mut FileView<'_>, header: Header, ifd: &Ifd) -> Result<Self> {
        let mut format = read_format(view, header.endian, ifd)?;
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
            && let Ok(stored) = format.stored()
            && let Some(text) = ifd.text(view, tag::GDAL_NODATA)?
        {
            format.unwritten = nodata::pixel(&text, stored);
        }
        let sums = sums::read(view, header.endian, ifd, segments.len())?;
        // A piece with a checksum of its own is read whole.
        if sums.is_none() {
            merge_strips(&mut format, &mut segments);
        }
        Ok(Self { format: Arc::new(format), segments: segments.into(), sums })
    }
}

/// The layout of a page's pixels, all but what its lists of strips or tiles say.
fn read_format(view: &mut FileView<'_>, endian: Endian, ifd: &Ifd) -> Result<PageFormat> {
    let numbers = Numbers::read(view, endian, ifd)?;
    let [width, height, samples] = numbers.size(view, ifd)?;
    let sample = SampleType::read(view, endian, ifd)?;
    // Numbers beyond 16 bits are of no compression or predictor: they must not be taken for another's.
    let codec = u16::try_from(numbers.compression).map_or(Codec::Other(u16::MAX), Codec::from_tag);
    let rows_per_strip = usize::try_from(numbers.rows_per_strip).ok();
    let mut format = PageFormat {
        endian,
        width,
        height,
        samples,
        planar: numbers.planar == 2 && samples > 1,
        kind: sample.kind(),
        bits: sample.bits.unwrap_or(8),
        codec,
        predictor: u16::try_from(numbers.predictor).unwrap_or(u16::MAX),
        reversed: numbers.fill_order == 2,
        tiled: numbers.is_tiled(),
        segment: numbers.segment(view, ifd, [width, height])?,
        exact_lengths: true,
        padded_rows: rows_per_strip.filter(|&n| n <= MAX_PADDED_ROWS).unwrap_or(0),
        photometric: Photometric::of(numbers.photometric),
        unwritten: [0; 8],
        refusal: sample.refusal().or_else(|| numbers.refusal(codec)),
    };
    check_bytes(view, ifd, &format)?;
    if format.refusal.is_none() {
        format.refusal = unsupported_predictor(&format).map(Refusal::unsupported);
    }
    Ok(format)
}

/// The tags that are one number each.
struct Numbers {
    width: u64,
    height: u64,
    samples: u64,
    compression: u64,
    predictor: u64,
    planar: u64,
    fill_order: u64,
    photometric: u64,
    subsampling: u64,
    /// Depth of the image, or of its tiles.
    depth: u64,
    tile_width: u64,
    tile_height: u64,
    rows_per_strip: u64,
}

impl Numbers {
    fn read(view: &mut FileView<'_>, endian: Endian, ifd: &Ifd) -> Result<Self> {
        let mut number =
            |tag: u16, default: u64| -> Result<u64> { Ok(ifd.number(view, endian, tag)?.unwrap_or(default)) };
        Ok(Self {
            width: number(tag::IMAGE_WIDTH, 0)?,
            height: number(tag::IMAGE_LENGTH, 0)?,
            samples: number(tag::SAMPLES_PER_PIXEL, 1)?,
            compression: number(tag::COMPRESSION, 1)?,
            predictor: number(tag::PREDICTOR, 1)?,
            planar: number(tag::PLANAR_CONFIGURATION, 1)?,
            fill_order: number(tag::FILL_ORDER, 1)?,
            photometric: number(tag::PHOTOMETRIC, 1)?,
            subsampling: number(tag::YCBCR_SUBSAMPLING, 2)?,
            depth: number(tag::IMAGE_DEPTH, 1)?.max(number(tag::TILE_DEPTH, 1)?),
            tile_width: number(tag::TILE_WIDTH, 0)?,
            tile_height: number(tag::TILE_LENGTH, 0)?,
            rows_per_strip: number(tag::ROWS_PER_STRIP, u64::from(u32::MAX))?,
        })
    }

    /// Width, height and samples per pixel.
    fn size(&self, view: &FileView<'_>, ifd: &Ifd) -> Result<[usize; 3]> {
        let Self { width, height, samples, .. } = *self;
        let (Some(wide), Some(high)) = (within_32_bits(width), within_32_bits(height)) else {
            let what = format_args!("a page declares a size of {width} x {height} pixels");
            return Err(corrupt(view, ifd, what));
        };
        let Some(each) = within_32_bits(samples).filter(|&s| u16::try_from(s).is_ok()) else {
            return Err(corrupt(view, ifd, format_args!("a page declares {samples} samples per pixel")));
        };
        Ok([wide, high, each])
    }

    fn is_tiled(&self) -> bool {
        self.tile_width > 0 || self.tile_height > 0
    }

    /// Width and height of a strip or tile of a page of this size.
    fn segment(&self, view: &FileView<'_>, ifd: &Ifd, [width, height]: [usize; 2]) -> Result<[usize; 2]> {
        let Self { tile_width, tile_height, rows_per_strip, .. } = *self;
        if !self.is_tiled() {
            return Ok([
                width,
                if rows_per_strip == 0 { height } else { height.min(rows_per_strip as usize) },
            ]);
        }
        match (within_32_bits(tile_width), within_32_bits(tile_height)) {
            (Some(wide), Some(high)) => Ok([wide, high]),
            _ => Err(corrupt(view, ifd, format_args!("tiles of {tile_width} x {tile_height} pixels"))),
        }
    }

    /// Why such a page is not read.
    fn refusal(&self, codec: Codec) -> Option<Refusal> {
        let refuse = |cause: &str| Some(Refusal::unsupported(cause));
        if self.depth > 1 {
            return refuse("its tiles have a depth, which wellread does not read");
        }
        // A codec that is not read is named when the pixels are: JPEG is the reason of most such colours.
        if self.photometric == 6 && self.subsampling != 1 && codec.refusal().is_none() {
            return refuse("its colours are subsampled YCbCr, which wellread does not read");
        }
        if self.samples > 1 && !matches!(self.planar, 1 | 2) {
            return refuse(&format!("planar configuration {} is unknown", self.planar));
        }
        if u16::try_from(self.compression).is_err() {
            return refuse(&format!("compression number {} is unknown", self.compression));
        }
        None
    }
}

/// A number above 0 that 32 bits hold.
fn within_32_bits(n: u64) -> Option<usize> {
    usize::try_from(n).ok().filter(|&n| n > 0 && u32::try_from(n).is_ok())
}

/// The type of samples, where it is the same for all of a pixel.
struct SampleType {
    /// Bits of a sample, of a number that can be.
    bits: Option<u16>,
    /// The number of tag 339.
    format: Option<u64>,
}

impl SampleType {
    fn read(view: &mut FileView<'_>, endian: Endian, ifd: &Ifd) -> Result<Self> {
        let bits = uniform(view, endian, ifd, tag::BITS_PER_SAMPLE, 1)?;
        let format = uniform(view, endian, ifd, tag::SAMPLE_FORMAT, 1)?;
        let bits = bits.and_then(|b| u16::try_from(b).ok()).filter(|b| (1..=128).contains(b));
        Ok(Self { bits, format })
    }

    fn kind(&self) -> SampleKind {
        match self.format {
            Some(2) => SampleKind::Signed,
            Some(3) => SampleKind::Float,
            Some(5 | 6) => SampleKind::Complex,
            _ => SampleKind::Unsigned,
        }
    }

    /// Why such samples are not read.
    fn refusal(&self) -> Option<Refusal> {
        match self.format {
            _ if self.bits.is_none() || self.format.is_none() => Some(Refusal::unsupported(
                "its samples differ in type from each other, which wellread does not read",
            )),
            // 4 is "undefined", which is mostly unsigned integers of an opaque meaning.
            Some(1..=6) => None,
            other => {
                let number = other.unwrap_or_default();
                Some(Refusal::unsupported(format_args!("sample format {number} is unknown")))
            }
        }
    }
}

/// The error of a directory that cannot be right.
fn corrupt(view: &FileView<'_>, ifd: &Ifd, what: Arguments<'_>) -> Error {
    view.error(format_args!("{what} (directory at offset {})", ifd.offset))
        .hint("the file is probably corrupt; copy or write it again")
}

/// Refuses a page of more bytes than can be. The bytes of any part of another one are computed without overflow.
fn check_bytes(view: &FileView<'_>, ifd: &Ifd, format: &PageFormat) -> Result<()> {
    let [wide, high] = format.segment;
    let row_bits = (format.interleaved() as u64).checked_mul(wide as u64);
    let row_bits = row_bits.and_then(|n| n.checked_mul(u64::from(format.bits)));
    if row_bits.and_then(|n| (n / 8 + 1).checked_mul(high as u64)).is_none_or(|n| n > 1 << 40) {
        let what = format_args!("strips or tiles of {wide} x {high} pixels are too large to be true");
        return Err(corrupt(view, ifd, what));
    }
    let (width, height) = (format.width, format.height);
    if (format.row_bytes() as u64).checked_mul(height as u64).is_none_or(|n| n > 1 << 56) {
        return Err(corrupt(view, ifd, format_args!("{width} x {height} pixels are too many to be true")));
    }
    Ok(())
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
        predictor::FLOAT if format.kind == SampleKind::Float && matches!(bits, 16 | 32 | 64) => None,
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
        let (width, height, listed) = (format.width, format.height, offsets.len());
        let what =
            format_args!("a page of {width} x {height} pixels needs {expected} {what}, but lists {listed}");
        return Err(corrupt(view, ifd, what));
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
        let offset = segment.offset;
        let what = format_args!("{what} are said to start at offset {offset}, inside the file's header");
        return Err(corrupt(view, ifd, what));
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
