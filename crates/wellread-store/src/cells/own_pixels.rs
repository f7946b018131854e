//! Which pixels of a crop are the cell's own: told by its number in the label image.

use crate::try_alloc;
use wellread_image::{PixelType, Region, clip_runs};

/// For the requests of a read: a byte for each pixel of a cell's box in its label image, 1 where it is the cell's.
#[derive(Debug, Default)]
pub(super) struct OwnPixels {
    bytes: Vec<u8>,
    /// For each request, where it has a box.
    boxes: Vec<Option<MaskBox>>,
    channel: Vec<u8>,
}

/// A cell's box in its label image.
#[derive(Clone, Copy, Debug)]
struct MaskBox {
    region: Region,
    /// Its first byte.
    at: usize,
    /// The cell's number.
    id: i64,
}

impl OwnPixels {
    /// Forgets all boxes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.boxes.clear();
    }

    /// A box for request `request`, of which no pixel is the cell's yet.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn push(&mut self, request: usize, region: &Region, id: i64) -> Result<(), String> {
        let at = self.bytes.len();
        try_alloc::resize(&mut self.bytes, at + region.pixels())?;
        self.boxes.resize(self.boxes.len().max(request + 1), None);
        self.boxes[request] = Some(MaskBox { region: *region, at, id });
        Ok(())
    }

    /// Takes a part of the label image.
    pub fn take(&mut self, request: usize, part: &Region, dtype: PixelType, pixels: &[u8]) {
        let Some(MaskBox { region, at, id }) = self.boxes[request] else { return };
        clip_runs(part, &region, |from, to, n| {
            for k in 0..n {
                self.bytes[at + to + k] = u8::from(dtype.value_at(pixels, from + k) == id as f64);
            }
        });
    }

    /// Whether a pixel in the box of a request is the cell's, by what was taken so far.
    pub fn has_some(&self, request: usize) -> bool {
        self.of(request).is_some_and(|(_, bytes)| bytes.contains(&1))
    }

    /// The box of a request in its label image, and its bytes.
    pub fn of(&self, request: usize) -> Option<(&Region, &[u8])> {
        let MaskBox { region, at, .. } = self.boxes.get(request)?.as_ref()?;
        Some((region, &self.bytes[*at..at + region.pixels()]))
    }

    /// Makes those pixels of a part of the image 0 that are not the cell's.
    pub fn zero_others(&self, request: usize, part: &Region, dtype: PixelType, pixels: &mut [u8]) {
        let Some(mask) = self.boxes.get(request).copied().flatten() else { return };
        let (size, width) = (dtype.size(), part.size[4]);
        for (number, row) in pixels.chunks_exact_mut(width * size).enumerate() {
            let own = self.row(&mask, part, number);
            for (pixel, own) in row.chunks_exact_mut(size).zip(own) {
                if *own == 0 {
                    pixel.fill(0);
                }
            }
        }
    }

    /// The box `part` of the image, in one channel, as pixels: 1 where they are the cell's, 0 elsewhere.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn channel(&mut self, request: usize, part: &Region, dtype: PixelType) -> Result<&[u8], String> {
        let size = dtype.size();
        let mut channel = std::mem::take(&mut self.channel);
        channel.clear();
        try_alloc::resize(&mut channel, part.pixels() * size)?;
        if let Some(mask) = self.boxes.get(request).copied().flatten() {
            let one = one(dtype);
            for (number, row) in channel.chunks_exact_mut(part.size[4] * size).enumerate() {
                for (pixel, own) in row.chunks_exact_mut(size).zip(self.row(&mask, part, number)) {
                    if *own != 0 {
                        pixel.copy_from_slice(&one[..size]);
                    }
                }
            }
        }
        self.channel = channel;
        Ok(&self.channel)
    }

    /// The bytes of row number `number` of a part of the image, which lies in the box but for its planes. A label image
    /// of one time point or plane serves all of them.
    fn row(&self, mask: &MaskBox, part: &Region, number: usize) -> &[u8] {
        let [_, nc, nz, ny, nx] = part.size;
        let (plane, y) = (number / ny, number % ny);
        let (t, z) = (plane / (nc * nz), plane % nz);
        let along = |axis: usize, i: usize| {
            let (start, size) = (mask.region.start[axis], mask.region.size[axis]);
            (part.start[axis] + i).saturating_sub(start).min(size - 1)
        };
        let [_, _, depth, height, width] = mask.region.size;
        let row = (along(0, t) * depth + along(2, z)) * height + along(3, y);
        let first = mask.at + row * width + (part.start[4] - mask.region.start[4]);
        &self.bytes[first..first + nx]
    }
}

/// The number 1 as a pixel, little-endian.
fn one(dtype: PixelType) -> [u8; 8] {
    let mut bytes = [0; 8];
    match dtype {
        PixelType::F32 => bytes[..4].copy_from_slice(&1f32.to_le_bytes()),
        PixelType::F64 => bytes = 1f64.to_le_bytes(),
        _ => bytes[0] = 1,
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::Shape;

    #[test]
    fn pixels_of_others_are_zero_and_the_channel_is_one_where_they_are_the_cells() {
        let mut own = OwnPixels::default();
        // Rows 1 and 2, columns 2 to 4 of the label image.
        let region = Region { start: [0, 0, 0, 1, 2], size: [1, 1, 1, 2, 3] };
        own.push(1, &region, 7).unwrap();
        let labels: Vec<u8> = vec![0, 7, 7, 1, 7, 0];
        assert!(!own.has_some(1));
        own.take(1, &region, PixelType::U8, &labels);
        assert!(own.has_some(1) && !own.has_some(0) && !own.has_some(2));
        assert_eq!(own.of(1), Some((&region, &[0, 1, 1, 0, 1, 0][..])));
        // Two channels of three planes, of the second row alone.
        let part = Region { start: [0, 0, 0, 2, 2], size: [1, 2, 3, 1, 3] };
        let mut pixels: Vec<u8> = (1..=18u16).flat_map(u16::to_le_bytes).collect();
        own.zero_others(1, &part, PixelType::U16, &mut pixels);
        let values: Vec<u16> = pixels.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
        let expected: Vec<u16> = (1..=18).map(|v| if v % 3 == 2 { v } else { 0 }).collect();
        assert_eq!(values, expected);
        let ones = own.channel(1, &region, PixelType::F32).unwrap();
        let ones: Vec<f32> = ones.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        assert_eq!(ones, [0.0, 1.0, 1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn label_images_of_each_plane_are_those_of_their_plane() {
        let mut own = OwnPixels::default();
        let region = Shape([2, 1, 2, 1, 1]).full();
        own.push(0, &region, 1).unwrap();
        own.take(0, &region, PixelType::U8, &[1, 0, 0, 1]);
        let mut pixels = [5; 8];
        own.zero_others(0, &Shape([2, 2, 2, 1, 1]).full(), PixelType::U8, &mut pixels);
        assert_eq!(pixels, [5, 0, 5, 0, 0, 5, 0, 5]);
        assert_eq!(one(PixelType::F64), 1f64.to_le_bytes());
        assert_eq!(one(PixelType::I16)[..2], [1, 0]);
    }
}
