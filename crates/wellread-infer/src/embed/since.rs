//! Whether images were written anew since features were made of them: then these are of what was there before.
//!
//! ```text
//!  part or table ─ when it was written ─┐
//!  its images ── files ── when each was ┴─▶ none is later: it counts
//! ```
//!
//! Files in a bucket do not tell, nor does a copy that keeps the time of what was copied.

use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wellread_store::{Result, RowHints, Store};

/// Whether what was made of some images is later than all their files, as far as these tell.
pub(super) fn is_later(made: &Path, store: &dyn Store, rows: &[usize]) -> bool {
    if store.remote_path().is_some() {
        return true;
    }
    let (Some(made), Ok(files)) = (written(made), files_of(store, rows)) else { return false };
    files.iter().filter_map(|file| written(file)).all(|of_image| of_image <= made)
}

/// When a file of this machine was last written.
fn written(file: &Path) -> Option<SystemTime> {
    file.metadata().ok()?.modified().ok()
}

/// The files that rows are read from.
fn files_of(store: &dyn Store, rows: &[usize]) -> Result<Vec<PathBuf>> {
    let own = |&row: &usize| store.row_hints(row).ok().and_then(RowHints::file).filter(|file| file.is_file());
    let Some(first) = rows.iter().map(own).collect::<Option<Vec<PathBuf>>>() else {
        // The set knows the other kinds of rows: a folder, a row of a table.
        return store.files_of(rows);
    };
    // A site or an OME-TIFF goes on in other files. The first one stands for a row that cannot be looked into.
    let all = rows.iter().zip(first).map(|(&row, own)| store.files_of(&[row]).unwrap_or_else(|_| vec![own]));
    Ok(all.flatten().collect())
}
