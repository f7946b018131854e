//! Columns beside cells: those of their table, and those of their images, repeated for each cell.

use super::store::CellsStore;
use crate::{Error, FeatureTable, LeftOut, Renamed, Result, default_columns, features};
use arrow_array::RecordBatch;
use std::collections::HashSet;

impl FeatureTable for CellsStore {
    // A cell's row is no row of its image's table.
    default_columns!(has_row_numbers);

    fn feature_names(&self) -> Vec<String> {
        let mut names = self.cells.table.names.clone();
        let own: HashSet<&String> = self.cells.table.names.iter().collect();
        let of_images = self.images.hints().feature_names();
        names.extend(of_images.into_iter().filter(|name| !own.contains(name)));
        names
    }

    fn columns_left_out(&self) -> Vec<LeftOut> {
        let table = &self.cells.table;
        let is_of_table =
            |name: &String| table.has(name) || table.left_out.iter().any(|own| own.name == *name);
        let of_images = self.images.hints().columns_left_out().into_iter();
        let of_images = of_images.filter(|column| !is_of_table(&column.name));
        table.left_out.iter().cloned().chain(of_images).collect()
    }

    fn columns_renamed(&self) -> Vec<Renamed> {
        let table = &self.cells.table;
        let mut of_images = self.images.hints().columns_renamed();
        of_images.retain(|column| !table.has(&column.to));
        table.renamed.iter().cloned().chain(of_images).collect()
    }

    /// Those of the images; the table's are of one table.
    fn columns_in_utc(&self) -> Vec<String> {
        let mut names = self.images.hints().columns_in_utc();
        names.retain(|name| !self.cells.table.has(name));
        names
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() {
            return Ok(None);
        }
        let refuse = |cause: &dyn std::fmt::Display| Error::new(&self.cells.table.path, cause);
        let (own, theirs): (Vec<String>, Vec<String>) =
            names.iter().cloned().partition(|name| self.cells.table.has(name));
        let mut batches = vec![];
        if !own.is_empty() {
            let rows = self.cells.rows.iter().map(|&row| Some(row as u64));
            batches.push(features::taken(&self.cells.table.read(&own)?, rows).map_err(|e| refuse(&e))?);
        }
        let rows = self.cells.boxes.iter().map(|cell| Some(cell.image as u64));
        batches.extend(features::of_rows(&*self.images, &theirs, rows)?);
        features::chosen(&self.cells.table.path, &batches, names).map(Some)
    }
}
