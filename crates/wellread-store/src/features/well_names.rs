//! Wells that the two sides of a join write in two ways: `B7` and `B07`.
//!
//! ```text
//!  table:  B07, H12 ─┐
//!                    ├─▶ the cells of B07 would be of no image, and those of H12 would stay: refused
//!  images: B7,  H12 ─┘
//! ```

use super::key_at;
use crate::surface::option;
use crate::{Error, Result};
use arrow_array::{Array, ArrayRef};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Endings of names of columns of wells.
const WELLS: [&str; 2] = ["well", "well_position"];

/// Refuses a join by columns of a table, `path`, of which one has wells that the images have as well, with other zeros. Only
/// `rows` of the table count. `by` is the option that names the columns.
///
/// # Errors
/// Such wells.
pub(super) fn refuse_padded(
    path: &Path,
    (names, columns, rows): (&[String], &[ArrayRef], impl Iterator<Item = usize>),
    (their_names, theirs): (&[String], &[ArrayRef]),
    by: &'static str,
) -> Result<()> {
    let is_of_wells = |name: &String| {
        let lower = name.to_ascii_lowercase();
        WELLS.iter().any(|well| lower.ends_with(well))
    };
    let at = names.iter().zip(their_names).position(|(own, their)| is_of_wells(own) || is_of_wells(their));
    let at = at.filter(|&at| at < columns.len() && at < theirs.len());
    let Some(at) = at else { return Ok(()) };
    let own = values(&columns[at], rows);
    let of_images = values(&theirs[at], 0..theirs[at].len());
    let mut unmatched: BTreeMap<String, &str> = BTreeMap::new();
    for value in own.difference(&of_images) {
        if let Some(well) = without_zeros(value) {
            unmatched.entry(well).or_insert(value);
        }
    }
    let same = of_images.difference(&own).find_map(|value| {
        let well = without_zeros(value)?;
        Some((*unmatched.get(&well)?, value))
    });
    let Some((value, their)) = same else { return Ok(()) };
    let (name, their_name) = (&names[at], &their_names[at]);
    let cause = format_args!(
        "column {name:?} has the well {value:?}, which the images' column {their_name:?} calls {their:?}: texts are \
         compared as they are"
    );
    Err(Error::new(path, cause)
        .hint(format_args!(
            "write wells alike in both, with or without zeros in front; or name other columns that tell the image ({})",
            option(by)
        ))
        .choice())
}

fn values(column: &ArrayRef, rows: impl Iterator<Item = usize>) -> BTreeSet<String> {
    rows.filter_map(|row| key_at(column, row)).collect()
}

/// A well without zeros in front of its number, in capitals; `None` of other texts.
fn without_zeros(text: &str) -> Option<String> {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let letters = &text[..text.len() - digits.len()];
    let is_well = (1..=2).contains(&letters.len())
        && (1..=3).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_well.then(|| format!("{}{}", letters.to_ascii_uppercase(), digits.trim_start_matches('0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::StringArray;
    use std::sync::Arc;

    fn refused(name: &str, table: &[&str], images: &[&str]) -> Option<String> {
        let array = |values: &[&str]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
        let (own, theirs) = ([array(table)], [array(images)]);
        let (names, their_names) = ([name.to_owned()], [format!("Metadata_{name}")]);
        let result = refuse_padded(
            Path::new("t"),
            (&names[..], &own[..], 0..table.len()),
            (&their_names[..], &theirs[..]),
            "cells.by",
        );
        result.err().map(|error| error.to_string())
    }

    #[test]
    fn wells_with_other_zeros_are_refused() {
        let error = refused("Well", &["B07", "H12"], &["B7", "H12"]).unwrap();
        let said =
            "column \"Well\" has the well \"B07\", which the images' column \"Metadata_Well\" calls \"B7\"";
        assert!(error.contains(said), "{error}");
        assert!(refused("Well", &["b7"], &["B07"]).is_some());
    }

    #[test]
    fn other_wells_are_not() {
        assert_eq!(refused("Well", &["B07", "H12"], &["B07"]), None);
        assert_eq!(refused("Well", &["C03"], &["B07", "B7"]), None);
        // Both sides have both, of two plates.
        assert_eq!(refused("Well", &["B07", "B7"], &["B07", "B7"]), None);
        // The images are of one of two plates.
        assert_eq!(refused("Well", &["B07", "B7"], &["B07"]), None);
        assert_eq!(refused("Site", &["B07"], &["B7"]), None);
        assert_eq!(refused("Well", &["1", "sample01"], &["01", "sample1"]), None);
    }
}
