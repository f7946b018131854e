//! Refuses rows of a table whose names are of images of two sites. The columns of one site would stand beside another.
//!
//! ```text
//!  row:    FileName_DNA A01_1_DNA.tif, FileName_ER A01_2_ER.tif ──▶ sites A01 1 and A01 2: refused
//!  images: A01_1_DNA.tif, A01_1_ER.tif of one site, each a row  ──▶ share the row of the site
//! ```

use crate::each_row;
use crate::features::{self, PLATE, SITE, WELL};
use crate::surface::option;
use crate::{Error, Result, Store};
use std::collections::HashMap;
use std::path::Path;

/// Looks at the images of each row of a table, which names in the columns `on` have told. Values of [`PLATE`], [`WELL`] and [`SITE`] that
/// both of two images have must be the same. Sites of several files without such a number must have one name.
///
/// # Errors
/// Two images of two sites; columns that cannot be read.
pub(super) fn refuse_ambiguous_sites(
    source: &dyn Store,
    path: &Path,
    on: &[String],
    rows: &[Option<u64>],
) -> Result<()> {
    let mut first_of: HashMap<u64, usize> = HashMap::new();
    let mut pairs = vec![];
    for (image, row) in rows.iter().enumerate() {
        let Some(row) = row else { continue };
        let first = *first_of.entry(*row).or_insert(image);
        if first != image {
            pairs.push((*row, [first, image]));
        }
    }
    if pairs.is_empty() {
        return Ok(());
    }
    let Some(keys) = site_keys(source)? else { return Ok(()) };
    let are_apart = |[one, other]: [usize; 2]| {
        let mut both = keys[one].iter().zip(&keys[other]);
        both.any(|(one, other)| one.is_some() && other.is_some() && one != other)
    };
    let Some((row, [one, other])) = pairs.into_iter().find(|(_, images)| are_apart(*images)) else {
        return Ok(());
    };
    let (one, other, on) = (source.name(one)?, source.name(other)?, on.join(", "));
    let cause = format!("row {row} has names of two sites in {on}: those of the images {one} and {other}");
    Err(Error::new(path, cause)
        .hint(format_args!(
            "give each site a row of its own. Where sites share rows, name columns that both have, such as {WELL} ({})",
            option("on")
        ))
        .choice())
}

/// The values that tell the site of an image.
type SiteKey = Vec<Option<String>>;

/// The key of the site of each image; `None` where nothing tells it.
fn site_keys(source: &dyn Store) -> Result<Option<Vec<SiteKey>>> {
    let there = source.hints().feature_names();
    let known: Vec<String> =
        [PLATE, WELL, SITE].map(str::to_owned).into_iter().filter(|name| there.contains(name)).collect();
    let has_site = known.iter().any(|name| name == SITE);
    if !has_site && source.hints().sites.is_some() {
        let names = each_row::names(source).map(|name| name.map(|name| vec![Some(name)]));
        return names.collect::<Result<_>>().map(Some);
    }
    if known.is_empty() {
        return Ok(None);
    }
    features::row_values(source, &known).map(Some)
}
