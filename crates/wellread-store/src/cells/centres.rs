//! Whether the numbers of cells are those of the label images: by the labels that lie under some of the cells' positions.
//!
//! A column of other numbers, as those of the parents, has labels of the same image: of cells nearby, or of none.

use super::components::labelled;
use super::edge::CellBox;
use super::placement::Placement;
use super::table::CellTable;
use crate::surface::{option, option_as};
use crate::words::counted;
use crate::{Error, Result, Scratch, Store, read_region};
use std::path::Path;
use wellread_image::{PixelType, Shape};

/// Positions on a label that are enough to tell.
const ENOUGH_POSITIONS: usize = 10;
/// Label images that are read at most.
const MOST_IMAGES: usize = 4;
/// Positions on labels of others that are no chance, as of a cell that is bent around another.
const FEWEST_OTHERS: usize = 3;

/// The cells that are in images, and their table.
pub(super) struct PlacedCells<'a> {
    pub table: &'a CellTable,
    /// Where each is cut out, its row of the table, and its number in its image.
    pub boxes: &'a [CellBox],
    pub rows: &'a [usize],
    pub ids: &'a [i64],
    /// Where the table has positions and numbers.
    pub placement: &'a Placement,
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

/// Checks that most of the cells of the first images lie on the label of their own number, as far as they lie on one.
///
/// # Errors
/// Most of them lie on labels of other cells.
pub(super) fn check(cells: &PlacedCells<'_>, images: &LabelImages<'_>) -> Result<()> {
    let placement = cells.placement;
    let Some((column, _)) = &placement.labels else { return Ok(()) };
    let (mut seen, mut others, mut first) = (0, 0, None);
    for image in first_images(cells.boxes) {
        // One that cannot be read is an error where its cells are read.
        let Some(row) = images.rows[image] else { continue };
        let Ok(labels) = Labels::read(images, row) else { continue };
        let of_image = (0..cells.boxes.len()).filter(|&cell| cells.boxes[cell].image == image);
        for cell in of_image {
            let (number, of_table) = (cells.ids[cell], cells.rows[cell]);
            let position = [placement.y[of_table], placement.x[of_table]];
            let Some(label) = labels.at(position, number) else { continue };
            seen += 1;
            if label != number as f64 {
                others += 1;
                first.get_or_insert((row, of_table, number, label));
            }
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
    Err(Error::new(images.path, cause).row(row).choice().hint(format_args!(
        "name the column of label numbers ({}), and check those of positions ({}, {}); {} takes cells as they are",
        option("cells.label"),
        option("cells.x"),
        option("cells.y"),
        option_as("cells.unmatched", "skip")
    )))
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

impl Labels {
    /// # Errors
    /// One that cannot be read, or is no label image.
    fn read(images: &LabelImages<'_>, row: usize) -> Result<Self> {
        let info = images.store.row_info(row)?;
        let (mut scratch, mut pixels) = (Scratch::default(), vec![]);
        read_region(images.store, row, &info.shape.full(), &mut scratch, &mut pixels)?;
        if !images.are_binary {
            return Ok(Self { shape: info.shape, dtype: info.dtype, pixels });
        }
        let numbered =
            labelled(info.shape, info.dtype, &pixels).map_err(|cause| Error::new(images.path, cause))?;
        Ok(Self { shape: info.shape, dtype: PixelType::U32, pixels: numbered })
    }

    /// The label at a position in the image: that of this number where a plane has it there, else the first one.
    fn at(&self, position: [f64; 2], number: i64) -> Option<f64> {
        let [y, x] = position.map(|at| (at + 0.5).floor() as usize);
        let (height, width) = (self.shape.y(), self.shape.x());
        if y >= height || x >= width {
            return None;
        }
        let plane = height * width;
        let planes = 0..self.shape.planes();
        let values = planes
            .map(|p| self.dtype.value_at(&self.pixels, p * plane + y * width + x))
            .filter(|v| *v != 0.0);
        let mut found = None;
        for value in values {
            if value == number as f64 {
                return Some(value);
            }
            found.get_or_insert(value);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
