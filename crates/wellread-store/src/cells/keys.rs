//! Which image a cell is of: by columns that the table and the images have, by the image's name, or because there is but one.
//!
//! ```text
//!  by = Plate, Well, Site    table: Metadata_Plate …  ─ key ─┐
//!                            images' columns: Plate … ─ key ─┴▶ image of each row
//!  by = FileName             table: names ─ as profiles are joined ─▶ image of each name, or of a file of that name
//! ```

use super::options::CellOptions;
use super::table::CellTable;
use super::telling::{FILE, ILLUMINATION, NAMES, TELLING, by_name, is_as_before, resolved};
use super::usable;
use crate::features::{Comparison, Index, as_written, doubtful, key_at, refuse_unlike, row_values};
use crate::surface::option;
use crate::{Error, Result, Store, threads};
use arrow_array::{ArrayRef, RecordBatch};
use std::ops::Range;

/// Rows of a table that are worth a thread.
const ROWS_PER_THREAD: usize = 4096;

/// The columns that identify a site by default: those of them that both have.
const SITE: [&str; 4] = ["Plate", "Well", "Site", "Field"];

/// How the image of a cell is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ImageLookup {
    /// By columns of the table and, in the same order, of the images.
    Columns {
        /// Those of the table.
        table: Vec<String>,
        /// Those of the images.
        images: Vec<String>,
        /// Those of plate, well and site that the images lack; of columns that were named, none.
        unshared: Vec<String>,
    },
    /// By the image's name in a column of the table.
    Name(String),
    /// There is one image.
    Only,
}

impl ImageLookup {
    /// The key that finds the image of a cell of `table`.
    ///
    /// # Errors
    /// Columns that are not there; nothing that tells it.
    pub fn of(images: &dyn Store, table: &CellTable, options: &CellOptions) -> Result<Self> {
        let beside = images.hints().feature_names();
        if options.by.is_empty() {
            return Self::found(images, table, &beside);
        }
        let there =
            |name: &String| resolved(name, &table.names).ok_or_else(|| table.no_column(name, &TELLING));
        let of_table = options.by.iter().map(there).collect::<Result<Vec<_>>>()?;
        let of_images: Vec<Option<String>> = options.by.iter().map(|name| resolved(name, &beside)).collect();
        if let Some(images) = of_images.iter().cloned().collect::<Option<Vec<_>>>() {
            return Ok(Self::Columns { table: of_table, images, unshared: vec![] });
        }
        if let [name] = &of_table[..] {
            return Ok(Self::Name(name.clone()));
        }
        let missing = options.by.iter().zip(&of_images).find(|(_, there)| there.is_none());
        let cause =
            format!("has no column {:?} beside the images", missing.map_or("", |(name, _)| name.as_str()));
        Err(Error::new(images.path(), cause).choice().hint(usable::hint(images, table)))
    }

    /// The key where the user named none.
    fn found(images: &dyn Store, table: &CellTable, beside: &[String]) -> Result<Self> {
        let both =
            SITE.iter().filter_map(|name| Some((resolved(name, &table.names)?, resolved(name, beside)?)));
        let (of_table, of_images): (Vec<_>, Vec<_>) = both.unzip();
        if !of_table.is_empty() {
            let lacking = SITE.iter().filter(|name| resolved(name, beside).is_none());
            let unshared = lacking.filter_map(|name| resolved(name, &table.names)).collect();
            return Ok(Self::Columns { table: of_table, images: of_images, unshared });
        }
        if let Some(name) = NAMES.into_iter().find(|name| table.has(name)) {
            return Ok(Self::Name(name.to_owned()));
        }
        let is_of_image = |name: &&String| name.contains(FILE) && !name.contains(ILLUMINATION);
        let of_files: Vec<&String> = table.names.iter().filter(is_of_image).collect();
        match of_files[..] {
            [name] => return Ok(Self::Name(name.clone())),
            // Images of several files, each of which names them.
            [name, ..] if images.hints().sites.is_some() => return Ok(Self::Name(name.clone())),
            // Nothing says that cells are of several images.
            [] if images.len() == 1 => return Ok(Self::Only),
            _ => {}
        }
        let cause = "the names of columns do not tell the image of a cell";
        Err(Error::new(&table.path, cause).choice().hint(usable::hint(images, table)))
    }

    /// The columns of the table that tell images apart as well, and that the images lack.
    pub fn unshared(&self) -> &[String] {
        match self {
            Self::Columns { unshared, .. } => unshared,
            Self::Name(_) | Self::Only => &[],
        }
    }

    /// The columns of the table that are needed.
    pub fn columns(&self) -> &[String] {
        match self {
            Self::Columns { table, .. } => table,
            Self::Name(name) => std::slice::from_ref(name),
            Self::Only => &[],
        }
    }
}

/// The image of each row of a table.
pub(super) struct ImageOf {
    /// For each row, where there is one.
    pub images: Vec<Option<usize>>,
    /// Whether sites may be counted from other numbers, in words.
    pub doubt: Option<String>,
    /// The values of the first image that rows are compared with, in words.
    pub first: Option<String>,
    keys: Vec<ArrayRef>,
    names: Vec<String>,
}

impl ImageOf {
    /// For rows whose images are known.
    pub fn known(images: Vec<Option<usize>>) -> Self {
        Self { images, doubt: None, first: None, keys: vec![], names: vec![] }
    }

    /// A row in words, by what tells its image.
    pub fn describe(&self, row: usize) -> String {
        let keys = in_words(&self.names, &self.keys, row);
        if keys.is_empty() { format!("row {row}") } else { format!("row {row} ({keys})") }
    }
}

/// The values of columns in a row.
fn in_words(names: &[String], columns: &[ArrayRef], row: usize) -> String {
    let keys = names.iter().zip(columns).map(|(name, column)| {
        let value = key_at(column, row).map_or("null".to_owned(), |value| as_written(&value));
        format!("{name} {value}")
    });
    keys.collect::<Vec<_>>().join(", ")
}

/// The image of each row of `table`, whose key columns are `keys` ([`ImageLookup::columns`]).
///
/// # Errors
/// Two images that a cell could be of; columns that cannot be read.
pub(super) fn image_of(
    images: &dyn Store,
    table: &CellTable,
    by: &ImageLookup,
    keys: &RecordBatch,
) -> Result<ImageOf> {
    let columns: Vec<ArrayRef> = by
        .columns()
        .iter()
        .map(|name| {
            let column = keys.column_by_name(name).cloned();
            column.ok_or_else(|| Error::new(&table.path, format_args!("has no column {name:?}")))
        })
        .collect::<Result<_>>()?;
    match by {
        ImageLookup::Only => Ok(ImageOf::known(vec![Some(0); table.rows])),
        ImageLookup::Columns { table: own, images: of, .. } => by_columns(images, table, [own, of], columns),
        ImageLookup::Name(name) => {
            let found = by_name(images, table, name, &columns[0])?;
            let is_wrong = found.iter().all(Option::is_none);
            let other = if is_wrong { usable::known(images, table) } else { None };
            let other = other.map_or_else(String::new, |other| format!("; {other}"));
            // A column that was named may have been meant for one of the images.
            let lacks = resolved(name, &images.hints().feature_names()).is_none();
            let why = if lacks { ", as the images have no column of that name" } else { "" };
            let told = |first: String| {
                format!("the name {first}, which column {name:?} was compared with{why}{other}")
            };
            let first = images.name(0).ok().map(told);
            Ok(ImageOf { images: found, doubt: None, first, keys: columns, names: vec![name.clone()] })
        }
    }
}

fn by_columns(
    images: &dyn Store,
    table: &CellTable,
    [own, theirs]: [&[String]; 2],
    keys: Vec<ArrayRef>,
) -> Result<ImageOf> {
    let columns = keys.as_slice();
    let batch = images.hints().features(theirs)?;
    let beside = batch.as_ref().map_or(&[][..], RecordBatch::columns);
    let rows = batch.as_ref().map_or(0, RecordBatch::num_rows).min(images.len());
    let compared = Comparison::of(&table.path, (own, columns), (theirs, beside))?;
    let of_key = Index::new(beside, &compared, rows);
    let of_row = |row| match compared.key(columns, row).map_or(Ok(None), |key| of_key.find(&key)) {
        Err([first, second]) => {
            let names = format!("{} and {}", images.name(first)?, images.name(second)?);
            let alike = theirs.join(", ");
            let cause = format_args!("could be of either of two images, {names}, which are alike in {alike}");
            let by = option("cells.by");
            let way = if is_told_by_others(images, table, theirs, [first, second])? {
                format!("name more columns than {} ({by})", own.join(", "))
            } else {
                format!(
                    "no other column of both tells these images apart. Open one of their folders alone, or name a column of the table \
                     that has the images' names ({by})"
                )
            };
            let channels = "images of one channel each have to be put together first";
            Err(Error::new(&table.path, cause).row(row).hint(format_args!("{way}; {channels}")))
        }
        Ok(image) => Ok(image),
    };
    let of_run = |run: Range<usize>| -> Result<Vec<Option<usize>>> {
        let mut found: Vec<Option<usize>> = Vec::with_capacity(run.len());
        for row in run {
            // The cells of an image mostly follow each other.
            let image = match found.last() {
                Some(before) if is_as_before(columns, row) => *before,
                _ => of_row(row)?,
            };
            found.push(image);
        }
        Ok(found)
    };
    let mut found = Vec::with_capacity(table.rows);
    // The error is that of the first row that fails: it is in the first run that fails.
    for images in threads::in_runs(table.rows, ROWS_PER_THREAD, of_run) {
        found.append(&mut images?);
    }
    if found.contains(&None) {
        let rows = (0..table.rows).filter(|&row| !is_as_before(columns, row));
        refuse_unlike(&table.path, (own, columns, rows), (theirs, beside), &compared, "cells.by")?;
    }
    let mut has_cells = vec![false; images.len()];
    for image in found.iter().flatten() {
        has_cells[*image] = true;
    }
    let doubt = doubtful((theirs, beside), &compared, &has_cells);
    let first = (rows > 0).then(|| in_words(theirs, beside, 0));
    Ok(ImageOf { images: found, doubt, first, keys, names: own.to_vec() })
}

/// Whether columns beside those that were compared tell two images apart, of those that the table has as well.
fn is_told_by_others(
    images: &dyn Store,
    table: &CellTable,
    compared: &[String],
    [first, second]: [usize; 2],
) -> Result<bool> {
    let mut others = images.hints().feature_names();
    others.retain(|name| !compared.contains(name) && resolved(name, &table.names).is_some());
    if others.is_empty() {
        return Ok(false);
    }
    let values = row_values(images, &others)?;
    Ok(values.get(first) != values.get(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_the_same_however_they_are_written() {
        for (value, expected) in [
            ("1", "1"),
            ("1.0", "1"),
            ("01", "1"),
            ("000", "0"),
            ("A01", "A01"),
            (" A01 ", "A01"),
            ("1.5", "1.5"),
            ("", ""),
        ] {
            assert_eq!(as_written(value), expected, "{value:?}");
        }
    }
}
