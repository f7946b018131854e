//! The small tables: images, and where their chunks are.
//!
//! ```text
//!  images.parquet ──read_images──▶ Image … ─┐
//!  index.parquet, else chunks.parquet ──────┴─read_locations──▶ Chunk …, by image and by place ──check_tiling──▶ Tables
//! ```

use super::super::file::{PositionalFile, guarded};
use super::super::footer::footer;
use super::super::plain;
use super::super::sums::check_sums;
use super::image::{Chunk, Image, check_tiling};
use super::names::{AXES, CHUNKS, IMAGES, INDEX};
use crate::features::{other_columns, plain_columns, text};
use crate::{Error, LeftOut, Renamed, Result, RowInfo, place};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};

/// Images and their chunks.
#[derive(Debug)]
pub(super) struct Tables {
    /// The table of images, which stays open: one that takes its place has other values beside other images.
    file: PositionalFile,
    metadata: ArrowReaderMetadata,
    pub images: Vec<Image>,
    /// Columns of plain values beside the table of images' own.
    pub features: Vec<String>,
    /// Names of the other columns that are not the table's own.
    pub left_out: Vec<LeftOut>,
    /// Those of both that have another name here than in the file.
    pub renamed: Vec<Renamed>,
    /// By image, then by place in the file.
    pub chunks: Vec<Chunk>,
}

/// Whether a table must have a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Required,
    Optional,
}

/// Columns of a small table, whatever widths its writer chose.
struct Columns<'a> {
    path: &'a Path,
    file: PositionalFile,
    metadata: ArrowReaderMetadata,
    batches: Vec<RecordBatch>,
}

impl<'a> Columns<'a> {
    /// Reads the columns called `names` that are there.
    fn read(path: &'a Path, names: &[&str]) -> Result<Self> {
        let file = PositionalFile::open(path)?;
        let what = "cannot be read";
        let metadata = footer(&file)?;
        let schema = metadata.parquet_schema();
        let leaves = (0..schema.num_columns()).filter(|&i| {
            schema.column(i).path().parts().first().is_some_and(|name| names.contains(&name.as_str()))
        });
        for group in 0..metadata.metadata().num_row_groups() {
            check_sums(&file, &metadata, group, leaves.clone())?;
        }
        let batches = guarded(&file, what, || {
            let wanted = ProjectionMask::columns(metadata.parquet_schema(), names.iter().copied());
            ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
                .with_projection(wanted)
                .build()?
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(Into::into)
        })?;
        Ok(Self { path, file, metadata, batches })
    }

    fn missing(&self, name: &str) -> Error {
        Error::new(self.path, format_args!("there is no column {name}"))
            .hint("this is no OME-Arrow dataset, or one of another version")
    }

    /// Values of an integer column; null where null.
    fn integers(&self, name: &str) -> Result<Vec<Option<i64>>> {
        let mut out = vec![];
        for batch in &self.batches {
            let column = batch.column_by_name(name).ok_or_else(|| self.missing(name))?;
            match column.data_type() {
                DataType::Int32 => {
                    out.extend(column.as_primitive::<Int32Type>().iter().map(|v| v.map(i64::from)));
                }
                DataType::Int64 => out.extend(column.as_primitive::<Int64Type>().iter()),
                DataType::Null => out.extend(std::iter::repeat_n(None, column.len())),
                other => {
                    return Err(Error::new(
                        self.path,
                        format_args!("column {name} is {other}, not integers"),
                    ));
                }
            }
        }
        Ok(out)
    }

    /// Hands over the values of a text column; empty where null, or where an optional column is absent.
    fn each_text(&self, name: &str, need: Need, each: &mut dyn FnMut(&str)) -> Result<()> {
        for batch in &self.batches {
            let column = batch.column_by_name(name);
            match column.map(|column| (column, column.data_type())) {
                Some((column, DataType::Utf8 | DataType::LargeUtf8)) => {
                    (0..column.len()).for_each(|i| each(text(column, i).unwrap_or_default()));
                }
                Some((_, DataType::Null)) => (0..batch.num_rows()).for_each(|_| each("")),
                Some((_, other)) => {
                    return Err(Error::new(self.path, format_args!("column {name} is {other}, not text")));
                }
                None if need == Need::Optional => (0..batch.num_rows()).for_each(|_| each("")),
                None => return Err(self.missing(name)),
            }
        }
        Ok(())
    }

    /// Whether a column has a value, row by row; never where it is absent.
    fn present(&self, name: &str) -> Vec<bool> {
        let of = |batch: &RecordBatch| -> Vec<bool> {
            let column = batch.column_by_name(name).filter(|column| *column.data_type() != DataType::Null);
            (0..batch.num_rows()).map(|i| column.is_some_and(|column| column.is_valid(i))).collect()
        };
        self.batches.iter().flat_map(of).collect()
    }

    /// Values of a text column, as [`Self::each_text`] hands them over.
    fn texts(&self, name: &str, need: Need) -> Result<Vec<String>> {
        let mut out = vec![];
        self.each_text(name, need, &mut |text| out.push(text.to_owned()))?;
        Ok(out)
    }

    /// As [`Self::texts`], for texts that most rows share: such as follow each other are kept once.
    fn shared_texts(&self, name: &str, need: Need) -> Result<Vec<Arc<str>>> {
        let mut out: Vec<Arc<str>> = vec![];
        self.each_text(name, need, &mut |text| {
            let same = out.last().filter(|last| &***last == text).map(Arc::clone);
            out.push(same.unwrap_or_else(|| text.into()));
        })?;
        Ok(out)
    }

    /// Values of an optional column of doubles.
    fn doubles(&self, name: &str) -> Vec<Option<f64>> {
        let mut out = vec![];
        for batch in &self.batches {
            match batch.column_by_name(name) {
                Some(column) if *column.data_type() == DataType::Float64 => {
                    out.extend(column.as_primitive::<Float64Type>().iter());
                }
                _ => out.resize(out.len() + batch.num_rows(), None),
            }
        }
        out
    }
}

/// Columns that wellread adds to `images.parquet`: sizes of a pixel along X, Y and Z in micrometres, and when the
/// image was taken.
pub(super) const PHYSICAL: [&str; 3] = ["physical_size_x_um", "physical_size_y_um", "physical_size_z_um"];
pub(super) const ACQUIRED: &str = "acquisition_datetime";

impl Tables {
    /// Reads the tables of the dataset at `folder`.
    ///
    /// # Errors
    /// A table that is missing, unreadable or lacks a column; chunks of images that are not listed. An error of
    /// one image is kept with it.
    pub fn read(folder: &Path) -> Result<Self> {
        let ImageTable { file, metadata, mut images, features, left_out, renamed } =
            read_images(&folder.join(IMAGES))?;
        let index = folder.join(INDEX);
        let mut chunks = if place::exists(&index) {
            read_locations(&index, &images, LocationTable::Index)?
        } else {
            read_locations(&folder.join(CHUNKS), &images, LocationTable::Chunks)?
        };
        chunks.sort_by_key(|c| (c.image, c.group, c.id));
        let mut at = 0;
        for (i, image) in images.iter_mut().enumerate() {
            let first = at;
            while at < chunks.len() && chunks[at].image as usize == i {
                at += 1;
            }
            image.chunks = first..at;
            if let Ok(info) = image.info
                && let Err(why) = check_tiling(info.shape, &chunks[first..at])
            {
                image.info = Err(why);
            }
        }
        Ok(Self { file, metadata, images, features, left_out, renamed, chunks })
    }

    /// The values of columns beside the images.
    ///
    /// # Errors
    /// A table that is corrupt, or that somebody has written to since it was opened.
    pub fn values(&self, names: &[String]) -> Result<RecordBatch> {
        self.file.unless_written(plain::read_columns(&self.file, &self.metadata, names))
    }
}

/// Whether `images.parquet` has a column of this name by itself, as the reference or wellread writes it.
pub(super) fn is_own(name: &str) -> bool {
    let axis =
        ["size_", "chunk_"].iter().find_map(|p| name.strip_prefix(p)).is_some_and(|a| AXES.contains(&a));
    let named =
        ["image_id", "name", "image_type", "dtype", "layout", "compression", "channels_json", ACQUIRED];
    axis || named.contains(&name) || PHYSICAL.contains(&name)
}

/// The content of `images.parquet`: images, and columns beside them, as in [`Tables`].
struct ImageTable {
    file: PositionalFile,
    metadata: ArrowReaderMetadata,
    images: Vec<Image>,
    features: Vec<String>,
    left_out: Vec<LeftOut>,
    renamed: Vec<Renamed>,
}

/// Reads it.
fn read_images(path: &Path) -> Result<ImageTable> {
    let mut names = vec!["image_id", "name", "dtype", "layout", "channels_json", ACQUIRED];
    let sizes = AXES.map(|axis| format!("size_{axis}"));
    names.extend(sizes.iter().map(String::as_str));
    names.extend(PHYSICAL);
    let table = Columns::read(path, &names)?;
    let (schema, renamed) = plain::named(&table.metadata);
    let features = plain_columns(&schema).filter(|name| !is_own(name)).map(str::to_owned).collect();
    let left_out = other_columns(&schema).filter(|column| !is_own(&column.name)).collect();
    let ids = table.shared_texts("image_id", Need::Required)?;
    let own_names = table.shared_texts("name", Need::Optional)?;
    // An empty name is a name; an image without one is called by its id.
    let named = table.present("name");
    let dtypes = table.shared_texts("dtype", Need::Required)?;
    let layouts = table.shared_texts("layout", Need::Optional)?;
    let channels = table.shared_texts("channels_json", Need::Optional)?;
    let acquired = table.shared_texts(ACQUIRED, Need::Optional)?;
    let physical = PHYSICAL.map(|name| table.doubles(name));
    let mut axes = vec![];
    for name in &sizes {
        axes.push(table.integers(name)?);
    }
    let columns = own_names.into_iter().zip(dtypes).zip(layouts).zip(channels).zip(acquired);
    let images = ids
        .into_iter()
        .zip(columns)
        .enumerate()
        .map(|(i, (id, ((((name, dtype), layout), channels), acquired)))| Image {
            info: info_of(&dtype, std::array::from_fn(|a| axes[a][i])),
            name: if !named[i] || name == id { Arc::clone(&id) } else { name },
            id,
            channels,
            layout,
            physical: std::array::from_fn(|a| physical[a][i]),
            acquired: Some(acquired).filter(|text| !text.is_empty()),
            chunks: 0..0,
        })
        .collect();
    let Columns { file, metadata, .. } = table;
    Ok(ImageTable { file, metadata, images, features, left_out, renamed })
}

fn info_of(dtype: &str, sizes: [Option<i64>; 5]) -> Result<RowInfo, String> {
    if dtype.is_empty() || sizes.contains(&None) {
        return Err(Error::NULL_IMAGE.to_owned());
    }
    let dtype: PixelType = dtype.parse().map_err(|e| format!("{e}"))?;
    let mut shape = [0; 5];
    for (to, size) in shape.iter_mut().zip(sizes) {
        let size = size.unwrap_or_default();
        *to = u32::try_from(size).map_err(|_| format!("a size of {size} is not possible"))? as usize;
    }
    let shape = Shape(shape);
    shape.checked_bytes(dtype).map_err(|e| e.to_string())?;
    Ok(RowInfo { shape, dtype })
}

/// The table that says where chunks are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LocationTable {
    /// A table of its own.
    Index,
    /// That of the chunks themselves: each is of the row group that it lies in.
    Chunks,
}

/// Reads where chunks are.
fn read_locations(path: &Path, images: &[Image], from: LocationTable) -> Result<Vec<Chunk>> {
    let sizes = AXES.map(|axis| format!("shape_{axis}"));
    let mut names = vec!["image_id", "chunk_id", "row_group_id", "fragment_path"];
    names.extend(AXES);
    names.extend(sizes.iter().map(String::as_str));
    let table = Columns::read(path, &names)?;
    let of_image: HashMap<&str, u32> = images.iter().enumerate().map(|(i, m)| (&*m.id, i as u32)).collect();
    if of_image.len() < images.len() {
        return Err(Error::new(path, "two images have the same image_id, so chunks cannot be told apart")
            .hint("write the dataset again with ids that differ"));
    }
    let image_ids = table.texts("image_id", Need::Required)?;
    let ids = table.integers("chunk_id")?;
    let groups: Vec<Option<i64>> = if from == LocationTable::Chunks {
        let groups = table.metadata.metadata().row_groups().iter().enumerate();
        groups
            .flat_map(|(g, meta)| std::iter::repeat_n(Some(g as i64), meta.num_rows().max(0) as usize))
            .collect()
    } else {
        table.integers("row_group_id")?
    };
    if from == LocationTable::Index
        && let Some(other) =
            table.texts("fragment_path", Need::Optional)?.iter().find(|f| !f.is_empty() && *f != CHUNKS)
    {
        return Err(Error::new(path, format_args!("chunks lie in {other:?}; only {CHUNKS} is read"))
            .hint("write the dataset again into one chunk table"));
    }
    let (mut starts, mut shapes) = (vec![], vec![]);
    for axis in 0..5 {
        starts.push(table.integers(AXES[axis])?);
        shapes.push(table.integers(&sizes[axis])?);
    }
    let small = |column: &[Option<i64>], i: usize| {
        column.get(i).copied().flatten().and_then(|v| u32::try_from(v).ok()).ok_or_else(|| {
            Error::new(path, format_args!("the place of chunk {i} is null or negative"))
                .hint("the file is corrupt; write the dataset again")
        })
    };
    let mut chunks = Vec::with_capacity(image_ids.len());
    for (i, id) in image_ids.iter().enumerate() {
        let Some(&image) = of_image.get(id.as_str()) else {
            return Err(Error::new(
                path,
                format_args!("chunk {i} belongs to image {id:?}, which {IMAGES} does not list"),
            )
            .hint("the files of the folder do not belong together; write the dataset again"));
        };
        let (mut start, mut size) = ([0; 5], [0; 5]);
        for axis in 0..5 {
            start[axis] = small(&starts[axis], i)?;
            size[axis] = small(&shapes[axis], i)?;
        }
        let id = ids.get(i).copied().flatten().ok_or_else(|| without_id(path, format_args!("chunk {i}")))?;
        chunks.push(Chunk { image, id, group: small(&groups, i)?, start, size });
    }
    Ok(chunks)
}

/// The error of a chunk whose `chunk_id` is null.
pub(super) fn without_id(path: &Path, chunk: std::fmt::Arguments<'_>) -> Error {
    Error::new(path, format_args!("{chunk} has no chunk_id"))
        .hint("write the dataset again with an id for each chunk")
}
