//! The cells of a table in the images of a set: where each is cut out, and what could not be.

use super::cell_positions::{CellPositions, readable};
use super::centres::PlacedCells;
use super::centroids::{self, LabelCells};
use super::edge::{BoxPosition, CellBox, box_position};
use super::found::CellsReport;
use super::keys::{ImageLookup, image_of};
use super::mask_rows::{LabelSets, MaskRows};
use super::options::{CellOptions, Mask, Unmatched};
use super::positions::CLASS;
use super::table::{self, CellTable, TableFile};
use super::unshared;
use crate::ahead::Fetching;
use crate::place::WantedRanges;
use crate::surface::{option, option_as};
use crate::words::counted;
use crate::{Error, ReadExtent, Result, RowInfo, Store, threads, with_columns};
use arrow_array::RecordBatch;
use std::collections::HashMap;
use std::path::Path;
use wellread_image::Shape;

/// Rows and columns of a crop at most: far beyond any cell, and small enough to count its pixels.
const MAX_SIDE: usize = 1 << 20;

/// Images whose files are worth a thread to look into.
const IMAGES_PER_THREAD: usize = 16;

/// Images whose files, of remote sets, are asked for together.
const IMAGES_TOGETHER: usize = 256;

/// The source of the positions of a set's cells.
#[derive(Clone, Copy)]
pub enum CellSource<'a> {
    /// A file: a table, or a set of label images.
    Path(&'a Path),
    /// A table in memory, by the plain columns of its batches.
    Memory(&'a [RecordBatch]),
    /// Label images that are open: their labels are the cells.
    Labels(&'a dyn Store),
}

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
    /// The use of the label images, where they are, and the row of each image's.
    pub(super) masks: Option<MaskRows>,
    report: CellsReport,
}

/// A number for people: of a very large one not all of its digits.
fn short(number: f64) -> String {
    if number.abs() < 1e16 { number.to_string() } else { format!("{number:e}") }
}

impl Cells {
    /// Finds the cells of `path`, a table or a set of label images, in `images`. Reads the columns that this needs, the shape of each
    /// image that has a cell and, of label images, all pixels. It reads a few of the label images that are masks alone.
    ///
    /// # Errors
    /// A table that cannot be read or lacks a column. Cells that cannot be cut out, unless they may be left out. Two
    /// cells of one number in an image. Images that are smaller than a crop that must lie inside. Images with cells that
    /// cannot be read. Masks that are not of their images.
    pub fn find(images: &dyn Store, path: &Path, options: &CellOptions) -> Result<Self> {
        Self::of(images, CellSource::Path(path), options, None)
    }

    /// The same of whatever says where cells are. Errors call a table in memory `table`. `masks` are label images that
    /// are open, in place of [`CellOptions::masks`]. The caller passes such masks to [`super::CellsStore::of`], and
    /// label images that are open and are masks too.
    ///
    /// # Errors
    /// As [`Self::find`]; two columns of one name in a table in memory.
    pub fn of(
        images: &dyn Store,
        source: CellSource<'_>,
        options: &CellOptions,
        masks: Option<&dyn Store>,
    ) -> Result<Self> {
        let path = match source {
            CellSource::Path(path) => path,
            CellSource::Memory(_) => Path::new(with_columns::TABLE),
            CellSource::Labels(labels) => labels.path(),
        };
        check_choices(path, options, masks.is_some())?;
        match source {
            CellSource::Labels(labels) => Self::of_labels(images, (labels, path), options, masks),
            CellSource::Memory(batches) => {
                let columns = with_columns::whole(batches)?;
                if columns.num_rows() == 0 {
                    return Err(Error::new(path, "the table has no rows").choice());
                }
                let table = CellTable::in_memory(path, columns).beside(with_columns::left_out(batches));
                Self::of_columns(images, table, options, masks)
            }
            CellSource::Path(path) => {
                let wanted = [&options.x, &options.y, &options.label].into_iter().flatten();
                let wanted: Vec<&str> = wanted.map(String::as_str).collect();
                match table::open(path, &wanted)? {
                    TableFile::Labels(store) => Self::of_labels(images, (&*store, path), options, masks),
                    TableFile::Columns(table) => Self::of_columns(images, table, options, masks),
                }
            }
        }
    }

    fn of_labels(
        images: &dyn Store,
        labels: (&dyn Store, &Path),
        options: &CellOptions,
        masks: Option<&dyn Store>,
    ) -> Result<Self> {
        let found = centroids::table(images, labels.0, &options.by, options.label_masks)?;
        let LabelCells { table, image, unpaired, shapes } = found;
        let infos = infos(images, &image.images);
        centroids::check_shapes(labels.1, &shapes, &infos)?;
        let positions = CellPositions::of(&table, image, None, &CellOptions::default())?;
        let sets = LabelSets { masks, labels: Some(labels) };
        let mut cells = Self::masked(images, table, &positions, infos, options, &sets)?;
        cells.report.labels_without_image = unpaired;
        Ok(cells)
    }

    fn of_columns(
        images: &dyn Store,
        table: CellTable,
        options: &CellOptions,
        masks: Option<&dyn Store>,
    ) -> Result<Self> {
        if options.label_masks && options.masks.is_none() && masks.is_none() {
            let cause = "is a table of cells, and no binary masks were given whose pieces could be numbered";
            return Err(Error::new(&table.path, cause).choice().hint(format_args!(
                "give the masks ({}), or leave {} out",
                option("cells.masks"),
                option_as("cells.label_masks", "true")
            )));
        }
        let by = ImageLookup::of(images, &table, options)?;
        let keys = (!by.columns().is_empty()).then(|| table.read(by.columns())).transpose()?;
        let none = || RecordBatch::new_empty(std::sync::Arc::new(arrow_schema::Schema::empty()));
        let keys = keys.unwrap_or_else(none);
        let image = image_of(images, &table, &by, &keys)?;
        unshared::check(images, &table, &image.images, by.unshared())?;
        let positions = CellPositions::of(&table, image, Some(images), options)?;
        let infos = infos(images, &positions.image.images);
        Self::masked(images, table, &positions, infos, options, &LabelSets { masks, labels: None })
    }

    /// The cells, with their masks where these are asked for. `infos` are those of [`infos`].
    fn masked(
        images: &dyn Store,
        table: CellTable,
        positions: &CellPositions,
        infos: Vec<Option<RowInfo>>,
        options: &CellOptions,
        sets: &LabelSets<'_>,
    ) -> Result<Self> {
        let mut cells = Self::in_images(images, table, positions, infos, options)?;
        if options.mask != Mask::None {
            let Self { table, boxes, rows, ids, .. } = &cells;
            let placed = PlacedCells { table, boxes, rows, ids, positions };
            cells.masks = Some(MaskRows::find(images, &placed, options, sets)?);
        }
        Ok(cells)
    }

    /// The outcome of reading the table.
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

    fn in_images(
        images: &dyn Store,
        table: CellTable,
        positions: &CellPositions,
        mut infos: Vec<Option<RowInfo>>,
        options: &CellOptions,
    ) -> Result<Self> {
        let CellPositions { image, y, x, labels, .. } = positions;
        let mut report = CellsReport {
            rows: table.rows,
            site_numbers: image.doubt.clone(),
            repeated_labels: positions.note(),
            ..CellsReport::default()
        };
        let mut is_checked = vec![false; images.len()];
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
            let info = if let Some(info) = infos[of] { info } else { readable(images.row_info(of), of)? };
            if !is_checked[of] {
                checked(images, of, info, options.size)?;
                (is_checked[of], infos[of]) = (true, Some(info));
            }
            let size = [info.shape.y(), info.shape.x()];
            match box_position([y[row], x[row]], options.size, size, options.edge) {
                BoxPosition::At(start) => {
                    has_cells[of] = true;
                    cells.boxes.push(CellBox { image: of, start });
                    cells.rows.push(row);
                    cells.ids.push(labels.as_ref().map_or(row as i64, |(_, labels)| labels[row]));
                }
                BoxPosition::Outside => {
                    let [y, x] = [y[row], x[row]];
                    report
                        .outside
                        .push(|| format!("{} at y {}, x {}", image.describe(row), short(y), short(x)));
                }
                BoxPosition::Dropped => report.dropped.push(|| image.describe(row)),
                BoxPosition::TooLarge => {
                    let [height, width] = options.size;
                    let cause = format_args!(
                        "the image has {} x {} pixels, and a crop of {height} x {width} does not fit into it",
                        size[0], size[1]
                    );
                    return Err(Error::new(images.path(), cause).row(of).choice().hint(format_args!(
                        "take smaller crops, or fill what lies outside with zeros: {}",
                        option_as("cells.edge", "pad")
                    )));
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
        cells.check(&report, options, image.first.as_deref())?;
        if let Some((name, _)) = labels {
            cells.check_ids(images, name)?;
        }
        cells.report = report;
        Ok(cells)
    }

    /// Whether all cells can be cut out that have to be, and there is one.
    fn check(&self, report: &CellsReport, options: &CellOptions, first: Option<&str>) -> Result<()> {
        let left_out = report.unmatched();
        if left_out > 0 && (options.unmatched == Unmatched::Error || report.cells == 0) {
            let of = counted(report.rows, "cell");
            let cause = format_args!("{left_out} of {of} cannot be cut out");
            let problems = report.problems().join("; ");
            let [by, x, y] = ["cells.by", "cells.x", "cells.y"].map(option);
            let columns = format!("check the columns that tell the image ({by}) and the position ({x}, {y})");
            let first = first.filter(|_| report.without_image.count > 0);
            let seen = first.map_or_else(String::new, |first| format!(". The first image has {first}"));
            let hint = if report.cells == 0 {
                format!("{columns}, and its unit ({}){seen}", option("cells.unit"))
            } else {
                format!("leave them out: {}; or {columns}{seen}", option_as("cells.unmatched", "skip"))
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
            .hint(format_args!(
                "the boxes of all cells reach beyond their images: take smaller crops, or {} or pad",
                option_as("cells.edge", "shift")
            )));
        }
        Ok(())
    }

    /// Whether each cell of an image has another number.
    fn check_ids(&self, images: &dyn Store, name: &str) -> Result<()> {
        // In the order of images and numbers, as most tables are, no two are one.
        let cells = self.boxes.iter().zip(&self.ids).map(|(cell, id)| (cell.image, *id));
        if cells.is_sorted_by(|one, next| one < next) {
            return Ok(());
        }
        let mut known: HashMap<(usize, i64), usize> = HashMap::with_capacity(self.len());
        for ((cell, id), row) in self.boxes.iter().zip(&self.ids).zip(&self.rows) {
            if let Some(other) = known.insert((cell.image, *id), *row) {
                let cause = format!(
                    "rows {other} and {row} are both cell {id} (column {name:?}) of the image {}",
                    images.name(cell.image)?
                );
                let classes =
                    if name == CLASS { ". If the column holds classes, give it another name" } else { "" };
                return Err(Error::new(&self.table.path, cause).row(*row).hint(format_args!(
                    "leave rows out that are there twice, or name the column that numbers the cells of an image \
                     ({}){classes}",
                    option("cells.label")
                )));
            }
        }
        Ok(())
    }
}

/// Whether what is asked for can be had of any table.
fn check_choices(path: &Path, options: &CellOptions, has_masks: bool) -> Result<()> {
    if options.size.contains(&0) || options.size.iter().any(|&side| side > MAX_SIDE) {
        let [height, width] = options.size;
        let cause = format_args!("crops of {height} x {width} pixels");
        return Err(Error::new(path, cause)
            .choice()
            .hint(format_args!("give 1 to {MAX_SIDE} rows and columns")));
    }
    if options.mask == Mask::None && (options.masks.is_some() || has_masks) {
        return Err(Error::new(path, "label images were given, and nothing to do with them").choice().hint(
            format_args!("choose what a mask is for: {} or channel", option_as("cells.mask", "zero")),
        ));
    }
    Ok(())
}

/// Shape and type of each image that has a cell, where they can be had. An image without them is an error at its first
/// cell. The files that have to be looked into for it are shared by threads, and asked for together where they are remote.
fn infos(images: &dyn Store, of: &[Option<usize>]) -> Vec<Option<RowInfo>> {
    let mut has_cells = vec![false; images.len()];
    for image in of.iter().flatten() {
        has_cells[*image] = true;
    }
    let wanted: Vec<usize> = (0..has_cells.len()).filter(|&image| has_cells[image]).collect();
    let mut fetching = images.remote_path().and_then(|remote| Fetching::of(remote, None));
    let step = if fetching.is_some() { IMAGES_TOGETHER } else { wanted.len().max(1) };
    let mut infos = vec![None; images.len()];
    for wanted in wanted.chunks(step) {
        let held = fetching.as_mut().map(|fetching| {
            let mut heads = WantedRanges::default();
            images.heads(wanted, ReadExtent::Part, &mut heads);
            fetching.fetch(&heads)
        });
        let found = threads::in_runs(wanted.len(), IMAGES_PER_THREAD, |run| {
            wanted[run].iter().map(|&image| images.row_info(image).ok()).collect::<Vec<_>>()
        });
        for (&image, info) in wanted.iter().zip(found.into_iter().flatten()) {
            infos[image] = info;
        }
        drop(held);
    }
    infos
}

/// Checks that a crop of all planes of an image can be counted in bytes.
fn checked(images: &dyn Store, row: usize, info: RowInfo, [height, width]: [usize; 2]) -> Result<()> {
    let Shape([t, c, z, ..]) = info.shape;
    // With a channel for the mask.
    let crop = Shape([t, c.saturating_add(1), z, height, width]);
    crop.checked_bytes(info.dtype).map(|_| ()).map_err(|e| Error::new(images.path(), e).row(row))
}
