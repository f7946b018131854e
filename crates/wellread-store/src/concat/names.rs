//! Whether images of two parts may be called the same, told without opening a file.
//!
//! ```text
//!  sets of files ── names of files ──┐
//!  sites, pictures, OME-Zarr ─ names ┴▶ the same in two parts? ──▶ the part's name goes in front of all names
//!  tables, single TIFF files ─▶ names lie inside ────────────────▶ it does
//! ```
//!
//! A name must not cost a look into each file of a screen. So the part's name goes in front where names may repeat, not only
//! where they do. Beside a table, or a TIFF file that is a set by itself, it always does.

use crate::{RowHints, Store, file_names};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Whether images of two of these parts may be called the same. Opens no file.
pub(super) fn may_repeat<'s>(parts: impl Iterator<Item = &'s dyn Store>) -> bool {
    let parts: Vec<&dyn Store> = parts.filter(|part| !part.is_empty()).collect();
    if parts.len() < 2 {
        return false;
    }
    let mut part_of: HashMap<u64, usize> = HashMap::new();
    for (number, part) in parts.into_iter().enumerate() {
        for row in 0..part.len() {
            let Some(name) = known(part, row) else { return true };
            let mut hash = DefaultHasher::new();
            simple(&name).hash(&mut hash);
            if *part_of.entry(hash.finish()).or_insert(number) != number {
                return true;
            }
        }
    }
    false
}

/// The name of an image as far as it is known without reading its file, but for [`simple`]; `None` where it is not
/// known.
fn known(part: &dyn Store, row: usize) -> Option<String> {
    if part.hints().sites.is_some() {
        return part.name(row).ok();
    }
    match part.format() {
        "image-folder" | "ome-zarr" => part.name(row).ok(),
        "tiff" => {
            let file = part.row_hints(row).ok().and_then(RowHints::file)?;
            // A set of one file is called as the file says inside.
            let below = file.strip_prefix(part.path()).ok()?;
            let stem = crate::features::stem(below.to_str()?).to_owned();
            let folder = below.parent().map(file_names::path_text).unwrap_or_default();
            (!stem.is_empty()).then(|| format!("{folder}/{stem}").trim_start_matches('/').to_owned())
        }
        _ => None,
    }
}

/// The common form of a name and of the file that is written for it. It has no row number in front, no character that files
/// cannot have.
fn simple(name: &str) -> String {
    let (folder, own) = name.rsplit_once('/').unwrap_or(("", name));
    let own = match own.split_once('-') {
        Some((row, rest)) if !row.is_empty() && row.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => own,
    };
    format!("{folder}/{}", file_names::safe(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_its_file() {
        for (name, file) in [("a", "000012-a"), ("a:b", "a_b"), ("P1/a?", "P1/000000-a_"), ("7-a", "a")] {
            assert_eq!(simple(name), simple(file), "{name}");
        }
        for (one, other) in [("a", "b"), ("P1/a", "P2/a"), ("s-1", "s-2")] {
            assert_ne!(simple(one), simple(other));
        }
    }
}
