//! Which label image is of which image: by columns that both have, or by names.
//!
//! ```text
//!  images/f1_DAPI          labels/f1_DAPI               the same name, in whatever folder
//!  B7_DAPI_001             B7_DAPI_001_MaskNuclei       its name, and words after it
//!  Images/s1/cell-1        s1/cell-1                    of several of that name, the one with the same folders
//!  A/Images/s1             A/masks/s1                   or with the same of those folders that both sets have
//!  r01c01f01               r01c01f01p01-ch1_cp_masks    a file of the image, r01c01f01p01-ch1.tiff, and words after it
//!  A/1/0                   1/0/labels/nuclei/nuclei     labels that lie in the image, as OME-Zarr has them
//!  s1                      s1/nuclei                    a file in a folder of its name
//! ```

use super::folders::{Folders, MAX_FOLDERS, plates};
use crate::each_row;
use crate::features::{Comparison, Index, refuse_unlike};
use crate::masks::beginnings;
use crate::profiles::{self, files_of_sites};
use crate::surface::option;
use crate::{Error, Result, Store};
use arrow_array::RecordBatch;
use std::collections::HashMap;

/// For each image the row of its label image, where there is one: by the columns `by` where both sets have them, else by names.
///
/// # Errors
/// Two label images of one image, or one that could be of two; names or columns that cannot be read.
pub fn pair(images: &dyn Store, labels: &dyn Store, by: &[String]) -> Result<Vec<Option<usize>>> {
    let has = |store: &dyn Store| {
        let names = store.hints().feature_names();
        !by.is_empty() && by.iter().all(|name| names.contains(name))
    };
    let mut found: Vec<Option<usize>> = vec![None; images.len()];
    let mut put = |image: usize, label: usize| match found[image].replace(label) {
        Some(other) => {
            let [other, label] = [labels.name(other)?, labels.name(label)?];
            let cause = format!("{other} and {label} are both of the image {}", images.name(image)?);
            let hint = "give a set that has one label image for each image, nuclei or cells and not both. A pattern such as \
                        masks/*Nuclei* takes the files of one kind";
            Err(Error::new(labels.path(), cause).hint(hint))
        }
        None => Ok(()),
    };
    if has(images) && has(labels) {
        let [beside, columns] = [images, labels].map(|store| store.hints().features(by));
        let (beside, columns) = (beside?, columns?);
        let of = |batch: Option<&RecordBatch>, store: &dyn Store| {
            let rows = batch.map_or(0, RecordBatch::num_rows).min(store.len());
            (batch.map_or_else(Vec::new, |batch| batch.columns().to_vec()), rows)
        };
        let (beside, rows) = of(beside.as_ref(), images);
        let (columns, labelled) = of(columns.as_ref(), labels);
        let compared = Comparison::of(labels.path(), (by, &columns), (by, &beside))?;
        let own = (by, &columns[..], 0..labelled);
        refuse_unlike(labels.path(), own, (by, &beside), &compared, "cells.by")?;
        let of_key = Index::new(&beside, &compared, rows);
        for label in 0..labelled {
            match compared.key(&columns, label).map_or(Ok(None), |key| of_key.find(&key)) {
                Ok(Some(image)) => put(image, label)?,
                Ok(None) => {}
                Err([first, second]) => {
                    let names = format!("{} and {}", images.name(first)?, images.name(second)?);
                    let cause = format!("{names} are alike in {}", by.join(", "));
                    return Err(Error::new(images.path(), cause)
                        .hint(format_args!("name more columns that tell images ({})", option("cells.by"))));
                }
            }
        }
        return Ok(found);
    }
    if images.len() == 1 && labels.len() == 1 {
        put(0, 0)?;
        return Ok(found);
    }
    let names: Vec<String> = each_row::names(images).collect::<Result<_>>()?;
    let names_of_labels: Vec<String> = each_row::names(labels).collect::<Result<_>>()?;
    // A label image of an image of several files may be called as any of them: programs segment files.
    let (files, images_of_files) = files_by_image(images);
    let parts_of_labels: Vec<Vec<&str>> = names_of_labels.iter().map(|name| profiles::parts(name)).collect();
    let plates = plates(images);
    let plate = |image: usize| plates.get(image)?.as_deref();
    let index = NameIndex::of(&names, plate, &parts_of_labels);
    let of_files = NameIndex::of(&files, |file| plate(images_of_files[file]), &parts_of_labels);
    // Whole names come first: a name that only looks alike then takes no image from them.
    let (mut rest, mut is_named) = (vec![], vec![false; images.len()]);
    for (label, own) in parts_of_labels.iter().enumerate() {
        match index.whole.get(&own.join("/")) {
            Some(&image) => {
                put(image, label)?;
                is_named[image] = true;
            }
            None => rest.push((label, own)),
        }
    }
    for (label, own) in rest {
        // A file tells more than the words that its image's name shares with others.
        let image = match of_files.of_label_here(own) {
            Ok(Some(file)) => Ok(images_of_files.get(file).copied()),
            Ok(None) | Err(_) => match index.of_labels_within(own) {
                Ok(None) => index.of_label_here(own),
                found => found,
            },
        };
        let in_folder = || index.of_beginning(own).filter(|&image| !is_named[image]);
        let image = image.map(|image| image.or_else(in_folder));
        match image {
            // The one of the same file name in another folder, which has its own label image.
            Ok(Some(image)) if is_named[image] && profiles::parts(&names[image]).last() == own.last() => {}
            Ok(Some(image)) => put(image, label)?,
            Ok(None) => {}
            Err(two) => {
                let [first, second] = two.map(|image| names[image].as_str());
                let name = &names_of_labels[label];
                let cause = format_args!("{name} could be of either of two images, {first} and {second}");
                return Err(Error::new(labels.path(), cause)
                    .hint("label images have to lie in folders of the same names as their images"));
            }
        }
    }
    Ok(found)
}

/// The names of the files of images that are made of several, and of each the row of its image; none of other sets.
fn files_by_image(images: &dyn Store) -> (Vec<String>, Vec<usize>) {
    let sites = files_of_sites(images).filter(|sites| sites.len() == images.len()).unwrap_or_default();
    let each = sites.into_iter().enumerate();
    each.flat_map(|(image, files)| files.into_iter().map(move |file| (file, image))).unzip()
}

/// Whether two sets of equally many images may belong together in their order, by their names. Each two of them begin
/// with the same word or end with the same number (`s1_ch1` and `s1_ch2`, `image_007` and `mask_007`). Or one set's
/// names are mere numbers.
///
/// # Errors
/// Names that cannot be read.
pub fn agree_in_order(images: &dyn Store, labels: &dyn Store) -> Result<bool> {
    if images.len() != labels.len() {
        return Ok(false);
    }
    let (mut are_numbers, mut are_alike) = ([true; 2], true);
    for row in 0..images.len() {
        let names = [images.name(row)?, labels.name(row)?];
        let [image, label] = [stem_of(&names[0]), stem_of(&names[1])];
        for (are, stem) in are_numbers.iter_mut().zip([image, label]) {
            *are &= !stem.is_empty() && number_of(stem) == stem;
        }
        are_alike &= is_part_of_both(image, label);
        if !are_alike && are_numbers == [false; 2] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The last part of a name, without the ending of a file.
pub(super) fn stem_of(name: &str) -> &str {
    profiles::parts(name).last().copied().unwrap_or_default()
}

/// The digits that a name ends with.
fn number_of(stem: &str) -> &str {
    &stem[stem.trim_end_matches(|c: char| c.is_ascii_digit()).len()..]
}

fn is_part_of_both(image: &str, label: &str) -> bool {
    let number = number_of(image);
    let begins = |word: &str| !word.is_empty() && beginnings(label).any(|other| other == word);
    !number.is_empty() && number == number_of(label) || beginnings(image).any(begins)
}

/// Images of which names end alike: the first, and another one.
type Alike = (usize, Option<usize>);

/// Images by their names, without the endings of files.
struct NameIndex<'a> {
    /// The folders and the file's name of each.
    parts: Vec<Vec<&'a str>>,
    /// The same below its plate, where that is known.
    placed: Vec<Vec<&'a str>>,
    /// By all of it.
    whole: HashMap<String, usize>,
    /// By the file's name alone.
    stems: HashMap<&'a str, Alike>,
    /// By the file's name and folders before it, where its name alone does not tell.
    endings: HashMap<String, Alike>,
    /// By the file's name and those of its folders that label images have too, where its name alone does not tell.
    shared: HashMap<String, Alike>,
    folders: Folders<'a>,
}

impl<'a> NameIndex<'a> {
    fn of(names: &'a [String], plate: impl Fn(usize) -> Option<&'a str>, labels: &[Vec<&'a str>]) -> Self {
        let one_more = |image: usize| move |alike: &mut Alike| alike.1 = alike.1.or(Some(image));
        let all: Vec<Vec<&'a str>> = names.iter().map(|name| profiles::parts(name)).collect();
        let below_plate = |(image, parts): (usize, &Vec<&'a str>)| -> Vec<&'a str> {
            let plate = plate(image).filter(|plate| !parts.contains(plate));
            plate.into_iter().chain(parts.iter().copied()).collect()
        };
        let placed: Vec<Vec<&'a str>> = all.iter().enumerate().map(below_plate).collect();
        let folders = Folders::of(&placed, labels);
        let (whole, stems, endings, shared) =
            (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        let mut index = Self { parts: vec![], placed, whole, stems, endings, shared, folders };
        for (image, parts) in all.iter().enumerate() {
            index.whole.entry(parts.join("/")).or_insert(image);
            let stem = parts.last().copied().unwrap_or_default();
            index.stems.entry(stem).and_modify(one_more(image)).or_insert((image, None));
        }
        for (image, parts) in all.iter().enumerate() {
            let stem = parts.last().copied().unwrap_or_default();
            if index.stems.get(stem).is_none_or(|(_, other)| other.is_none()) {
                continue;
            }
            if let Some(key) = index.folders.shared_with(&index.placed[image], stem) {
                index.shared.entry(key).and_modify(one_more(image)).or_insert((image, None));
            }
            let folders = parts.len().saturating_sub(1);
            for first in folders.saturating_sub(MAX_FOLDERS)..folders {
                let ending = parts[first..].join("/");
                index.endings.entry(ending).and_modify(one_more(image)).or_insert((image, None));
            }
        }
        index.parts = all;
        index
    }

    /// The image of a label image by the parts of its name: the one whose file name it begins with. Among several, it
    /// is the one with the most folders in common, from the last one on.
    ///
    /// # Errors
    /// Two images that it could be of.
    fn of_label(&self, parts: &[&str]) -> Result<Option<usize>, [usize; 2]> {
        let Some((_, folders)) = parts.split_last() else { return Ok(None) };
        let Some(stem) = self.stem_of_label(parts) else { return Ok(None) };
        let (first, second) = self.stems[stem];
        let Some(second) = second else { return Ok(Some(first)) };
        let from = |first: usize| [&folders[first..], &[stem]].concat().join("/");
        if let Some(image) = self.whole.get(&from(0)) {
            return Ok(Some(*image));
        }
        for folder in folders.len().saturating_sub(MAX_FOLDERS)..folders.len() {
            match self.endings.get(&from(folder)) {
                Some((image, None)) => return Ok(Some(*image)),
                Some((image, Some(other))) => return Err([*image, *other]),
                None => {}
            }
        }
        Err([first, second])
    }

    /// As [`Self::of_label`], without images of another folder, such as another plate's. Folders that both sets have tell
    /// images of one name apart, also where these are not the last ones: `A/masks/s1` is of `A/Images/s1`.
    ///
    /// # Errors
    /// Two images that it could be of.
    fn of_label_here(&self, parts: &[&str]) -> Result<Option<usize>, [usize; 2]> {
        let is_here = |image: &usize| !self.folders.are_apart(&self.placed[*image], parts);
        let two = match self.of_label(parts) {
            Ok(found) => return Ok(found.filter(is_here)),
            Err(two) => two,
        };
        let key = self.stem_of_label(parts).and_then(|stem| self.folders.shared_with(parts, stem));
        match key.and_then(|key| self.shared.get(&key)) {
            Some((image, None)) => Ok(Some(*image).filter(is_here)),
            Some((image, Some(other))) => Err([*image, *other]),
            None if two.iter().any(is_here) => Err(two),
            None => Ok(None),
        }
    }

    /// The name of a file of images that a label image's begins with, the longest there is.
    fn stem_of_label<'p>(&self, parts: &[&'p str]) -> Option<&'p str> {
        beginnings(parts.last().copied()?).find(|stem| self.stems.contains_key(*stem))
    }

    /// As [`Self::of_label`], of labels that lie in their image: `A/1/0/labels/nuclei`, as OME-Zarr has them.
    ///
    /// # Errors
    /// Two images that they could be of.
    fn of_labels_within(&self, parts: &[&str]) -> Result<Option<usize>, [usize; 2]> {
        let Some(at) = parts.iter().rposition(|part| *part == "labels").filter(|&at| at > 0) else {
            return Ok(None);
        };
        let image = &parts[..at];
        // An image of a list is called by its folder twice.
        let twice = [image, &image[at - 1..]].concat();
        for image in [image, twice.as_slice()] {
            match self.of_label(image) {
                Ok(Some(row)) if self.lies_in(row, image) => return Ok(Some(row)),
                Err(two) if two.iter().all(|&row| self.lies_in(row, image)) => return Err(two),
                // Another well has an image of this name.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Whether an image has this name, and folders of the same names as far as both have some.
    fn lies_in(&self, image: usize, parts: &[&str]) -> bool {
        let (Some((stem, folders)), Some((own, above))) =
            (parts.split_last(), self.parts[image].split_last())
        else {
            return false;
        };
        beginnings(stem).any(|stem| stem == *own)
            && folders.iter().rev().zip(above.iter().rev()).all(|(a, b)| a == b)
    }

    /// The image whose whole name the folders of a label image are, or begin with.
    fn of_beginning(&self, parts: &[&str]) -> Option<usize> {
        let folders = (1..parts.len()).rev();
        folders.map(|end| parts[..end].join("/")).find_map(|name| self.whole.get(&name).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_by_their_first_word_or_their_number() {
        for (image, label) in [
            ("s1_ch1", "s1_ch2"),
            ("image_007", "mask_007"),
            ("a", "a"),
            ("stack:3", "labels:3"),
            ("B7-x", "B7"),
        ] {
            assert!(is_part_of_both(image, label), "{image} {label}");
        }
        for (image, label) in [("a", "x"), ("image_1", "mask_2"), ("", ""), ("_a", "_b"), ("a1b", "c1d")] {
            assert!(!is_part_of_both(image, label), "{image} {label}");
        }
    }

    fn image_of(images: &[&str], label: &str) -> Result<Option<usize>, [usize; 2]> {
        let names: Vec<String> = images.iter().map(|&name| name.to_owned()).collect();
        NameIndex::of(&names, |_| None, &[]).of_label(&profiles::parts(label))
    }

    #[test]
    fn folders_tell_images_of_one_name_apart() {
        let cells = ["Images/r01c01f01/cell-1", "Images/r01c01f02/cell-1", "Images/r01c01f01/cell-2"];
        assert_eq!(image_of(&cells, "r01c01f01/cell-1"), Ok(Some(0)));
        assert_eq!(image_of(&cells, "masks/r01c01f02/cell-1"), Ok(Some(1)));
        assert_eq!(image_of(&cells, "r01c01f02/cell-1_mask.tif"), Ok(Some(1)));
        // One has this name.
        assert_eq!(image_of(&cells, "cell-2"), Ok(Some(2)));
        assert_eq!(image_of(&cells, "cell-1"), Err([0, 1]));
        assert_eq!(image_of(&cells, "r02c01f01/cell-1"), Err([0, 1]));
        assert_eq!(image_of(&cells, "r01c01f01/cell-3"), Ok(None));
        // The whole name before a part of another one.
        let folders = ["B/P1/x", "P1/x", "A/P1/x"];
        assert_eq!(image_of(&folders, "P1/x_MaskNuclei"), Ok(Some(1)));
        assert_eq!(image_of(&folders, "A/P1/x"), Ok(Some(2)));
        assert_eq!(image_of(&folders, "C/P1/x"), Err([0, 1]));
    }
}
