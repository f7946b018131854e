//! Decoding one picture from its bytes, and what its header says.
//!
//! The decoder makes every check that can find a damaged picture. For PNG these are the CRC of every chunk and
//! the Adler-32 of its pixels. JPEG has no checksums: its scans must be complete and free of stray markers.

use super::cmyk;
use crate::RowInfo;
use crate::refusal::Refusal;
use std::io::Cursor;
use wellread_image::{Channel, PixelType, Shape};
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Bytes from the start of a file that hold the header of nearly every picture.
pub(super) const HEADER_BYTES: u64 = 64 << 10;

/// How many bytes of pixels one byte of PNG can stand for: Deflate's 1,032, times 32 for a palette of 1 bit
/// that becomes RGBA.
const PNG_RATIO: u64 = 1032 * 32;
/// The same for JPEG: in the thinnest progressive scan a bit stands for a block of 8 x 8, thrice.
const JPEG_RATIO: u64 = 2048;
/// Working memory granted to the PNG decoder beside the pixels.
const WORK_BYTES: usize = 64 << 20;

/// The header of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub info: RowInfo,
    /// Whether it is a PNG, whatever the file is called; else it is a JPEG.
    pub is_png: bool,
}

enum Decoder<'a> {
    Png(Box<png::Reader<Cursor<&'a [u8]>>>),
    Jpeg(Box<zune_jpeg::JpegDecoder<ZCursor<&'a [u8]>>>),
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8], limit: usize) -> Result<Self, Refusal> {
        if bytes.starts_with(b"\x89PNG") {
            let mut options = png::DecodeOptions::default();
            // By default a damaged palette or transparency, and damage that still decompresses, go unnoticed.
            options.set_ignore_checksums(false);
            options.set_skip_ancillary_crc_failures(false);
            options.set_ignore_text_chunk(true);
            options.set_ignore_iccp_chunk(true);
            let mut decoder = png::Decoder::new_with_options(Cursor::new(bytes), options);
            decoder.set_limits(png::Limits { bytes: limit });
            decoder.set_transformations(png::Transformations::EXPAND);
            decoder.read_info().map(|reader| Self::Png(Box::new(reader))).map_err(Refusal::damaged)
        } else if bytes.starts_with(b"\xff\xd8") {
            // Headers leniently: junk between them is common and harms nothing.
            let options = DecoderOptions::default()
                .set_strict_mode(false)
                .set_max_width(usize::MAX)
                .set_max_height(usize::MAX);
            let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
            decoder.decode_headers().map_err(|e| match e {
                DecodeErrors::Unsupported(what) => Refusal::unsupported(format_args!("{what:?}")),
                e => Refusal::damaged(e),
            })?;
            Ok(Self::Jpeg(Box::new(decoder)))
        } else if bytes.is_empty() {
            Err(Refusal::damaged("the file is empty"))
        } else {
            Err(Refusal::damaged("it is neither PNG nor JPEG"))
        }
    }

    fn header(&self) -> Result<Header, Refusal> {
        let (channels, dtype, width, height) = match self {
            Self::Png(reader) => {
                let (color, bits) = reader.output_color_type();
                let dtype = if bits == png::BitDepth::Sixteen { PixelType::U16 } else { PixelType::U8 };
                let (width, height) = reader.info().size();
                (color.samples(), dtype, width as usize, height as usize)
            }
            Self::Jpeg(decoder) => {
                let info = decoder.info().ok_or_else(|| Refusal::damaged("the JPEG has no header"))?;
                let channels = match info.components {
                    n @ (1 | 3) => usize::from(n),
                    // Four are inks (CMYK, YCCK), which become red, green and blue.
                    4 => 3,
                    n => {
                        return Err(Refusal::unsupported(format_args!(
                            "JPEG of {n} colours is not supported"
                        )));
                    }
                };
                (channels, PixelType::U8, usize::from(info.width), usize::from(info.height))
            }
        };
        let shape = Shape([1, channels, 1, height, width]);
        shape.checked_bytes(dtype).map_err(Refusal::damaged)?;
        Ok(Header { info: RowInfo { shape, dtype }, is_png: matches!(self, Self::Png(_)) })
    }

    /// Decodes to `target`, which has the size that the header says: colours interleaved, little-endian.
    fn decode(self, target: &mut [u8], Header { info, .. }: Header) -> Result<(), Refusal> {
        match self {
            Self::Png(mut reader) => {
                reader.next_frame(target).map_err(Refusal::damaged)?;
                if info.dtype == PixelType::U16 {
                    // PNG is big-endian.
                    target.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse());
                }
            }
            Self::Jpeg(mut decoder) => {
                let inks = decoder.input_colorspace().filter(|_| is_of_inks(&decoder));
                let colors = match info.shape.c() {
                    1 => ColorSpace::Luma,
                    _ => inks.unwrap_or(ColorSpace::RGB),
                };
                // Not strict, it paints what is damaged in grey; training on that unawares is worse than an
                // error.
                let options = decoder.options().jpeg_set_out_colorspace(colors).set_strict_mode(true);
                decoder.set_options(options);
                if let Some(inks) = inks {
                    let mut stored = Vec::new();
                    let size = target.len() / 3 * 4;
                    stored
                        .try_reserve_exact(size)
                        .map_err(|_| format!("not enough memory for {size} bytes"))?;
                    stored.resize(size, 0);
                    decoder.decode_into(&mut stored).map_err(Refusal::damaged)?;
                    cmyk::to_rgb(&stored, inks == ColorSpace::YCCK, target);
                } else {
                    decoder.decode_into(target).map_err(Refusal::damaged)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a JPEG has four colours.
fn is_of_inks(decoder: &zune_jpeg::JpegDecoder<ZCursor<&[u8]>>) -> bool {
    decoder.info().is_some_and(|info| info.components == 4)
}

/// The header in `bytes`, the first bytes of a file that is `length` bytes long.
pub(super) fn header(bytes: &[u8], length: u64) -> Result<Header, Refusal> {
    let decoder = Decoder::new(bytes, WORK_BYTES)?;
    let header = decoder.header()?;
    let ratio = if header.is_png { PNG_RATIO } else { JPEG_RATIO };
    if header.bytes() as u64 > length.saturating_mul(ratio) {
        let Shape([_, _, _, y, x]) = header.info.shape;
        return Err(Refusal::damaged(format_args!(
            "the header declares {x} x {y} pixels, which {length} bytes cannot hold"
        )));
    }
    Ok(header)
}

impl Header {
    /// Bytes of the decoded picture.
    pub fn bytes(&self) -> usize {
        self.info.shape.pixels() * self.info.dtype.size()
    }

    /// Decodes the picture in `bytes` to the start of `decoded`, colours interleaved, little-endian.
    pub fn decode(&self, bytes: &[u8], decoded: &mut Vec<u8>) -> Result<(), Refusal> {
        let decoder = Decoder::new(bytes, self.bytes().saturating_add(WORK_BYTES))?;
        if decoder.header()? != *self {
            return Err(Refusal::damaged("its size or type changed while the set was open"));
        }
        if matches!(decoder, Decoder::Jpeg(_)) && !jpeg_is_complete(bytes) {
            return Err(Refusal::damaged("the JPEG ends before its last scan does"));
        }
        let size = self.bytes();
        if decoded.len() < size {
            let more = size - decoded.len();
            decoded.try_reserve_exact(more).map_err(|_| format!("not enough memory for {size} bytes"))?;
            decoded.resize(size, 0);
        }
        decoder.decode(&mut decoded[..size], *self)
    }

    /// Copies interleaved colours to planes; both slices hold exactly one picture.
    pub fn to_planes(self, interleaved: &[u8], planes: &mut [u8]) {
        let size = self.info.dtype.size();
        match (self.info.shape.c(), size) {
            (2, 1) => split::<2, 1>(interleaved, planes),
            (2, _) => split::<2, 2>(interleaved, planes),
            (3, 1) => split::<3, 1>(interleaved, planes),
            (3, _) => split::<3, 2>(interleaved, planes),
            (4, 1) => split::<4, 1>(interleaved, planes),
            (4, _) => split::<4, 2>(interleaved, planes),
            _ => planes.copy_from_slice(interleaved),
        }
    }

    /// Names and colours of the channels; none for plain grey.
    pub fn channels(&self) -> Vec<Channel> {
        let named: &[(&str, Option<u32>)] = match self.info.shape.c() {
            2 => &[("Grey", Some(0xffff_ffff)), ("Alpha", None)],
            3 => &RGBA[..3],
            4 => &RGBA,
            _ => &[],
        };
        named
            .iter()
            .enumerate()
            .map(|(i, (name, color))| Channel {
                id: format!("Channel:0:{i}"),
                name: (*name).to_owned(),
                color_rgba: *color,
                ..Channel::default()
            })
            .collect()
    }

    /// For `wellread info`, such as `8-bit RGB`.
    pub fn describe(&self) -> String {
        let colors = match self.info.shape.c() {
            1 => "grey",
            2 => "grey with alpha",
            3 => "RGB",
            _ => "RGB with alpha",
        };
        format!("{}-bit {colors}", self.info.dtype.size() * 8)
    }
}

const RGBA: [(&str, Option<u32>); 4] =
    [("Red", Some(0xff00_00ff)), ("Green", Some(0x00ff_00ff)), ("Blue", Some(0x0000_ffff)), ("Alpha", None)];

/// `C` interleaved channels of `N`-byte pixels to `C` planes.
fn split<const C: usize, const N: usize>(interleaved: &[u8], planes: &mut [u8]) {
    let (pixels, _) = interleaved.as_chunks::<N>();
    let (pixels, _) = pixels.as_chunks::<C>();
    let (planes, _) = planes.as_chunks_mut::<N>();
    if pixels.is_empty() {
        return;
    }
    for (c, plane) in planes.chunks_exact_mut(pixels.len()).enumerate() {
        for (to, from) in plane.iter_mut().zip(pixels) {
            *to = from[c];
        }
    }
}

/// Whether an end-of-image marker follows the last start-of-scan marker. Behind the end there may be anything, such as the film that
/// a phone keeps there, with bytes that look like markers.
fn jpeg_is_complete(bytes: &[u8]) -> bool {
    let last = bytes.windows(2).rev().find(|w| matches!(w, [0xff, 0xd9 | 0xda]));
    last == Some(&[0xff, 0xd9]) || jpeg_has_end(bytes)
}

/// Whether there is an end-of-image marker, found from the start: segments are passed over by their lengths. No pixels of a scan look
/// like one.
fn jpeg_has_end(bytes: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&[first, second]) = bytes.get(at..at + 2) {
        at += match (first, second) {
            (0xff, 0xd9) => return true,
            // A start, a restart, or a byte of pixels.
            (0xff, 0x00 | 0x01 | 0xd0..=0xd8) => 2,
            (0xff, 0x02..=0xfe) => match bytes.get(at + 2..at + 4) {
                Some(&[high, low]) => 2 + usize::from(u16::from_be_bytes([high, low])),
                _ => return false,
            },
            _ => 1,
        };
    }
    false
}
