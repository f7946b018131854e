//! The cells of a table in the images of a set: where each is cut out, and what could not be.

use super::centroids;
use super::edge::{CellBox, Placed, place};
use super::found::CellsReport;
use super::keys::{By, image_of};
use super::options::{CellOptions, Mask, Unmatched};
use super::pairs::pair;
use super::placement::Placement;
use super::table::{self, CellTable, TableFile};
use crate::words::counted;
use crate::{Error, OpenOptions, Result, RowInfo, Store, concat, with_columns};
use arrow_array::RecordBatch;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use wellread_image::Shape;

/// Rows and columns of a crop at most: far beyond any cell, and small enough to count its pixels.
const MAX_SIDE: usize = 1 << 20;

/// The cells of a table in the images of a set. Made once; [`super::CellsStore`] reads them.
#[derive(Debug)]
pub struct Cells {
    /// The table.
    pub(super) table: CellTable,
    /// Rows and columns of a crop.
    pub(super) size: [usize; 2],
    /// Where each cell is cut out.
    pub(super) boxes: Vec<CellBox>,
    /// The row of each in the table.
    pub(super) rows: Vec<usize>,
    /// The number of each in its image.
    pub(super) ids: Vec<i64>,
    /// What label images are used for, where they are, and the row of each image's.
    pub(super) masks: Option<MaskRows>,
    report: CellsReport,
}

/// Label images that are masks.
#[derive(Debug)]
pub(super) struct MaskRows {
    /// What they are used for: not [`Mask::None`].
    pub mask: Mask,
    /// The set.
    pub path: PathBuf,
    /// For each image the row of its label image, where there is one.
    pub rows: Vec<Option<usize>>,
    /// Whether a crop without a pixel of its cell is an error. Of cells that are the labels themselves none can be missing.
    pub has_to_be_seen: bool,
}

impl MaskRows {
    /// The error of a crop without a pixel of its cell: `number` of the cell `name` in row `cell` is not in its box of the label image
    /// in row `row` of `masks`.
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
        Error::new(&self.path, cause).row(row).hint(
            "where another column has the numbers of the labels, name it (label); where the cell is larger than its box, take \
             larger crops; unmatched skip takes such crops as they are",
        )
    }
}

impl Cells {
    /// Finds the cells of `path`, a table or a set of label images, in `images`. Reads the columns that this needs, the shape of each
    /// image that has a cell and, of label images, all pixels.
    ///
    /// # Errors
    /// A table that cannot be read or lacks a column; cells that cannot be cut out, unless they may be left out; two cells of one number
    /// in an image; images that are smaller than a crop that is to lie inside; masks that are not of their images.
    pub fn find(images: &dyn Store, path: &Path, options: &CellOptions) -> Result<Self> {
        check_choices(path, options)?;
        let wanted = [&options.x, &options.y, &options.label].into_iter().flatten();
        let wanted: Vec<&str> = wanted.map(String::as_str).collect();
        match table::open(path, &wanted)? {
            TableFile::Labels(store) => {
                let (table, image) = centroids::table(images, &*store, &options.by)?;
                let placement = Placement::of(&table, image, None, &CellOptions::default())?;
                Self::masked(images, table, &placement, options, Some(path.to_owned()))
            }
            TableFile::Columns(table) => Self::of_columns(images, table, options),
        }
    }

    /// The same of a table in memory, by the plain columns of its batches. Errors call it `table`.
    ///
    /// # Errors
    /// As [`Self::find`]; two columns of one name.
    pub fn find_in_memory(
        images: &dyn Store,
        batches: &[RecordBatch],
        options: &CellOptions,
    ) -> Result<Self> {
        let path = Path::new(with_columns::TABLE);
        check_choices(path, options)?;
        let columns = with_columns::whole(batches)?;
        if columns.num_rows() == 0 {
            return Err(Error::new(path, "the table has no rows").choice());
        }
        Self::of_columns(images, CellTable::in_memory(path, columns), options)
    }

    fn of_columns(images: &dyn Store, table: CellTable, options: &CellOptions) -> Result<Self> {
        let by = By::of(images, &table, options)?;
        let keys = (!by.columns().is_empty()).then(|| table.read(by.columns())).transpose()?;
        let none = || RecordBatch::new_empty(std::sync::Arc::new(arrow_schema::Schema::empty()));
        let keys = keys.unwrap_or_else(none);
        let image = image_of(images, &table, &by, &keys)?;
        let placement = Placement::of(&table, image, Some(images), options)?;
        Self::masked(images, table, &placement, options, None)
    }

    /// The cells, with their masks where these are asked for: `labels`, where the table is label images.
    fn masked(
        images: &dyn Store,
        table: CellTable,
        placement: &Placement,
        options: &CellOptions,
        labels: Option<PathBuf>,
    ) -> Result<Self> {
        let mut cells = Self::placed(images, table, placement, options)?;
        if options.mask != Mask::None {
            cells.masks = Some(cells.mask_rows(images, options, labels, placement.labels.is_some())?);
        }
        Ok(cells)
    }

    /// What the table came to.
    pub fn report(&self) -> &CellsReport {
        &self.report
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.boxes.len()
    }

    /// Whether there is none, which [`Self::find`] refuses.
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// Rows and columns of a crop.
    pub fn size(&self) -> [usize; 2] {
        self.size
    }

    /// The image that a cell is cut out of; `None` where there is no such cell.
    pub fn image_of(&self, cell: usize) -> Option<usize> {
        self.boxes.get(cell).map(|cell| cell.image)
    }

    /// The row of the table that each cell is.
    pub fn table_rows(&self) -> &[usize] {
        &self.rows
    }

    fn placed(
        images: &dyn Store,
        table: CellTable,
        placement: &Placement,
        options: &CellOptions,
    ) -> Result<Self> {
        let Placement { image, y, x, labels } = placement;
        let mut report = CellsReport { rows: table.rows, ..CellsReport::default() };
        let mut sizes: HashMap<usize, [usize; 2]> = HashMap::new();
        let mut cells = Self {
            size: options.size,
            boxes: vec![],
            rows: vec![],
            ids: vec![],
            masks: None,
            report: CellsReport::default(),
            table,
        };
        let mut has_cells = vec![false; images.len()];
        for (row, of) in image.images.iter().enumerate() {
            let Some(of) = *of else {
                report.without_image.push(|| image.describe(row));
                continue;
            };
            if !y[row].is_finite() || !x[row].is_finite() {
                report.without_position.push(|| image.describe(row));
                continue;
            }
            let size = if let Some(size) = sizes.get(&of) {
                *size
            } else {
                let info = images.row_info(of)?;
                checked(images, of, info, options.size)?;
                let size = [info.shape.y(), info.shape.x()];
                sizes.insert(of, size);
                size
            };
            match place([y[row], x[row]], options.size, size, options.edge) {
                Placed::At(start) => {
                    has_cells[of] = true;
                    cells.boxes.push(CellBox { image: of, start });
                    cells.rows.push(row);
                    cells.ids.push(labels.as_ref().map_or(row as i64, |(_, labels)| labels[row]));
                }
                Placed::Outside => {
                    let [y, x] = [y[row], x[row]];
                    report.outside.push(|| format!("{} at y {y}, x {x}", image.describe(row)));
                }
                Placed::Dropped => report.dropped.push(|| image.describe(row)),
                Placed::TooLarge => {
                    let [height, width] = options.size;
                    let cause = format_args!(
                        "the image has {} x {} pixels, and a crop of {height} x {width} does not fit into it",
                        size[0], size[1]
                    );
                    return Err(Error::new(images.path(), cause)
                        .row(of)
                        .choice()
                        .hint("take smaller crops, or fill what lies outside with zeros: edge pad"));
                }
            }
        }
        for (image, _) in has_cells.iter().enumerate().filter(|(_, has)| !**has) {
            report
                .images_without_cells
                .push(|| images.name(image).unwrap_or_else(|_| format!("row {image}")));
        }
        report.cells = cells.boxes.len();
        report.images = has_cells.iter().filter(|has| **has).count();
        cells.check(&report, options)?;
        if let Some((name, _)) = labels {
            cells.check_ids(images, name)?;
        }
        cells.report = report;
        Ok(cells)
    }

    /// Whether all cells can be cut out that have to be, and there is one.
    fn check(&self, report: &CellsReport, options: &CellOptions) -> Result<()> {
        let left_out = report.unmatched();
        if left_out > 0 && (options.unmatched == Unmatched::Error || report.cells == 0) {
            let of = counted(report.rows, "cell");
            let cause = format_args!("{left_out} of {of} cannot be cut out");
            let problems = report.problems().join("; ");
            let hint = if report.cells == 0 {
                "check the columns that tell the image (by) and the position (x, y), and its unit"
            } else {
                "leave them out: unmatched skip; or check the columns that tell the image (by) and the position (x, y)"
            };
            return Err(Error::new(&self.table.path, format_args!("{cause}: {problems}"))
                .choice()
                .hint(hint));
        }
        if report.cells == 0 {
            return Err(Error::new(
                &self.table.path,
                format_args!("no cell is left: {}", report.dropped.named()),
            )
            .choice()
            .hint(
                "the boxes of all cells reach beyond their images: take smaller crops, or edge shift or pad",
            ));
        }
        Ok(())
    }

    /// Whether each cell of an image has another number.
    fn check_ids(&self, images: &dyn Store, name: &str) -> Result<()> {
        let mut known: HashMap<(usize, i64), usize> = HashMap::with_capacity(self.len());
        for ((cell, id), row) in self.boxes.iter().zip(&self.ids).zip(&self.rows) {
            if let Some(other) = known.insert((cell.image, *id), *row) {
                let cause = format!(
                    "rows {other} and {row} are both cell {id} (column {name:?}) of the image {}",
                    images.name(cell.image)?
                );
                return Err(Error::new(&self.table.path, cause).row(*row).hint(
                    "leave rows out that are there twice, or name the column that numbers the cells of an image (label)",
                ));
            }
        }
        Ok(())
    }

    /// The label images of the images that have a cell.
    fn mask_rows(
        &self,
        images: &dyn Store,
        options: &CellOptions,
        of_table: Option<PathBuf>,
        has_labels: bool,
    ) -> Result<MaskRows> {
        let are_labels = options.masks.is_none() && of_table.is_some();
        let Some(path) = options.masks.clone().or(of_table) else {
            return Err(Error::new(&self.table.path, "a mask needs label images")
                .choice()
                .hint("give the set that has one for each image (masks)"));
        };
        if !has_labels {
            return Err(self.table.no_choice(
                "a mask needs the number of each cell in its label image: name its column (label)",
                &["number", "label"],
            ));
        }
        let labels = concat::open(&path, &OpenOptions::default())?;
        let rows = pair(images, &*labels, &options.by)?;
        let mut last = None;
        for cell in &self.boxes {
            if last.replace(cell.image) == Some(cell.image) {
                continue;
            }
            let image = images.row_info(cell.image)?.shape;
            let Some(row) = rows[cell.image] else {
                let cause = format!("there is no label image of the image {}", images.name(cell.image)?);
                return Err(Error::new(&path, cause)
                    .hint("label images are told by the names of their images, which theirs begin with"));
            };
            let label = labels.row_info(row)?.shape;
            if !is_mask_of(label, image) {
                let cause = format_args!("the label image has shape {label} (TCZYX), and its image {image}");
                return Err(Error::new(&path, cause)
                    .row(row)
                    .hint("a label image has the rows and columns of its image, and one channel"));
            }
        }
        let has_to_be_seen = options.unmatched == Unmatched::Error && !are_labels;
        Ok(MaskRows { mask: options.mask, path, rows, has_to_be_seen })
    }
}

/// Whether what is asked for can be had of any table.
fn check_choices(path: &Path, options: &CellOptions) -> Result<()> {
    if options.size.contains(&0) || options.size.iter().any(|&side| side > MAX_SIDE) {
        let [height, width] = options.size;
        let cause = format_args!("crops of {height} x {width} pixels");
        return Err(Error::new(path, cause)
            .choice()
            .hint(format_args!("give 1 to {MAX_SIDE} rows and columns")));
    }
    if options.mask == Mask::None && options.masks.is_some() {
        return Err(Error::new(path, "label images were given, and nothing to do with them")
            .choice()
            .hint("choose what a mask is for: zero or channel"));
    }
    Ok(())
}

/// Whether a label image of this shape can be a mask of an image: of each time point and plane, or of all.
fn is_mask_of(label: Shape, image: Shape) -> bool {
    let fits = |label: usize, image: usize| label == 1 || label == image;
    label.c() == 1
        && (label.y(), label.x()) == (image.y(), image.x())
        && fits(label.t(), image.t())
        && fits(label.z(), image.z())
}

/// Checks that a crop of all planes of an image can be counted in bytes.
fn checked(images: &dyn Store, row: usize, info: RowInfo, [height, width]: [usize; 2]) -> Result<()> {
    let Shape([t, c, z, ..]) = info.shape;
    // With a channel for the mask.
    let crop = Shape([t, c.saturating_add(1), z, height, width]);
    crop.checked_bytes(info.dtype).map(|_| ()).map_err(|e| Error::new(images.path(), e).row(row))
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
