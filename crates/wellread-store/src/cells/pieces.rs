//! Binary masks among label images: a few values stand for every cell of them, so that many cells of an image would be one.
//!
//! ```text
//!  labels of an image ─ FewValues::observe ─▶ one value in all images, in pieces apart ─────────┬─▶ refusal
//!                                    └──▶ a few values, and many more pieces than values ──┘
//! ```

use super::components::Components;
use std::collections::BTreeSet;
use wellread_image::{PixelType, Shape};

/// A piece counts where it has a quarter of the pixels of the largest one at least: crumbs of a cell are no cells.
const LEAST_SHARE: u64 = 4;

/// Values of a set of label images at most that may be a mask's: one, and strays beside it, or classes of pixels.
const MAX_MASK_VALUES: usize = 3;

/// So many pieces for each value of an image are cells without numbers. Fewer may be cells that are cut up.
const PIECES_PER_VALUE: usize = 4;

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

/// How many pieces of about one size the pixels above 0 make, in the plane that has most. Pixels that touch at a corner are of
/// one piece.
pub(super) fn pieces(shape: Shape, dtype: PixelType, pixels: &[u8]) -> usize {
    let (height, width) = (shape.y(), shape.x());
    let of_plane = |plane: usize| {
        let first = plane * height * width;
        let is_set = |i: usize| dtype.value_at(pixels, first + i) > 0.0;
        let sizes = Components::find([1, height, width], is_set).sizes();
        let largest = sizes.iter().copied().max().unwrap_or(0);
        sizes.iter().filter(|&&size| size >= largest / LEAST_SHARE).count()
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
}
