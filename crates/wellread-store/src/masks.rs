//! Masks among images: rows of a folder that are masks of other rows, told by names.
//!
//! Masks of another pixel type are told by that ([`crate::convert::one_pixel_type`]). Masks of the same type (`images/a.png`
//! and `masks/a.png`, or `a.tif` and `a_mask.tif` in one folder, all uint8) would go into one set in silence.
//!
//! So do masks that are a channel of their image ([`channels`]): loaders scale them like stains.

use crate::each_row;
use crate::features::stem;
use crate::file_names;
use crate::{Error, Result, Store, place, registry};
use std::collections::HashMap;
use std::path::PathBuf;

/// Folders of masks, as the field calls them (NF1, BBBC, Data Science Bowl 2018, Cellpose, StarDist).
const FOLDERS: [&str; 8] =
    ["mask", "masks", "label", "labels", "segmentation", "segmentations", "annotation", "annotations"];

/// Checks that no rows of `source` are masks of other rows.
///
/// # Errors
/// Half of the rows that are called masks, by a folder or the last word of a name, or more, are called like another row. The first
/// of these is named.
pub fn none_beside_images(source: &dyn Store) -> Result<()> {
    let names: Vec<String> = each_row::names(source).flatten().collect();
    let Some((mask, image)) = find(&names) else { return Ok(()) };
    Err(Error::new(source.path(), format_args!("{mask} is a mask of {image} by its name")))
}

/// The same of folders of images alone: in a table masks are among images because somebody put them there.
///
/// # Errors
/// As [`none_beside_images`].
pub fn none_in_folder(source: &dyn Store) -> Result<()> {
    if registry::format_named(source.format()).is_ok_and(|format| format.keeps_features) {
        return Ok(());
    }
    none_beside_images(source)
}

/// A mask among the images of a folder of TIFF, PNG or JPEG files, and its image, by the names of folders and files
/// alone. No file is opened. For other sets the answer needs reading, and is `None`.
pub fn among_files(source: &dyn Store) -> Option<(String, String)> {
    let root = source.path();
    if !matches!(source.format(), "tiff" | "image-folder") || !place::is_folder(root) {
        return None;
    }
    let below =
        |file: &PathBuf| file_names::text(file.strip_prefix(root).unwrap_or(file).as_os_str()).into_owned();
    let names: Vec<String> = source.files().ok()?.iter().map(below).collect();
    // Most sets have no name that says so, and no pairs need be looked for.
    let (mask, image) = names.iter().any(|name| is_called_mask(name)).then(|| find(&names))??;
    Some((mask.to_owned(), image.to_owned()))
}

/// The channels of the first image that are called masks or labels and hold whole numbers, each by its number and name. The mask of
/// cells that are cut out is none: loaders deliver it as it is ([`crate::Hints::is_last_mask`]).
pub fn channels(source: &dyn Store) -> Vec<(usize, String)> {
    let (Ok(metadata), Ok(info)) = (source.metadata(0), source.row_info(0)) else { return vec![] };
    if info.dtype.is_float() {
        return vec![];
    }
    let own = if source.hints().is_last_mask { info.shape.c().checked_sub(1) } else { None };
    let all = metadata.channels.into_iter().map(|channel| channel.name).enumerate();
    all.filter(|(channel, name)| Some(*channel) != own && is_channel(name)).collect()
}

/// Whether a channel is called a mask: `mask`, `labels`, `nuclei_mask`, `mask_nuclei`, `MaskNuclei`.
pub(crate) fn is_channel(name: &str) -> bool {
    let name = name.trim();
    let is_word = FOLDERS.iter().any(|mask| mask.eq_ignore_ascii_case(name));
    let first = name.split(SEPARATORS).next().unwrap_or_default();
    is_word || is_mask_word(first) || without_mask(name).is_some()
}

/// Whether a folder or the last word of a name calls it a mask.
fn is_called_mask(name: &str) -> bool {
    let (folder, file) = name.rsplit_once(['/', '\\']).unwrap_or(("", name));
    let is_mask = |part: &str| FOLDERS.iter().any(|mask| mask.eq_ignore_ascii_case(part));
    folder.split(['/', '\\']).any(is_mask) || without_mask(stem(file)).is_some()
}

/// A mask and its image, where half of what is called a mask is called like an image, or more.
fn find(names: &[String]) -> Option<(&str, &str)> {
    let mut masks: Vec<Mask<'_>> = vec![];
    // The first image of each stem, wherever it lies; and of each beginning of a stem, in its folder.
    let mut images: HashMap<&str, &str> = HashMap::new();
    let mut beside: HashMap<(&str, &str), &str> = HashMap::new();
    for name in names {
        let (folder, file) = name.rsplit_once(['/', '\\']).unwrap_or(("", name));
        let stem = stem(file);
        let mut parts = folder.split(['/', '\\']);
        let is_mask = |folder: &str| FOLDERS.contains(&folder.to_lowercase().as_str());
        if parts.clone().any(is_mask) {
            masks.push(Mask { name, stem, folder: None });
        } else if let Some(stem) = without_mask(stem) {
            masks.push(Mask { name, stem, folder: Some(folder) });
        // Classes may be called "mask" and "no_mask".
        } else if !parts.any(|folder| folder.to_lowercase().contains("mask")) {
            images.entry(stem).or_insert(name);
            for beginning in beginnings(stem) {
                beside.entry((folder, beginning)).or_insert(name);
            }
        }
    }
    let image_of = |mask: &Mask<'_>| -> Option<&str> {
        match mask.folder {
            Some(folder) => beside.get(&(folder, mask.stem)).copied(),
            None => beginnings(mask.stem).find_map(|beginning| images.get(beginning).copied()),
        }
    };
    let paired: Vec<(&str, &str)> =
        masks.iter().filter_map(|mask| Some((mask.name, image_of(mask)?))).collect();
    paired.first().copied().filter(|_| 2 * paired.len() >= masks.len())
}

/// A row that is a mask by its name.
struct Mask<'n> {
    name: &'n str,
    /// The name of its image, or its beginning.
    stem: &'n str,
    /// The folder that its image must lie in; of a folder of masks any.
    folder: Option<&'n str>,
}

/// Separators of words in a file's name.
const SEPARATORS: [char; 4] = ['_', '-', '.', ' '];

/// A stem and what it begins with, word by word, the longest first.
pub(crate) fn beginnings(stem: &str) -> impl Iterator<Item = &str> {
    let ends = stem.rmatch_indices(SEPARATORS).map(|(at, _)| at);
    std::iter::once(stem.len()).chain(ends).map(|end| &stem[..end])
}

/// The part before the word that calls a file a mask, which is its last one: `cell0` of `cell0_mask`, `cell0-labels`,
/// `cell0_MaskNuclei`, `cell0_cp_masks` (Cellpose).
fn without_mask(stem: &str) -> Option<&str> {
    let (before, word) = stem.rsplit_once(SEPARATORS)?;
    let before = before.strip_suffix("_cp").unwrap_or(before);
    (!before.is_empty()
        && (is_mask_word(word) || FOLDERS.contains(&word.to_lowercase().as_str()) || word == "seg"))
        .then_some(before)
}

/// Whether a word begins with mask, and goes on as a word of its own.
fn is_mask_word(word: &str) -> bool {
    let parts = word.split_at_checked("mask".len());
    parts.filter(|(first, _)| first.eq_ignore_ascii_case("mask")).is_some_and(|(_, rest)| {
        // Such as of which object: "masked" is another word.
        rest.is_empty() || rest.eq_ignore_ascii_case("s") || !rest.starts_with(char::is_lowercase)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_masks_by_their_names() {
        for name in [
            "mask",
            "Masks",
            "labels",
            "nuclei_mask",
            "mask_nuclei",
            "MaskNuclei",
            "Cell masks",
            "cells-label",
        ] {
            assert!(is_channel(name), "{name}");
        }
        // The sign of kelvin is a k in small letters, of more bytes.
        for name in ["", "DNA", "unmasked", "Masked DNA", "label-free", "Damask", "ER", "mas\u{212a}"] {
            assert!(!is_channel(name), "{name}");
        }
    }

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
    fn masks_beside_their_images_are_told_by_the_last_word() {
        let pair = |mask: &str, image: &str| Some((mask.to_owned(), image.to_owned()));
        assert_eq!(found(&["cell0.tif", "cell0_mask.tif"]), pair("cell0_mask.tif", "cell0.tif"));
        for mask in ["X_MaskNuclei.tiff", "X-labels.tiff", "X_cp_masks.tiff", "X_seg.tiff", "X mask2.tiff"] {
            assert_eq!(found(&["X.tiff", "Y.tiff", mask]), pair(mask, "X.tiff"));
        }
        // Images of several channels.
        assert_eq!(
            found(&["a/s1_ch1.tif", "a/s1_ch2.tif", "a/s1_mask.tif"]),
            pair("a/s1_mask.tif", "a/s1_ch1.tif")
        );
        for image in
            ["cell0_masked.tif", "cell0_unlabeled.tif", "mask.tif", "cell0_segmented.tif", "cell0_mäsk.tif"]
        {
            assert_eq!(found(&["cell0.tif", image]), None, "{image}");
        }
        assert_eq!(found(&["a/cell0.tif", "b/cell0_mask.tif"]), None, "another folder");
        assert_eq!(found(&["a_mask.tif", "b_mask.tif"]), None, "masks alone");
    }

    #[test]
    fn names_without_a_mask_are_told_without_pairs() {
        for name in ["masks/a.tif", "P1/Labels/a.tif", "a_mask.tif", "b/X_cp_masks.ome.tiff", "s1-seg.png"] {
            assert!(is_called_mask(name), "{name}");
        }
        for name in ["a.tif", "images/a.tif", "unmasked/a.tif", "a_masked.tif", "mask.tif"] {
            assert!(!is_called_mask(name), "{name}");
        }
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
