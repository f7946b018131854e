//! Whole sets read by several processes: the work of each of them on its rows, and the way to put their results
//! together.
//!
//! ```text
//!  each task, some rows      checksums ──text──▶ verify_sums        row_names, partial_stats ──text──▶ StatsSum.add … finish ──▶ finish_stats
//! ```
//!
//! Processes exchange text (JSON), which any build of the same version reads.

use crate::arrow::texts;
use crate::dataset::Dataset;
use crate::errors::{Activity, detached, exception};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wellread::loader::dataset::RowDigests;
use wellread::loader::stats::{ChannelOrder, Group, PartialStats, RowNames, Stats, group_of, grouped};
use wellread::store::checksum::{self, ImageChecksum, SentRow, has_unique_names};
use wellread::store::convert::{one_pixel_type, pixel_types};
use wellread::store::masks;
use wellread::store::verify::{
    Expected, Kind, is_listed_by_file_name, verify_columns, verify_sums as verified,
};
use wellread::{Error, GroupStats, Result};

/// A value as text; errors speak of `path`.
fn text(path: &Path, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::new(path, format_args!("cannot be written as JSON: {e}")))
}

/// The value of a text that another process has made.
fn read<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text)
        .map_err(|e| PyValueError::new_err(format!("what another process handed on is damaged: {e}")))
}

/// The marks of a set, as text for a process that opens it again: they tell it from another one at its path.
#[pyfunction]
pub(crate) fn marks(py: Python<'_>, dataset: PyRef<'_, Dataset>) -> PyResult<String> {
    dataset
        .opened()
        .with(py, Activity::Opening, |dataset| text(dataset.store().path(), dataset.row_digests()))
}

/// Raises an error where a set that was opened again has other rows than a text of `marks` tells.
#[pyfunction]
pub(crate) fn check_marks(py: Python<'_>, dataset: PyRef<'_, Dataset>, marks: &str) -> PyResult<()> {
    let marks: RowDigests = read(marks)?;
    dataset.opened().with(py, Activity::Opening, move |dataset| marks.check(dataset))
}

/// Has ready what a process that is forked later compares the set with that it opens.
#[pyfunction]
pub(crate) fn remember(py: Python<'_>, dataset: PyRef<'_, Dataset>) -> PyResult<()> {
    dataset.opened().with(py, Activity::Opening, |dataset| {
        dataset.remember();
        Ok(())
    })
}

/// Whether these texts name each image of a set once, in another order than the set's.
#[pyfunction]
pub(crate) fn are_in_other_order(
    py: Python<'_>,
    dataset: PyRef<'_, Dataset>,
    names: Vec<String>,
) -> PyResult<bool> {
    let names = texts(names);
    dataset.opened().with(py, Activity::Choosing, move |dataset| {
        Ok(wellread::store::with_columns::are_in_other_order(dataset.store(), &names))
    })
}

/// Rows that are read together; ranges of rows begin at a multiple of it.
#[pyfunction]
pub(crate) fn row_group(py: Python<'_>, dataset: PyRef<'_, Dataset>) -> PyResult<usize> {
    dataset.opened().with(py, Activity::Opening, |dataset| Ok(group_of(dataset.store())))
}

/// The result of the rows from one up to another, as text: a list with a digest or an error for each.
#[pyfunction]
pub(crate) fn checksums(
    py: Python<'_>,
    dataset: PyRef<'_, Dataset>,
    start: usize,
    end: usize,
    jobs: usize,
) -> PyResult<String> {
    dataset.opened().run_interruptible(py, Activity::Reading, move |dataset, _| {
        let sums = checksum::of_rows(dataset.store(), (start, end), jobs, &|| ());
        let sent: Vec<SentRow> = sums.into_iter().map(SentRow::from).collect();
        text(dataset.store().path(), &sent)
    })
}

/// Digests of rows from text; the first row that could not be read is an error.
fn all_read(py: Python<'_>, rows: Vec<SentRow>) -> PyResult<Vec<ImageChecksum>> {
    let sums: Result<Vec<ImageChecksum>> = rows.into_iter().map(SentRow::received).collect();
    sums.map_err(|error| exception(py, &error, Activity::Reading))
}

/// Raises the error of the first row, in texts of `checksums`, that could not be read.
#[pyfunction]
pub(crate) fn check_read(py: Python<'_>, sums: &str) -> PyResult<()> {
    all_read(py, read(sums)?).map(drop)
}

/// The checksums in a file (a list, or an object with one under `images`), as text.
#[pyfunction]
pub(crate) fn expected_sums(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    detached(py, Activity::Opening, move || text(&path, &checksum::read_expected(&path)?))
}

/// The output of `wellread verify --json` for a set whose rows were read before, as text. `sums` are those of all rows,
/// and `expected` those of the set to compare with, which is `other` if that is open.
#[pyfunction]
#[pyo3(signature = (dataset, sums, expected, other, any_order, any_names))]
pub(crate) fn verify_sums(
    py: Python<'_>,
    dataset: PyRef<'_, Dataset>,
    sums: &str,
    expected: Option<&str>,
    other: Option<PyRef<'_, Dataset>>,
    any_order: bool,
    any_names: bool,
) -> PyResult<String> {
    let sums: Vec<SentRow> = read(sums)?;
    let expected = expected.map(|text| all_read(py, read(text)?)).transpose()?;
    let other = other.map(|other| other.opened().of_this_process()).transpose();
    let other = other.map_err(|error| exception(py, &error, Activity::Opening))?;
    dataset.opened().run_interruptible(py, Activity::Reading, move |dataset, _| {
        let store = dataset.store();
        // As the command: a list of checksums tells what is in a folder of other tools, not how its files are sorted.
        let by_file_name = other.is_none() && is_listed_by_file_name(store);
        let expected = expected.as_deref().map(|images| Expected {
            store: other.as_ref().map(wellread::Dataset::store),
            any_order: any_order || by_file_name && has_unique_names(images),
            any_names,
            ..Expected::new(images)
        });
        let mut outcome = verified(store, sums.into_iter().map(SentRow::received).collect(), expected);
        verify_columns(store, &mut outcome);
        let differences: BTreeMap<Kind, usize> = outcome.counts().collect();
        let mut document = serde_json::json!({
            "path": store.path().to_string_lossy(), "passed": outcome.passed(), "images": outcome.images,
            "expected": outcome.expected, "columns": outcome.columns, "bytes_of_pixels": outcome.bytes_of_pixels, "problems": outcome.problems,
            "differences": differences, "summary": outcome.summary(), "has_checksums": store.has_checksums(),
        });
        for (key, count) in store.hints().left_out.by_key() {
            document[key] = count.into();
        }
        text(store.path(), &document)
    })
}

/// Names of the pixel types of a set, each once.
#[pyfunction]
pub(crate) fn types_of(py: Python<'_>, dataset: PyRef<'_, Dataset>) -> PyResult<Vec<&'static str>> {
    dataset.opened().run_interruptible(py, Activity::Opening, |dataset, _| {
        Ok(pixel_types(dataset.store()).into_iter().map(wellread::PixelType::name).collect())
    })
}

/// Raises an error where masks are among the images; with `types`, also where images are of several pixel types.
#[pyfunction]
pub(crate) fn check_one_kind(py: Python<'_>, dataset: PyRef<'_, Dataset>, types: bool) -> PyResult<()> {
    dataset.opened().run_interruptible(py, Activity::Opening, move |dataset, _| {
        if types {
            one_pixel_type(dataset.store())?;
        }
        masks::none_beside_images(dataset.store())
    })
}

/// Values of the columns and rows of each group of a set.
#[pyfunction]
pub(crate) fn group_rows(
    py: Python<'_>,
    dataset: PyRef<'_, Dataset>,
    by: Vec<String>,
) -> PyResult<Vec<wellread::loader::stats::GroupRows>> {
    dataset
        .opened()
        .run_interruptible(py, Activity::Choosing, move |dataset, _| grouped(dataset.store(), &by))
}

/// The names of the channels of these rows, as text.
#[pyfunction]
pub(crate) fn row_names(py: Python<'_>, dataset: PyRef<'_, Dataset>, rows: Vec<usize>) -> PyResult<String> {
    dataset.opened().run_interruptible(py, Activity::Reading, move |dataset, _| {
        text(dataset.store().path(), &RowNames::of(dataset.store(), &rows)?)
    })
}

/// The order of channels of rows, as text, from texts of `row_names`; `first` is the first of the rows.
#[pyfunction]
pub(crate) fn channel_order(first: usize, names: Vec<String>) -> PyResult<String> {
    let names = names.iter().map(|text| read(text)).collect::<PyResult<Vec<RowNames>>>()?;
    let own = names.iter().find_map(|names| names.row(first)).unwrap_or_default();
    let order = ChannelOrder::of_names(own, names.iter().flat_map(RowNames::each));
    serde_json::to_string(&order).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// The order of channels of rows, as text, where the first of them has no names: some of the rows are looked at.
#[pyfunction]
pub(crate) fn channel_order_of(
    py: Python<'_>,
    dataset: PyRef<'_, Dataset>,
    rows: Vec<usize>,
) -> PyResult<String> {
    dataset.opened().run_interruptible(py, Activity::Reading, move |dataset, _| {
        text(dataset.store().path(), &ChannelOrder::of(dataset.store(), &rows)?)
    })
}

/// The counts of these rows, as text.
#[pyfunction]
pub(crate) fn partial_stats(
    py: Python<'_>,
    dataset: PyRef<'_, Dataset>,
    rows: Vec<usize>,
    first: usize,
    order: &str,
    jobs: usize,
) -> PyResult<String> {
    let order: ChannelOrder = read(order)?;
    dataset.opened().run_interruptible(py, Activity::Reading, move |dataset, _| {
        let counted = PartialStats::of(dataset.store(), &rows, first, &order, jobs, &|| ())?;
        text(dataset.store().path(), &counted)
    })
}

/// The result of a [`StatsSum`].
#[derive(Default)]
enum Sum {
    #[default]
    Nothing,
    Counted(PartialStats),
    Finished(Stats),
}

/// Statistics that are being put together.
#[pyclass(frozen, module = "wellread._native")]
pub(crate) struct StatsSum {
    sum: Mutex<Sum>,
}

impl StatsSum {
    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what it has come to.
    fn take(&self) -> Sum {
        std::mem::take(&mut *self.sum())
    }
}

#[pymethods]
impl StatsSum {
    #[new]
    fn new() -> Self {
        Self { sum: Mutex::default() }
    }

    /// Adds a text of `partial_stats`, of the rows that follow.
    fn add(&self, text: &str) -> PyResult<()> {
        let next: PartialStats = read(text)?;
        let mut sum = self.sum();
        let added = match &mut *sum {
            Sum::Counted(counted) => counted.add(&next),
            Sum::Finished(_) => Err("the statistics are finished".to_owned()),
            Sum::Nothing => {
                *sum = Sum::Counted(next);
                Ok(())
            }
        };
        added.map_err(PyValueError::new_err)
    }

    /// Makes the statistics of what was added, in whose place they are kept; `order` is that of the channels.
    fn finish(&self, py: Python<'_>, order: &str, percents: Vec<f64>) -> PyResult<()> {
        let order: ChannelOrder = read(order)?;
        let Sum::Counted(counted) = self.take() else {
            return Err(PyValueError::new_err("nothing was counted"));
        };
        let stats = detached(py, Activity::Choosing, || Ok(counted.finish(&order, &percents)))?;
        *self.sum() = Sum::Finished(stats);
        Ok(())
    }
}

/// The values of a group's columns, and its statistics.
type CountedGroup<'py> = (Vec<Option<String>>, PyRef<'py, StatsSum>);

/// The file of statistics, as text: of each group that the columns `by` tell, or of the one group. The sums were finished.
#[pyfunction]
#[pyo3(signature = (by, groups))]
pub(crate) fn finish_stats(by: Option<Vec<String>>, groups: Vec<CountedGroup<'_>>) -> PyResult<String> {
    let mut found = Vec::with_capacity(groups.len());
    for (key, counted) in groups {
        let Sum::Finished(stats) = counted.take() else {
            return Err(PyValueError::new_err("statistics of a group are not finished"));
        };
        found.push(Group { key, stats });
    }
    let text = match by {
        Some(by) => serde_json::to_string_pretty(&GroupStats::new(by, found)),
        None => serde_json::to_string_pretty(&found.pop().map(|group| group.stats)),
    };
    text.map_err(|e| PyValueError::new_err(e.to_string()))
}
