//! Single measurements behind a table: one row per configuration and run, with the list of its items' times.

use super::{Row, Table, files};
use crate::Result;
use arrow_array::builder::{Float64Builder, ListBuilder};
use arrow_array::{Array, ArrayRef};
use arrow_schema::Field;
use std::path::Path;
use std::sync::Arc;
use wellread_measure::samples::median;

/// Folder of these in a results folder; their files are named as the tables.
pub const FOLDER: &str = "samples";
/// Column of the lists.
const COLUMN: &str = "seconds";

/// The table whose items are waits for batches.
pub const BATCHES: &str = "dataloader";
/// Share of all waiting that the median must stand for, times the number of batches.
const STANDS_FOR: f64 = 0.1;

/// Whether the medians of these runs' times show the time of an item. Where a reader fetches many batches at once, one is
/// waited for and the others are there already. So the median is next to nothing for any reader.
///
/// Such a wait is at the same place in every run. One at another place in each, where something else had the processor,
/// says nothing of the reader. With three runs and more, each place counts by the median of its times.
pub fn medians_tell<'a>(runs: impl IntoIterator<Item = &'a [f64]>) -> bool {
    let runs: Vec<Vec<f64>> =
        runs.into_iter().map(|run| run.iter().copied().filter(|s| s.is_finite()).collect()).collect();
    let length = runs.iter().map(Vec::len).min().unwrap_or(0);
    let usual: Vec<Vec<f64>> = if runs.len() >= 3 && length > 0 {
        let at = |place: usize| median(&runs.iter().map(|run| run[place]).collect::<Vec<_>>());
        vec![(0..length).filter_map(at).collect()]
    } else {
        runs
    };
    let (mut told, mut whole) = (0.0, 0.0);
    for seconds in usual {
        told += median(&seconds).unwrap_or(0.0) * seconds.len() as f64;
        whole += seconds.iter().sum::<f64>();
    }
    told >= STANDS_FOR * whole
}

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

    /// Adds a run: its keys, and seconds of each item in the order measured.
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
    fn a_median_tells_nothing_where_one_wait_is_for_all_batches() {
        let tells = |runs: &[&[f64]]| medians_tell(runs.iter().copied());
        assert!(!tells(&[&[0.24, 1e-6, 2e-7]]));
        assert!(!tells(&[&[0.24, 1e-6, 2e-7], &[0.25, 2e-6, 1e-7]]));
        assert!(tells(&[&[0.08, 0.09, 0.07]]) && tells(&[&[0.1, 0.01, 0.01, 0.012]]));
        // A wait that is at another place in every run is the machine's.
        let stalled = [[0.3, 1e-3, 1e-3, 1e-3], [1e-3, 0.2, 1e-3, 1e-3], [1e-3, 1e-3, 1e-3, 0.5]];
        assert!(tells(&stalled.each_ref().map(|run| &run[..])) && !tells(&[&stalled[0]]));
        assert!(!tells(&[&[0.24, 1e-6, 2e-7], &[0.25, 2e-6, 1e-7], &[0.2, 2e-6, 1e-7]]));
        assert!(tells(&[&[0.3]]) && tells(&[&[]]) && tells(&[]) && tells(&[&[f64::NAN, 0.2]]));
    }

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
