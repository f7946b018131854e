//! Which files below a path are the rows. Links to folders are followed, and each folder is listed once.

use super::splits::{split_of, split_of_place};
use super::text_chunk;
use crate::file_names;
use crate::file_rows::ImageLocation;
use crate::folders::{FolderEntry, Visited};
use crate::format::{Naming, foreign_format, mixed_folder};
use crate::name_index;
use crate::probe::Probe;
use crate::{Error, OpenOptions, Result};
use std::path::{Path, PathBuf};

/// What the format is called.
pub(super) const NAMING: Naming = Naming { name: "image-folder", endings: &[".png", ".jpg", ".jpeg"] };

/// Whether a probe is a PNG or JPEG file, or a folder of such files.
pub(super) fn recognise(probe: &Probe) -> bool {
    if !probe.is_dir {
        return probe.head.starts_with(b"\x89PNG\r\n\x1a\n") || probe.head.starts_with(b"\xff\xd8\xff");
    }
    if has_pictures(probe) {
        return true;
    }
    let is_split = |folder: &Path| folder.file_name().is_some_and(|name| split_of(name).is_some());
    folders(probe).any(|folder| {
        Probe::new(&folder).is_ok_and(|inside| {
            has_pictures(&inside)
                || is_split(&folder)
                    && folders(&inside)
                        .any(|class| Probe::new(&class).is_ok_and(|inside| has_pictures(&inside)))
        })
    })
}

fn has_pictures(probe: &Probe) -> bool {
    probe.entries_ending(NAMING.endings).next().is_some()
}

/// The first few folders in a folder: enough to tell what it is.
fn folders(probe: &Probe) -> impl Iterator<Item = PathBuf> {
    probe.entries.iter().map(|name| probe.path.join(name)).filter(|path| path.is_dir()).take(8)
}

/// Lists the rows of `path`, by its index of names or else by file name: pictures in it, in its class folders, and in those
/// of its splits; of the split that [`OpenOptions::table`] names, where it names one.
///
/// # Errors
/// No picture there, an unreadable folder or index of names, no such split, or files of other image formats among the
/// pictures.
pub(super) fn rows(path: &Path, options: &OpenOptions) -> Result<Vec<ImageLocation>> {
    if !path.is_dir() {
        // A missing or unreadable file shows when its header is read, with the same message as in a folder.
        let name = text_chunk::name_in(path).unwrap_or_else(|| stem(path));
        return Ok(vec![ImageLocation { name, below: PathBuf::new() }]);
    }
    let mut rows = vec![];
    let mut foreign = None;
    let mut visited = Visited::default();
    let fault = |place: &Path, e| Error::io(place, "cannot look at the folder", &e);
    visited.is_first(path).map_err(|e| fault(path, e))?;
    let mut list_once =
        |mut folders: Vec<FolderEntry>, rows: &mut Vec<ImageLocation>, foreign: &mut Option<_>| {
            folders.sort();
            let mut listed: Vec<(PathBuf, Vec<FolderEntry>)> = vec![];
            for folder in folders {
                let place = path.join(&folder.path);
                if visited.is_first(&place).map_err(|e| fault(&place, e))? {
                    let inside = list(path, &folder.path, rows, foreign)?;
                    listed.push((folder.path, inside));
                }
            }
            Result::Ok(listed)
        };
    let folders = list(path, Path::new(""), &mut rows, &mut foreign)?;
    let mut splits: Vec<&'static str> = vec![];
    for (folder, classes) in list_once(folders, &mut rows, &mut foreign)? {
        let Some(split) = split_of(folder.as_os_str()).filter(|_| !classes.is_empty()) else { continue };
        splits.push(split);
        list_once(classes, &mut rows, &mut foreign)?;
    }
    if let Some(wanted) = &options.table {
        splits.sort_unstable();
        splits.dedup();
        if !splits.contains(&wanted.as_str()) {
            let there = match &splits[..] {
                [] => {
                    "it has no splits (folders such as train and val with class folders in them)".to_owned()
                }
                splits => format!("its splits are {}", splits.join(", ")),
            };
            return Err(Error::new(path, format_args!("there is no split {wanted:?}; {there}")).choice());
        }
        rows.retain(|row| split_of_place(row) == Some(wanted));
    }
    rows.sort();
    let Some(first) = rows.first() else {
        return Err(Error::new(path, "there is no PNG or JPEG file in this folder or its subfolders"));
    };
    if let Some((other, format)) = foreign.filter(|_| options.format.is_none()) {
        return Err(mixed_folder(path, (&first.below, &NAMING), (&other, format)));
    }
    let arranged = name_index::arrange(path, rows, |row| &row.below)?;
    Ok(arranged
        .into_iter()
        .map(|(row, name)| ImageLocation { name: name.unwrap_or(row.name), below: row.below })
        .collect())
}

/// Adds the pictures in `root/below`; returns its subfolders.
fn list(
    root: &Path,
    below: &Path,
    rows: &mut Vec<ImageLocation>,
    foreign: &mut Option<(PathBuf, &'static str)>,
) -> Result<Vec<FolderEntry>> {
    let dir = if below.as_os_str().is_empty() { root.to_owned() } else { root.join(below) };
    let cannot = |e: &std::io::Error| Error::io(&dir, "cannot list the folder", e);
    let mut folders = vec![];
    for entry in std::fs::read_dir(&dir).map_err(|e| cannot(&e))? {
        let entry = entry.map_err(|e| cannot(&e))?;
        let file = entry.file_name();
        let text = file.to_string_lossy();
        if text.starts_with('.') {
            continue;
        }
        if NAMING.has_ending(&text) {
            let below_root = below.join(&file);
            rows.push(ImageLocation { name: name_of(&below_root), below: below_root });
        } else if let Some(format) = foreign_format(&entry.path(), &NAMING) {
            foreign.get_or_insert_with(|| (below.join(&file), format));
        } else if entry.path().is_dir() {
            let is_link = entry.file_type().map_err(|e| cannot(&e))?.is_symlink();
            folders.push(FolderEntry { is_link, path: below.join(&file) });
        }
    }
    Ok(folders)
}

/// Name of a picture by its path below the opened folder: `stem`, `class/stem` or `split/class/stem`.
pub(super) fn name_of(below: &Path) -> String {
    let folder = below.parent().unwrap_or(Path::new(""));
    // Folders of one split are one: train.X1 … train.X4 are train.
    let within = match folder.parent().and_then(|parent| split_of(parent.as_os_str())) {
        Some(split) => format!("{split}/{}", folder.file_name().map(file_names::text).unwrap_or_default()),
        None => file_names::text(folder.as_os_str()).into_owned(),
    };
    if within.is_empty() { stem(below) } else { format!("{within}/{}", stem(below)) }
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|s| file_names::text(s).into_owned()).unwrap_or_default()
}
