//! Which row of a table is of which image: by columns that both have, or by names of images in columns of the table.
//!
//! ```text
//!  images' columns ─ keys_beside ─┐
//!                                 ├─ rows_of_keys ──▶ a row per image, where there is one
//!  table's columns ───────────────┘
//!  images' names, files ─ rows_of_names ──▶ the same, by names without endings and folders
//! ```

use super::folder_spread::FolderSpread;
use super::name_rows::{ProfileMatch, Profiles};
use super::names::{Namesakes, files_of_sites, folders_of, full_name, full_parts, parts};
use crate::each_row;
use crate::features::{Comparison, FeatureColumns, Index, joint_key, key_at, key_in_words, refuse_unlike};
use crate::surface::{for_cells, option};
use crate::{Error, Result, Store};
use arrow_array::{Array, ArrayRef, RecordBatch};
use std::collections::HashSet;
use std::path::Path;

/// Values of a side that a message shows.
const MAX_SHOWN: usize = 3;

/// The values of the columns `on` of each image, `None` where one is null, and how they are compared with those of the table. Nothing
/// where images lack one of the columns.
///
/// # Errors
/// Columns of the table, `path`, that hold numbers where those of the images hold times, or the reverse. Wells and
/// sites that the table and the images write in two ways.
pub(crate) fn keys_beside(
    images: &dyn Store,
    path: &Path,
    (on, of_table): (&[String], &[ArrayRef]),
) -> Result<Option<(Vec<Option<String>>, Comparison)>> {
    let there = images.hints().feature_names();
    if !on.iter().all(|name| there.contains(name)) {
        return Ok(None);
    }
    let beside = images.hints().features(on)?;
    let columns = beside.as_ref().map_or(&[][..], RecordBatch::columns);
    let compared = Comparison::of(path, (on, of_table), (on, columns))?;
    let rows = 0..of_table.first().map_or(0, Array::len);
    refuse_unlike(path, (on, of_table, rows), (on, columns), &compared, "on")?;
    let keys = (0..images.len()).map(|image| compared.key(columns, image)).collect();
    Ok(Some((keys, compared)))
}

/// The row of a table by the values of its columns `on`, `columns`, for each of these keys of images, which are `compared` so.
///
/// # Errors
/// Two rows of one image.
pub(crate) fn rows_of_keys(
    images: &dyn Store,
    path: &Path,
    (on, columns): (&[String], &[ArrayRef]),
    (wanted, compared): (&[Option<String>], &Comparison),
) -> Result<Vec<Option<u64>>> {
    let of_key = Index::new(columns, compared, columns.first().map_or(0, Array::len));
    let row_of = |(image, key): (usize, &Option<String>)| match key
        .as_ref()
        .map_or(Ok(None), |key| of_key.find(key))
    {
        Err([first, second]) => {
            let (named, name) = (on.join(", "), images.name(image)?);
            let cause = format!("rows {first} and {second} are alike in {named}, and both are of {name}");
            let hint =
                format!("name more columns ({}), or keep one row of each. {}", option("on"), for_cells());
            Err(Error::new(path, cause).hint(hint).choice())
        }
        Ok(row) => Ok(row.map(|row| row as u64)),
    };
    wanted.iter().enumerate().map(row_of).collect()
}

/// The first few of some keys, in words.
pub(crate) fn some_keys<'k>(keys: impl Iterator<Item = &'k String>) -> String {
    let mut shown: Vec<String> = vec![];
    for key in keys {
        let words = key_in_words(key);
        if shown.contains(&words) {
            continue;
        }
        if shown.len() == MAX_SHOWN {
            return format!("{} …", shown.join(", "));
        }
        shown.push(words);
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// The first few values of these columns, in words.
pub(crate) fn some_values(columns: &[ArrayRef]) -> String {
    let rows = columns.first().map_or(0, Array::len);
    // A table that is one value over and over needs no more than a look.
    let keys: Vec<String> = (0..rows.min(1000)).filter_map(|row| joint_key(columns, row)).collect();
    some_keys(keys.iter())
}

/// The result of the search for names.
pub(crate) struct ByNames {
    /// The row of each image, where it has one.
    pub rows: Vec<Option<u64>>,
    /// Two images of different folders that a row may be of, since it names no folder that tells them apart. It went to one at least.
    pub shared: Option<[String; 2]>,
    /// The name in a row of an image of the set, whose folders are not those that the set lies in.
    pub other_folder: Option<String>,
}

/// The row of each image, by its name in one of `columns`: see [`super::join`]. A row with the whole name of an image is of no other image
/// whose name it has but for folders.
///
/// # Errors
/// Two rows of one image, one that could be of either of two images that only their endings tell apart.
pub(crate) fn rows_of_names(source: &dyn Store, path: &Path, columns: &[ArrayRef]) -> Result<ByNames> {
    let images: Vec<String> = each_row::names(source).collect::<Result<_>>()?;
    let namesakes = Namesakes::of(source, &images)?;
    // The table may name any file of an image of several.
    let sites = files_of_sites(source);
    let all_names = || images.iter().chain(sites.iter().flatten().flatten());
    let none = || Profiles::of_images(all_names().map(|name| parts(name)));
    // By names without endings, by whole names, and by those that are the whole name of no namesake.
    let (mut rows, mut whole, mut loose) = (none(), none(), none());
    for column in columns {
        for row in 0..column.len() {
            if let Some(value) = key_at(column, row) {
                rows.push(&parts(&value), row);
                let full = full_parts(&value);
                whole.push(&full, row);
                let of_no_namesake = full.last().is_none_or(|file| !namesakes.files.contains(*file));
                if of_no_namesake && !namesakes.images.is_empty() {
                    loose.push(&parts(&value), row);
                }
            }
        }
    }
    let base = folders_of(source);
    let base: Vec<&str> = base.iter().map(String::as_str).collect();
    let mut matches: Vec<Option<ProfileMatch>> = Vec::with_capacity(images.len());
    for (image, name) in images.iter().enumerate() {
        let at = if let Some(files) = sites.as_ref().and_then(|sites| sites.get(image)) {
            rows.of_any(&base, std::iter::once(name).chain(files))
        } else if let Some([full, other]) = namesakes.images.get(&image) {
            let at = whole.of(&base, &full_parts(full));
            if at == Ok(None)
                && let Ok(Some(ProfileMatch { row, .. })) | Err([row, _]) = loose.of(&base, &parts(name))
            {
                let cause = format_args!("row {row} fits two images, {full} and {other}");
                return Err(Error::new(path, cause)
                    .hint("give the whole name of each image, with its ending, in the column"));
            }
            at
        } else {
            match rows.of(&base, &parts(name)) {
                Err(two) => match whole.of(&base, &full_parts(&full_name(source, image, name)?)) {
                    Ok(Some(at)) if at.unconfirmed.is_none() => match whole.of(&base, &full_parts(name)) {
                        // The name without the ending is the image's as well.
                        Ok(Some(other)) if other.unconfirmed.is_none() && other.row != at.row => {
                            Err([at.row.min(other.row), at.row.max(other.row)])
                        }
                        Err(two) => Err(two),
                        Ok(_) => Ok(Some(at)),
                    },
                    _ => Err(two),
                },
                found => found,
            }
        };
        let at = at.map_err(|[first, second]| {
            let cause = format_args!("rows {first} and {second} are both of the image {name:?}");
            let cells = for_cells();
            Error::new(path, cause).hint(format_args!(
                "aggregate the rows of an image to one. {cells}. Images of several plates are told apart by folders, \
                 in the images' names (open the folder above) and in the column"
            ))
        })?;
        matches.push(at);
    }
    let taken: HashSet<(usize, Option<&str>)> = images
        .iter()
        .zip(&matches)
        .filter_map(|(name, at)| at.as_ref().filter(|at| at.is_whole).map(|at| (at.row, file_of(name))))
        .collect();
    let mut found = Vec::with_capacity(images.len());
    let mut spread = FolderSpread::default();
    let mut other_folder = None;
    for (name, at) in images.iter().zip(matches) {
        let at = at.filter(|at| at.is_whole || !taken.contains(&(at.row, file_of(name))));
        if let Some(at) = &at {
            spread.observe(at, name);
            other_folder =
                other_folder.or_else(|| at.unconfirmed.as_ref().map(|folders| format!("{folders}/{name}")));
        }
        found.push(at.map(|at| at.row as u64));
    }
    let mut shared = None;
    let looked_at: &[String] = if spread.is_empty() { &[] } else { &images };
    for (image, name) in looked_at.iter().enumerate() {
        let files = sites.as_ref().and_then(|sites| sites.get(image)).into_iter().flatten();
        let names = std::iter::once(name).chain(files).map(|name| parts(name));
        // Where only endings tell images apart, names with these went to them.
        let has_namesakes = !namesakes.images.is_empty();
        let full = has_namesakes.then(|| full_name(source, image, name)).transpose()?;
        shared = spread.shared(name, names.chain(full.as_deref().map(full_parts)));
        if shared.is_some() {
            break;
        }
    }
    Ok(ByNames { rows: found, shared, other_folder })
}

/// The last part of an image's name, without the ending of a file.
fn file_of(name: &str) -> Option<&str> {
    parts(name).pop()
}

/// The columns of a table but those of `names`.
///
/// # Errors
/// A table that has no other.
pub(super) fn without(path: &Path, table: &FeatureColumns, names: &[String]) -> Result<FeatureColumns> {
    let fields = table.schema_ref().fields().iter().enumerate();
    let kept: Vec<usize> =
        fields.filter(|(_, field)| !names.contains(field.name())).map(|(place, _)| place).collect();
    if kept.is_empty() {
        let cause = format!("has no column but {}, which the images have", names.join(", "));
        return Err(Error::new(path, cause).choice());
    }
    table.project(&kept).map_err(|e| Error::new(path, e))
}
