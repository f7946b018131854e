//! Thumbnails: one row as an RGB picture that a person can judge.
//!
//! The middle time point and the maximum over Z are shown. Each channel is stretched from its 0.5th to its
//! 99.8th percentile and drawn in its own colour (metadata's, else a fixed order), added up. Masks beside stains are outlines, which
//! hide no stain. Never used for measurements. Places without a finite value are black, and count for no percentile.

use crate::png_encoder::Picture;
use crate::{Error, Result, Scratch, Store, masks, place};
use png::{BitDepth, ColorType, DeflateCompression};
use std::path::Path;
use wellread_image::{Channel, PixelType, Region};

/// An 8-bit RGB picture: `3 * width * height` bytes, rows from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Interleaved red, green, blue.
    pub rgb: Vec<u8>,
}

/// Colours for channels without one of their own: blue, green, red, magenta, yellow, cyan.
const PALETTE: [[f32; 3]; 6] =
    [[0.2, 0.45, 1.0], [0.1, 0.9, 0.2], [1.0, 0.25, 0.2], [1.0, 0.2, 1.0], [1.0, 0.9, 0.1], [0.1, 0.9, 0.95]];

/// Draws `row`, shrunk by area averaging so that neither side exceeds `max_side` pixels.
pub fn preview(store: &dyn Store, row: usize, max_side: usize) -> Result<Preview> {
    let info = store.row_info(row)?;
    let [t, channels, z, height, width] = info.shape.0;
    let step = height.max(width).div_ceil(max_side.max(1)).max(1);
    let (out_h, out_w) = (height.div_ceil(step), width.div_ceil(step));
    let metadata = store.metadata(row)?;
    let own_mask = channels.checked_sub(1).filter(|_| store.hints().is_last_mask);
    let is_mask = |c: usize| {
        let is_called = metadata.channels.get(c).is_some_and(|channel| masks::is_channel(&channel.name));
        channels > 1 && (own_mask == Some(c) || is_called)
    };
    let (mut sum, mut outlines) = (vec![0f32; out_h * out_w * 3], vec![]);
    let (mut scratch, mut pixels) = (Scratch::default(), Vec::new());
    for c in 0..channels {
        let mut plane = vec![f32::NEG_INFINITY; out_h * out_w];
        for depth in 0..z {
            let region = Region { start: [t / 2, c, depth, 0, 0], size: [1, 1, 1, height, width] };
            crate::read_region(store, row, &region, &mut scratch, &mut pixels)?;
            shrink_max(&pixels, info.dtype, [height, width], step, &mut plane);
        }
        let color = if channels == 1 { [1.0; 3] } else { channel_color(metadata.channels.get(c), c) };
        if is_mask(c) {
            outlines.push((outline(&plane, out_w, step == 1), color));
            continue;
        }
        let [low, high] = percentiles(&plane, [0.005, 0.998]);
        let range = if high > low { high - low } else { 1.0 };
        for (value, rgb) in plane.iter().zip(sum.chunks_exact_mut(3)) {
            let v = ((value - low) / range).clamp(0.0, 1.0);
            for (channel, weight) in rgb.iter_mut().zip(color) {
                *channel += v * weight;
            }
        }
    }
    for (places, color) in outlines {
        for place in places {
            sum[3 * place..3 * place + 3].copy_from_slice(&color);
        }
    }
    let rgb = sum.iter().map(|v| (v.min(1.0) * 255.0).round() as u8).collect();
    Ok(Preview { width: out_w, height: out_h, rgb })
}

/// Places of objects in a mask beside the background; also beside another object, where each has a number of its own.
fn outline(mask: &[f32], width: usize, are_numbers: bool) -> Vec<usize> {
    let is_edge = |place: usize| {
        let x = place % width;
        let beside = [
            (x > 0).then(|| place - 1),
            (x + 1 < width).then_some(place + 1),
            place.checked_sub(width),
            Some(place + width).filter(|below| *below < mask.len()),
        ];
        let value = mask[place];
        let ends = |other: usize| mask[other] <= 0.0 || are_numbers && mask[other] != value;
        value > 0.0 && beside.into_iter().flatten().any(ends)
    };
    (0..mask.len()).filter(|&place| is_edge(place)).collect()
}

/// Draws the first `count` rows, each with a caption.
///
/// # Errors
/// As [`preview`].
pub fn first(store: &dyn Store, count: usize, max_side: usize) -> Result<Vec<(String, Preview)>> {
    let captioned = |row| Ok((format!("row {row}: {}", store.name(row)?), preview(store, row, max_side)?));
    (0..store.len().min(count)).map(captioned).collect()
}

/// Joins previews of several rows into one sheet of `columns` columns with a thin gap.
pub fn contact_sheet(pictures: &[Preview], columns: usize) -> Preview {
    const GAP: usize = 4;
    let columns = columns.clamp(1, pictures.len().max(1));
    let cell_w = pictures.iter().map(|p| p.width).max().unwrap_or(1);
    let cell_h = pictures.iter().map(|p| p.height).max().unwrap_or(1);
    let rows = pictures.len().div_ceil(columns).max(1);
    let (width, height) = (columns * (cell_w + GAP) + GAP, rows * (cell_h + GAP) + GAP);
    let mut rgb = vec![24u8; width * height * 3];
    for (i, picture) in pictures.iter().enumerate() {
        let x0 = GAP + (i % columns) * (cell_w + GAP);
        let y0 = GAP + (i / columns) * (cell_h + GAP);
        for (y, line) in picture.rgb.chunks_exact(picture.width * 3).enumerate() {
            let at = ((y0 + y) * width + x0) * 3;
            rgb[at..at + line.len()].copy_from_slice(line);
        }
    }
    Preview { width, height, rgb }
}

impl Preview {
    /// Encodes as PNG.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let (width, height) = (self.width as u32, self.height as u32);
        let picture = Picture { width, height, color: ColorType::Rgb, depth: BitDepth::Eight };
        let mut bytes = Vec::new();
        picture
            .encode(&mut bytes, DeflateCompression::FdeflateUltraFast, &self.rgb)
            .map_err(|e| Error::new("preview.png", format_args!("cannot encode the picture: {e}")))?;
        Ok(signed(&bytes))
    }
}

/// Length of a PNG's signature and of its first chunk, which holds its size.
const HEAD: usize = 33;
/// Type and data of the chunk that says who has drawn a picture.
const DRAWN_BY: &[u8] = b"tEXtSoftware\0wellread";

/// The chunk that says who has drawn a picture.
fn signature() -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(DRAWN_BY);
    let length = DRAWN_BY.len() as u32 - 4;
    [&length.to_be_bytes()[..], DRAWN_BY, &crc.sum().to_be_bytes()].concat()
}

/// A PNG with the note that wellread has drawn it.
fn signed(png: &[u8]) -> Vec<u8> {
    let (head, rest) = png.split_at(HEAD.min(png.len()));
    [head, &signature(), rest].concat()
}

/// Whether the file is a PNG as [`Preview::to_png`] makes it.
pub fn is_drawn(path: &Path) -> bool {
    let signature = signature();
    let mut begin = vec![0; HEAD + signature.len()];
    let read = place::open(path).and_then(|(file, _)| file.peek_exact_at(&mut begin, 0));
    read.is_ok() && begin.starts_with(b"\x89PNG\r\n\x1a\n") && begin.ends_with(&signature)
}

/// The red, green and blue that a channel is stated to be drawn in. White and black are what writers put when they do not know.
pub(crate) fn own_color(channel: &Channel) -> Option<u32> {
    channel.color_rgba.map(|rgba| rgba >> 8).filter(|rgb| ![0x00FF_FFFF, 0].contains(rgb))
}

fn channel_color(channel: Option<&Channel>, index: usize) -> [f32; 3] {
    match channel.and_then(own_color) {
        Some(rgb) => [16, 8, 0].map(|shift| f32::from((rgb >> shift) as u8) / 255.0),
        None => PALETTE[index % PALETTE.len()],
    }
}

/// Area-averages a plane by `step` and keeps the larger of the result and what `out` holds. A place without a finite value
/// changes nothing.
fn shrink_max(pixels: &[u8], dtype: PixelType, [height, width]: [usize; 2], step: usize, out: &mut [f32]) {
    let out_w = width.div_ceil(step);
    let mut sums = vec![(0f64, 0u32); out_w];
    for (oy, out_line) in out.chunks_exact_mut(out_w).enumerate() {
        sums.fill((0.0, 0));
        for y in oy * step..((oy + 1) * step).min(height) {
            for x in 0..width {
                let value = dtype.value_at(pixels, y * width + x);
                if value.is_finite() {
                    let (sum, n) = &mut sums[x / step];
                    *sum += value;
                    *n += 1;
                }
            }
        }
        for (o, (sum, n)) in out_line.iter_mut().zip(&sums) {
            if *n > 0 {
                *o = o.max((sum / f64::from(*n)) as f32);
            }
        }
    }
}

/// Percentiles of the finite values; 0 where there are none.
fn percentiles(values: &[f32], at: [f64; 2]) -> [f32; 2] {
    let mut sorted: Vec<f32> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f32::total_cmp);
    at.map(|p| sorted.get(((sorted.len().max(1) - 1) as f64 * p).round() as usize).copied().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImageView, OpenOptions, WriteOptions, create, open};
    use wellread_image::{Channel, ImageMetadata, Shape};

    /// The grey levels of an image of one row of numbers.
    fn levels(values: &[f32]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.parquet");
        let pixels: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let (metadata, shape) = (ImageMetadata::named("one"), Shape::plane(1, values.len()));
        let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::F32, pixels: &pixels })
            .unwrap();
        writer.finish().unwrap();
        let store = open(&path, &OpenOptions::default()).unwrap();
        preview(&*store, 0, 64).unwrap().rgb.chunks_exact(3).map(|rgb| rgb[0]).collect()
    }

    #[test]
    fn places_without_a_number_are_black_and_change_no_contrast() {
        assert_eq!(levels(&[f32::NAN, 1000.0, 1010.0, f32::NAN]), [0, 0, 255, 0]);
        assert_eq!(levels(&[-20.0, f32::NAN, -10.0, f32::INFINITY]), [0, 0, 255, 0]);
        assert_eq!(levels(&[f32::NAN; 3]), [0, 0, 0]);
    }

    /// It was painted over each nucleus, so that no stain could be seen.
    #[test]
    fn a_mask_beside_stains_is_an_outline() {
        let draw = |second: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("one.parquet");
            // The middle of 5 x 5 pixels is stained, and the mask is the 3 x 3 pixels around it.
            let mut pixels = vec![0u8; 50];
            pixels[12] = 10;
            for place in [6, 7, 8, 11, 12, 13, 16, 17, 18] {
                pixels[25 + place] = 1;
            }
            let channel = |name: &str| Channel { name: name.to_owned(), ..Channel::default() };
            let channels = vec![channel("DNA"), channel(second)];
            let metadata = ImageMetadata { channels, ..ImageMetadata::named("one") };
            let (shape, dtype) = (Shape([1, 2, 1, 5, 5]), PixelType::U8);
            let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
            writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
            writer.finish().unwrap();
            let store = open(&path, &OpenOptions::default()).unwrap();
            preview(&*store, 0, 64).unwrap().rgb
        };
        let drawn = draw("mask");
        let places = |is: &dyn Fn(&[u8]) -> bool| -> Vec<usize> {
            drawn.chunks_exact(3).enumerate().filter(|(_, rgb)| is(rgb)).map(|(place, _)| place).collect()
        };
        assert_eq!(places(&|rgb| rgb[1] > 200), [6, 7, 8, 11, 13, 16, 17, 18]);
        assert_eq!(places(&|rgb| rgb == [51, 115, 255]), [12], "the stain alone");
        // A stain is added as before.
        assert_ne!(draw("ER")[36..39], [51, 115, 255]);
        // Two objects that touch.
        assert_eq!(outline(&[1.0, 1.0, 2.0, 2.0, 0.0], 5, true), [1, 2, 3]);
        assert_eq!(outline(&[1.0, 1.0, 0.5, 0.0, 0.0], 5, false), [2]);
    }
}
