//! Flags of every command that takes cells, cut out of images, as its images: `--cells TABLE …`.

use super::size::parse_size;
use std::path::{Path, PathBuf};
use wellread_measure::to_stderr;
use wellread_store::Store;
use wellread_store::cells::{CellOptions, CellsStore, Edge, Mask, Unit, Unmatched, file_and_table};

/// Single-cell crops instead of whole images.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct CellArgs {
    /// Take the cells of this table, cut out of the images, instead of the images: Parquet, CSV, TSV or a SQLite database of
    /// CellProfiler with a row per cell (FILE:TABLE names one of its tables), or a set of label images, whose labels are the cells.
    #[arg(help_heading = "Single cells", long, value_name = "TABLE")]
    pub cells: Option<PathBuf>,
    /// Size of a crop in pixels; 96x96 unless given.
    #[arg(help_heading = "Single cells", long, value_name = "HxW", requires = "cells", value_parser = parse_size)]
    cells_size: Option<(usize, usize)>,
    /// Column of the horizontal position; unless given, CellProfiler's or scikit-image's.
    #[arg(help_heading = "Single cells", long, value_name = "COLUMN", requires = "cells")]
    cells_x: Option<String>,
    /// Column of the vertical position.
    #[arg(help_heading = "Single cells", long, value_name = "COLUMN", requires = "cells")]
    cells_y: Option<String>,
    /// Columns that the table and the images have and that tell the image, such as Plate,Well,Site (Metadata_Plate is
    /// found as Plate); or the column of the table that has the images' names.
    #[arg(
        help_heading = "Single cells",
        long,
        value_name = "COLUMN[,COLUMN…]",
        requires = "cells",
        value_delimiter = ','
    )]
    cells_by: Vec<String>,
    /// At the border of the image: shift moves the box inside (unless given), pad fills what is outside with 0, drop leaves the cell
    /// out.
    #[arg(help_heading = "Single cells", long, value_name = "shift|pad|drop", requires = "cells")]
    cells_edge: Option<Edge>,
    /// What positions are measured in: pixel (unless given), or um, by the images' pixel size.
    #[arg(help_heading = "Single cells", long, value_name = "pixel|um", requires = "cells")]
    cells_unit: Option<Unit>,
    /// zero makes pixels 0 that are not the cell's own, channel adds a channel with 1 where they are.
    #[arg(help_heading = "Single cells", long, value_name = "none|zero|channel", requires = "cells")]
    cells_mask: Option<Mask>,
    /// The label images of --cells-mask, told by the names of their images; those of --cells, where it is some.
    #[arg(help_heading = "Single cells", long, value_name = "PATH", requires = "cells")]
    cells_masks: Option<PathBuf>,
    /// The label images are binary masks: number the pieces of each that touch, also at a corner, as scikit-image's label does.
    #[arg(help_heading = "Single cells", long, requires = "cells")]
    cells_label_masks: bool,
    /// Column of the cell's number in its label image; unless given, ObjectNumber and the like.
    #[arg(help_heading = "Single cells", long, value_name = "COLUMN", requires = "cells")]
    cells_label: Option<String>,
    /// Cells without an image or a position, or outside of the image: error (unless given), or skip leaves them out and counts them.
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

    /// Whether each cell has one more channel, its mask.
    pub fn adds_mask(&self) -> bool {
        self.cells_mask == Some(Mask::Channel)
    }

    /// What is read beside the images: the table, and the label images.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let table = self.cells.as_deref().map(|table| file_and_table(table).0);
        table.into_iter().chain(self.cells_masks.as_deref())
    }

    /// These images, or the cells that are cut out of them; says what was left out where `says` is set.
    pub fn of(&self, images: Box<dyn Store>, says: bool) -> wellread_store::Result<Box<dyn Store>> {
        let Some((table, options)) = self.chosen() else { return Ok(images) };
        let store = CellsStore::open(images, table, &options)?;
        if says {
            for note in store.cells().report().notes() {
                to_stderr(format!("note: {note}"));
            }
        }
        Ok(Box::new(store))
    }
}
