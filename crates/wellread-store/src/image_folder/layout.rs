//! Which files below a path are the rows.

use crate::file_names::is_image_of_other_format;
use crate::registry::Probe;
use crate::{Error, OpenOptions, Result};
use std::path::{Path, PathBuf};

/// Endings, in lower case, of the files that are read.
const ENDINGS: [&str; 3] = [".png", ".jpg", ".jpeg"];

/// One picture: its file below the opened path (empty for the path itself) and its name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub name: String,
    pub file: PathBuf,
}

/// Whether a probe is a PNG or JPEG file, or a folder of such files and of no other image format.
pub(super) fn recognise(probe: &Probe) -> bool {
    if !probe.is_dir {
        return probe.head.starts_with(b"\x89PNG\r\n\x1a\n") || probe.head.starts_with(b"\xff\xd8\xff");
    }
    if probe.entries.iter().any(|name| is_image_of_other_format(name, &ENDINGS)) {
        return false;
    }
    if probe.entries_ending(&ENDINGS).next().is_some() {
        return true;
    }
    // Class folders: a look into the first few.
    let folders = probe.entries.iter().map(|name| probe.path.join(name)).filter(|p| p.is_dir());
    folders.take(8).any(|folder| {
        let Ok(inside) = Probe::new(&folder) else { return false };
        inside.entries_ending(&ENDINGS).next().is_some()
            && !inside.entries.iter().any(|name| is_image_of_other_format(name, &ENDINGS))
    })
}

/// Lists the rows of `path`, by name.
///
/// # Errors
/// No picture there, an unreadable folder, or files of other image formats among the pictures.
pub(super) fn rows(path: &Path, options: &OpenOptions) -> Result<Vec<Place>> {
    if !path.is_dir() {
        // A missing or unreadable file shows when its header is read, with the same message as in a folder.
        return Ok(vec![Place { name: stem(path), file: PathBuf::new() }]);
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
    if let Some(other) = foreign.filter(|_| options.format.is_none()) {
        return Err(Error::new(
            path,
            format_args!(
                "the folder mixes formats: {} is a picture, {} is of another format",
                first.file.display(),
                other.display()
            ),
        )
        .hint("keep one format per folder, or read the pictures alone with --format image-folder"));
    }
    Ok(rows)
}

/// Adds the pictures in `root/below`; returns its subfolders.
fn list(
    root: &Path,
    below: &Path,
    rows: &mut Vec<Place>,
    foreign: &mut Option<PathBuf>,
) -> Result<Vec<PathBuf>> {
    let dir = if below.as_os_str().is_empty() { root.to_owned() } else { root.join(below) };
    let cannot = |e: &std::io::Error| Error::io(&dir, "cannot list the folder", e);
    let mut folders = vec![];
    for entry in std::fs::read_dir(&dir).map_err(|e| cannot(&e))? {
        let entry = entry.map_err(|e| cannot(&e))?;
        let file = entry.file_name();
        let text = file.to_string_lossy();
        let lower = text.to_ascii_lowercase();
        if text.starts_with('.') {
            continue;
        }
        if ENDINGS.iter().any(|e| lower.ends_with(e)) {
            let file = below.join(&file);
            let name = match below.to_str() {
                None | Some("") => stem(&file),
                Some(class) => format!("{class}/{}", stem(&file)),
            };
            rows.push(Place { name, file });
        } else if is_image_of_other_format(&text, &ENDINGS) {
            foreign.get_or_insert_with(|| below.join(&file));
        } else if entry.path().is_dir() {
            folders.push(below.join(&file));
        }
    }
    Ok(folders)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}
