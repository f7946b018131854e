//! [`Dataset`]: a set of images, as Python sees it.

use crate::arrow::{WithTable, taken, with_columns};
use crate::batch::Batch;
use crate::cells::Table;
use crate::choices::{CellChoice, grouping};
use crate::errors::{Activity, abandonable, exception};
use crate::opened::{Opened, Paths};
use crate::reading::{are_alike, is_small, read, stored_dtype};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use wellread::store::{Missing, SetPart, Unmatched};
use wellread::{Cache, Error, OpenOptions, Region, Result};

/// Looking up so many rows may take long.
const DETACHED_LOOKUP_ROWS: usize = 256;

/// A set of images. Rows are checked by the package.
#[pyclass(frozen, module = "wellread._native")]
pub(crate) struct Dataset {
    opened: Opened,
}

impl Dataset {
    pub(crate) fn new(original: wellread::Dataset) -> Self {
        Self { opened: Opened::new(original) }
    }

    /// The set itself.
    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }
}

/// The name of a set or an image, and the names of its channels.
type NamedChannels = (String, Vec<String>);

/// The source of cells: the stream of a table, label images that are open, or a file.
#[derive(FromPyObject)]
enum CellTable<'py> {
    Stream(Bound<'py, PyCapsule>),
    Labels(PyRef<'py, Dataset>),
    File(PathBuf),
}

#[pymethods]
impl Dataset {
    #[new]
    #[pyo3(signature = (
        path, *, format=None, table=None, column=None, level=0, cache=None,
        layout=None, pattern=None, missing=None, unmatched=None, path_map=None, skip_null=false,
        in_color=false,
    ))]
    fn open(
        py: Python<'_>,
        path: Paths,
        format: Option<String>,
        table: Option<String>,
        column: Option<String>,
        level: usize,
        cache: Option<&str>,
        layout: Option<String>,
        pattern: Option<String>,
        missing: Option<&str>,
        unmatched: Option<&str>,
        path_map: Option<Vec<(String, String)>>,
        skip_null: bool,
        in_color: bool,
    ) -> PyResult<Self> {
        let wrong =
            |what: &str, why: String| pyo3::exceptions::PyValueError::new_err(format!("{what}: {why}"));
        let missing =
            missing.map_or(Ok(Missing::default()), str::parse).map_err(|why| wrong("missing", why))?;
        let unmatched =
            unmatched.map_or(Ok(Unmatched::default()), str::parse).map_err(|why| wrong("unmatched", why))?;
        let path_map = path_map.unwrap_or_default();
        let options =
            OpenOptions { format, level, table, column, layout, pattern, missing, unmatched, path_map };
        let cache = cache.map_or(Ok(Cache::None), str::parse).map_err(|why| wrong("cache", why))?;
        let open = move |_: &AtomicBool| {
            cache.begin(path.first())?;
            let set = match path {
                Paths::One(path) if in_color => wellread::Dataset::open_in_color(vec![path], &options)?,
                Paths::Several(paths) if in_color => wellread::Dataset::open_in_color(paths, &options)?,
                Paths::One(path) => wellread::Dataset::open_with(path, &options)?,
                Paths::Several(paths) => wellread::Dataset::open_all(paths, &options)?,
            };
            let set = if skip_null { set.without_nulls()? } else { set };
            set.with_cache(&cache)
        };
        // Here, where the process may still have but this thread.
        wellread::store::fd_table::reserve_descriptors();
        abandonable(py, Activity::Opening, open).map(Self::new)
    }

    /// The images of an Arrow stream in memory.
    #[staticmethod]
    #[pyo3(signature = (stream, column=None, skip_null=false))]
    fn from_arrow(
        py: Python<'_>,
        stream: &Bound<'_, PyCapsule>,
        column: Option<String>,
        skip_null: bool,
    ) -> PyResult<Self> {
        crate::arrow::import(py, stream, column, skip_null).map(Self::new)
    }

    /// The cells of a table or of label images, cut out of these images; masks may be label images that are open.
    fn cells(
        &self,
        py: Python<'_>,
        table: CellTable<'_>,
        choices: CellChoice,
        masks: Option<PyRef<'_, Self>>,
    ) -> PyResult<Self> {
        let options = choices.options().map_err(|error| exception(py, &error, Activity::Choosing))?;
        let here = |set: &Self| {
            set.opened.of_this_process().map_err(|error| exception(py, &error, Activity::Opening))
        };
        let masks = masks.map(|masks| here(&masks)).transpose()?;
        let table = match table {
            CellTable::Stream(stream) => Table::Stream(taken(&stream)?),
            CellTable::Labels(labels) => Table::Labels(here(&labels)?),
            CellTable::File(path) => Table::File(path),
        };
        let cut = move |images: &wellread::Dataset, _: &AtomicBool| {
            crate::cells::cut(images, table, masks.as_ref(), &options)
        };
        self.opened.run_interruptible(py, Activity::Opening, cut).map(Self::new)
    }

    /// The same images with the columns of an Arrow stream beside them. Also the names of the columns that are left
    /// out and what they hold. The doubts about its rows come last. `index` has the texts of an index that is no column.
    #[pyo3(signature = (stream, on, nulls, index=None))]
    fn with_columns(
        &self,
        py: Python<'_>,
        stream: &Bound<'_, PyCapsule>,
        on: Vec<String>,
        nulls: bool,
        index: Option<Vec<String>>,
    ) -> PyResult<WithTable<Self>> {
        let (beside, left_out, doubts) = with_columns(py, &self.opened, stream, index, on, nulls)?;
        Ok((Self::new(beside), left_out, doubts))
    }

    /// Some rows, in this order, as a set.
    fn select(&self, py: Python<'_>, rows: Vec<usize>) -> PyResult<Self> {
        self.opened.with(py, Activity::Choosing, |dataset| dataset.select(rows)).map(Self::new)
    }

    /// Several sets as one.
    #[staticmethod]
    fn concat(py: Python<'_>, sets: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let sets: Result<Vec<wellread::Dataset>> =
            sets.into_iter().map(|set| set.opened.of_this_process()).collect();
        let whole = sets.and_then(|sets| wellread::Dataset::concat(&sets));
        whole.map(Self::new).map_err(|error| exception(py, &error, Activity::Opening))
    }

    /// The sets that this one is put together from: name, and ranges of rows by their first and the row after the last.
    fn parts(&self) -> Vec<(String, Vec<(usize, usize)>)> {
        let parts = self.opened.original().parts();
        let ranges = |part: &SetPart| part.rows.iter().map(|rows| (rows.start, rows.end)).collect();
        parts.into_iter().map(|part| (part.name.clone(), ranges(&part))).collect()
    }

    /// Whether names of images begin with the name of their part, by names of files alone.
    fn names_begin_with_parts(&self, py: Python<'_>) -> PyResult<bool> {
        self.opened
            .with(py, Activity::Choosing, |dataset| Ok(dataset.store().hints().names_begin_with_parts()))
    }

    /// A weight for each row, so that parts are drawn in these shares.
    fn part_weights(&self, py: Python<'_>, shares: Vec<f64>) -> PyResult<Vec<f64>> {
        self.opened.with(py, Activity::Choosing, move |dataset| dataset.part_weights(&shares))
    }

    /// The report of the table of cells, as JSON; None where rows are images.
    fn cells_report(&self) -> PyResult<Option<String>> {
        let report = self.opened.original().cells_report();
        let text = report.map(serde_json::to_string).transpose();
        text.map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))
    }

    /// Whether rows are cut out of images, also those of some of its parts.
    fn are_cut(&self) -> bool {
        self.opened.original().store().hints().are_crops
    }

    /// All rows as an Arrow stream, in a capsule.
    fn arrow_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::arrow::export(py, &self.opened)
    }

    fn __len__(&self) -> usize {
        self.opened.original().len()
    }

    /// The opened path: for several paths, the folder that they have in common.
    #[getter]
    fn path(&self) -> String {
        self.opened.original().store().path().to_string_lossy().into_owned()
    }

    /// Name of the storage format.
    #[getter]
    fn format(&self) -> &'static str {
        self.opened.original().store().format()
    }

    /// A mask among the images and its image, by the names of folders and files alone.
    fn mask_among_files(&self, py: Python<'_>) -> PyResult<Option<(String, String)>> {
        self.opened
            .with(py, Activity::Opening, |dataset| Ok(wellread::store::masks::among_files(dataset.store())))
    }

    /// The layout that most names of files are of, and their number, where each file is an image since some are not. Or
    /// the layout that all are of, and the reason why each file is an image, and true.
    fn unmatched_names(&self, py: Python<'_>) -> PyResult<Option<(String, String, bool)>> {
        self.opened.with(py, Activity::Opening, |dataset| {
            let unmatched = wellread::store::sites::unmatched_names(dataset.store(), &OpenOptions::default());
            Ok(unmatched.map(|names| (names.layout.to_owned(), names.to_string(), names.is_clash())))
        })
    }

    /// Which images of a folder the table that it was opened by does not name, in a sentence.
    fn images_without_row(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.opened.with(py, Activity::Opening, |dataset| {
            let sites = dataset.store().hints().sites;
            Ok(sites.and_then(|sites| sites.summary().unnamed_in_words()))
        })
    }

    /// Why the folder was not opened by the table of files in it, in a sentence.
    fn unused_table(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.opened.with(py, Activity::Opening, |dataset| {
            Ok(wellread::store::sites::unused_table(dataset.store(), &OpenOptions::default()))
        })
    }

    /// Shape (T, C, Z, Y, X) and type of a row.
    fn info(&self, py: Python<'_>, row: usize) -> PyResult<([usize; 5], &'static str)> {
        let info = self.opened.with(py, Activity::Reading, move |dataset| dataset.row_info(row))?;
        Ok((info.shape.0, stored_dtype(info).name()))
    }

    /// Whether all these rows have the shape and type of the first. With `each_file`, all files of each row are looked into.
    #[pyo3(signature = (rows, each_file=false))]
    fn alike(&self, py: Python<'_>, rows: Vec<usize>, each_file: bool) -> PyResult<bool> {
        if rows.len() < DETACHED_LOOKUP_ROWS {
            return self.opened.with(py, Activity::Reading, move |dataset| {
                are_alike(dataset, &rows, each_file, &AtomicBool::new(false))
            });
        }
        self.opened.run_interruptible(py, Activity::Reading, move |dataset, stop| {
            are_alike(dataset, &rows, each_file, stop)
        })
    }

    /// Rows in parts of about these fractions, by a hash of names, or of columns or keys.
    #[pyo3(signature = (fractions, columns, keys, seed))]
    fn split(
        &self,
        py: Python<'_>,
        fractions: Vec<f64>,
        columns: Option<Vec<String>>,
        keys: Option<Vec<Option<String>>>,
        seed: u64,
    ) -> PyResult<Vec<Vec<usize>>> {
        let by = grouping(columns, keys);
        self.opened.run_interruptible(py, Activity::Choosing, move |dataset, _| {
            dataset.split(&fractions, by.as_ref(), seed)
        })
    }

    /// Name of a row.
    fn name(&self, py: Python<'_>, row: usize) -> PyResult<String> {
        self.opened.with(py, Activity::Reading, move |dataset| dataset.name(row))
    }

    /// The metadata of a row beside its pixels, as JSON.
    fn metadata(&self, py: Python<'_>, row: usize) -> PyResult<String> {
        self.opened.with(py, Activity::Reading, move |dataset| {
            let metadata = dataset.metadata(row)?;
            serde_json::to_string(&metadata).map_err(|e| Error::new(dataset.store().path(), e).row(row))
        })
    }

    /// The channels of the first image that are called masks and hold whole numbers, by number and name.
    fn mask_channels(&self, py: Python<'_>) -> PyResult<Vec<(usize, String)>> {
        self.opened
            .with(py, Activity::Choosing, |dataset| Ok(wellread::store::masks::channels(dataset.store())))
    }

    /// Two sets that this one is put together from, or two of its images, that have other channels at the same numbers. It gives their
    /// names and channels. `rows` and `channels` narrow the search. About `most` images are looked at.
    #[pyo3(signature = (rows, channels, most))]
    fn mixed_channels(
        &self,
        py: Python<'_>,
        rows: Option<Vec<usize>>,
        channels: Option<Vec<usize>>,
        most: usize,
    ) -> PyResult<Option<(NamedChannels, NamedChannels)>> {
        self.opened.with(py, Activity::Choosing, move |dataset| {
            let (rows, channels) = (rows.as_deref(), channels.as_deref());
            let mixed = wellread::store::mixed_channels::find(dataset.store(), rows, channels, most);
            Ok(mixed.map(|mixed| mixed.two.into()))
        })
    }

    /// Pixels of rows of equal shape and type, read in one request. With `region` (first index and length along T, C, Z,
    /// Y, X) it is a box of each.
    #[pyo3(signature = (rows, region=None))]
    fn read(
        &self,
        py: Python<'_>,
        rows: Vec<usize>,
        region: Option<([usize; 5], [usize; 5])>,
    ) -> PyResult<Batch> {
        let region = region.map(|(start, size)| Region { start, size });
        if let [row] = rows[..] {
            // One small image is not worth a thread.
            let small = self.opened.with(py, Activity::Reading, move |dataset| {
                is_small(dataset, row)?
                    .then(|| read(dataset, &[row], region, &AtomicBool::new(false)))
                    .transpose()
            })?;
            if let Some(pixels) = small {
                return Ok(Batch::new(pixels));
            }
        }
        self.opened
            .run_interruptible(py, Activity::Reading, move |dataset, stop| read(dataset, &rows, region, stop))
            .map(Batch::new)
    }

    /// How the set is kept: words for people.
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (layout, bytes) = self.opened.with(py, Activity::Opening, |dataset| {
            Ok((dataset.store().layout()?, dataset.store().bytes_on_disk()?))
        })?;
        let dict = PyDict::new(py);
        dict.set_item("codec", layout.codec)?;
        dict.set_item("pieces", layout.pieces)?;
        dict.set_item("variant", layout.variant)?;
        dict.set_item("bytes_on_disk", bytes)?;
        Ok(dict)
    }

    /// A sentence that the cache, called `option` there, is too small for the first image; `None` where it keeps it.
    fn first_beyond_cache(&self, py: Python<'_>, option: String) -> PyResult<Option<String>> {
        self.opened.with(py, Activity::Opening, move |dataset| Ok(dataset.first_beyond_cache(&option)))
    }

    /// The content and the counts of the cache, and of the one on disk for a set behind a network.
    fn cache_report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (report, on_disk) = self.opened.with(py, Activity::Opening, |dataset| {
            Ok((dataset.cache_report(), dataset.disk_cache_report()))
        })?;
        let dict = PyDict::new(py);
        dict.set_item("bytes", report.bytes)?;
        dict.set_item("images", report.images)?;
        dict.set_item("hits", report.hits)?;
        dict.set_item("misses", report.misses)?;
        if let Some(on_disk) = on_disk {
            dict.set_item("disk_hits", on_disk.hits)?;
            dict.set_item("disk_misses", on_disk.misses)?;
            dict.set_item("disk_bytes_read", on_disk.bytes_read)?;
            dict.set_item("disk_bytes_kept", on_disk.bytes_kept)?;
        }
        Ok(dict)
    }

    /// Values of a column beside the images: (bytes, type, bytes that tell which are there or None), or a list of texts.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        crate::arrow::column(py, &self.opened, name)
    }

    /// As `column` of each of these names, of which none is given twice, read together.
    fn columns<'py>(&self, py: Python<'py>, names: Vec<String>) -> PyResult<Bound<'py, PyList>> {
        crate::arrow::columns(py, &self.opened, names)
    }

    /// Names of the columns beside the images.
    fn column_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.opened.column_names(py)
    }

    /// The columns that cannot stand beside the images, and what they hold.
    fn columns_left_out(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str)>> {
        self.opened.with(py, Activity::Opening, |dataset| {
            let left_out = dataset.store().hints().columns_left_out();
            Ok(left_out.into_iter().map(|column| (column.name, column.why)).collect())
        })
    }
}
