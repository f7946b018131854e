//! Asks at once for the files that opening a remote set reads first: each file by itself would be a round trip.
//!
//! ```text
//!  image  ─▶ zarr.json, .zgroup, .zattrs of its group, zarr.json, .zarray of its array: which there are is not known
//!  group  ─▶ the file of consolidated metadata, names and columns of a series
//! ```
//!
//! Readers of these files need not know of it. Sets on this machine are not asked for anything.

use super::consolidated::{LONGEST, ZMETADATA};
use super::series;
use crate::ahead::Fetching;
use crate::name_index;
use crate::place::{self, PrefetchGuard, WantedRanges};
use std::path::{Path, PathBuf};

/// Metadata of an image in folder `dir`: of its group, and of its array at `level`, which most writers call so.
fn of_image(dir: &Path, level: usize) -> Vec<PathBuf> {
    let array = dir.join(level.to_string());
    let group = ["zarr.json", ".zgroup", ".zattrs"].map(|name| dir.join(name));
    let array = ["zarr.json", ".zarray"].map(|name| array.join(name));
    group.into_iter().chain(array).collect()
}

/// Asks for all metadata of the image in folder `dir` that is looked into first.
pub(super) fn ask_for_image(dir: &Path, level: usize) -> Vec<PrefetchGuard> {
    let Some(mut fetching) = Fetching::of(dir, None) else { return vec![] };
    fetching.first_bytes(of_image(dir, level).iter().map(PathBuf::as_path))
}

/// As [`ask_for_image`], and waits for all of them. Their place keeps what is as short as metadata are, so that who opens the image
/// later on does not ask again.
pub(super) fn fetch_image(dir: &Path, level: usize) -> Vec<PrefetchGuard> {
    let held = ask_for_image(dir, level);
    if !held.is_empty() {
        for file in of_image(dir, level) {
            // The reader tells of a file that cannot be opened.
            let _ = place::open(&file);
        }
    }
    held
}

/// Asks for what opening a group at `path` reads, where its listing tells which of the files there are.
pub(super) fn ask_for_group(path: &Path) -> Vec<PrefetchGuard> {
    if !place::of(path).tells_names() {
        return vec![];
    }
    let Some(mut fetching) = Fetching::of(path, None) else { return vec![] };
    let (mut wanted, mut folder) = (WantedRanges::default(), path.to_owned());
    let of_series = path.join(series::FOLDER);
    // An image has its file read and kept already, by the look at what it is.
    if place::is_folder(&of_series) {
        for name in ["zarr.json", ZMETADATA] {
            wanted.push(&path.join(name), 0, LONGEST);
        }
        folder = of_series;
    }
    wanted.head(&folder.join(name_index::FILE));
    let columns = folder.join(series::COLUMNS);
    wanted.head(&columns);
    let held = fetching.fetch(&wanted);
    // The look for columns does not wait for what was asked for.
    let _ = place::open(&columns);
    held
}

/// Asks for the metadata of groups in folders at once, of a version of Zarr, where each would be a round trip of its own.
pub(super) fn ask_for_groups(
    path: &Path,
    zarr: u8,
    folders: impl Iterator<Item = PathBuf>,
) -> Vec<PrefetchGuard> {
    let Some(mut fetching) = Fetching::of(path, None) else { return vec![] };
    let folders: Vec<PathBuf> = folders.collect();
    // The reader looks for the newer one first. A listing tells that it is missing, where there is a listing.
    let is_told = place::of(path).tells_names();
    let names: &[&str] = match zarr {
        3 => &["zarr.json"],
        _ if is_told => &[".zgroup", ".zattrs"],
        _ => &["zarr.json", ".zgroup", ".zattrs"],
    };
    let files: Vec<PathBuf> =
        folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name))).collect();
    let held = fetching.first_bytes(files.iter().map(PathBuf::as_path));
    // While those are on their way.
    place::list_ahead(&folders);
    held
}
