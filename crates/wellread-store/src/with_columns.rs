//! A set with more columns beside its images. They are those of a table that a program has in memory, such as the observations of an
//! AnnData or the plan of a plate.
//!
//! ```text
//!  record batches ─ joined(on) ─▶ a row per image ─┐
//!  images ─────────────────────────────────────────┴▶ WithColumns: the same images, the columns of both
//! ```

mod order;

use crate::features::{self, FeatureColumns};
use crate::profiles::{RowsOfImages, rows_of_images, some_keys, some_values};
use crate::row_location::path_of_set;
use crate::suggested;
use crate::surface::{option, option_as};
use crate::words::counted;
use crate::{Error, FeatureTable, Hints, LeftOut, Result, Store, delegate_columns, delegate_store};
use arrow_array::{ArrayRef, RecordBatch};
pub use order::{OtherOrder, are_in_other_order};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use wellread_image::ome_arrow::ROW_ID;

/// The name of a table in memory in errors.
pub(crate) const TABLE: &str = "<table>";

/// Images without a row whose names are looked at for a message.
const LOOKED_AT: usize = 100;
/// Most names of columns that a message lists.
const MAX_LISTED: usize = 12;

/// A store with more columns beside the images of another one. Where both have a column of one name, the new one counts.
pub struct WithColumns {
    inner: Arc<dyn Store>,
    columns: Arc<FeatureColumns>,
}

impl WithColumns {
    /// These columns beside these images.
    ///
    /// # Errors
    /// Columns of more or fewer rows than there are images.
    pub fn new(inner: Arc<dyn Store>, columns: Arc<FeatureColumns>) -> Result<Self> {
        if columns.num_rows() != inner.len() {
            return Err(no_row_per_image(&*inner, columns.num_rows()));
        }
        Ok(Self { inner, columns })
    }

    fn has(&self, name: &str) -> bool {
        self.columns.column_by_name(name).is_some()
    }
}

fn no_row_per_image(images: &dyn Store, rows: usize) -> Error {
    let cause = format!("has {} for {}", counted(rows, "row"), counted(images.len(), images.hints().thing()));
    Error::new(TABLE, cause)
        .hint(format_args!(
            "give one row per image, in the images' order, or name the column that tells the image ({})",
            option("on")
        ))
        .choice()
}

/// The columns of a table, brought to a row per image.
#[derive(Clone, Debug)]
pub struct JoinedColumns {
    /// A row for each image.
    pub columns: FeatureColumns,
    /// The name in a row of an image of the set, whose folders are not those that the set lies in.
    pub other_folder: Option<String>,
    /// Where rows were taken in the order of the images: what has a row for each image, in another order.
    pub other_order: Option<OtherOrder>,
}

/// The columns of a table with a row per image. Its rows are those of the images already, or they are found by the
/// values of the columns `on`, which the images have too. Columns that the images do not have hold their names, or names
/// of their files: [`crate::profiles::join`] has the same rule. Columns of nulls alone, of nested and of binary values are
/// left out ([`left_out`]). With `nulls`, images that no row is of get nulls.
///
/// Whole numbers are the same as 1, 1.0 and "01". Times are the same in each unit, and no numbers. Many images may share a row.
///
/// # Errors
/// Columns that are not there or there twice. Other numbers of rows than images where no column is named. Two rows for
/// an image. A name that is of images in several folders, a row with names of two sites. An image without a row, unless `nulls`; no image with one.
pub fn joined(
    images: &dyn Store,
    batches: &[RecordBatch],
    on: &[String],
    nulls: bool,
) -> Result<JoinedColumns> {
    joined_beside(images, batches, None, on, nulls)
}

/// As [`joined`], of a frame whose `index` is none of its columns. The index is compared with the images where no column is named.
///
/// # Errors
/// As [`joined`].
pub fn joined_beside(
    images: &dyn Store,
    batches: &[RecordBatch],
    index: Option<&ArrayRef>,
    on: &[String],
    nulls: bool,
) -> Result<JoinedColumns> {
    let table = whole(batches)?;
    if on.is_empty() {
        return if table.num_rows() == images.len() {
            let other_order = order::other_order(images, &table, index);
            Ok(JoinedColumns { columns: table, other_folder: None, other_order })
        } else {
            Err(no_row_per_image(images, table.num_rows()))
        };
    }
    let columns = key_columns(&table, on)?;
    let RowsOfImages { rows, keys, other_folder } = rows_of_images(images, Path::new(TABLE), on, &columns)?;
    let by_columns = keys.is_some();
    let without: Vec<usize> = (0..rows.len()).filter(|&image| rows[image].is_none()).collect();
    if let Some(&first) = without.first().filter(|_| !nulls) {
        let (count, name) = (without.len(), images.name(first)?);
        let cause = format!(
            "the table has no row for {count} of {}, the first is {name}",
            counted(images.len(), images.hints().thing())
        );
        let ours = if let Some(keys) = &keys {
            some_keys(without.iter().filter_map(|&image| keys[image].as_ref()))
        } else {
            let names = without.iter().take(LOOKED_AT).map(|&image| images.name(image));
            some_keys(names.collect::<Result<Vec<String>>>()?.iter())
        };
        let hint = format!(
            "images without a row have {ours}, the column {} has {}; {} leaves its columns empty there",
            on.join(", "),
            some_values(&columns),
            option_as("unmatched", "null")
        );
        // The row is one of the set.
        return Err(Error::new(path_of_set(images), cause).row(first).hint(hint).choice());
    }
    let schema = table.schema();
    let names = schema.fields().iter().map(|field| field.name());
    // Columns that the images have already, and that are the same.
    let kept: Vec<String> = names.filter(|name| !(by_columns && on.contains(*name))).cloned().collect();
    if kept.is_empty() {
        let cause = format!("has no column but {}, which the images have", on.join(", "));
        return Err(Error::new(TABLE, cause).choice());
    }
    let kept = features::chosen(Path::new(TABLE), std::slice::from_ref(&table), &kept)?;
    let columns = features::taken(&kept, rows).map_err(|e| Error::new(TABLE, e))?;
    Ok(JoinedColumns { columns, other_folder, other_order: None })
}

/// The columns of the table that tell an image.
fn key_columns(table: &FeatureColumns, on: &[String]) -> Result<Vec<ArrayRef>> {
    let column = |name: &String| {
        table.column_by_name(name).cloned().ok_or_else(|| {
            let schema = table.schema();
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            Error::new(TABLE, format_args!("has no column {name:?} of plain values"))
                .choice()
                .hint(suggested::hint(name, &names, MAX_LISTED))
        })
    };
    on.iter().map(column).collect()
}

/// The columns of a table that cannot stand beside images, such as nested and binary ones, and why.
#[must_use]
pub fn left_out(batches: &[RecordBatch]) -> Vec<LeftOut> {
    let Some(first) = batches.first() else { return vec![] };
    features::other_columns(first.schema_ref()).collect()
}

/// The plain columns of all batches as one.
pub(crate) fn whole(batches: &[RecordBatch]) -> Result<FeatureColumns> {
    let Some(first) = batches.first() else { return Err(Error::new(TABLE, "has no columns").choice()) };
    let schema = first.schema();
    let names: Vec<String> = features::plain_columns(&schema).map(str::to_owned).collect();
    if names.is_empty() {
        let cause = "has no column of plain values: numbers, texts, times or truth values";
        return Err(Error::new(TABLE, cause).choice());
    }
    let mut seen = HashSet::new();
    if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(Error::new(TABLE, format_args!("has two columns {name:?}")).hint("rename one").choice());
    }
    features::gathered(Path::new(TABLE), batches, &names, false)
}

impl Store for WithColumns {
    delegate_store!(self => self.inner; format, path, remote_path, len, row_info, name, metadata, layout, files);
    delegate_store!(self => self.inner; files_of, has_checksums, row_hints, scan, heads, ranges);
    delegate_store!(self => self.inner; read, check);

    fn hints(&self) -> Hints<'_> {
        Hints { columns: Some(self), ..self.inner.hints() }
    }
}

impl FeatureTable for WithColumns {
    delegate_columns!(self => self.inner; columns_left_out, columns_renamed);

    fn feature_names(&self) -> Vec<String> {
        let mut names = self.inner.hints().feature_names();
        names.retain(|name| !self.has(name));
        names.extend(self.columns.schema().fields().iter().map(|field| field.name().clone()));
        names
    }

    fn columns_in_utc(&self) -> Vec<String> {
        let mut names = self.inner.hints().columns_in_utc();
        names.retain(|name| !self.has(name));
        names
    }

    fn has_row_numbers(&self) -> bool {
        !self.has(ROW_ID) && self.inner.hints().has_row_numbers()
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() {
            return Ok(None);
        }
        let theirs: Vec<String> = names.iter().filter(|name| !self.has(name)).cloned().collect();
        let mut batches = vec![self.columns.as_ref().clone()];
        batches.extend(self.inner.hints().features(&theirs)?);
        features::chosen(self.path(), &batches, names).map(Some)
    }
}

#[cfg(test)]
mod tests;
