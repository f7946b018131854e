//! Which image a cell is of: by columns that the table and the images have, by the image's name, or because there is but one.
//!
//! ```text
//!  by = Plate, Well, Site    table: Metadata_Plate …  ─ key ─┐
//!                            images' columns: Plate … ─ key ─┴▶ image of each row
//!  by = FileName             table: names ─ as profiles are joined ─▶ image of each name, or of a file of that name
//! ```

use super::options::CellOptions;
use super::table::CellTable;
use super::usable;
use crate::each_row;
use crate::features::{Comparison, Index, as_written, doubtful, key_at, refuse_unlike};
use crate::profiles::{Profiles, Spread, files_of_sites, folders_of, parts};
use crate::surface::option;
use crate::{Error, Result, Store, threads};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use std::collections::HashMap;
use std::ops::Range;

/// Rows of a table that are worth a thread.
const ROWS_PER_THREAD: usize = 4096;

/// Prefixes of columns of metadata in CellProfiler and pycytominer; a prefix comes after those that it begins with.
const PREFIXES: [&str; 4] = ["", "Image_", "Metadata_", "Image_Metadata_"];

/// The columns that identify a site by default: those of them that both have.
const SITE: [&str; 4] = ["Plate", "Well", "Site", "Field"];

/// Columns of image names, unless said otherwise, in the order in which they are looked for.
pub(super) const NAMES: [&str; 6] =
    ["ImageName", "image_name", "Image_Name", "Metadata_ImageName", "image", "FileName"];

/// Words of columns that may tell an image, the most telling first: a table has hundreds of `Image_…`.
pub(super) const TELLING: [&str; 5] = ["filename", "plate", "well", "site", "image"];

/// CellProfiler's prefixes of columns of file names, one of each channel, and of those of its illumination functions.
const FILE: &str = "FileName_";
pub(super) const ILLUMINATION: &str = "FileName_Illum";

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

/// The name under which a column is there: itself, or with another of the prefixes.
pub(super) fn resolved(name: &str, names: &[String]) -> Option<String> {
    let bare = PREFIXES.iter().rev().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let variants = PREFIXES.iter().map(|prefix| format!("{prefix}{bare}"));
    std::iter::once(name.to_owned()).chain(variants).find(|name| names.contains(name))
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
            let first = images.name(0).ok().map(|first| format!("the name {first}{other}"));
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
            Err(Error::new(&table.path, cause).row(row).hint(format_args!(
                "name more columns than {} ({}); images of one channel each have to be put together first",
                own.join(", "),
                option("cells.by")
            )))
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

/// Whether all columns have in a row what they have in the row before it, where that is told without making texts of them. Nulls are
/// like nothing.
fn is_as_before(columns: &[ArrayRef], row: usize) -> bool {
    let Some(before) = row.checked_sub(1) else { return false };
    columns.iter().all(|column| {
        if column.is_null(before) || column.is_null(row) {
            return false;
        }
        macro_rules! alike {
            ($values:expr) => {{
                let values = $values;
                values.value(before) == values.value(row)
            }};
        }
        match column.data_type() {
            DataType::Utf8 => alike!(column.as_string::<i32>()),
            DataType::LargeUtf8 => alike!(column.as_string::<i64>()),
            DataType::Utf8View => alike!(column.as_string_view()),
            DataType::Int32 => alike!(column.as_primitive::<Int32Type>()),
            DataType::Int64 => alike!(column.as_primitive::<Int64Type>()),
            _ => false,
        }
    })
}

pub(super) fn by_name(
    images: &dyn Store,
    table: &CellTable,
    name: &str,
    column: &ArrayRef,
) -> Result<Vec<Option<usize>>> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut name_of_row: Vec<Option<usize>> = Vec::with_capacity(table.rows);
    for row in 0..table.rows {
        let next = numbers.len();
        let number = match name_of_row.last() {
            Some(before) if is_as_before(std::slice::from_ref(column), row) => *before,
            _ => key_at(column, row).map(|value| *numbers.entry(value).or_insert(next)),
        };
        name_of_row.push(number);
    }
    let names: Vec<String> = each_row::names(images).collect::<Result<_>>()?;
    // An image of several files may be called as any of them.
    let files = files_of_sites(images).unwrap_or_default();
    let mut index = Profiles::of_images(names.iter().chain(files.iter().flatten()).map(|name| parts(name)));
    // In the order of their numbers, so that messages are the same each time.
    let mut given: Vec<(&String, usize)> = numbers.iter().map(|(name, number)| (name, *number)).collect();
    given.sort_unstable_by_key(|(_, number)| *number);
    for (name, number) in &given {
        index.push(&parts(name), *number);
    }
    let base = folders_of(images);
    let base: Vec<&str> = base.iter().map(String::as_str).collect();
    let mut image_of_name: Vec<Option<usize>> = vec![None; given.len()];
    let mut spread = Spread::default();
    let either = |what: &str, one: &str, other: &str| {
        let cause =
            format_args!("{what} in column {name:?} could be either of two images, {one} and {other}");
        Error::new(&table.path, cause).hint("write the folders of images in front of their names")
    };
    for (image, own) in names.iter().enumerate() {
        let own_files = files.get(image).into_iter().flatten();
        let number = match index.of_any(&base, std::iter::once(own).chain(own_files)) {
            Ok(Some(found)) => {
                spread.observe(&found, own);
                found.row
            }
            Ok(None) => continue,
            Err([first, second]) => {
                let [first, second] = [first, second].map(|number| given[number].0);
                let cause =
                    format_args!("column {name:?} has two names for the image {own}: {first} and {second}");
                return Err(Error::new(&table.path, cause).hint("write the name of an image in one way"));
            }
        };
        if let Some(other) = image_of_name[number].replace(image) {
            return Err(either(&format!("{:?}", given[number].0), &names[other], own));
        }
    }
    // Also a name that went to one image alone, where the others have names of their own.
    for (image, own) in names.iter().enumerate() {
        let own_files = files.get(image).into_iter().flatten();
        let all = std::iter::once(own).chain(own_files).map(|name| parts(name));
        if let Some([one, other]) = spread.shared(own, all) {
            return Err(either("a name", &one, &other));
        }
    }
    Ok(name_of_row.into_iter().map(|number| number.and_then(|number| image_of_name[number])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn columns_are_found_with_and_without_their_prefix() {
        let names = ["Metadata_Well", "Site", "Image_Metadata_Plate"].map(str::to_owned);
        assert_eq!(resolved("Well", &names).as_deref(), Some("Metadata_Well"));
        assert_eq!(resolved("Metadata_Well", &names).as_deref(), Some("Metadata_Well"));
        assert_eq!(resolved("Metadata_Site", &names).as_deref(), Some("Site"));
        assert_eq!(resolved("Plate", &names).as_deref(), Some("Image_Metadata_Plate"));
        assert_eq!(resolved("Image_Metadata_Site", &names).as_deref(), Some("Site"));
        assert_eq!(resolved("Field", &names), None);
        let names = ["Image_FileName_DNA".to_owned()];
        assert_eq!(resolved("FileName_DNA", &names).as_deref(), Some("Image_FileName_DNA"));
    }

    #[test]
    fn rows_that_repeat_the_one_before_are_told() {
        let wells: ArrayRef =
            Arc::new(StringArray::from(vec![Some("A01"), Some("A01"), Some("A02"), None, None]));
        let sites: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(1), Some(1), Some(1), Some(1)]));
        let repeats = |columns: &[ArrayRef]| (0..5).map(|row| is_as_before(columns, row)).collect::<Vec<_>>();
        assert_eq!(repeats(&[wells.clone(), sites.clone()]), [false, true, false, false, false]);
        assert_eq!(repeats(std::slice::from_ref(&sites)), [false, true, true, true, true]);
        let other: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 5]));
        assert_eq!(repeats(&[sites, other]), [false; 5]);
    }

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
