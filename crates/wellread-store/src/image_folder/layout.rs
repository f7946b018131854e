//! Which files below a path are the rows. Links to folders are followed, and each folder is listed once.

use super::splits::{split_of_path, split_of_row};
use super::text_chunk;
use crate::file_names;
use crate::file_rows::ImageLocation;
use crate::folders::{self, Sort, sort_file, sort_quickly};
use crate::format::{Naming, mixed_folder};
use crate::name_index;
use crate::place;
use crate::probe::Probe;
use crate::{Error, OpenOptions, Result};
use std::path::{Path, PathBuf};

/// The format's name and endings.
pub(super) const NAMING: Naming = Naming { name: "image-folder", endings: &[".png", ".jpg", ".jpeg"] };

/// Whether a probe is a PNG or JPEG file, or a folder with such files in it or below it.
pub(super) fn recognise(probe: &Probe) -> bool {
    if !probe.is_dir {
        return probe.head.starts_with(b"\x89PNG\r\n\x1a\n") || probe.head.starts_with(b"\xff\xd8\xff");
    }
    if has_pictures(probe) {
        return true;
    }
    folders::has_image(&probe.path, probe.levels, |path, name, is_dir| {
        if NAMING.has_ending(name) { Sort::Image } else { sort_quickly(path, name, is_dir, &NAMING) }
    })
}

fn has_pictures(probe: &Probe) -> bool {
    probe.entries_ending(NAMING.endings).next().is_some()
}

/// Lists the rows of `path`, by its index of names or else by file name: pictures in it and in all folders
/// below it. Where [`OpenOptions::table`] names a split, it lists that split alone.
///
/// # Errors
/// No picture there, an unreadable folder or index of names, no such split, or files of other image formats among the
/// pictures.
pub(super) fn rows(path: &Path, options: &OpenOptions) -> Result<Vec<ImageLocation>> {
    if !place::is_folder(path) {
        // A missing or unreadable file shows when its header is read, with the same message as in a folder.
        let name = text_chunk::name_in(path).unwrap_or_else(|| stem(path));
        return Ok(vec![ImageLocation { name, below: PathBuf::new() }]);
    }
    let found = folders::images(path, |path, name, is_dir| {
        if NAMING.has_ending(name) { Sort::Image } else { sort_file(path, name, is_dir, &NAMING) }
    })?;
    let foreign = found.other;
    let row = |below: PathBuf| ImageLocation { name: name_of(&below), below };
    let mut rows: Vec<ImageLocation> = found.images.into_iter().map(|image| row(image.path)).collect();
    rows.sort();
    let Some(first) = rows.first() else {
        return Err(Error::new(path, "there is no PNG or JPEG file in this folder or its subfolders"));
    };
    if let Some((other, format)) = foreign.filter(|_| options.format.is_none()) {
        return Err(mixed_folder(path, (&first.below, NAMING.name), (&other, format)));
    }
    let arranged = name_index::arrange(path, rows, |row| &row.below)?.into_iter();
    let named =
        arranged.map(|(row, name)| ImageLocation { name: name.unwrap_or(row.name), below: row.below });
    let mut rows: Vec<ImageLocation> = named.collect();
    if let Some(wanted) = &options.table {
        let mut splits: Vec<&str> = rows.iter().filter_map(split_of_row).collect();
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
        rows.retain(|row| split_of_row(row) == Some(wanted));
    }
    Ok(rows)
}

/// Name of a picture by its path below the opened folder: `stem`, `class/stem`, `split/class/stem`, `plate/well/site/stem`.
pub(super) fn name_of(below: &Path) -> String {
    let within = match split_of_path(below) {
        // Folders of one split are one: train.X1 … train.X4 are train.
        Some((split, class)) => format!("{split}/{}", file_names::path_text(class)),
        None => file_names::path_text(below.parent().unwrap_or(Path::new(""))),
    };
    if within.is_empty() { stem(below) } else { format!("{within}/{}", stem(below)) }
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|s| file_names::text(s).into_owned()).unwrap_or_default()
}
