//! Which label image is of which image: by columns that both have, or by names.
//!
//! ```text
//!  images/f1_DAPI          labels/f1_DAPI               the same name, in whatever folder
//!  B7_DAPI_001             B7_DAPI_001_MaskNuclei       its name, and words after it
//!  Images/s1/cell-1        s1/cell-1                    of several of that name, the one with the same folders
//! ```

use crate::masks::beginnings;
use crate::profiles::parts;
use crate::{Error, Result, Store, features};
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
        let mut of_key: HashMap<String, usize> = HashMap::new();
        for (image, key) in features::keys(images, by)?.into_iter().enumerate() {
            if let Some(other) = of_key.insert(key, image) {
                let names = format!("{} and {}", images.name(other)?, images.name(image)?);
                let cause = format!("{names} are alike in {}", by.join(", "));
                return Err(Error::new(images.path(), cause).hint("name more columns that tell images (by)"));
            }
        }
        for (label, key) in features::keys(labels, by)?.into_iter().enumerate() {
            if let Some(&image) = of_key.get(&key) {
                put(image, label)?;
            }
        }
        return Ok(found);
    }
    if images.len() == 1 && labels.len() == 1 {
        put(0, 0)?;
        return Ok(found);
    }
    let names: Vec<String> = (0..images.len()).map(|row| images.name(row)).collect::<Result<_>>()?;
    let index = Index::of(&names);
    // Whole names first: what only looks alike then takes no image from them.
    let (mut rest, mut is_named) = (vec![], vec![false; images.len()]);
    for label in 0..labels.len() {
        let name = labels.name(label)?;
        match index.whole.get(&parts(&name).join("/")) {
            Some(&image) => {
                put(image, label)?;
                is_named[image] = true;
            }
            None => rest.push((label, name)),
        }
    }
    for (label, name) in rest {
        let own = parts(&name);
        match index.of_label(&own) {
            // The one of the same file name in another folder, which has its own label image.
            Ok(Some(image)) if is_named[image] && parts(&names[image]).last() == own.last() => {}
            Ok(Some(image)) => put(image, label)?,
            Ok(None) => {}
            Err(two) => {
                let [first, second] = two.map(|image| names[image].as_str());
                let cause = format_args!("{name} could be of either of two images, {first} and {second}");
                return Err(Error::new(labels.path(), cause)
                    .hint("label images have to lie in folders of the same names as their images"));
            }
        }
    }
    Ok(found)
}

/// Images of which names end alike: the first, and another one.
type Alike = (usize, Option<usize>);

/// Folders of a name that are compared at most, from the last one on.
const MAX_FOLDERS: usize = 16;

/// Images by their names, without the endings of files.
struct Index<'a> {
    /// By all of it.
    whole: HashMap<String, usize>,
    /// By the file's name alone.
    stems: HashMap<&'a str, Alike>,
    /// By the file's name and folders before it, where its name alone does not tell.
    endings: HashMap<String, Alike>,
}

impl<'a> Index<'a> {
    fn of(names: &'a [String]) -> Self {
        let one_more = |image: usize| move |alike: &mut Alike| alike.1 = alike.1.or(Some(image));
        let mut index = Self { whole: HashMap::new(), stems: HashMap::new(), endings: HashMap::new() };
        let all: Vec<Vec<&'a str>> = names.iter().map(|name| parts(name)).collect();
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
            let folders = parts.len().saturating_sub(1);
            for first in folders.saturating_sub(MAX_FOLDERS)..folders {
                let ending = parts[first..].join("/");
                index.endings.entry(ending).and_modify(one_more(image)).or_insert((image, None));
            }
        }
        index
    }

    /// The image of a label image by the parts of its name: the one whose file name it begins with; of several, the one that has the
    /// most folders in common, from the last one on.
    ///
    /// # Errors
    /// Two images that it could be of.
    fn of_label(&self, parts: &[&str]) -> Result<Option<usize>, [usize; 2]> {
        let Some((stem, folders)) = parts.split_last() else { return Ok(None) };
        let known = beginnings(stem).find_map(|stem| Some((stem, *self.stems.get(stem)?)));
        let Some((stem, (first, second))) = known else { return Ok(None) };
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image_of(images: &[&str], label: &str) -> Result<Option<usize>, [usize; 2]> {
        let names: Vec<String> = images.iter().map(|&name| name.to_owned()).collect();
        Index::of(&names).of_label(&parts(label))
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
