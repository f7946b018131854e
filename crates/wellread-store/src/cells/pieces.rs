//! Images that are no label images. In a binary mask, a few values stand for all cells. In an image of brightness, each of many values
//! is scattered, and its pieces lie side by side. Parts of cells that have the numbers of their cells lie apart. Maps of several
//! classes are told by `classes`.
//!
//! ```text
//!  labels of an image ─ FewValues::observe ─▶ one value in all images, in pieces apart ─────────┬─▶ refusal
//!                                    ├──▶ a few values, and many more pieces than values ──┤
//!  pixels of an image ─ brightness ──┴──▶ many values, and many more pieces than values, ──┘
//!                                         which lie side by side
//! ```

use super::components::{Components, Extent};
use std::collections::BTreeSet;
use wellread_image::{PixelType, Shape};

/// A piece counts where it has a quarter of the pixels of the largest one at least: crumbs of a cell are no cells.
const LEAST_SHARE: usize = 4;

/// Values of a set of label images at most that may be a mask's: one, and strays beside it, or classes of pixels.
pub(super) const MAX_MASK_VALUES: usize = 3;

/// Values of an image at most that may be classes.
pub(super) const MAX_CLASSES: usize = 32;

/// So many pieces for each value of an image are cells without numbers. Fewer may be cells that are cut up.
const PIECES_PER_VALUE: usize = 4;

/// So many pieces for each of many values of an image are pixels of one brightness: labels are in one or a few.
const PIECES_OF_BRIGHTNESS: usize = 16;

/// So many pixels a piece has at least on average where labels lie side by side. Pieces of brightness in 16 bits have one or two.
const LEAST_AREA: usize = 4;

/// So many pixels tell brightness from labels: a plane of a usual camera, and what is remembered of noise stays small.
const MAX_PIXELS: usize = 1 << 21;

/// Whether all label images that were seen hold a few values alone, and the first in which these are of more cells than values.
#[derive(Debug, Default)]
pub(super) struct FewValues {
    values: BTreeSet<i64>,
    /// The first image whose only value is in several pieces, and the first whose values are in many more pieces than there are values.
    several: Option<ScatteredLabels>,
    many: Option<ScatteredLabels>,
}

/// A label image whose few values are in several pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScatteredLabels {
    /// Its row.
    pub row: usize,
    /// The values.
    pub values: Vec<i64>,
    /// How many pieces a plane of it has.
    pub pieces: usize,
}

impl FewValues {
    /// Takes the labels of the label image in `row` into account; `pieces` counts its pieces, and is asked as seldom as can be.
    pub fn observe(&mut self, row: usize, labels: impl Iterator<Item = i64>, pieces: impl FnOnce() -> usize) {
        if self.values.len() > MAX_MASK_VALUES {
            return;
        }
        let values: Vec<i64> = labels.take(MAX_MASK_VALUES + 1).collect();
        self.values.extend(&values);
        if values.is_empty() || self.values.len() > MAX_MASK_VALUES || self.many.is_some() {
            return;
        }
        let apart = ScatteredLabels { row, pieces: pieces(), values };
        if apart.pieces >= PIECES_PER_VALUE * apart.values.len() {
            self.many = Some(apart.clone());
        }
        if self.several.is_none() && apart.pieces > 1 {
            self.several = Some(apart);
        }
    }

    /// The first image that shows that these are binary masks; `None` where they are label images as far as can be told.
    pub fn binary(&self) -> Option<&ScatteredLabels> {
        match self.values.len() {
            0 | 1 => self.several.as_ref(),
            n if n <= MAX_MASK_VALUES => self.many.as_ref(),
            _ => None,
        }
    }
}

/// The plane in the middle of an image, of which the first rows tell what kind of image it is.
#[derive(Debug)]
pub(super) struct MiddlePlane {
    found: Components,
    height: usize,
    width: usize,
}

impl MiddlePlane {
    pub fn of(shape: Shape, dtype: PixelType, pixels: &[u8]) -> Self {
        let (width, first) = (shape.x(), shape.planes() / 2 * shape.y() * shape.x());
        let height = (MAX_PIXELS / width.max(1)).max(1).min(shape.y());
        // Background as in `sums`, which has refused what is no whole number.
        let label = |i: usize| dtype.value_at(pixels, first + i).max(0.0) as i64;
        Self { found: Components::find([1, height, width], label), height, width }
    }

    /// The values and the pieces in which they lie, where these are brightness. It is `None` where they may be labels, or where
    /// `is_mask`, a mask of cells. Pixels of one value that touch, also at a corner, are of one piece.
    pub fn brightness(&self, is_mask: bool) -> Option<ScatteredValues> {
        let found = &self.found;
        let ((pieces, values), area) = (found.count(), found.area());
        let is_brightness = if is_mask {
            // A mask has background, where that of an image is dark and not 0. A mask that was compressed may have many values at edges.
            100 * area > 99 * self.height * self.width
        } else {
            let are_small = area < LEAST_AREA * pieces;
            (pieces >= PIECES_OF_BRIGHTNESS * values || are_small) && found.lie_side_by_side()
        };
        (values > MAX_MASK_VALUES && is_brightness).then_some(ScatteredValues { values, pieces })
    }

    /// The values and the pieces in which they lie, where these may be classes. Most of the values are then in many pieces of about
    /// one size, all over the image. It is `None` where they are labels, or one value, which tells nothing.
    pub fn classes(&self) -> Option<ScatteredValues> {
        let (pieces, values) = self.found.count();
        // The pieces of most labels are seldom counted: there are hardly more of them than labels.
        if !(2..=MAX_CLASSES).contains(&values) || 2 * pieces < PIECES_PER_VALUE * values {
            return None;
        }
        let extents = self.found.extents(LEAST_SHARE);
        // Pieces of a cell that is cut up lie where the cell is.
        let is_class = |extent: &&Extent| {
            let area = extent.rows.len() * extent.columns.len();
            extent.pieces >= PIECES_PER_VALUE && 2 * area >= self.height * self.width
        };
        let classes = extents.iter().filter(is_class).count();
        (2 * classes > values).then_some(ScatteredValues { values, pieces })
    }
}

/// Values of an image, each of them in many pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScatteredValues {
    /// How many values.
    pub values: usize,
    /// In how many pieces these are.
    pub pieces: usize,
}

/// How many pieces of about one size the pixels above 0 make, in the plane that has most. Pixels that touch at a corner are of
/// one piece.
pub(super) fn pieces(shape: Shape, dtype: PixelType, pixels: &[u8]) -> usize {
    let (height, width) = (shape.y(), shape.x());
    let of_plane = |plane: usize| {
        let first = plane * height * width;
        let is_set = |i: usize| i64::from(dtype.value_at(pixels, first + i) > 0.0);
        let sizes = Components::find([1, height, width], is_set).sizes();
        let largest = sizes.iter().copied().max().unwrap_or(0);
        sizes.iter().filter(|&&size| size >= largest / LEAST_SHARE as u64).count()
    };
    (0..shape.planes()).map(of_plane).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(height: usize, rows: &[&str]) -> usize {
        let width = rows[0].len();
        let pixels: Vec<u8> = rows.concat().bytes().map(|byte| if byte == b'.' { 0 } else { 255 }).collect();
        pieces(Shape([rows.len() / height, 1, 1, height, width]), PixelType::U8, &pixels)
    }

    #[test]
    fn pieces_are_what_touches() {
        assert_eq!(count(3, &["##..##", "##..##", "......"]), 2);
        assert_eq!(count(3, &["##..##", "##..##", ".####."]), 1, "joined below");
        assert_eq!(count(2, &["##..", "..##"]), 1, "a corner");
        assert_eq!(count(3, &["#.#.#", "#.#.#", "#.#.#"]), 3);
        assert_eq!(count(3, &["#.#.#", "#####", "#.#.#"]), 1);
        assert_eq!(count(2, &["....", "...."]), 0);
        // A crumb beside a cell of nine pixels.
        assert_eq!(count(3, &["###..", "###..", "###.#"]), 1);
        // One cell in each of two time points.
        assert_eq!(count(2, &["##....", "##....", "....##", "....##"]), 1);
    }

    fn seen(images: &[(&[i64], usize)]) -> Option<ScatteredLabels> {
        let mut values = FewValues::default();
        for (row, (labels, pieces)) in images.iter().enumerate() {
            values.observe(row, labels.iter().copied(), || *pieces);
        }
        values.binary().cloned()
    }

    #[test]
    fn one_value_in_pieces_is_a_mask() {
        let apart =
            |row, values: &[i64], pieces| Some(ScatteredLabels { row, values: values.into(), pieces });
        assert_eq!(seen(&[(&[255], 1), (&[], 0), (&[255], 24)]), apart(2, &[255], 24));
        assert_eq!(seen(&[(&[255], 2), (&[255], 24)]), apart(0, &[255], 2));
        assert_eq!(seen(&[(&[1], 1), (&[1], 1)]), None, "a cell each");
        assert_eq!(seen(&[(&[1], 3), (&[1, 2], 2)]), None);
        assert_eq!(seen(&[(&[1], 3), (&[2], 1)]), None);
    }

    #[test]
    fn a_stray_value_makes_no_labels_of_a_mask() {
        let apart =
            |row, values: &[i64], pieces| Some(ScatteredLabels { row, values: values.into(), pieces });
        assert_eq!(seen(&[(&[254, 255], 24)]), apart(0, &[254, 255], 24));
        assert_eq!(seen(&[(&[255], 3), (&[255], 24), (&[254, 255], 2)]), apart(1, &[255], 24));
        // Classes of pixels, such as nucleus and cytoplasm.
        assert_eq!(seen(&[(&[1, 2, 3], 12)]), apart(0, &[1, 2, 3], 12));
        // A few cells, some of them cut up; and labels, however many pieces they are in.
        assert_eq!(seen(&[(&[1, 2], 5), (&[1, 2, 3], 3)]), None);
        assert_eq!(seen(&[(&[1, 2], 24), (&[3, 4], 2)]), None);
        assert_eq!(seen(&[(&[1, 2, 3, 4], 40)]), None);
    }
    /// A plane of 64 x 64 pixels, of which `value` tells by row and column.
    fn plane(value: impl Fn(usize, usize) -> u8) -> (Shape, Vec<u8>) {
        let pixels = (0..64 * 64).map(|i| value(i / 64, i % 64)).collect();
        (Shape::plane(64, 64), pixels)
    }

    #[test]
    fn many_values_that_are_scattered_are_brightness() {
        let found = |(shape, pixels): (Shape, Vec<u8>)| {
            MiddlePlane::of(shape, PixelType::U8, &pixels).brightness(false)
        };
        // Noise of 20 values: of 64 x 64 pixels, hardly two of one value touch.
        let noise =
            |y: usize, x: usize| ((y * 64 + x) as u32).wrapping_mul(2_654_435_761).rotate_left(9) as u8 % 20;
        let seen = found(plane(noise)).unwrap();
        assert_eq!(seen.values, 19);
        assert!(seen.pieces >= 16 * 19, "{seen:?}");
        // 64 cells side by side, and 16 that are cut by lines of background into four pieces each.
        assert_eq!(found(plane(|y, x| (y / 8 * 8 + x / 8 + 1) as u8)), None);
        let cut = |y: usize, x: usize| if y % 4 == 3 { 0 } else { (y / 16 * 4 + x / 16 + 1) as u8 };
        assert_eq!(found(plane(cut)), None);
        // Spots of a pixel, each with a number; a mask in many pieces is another's to tell.
        assert_eq!(
            found(plane(|y, x| if y % 4 + x % 4 == 0 { (y / 4 * 16 + x / 4) as u8 } else { 0 })),
            None
        );
        // 16 cells, of which spots alone are set, 25 or more in each.
        let spots = |y: usize, x: usize| if y % 3 + x % 3 == 0 { (y / 16 * 4 + x / 16 + 1) as u8 } else { 0 };
        assert_eq!(found(plane(spots)), None);
        assert_eq!(found(plane(|y, x| u8::from(y % 2 + x % 2 == 0) * 255)), None);
        assert_eq!(found(plane(|_, _| 0)), None);
    }

    #[test]
    fn values_all_over_an_image_may_be_classes() {
        let found =
            |(shape, pixels): (Shape, Vec<u8>)| MiddlePlane::of(shape, PixelType::U8, &pixels).classes();
        // 64 squares of 4 x 4 pixels, in the cells of a grid.
        let square = |y: usize, x: usize| (y % 8 < 4 && x % 8 < 4).then_some((y / 8, x / 8));
        let by = |number: fn(usize, usize) -> usize| {
            plane(move |y, x| square(y, x).map_or(0, |(row, column)| number(row, column) as u8))
        };
        let classes = Some(ScatteredValues { values: 5, pieces: 64 });
        assert_eq!(found(by(|row, column| (3 * row + column) % 5 + 1)), classes);
        // A number for each, and 16 cells that are cut into four pieces each.
        assert_eq!(found(by(|row, column| row * 8 + column + 1)), None);
        assert_eq!(found(by(|row, column| row / 2 * 4 + column / 2 + 1)), None);
        // One class, of which pieces may be those of a cell; and more values than there are classes.
        assert_eq!(found(by(|_, _| 1)), None);
        assert_eq!(found(by(|row, column| (row * 8 + column) % 40 + 1)), None);
        // One of three cells that was cut up all over the image.
        assert_eq!(found(by(|row, column| if row > 0 { 1 } else { column / 4 + 2 })), None);
    }

    #[test]
    fn a_stack_is_judged_by_the_plane_in_its_middle() {
        let (shape, noise) =
            plane(|y, x| ((y * 64 + x) as u32).wrapping_mul(2_654_435_761).rotate_left(9) as u8);
        let empty = vec![0; noise.len()];
        let stack = Shape([1, 1, 3, shape.y(), shape.x()]);
        let found = |planes: [&[u8]; 3]| {
            MiddlePlane::of(stack, PixelType::U8, &planes.concat()).brightness(false).is_some()
        };
        assert!(found([&empty, &noise, &empty]));
        assert!(!found([&noise, &empty, &empty]));
    }

    #[test]
    fn brightness_of_many_values_is_told_by_the_size_of_pieces() {
        // 48 x 48 pixels of 16 bits: nearly as many values as pixels.
        let shape = Shape::plane(48, 48);
        let deep = |i: u32| (i.wrapping_mul(2_654_435_761) >> 17) as u16 + 100;
        let pixels: Vec<u8> = (0..48 * 48).flat_map(|i| deep(i).to_le_bytes()).collect();
        let seen = MiddlePlane::of(shape, PixelType::U16, &pixels).brightness(false).unwrap();
        assert!(seen.pieces < PIECES_OF_BRIGHTNESS * seen.values, "{seen:?}");
        // In the place of masks, too: it has no background. A mask that was compressed has it.
        assert_eq!(MiddlePlane::of(shape, PixelType::U16, &pixels).brightness(true), Some(seen));
        let edge = |i: u32| {
            if i % 48 < 20 {
                0
            } else if i % 48 < 28 {
                deep(i)
            } else {
                255
            }
        };
        let mask: Vec<u8> = (0..48 * 48).flat_map(|i| edge(i).to_le_bytes()).collect();
        assert_eq!(MiddlePlane::of(shape, PixelType::U16, &mask).brightness(true), None);
        // Cells of four pixels without a gap.
        let cells: Vec<u8> =
            (0..48 * 48u32).flat_map(|i| ((i / 96 * 24 + i % 48 / 2 + 1) as u16).to_le_bytes()).collect();
        assert_eq!(MiddlePlane::of(shape, PixelType::U16, &cells).brightness(false), None);
    }
}
