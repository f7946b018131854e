//! The row of a table for each image: the one rule of the command's join and of columns from a table in memory.
//!
//! ```text
//!  columns that both have ─ rows_of_keys ──┐
//!  names of images, files ─ rows_of_names ─┼─▶ rows_of_images ─▶ a row per image, where there is one
//!  names that are numbers ─ by_number ─────┘
//! ```

use super::matching::{ByNames, keys_beside, rows_of_keys, rows_of_names, some_keys, some_values};
use super::near;
use super::site_keys::refuse_ambiguous_sites;
use crate::each_row;
use crate::features::{Comparison, as_written, joint_key, key_at, key_in_words};
use crate::surface::option;
use crate::words::first_few;
use crate::{Error, Result, Store};
use arrow_array::{Array, ArrayRef};
use std::collections::HashMap;
use std::path::Path;

/// Images whose names a message shows.
const MAX_SHOWN: usize = 3;

/// The rows of a table that are of the images of a set.
pub(crate) struct RowsOfImages {
    /// The row of each image, where it has one; one image has a row at least, if there are any.
    pub rows: Vec<Option<u64>>,
    /// The values of the columns that both have, where those told the rows; else names did.
    pub keys: Option<Vec<Option<String>>>,
    /// The name in a row of an image of the set, whose folders are not those that the set lies in.
    pub other_folder: Option<String>,
}

/// The row of each image, by the values of `columns`, which are called `on`: see [`super::join`].
///
/// # Errors
/// Two rows of one image. A name that could be of either of two images, names of two sites in one row. No image with a row. Times
/// against numbers.
pub(crate) fn rows_of_images(
    source: &dyn Store,
    path: &Path,
    on: &[String],
    columns: &[ArrayRef],
) -> Result<RowsOfImages> {
    // Columns that both have, unless they are texts none of which is in both: then they may be names all the same.
    let mut keys = None;
    let mut by_columns = None;
    if let Some((wanted, compared)) = keys_beside(source, path, (on, columns))? {
        let rows = rows_of_keys(source, path, (on, columns), (&wanted, &compared))?;
        let tells = rows.is_empty() || rows.iter().any(Option::is_some) || !compared.is_of_texts();
        by_columns = tells.then_some(rows);
        keys = Some(wanted);
    }
    let is_by_columns = by_columns.is_some();
    let (rows, other_folder) = match by_columns {
        Some(rows) => (rows, None),
        None => rows_by_names(source, path, (on, columns))?,
    };
    if !rows.is_empty() && rows.iter().all(Option::is_none) {
        return Err(no_row(source, path, (on, columns), keys.as_deref())?);
    }
    Ok(RowsOfImages { rows, keys: keys.filter(|_| is_by_columns), other_folder })
}

/// The row of each image by its name, or by the number that its name is, and the name of [`RowsOfImages::other_folder`].
fn rows_by_names(
    source: &dyn Store,
    path: &Path,
    (on, columns): (&[String], &[ArrayRef]),
) -> Result<(Vec<Option<u64>>, Option<String>)> {
    let ByNames { mut rows, shared, other_folder } =
        rows_of_names(source, path, columns).map_err(Error::choice)?;
    if let Some([one, other]) = shared {
        return Err(of_several_folders(path, on, &one, &other));
    }
    by_number(source, path, (on, columns), &mut rows)?;
    refuse_ambiguous_sites(source, path, on, &rows)?;
    Ok((rows, other_folder))
}

/// Adds the rows of images whose names are numbers that the table writes in another way: 012 is 12 and 12.0.
///
/// # Errors
/// Two rows of an image, or a row of two images, where numbers are compared.
fn by_number(
    source: &dyn Store,
    path: &Path,
    (on, columns): (&[String], &[ArrayRef]),
    rows: &mut [Option<u64>],
) -> Result<()> {
    if columns.len() != 1 || rows.iter().all(Option::is_some) {
        return Ok(());
    }
    let names: Vec<String> = each_row::names(source).collect::<Result<_>>()?;
    let keys: Vec<String> = names.iter().map(|name| as_written(name)).collect();
    let wanted: Vec<Option<String>> =
        keys.iter().zip(&*rows).map(|(key, row)| row.is_none().then(|| key.clone())).collect();
    let found = rows_of_keys(source, path, (on, columns), (&wanted, &Comparison::default()))?;
    if found.iter().all(Option::is_none) {
        return Ok(());
    }
    // The first image of each number, and one of another name.
    let mut of_key: HashMap<&str, (usize, Option<usize>)> = HashMap::with_capacity(names.len());
    for (image, key) in keys.iter().enumerate() {
        let (first, other) = of_key.entry(key).or_insert((image, None));
        if other.is_none() && names[*first] != names[image] {
            *other = Some(image);
        }
    }
    for (image, at) in found.into_iter().enumerate() {
        let Some(at) = at else { continue };
        if let Some((first, Some(other))) = of_key.get(keys[image].as_str()) {
            let (first, other) = (&names[*first], &names[*other]);
            let cause =
                format!("the images {first:?} and {other:?} have one name where numbers are compared");
            return Err(Error::new(source.path(), cause)
                .row(image)
                .hint(format_args!("rename one, or name columns that both have ({})", option("on")))
                .choice());
        }
        rows[image] = Some(at);
    }
    Ok(())
}

/// Why a row whose name is that of images in several folders stands beside none: the columns of one plate would be another's.
fn of_several_folders(path: &Path, on: &[String], one: &str, other: &str) -> Error {
    let cause =
        format!("a name in column {:?} could be either of two images, {one} and {other}", on.join(", "));
    Error::new(path, cause)
        .hint(format_args!(
            "write the folders of images in front of their names. Where rows are of images in all folders, name a column that \
             both have ({})",
            option("on")
        ))
        .choice()
}

/// The reason why columns were not compared, for the end of a hint. The images lack some, or have one under a similar name.
/// Empty where neither is so.
fn not_compared(source: &dyn Store, on: &[String]) -> String {
    let there = source.hints().feature_names();
    let (both, lacking): (Vec<&String>, Vec<&String>) = on.iter().partition(|name| there.contains(name));
    if !both.is_empty() {
        return lacking.first().map_or_else(String::new, |lacking| {
            format!(
                ". The images have {:?} and no {lacking:?}: name columns that both have ({})",
                both[0],
                option("on")
            )
        });
    }
    let meant: Vec<String> =
        there.into_iter().filter(|column| on.iter().any(|name| are_nearly(column, name))).collect();
    match meant.as_slice() {
        [] => String::new(),
        [name] => format!(". The images have a column {name:?}: give that of the table this name"),
        several => format!(
            ". The images have columns {}: give that of the table the name of one of them",
            first_few(several, MAX_SHOWN)
        ),
    }
}

/// Whether the words of one column's name stand side by side in that of the other, as `Well` in `Metadata_Well`, `FileName` in
/// `FileName_DNA`. Small and large letters are alike.
fn are_nearly(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|name| format!("_{}_", name.to_lowercase()));
    // Short names, such as `x`, are words of many others.
    one.len().min(other.len()) > 4 && (one.contains(&other) || other.contains(&one))
}

/// Why no image has a row: names of both sides, and two that are nearly the same.
fn no_row(
    source: &dyn Store,
    path: &Path,
    (on, columns): (&[String], &[ArrayRef]),
    keys: Option<&[Option<String>]>,
) -> Result<Error> {
    let images: Vec<String> =
        (0..source.len().min(MAX_SHOWN)).map(|row| source.name(row)).collect::<Result<_>>()?;
    let beside =
        keys.map_or_else(String::new, |keys| format!(" and have {} there", some_keys(keys.iter().flatten())));
    let near = match not_compared(source, on) {
        none if none.is_empty() => near_names(source, keys, columns)
            .map_or_else(String::new, |near| format!(". The nearest: {near}")),
        other_columns => other_columns,
    };
    Ok(Error::new(path, format_args!("no image has a row by {}", on.join(", ")))
        .hint(format_args!(
            "images are called {} …{beside}, rows have {}; folders that both have must agree{near}",
            images.join(", "),
            some_values(columns)
        ))
        .choice())
}

/// Two names, or values of columns that both have, that are nearly the same, and what they differ in.
fn near_names(source: &dyn Store, keys: Option<&[Option<String>]>, columns: &[ArrayRef]) -> Option<String> {
    let has_keys = keys.is_some();
    let keys = keys.into_iter().flatten().flatten().map(|key| key_in_words(key));
    let names = each_row::names(source).flatten();
    let rows = columns.first().map_or(0, Array::len);
    let values = |row: usize| -> Vec<String> {
        if has_keys {
            return joint_key(columns, row).map(|key| key_in_words(&key)).into_iter().collect();
        }
        columns.iter().filter_map(|column| key_at(column, row)).collect()
    };
    near::nearest(keys.chain(names), (0..rows).flat_map(values))
}
