//! Masks among images: rows of a folder that are masks of other rows, told by names.
//!
//! Masks of another pixel type are told by that ([`crate::convert::one_pixel_type`]). Masks of the same type (`images/a.png`
//! and `masks/a.png`, both uint8) would go into one set in silence.

use crate::features::stem;
use crate::{Error, Result, Store};
use std::collections::HashMap;

/// Folders of masks, as the field calls them (NF1, BBBC, Data Science Bowl 2018, Cellpose, StarDist).
const FOLDERS: [&str; 8] =
    ["mask", "masks", "label", "labels", "segmentation", "segmentations", "annotation", "annotations"];

/// Checks that no rows of `source` are masks of other rows.
///
/// # Errors
/// Half of the rows in folders of masks, or more, are called like a row outside of them: the first of these is named.
pub fn none_beside_images(source: &dyn Store) -> Result<()> {
    let names: Vec<String> = (0..source.len()).filter_map(|row| source.name(row).ok()).collect();
    let Some((mask, image)) = find(&names) else { return Ok(()) };
    Err(Error::new(source.path(), format_args!("{mask} is a mask of {image} by its name")))
}

/// A mask and its image, where half of what lies in folders of masks is called like an image, or more.
fn find(names: &[String]) -> Option<(&str, &str)> {
    let mut masks = vec![];
    // The first image of each stem.
    let mut images: HashMap<&str, &str> = HashMap::new();
    for name in names {
        let mut parts: Vec<&str> = name.split(['/', '\\']).collect();
        let stem = stem(parts.pop().unwrap_or(name));
        let is_mask = |folder: &&str| FOLDERS.contains(&folder.to_lowercase().as_str());
        if parts.iter().any(is_mask) {
            masks.push((name.as_str(), stem));
        // Classes may be called "mask" and "no_mask".
        } else if !parts.iter().any(|folder| folder.to_lowercase().contains("mask")) {
            images.entry(stem).or_insert(name);
        }
    }
    let of = |stem: &str| -> Option<&str> {
        let ends = stem.rmatch_indices(['_', '-', '.', ' ']).map(|(at, _)| at);
        std::iter::once(stem.len()).chain(ends).find_map(|end| images.get(&stem[..end]).copied())
    };
    let paired: Vec<(&str, &str)> =
        masks.iter().filter_map(|(name, stem)| Some((*name, of(stem)?))).collect();
    paired.first().copied().filter(|_| 2 * paired.len() >= masks.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Option<(String, String)> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        find(&names).map(|(mask, image)| (mask.to_owned(), image.to_owned()))
    }

    #[test]
    fn masks_are_told_by_folder_and_name() {
        let pair = |mask: &str, image: &str| Some((mask.to_owned(), image.to_owned()));
        assert_eq!(found(&["images/a", "masks/a"]), pair("masks/a", "images/a"));
        assert_eq!(
            found(&["a.tif", "b.tif", "Masks/b_MaskNuclei.tiff"]),
            pair("Masks/b_MaskNuclei.tiff", "b.tif")
        );
        assert_eq!(
            found(&["P1/img/s-1", "P1/labels/s-1-cells", "P2/img/s-2"]),
            pair("P1/labels/s-1-cells", "P1/img/s-1")
        );
    }

    #[test]
    fn folders_of_masks_alone_and_classes_of_that_name_are_sets() {
        assert_eq!(found(&["masks/a", "masks/b"]), None);
        assert_eq!(found(&["mask/001", "no_mask/001", "without_mask/002"]), None, "classes");
        assert_eq!(found(&["labels/x", "labels/y", "labels/a", "images/a"]), None, "one in three by chance");
        assert_eq!(found(&["a", "a_b", "masked/a"]), None);
        assert_eq!(found(&[]), None);
    }
}
