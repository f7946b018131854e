//! Columns that tell the image of a cell: what they are called, and which image a name in one is of.
//!
//! ```text
//!  Well ─ prefixes ─▶ Metadata_Well, Image_Metadata_Well … ─▶ the one that is there
//!  FileName ─ values ─ as profiles are joined ─▶ image of each name, or of a file of that name
//! ```

use super::table::CellTable;
use crate::each_row;
use crate::features::key_at;
use crate::profiles::{FolderSpread, Profiles, files_of_sites, folders_of, parts};
use crate::{Error, Result, Store};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::collections::HashMap;

/// Prefixes of columns of metadata in CellProfiler and pycytominer; a prefix comes after those that it begins with.
const PREFIXES: [&str; 4] = ["", "Image_", "Metadata_", "Image_Metadata_"];

/// Columns of image names, unless said otherwise, in the order in which they are looked for.
pub(super) const NAMES: [&str; 6] =
    ["ImageName", "image_name", "Image_Name", "Metadata_ImageName", "image", "FileName"];

/// Words of columns that may tell an image, the most telling first: a table has hundreds of `Image_…`.
pub(super) const TELLING: [&str; 5] = ["filename", "plate", "well", "site", "image"];

/// CellProfiler's prefixes of columns of file names, one of each channel, and of those of its illumination functions.
pub(super) const FILE: &str = "FileName_";
pub(super) const ILLUMINATION: &str = "FileName_Illum";

/// The name under which a column is there: itself, or with another of the prefixes.
pub(super) fn resolved(name: &str, names: &[String]) -> Option<String> {
    let bare = PREFIXES.iter().rev().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let variants = PREFIXES.iter().map(|prefix| format!("{prefix}{bare}"));
    std::iter::once(name.to_owned()).chain(variants).find(|name| names.contains(name))
}

/// Whether all columns have in a row what they have in the row before it, where that is told without making texts of them. Nulls are
/// like nothing.
pub(super) fn is_as_before(columns: &[ArrayRef], row: usize) -> bool {
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

/// The image of each row by the name in this column.
///
/// # Errors
/// Two images that a name could be of; names that cannot be read.
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
    let mut spread = FolderSpread::default();
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
}
