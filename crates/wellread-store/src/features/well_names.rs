//! Wells that the two sides of a join write in two ways: `B7` and `B07`.
//!
//! ```text
//!  table:  B07, H12 ─┐
//!                    ├─▶ the cells of B07 would be of no image, and those of H12 would stay: refused
//!  images: B7,  H12 ─┘
//! ```

use super::{Comparison, key_at};
use crate::surface::option;
use crate::{Error, Result};
use arrow_array::{Array, ArrayRef};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Endings of names of columns of wells.
const WELLS: [&str; 2] = ["well", "well_position"];

/// Refuses a join by columns of a table, `path`, of which one has wells that the images have with other zeros. The other columns
/// must agree. Only `rows` of the table count. `by` is the option that names the columns.
///
/// # Errors
/// Such wells.
pub(super) fn refuse_padded(
    path: &Path,
    (names, columns, rows): (&[String], &[ArrayRef], impl Iterator<Item = usize>),
    (their_names, theirs): (&[String], &[ArrayRef]),
    compared: &Comparison,
    by: &'static str,
) -> Result<()> {
    let is_of_wells = |name: &String| {
        let lower = name.to_ascii_lowercase();
        WELLS.iter().any(|well| lower.ends_with(well))
    };
    let at = names.iter().zip(their_names).position(|(own, their)| is_of_wells(own) || is_of_wells(their));
    let at = at.filter(|&at| at < columns.len() && at < theirs.len());
    let Some(at) = at else { return Ok(()) };
    let others = compared.without(at);
    let own = wells(columns, at, &others, rows);
    let of_images = wells(theirs, at, &others, 0..theirs[at].len());
    let mut unmatched: BTreeMap<(&str, String), &str> = BTreeMap::new();
    for (place, value) in own.difference(&of_images) {
        if let Some(well) = without_zeros(value) {
            unmatched.entry((place.as_str(), well)).or_insert(value);
        }
    }
    let same = of_images.difference(&own).find_map(|(place, value)| {
        let well = without_zeros(value)?;
        Some((*unmatched.get(&(place.as_str(), well))?, value))
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

/// The values of column `at`, each behind those of the other columns, which are compared as `others` says.
fn wells(
    columns: &[ArrayRef],
    at: usize,
    others: &Comparison,
    rows: impl Iterator<Item = usize>,
) -> BTreeSet<(String, String)> {
    let rest = columns.iter().enumerate().filter(|(column, _)| *column != at);
    let rest: Vec<ArrayRef> = rest.map(|(_, column)| Arc::clone(column)).collect();
    rows.filter_map(|row| Some((others.key(&rest, row)?, key_at(&columns[at], row)?))).collect()
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

    fn array(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn refused_by(names: &[&str], own: &[ArrayRef], theirs: &[ArrayRef]) -> Option<String> {
        let named = |before: &str| names.iter().map(|name| format!("{before}{name}")).collect::<Vec<_>>();
        let (names, their_names) = (named(""), named("Metadata_"));
        let compared = Comparison::of(Path::new("t"), (&names, own), (&their_names, theirs)).unwrap();
        let table = (&names[..], own, 0..own[0].len());
        let result = refuse_padded(Path::new("t"), table, (&their_names, theirs), &compared, "cells.by");
        result.err().map(|error| error.to_string())
    }

    fn refused(name: &str, table: &[&str], images: &[&str]) -> Option<String> {
        refused_by(&[name], &[array(table)], &[array(images)])
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

    #[test]
    fn wells_of_other_plates_are_other_wells() {
        let images = [array(&["P2", "P2"]), array(&["A1", "B1"])];
        let of = |plate: &str| {
            refused_by(&["Plate", "Well"], &[array(&[plate, "P2"]), array(&["B01", "A1"])], &images)
        };
        assert_eq!(of("P1"), None);
        assert!(of("P2").is_some());
    }
}
