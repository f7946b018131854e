//! Joining a table of profiles, as CellProfiler writes them, to the images that they are of.
//!
//! ```text
//!  names of images ─┐
//!                   ├─ join ─▶ feature columns, a row per image ─▶ features::beside ─▶ WriteOptions::features
//!  PROFILES ────────┘
//! ```
//!
//! [`join`] looks each image's name up in the table, whose image columns have file names; or the values of columns that both have.

mod folder_spread;
mod index;
mod matching;
mod name_rows;
mod names;
mod near;
mod rows;
mod site_keys;

use crate::counted_names::CountedNames;
use crate::features::{joint_key, key_at, key_in_words, taken};
use crate::parquet::{PlainColumns, PlainNames, plain_names, read_plain_columns};
use crate::surface::option;
use crate::{Error, LeftOut, Renamed, Result, Store, suggested, text_columns};
use arrow_array::{Array, ArrayRef, RecordBatch};
pub(crate) use folder_spread::FolderSpread;
use index::{is_pandas_index, without_pandas_index};
pub(crate) use matching::{some_keys, some_values};
pub(crate) use name_rows::Profiles;
pub(crate) use names::{files_of_sites, folders_of, parts};
pub(crate) use rows::{RowsOfImages, rows_of_images};
use std::path::Path;

/// How many images a join found profiles for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Images with a profile.
    pub matched: usize,
    /// All images.
    pub images: usize,
    /// Images without a profile, by their names: they get nulls.
    pub images_alone: CountedNames,
    /// Profiles of no image, by their names or the values of the columns that both have.
    pub profiles_alone: CountedNames,
    /// Feature columns that were added.
    pub columns: usize,
    /// The profiles' columns that were not: see [`crate::Hints::columns_left_out`].
    pub left_out: Vec<LeftOut>,
    /// The added columns whose name is not that of the table, where several have one name there.
    pub renamed: Vec<Renamed>,
    /// The name in a profile of an image of the set, whose folders are not those that the set lies in.
    pub other_folder: Option<String>,
}

/// Adds feature columns of `profiles`, a table (Parquet, CSV or TSV), to the images of `source`. The profile of an
/// image is the row whose columns `keys` (several, separated by commas) have the image's values in columns of these
/// names. Images must have such columns. Many images may share a row. Else it is the row where one of them has the
/// image's name, with or without its ending and folders. Folders that both names have must be the same, from the last
/// one on. `P1/a.tif` is the profile of `P1/a` and of `a`, not of `P2/a`. Among several that fit, it takes the one with
/// the most folders in common, those that a folder of images lies in counted too. A row with the whole name of an image is
/// of that one alone. A profile of `a` is an error beside images `P1/a` and `P2/a`, also where one of them has a row of its
/// own. Images without a profile get nulls. Names that are numbers may be written in another way: 012 is 12.
/// [`crate::with_columns::joined`] has the same rule.
///
/// Whole names go first: where a folder holds `a.tif` and `a.tiff`, each has the profile of its file name. A profile of `a`
/// is an error there. So are profiles of `a` and of `a.tif` for the one image `a` in the file `a.tif`.
///
/// Text, whole numbers and the like are taken; columns of nulls alone, nested and binary ones are not. Where `columns` names
/// some, only those are, in that order; else all but the index of pandas.
///
/// # Errors
/// No such table or column. Two profiles for one image. One profile that could be of either of two images that only
/// their endings or folders tell apart, or that names images of two sites. No image with a profile.
pub fn join(
    source: &dyn Store,
    profiles: &Path,
    keys: &str,
    columns: &[String],
) -> Result<(RecordBatch, Joined)> {
    join_without(source, profiles, (keys, columns), &[])
}

/// As [`join`], but the columns `without` of the table are left out. They are not read, unless `keys` names them. Those that `columns` names
/// are taken all the same.
///
/// # Errors
/// As [`join`]; no column is left.
pub fn join_without(
    source: &dyn Store,
    profiles: &Path,
    (keys, columns): (&str, &[String]),
    without: &[String],
) -> Result<(RecordBatch, Joined)> {
    let keys: Vec<String> = keys.split(',').map(|key| key.trim().to_owned()).collect();
    let is_chosen = |name: &String| columns.iter().any(|column| column.trim() == name);
    let dropped: Vec<String> = without.iter().filter(|name| !is_chosen(name)).cloned().collect();
    let unread: Vec<String> = dropped.iter().filter(|name| !keys.contains(name)).cloned().collect();
    let (table, mut left_out, mut renamed) = if text_columns::is_text(profiles) {
        (text_columns::read(profiles)?, vec![], vec![])
    } else {
        let PlainColumns { columns, left_out, renamed } =
            read_plain_columns(profiles, &unread).map_err(with_unpacking)?;
        (columns, left_out, renamed)
    };
    let no_key = |key: &String| no_column(profiles, &table, &left_out, key, " to join on");
    let key_column = |key: &String| table.column_by_name(key).cloned().ok_or_else(|| no_key(key));
    let key_columns: Vec<ArrayRef> = keys.iter().map(key_column).collect::<Result<_>>()?;
    let RowsOfImages { rows: found, keys: of_images, other_folder } =
        rows_of_images(source, profiles, &keys, &key_columns)?;
    let (by_columns, matched) = (of_images.is_some(), found.iter().flatten().count());
    let [images_alone, profiles_alone] = alone(source, &found, by_columns, &key_columns);
    let table = if columns.is_empty() {
        left_out.retain(|column| !is_pandas_index(&column.name));
        // Columns that the images have already, and that are the same.
        let table = if by_columns { matching::without(profiles, &table, &keys)? } else { table };
        without_pandas_index(profiles, without_dropped(profiles, table, &dropped)?)?
    } else {
        let all_left_out = std::mem::take(&mut left_out);
        chosen(profiles, &table, &all_left_out, columns)?
    };
    renamed.retain(|column| table.column_by_name(&column.to).is_some());
    let joined = Joined {
        matched,
        images: source.len(),
        images_alone,
        profiles_alone,
        columns: table.num_columns(),
        left_out,
        renamed,
        other_folder,
    };
    let rows = taken(&table, found).map_err(|e| Error::new(profiles, e))?;
    Ok((rows, joined))
}

/// Names of all columns of a table of profiles, plain or not.
///
/// # Errors
/// A table that cannot be read.
pub fn column_names(profiles: &Path) -> Result<Vec<String>> {
    if text_columns::is_text(profiles) {
        let table = text_columns::read(profiles)?;
        return Ok(table.schema_ref().fields().iter().map(|field| field.name().clone()).collect());
    }
    let PlainNames { mut names, left_out, .. } = plain_names(profiles).map_err(with_unpacking)?;
    names.extend(left_out.into_iter().map(|column| column.name));
    Ok(names)
}

/// The error of a table that cannot be read, with what to do about one that is packed as a whole, as pycytominer writes them.
fn with_unpacking(error: Error) -> Error {
    let is_packed = error.path().extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    if is_packed && !error.is_missing() {
        return error.hint("unpack it first (gzip -dk), or write it as Parquet");
    }
    error
}

/// The columns of a table but those of `dropped`.
fn without_dropped(profiles: &Path, table: RecordBatch, dropped: &[String]) -> Result<RecordBatch> {
    let schema = table.schema();
    let fields = schema.fields().iter().enumerate();
    let kept: Vec<usize> =
        fields.filter(|(_, field)| !dropped.contains(field.name())).map(|(place, _)| place).collect();
    if kept.len() == table.num_columns() {
        return Ok(table);
    }
    if kept.is_empty() {
        let cause = "has no column but those that are left out";
        let hint = format!("leave fewer out ({}), or do not join the table", option("without_column"));
        return Err(Error::new(profiles, cause).hint(hint).choice());
    }
    table.project(&kept).map_err(|e| Error::new(profiles, e))
}

/// The images without a row in `found`, and the rows of the table without an image.
fn alone(
    source: &dyn Store,
    found: &[Option<u64>],
    by_columns: bool,
    key_columns: &[ArrayRef],
) -> [CountedNames; 2] {
    let (mut images, mut profiles) = (CountedNames::default(), CountedNames::default());
    let mut is_used = vec![false; key_columns.first().map_or(0, Array::len)];
    for (image, row) in found.iter().enumerate() {
        match row {
            Some(row) => {
                if let Some(is_used) = is_used.get_mut(*row as usize) {
                    *is_used = true;
                }
            }
            None => images.push(|| source.name(image).unwrap_or_else(|_| format!("row {image}"))),
        }
    }
    for (row, _) in is_used.iter().enumerate().filter(|(_, is_used)| !**is_used) {
        profiles.push(|| {
            let key = if by_columns {
                joint_key(key_columns, row).map(|key| key_in_words(&key))
            } else {
                key_columns.iter().find_map(|column| key_at(column, row))
            };
            key.unwrap_or_else(|| format!("row {row}"))
        });
    }
    [images, profiles]
}

/// The columns of these names, in their order, each once.
fn chosen(
    profiles: &Path,
    table: &RecordBatch,
    left_out: &[LeftOut],
    columns: &[String],
) -> Result<RecordBatch> {
    let schema = table.schema();
    let mut places: Vec<usize> = vec![];
    for name in columns.iter().map(|name| name.trim()) {
        let place = schema.index_of(name).map_err(|_| no_column(profiles, table, left_out, name, ""))?;
        if !places.contains(&place) {
            places.push(place);
        }
    }
    table.project(&places).map_err(|e| Error::new(profiles, e))
}

/// Most names that a message lists.
const MAX_LISTED: usize = 12;

/// The error of a column that the profiles have not, which names those it may have been meant for.
fn no_column(profiles: &Path, table: &RecordBatch, left_out: &[LeftOut], name: &str, purpose: &str) -> Error {
    if let Some(column) = left_out.iter().find(|column| column.name == name) {
        let cause = format_args!("column {name:?} holds {}", column.why);
        return Error::new(profiles, cause).hint("such columns cannot stand beside images: leave it out");
    }
    let schema = table.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let hint = suggested::hint(name, &names, MAX_LISTED);
    Error::new(profiles, format_args!("has no column {name:?}{purpose}")).choice().hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_table_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("profiles.csv.gz");
        std::fs::write(&path, b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0").unwrap();
        let said = column_names(&path).unwrap_err().to_string();
        assert!(said.contains("no Parquet file") && said.contains("gzip -dk"), "{said}");
        let missing = column_names(&dir.path().join("none.csv.gz")).unwrap_err().to_string();
        assert!(!missing.contains("gzip"), "{missing}");
    }
}
