//! Label images beside images: the group `labels` in an image's own, whose metadata lists them.
//!
//! Specifications: <https://ngff.openmicroscopy.org/0.4/#labels-md>, <https://ngff.openmicroscopy.org/0.5/#labels-md>.

use super::group::inside;
use super::layout::{self, NAMING};
use super::metadata_file::value_of;
use crate::{OpenOptions, place};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The group of an image's labels.
const FOLDER: &str = "labels";

/// The folders of labels of the images at `root`, each with the names of those in it: one or more. A folder that cannot
/// be looked at has none.
pub(crate) fn below(root: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let options = OpenOptions { format: Some(NAMING.name.to_owned()), ..OpenOptions::default() };
    let rows = layout::rows(root, &options).unwrap_or_default().locations;
    let folders =
        rows.iter().map(|row| root.join(&row.below).join(FOLDER)).filter(|folder| place::is_folder(folder));
    let named = folders.map(|folder| {
        let names = names(&folder);
        (folder, names)
    });
    named.filter(|(_, names)| !names.is_empty()).collect()
}

/// The names that the metadata of a group of labels list.
fn names(folder: &Path) -> Vec<String> {
    let listed = match value_of(&folder.join("zarr.json")) {
        Some(group) => group["attributes"]["ome"]["labels"].clone(),
        None => {
            value_of(&folder.join(".zattrs")).map_or(Value::Null, |attributes| attributes["labels"].clone())
        }
    };
    let names = listed.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.filter(|name| inside(folder, name).is_ok()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_listed_by_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        for (image, file, text) in [
            ("a.zarr", ".zattrs", r#"{"labels": ["cells", "../../far"], "threshold": NaN}"#),
            ("b.zarr", "zarr.json", r#"{"attributes": {"ome": {"labels": ["nuclei"]}}}"#),
            ("c.zarr", ".zattrs", "{}"),
            ("d.zarr", ".zattrs", "damaged"),
        ] {
            let folder = dir.path().join(image).join(FOLDER);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(file), text).unwrap();
        }
        let place = |image: &str| dir.path().join(image).join(FOLDER);
        let expected =
            [(place("a.zarr"), vec!["cells".to_owned()]), (place("b.zarr"), vec!["nuclei".to_owned()])];
        assert_eq!(below(dir.path()), expected);
        assert!(below(&dir.path().join("none")).is_empty());
    }
}
