//! The ends of data files, where Lance keeps what tells how a file is laid out.
//!
//! ```text
//!  before the manifest is read ─▶ the manifest; files of `data`, where that was listed and they are few ┐
//!  when it is read ─────────────▶ files of the first fragments, those that were not asked for           ┴▶ their last bytes, held as long
//!                                                                                                          as the dataset is open
//!  rows of a fragment that is not open ─▶ their last 64 KiB
//! ```
//!
//! A file that the manifest does not name was asked for in vain, and is never read.

use crate::dataset::DATA;
use crate::dataset_folder::VERSIONS;
use lance_table::format::{DataFile, Fragment};
use std::path::{Path, PathBuf};
use wellread_store::ahead::{END, HeldBytes};
use wellread_store::place::{self, HEAD, Kind, WantedRanges};

/// Files whose ends are asked for while the dataset is opened, at most.
const FILES: usize = 16;
/// Files of which more than [`HEAD`] is asked for, at most.
const FEW: usize = 4;

/// Where a data file of the dataset's own folder lies, and its length, where that is known.
fn located(folder: &Path, file: &DataFile) -> Option<(PathBuf, u64)> {
    let size = file.file_size_bytes.get().filter(|_| file.base_id.is_none())?;
    Some((folder.join(DATA).join(&file.path), size.get()))
}

/// The files in the folder of data, with their lengths. None where that was not listed, or where they are many.
fn listed(folder: &Path) -> Vec<(PathBuf, u64)> {
    let data = folder.join(DATA);
    let Some(entries) = place::listed(&data) else { return vec![] };
    let is_file = |entry: &place::Entry| entry.kind().is_ok_and(|kind| kind == Kind::File);
    let files = entries.flatten().filter(is_file).map(|entry| data.join(entry.name()));
    let files: Vec<PathBuf> = files.take(FILES + 1).collect();
    if files.len() > FILES {
        return vec![];
    }
    // The listing told their lengths, too.
    let with_length = |path: PathBuf| {
        let length = place::metadata(&path).ok()?.length;
        Some((path, length))
    };
    files.into_iter().filter_map(with_length).collect()
}

/// Adds the ends of files of these lengths.
fn want_ends(files: &[(PathBuf, u64)], wanted: &mut WantedRanges) {
    let bytes = if files.len() > FEW { HEAD } else { END };
    for (path, length) in files {
        wanted.end(path, *length, bytes);
    }
}

/// Asks for the manifest of this name and length, and for the ends of data files that it is likely to name.
pub(super) fn with_manifest(folder: &Path, manifest: Option<(&str, u64)>) -> HeldBytes {
    let Some((name, length)) = manifest.filter(|_| place::is_remote(folder)) else {
        return HeldBytes::default();
    };
    let mut wanted = WantedRanges::default();
    want_ends(&[(folder.join(VERSIONS).join(name), length)], &mut wanted);
    want_ends(&listed(folder), &mut wanted);
    HeldBytes::of(&wanted)
}

/// The first fragments: those whose data files are asked for their end while the dataset is opened.
pub(super) fn first<T>(fragments: &[T]) -> &[T] {
    if fragments.len() > FILES { &fragments[..FEW] } else { fragments }
}

/// Asks for the ends of the data files of the first fragments.
pub(super) fn ends_ahead(folder: &Path, fragments: &[Fragment]) -> HeldBytes {
    if !place::is_remote(folder) {
        return HeldBytes::default();
    }
    let files = first(fragments).iter().flat_map(|fragment| &fragment.files);
    let files: Vec<_> = files.filter_map(|file| located(folder, file)).collect();
    let mut wanted = WantedRanges::default();
    want_ends(&files, &mut wanted);
    HeldBytes::of(&wanted)
}

/// Adds the last bytes of a data file.
pub(super) fn want_end(folder: &Path, file: &DataFile, wanted: &mut WantedRanges) {
    if let Some((path, length)) = located(folder, file) {
        wanted.end(&path, length, HEAD);
    }
}
