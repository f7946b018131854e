//! Where rows lie, in errors about them: their files, or the sets that they are of.
//!
//! ```text
//!  row 30, row 0 ─▶ files, where rows have some ──────▶ cls/b/7.png: row 30: the image …, but row 0 (big/a.tif) …
//!                 └▶ else sets, where they are of two ─▶ .: row 30: the image of cls …, but row 0 of big …
//! ```

use crate::Store;
use crate::hints::RowHints;
use std::path::PathBuf;

/// The file of a row, or the path of the set where its format does not have a file for each row or a few.
pub fn path_of_row(store: &dyn Store, row: usize) -> PathBuf {
    file(store, row).unwrap_or_else(|| store.path().to_owned())
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
            path: own.unwrap_or_else(|| store.path().to_owned()),
        }
    }
}
