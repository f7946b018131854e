//! Flags of every command that takes cells, cut out of images, as its images: `--cells TABLE …`.

use super::size::parse_crop;
use crate::output::Ui;
use std::path::{Path, PathBuf};
use wellread_bench::data::SourceCells;
use wellread_store::Store;
use wellread_store::cells::{CellOptions, CellsStore, Edge, Mask, Unit, Unmatched, file_and_table};

/// Single-cell crops instead of whole images.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct CellArgs {
    /// Read single cells, cut out of the images, instead of whole images. TABLE has one row per cell: Parquet, CSV, TSV
    /// or a SQLite database of CellProfiler (FILE:TABLE names one of its tables). Or TABLE is a set of label images, or
    /// a pattern such as 'masks/*Nuclei*', and each label is a cell.
    #[arg(help_heading = "Single cells", long, value_name = "TABLE")]
    pub cells: Option<PathBuf>,
    /// Size of a crop in pixels, such as 64x96, or 64 for a square; by default 96x96.
    #[arg(
        help_heading = "Single cells",
        long,
        visible_alias = "cell-size",
        value_name = "HxW",
        requires = "cells",
        value_parser = parse_crop
    )]
    cells_size: Option<(usize, usize)>,
    /// Column of the horizontal position; by default that of CellProfiler or scikit-image.
    #[arg(help_heading = "Single cells", long, value_name = "COLUMN", requires = "cells")]
    cells_x: Option<String>,
    /// Column of the vertical position.
    #[arg(help_heading = "Single cells", long, value_name = "COLUMN", requires = "cells")]
    cells_y: Option<String>,
    /// Columns of both table and images that identify a cell's image, such as Plate,Well,Site (Plate also finds
    /// Metadata_Plate). Or the column of the table that has the images' names.
    #[arg(
        help_heading = "Single cells",
        long,
        value_name = "COLUMN[,COLUMN…]",
        requires = "cells",
        value_delimiter = ','
    )]
    cells_by: Vec<String>,
    /// Cells at the border of the image: shift moves the box inside (default), pad fills the outside with 0, drop
    /// leaves the cell out.
    #[arg(help_heading = "Single cells", long, value_name = "shift|pad|drop", requires = "cells")]
    cells_edge: Option<Edge>,
    /// Unit of the positions: pixel (default), or um, which uses the images' pixel size.
    #[arg(help_heading = "Single cells", long, value_name = "pixel|um", requires = "cells")]
    cells_unit: Option<Unit>,
    /// Pixels outside of the cell: none keeps them (default), zero sets them to 0, channel keeps them and adds a
    /// channel that is 1 inside.
    #[arg(help_heading = "Single cells", long, value_name = "none|zero|channel", requires = "cells")]
    cells_mask: Option<Mask>,
    /// Label images for --cells-mask, matched by the images' names; by default those of --cells, if it names label
    /// images.
    #[arg(help_heading = "Single cells", long, value_name = "PATH", requires = "cells")]
    cells_masks: Option<PathBuf>,
    /// The label images are binary masks: each group of touching pixels, also at a corner, is a cell, as for
    /// scikit-image's label.
    #[arg(help_heading = "Single cells", long, requires = "cells")]
    cells_label_masks: bool,
    /// Column of the cell's number in its label image; by default ObjectNumber or a similar name.
    #[arg(help_heading = "Single cells", long, value_name = "COLUMN", requires = "cells")]
    cells_label: Option<String>,
    /// Cells without an image or a position, or outside of the image: error fails (default), skip leaves them out and
    /// counts them.
    #[arg(help_heading = "Single cells", long, value_name = "error|skip", requires = "cells")]
    cells_unmatched: Option<Unmatched>,
}

impl CellArgs {
    /// The table and how its cells are cut out, where that is asked for.
    pub fn chosen(&self) -> Option<(&Path, CellOptions)> {
        let defaults = CellOptions::default();
        let options = CellOptions {
            x: self.cells_x.clone(),
            y: self.cells_y.clone(),
            size: self.cells_size.map_or(defaults.size, |(height, width)| [height, width]),
            by: self.cells_by.clone(),
            edge: self.cells_edge.unwrap_or_default(),
            unit: self.cells_unit.unwrap_or_default(),
            unmatched: self.cells_unmatched.unwrap_or_default(),
            mask: self.cells_mask.unwrap_or_default(),
            masks: self.cells_masks.clone(),
            label_masks: self.cells_label_masks,
            label: self.cells_label.clone(),
        };
        self.cells.as_deref().map(|table| (table, options))
    }

    /// The same as benchmarks take it.
    pub fn source(&self) -> Option<SourceCells> {
        self.chosen().map(|(table, options)| SourceCells { table: table.to_owned(), options })
    }

    /// Whether each cell has one more channel, its mask.
    pub fn adds_mask(&self) -> bool {
        self.cells_mask == Some(Mask::Channel)
    }

    /// Files that are read beside the images: the table, and the label images.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let table = self.cells.as_deref().map(|table| file_and_table(table).0);
        table.into_iter().chain(self.cells_masks.as_deref())
    }

    /// These images, or the cells that are cut out of them. Says by `ui`, where there is one, what was left out.
    pub fn of(&self, images: Box<dyn Store>, ui: Option<Ui>) -> wellread_store::Result<Box<dyn Store>> {
        let Some((table, options)) = self.chosen() else { return Ok(images) };
        let store = CellsStore::open(images, table, &options)?;
        if let Some(ui) = ui {
            for note in store.cells().report().notes() {
                ui.warn(format!("note: {note}"));
            }
        }
        Ok(Box::new(store))
    }
}
