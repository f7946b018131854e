//! Single measurements behind a table: one row per configuration and run, with the list of its items' times.

use super::{Row, Table, files};
use crate::Result;
use arrow_array::builder::{Float64Builder, ListBuilder};
use arrow_array::{Array, ArrayRef};
use arrow_schema::Field;
use std::path::Path;
use std::sync::Arc;

/// Folder of these in a results folder; their files are named as the tables.
pub const FOLDER: &str = "samples";
/// Column of the lists.
const COLUMN: &str = "seconds";

/// Times of the items (images, batches, steps) of every run of a benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    runs: Table,
    seconds: Vec<Vec<f64>>,
}

impl Samples {
    /// None yet, of the benchmark of that name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { runs: Table::new(name), seconds: vec![] }
    }

    /// Adds a run: what tells it apart, and seconds of each item in the order measured.
    pub fn push(&mut self, run: Row, seconds: Vec<f64>) {
        self.runs.push(run);
        self.seconds.push(seconds);
    }

    /// The configuration and number of every run.
    pub fn runs(&self) -> &Table {
        &self.runs
    }

    /// Seconds of each item, by run.
    pub fn seconds(&self) -> &[Vec<f64>] {
        &self.seconds
    }

    /// Writes them as Parquet, whole or not at all: the columns of the runs, and `seconds`, a list.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_parquet(&self, path: impl AsRef<Path>) -> Result<()> {
        let (mut fields, mut arrays) = self.runs.arrays();
        let mut lists = ListBuilder::new(Float64Builder::new());
        for seconds in &self.seconds {
            lists.values().append_slice(seconds);
            lists.append(true);
        }
        let lists: ArrayRef = Arc::new(lists.finish());
        fields.push(Field::new(COLUMN, lists.data_type().clone(), true));
        arrays.push(lists);
        files::write_arrays(path.as_ref(), self.runs.name(), fields, arrays, self.seconds.len())
    }

    /// Reads them back.
    ///
    /// # Errors
    /// Unreadable or damaged file, or one without lists of seconds.
    pub fn read_parquet(path: impl AsRef<Path>) -> Result<Self> {
        let (runs, seconds) = files::read(path.as_ref(), Some(COLUMN))?;
        Ok(Self { runs, seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    #[test]
    fn every_item_of_every_run_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FOLDER).join("dataset.parquet");
        let mut samples = Samples::new("dataset");
        samples.push(row![("format", "tiff"), ("run", 0)], vec![0.25, 1e-9, f64::NAN]);
        samples.push(row![("format", "lance"), ("workers", 2), ("run", 1)], vec![]);
        samples.write_parquet(&path).unwrap();
        let back = Samples::read_parquet(&path).unwrap();
        assert_eq!((back.runs(), back.runs().name()), (samples.runs(), "dataset"));
        assert_eq!(back.seconds()[0][..2], [0.25, 1e-9]);
        assert!(back.seconds()[0][2].is_nan() && back.seconds()[1].is_empty());
        samples.runs().write_parquet(&path).unwrap();
        let error = Samples::read_parquet(&path).unwrap_err().to_string();
        assert!(error.contains("seconds") && error.contains("dataset.parquet"), "{error}");
    }
}
