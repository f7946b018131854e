//! Sets written by several processes, and images in memory as a set.
//!
//! ```text
//!  arrays ──from_images──▶ Dataset ─┐
//!  a set ──select──▶ some rows ─────┴──write_part──▶ a part ──Parts.commit──▶ the set at its place
//! ```

use crate::dataset::Dataset;
use crate::errors::{Activity, abandonable, exception};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use wellread::image::Channel;
use wellread::store::convert::ConvertOptions;
use wellread::store::parted::{self, PartedSet};
use wellread::store::staged::Existing;
use wellread::store::{Tune, WriteOptions, features, profiles, registry};
use wellread::{Error, ImageMetadata, MemoryStore, PixelType, Shape};

/// Choices of writing, each under its name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct WriteChoice {
    compression: String,
    chunk: Option<[usize; 5]>,
    shard: Option<[usize; 5]>,
    tune: String,
    variant: Option<String>,
    checksums: bool,
    jobs: usize,
    /// Names of the pixel types of all images.
    types: Vec<String>,
}

fn parsed<T: FromStr>(what: &str, text: &str) -> PyResult<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|why| PyValueError::new_err(format!("{what}: {why}")))
}

impl WriteChoice {
    fn options(self) -> PyResult<WriteOptions> {
        let types =
            self.types.iter().map(|name| parsed("dtype", name)).collect::<PyResult<Vec<PixelType>>>()?;
        Ok(WriteOptions {
            compression: parsed("compression", &self.compression)?,
            chunk: self.chunk,
            shard: self.shard,
            tune: match self.tune.as_str() {
                "random" => Tune::Random,
                "scan" => Tune::Scan,
                "size" => Tune::Size,
                "reference" => Tune::Reference,
                other => {
                    let why = format!("tune must be random, scan, size or reference, not {other:?}");
                    return Err(PyValueError::new_err(why));
                }
            },
            variant: self.variant,
            checksums: self.checksums,
            jobs: self.jobs.max(1),
            types,
            ..WriteOptions::default()
        })
    }
}

/// Name, shape (T, C, Z, Y, X), pixel type and pixels (C order, little-endian) of an image.
type GivenImage = (String, [usize; 5], String, PyBackedBytes);

/// Images in memory as a set; `channels` are what theirs are called, if that is known.
#[pyfunction]
pub(crate) fn from_images(
    py: Python<'_>,
    images: Vec<GivenImage>,
    channels: Vec<String>,
) -> PyResult<Dataset> {
    let mut store = MemoryStore::new("images");
    let channels: Vec<Channel> = channels
        .into_iter()
        .enumerate()
        .map(|(i, name)| Channel { id: format!("Channel:0:{i}"), name, ..Channel::default() })
        .collect();
    for (name, shape, dtype, pixels) in images {
        let metadata = ImageMetadata { channels: channels.clone(), ..ImageMetadata::named(name) };
        store
            .push_with(metadata, Shape(shape), parsed("dtype", &dtype)?, pixels.to_vec())
            .map_err(|error| exception(py, &error, Activity::Choosing))?;
    }
    Ok(Dataset::new(wellread::Dataset::from_store(Box::new(store))))
}

/// A set with the columns of a table of profiles beside its images, as `wellread convert --join` puts them there. `on` names the columns
/// that tell the image, separated by commas. `columns` narrows the others to those that it names.
#[pyfunction]
pub(crate) fn with_profiles(
    py: Python<'_>,
    dataset: PyRef<'_, Dataset>,
    table: PathBuf,
    on: String,
    columns: Vec<String>,
) -> PyResult<Dataset> {
    let joined = dataset.opened().run_interruptible(py, Activity::Reading, move |dataset, _| {
        let own = features::all(dataset.store())?;
        let (found, _) = profiles::join(dataset.store(), &table, &on, &columns)?;
        let (both, _) = features::beside(&table, own.as_ref(), &found)?;
        dataset.with_columns(both)
    });
    joined.map(Dataset::new)
}

/// The format that a target's name tells of by its ending.
#[pyfunction]
pub(crate) fn format_of_name(name: &str) -> Option<&'static str> {
    wellread::store::formats().iter().find(|format| format.has_ending(name)).map(|format| format.name)
}

/// Whether a format is one of tables, which hold images and columns in a file.
#[pyfunction]
pub(crate) fn is_table_format(py: Python<'_>, format: &str) -> PyResult<bool> {
    let known = registry::format_named(format);
    known.map(|format| format.keeps_features).map_err(|error| exception(py, &error, Activity::Choosing))
}

/// Writes all images of a set as the part at `path`; with `check` it is read back and compared. The bytes of their pixels.
#[pyfunction]
pub(crate) fn write_part(
    py: Python<'_>,
    dataset: PyRef<'_, Dataset>,
    path: PathBuf,
    format: String,
    options: WriteChoice,
    memory: u64,
    check: bool,
) -> PyResult<u64> {
    let options = options.options()?;
    dataset.opened().run_interruptible(py, Activity::Reading, move |dataset, _| {
        let (mut bytes, how) = (0, ConvertOptions { memory });
        parted::write_part(dataset.store(), &path, &format, &options, how, check, &mut |n| bytes += n)?;
        Ok(bytes)
    })
}

/// Whether the part at `path` holds the images of a set, pixels and all. Other names of channels or sizes of pixels are an error.
#[pyfunction]
pub(crate) fn part_holds(
    py: Python<'_>,
    dataset: PyRef<'_, Dataset>,
    path: PathBuf,
    format: String,
    options: WriteChoice,
) -> PyResult<bool> {
    let options = options.options()?;
    dataset.opened().run_interruptible(py, Activity::Reading, move |dataset, _| {
        parted::holds(dataset.store(), &path, &format, &options)
    })
}

/// A set that is being written in parts.
#[pyclass(frozen, module = "wellread._native")]
pub(crate) struct Parts {
    format: String,
    set: Mutex<Option<PartedSet>>,
}

impl Parts {
    /// Takes the set, which is finished then.
    fn take(&self) -> PyResult<PartedSet> {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner).take();
        set.ok_or_else(|| PyValueError::new_err("the set is written, or given up"))
    }

    fn with<T>(&self, look: impl FnOnce(&PartedSet) -> T) -> PyResult<T> {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        set.as_ref().map(look).ok_or_else(|| PyValueError::new_err("the set is written, or given up"))
    }
}

#[pymethods]
impl Parts {
    #[new]
    #[pyo3(signature = (target, format, overwrite, resume))]
    fn begin(
        py: Python<'_>,
        target: PathBuf,
        format: String,
        overwrite: bool,
        resume: Option<String>,
    ) -> PyResult<Self> {
        let name = format.clone();
        let set = abandonable(py, Activity::Opening, move |_| {
            PartedSet::begin(&target, &name, Existing::from_overwrite(overwrite), resume.as_deref())
        })?;
        Ok(Self { format, set: Mutex::new(Some(set)) })
    }

    /// Where a part of this name is written.
    fn part(&self, name: &str) -> PyResult<String> {
        self.with(|set| set.part(name).to_string_lossy().into_owned())
    }

    /// The name of a part by its number.
    fn part_name(&self, number: usize) -> PyResult<String> {
        self.with(|set| set.part_name(number))
    }

    /// The ending of names of parts.
    #[getter]
    fn ending(&self) -> PyResult<&'static str> {
        self.with(PartedSet::ending)
    }

    /// Whether parts become one table when the set is made of them.
    #[getter]
    fn joins(&self) -> PyResult<bool> {
        self.with(PartedSet::joins)
    }

    /// Whether columns of all images stand beside files of images.
    #[getter]
    fn keeps_columns(&self) -> PyResult<bool> {
        self.with(PartedSet::keeps_columns)
    }

    /// Makes a set of these parts, in this order, and moves it to its place. `source` has the columns of all images, for a format that keeps
    /// them beside files of images. The number of images.
    #[pyo3(signature = (parts, options, source))]
    fn commit(
        &self,
        py: Python<'_>,
        parts: Vec<String>,
        options: WriteChoice,
        source: Option<PyRef<'_, Dataset>>,
    ) -> PyResult<usize> {
        let mut options = options.options()?;
        let here = source.map(|source| source.opened().of_this_process()).transpose();
        let source = here.map_err(|error| exception(py, &error, Activity::Opening))?;
        let format = self.format.clone();
        let set = self.take()?;
        abandonable(py, Activity::Opening, move |_| {
            if let Some(source) = source {
                let format = registry::format_named(&format)?;
                if format.features_beside {
                    options.features = features::all(source.store())?;
                }
            }
            set.commit(&parts, &options)
        })
    }

    /// Leaves what was written to a later run that goes on with it; where none does, it goes.
    fn keep(&self) -> PyResult<()> {
        self.take().map(drop)
    }

    /// Removes all that was written.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        let set = self.take()?;
        abandonable(py, Activity::Opening, move |_| {
            set.discard();
            Ok::<(), Error>(())
        })
    }
}
