//! Folders of a split, names of classes, and both as columns: what a set of classes says beside its pictures.
//!
//! ImageNet-100 as it is distributed:
//!
//! ```text
//! imagenet100/Labels.json                {"n01440764": "tench, Tinca tinca", …}
//!             train.X1/n01440764/*.JPEG  25 classes ┐
//!             train.X2/n01443537/*.JPEG  25 more    ├─ split "train"
//!             …                                     ┘
//!             val.X/n01440764/*.JPEG     all of them ── split "val"
//! ```

use crate::file_rows::ImageLocation;
use crate::{Error, Result, place};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of splits.
const SPLITS: [&str; 5] = ["train", "val", "valid", "validation", "test"];
/// The file of class names.
const LABELS: &str = "Labels.json";
/// Longest such file.
const MAX_LABELS_BYTES: u64 = 16 << 20;

/// The split whose folder is called so: `train`, or `train.X1`, a part of it.
fn split_of(folder: &OsStr) -> Option<&'static str> {
    let name = folder.to_str()?;
    let name = match name.rsplit_once(".X") {
        Some((split, part)) if part.bytes().all(|c| c.is_ascii_digit()) => split,
        _ => name,
    };
    SPLITS.into_iter().find(|split| *split == name)
}

/// The split of a row, by its name: `SPLIT/CLASS/PICTURE`. A set that is written from another one has the names of that, and folders of
/// its own.
pub(super) fn split_of_row(row: &ImageLocation) -> Option<&'static str> {
    let (first, within) = row.name.split_once('/')?;
    SPLITS.into_iter().find(|split| *split == first).filter(|_| within.contains('/'))
}

/// The split of a path below the set's folder, and the folder of the class in it, which may be several deep.
pub(super) fn split_of_path(below: &Path) -> Option<(&'static str, &Path)> {
    let mut folders = below.parent()?.components();
    let split = split_of(folders.next()?.as_os_str())?;
    let class = folders.as_path();
    (!class.as_os_str().is_empty()).then_some((split, class))
}

/// The class of an image of an image folder: the folder that it lies in, by its name. For folders in folders it is
/// the whole path, so that sites of different wells are not one class. A split at its beginning is no part of it.
///
/// ```
/// use wellread_store::image_folder::class_of;
/// assert_eq!(class_of("n01440764/n01440764_10026"), Some("n01440764"));
/// assert_eq!(class_of("train/n01440764/n01440764_10026"), Some("n01440764"));
/// assert_eq!(class_of("A01/site1/5"), Some("A01/site1"));
/// assert_eq!(class_of("cell-17"), None);
/// ```
pub fn class_of(name: &str) -> Option<&str> {
    let (folder, _) = name.rsplit_once('/')?;
    Some(
        folder.split_once('/').filter(|(first, _)| SPLITS.contains(first)).map_or(folder, |(_, class)| class),
    )
}

/// Names of classes by their folders.
pub(super) type Labels = BTreeMap<String, String>;

/// Reads `Labels.json` of an opened folder, or of the folder around it, where a split was opened by itself. `None` where
/// there is none.
///
/// # Errors
/// A file of the opened folder that is no JSON object of texts. The folder around it may keep other things under that name.
pub(super) fn labels(folder: &Path) -> Result<Option<Labels>> {
    if !place::is_folder(folder) {
        return Ok(None);
    }
    let (own, around) = label_files(folder);
    if place::is_file(&own) {
        return read(&own).map(Some).map_err(|cause| {
            Error::new(&own, format_args!("holds no names of classes: {cause}"))
                .hint("it is a JSON object of texts, {\"n01440764\": \"tench\", …}; remove it where it is something else")
        });
    }
    // Mostly there is none, and behind a network each look is a request.
    Ok(around.and_then(|file| read(&file).ok()))
}

/// Where names of classes may be: in an opened folder, and in the folder around it.
pub(super) fn label_files(folder: &Path) -> (PathBuf, Option<PathBuf>) {
    let around = place::absolute(folder).ok();
    (folder.join(LABELS), around.as_deref().and_then(Path::parent).map(|around| around.join(LABELS)))
}

fn read(file: &Path) -> std::result::Result<Labels, String> {
    let (opened, length) = place::open(file).map_err(|e| e.to_string())?;
    let mut bytes = vec![];
    opened.peek_after(0, length.min(MAX_LABELS_BYTES), &mut bytes).map_err(|e| e.to_string())?;
    serde_json::from_slice(&bytes).map_err(|e| e.to_string())
}

/// Names of the columns; none where no picture is in a class folder.
pub(super) fn column_names<'p>(
    places: &(impl Iterator<Item = &'p ImageLocation> + Clone),
    labels: Option<&Labels>,
) -> Vec<String> {
    if !places.clone().any(|place| class_of(&place.name).is_some()) {
        return vec![];
    }
    let mut names = vec!["class", "label"];
    names.extend(labels.map(|_| "class_name"));
    names.extend(places.clone().find_map(split_of_row).map(|_| "split"));
    names.into_iter().map(str::to_owned).collect()
}

/// Whether names of images tell a column again, of these all. They tell classes and splits, and no names of a file of labels. Numbers of
/// classes count those of the file, too.
pub(super) fn tells(column: &str, columns: &[String]) -> bool {
    ["class", "split"].contains(&column)
        || column == "label" && !columns.iter().any(|name| name == "class_name")
}

/// The columns of these names. `class` is the folder; `label` is its place among all classes by name, from 0, those of
/// `Labels.json` included. `class_name` is its name in `Labels.json`, and `split` the split.
///
/// # Errors
/// None that is known of: columns of one length always are a table.
pub(super) fn columns<'p>(
    path: &Path,
    names: &[String],
    places: &(impl Iterator<Item = &'p ImageLocation> + Clone),
    labels: Option<&Labels>,
) -> Result<Option<RecordBatch>> {
    if names.is_empty() {
        return Ok(None);
    }
    let classes: Vec<Option<&str>> = places.clone().map(|place| class_of(&place.name)).collect();
    let mut known: Vec<&str> = classes.iter().copied().flatten().collect();
    known.extend(labels.into_iter().flat_map(Labels::keys).map(String::as_str));
    known.sort_unstable();
    known.dedup();
    let number = |class: &str| known.binary_search(&class).ok().map(|at| at as i64);
    let columns = names.iter().map(|name| {
        let column: ArrayRef = match name.as_str() {
            "class" => Arc::new(StringArray::from(classes.clone())),
            "label" => Arc::new(classes.iter().map(|class| class.and_then(number)).collect::<Int64Array>()),
            "split" => Arc::new(places.clone().map(split_of_row).collect::<StringArray>()),
            _ => {
                let called = |class: Option<&str>| class.and_then(|class| labels?.get(class));
                Arc::new(classes.iter().copied().map(called).collect::<StringArray>())
            }
        };
        (name, column)
    });
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .map(Some)
        .map_err(|e| Error::new(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_split_are_that_split() {
        let of = |name: &str| split_of(OsStr::new(name));
        assert_eq!([of("train"), of("train.X1"), of("train.X12")], [Some("train"); 3]);
        assert_eq!([of("val"), of("val.X")], [Some("val"); 2]);
        assert_eq!([of("n01440764"), of("train.Xa"), of("training"), of("train.1"), of("X1")], [None; 5]);
    }
}
