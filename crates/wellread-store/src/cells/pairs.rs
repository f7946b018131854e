//! Which label image is of which image: by columns that both have, or by names.
//!
//! ```text
//!  images/f1_DAPI          labels/f1_DAPI               the same name, in whatever folder
//!  B7_DAPI_001             B7_DAPI_001_MaskNuclei       its name, and words after it
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
    let mut whole: HashMap<String, usize> = HashMap::new();
    // By the file's name alone: an image, and another one of another folder.
    let mut stems: HashMap<&str, (usize, Option<usize>)> = HashMap::new();
    for (image, name) in names.iter().enumerate() {
        let parts = parts(name);
        whole.entry(parts.join("/")).or_insert(image);
        let stem = parts.last().copied().unwrap_or_default();
        stems.entry(stem).and_modify(|(_, other)| *other = other.or(Some(image))).or_insert((image, None));
    }
    for label in 0..labels.len() {
        let name = labels.name(label)?;
        let parts = parts(&name);
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
