//! Which label image is the mask of each image.

use super::centres::{self, LabelImages, PlacedCells};
use super::options::{CellOptions, Mask, Unmatched};
use super::pairs::pair;
use super::positions::CLASS;
use crate::surface::{option, option_as};
use crate::{Error, OpenOptions, Result, Store, concat};
use std::path::{Path, PathBuf};
use wellread_image::Shape;

/// Label images that are open.
pub(super) struct LabelSets<'a> {
    /// Those that were given to be masks.
    pub masks: Option<&'a dyn Store>,
    /// Those whose labels are the cells, and where they are.
    pub labels: Option<(&'a dyn Store, &'a Path)>,
}

/// Label images that are masks.
#[derive(Debug)]
pub(super) struct MaskRows {
    /// Their use: not [`Mask::None`].
    pub mask: Mask,
    /// The set; of label images that were given open, for messages alone.
    pub path: PathBuf,
    /// For each image the row of its label image, where there is one.
    pub rows: Vec<Option<usize>>,
    /// Whether they are binary masks, whose components are their labels.
    pub are_binary: bool,
    /// Whether a crop without a pixel of its cell is an error. Cells that are the labels themselves are never missing.
    pub has_to_be_seen: bool,
}

impl MaskRows {
    /// The error for a crop without a pixel of its cell. `number` of the cell `name` in row `cell` is not in its box of
    /// the label image in row `row` of `masks`.
    pub fn no_such_label(
        &self,
        masks: &dyn Store,
        row: usize,
        name: &str,
        cell: usize,
        number: i64,
    ) -> Error {
        let label = masks.name(row).unwrap_or_else(|_| format!("in row {row}"));
        let cause = format_args!(
            "the label image {label} has no pixel of label {number} in the box of the cell {name}, row {cell} of the cells"
        );
        Error::new(&self.path, cause).row(row).hint(format_args!(
            "name the column of label numbers ({}), take larger crops where a cell exceeds its box, or have pieces of \
             binary masks numbered ({}). {} takes such crops as they are",
            option("cells.label"),
            option_as("cells.label_masks", "true"),
            option_as("cells.unmatched", "skip")
        ))
    }

    /// The label images of the images that have a cell: those that are open, those that `options` name, or those whose labels the
    /// cells are.
    ///
    /// # Errors
    /// No label images, no numbers of the cells in them, an image without one, or one of another shape. Numbers that are
    /// those of other cells.
    pub fn find(
        images: &dyn Store,
        cells: &PlacedCells<'_>,
        options: &CellOptions,
        sets: &LabelSets<'_>,
    ) -> Result<Self> {
        let table = cells.table;
        let are_labels = options.masks.is_none() && sets.masks.is_none();
        let given = sets.masks.map(|masks| (masks, masks.path()));
        let open = given.or(sets.labels.filter(|_| are_labels));
        let none = || {
            Error::new(&table.path, "a mask needs label images")
                .choice()
                .hint(format_args!("give the set that has one for each image ({})", option("cells.masks")))
        };
        if open.is_none() && options.masks.is_none() {
            return Err(none());
        }
        if cells.positions.labels.is_none() {
            let told = cells.positions.repeated.as_ref().map_or_else(String::new, |rows| {
                format!(". Column {CLASS:?} does not tell it, since {rows}. Leave rows out that are there twice, or")
            });
            let colon = if told.is_empty() { ":" } else { "" };
            return Err(table.choice_error(
                format_args!(
                    "a mask needs the number of each cell in its label image{told}{colon} name its column ({})",
                    option("cells.label")
                ),
                &["number", "label"],
            ));
        }
        let named = options.masks.as_deref().filter(|_| open.is_none());
        let opened = named.map(|path| concat::open(path, &OpenOptions::default())).transpose()?;
        let Some((labels, path)) = open.or(opened.as_deref().zip(named)) else { return Err(none()) };
        let rows = pair(images, labels, &options.by)?;
        let mut last = None;
        for cell in cells.boxes {
            if last.replace(cell.image) == Some(cell.image) {
                continue;
            }
            let image = images.row_info(cell.image)?.shape;
            let Some(row) = rows[cell.image] else {
                let cause = format!("there is no label image of the image {}", images.name(cell.image)?);
                return Err(Error::new(path, cause).hint(format_args!(
                    "begin the name of each label image with that of its image, or of a file of it; or name columns that both have ({})",
                    option("cells.by")
                )));
            };
            let label = labels.row_info(row)?.shape;
            if !is_mask_of(label, image) {
                return Err(of_another_shape(path, row, label, image));
            }
        }
        let has_to_be_seen = options.unmatched == Unmatched::Error && !are_labels;
        let are_binary = options.label_masks;
        if has_to_be_seen {
            let labels = LabelImages { store: labels, path, rows: &rows, are_binary };
            centres::check(cells, &labels)?;
        }
        Ok(Self { mask: options.mask, path: path.to_owned(), rows, are_binary, has_to_be_seen })
    }
}

/// The error of the label image in row `row` of the set at `path`: its shape does not fit that of its image.
pub(super) fn of_another_shape(path: &Path, row: usize, label: Shape, image: Shape) -> Error {
    let cause = format_args!("the label image has shape {label} (TCZYX), and its image {image}");
    Error::new(path, cause).row(row).choice().hint(
        "a label image has the rows and columns of its image, and one channel; of a pyramid, open both at levels of one size",
    )
}

/// Whether a label image of this shape can be a mask of an image: of each time point and plane, or of all.
fn is_mask_of(label: Shape, image: Shape) -> bool {
    let fits = |label: usize, image: usize| label == 1 || label == image;
    label.c() == 1
        && (label.y(), label.x()) == (image.y(), image.x())
        && fits(label.t(), image.t())
        && fits(label.z(), image.z())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_the_planes_of_their_image_or_one() {
        let image = Shape([2, 3, 4, 5, 6]);
        assert!(is_mask_of(Shape([1, 1, 1, 5, 6]), image) && is_mask_of(Shape([2, 1, 4, 5, 6]), image));
        assert!(!is_mask_of(Shape([1, 3, 1, 5, 6]), image) && !is_mask_of(Shape([1, 1, 1, 6, 5]), image));
        assert!(!is_mask_of(Shape([3, 1, 1, 5, 6]), image));
    }
}
