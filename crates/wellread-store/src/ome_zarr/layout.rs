//! Which groups below a path are the rows: one image, a folder of images, a plate, a well, or the numbered
//! series that bioformats2raw writes.

use super::group::{Group, inside};
use crate::file_names;
use crate::file_rows::ImageLocation;
use crate::folders::{FolderEntry, Visited};
use crate::format::{Naming, foreign_format, mixed_folder};
use crate::name_index;
use crate::probe::Probe;
use crate::{Error, OpenOptions, Result};
use std::path::{Path, PathBuf};

/// What the format is called.
pub(super) const NAMING: Naming = Naming { name: "ome-zarr", endings: &[".zarr"] };

pub(super) const METADATA: [&str; 4] = ["zarr.json", ".zattrs", ".zgroup", ".zarray"];

/// Whether a probe is a Zarr group or array, or a folder that holds some.
pub(super) fn recognise(probe: &Probe) -> bool {
    let is_metadata = |name: &String| METADATA.contains(&name.as_str());
    probe.is_dir
        && (probe.entries.iter().any(is_metadata)
            // Ordinary folders are told apart by a look into the first few subfolders.
            || probe
                .entries
                .iter()
                .filter(|name| ends_in_zarr(name) || !name.contains('.'))
                .take(16)
                .any(|name| {
                    // A name that is no text cannot be looked up from a probe: it is taken at its word.
                    let is_text = !name.contains(char::REPLACEMENT_CHARACTER);
                    ends_in_zarr(name) && !is_text || has_metadata(&probe.path.join(name))
                }))
}

fn ends_in_zarr(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == "zarr")
}

pub(super) fn has_metadata(folder: &Path) -> bool {
    METADATA.iter().any(|name| folder.join(name).is_file())
}

/// Lists the rows of `path`.
///
/// # Errors
/// No image there, unreadable metadata of a plate or series, or files of other image formats beside the images.
pub(super) fn rows(path: &Path, options: &OpenOptions) -> Result<Vec<ImageLocation>> {
    if !has_metadata(path) {
        return folder(path, options);
    }
    let group = Group::load(path)?;
    if group.ome.multiscales.is_some() {
        let name = group.own_name().map_or_else(|| image_name(path), str::to_owned);
        return Ok(vec![ImageLocation { name, below: PathBuf::new() }]);
    }
    let rows = if group.ome.plate.is_some() {
        plate(path, &group)?
    } else if group.ome.well.is_some() {
        well(path, &group, "")?
    } else if group.ome.bioformats2raw.is_some() {
        series(path)?
    } else {
        return folder(path, options).map_err(|_| {
            Error::new(&group.file, "has no OME metadata (multiscales, plate or bioformats2raw.layout)")
                .hint("this is a Zarr group but no OME-Zarr; give the path of an OME-Zarr image")
        });
    };
    if rows.is_empty() { Err(Error::new(path, "lists no images")) } else { Ok(rows) }
}

/// The images of a plate, named ROW/COLUMN/FIELD.
fn plate(path: &Path, group: &Group) -> Result<Vec<ImageLocation>> {
    let mut rows = vec![];
    for entry in group.ome.plate.iter().flat_map(|p| &p.wells) {
        inside(&group.file, &entry.path)?;
        rows.extend(well(path, &Group::load(&path.join(&entry.path))?, &entry.path)?);
    }
    Ok(rows)
}

fn well(path: &Path, group: &Group, below: &str) -> Result<Vec<ImageLocation>> {
    let Some(well) = &group.ome.well else {
        return Err(Error::new(&group.file, "has no well metadata, though the plate lists it as a well"));
    };
    debug_assert!(group.file.starts_with(path));
    well.images
        .iter()
        .map(|image| {
            inside(&group.file, &image.path)?;
            let name = if below.is_empty() { image.path.clone() } else { format!("{below}/{}", image.path) };
            Ok(ImageLocation { below: PathBuf::from(&name), name })
        })
        .collect()
}

/// The series of a bioformats2raw group: as `OME` lists them, or numbered folders `0`, `1`, …
///
/// Specification: <https://ngff.openmicroscopy.org/0.5/#bf2raw>.
pub(super) fn series(path: &Path) -> Result<Vec<ImageLocation>> {
    let listed = match Group::load(&path.join("OME")) {
        Ok(ome) => {
            for name in ome.ome.series.iter().flatten() {
                inside(&ome.file, name)?;
            }
            ome.ome.series
        }
        // The group OME is optional.
        Err(_) if !has_metadata(&path.join("OME")) => None,
        Err(e) => return Err(e),
    };
    let names: Vec<String> = if let Some(names) = listed {
        names
    } else {
        let mut names = vec![];
        while has_metadata(&path.join(names.len().to_string())) {
            names.push(names.len().to_string());
        }
        names
    };
    Ok(names.into_iter().map(|name| ImageLocation { below: PathBuf::from(&name), name }).collect())
}

/// The images of a folder, by its index of names or else by file name.
fn folder(path: &Path, options: &OpenOptions) -> Result<Vec<ImageLocation>> {
    let listing = std::fs::read_dir(path).map_err(|e| Error::io(path, "cannot list the folder", &e))?;
    let mut groups = vec![];
    let mut foreign = None;
    for entry in listing {
        let entry = entry.map_err(|e| Error::io(path, "cannot list the folder", &e))?;
        let file = entry.file_name();
        let text = file.to_string_lossy();
        if text.starts_with('.') {
            continue;
        }
        // A name ending in .zarr is taken at its word, so that opening a large set only lists it.
        if ends_in_zarr(&text) || (!text.contains('.') && has_metadata(&entry.path())) {
            let kind = entry.file_type().map_err(|e| Error::io(path, "cannot list the folder", &e))?;
            groups.push(FolderEntry { is_link: kind.is_symlink(), path: PathBuf::from(file) });
        } else if foreign.is_none() {
            foreign = foreign_format(&entry.path(), &NAMING).map(|format| (PathBuf::from(file), format));
        }
    }
    groups.sort();
    // Links may lead to a group that is listed, or to this folder. What cannot be looked at says so where it is read.
    if groups.last().is_some_and(|group| group.is_link) {
        let mut visited = Visited::default();
        let mut is_first = |place: &Path| visited.is_first(place).unwrap_or(true);
        is_first(path);
        groups.retain(|group| is_first(&path.join(&group.path)));
    }
    let mut groups: Vec<PathBuf> = groups.into_iter().map(|group| group.path).collect();
    groups.sort();
    let Some(first) = groups.first() else {
        return Err(Error::new(path, "there is no OME-Zarr image in this folder")
            .hint("give the path of an OME-Zarr image (x.zarr), or of a folder of them"));
    };
    if let Some((other, format)) = foreign.filter(|_| options.format.is_none()) {
        return Err(mixed_folder(path, (first, &NAMING), (&other, format)));
    }
    let arranged = name_index::arrange(path, groups, PathBuf::as_path)?;
    Ok(arranged
        .into_iter()
        .map(|(group, name)| ImageLocation { name: name.unwrap_or_else(|| image_name(&group)), below: group })
        .collect())
}

/// A group's folder name without `.zarr` or `.ome.zarr`.
pub(super) fn image_name(path: &Path) -> String {
    let absolute = if path.file_name().is_some() { Ok(path.to_owned()) } else { path.canonicalize() };
    let name = absolute.ok().and_then(|p| p.file_name().map(|n| file_names::text(n).into_owned()));
    let name = name.unwrap_or_default();
    let stem = name.strip_suffix(".zarr").unwrap_or(&name);
    stem.strip_suffix(".ome").unwrap_or(stem).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_endings() {
        for (path, name) in [("a/b.zarr", "b"), ("a/b.ome.zarr", "b"), ("b", "b"), ("b.c.zarr", "b.c")] {
            assert_eq!(image_name(Path::new(path)), name);
        }
    }
}
