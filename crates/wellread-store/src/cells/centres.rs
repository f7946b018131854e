//! Whether the numbers of cells are those of the label images: by the labels that lie under some of the cells' positions.
//!
//! A column of other numbers, as those of the parents, has labels of the same image: of cells nearby, or of none.

use super::cell_positions::CellPositions;
use super::components::labelled;
use super::edge::CellBox;
use super::sums::sums;
use super::table::CellTable;
use crate::surface::{option, option_as};
use crate::words::counted;
use crate::{Error, Result, RowInfo, Scratch, Store, read_region};
use std::collections::BTreeMap;
use std::path::Path;
use wellread_image::{PixelType, Shape};

/// Positions on a label that are enough to tell.
const ENOUGH_POSITIONS: usize = 10;
/// Label images that are read at most.
const MOST_IMAGES: usize = 4;
/// Bytes of such a label image at most: one of a whole slide would fill the memory.
const MAX_IMAGE_BYTES: usize = 256 << 20;
/// Positions on labels of others that are no chance, as of a cell that is bent around another.
const FEWEST_OTHERS: usize = 3;
/// So many pixels from the centroid of a label, in rows and in columns, a position is that label's.
const MAX_FROM_CENTROID: f64 = 1.0;

/// The cells that are in images, and their table.
pub(super) struct PlacedCells<'a> {
    pub table: &'a CellTable,
    /// Where each is cut out, its row of the table, and its number in its image.
    pub boxes: &'a [CellBox],
    pub rows: &'a [usize],
    pub ids: &'a [i64],
    /// Where the table has positions and numbers.
    pub positions: &'a CellPositions,
}

/// Label images, and which of them is of each image.
pub(super) struct LabelImages<'a> {
    pub store: &'a dyn Store,
    pub path: &'a Path,
    pub rows: &'a [Option<usize>],
    pub are_binary: bool,
}

/// A label image in memory.
struct Labels {
    shape: Shape,
    dtype: PixelType,
    pixels: Vec<u8>,
}

/// Checks that most of the cells of the first images lie on the label of their own number. Those on no label, nor in the hole
/// of one, do not count. The centroid of a cell that is bent around others may lie on those, and is its own nevertheless. Very large
/// label images are not looked at.
///
/// # Errors
/// Most of them lie on labels of other cells.
pub(super) fn check(cells: &PlacedCells<'_>, images: &LabelImages<'_>) -> Result<()> {
    let positions = cells.positions;
    let Some((column, _)) = &positions.labels else { return Ok(()) };
    let (mut seen, mut others, mut first, mut is_one_label) = (0, 0, None, true);
    for image in first_images(cells.boxes) {
        // One that cannot be read is an error where its cells are read.
        let Some(row) = images.rows[image] else { continue };
        let Ok(Some(labels)) = Labels::read(images, row) else { continue };
        let mut centres: Option<BTreeMap<i64, [f64; 2]>> = None;
        let of_image = (0..cells.boxes.len()).filter(|&cell| cells.boxes[cell].image == image);
        for cell in of_image {
            let (number, of_table) = (cells.ids[cell], cells.rows[cell]);
            let position = [positions.y[of_table], positions.x[of_table]];
            let Some(label) = labels.at(position, number) else { continue };
            seen += 1;
            if label == number as f64 {
                continue;
            }
            let own = centres.get_or_insert_with(|| labels.centres()).get(&number);
            if own.is_some_and(|own| is_near(*own, position)) {
                continue;
            }
            others += 1;
            let (_, _, _, one) = *first.get_or_insert((row, of_table, number, label));
            is_one_label &= label == one;
        }
        if seen >= ENOUGH_POSITIONS {
            break;
        }
    }
    let Some((row, of_table, number, label)) = first else { return Ok(()) };
    if others < FEWEST_OTHERS || 2 * others <= seen {
        return Ok(());
    }
    let cause = format!(
        "{others} of {} lie on labels of other cells. Row {of_table} of the table is cell {number} (column {column:?}), \
         and at its position is label {label}",
        counted(seen, "cell")
    );
    let binary = if is_one_label && others == seen && !images.are_binary {
        format!(
            "where binary masks have that value for all cells, have their pieces numbered ({}); else ",
            option_as("cells.label_masks", "true")
        )
    } else {
        String::new()
    };
    Err(Error::new(images.path, cause).row(row).choice().hint(format_args!(
        "{binary}name the column of label numbers ({}), and check those of positions ({}, {}); {} takes cells as they \
         are",
        option("cells.label"),
        option("cells.x"),
        option("cells.y"),
        option_as("cells.unmatched", "skip")
    )))
}

/// Whether a position is at a centroid.
fn is_near(centroid: [f64; 2], position: [f64; 2]) -> bool {
    centroid.iter().zip(position).all(|(own, at)| (own - at).abs() <= MAX_FROM_CENTROID)
}

/// The first images that have cells.
fn first_images(boxes: &[CellBox]) -> Vec<usize> {
    let mut images = vec![];
    for cell in boxes {
        if !images.contains(&cell.image) {
            images.push(cell.image);
        }
        if images.len() == MOST_IMAGES {
            break;
        }
    }
    images
}

/// Whether a label image is small enough to be read whole.
fn is_small(info: RowInfo) -> bool {
    info.shape.checked_bytes(info.dtype).is_ok_and(|bytes| bytes <= MAX_IMAGE_BYTES)
}

impl Labels {
    /// The label image in a row; `None` where it is too large.
    ///
    /// # Errors
    /// One that cannot be read, or is no label image.
    fn read(images: &LabelImages<'_>, row: usize) -> Result<Option<Self>> {
        let info = images.store.row_info(row)?;
        if !is_small(info) {
            return Ok(None);
        }
        let (mut scratch, mut pixels) = (Scratch::default(), vec![]);
        read_region(images.store, row, &info.shape.full(), &mut scratch, &mut pixels)?;
        if !images.are_binary {
            return Ok(Some(Self { shape: info.shape, dtype: info.dtype, pixels }));
        }
        let numbered =
            labelled(info.shape, info.dtype, &pixels).map_err(|cause| Error::new(images.path, cause))?;
        Ok(Some(Self { shape: info.shape, dtype: PixelType::U32, pixels: numbered }))
    }

    /// The centroid of each label; none where it is no label image, which is an error where its cells are read.
    fn centres(&self) -> BTreeMap<i64, [f64; 2]> {
        let found = sums(self.shape, self.dtype, &self.pixels).unwrap_or_default();
        found.into_iter().map(|(number, label)| (number, label.centre())).collect()
    }

    /// The label at a position in the image: that of this number where a plane has it there, else the first one.
    fn at(&self, position: [f64; 2], number: i64) -> Option<f64> {
        let [y, x] = position.map(|at| (at + 0.5).floor() as usize);
        if y >= self.shape.y() || x >= self.shape.x() {
            return None;
        }
        let mut found = None;
        for value in (0..self.shape.planes()).filter_map(|plane| self.of_plane(plane, y, x)) {
            if value == number as f64 {
                return Some(value);
            }
            found.get_or_insert(value);
        }
        found
    }

    /// The label at a pixel of a plane, or the one that surrounds it: a nucleus lies in the hole of its cytoplasm. Negative
    /// numbers are background, as 0 is.
    fn of_plane(&self, plane: usize, y: usize, x: usize) -> Option<f64> {
        let (height, width) = (self.shape.y(), self.shape.x());
        let label = |y: usize, x: usize| {
            let value = self.dtype.value_at(&self.pixels, (plane * height + y) * width + x);
            (value > 0.0).then_some(value)
        };
        label(y, x).or_else(|| {
            let left = (0..x).rev().find_map(|x| label(y, x))?;
            let is_left = |value: &f64| *value == left;
            (x + 1..width).find_map(|x| label(y, x)).filter(is_left)?;
            (0..y).rev().find_map(|y| label(y, x)).filter(is_left)?;
            (y + 1..height).find_map(|y| label(y, x)).filter(is_left)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_images_of_whole_slides_are_not_read_whole() {
        let of = |side| RowInfo { shape: Shape::plane(side, side), dtype: PixelType::U16 };
        assert!(is_small(of(2160)) && is_small(of(10_000)) && !is_small(of(20_000)));
    }

    #[test]
    fn the_own_label_counts_in_any_plane() {
        let pixels = vec![0, 7, 0, 0, 0, 4, 3, 0];
        let labels = Labels { shape: Shape([1, 1, 2, 2, 2]), dtype: PixelType::U8, pixels };
        let at = |y, x, number| labels.at([y, x], number);
        assert_eq!(at(0.4, 0.9, 4), Some(4.0));
        assert_eq!(at(0.4, 0.9, 5), Some(7.0));
        assert_eq!(at(0.5, -0.4, 5), Some(3.0));
        assert_eq!(at(0.0, 0.0, 5), None);
        // Beyond the edge.
        assert_eq!((at(1.7, 0.0, 5), at(0.0, 1.5, 5)), (None, None));
    }

    #[test]
    fn a_hole_is_of_the_label_around_it_and_negative_numbers_are_background() {
        let rows = [[0, 5, 5, 5, -1], [0, 5, -1, 5, -1], [0, 5, 0, 5, 6], [0, 5, 5, 5, 6]];
        let pixels = rows.concat().iter().flat_map(|label: &i16| label.to_le_bytes()).collect();
        let labels = Labels { shape: Shape::plane(4, 5), dtype: PixelType::I16, pixels };
        assert_eq!([labels.at([1.0, 2.0], 5), labels.at([2.0, 2.0], 6)], [Some(5.0); 2]);
        // Open on one side at least.
        assert_eq!((labels.at([1.0, 4.0], 5), labels.at([1.0, 0.0], 5)), (None, None));
        assert_eq!(labels.centres()[&6], [2.5, 4.0]);
        assert!(is_near([2.5, 4.0], [1.5, 5.0]) && !is_near([2.5, 4.0], [2.5, 5.1]));
    }
}
