//! What lies in a folder, and what of it is no part of a set of images: asked before a folder is replaced.

use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Something directly in a folder.
pub(crate) struct Entry {
    pub name: String,
    pub path: PathBuf,
    /// Whether it is a folder itself; links to folders are not.
    pub is_folder: bool,
}

/// All that is directly in `folder`, hidden or not, by name, but what wellread notes down for itself while it writes and what
/// file systems put there unasked.
///
/// # Errors
/// The folder cannot be listed.
pub(crate) fn list(folder: &Path) -> Result<Vec<Entry>> {
    let cannot = |e: std::io::Error| Error::io(folder, "cannot list the folder", &e);
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !nobody_misses(&name) {
            let is_folder = entry.file_type().map_err(cannot)?.is_dir();
            found.push(Entry { name, path: entry.path(), is_folder });
        }
    }
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn nobody_misses(name: &str) -> bool {
    name == ".DS_Store" || [".wellread-", "._", ".nfs"].iter().any(|start| name.starts_with(start))
}

/// Whether a file is JSON by its name: sets have it beside their images.
pub(crate) fn is_json(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == "json")
}

/// What lies at any depth below the folders in `folder` that `belongs` does not know by its name, or that is hidden.
///
/// # Errors
/// A folder cannot be listed.
#[cfg(any(feature = "tiff", feature = "image-folder"))]
pub(crate) fn foreign_below(folder: &Path, belongs: fn(&str) -> bool) -> Result<Option<String>> {
    for entry in list(folder)?.iter().filter(|entry| entry.is_folder) {
        let is_foreign = |e: &&Entry| {
            e.name.starts_with('.') || !belongs(&e.name) && !is_json(&e.name) && !e.path.is_dir()
        };
        let foreign = list(&entry.path)?.iter().find(is_foreign).map(|e| e.name.clone());
        let foreign = if foreign.is_some() { foreign } else { foreign_below(&entry.path, belongs)? };
        if let Some(foreign) = foreign {
            return Ok(Some(format!("{}/{foreign}", entry.name)));
        }
    }
    Ok(None)
}
