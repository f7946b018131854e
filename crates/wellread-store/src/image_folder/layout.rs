//! Which files below a path are the rows.

use super::FORMAT;
use crate::file_names;
use crate::file_rows::Place;
use crate::registry::{self, Probe};
use crate::{Error, OpenOptions, Result};
use std::path::{Path, PathBuf};

/// Whether a probe is a PNG or JPEG file, or a folder of such files.
pub(super) fn recognise(probe: &Probe) -> bool {
    if !probe.is_dir {
        return probe.head.starts_with(b"\x89PNG\r\n\x1a\n") || probe.head.starts_with(b"\xff\xd8\xff");
    }
    if probe.entries_ending(FORMAT.endings).next().is_some() {
        return true;
    }
    // Class folders: a look into the first few.
    let folders = probe.entries.iter().map(|name| probe.path.join(name)).filter(|p| p.is_dir());
    folders.take(8).any(|folder| {
        Probe::new(&folder).is_ok_and(|inside| inside.entries_ending(FORMAT.endings).next().is_some())
    })
}

/// Lists the rows of `path`, by name.
///
/// # Errors
/// No picture there, an unreadable folder, or files of other image formats among the pictures.
pub(super) fn rows(path: &Path, options: &OpenOptions) -> Result<Vec<Place>> {
    if !path.is_dir() {
        // A missing or unreadable file shows when its header is read, with the same message as in a folder.
        return Ok(vec![Place { name: stem(path), below: PathBuf::new() }]);
    }
    let mut rows = vec![];
    let mut foreign = None;
    let folders = list(path, Path::new(""), &mut rows, &mut foreign)?;
    for folder in folders {
        list(path, &folder, &mut rows, &mut foreign)?;
    }
    rows.sort();
    let Some(first) = rows.first() else {
        return Err(Error::new(path, "there is no PNG or JPEG file in this folder or its subfolders"));
    };
    if let Some((other, format)) = foreign.filter(|_| options.format.is_none()) {
        return Err(registry::mixed_folder(path, (&first.below, &FORMAT), (&other, format)));
    }
    Ok(rows)
}

/// Adds the pictures in `root/below`; returns its subfolders.
fn list(
    root: &Path,
    below: &Path,
    rows: &mut Vec<Place>,
    foreign: &mut Option<(PathBuf, &'static str)>,
) -> Result<Vec<PathBuf>> {
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
        if FORMAT.has_ending(&text) {
            let below_root = below.join(&file);
            let name = match &*file_names::text(below.as_os_str()) {
                "" => stem(&below_root),
                class => format!("{class}/{}", stem(&below_root)),
            };
            rows.push(Place { name, below: below_root });
        } else if let Some(format) = registry::foreign_format(&entry.path(), &FORMAT) {
            foreign.get_or_insert_with(|| (below.join(&file), format));
        } else if entry.path().is_dir() {
            folders.push(below.join(&file));
        }
    }
    Ok(folders)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|s| file_names::text(s).into_owned()).unwrap_or_default()
}
