//! Entries in a folder of OME-Zarr that its metadata do not describe, such as labels, and images that wellread did not
//! write. They would be lost if other images replaced the folder.

use super::group::Group;
use super::layout::series;
use super::series::{COLUMNS, FOLDER};
use crate::Result;
use crate::entries::{self, Entry};
use crate::folders::{ZARR_METADATA, is_zarr};
use crate::{name_index, place};
use std::path::Path;

/// Names of metadata other than those of groups and arrays.
const MORE_METADATA: [&str; 2] = [".zmetadata", "METADATA.ome.xml"];

/// The first thing in `folder` that is no part of an image, by its path in the folder.
///
/// # Errors
/// A folder cannot be listed.
pub(super) fn entry(folder: &Path) -> Result<Option<String>> {
    if !is_zarr(folder) {
        return images(folder);
    }
    // An array of itself, and one that cannot be read, is of others.
    let Ok(group) = Group::load(folder) else { return Ok(Some(of_others(folder))) };
    let ome = &group.ome;
    // The writer leaves its mark in the attributes of every image.
    if ome.multiscales.is_some() && ome.wellread.is_none() {
        return Ok(Some(of_others(folder)));
    }
    if let Some(multiscales) = &ome.multiscales {
        let paths = multiscales.iter().flat_map(|m| &m.datasets).map(|dataset| trimmed(&dataset.path));
        described(folder, &paths.chain([COLUMNS]).collect::<Vec<_>>(), array)
    } else if let Some(plate) = &ome.plate {
        let paths: Vec<_> = plate.wells.iter().map(|well| trimmed(&well.path)).collect();
        described(folder, &paths, entry)
    } else if let Some(well) = &ome.well {
        let paths: Vec<_> = well.images.iter().map(|image| trimmed(&image.path)).collect();
        described(folder, &paths, entry)
    } else if ome.bioformats2raw.is_some() {
        let rows = series(folder)?;
        let mut paths: Vec<_> = rows.iter().filter_map(|row| row.below.to_str()).map(trimmed).collect();
        paths.push(FOLDER);
        described(folder, &paths, entry)
    } else {
        images(folder)
    }
}

/// The metadata of an image that does not have the mark of wellread's writer.
fn of_others(folder: &Path) -> String {
    let file = ZARR_METADATA.into_iter().find(|file| place::exists(&folder.join(file))).unwrap_or_default();
    format!("{file}{}", entries::UNMARKED)
}

/// The first entry that is neither metadata nor at one of `paths`, or that `inside` finds in one of these.
fn described(
    folder: &Path,
    paths: &[&str],
    inside: fn(&Path) -> Result<Option<String>>,
) -> Result<Option<String>> {
    for found in entries::list(folder)? {
        let name = found.name.as_str();
        if is_metadata(&found) {
            continue;
        }
        let below: Vec<&str> =
            paths.iter().filter_map(|path| path.strip_prefix(name)?.strip_prefix('/')).collect();
        let is_part = paths.contains(&name);
        if !is_part && below.is_empty() {
            return Ok(Some(found.name));
        }
        // Removal of a link removes only the link.
        if !found.is_folder {
            continue;
        }
        let foreign = if is_part { inside(&found.path)? } else { described(&found.path, &below, inside)? };
        if let Some(foreign) = foreign {
            return Ok(Some(format!("{name}/{foreign}")));
        }
    }
    Ok(None)
}

/// The first entry of a folder of images that is no image.
fn images(folder: &Path) -> Result<Option<String>> {
    for found in entries::list(folder)? {
        let name = found.name.as_str();
        if is_metadata(&found) {
            continue;
        }
        let may_belong = [name_index::FILE, COLUMNS].contains(&name) || place::is_folder(&found.path);
        if name.starts_with('.') || !may_belong {
            return Ok(Some(found.name));
        }
        if found.is_folder
            && let Some(foreign) = entry(&found.path)?
        {
            return Ok(Some(format!("{name}/{foreign}")));
        }
    }
    Ok(None)
}

/// The first entry that is neither metadata nor called as chunks and their folders are: `c`, `c.0.1`, `0`,
/// `0.1`.
fn array(folder: &Path) -> Result<Option<String>> {
    let is_chunk = |name: &str| {
        let key = name.strip_prefix('c').unwrap_or(name);
        !name.starts_with('.') && key.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    for found in entries::list(folder)? {
        let name = found.name.as_str();
        if is_metadata(&found) {
            continue;
        }
        if !is_chunk(name) {
            return Ok(Some(found.name));
        }
        if found.is_folder
            && let Some(foreign) = array(&found.path)?
        {
            return Ok(Some(format!("{name}/{foreign}")));
        }
    }
    Ok(None)
}

fn is_metadata(entry: &Entry) -> bool {
    let name = entry.name.as_str();
    !entry.is_folder && (ZARR_METADATA.contains(&name) || MORE_METADATA.contains(&name))
}

fn trimmed(path: &str) -> &str {
    path.trim_start_matches("./").trim_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_metadata_do_not_describe_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("a.zarr");
        let put = |name: &str, text: &str| {
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put("a.zarr/.zgroup", r#"{"zarr_format": 2}"#);
        put(
            "a.zarr/.zattrs",
            r#"{"multiscales": [{"datasets": [{"path": "0"}, {"path": "s/1"}]}], "wellread": {"name": "a"}}"#,
        );
        for file in ["0/.zarray", "0/0/0/1", "s/.zgroup", "s/1/.zarray", "s/1/0.0"] {
            put(&format!("a.zarr/{file}"), "{}");
        }
        put("wellread-names.json", "{}");
        put("a.zarr/wellread-columns.parquet", "");
        let whole = || [entry(&image).unwrap(), entry(dir.path()).unwrap()];
        assert_eq!(whole(), [None, None]);
        for foreign in [
            "labels.csv",
            "notes.json",
            "labels/cells/.zattrs",
            ".git/HEAD",
            "0/notes.txt",
            "0/0/0/.hidden",
            "s/2/.zarray",
        ] {
            put(&format!("a.zarr/{foreign}"), "");
            // Named as far as it is not described.
            for (found, before) in whole().into_iter().zip(["", "a.zarr/"]) {
                let found = found.unwrap();
                assert!(format!("{before}{foreign}").starts_with(&found), "{found} for {foreign}");
            }
            let first = foreign.split('/').next().unwrap();
            match foreign {
                "0/notes.txt" | "0/0/0/.hidden" | "notes.json" => {
                    fs::remove_file(image.join(foreign)).unwrap();
                }
                "s/2/.zarray" => fs::remove_dir_all(image.join("s/2")).unwrap(),
                "labels.csv" => fs::remove_file(image.join(first)).unwrap(),
                _ => fs::remove_dir_all(image.join(first)).unwrap(),
            }
        }
        assert_eq!(whole(), [None, None]);
        put("notes.json", "{}");
        assert_eq!(entry(dir.path()).unwrap().as_deref(), Some("notes.json"));
    }

    #[test]
    fn images_without_the_mark_are_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("a.zarr");
        let attributes = |more: &str| {
            fs::create_dir_all(image.join("0")).unwrap();
            fs::write(image.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
            fs::write(image.join("0/.zarray"), "{}").unwrap();
            let text = format!(r#"{{"multiscales": [{{"datasets": [{{"path": "0"}}]}}]{more}}}"#);
            fs::write(image.join(".zattrs"), text).unwrap();
            [entry(&image).unwrap(), entry(dir.path()).unwrap()]
        };
        assert_eq!(attributes(r#", "wellread": {"name": "a"}"#), [None, None]);
        // As the first version of the writer marked some of its images.
        assert_eq!(attributes(r#", "wellread": {"image": {"id": "a"}}"#), [None, None]);
        for found in attributes("").map(Option::unwrap) {
            assert!(found.ends_with(", which wellread did not write"), "{found}");
        }
        // An array that is no image.
        fs::remove_dir_all(&image).unwrap();
        fs::create_dir(&image).unwrap();
        fs::write(image.join(".zarray"), "{}").unwrap();
        assert!(entry(&image).unwrap().is_some() && entry(dir.path()).unwrap().is_some());
    }

    #[test]
    fn plates_hold_their_wells_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put(".zattrs", r#"{"plate": {"wells": [{"path": "A/1"}]}}"#);
        put("A/1/.zattrs", r#"{"well": {"images": [{"path": "0"}]}}"#);
        put(
            "A/1/0/.zattrs",
            r#"{"multiscales": [{"datasets": [{"path": "0"}]}], "wellread": {"name": "0"}}"#,
        );
        put("A/1/0/0/.zarray", "{}");
        assert_eq!(entry(dir.path()).unwrap(), None);
        put("A/1/0/labels/.zattrs", "{}");
        assert_eq!(entry(dir.path()).unwrap().as_deref(), Some("A/1/0/labels"));
    }
}
