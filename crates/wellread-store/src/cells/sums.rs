//! Area and centroid of each label of a label image, in one pass over its pixels.

use std::collections::BTreeMap;
use wellread_image::{PixelType, Shape};

/// Labels that are expected at most: more are no cells but another kind of image.
const MAX_LABELS: usize = 10_000_000;

/// Pixels of a label: how many, and the sums of their rows and columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub pixels: u64,
    y: u64,
    x: u64,
}

impl Sums {
    /// The row and column of the centroid.
    pub fn centre(&self) -> [f64; 2] {
        [self.y, self.x].map(|sum| sum as f64 / self.pixels as f64)
    }
}

/// The labels of an image, in ascending order: whole numbers above 0, since 0 and negative numbers are what is no cell.
///
/// # Errors
/// A pixel that is no whole number, or more labels than an image of cells has.
pub(super) fn sums(shape: Shape, dtype: PixelType, pixels: &[u8]) -> Result<BTreeMap<i64, Sums>, String> {
    let mut found: BTreeMap<i64, Sums> = BTreeMap::new();
    let (height, width) = (shape.y(), shape.x());
    for row in 0..shape.planes() * height {
        let mut x = 0;
        while x < width {
            let value = dtype.value_at(pixels, row * width + x);
            // Labels come in runs: one look into the map for each.
            let start = x;
            while x < width && dtype.value_at(pixels, row * width + x).to_bits() == value.to_bits() {
                x += 1;
            }
            if value == 0.0 {
                continue;
            }
            if value.fract() != 0.0 || value.abs() > 9_007_199_254_740_992.0 {
                return Err(format!("the pixel value {value} is no label: labels are whole numbers"));
            }
            // Background too: OpenCV's watershed writes -1 between cells.
            if value < 0.0 {
                continue;
            }
            let sums = found.entry(value as i64).or_default();
            let run = (x - start) as u64;
            sums.pixels += run;
            sums.y += run * (row % height) as u64;
            // From `start` to `x - 1`.
            sums.x += run * (start + x - 1) as u64 / 2;
        }
        if found.len() > MAX_LABELS {
            return Err(format!("more than {MAX_LABELS} labels: it is no label image"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centroids_are_means_of_pixel_positions() {
        // Rows 0 to 2 of columns 0 to 4.
        let pixels = [0, 1, 1, 1, 0, 7, 1, 0, 7, 7, 0, 0, 0, 7, 7];
        let found = sums(Shape::plane(3, 5), PixelType::U8, &pixels).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1, 7]);
        assert_eq!(found[&1], Sums { pixels: 4, y: 1, x: 1 + 2 + 3 + 1 });
        assert_eq!(found[&7], Sums { pixels: 5, y: 1 + 1 + 1 + 2 + 2, x: 3 + 4 + 3 + 4 });
        assert_eq!(found[&7].centre(), [7.0 / 5.0, 14.0 / 5.0]);
        let two = [1, 0, 0, 1];
        assert_eq!(
            sums(Shape([2, 1, 1, 1, 2]), PixelType::U8, &two).unwrap()[&1],
            Sums { pixels: 2, y: 0, x: 1 }
        );
        let lines: Vec<u8> = [5i16, -1, -1, 0, 9].iter().flat_map(|label| label.to_le_bytes()).collect();
        let found = sums(Shape::plane(1, 5), PixelType::I16, &lines).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [5, 9]);
        let half = 0.5f32.to_le_bytes();
        assert!(sums(Shape::plane(1, 1), PixelType::F32, &half).unwrap_err().contains("0.5 is no label"));
    }
}
