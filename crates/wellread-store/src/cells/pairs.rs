//! Which label image is of which image: by columns that both have, or by names.
//!
//! ```text
//!  images/f1_DAPI          labels/f1_DAPI               the same name, in whatever folder
//!  B7_DAPI_001             B7_DAPI_001_MaskNuclei       its name, and words after it
//! ```

use crate::features::{Index, joint_key};
use crate::masks::beginnings;
use crate::profiles;
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
            let hint = "give a set that has one label image for each image: nuclei or cells, not both";
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
        let of_key = Index::new(&beside, rows);
        let (columns, rows) = of(columns.as_ref(), labels);
        for label in 0..rows {
            match joint_key(&columns, label).map_or(Ok(None), |key| of_key.find(&key)) {
                Ok(Some(image)) => put(image, label)?,
                Ok(None) => {}
                Err([first, second]) => {
                    let names = format!("{} and {}", images.name(first)?, images.name(second)?);
                    let cause = format!("{names} are alike in {}", by.join(", "));
                    let error =
                        Error::new(images.path(), cause).hint("name more columns that tell images (by)");
                    return Err(error);
                }
            }
        }
        return Ok(found);
    }
    if images.len() == 1 && labels.len() == 1 {
        put(0, 0)?;
        return Ok(found);
    }
    let names: Vec<String> = (0..images.len()).map(|row| images.name(row)).collect::<Result<_>>()?;
    let mut whole: HashMap<String, usize> = HashMap::new();
    // By the file's name alone: an image, and another one of another folder.
    let mut stems: HashMap<&str, (usize, Option<usize>)> = HashMap::new();
    for (image, name) in names.iter().enumerate() {
        let parts = profiles::parts(name);
        whole.entry(parts.join("/")).or_insert(image);
        let stem = parts.last().copied().unwrap_or_default();
        stems.entry(stem).and_modify(|(_, other)| *other = other.or(Some(image))).or_insert((image, None));
    }
    for label in 0..labels.len() {
        let name = labels.name(label)?;
        let parts = profiles::parts(&name);
        if let Some(&image) = whole.get(&parts.join("/")) {
            put(image, label)?;
            continue;
        }
        let stem = parts.last().copied().unwrap_or_default();
        match beginnings(stem).find_map(|beginning| stems.get(beginning)) {
            Some((first, Some(second))) => {
                let [first, second] = [*first, *second].map(|image: usize| names[image].as_str());
                let cause = format_args!("{name} could be of either of two images, {first} and {second}");
                return Err(Error::new(labels.path(), cause)
                    .hint("label images have to lie in folders of the same names as their images"));
            }
            Some((image, None)) => put(*image, label)?,
            None => {}
        }
    }
    Ok(found)
}

/// Whether two sets of equally many images may be of each other in their order, by their names: each two of them begin with the
/// same word or end with the same number (`s1_ch1` and `s1_ch2`, `image_007` and `mask_007`), or one set's names are mere numbers.
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

fn stem_of(name: &str) -> &str {
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
}
