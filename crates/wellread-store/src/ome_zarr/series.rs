//! Several images in one target that ends in `.zarr`: a series, as bioformats2raw lays it out.
//!
//! ```text
//!  cells.zarr/zarr.json                       bioformats2raw.layout 3
//!  cells.zarr/0, 1, 2 …                       the group of an image each
//!  cells.zarr/OME/zarr.json                   series: 0, 1, 2 …
//!  cells.zarr/OME/wellread-names.json         what each image is called
//!  cells.zarr/OME/wellread-columns.parquet    a row for each: its group, the columns beside it, where there are some
//! ```
//!
//! A folder of images, each a group with a name of its own, has the file of columns beside these, `cells/wellread-columns.parquet`.
//! One image has it in its own group, `cell.zarr/wellread-columns.parquet`: the name of the group is empty there.
//!
//! The first file, of 0.4 `.zmetadata` beside it, has the metadata of all images as well ([`super::consolidated`]),
//! where they are not too many. A reader from a bucket asks for one file.
//!
//! Other readers find images, and no more than that. The columns of an image are told by its group, so that groups that are removed
//! are no trouble. Those that are added have nulls.
//!
//! Specification: <https://ngff.openmicroscopy.org/0.5/#bf2raw>.

use super::consolidated::{self, Collected, ZMETADATA};
use super::write_metadata::Version;
use crate::features::taken;
use crate::parquet::{plain_names, read_plain, table_bytes};
use crate::words::counted;
use crate::{Error, Result, name_index, place};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The group of what is known of a series.
pub(super) const FOLDER: &str = "OME";

/// Name of the file of columns in it.
pub(super) const COLUMNS: &str = "wellread-columns.parquet";

/// The column of that file that tells the group of each image.
pub(super) const IMAGE: &str = "wellread_image";

/// Whether a target of this name is one image, or a series.
pub(super) fn is_target(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "zarr")
}

/// A series being written.
pub(super) struct NewSeries {
    /// Names of the images so far.
    names: Vec<String>,
    columns: Option<RecordBatch>,
    /// Metadata of the images.
    collected: Arc<Collected>,
}

impl NewSeries {
    /// With these columns, where there are some: a row per image.
    pub fn new(columns: Option<RecordBatch>) -> Self {
        Self { names: vec![], columns, collected: Arc::default() }
    }

    /// The collector that takes the metadata of each image as it is written.
    pub fn collected(&self) -> Arc<Collected> {
        Arc::clone(&self.collected)
    }

    /// The folder of the next image, which is called so.
    pub fn next(&mut self, name: &str) -> String {
        self.names.push(name.to_owned());
        (self.names.len() - 1).to_string()
    }

    /// Writes into `folder` what makes a series of the images there. Errors speak of `target`.
    ///
    /// # Errors
    /// Another number of images than of rows of columns; a file that cannot be written.
    pub fn finish(&self, folder: &Path, version: Version, target: &Path) -> Result<()> {
        let Self { names, columns, collected } = self;
        let cannot = |e: std::io::Error| Error::io(target, "cannot write", &e);
        let ome = folder.join(FOLDER);
        place::create_folder(&ome).map_err(cannot)?;
        let groups: Vec<String> = (0..names.len()).map(|row| row.to_string()).collect();
        let written: &[&str] = match version {
            Version::V05 => &["zarr.json", "0/zarr.json"],
            Version::V04 => &[".zgroup", ".zattrs", "0/.zarray"],
        };
        collected.add_written(folder, &groups, written);
        for (file, text) in metadata(version, &groups, collected) {
            place::write(&folder.join(file), text.as_bytes()).map_err(cannot)?;
        }
        name_index::write(&ome, groups.iter().cloned().zip(names.iter().cloned()), target)?;
        columns.as_ref().map_or(Ok(()), |columns| write_columns(&ome, groups, columns, target))
    }
}

/// Writes into `folder` the columns beside images, each of which is told by its group. Errors speak of `target`.
///
/// # Errors
/// Another number of images than of rows of columns; a file that cannot be written.
pub(super) fn write_columns(
    folder: &Path,
    groups: Vec<String>,
    columns: &RecordBatch,
    target: &Path,
) -> Result<()> {
    if groups.len() != columns.num_rows() {
        let (images, rows) = (counted(groups.len(), "image"), counted(columns.num_rows(), "row"));
        return Err(Error::new(target, format_args!("has {images}, and {rows} of columns beside them")));
    }
    let bytes = as_parquet(groups, columns).map_err(|why| {
        Error::new(target, format_args!("cannot write the columns beside the images: {why}"))
    })?;
    place::write(&folder.join(COLUMNS), &bytes).map_err(|e| Error::io(target, "cannot write", &e))
}

/// Files of metadata, by their paths in the series. With those of all images in one of them, unless these are too many.
fn metadata(version: Version, groups: &[String], collected: &Collected) -> Vec<(String, String)> {
    let images = collected.all(groups);
    match version {
        Version::V05 => {
            let group =
                |ome: Value| json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": ome}});
            let own = group(json!({"version": "0.5", "bioformats2raw.layout": 3}));
            let names = group(json!({"version": "0.5", "series": groups})).to_string();
            let names = (format!("{FOLDER}/zarr.json"), names);
            let own = match images {
                Some(mut below) => {
                    below.push(names.clone());
                    consolidated::v3(&own, &below)
                }
                None => own.to_string(),
            };
            vec![("zarr.json".to_owned(), own), names]
        }
        Version::V04 => {
            let group = json!({"zarr_format": 2}).to_string();
            let mut files = vec![
                (".zgroup".to_owned(), group.clone()),
                (".zattrs".to_owned(), json!({"bioformats2raw.layout": 3}).to_string()),
                (format!("{FOLDER}/.zgroup"), group),
                (format!("{FOLDER}/.zattrs"), json!({"series": groups}).to_string()),
            ];
            if let Some(images) = images {
                let all: Vec<_> = files.iter().cloned().chain(images).collect();
                files.push((ZMETADATA.to_owned(), consolidated::v2(&all)));
            }
            files
        }
    }
}

/// The columns, with the group of each row before them, as a file of Parquet.
fn as_parquet(groups: Vec<String>, columns: &RecordBatch) -> Result<Vec<u8>, parquet::errors::ParquetError> {
    let mut fields = vec![Arc::new(Field::new(IMAGE, DataType::Utf8, false))];
    fields.extend(columns.schema().fields().iter().cloned());
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(StringArray::from(groups))];
    arrays.extend(columns.columns().iter().cloned());
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
    table_bytes(&batch)
}

/// The columns of a series, of a folder of images, or of one image.
#[derive(Debug)]
pub(super) struct SeriesColumns {
    file: PathBuf,
    names: Vec<String>,
}

impl SeriesColumns {
    /// The file of the group at `path`, or of the folder of groups; `None` where there is none.
    ///
    /// # Errors
    /// A file that cannot be read, or is another one.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let files = [path.join(FOLDER).join(COLUMNS), path.join(COLUMNS)];
        let Some(file) = files.into_iter().find(|file| place::is_file(file)) else { return Ok(None) };
        let mut names = plain_names(&file)?.names;
        if !names.iter().any(|name| name == IMAGE) {
            return Err(no_groups(&file));
        }
        names.retain(|name| name != IMAGE);
        Ok(Some(Self { file, names }))
    }

    /// Names of the columns.
    pub fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Those columns of the images in these groups, nulls where the file has no row of one.
    ///
    /// # Errors
    /// Columns that cannot be read; no such column.
    pub fn columns(&self, names: &[String], groups: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() {
            return Ok(None);
        }
        let asked: Vec<String> = std::iter::once(IMAGE.to_owned()).chain(names.iter().cloned()).collect();
        let found = read_plain(&self.file, &asked)?;
        let of_rows = found.column_by_name(IMAGE).and_then(|column| column.as_string_opt::<i32>());
        let of_rows = of_rows.ok_or_else(|| no_groups(&self.file))?;
        let row_of: HashMap<&str, u64> =
            of_rows.iter().enumerate().filter_map(|(row, group)| Some((group?, row as u64))).collect();
        let rows: Vec<Option<u64>> = groups.iter().map(|group| row_of.get(group.as_str()).copied()).collect();
        let schema = found.schema();
        let places = names.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>();
        let columns = places.and_then(|places| taken(&found.project(&places)?, rows));
        columns.map(Some).map_err(|e| Error::new(&self.file, e))
    }
}

fn no_groups(file: &Path) -> Error {
    Error::new(file, format_args!("has no texts {IMAGE:?}, which tell the image of each row"))
        .hint("copy it again from where the series came from; without it, images have no columns")
}
