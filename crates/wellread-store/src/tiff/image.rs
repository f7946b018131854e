//! One page: the layout of its pixels, and where its strips or tiles lie.
//!
//! A [`Page`] is what stays in memory of a directory, whose tags `page_tags` reads. It is a [`PageFormat`], shared by all
//! pages of a file that look alike, and a list of [`Segment`]s. Strips that follow each other without gap and compression
//! are merged into one, so that a reader may cut them where it likes.

use super::codec::Codec;
use super::endian::Endian;
use crate::refusal::Refusal;
use crate::stored_type::StoredType;
use std::sync::Arc;
use wellread_image::PixelType;

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
    pub(super) fn of(photometric: u64) -> Self {
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
    /// CRC-32 of the stored bytes of each, where the file has them: see [`super::sums`].
    pub(super) sums: Option<Box<[u32]>>,
}

impl PageFormat {
    /// The pixel type that is delivered.
    pub(super) fn dtype(&self) -> Result<PixelType, String> {
        self.stored().map(StoredType::dtype)
    }

    /// The type of samples once packed bits are unpacked.
    pub(super) fn stored(&self) -> Result<StoredType, String> {
        use PixelType as P;
        use StoredType::Pixel;
        Ok(match (self.kind, self.bits) {
            (SampleKind::Unsigned, 1..=8) => Pixel(P::U8),
            (SampleKind::Unsigned, 9..=16) => Pixel(P::U16),
            (SampleKind::Unsigned, 32) => Pixel(P::U32),
            (SampleKind::Unsigned, 64) => StoredType::U64,
            (SampleKind::Signed, 8) => Pixel(P::I8),
            (SampleKind::Signed, 16) => Pixel(P::I16),
            (SampleKind::Signed, 32) => Pixel(P::I32),
            (SampleKind::Signed, 64) => StoredType::I64,
            (SampleKind::Float, 16) => StoredType::F16,
            (SampleKind::Float, 32) => Pixel(P::F32),
            (SampleKind::Float, 64) => Pixel(P::F64),
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
