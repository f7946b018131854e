//! Names of images and of profiles: folders, file, ending, and images that only their endings tell apart.

use crate::features::stem;
use crate::file_names::path_text;
use crate::format::formats;
use crate::{Result, Store, place};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Images of a set that only the endings of their names tell apart, such as `a.tif` and `a.tiff`.
#[derive(Default)]
pub(super) struct Namesakes {
    /// By their rows: the whole name, and that of another one.
    pub images: HashMap<usize, [String; 2]>,
    /// The last parts of their whole names.
    pub files: HashSet<String>,
}

impl Namesakes {
    /// Those of a set with these names.
    pub fn of(source: &dyn Store, images: &[String]) -> Result<Self> {
        let mut alike: HashMap<String, Vec<usize>> = HashMap::new();
        for (row, name) in images.iter().enumerate() {
            alike.entry(parts(name).join("/")).or_default().push(row);
        }
        let mut found = Self::default();
        for rows in alike.into_values().filter(|rows| rows.len() > 1) {
            let names: Vec<String> =
                rows.iter().map(|&row| full_name(source, row, &images[row])).collect::<Result<_>>()?;
            // Images of the very same name are told apart by nothing: they share a profile.
            let first = &names[0];
            let Some(other) = names.iter().find(|name| *name != first) else { continue };
            for (row, name) in rows.iter().zip(&names) {
                found.files.extend(full_parts(name).last().map(|file| (*file).to_owned()));
                let another = if name == first { other } else { first };
                found.images.insert(*row, [name.clone(), another.clone()]);
            }
        }
        Ok(found)
    }
}

/// The name of an image with the ending of its file, where it has a file of that name.
pub(super) fn full_name(source: &dyn Store, row: usize, name: &str) -> Result<String> {
    let mut parts = full_parts(name);
    let last = parts.pop().unwrap_or(name);
    if stem(last) != last || is_table(source) {
        return Ok(name.to_owned());
    }
    // The first of several lies in a folder of that name (OME-Zarr).
    let files = source.files_of(&[row])?;
    let above = files.iter().take(1).flat_map(|file| file.ancestors());
    let file =
        above.filter_map(|path| path.file_name()?.to_str()).find(|file| *file != last && stem(file) == last);
    parts.push(file.unwrap_or(last));
    Ok(parts.join("/"))
}

/// The names of the files of each image, below the folder that was opened where they lie in it. `None` where an image is no more
/// than one.
pub(crate) fn files_of_sites(source: &dyn Store) -> Option<Vec<Vec<String>>> {
    let below = |file: PathBuf| path_text(file.strip_prefix(source.path()).unwrap_or(&file));
    let files = source.hints().sites?.files_of_rows();
    Some(files.into_iter().map(|files| files.into_iter().map(below).collect()).collect())
}

/// Whether a set is a table, whose images have no files of their own.
pub(super) fn is_table(source: &dyn Store) -> bool {
    formats().iter().any(|f| f.name == source.format() && f.keeps_features)
}

/// The folders that a folder of images lies in, itself last; of a table none.
pub(crate) fn folders_of(source: &dyn Store) -> Vec<String> {
    let path = place::absolute(source.path()).unwrap_or_default();
    if is_table(source) || !place::is_folder(&path) {
        return vec![];
    }
    path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
}

/// Folders, and the files in them.
pub(super) fn full_parts(name: &str) -> Vec<&str> {
    let is_folder = |part: &&str| !part.is_empty() && *part != ".";
    let mut parts: Vec<&str> = name.split(['/', '\\']).collect();
    let last = parts.pop().unwrap_or(name);
    parts.retain(is_folder);
    parts.push(last);
    parts
}

/// As [`full_parts`], without the ending of a file.
pub(crate) fn parts(name: &str) -> Vec<&str> {
    let mut parts = full_parts(name);
    let last = parts.pop().unwrap_or(name);
    parts.push(stem(last));
    parts
}
