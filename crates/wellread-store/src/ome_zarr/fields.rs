//! The fields and wells that a plate lacks, for people. They are those that its metadata name and that are not there, and wells
//! with fewer fields than others.

use crate::file_rows::ImageLocation;
use crate::format::Missing;
use crate::surface::option_as;
use crate::words::{counted, counted_with};
use std::collections::BTreeSet;

/// Most fields or wells that are named in a sentence.
const NAMED: usize = 5;

/// The lacking parts, a sentence each. They are those of `absent` among the images that metadata list, and wells that
/// are gone and not among the images.
pub(super) fn missing_parts(
    listed: &[ImageLocation],
    absent: &BTreeSet<usize>,
    gone: &[String],
    missing: Missing,
) -> Vec<String> {
    let wells = wells(listed);
    let mut sentences = vec![];
    if !gone.is_empty() {
        let are = counted_with(gone.len(), "well", ["is", "are"]);
        sentences.push(format!("{are} not there: {} (left out)", some(gone.iter().cloned())));
    }
    if !absent.is_empty() {
        let what = match missing {
            Missing::Error => option_as("missing", "skip|zero").to_string(),
            Missing::Skip => "left out".to_owned(),
            Missing::Zero => "read as 0".to_owned(),
        };
        let (fields, are) = (counted(absent.len(), "field"), if absent.len() == 1 { "is" } else { "are" });
        let names = some(absent.iter().map(|&row| listed[row].name.clone()));
        sentences.push(format!("{fields} of {} {are} not there: {names} ({what})", listed.len()));
    }
    let most = wells.iter().map(|(_, fields)| *fields).max().unwrap_or(0);
    let fewer: Vec<String> = wells
        .iter()
        .filter(|(_, fields)| *fields < most)
        .map(|(well, fields)| format!("{well} has {fields} of {most}"))
        .collect();
    if !fewer.is_empty() {
        let have = if fewer.len() == 1 { "has" } else { "have" };
        let number = counted(fewer.len(), "well");
        sentences.push(format!(
            "{number} of {} {have} fewer fields than others: {}",
            wells.len(),
            some(fewer.into_iter())
        ));
    }
    sentences
}

/// Each well with the number of fields that its metadata list; the images of a well follow each other.
fn wells(listed: &[ImageLocation]) -> Vec<(&str, usize)> {
    let well = |place: &ImageLocation| place.name.rfind('/').unwrap_or(0);
    let runs = listed.chunk_by(|a, b| a.name[..well(a)] == b.name[..well(b)]);
    runs.map(|run| (&run[0].name[..well(&run[0])], run.len())).collect()
}

/// The first few.
fn some(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = if all.len() > NAMED { "; …" } else { "" };
    all.take(NAMED).collect::<Vec<_>>().join("; ") + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn places(names: &[&str]) -> Vec<ImageLocation> {
        let place = |name: &&str| ImageLocation { name: (*name).to_owned(), below: PathBuf::from(name) };
        names.iter().map(place).collect()
    }

    #[test]
    fn what_a_plate_lacks_is_said() {
        let whole = places(&["A/1/0", "A/1/1", "B/2/0", "B/2/1"]);
        assert!(missing_parts(&whole, &BTreeSet::new(), &[], Missing::Error).is_empty());
        let uneven = places(&["A/1/0", "A/1/1", "B/2/0", "C/3/0"]);
        assert_eq!(
            missing_parts(&uneven, &BTreeSet::from([1]), &[], Missing::Error),
            [
                "1 field of 4 is not there: A/1/1 (missing skip|zero)",
                "2 wells of 3 have fewer fields than others: B/2 has 1 of 2; C/3 has 1 of 2"
            ]
        );
        assert_eq!(
            missing_parts(&whole, &BTreeSet::from([0, 3]), &["C/3".to_owned()], Missing::Skip),
            ["1 well is not there: C/3 (left out)", "2 fields of 4 are not there: A/1/0; B/2/1 (left out)"]
        );
        // A well by itself, and many.
        assert!(missing_parts(&places(&["0", "1"]), &BTreeSet::new(), &[], Missing::Error).is_empty());
        let all = (0..7).collect();
        let many = missing_parts(&places(&["A/1/0"; 7]), &all, &[], Missing::Zero);
        let [said] = many.as_slice() else { panic!("{many:?}") };
        assert!(said.starts_with("7 fields of 7 are") && said.ends_with("A/1/0; … (read as 0)"), "{said}");
    }
}
