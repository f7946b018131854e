//! The columns, or formats, that a name which is not there may have been meant for.
//!
//! ```text
//!  "Well" ── is a part of, is spelled nearly like, has a word in common ──▶ is it "Metadata_Well"?
//! ```

use crate::words::{counted, first_few};
use std::borrow::Borrow;
use std::collections::BTreeSet;

/// Most names that are suggested in place of one that is not there.
const MAX_SUGGESTED: usize = 3;
/// Letters of a word that tells which column was meant, at least.
const MIN_WORD_LETTERS: usize = 4;

/// Begins a hint with the names that are nearest to `wanted`; empty where none is near.
pub(crate) fn question<S: Borrow<str>>(wanted: &str, names: &[S]) -> String {
    let near = nearest(wanted, names);
    if near.is_empty() { String::new() } else { format!("is it {}? ", near.join(" or ")) }
}

/// A question, how many columns there are, and `most` of their names.
pub fn hint<S: Borrow<str>>(wanted: &str, names: &[S], most: usize) -> String {
    if names.is_empty() {
        return "it has no columns".to_owned();
    }
    let there = counted(names.len(), "column");
    format!("{}it has {there}: {}", question(wanted, names), first_few(names, most))
}

/// The nearest names in quotes, the nearest first.
fn nearest<S: Borrow<str>>(wanted: &str, names: &[S]) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let is_part = |part: &str, of: &str| part.len() > 2 && of.contains(part);
    // `FileName_DNA` and `Image_FileName_DAPI` have a word in common.
    let words = |text: &str| -> BTreeSet<String> {
        text.split('_').filter(|word| word.len() >= MIN_WORD_LETTERS).map(str::to_owned).collect()
    };
    let of_wanted = words(&wanted);
    let mut near: Vec<(u8, usize, &str)> = names
        .iter()
        .filter_map(|other| {
            let other: &str = other.borrow();
            let lower = other.to_lowercase();
            let distance = strsim::osa_distance(&wanted, &lower);
            let rank = if is_part(&wanted, &lower) || is_part(&lower, &wanted) {
                0
            } else if distance <= wanted.chars().count() / 3 {
                1
            } else if !words(&lower).is_disjoint(&of_wanted) {
                2
            } else {
                return None;
            };
            Some((rank, distance, other))
        })
        .collect();
    near.sort_unstable();
    near.iter().take(MAX_SUGGESTED).map(|(.., other)| format!("{other:?}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_that_were_meant_come_first() {
        let names = ["Metadata_Plate", "Metadata_Well", "Nuclei_Location_Center_X", "Cells_AreaShape_Area"];
        assert_eq!(question("Well", &names), "is it \"Metadata_Well\"? ");
        let wrong_case = question("nuclei_location_center_x", &names);
        assert!(wrong_case.starts_with("is it \"Nuclei_Location_Center_X\""), "{wrong_case}");
        assert_eq!(question("qqqq", &names), "");
        assert_eq!(question::<&str>("Well", &[]), "");
        assert_eq!(hint("Well", &names[1..2], 9), "is it \"Metadata_Well\"? it has 1 column: Metadata_Well");
        assert_eq!(hint("qqqq", &names[..2], 1), "it has 2 columns: Metadata_Plate …");
        assert_eq!(hint::<&str>("Well", &[], 9), "it has no columns");
    }
}
