//! Where rows lie, in errors about them: their files, or the sets that they are of. And the names of sets in errors about all of a set.
//!
//! ```text
//!  row 30, row 0 ─▶ files, where rows have some ──────▶ cls/b/7.png: row 30: the image …, but row 0 (big/a.tif) …
//!                 └▶ else sets, where they are of two ─▶ cls and 1 more: row 30: the image of cls …, but row 0 of big …
//! ```

use crate::hints::RowHints;
use crate::words::first_and_more;
use crate::{Store, place};
use std::path::{Path, PathBuf};

/// The file of a row, or the path of the set where its format does not have a file for each row or a few.
pub fn path_of_row(store: &dyn Store, row: usize) -> PathBuf {
    file(store, row).unwrap_or_else(|| path_of_set(store))
}

/// The path of a set, in an error about all of it or about a row of it. Sets that were put together, and files that were given one by
/// one, may have no folder in common but the working one. The first then stands for all: `a.tif and 1 more`.
pub fn path_of_set(store: &dyn Store) -> PathBuf {
    let path = store.path();
    if path != Path::new(".") {
        return path.to_owned();
    }
    let parts: Vec<String> = store.hints().set_parts().into_iter().map(|part| part.name).collect();
    if !parts.is_empty() {
        return PathBuf::from(first_and_more(&parts, 1, [", ", " and"]));
    }
    let files = store.files().unwrap_or_default();
    // Where the working folder itself was given, its files lie below it.
    if files.first().is_none_or(|first| first.starts_with(path)) {
        return path.to_owned();
    }
    let names: Vec<String> = files.iter().map(|file| place::shown(file).display().to_string()).collect();
    PathBuf::from(first_and_more(&names, 1, [", ", " and"]))
}

fn file(store: &dyn Store, row: usize) -> Option<PathBuf> {
    store.row_hints(row).ok().and_then(RowHints::file)
}

/// Two rows of a set that do not agree, as an error names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlikeRows {
    /// See [`path_of_row`], of the row at fault.
    pub path: PathBuf,
    /// The image of the row at fault, with its set where that tells more than the path: `the image`, `the image of BR2`.
    pub image: String,
    /// The other row, with its file or set where that is another: `row 0`, `row 0 (plate/a.tif)`, `row 0 of BR1`.
    pub other: String,
}

impl UnlikeRows {
    /// The row at fault and the other one.
    pub fn of(store: &dyn Store, row: usize, other: usize) -> Self {
        let parts = store.hints().set_parts();
        let part =
            |row| parts.iter().find(|part| part.contains(row)).map(|part| format!(" of {}", part.name));
        let [own, its] = [row, other].map(|row| file(store, row));
        let [own_part, its_part] = [row, other].map(part);
        let (is_other_file, is_other_part) = (own != its, own_part != its_part);
        let of = |part: Option<String>| part.filter(|_| is_other_part).unwrap_or_default();
        Self {
            image: format!("the image{}", if own.is_some() { String::new() } else { of(own_part) }),
            other: match its.filter(|_| is_other_file) {
                Some(file) => format!("row {other} ({})", file.display()),
                None => format!("row {other}{}", of(its_part)),
            },
            path: own.unwrap_or_else(|| path_of_set(store)),
        }
    }
}
