//! Decoding one picture from its bytes, and what its header says.

use crate::RowInfo;
use image::codecs::jpeg::JpegDecoder;
use image::codecs::png::PngDecoder;
use image::{ColorType, ImageDecoder, Limits};
use std::io::Cursor;
use wellread_image::{Channel, PixelType, Shape};

/// Bytes from the start of a file that hold the header of nearly every picture.
pub(super) const HEADER_BYTES: u64 = 64 << 10;

/// How many bytes of pixels one byte of PNG can stand for: Deflate's 1,032, times 32 for a palette of 1 bit
/// that becomes RGBA.
const PNG_RATIO: u64 = 1032 * 32;
/// The same for JPEG: in the thinnest progressive scan a bit stands for a block of 8 x 8, thrice.
const JPEG_RATIO: u64 = 2048;
/// Working memory granted to the PNG decoder beside the pixels.
const WORK_BYTES: u64 = 64 << 20;

/// What the header of a picture says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub info: RowInfo,
    color: ColorType,
}

enum Decoder<'a> {
    Png(Box<PngDecoder<Cursor<&'a [u8]>>>),
    Jpeg(Box<JpegDecoder<Cursor<&'a [u8]>>>),
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8], limit: u64) -> Result<Self, String> {
        if bytes.starts_with(b"\x89PNG") {
            let mut limits = Limits::no_limits();
            limits.max_alloc = Some(limit);
            PngDecoder::with_limits(Cursor::new(bytes), limits)
                .map(|d| Self::Png(Box::new(d)))
                .map_err(|e| e.to_string())
        } else if bytes.starts_with(b"\xff\xd8") {
            JpegDecoder::new(Cursor::new(bytes)).map(|d| Self::Jpeg(Box::new(d))).map_err(|e| e.to_string())
        } else if bytes.is_empty() {
            Err("the file is empty".to_owned())
        } else {
            Err("it is neither PNG nor JPEG".to_owned())
        }
    }

    fn header(&self) -> Result<Header, String> {
        let ((width, height), color) = match self {
            Self::Png(d) => (d.dimensions(), d.color_type()),
            Self::Jpeg(d) => (d.dimensions(), d.color_type()),
        };
        let (channels, dtype) = match color {
            ColorType::L8 => (1, PixelType::U8),
            ColorType::La8 => (2, PixelType::U8),
            ColorType::Rgb8 => (3, PixelType::U8),
            ColorType::Rgba8 => (4, PixelType::U8),
            ColorType::L16 => (1, PixelType::U16),
            ColorType::La16 => (2, PixelType::U16),
            ColorType::Rgb16 => (3, PixelType::U16),
            ColorType::Rgba16 => (4, PixelType::U16),
            other => return Err(format!("pictures of type {other:?} are not supported")),
        };
        let shape = Shape([1, channels, 1, height as usize, width as usize]);
        shape.checked_bytes(dtype).map_err(|e| e.to_string())?;
        Ok(Header { info: RowInfo { shape, dtype }, color })
    }
}

/// The header in `bytes`, the first bytes of a file that is `length` bytes long.
pub(super) fn header(bytes: &[u8], length: u64) -> Result<Header, String> {
    let decoder = Decoder::new(bytes, WORK_BYTES)?;
    let header = decoder.header()?;
    let ratio = if matches!(decoder, Decoder::Png(_)) { PNG_RATIO } else { JPEG_RATIO };
    if header.bytes() as u64 > length.saturating_mul(ratio) {
        let Shape([_, _, _, y, x]) = header.info.shape;
        return Err(format!("the header declares {x} x {y} pixels, which {length} bytes cannot hold"));
    }
    Ok(header)
}

impl Header {
    /// Bytes of the decoded picture.
    pub fn bytes(&self) -> usize {
        self.info.shape.pixels() * self.info.dtype.size()
    }

    /// Decodes the picture in `bytes` to the start of `decoded`, colours interleaved, little-endian.
    pub fn decode(&self, bytes: &[u8], decoded: &mut Vec<u8>) -> Result<(), String> {
        let decoder = Decoder::new(bytes, self.bytes() as u64 + WORK_BYTES)?;
        if decoder.header()? != *self {
            return Err("its size or type changed while the set was open".to_owned());
        }
        let size = self.bytes();
        if decoded.len() < size {
            let more = size - decoded.len();
            decoded.try_reserve_exact(more).map_err(|_| format!("not enough memory for {size} bytes"))?;
            decoded.resize(size, 0);
        }
        let target = &mut decoded[..size];
        match decoder {
            Decoder::Png(d) => d.read_image(target).map_err(|e| e.to_string())?,
            Decoder::Jpeg(d) => {
                if !jpeg_is_complete(bytes) {
                    return Err("the JPEG ends before its last scan does".to_owned());
                }
                d.read_image(target).map_err(|e| e.to_string())?;
            }
        }
        if cfg!(target_endian = "big") && self.info.dtype == PixelType::U16 {
            target.chunks_exact_mut(2).for_each(<[u8]>::reverse);
        }
        Ok(())
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

/// Whether an end-of-image marker follows the last start-of-scan marker. The decoder paints what a truncated
/// JPEG lacks in grey; training on that unawares is worse than an error.
fn jpeg_is_complete(bytes: &[u8]) -> bool {
    let last = bytes.windows(2).rev().find(|w| matches!(w, [0xff, 0xd9 | 0xda]));
    last == Some(&[0xff, 0xd9])
}
