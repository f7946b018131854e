//! Folders in names of images and of label images, which tell plates apart.
//!
//! ```text
//!  images  A/Images/s1   B/Images/s1     folders of both sets: A, B
//!  labels  A/masks/s1    B/masks/s1      A/masks/s1 is of A/Images/s1, and B/masks/s1 is not
//! ```
//!
//! The plate of an image counts as a folder above the others: its own may be called `A__2026-01-05-Measurement1`.

use crate::Store;
use crate::features::{as_written, known_at};
use std::collections::HashSet;

/// The column of an image's plate.
const PLATE: &str = "Metadata_Plate";

/// Digits of a plate's name from which on it is no number of a site or of a well.
const DIGITS: usize = 4;

/// The plate of each image, as far as a column says and it is no mere number; nothing where there is no such column.
pub(super) fn plates(images: &dyn Store) -> Vec<Option<String>> {
    let hints = images.hints();
    let has_plates = hints.feature_names().iter().any(|name| name == PLATE);
    let column = || hints.features(&[PLATE.to_owned()]).ok().flatten();
    let Some(batch) = has_plates.then(column).flatten() else { return vec![] };
    let Some(column) = batch.columns().first() else { return vec![] };
    let is_name = |plate: &String| plate.len() >= DIGITS || !plate.bytes().all(|byte| byte.is_ascii_digit());
    let plate = |row: usize| known_at(column, row).map(|plate| as_written(&plate)).filter(is_name);
    (0..batch.num_rows()).map(plate).collect()
}

/// Folders of a name that are compared at most, from the last one on.
pub(super) const MAX_FOLDERS: usize = 16;

/// The folders in names of both sets.
pub(super) struct Folders<'a> {
    /// Folders of label images, from each of them on to the last one: `masks` and `A/masks` of `A/masks/s1`.
    labels: HashSet<String>,
    /// Those of images, or of their files.
    images: HashSet<String>,
    /// Single folders that both have.
    shared: HashSet<&'a str>,
    /// Places in which both have one of these, counted from the last folder.
    places: HashSet<usize>,
}

impl<'a> Folders<'a> {
    /// The folders of images and of label images, by their split names: those of images may be the names of their files.
    pub fn of(images: &[Vec<&'a str>], labels: &[Vec<&'a str>]) -> Self {
        let ((images, own), (labels, other)) = (endings(images), endings(labels));
        let names = |single: &HashSet<(usize, &'a str)>| -> HashSet<&'a str> {
            single.iter().map(|(_, folder)| *folder).collect()
        };
        let shared = names(&own).intersection(&names(&other)).copied().collect();
        let places = own.intersection(&other).map(|(place, _)| *place).collect();
        Self { labels, images, shared, places }
    }

    /// A name without the folders that only one set has; `None` where it has no others.
    pub fn shared_with(&self, parts: &[&str], stem: &str) -> Option<String> {
        let mut key = self.shared_of(parts);
        key.push(stem);
        (key.len() > 1).then(|| key.join("/"))
    }

    /// Whether an image and a label image are of other folders, such as two plates. The last folder that differs is one
    /// of the other set too, or one has a folder of both sets that the other lacks. Or a folder differs in the place of
    /// one of both sets. `P2/s1_mask` is not of `P1/s1`, also where `P2/s1` is not in the set. Nor is `B/masks/s1` of
    /// `A/Images/s1`, where another label image is of `A`.
    pub fn are_apart(&self, image: &[&str], label: &[&str]) -> bool {
        let [own, other] = [image, label].map(folders);
        if own.is_empty() || other.is_empty() {
            return false;
        }
        let mut places = own.iter().rev().zip(other.iter().rev()).enumerate();
        if self.shared_of(image) != self.shared_of(label)
            || places.any(|(place, (own, other))| own != other && self.places.contains(&place))
        {
            return true;
        }
        let alike = own.iter().rev().zip(other.iter().rev()).take_while(|(own, other)| own == other).count();
        let ending = |folders: &[&str]| {
            let first = folders.len().checked_sub(alike + 1)?;
            Some(folders[first..].join("/"))
        };
        match [own, other].map(ending) {
            [Some(own), Some(other)] => self.labels.contains(&own) || self.images.contains(&other),
            _ => false,
        }
    }

    /// Whether one of two names has a folder of both sets that the other lacks, as far as folders are words. Numbers in
    /// them are compared elsewhere: `A02` and `A2` are of one well.
    pub fn have_other_words(&self, image: &[&str], label: &[&str]) -> bool {
        let [own, other] = [image, label].map(|parts| {
            let mut words = self.shared_of(parts);
            words.retain(|folder| !folder.bytes().any(|byte| byte.is_ascii_digit()));
            words
        });
        own != other && !folders(image).is_empty() && !folders(label).is_empty()
    }

    /// Those folders of a name that both sets have.
    fn shared_of<'p>(&self, parts: &[&'p str]) -> Vec<&'p str> {
        folders(parts).iter().copied().filter(|folder| self.shared.contains(*folder)).collect()
    }
}

/// The folders of a name that was split.
fn folders<'p, 'a>(parts: &'p [&'a str]) -> &'p [&'a str] {
    match parts {
        [folders @ .., _] => folders,
        [] => &[],
    }
}

/// The folders of these names, from each of them on to the last one; and each alone, with its place from the last one.
fn endings<'a>(names: &[Vec<&'a str>]) -> (HashSet<String>, HashSet<(usize, &'a str)>) {
    let (mut found, mut single) = (HashSet::new(), HashSet::new());
    let mut before: &[&str] = &[];
    for name in names {
        let own = folders(name);
        // Images of a folder mostly follow each other.
        if own != before {
            let firsts = own.len().saturating_sub(MAX_FOLDERS)..own.len();
            found.extend(firsts.map(|first| own[first..].join("/")));
            single.extend(own.iter().rev().copied().enumerate());
            before = own;
        }
    }
    (found, single)
}
