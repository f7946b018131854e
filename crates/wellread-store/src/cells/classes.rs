//! Maps of classes, which are no label images: a value stands for all cells of a class. The same few values come in all images, and
//! each lies in many pieces all over an image.
//!
//! Maps of one to three values are binary masks to `pieces`. A few images of a set may look like classes by chance, as those
//! of bad segmentations; most of them do not.

use super::pieces::{MAX_CLASSES, MAX_MASK_VALUES, MiddlePlane, ScatteredValues};
use std::collections::BTreeSet;

/// Whether most label images that were seen look like maps of the same few classes, and the first that does.
#[derive(Debug, Default)]
pub(super) struct Classes {
    values: BTreeSet<i64>,
    /// Images with two values or more, and those of them that look like classes.
    images: usize,
    alike: usize,
    first: Option<ClassMap>,
}

/// A map of classes: its row, and the values and pieces of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassMap {
    pub row: usize,
    pub seen: ScatteredValues,
}

impl Classes {
    /// Takes the label image in `row` into account, which has these labels.
    pub fn observe(&mut self, row: usize, labels: impl ExactSizeIterator<Item = i64>, plane: &MiddlePlane) {
        if self.values.len() > MAX_CLASSES {
            return;
        }
        let several = labels.len() > 1;
        self.values.extend(labels.take(MAX_CLASSES + 1));
        if !several || self.values.len() > MAX_CLASSES {
            return;
        }
        self.images += 1;
        if let Some(seen) = plane.classes() {
            self.alike += 1;
            self.first.get_or_insert(ClassMap { row, seen });
        }
    }

    /// The first map of classes, where most images are such; `None` where they are label images as far as can be told.
    pub fn first(&self) -> Option<ClassMap> {
        let are_few = (MAX_MASK_VALUES + 1..=MAX_CLASSES).contains(&self.values.len());
        self.first.filter(|_| are_few && 2 * self.alike > self.images)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::{PixelType, Shape};

    /// A plane of 64 squares, of which each has the value of its number: scattered classes or labels.
    fn squares(value: impl Fn(usize) -> u8) -> (Vec<i64>, MiddlePlane) {
        let of_pixel = |i: usize| {
            let (y, x) = (i / 64, i % 64);
            if y % 8 < 4 && x % 8 < 4 { value(y / 8 * 8 + x / 8) } else { 0 }
        };
        let pixels: Vec<u8> = (0..64 * 64).map(of_pixel).collect();
        let values: BTreeSet<i64> =
            pixels.iter().filter(|&&value| value > 0).map(|&value| value.into()).collect();
        (values.into_iter().collect(), MiddlePlane::of(Shape::plane(64, 64), PixelType::U8, &pixels))
    }

    fn seen(images: &[(Vec<i64>, MiddlePlane)]) -> Option<ClassMap> {
        let mut classes = Classes::default();
        for (row, (labels, plane)) in images.iter().enumerate() {
            classes.observe(row, labels.iter().copied(), plane);
        }
        classes.first()
    }

    fn of(classes: usize) -> (Vec<i64>, MiddlePlane) {
        squares(move |square| (square % classes + 1) as u8)
    }

    fn few_cells() -> (Vec<i64>, MiddlePlane) {
        squares(|square| if square < 6 { square as u8 + 1 } else { 0 })
    }

    #[test]
    fn most_images_are_maps_of_the_same_few_classes() {
        let map = |row, values| Some(ClassMap { row, seen: ScatteredValues { values, pieces: 64 } });
        assert_eq!(seen(&[of(5)]), map(0, 5));
        assert_eq!(seen(&[few_cells(), of(5), of(7)]), map(1, 5));
        assert_eq!(seen(&[few_cells(), of(5)]), None, "half of them");
        // An image of one cell, and one of none, tell nothing.
        let one = || squares(|square| u8::from(square == 9));
        assert_eq!(seen(&[one(), squares(|_| 0), of(5), one()]), map(2, 5));
        // Three values are left to what tells binary masks.
        assert_eq!(seen(&[of(3)]), None);
        // The numbers of cells go beyond those of classes.
        let cells = squares(|square| square as u8 + 1);
        assert_eq!(seen(&[of(5), of(5), cells, of(5)]), None);
    }
}
