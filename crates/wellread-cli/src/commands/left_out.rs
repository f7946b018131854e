//! The images that a command leaves out, and says so.

use crate::output::Ui;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wellread_infer::source::Unreadable;
use wellread_store::words::counted;
use wellread_store::{LeftOutCounts, Missing, OpenOptions, Result, Store, place};

/// So many are named.
const MAX_NAMED: usize = 5;

/// Names all images that are left out, where no document lists them.
pub fn warn_all(images: &[Unreadable], ui: Ui) {
    for image in images {
        ui.warn(in_words(image));
    }
}

/// Names the first of the images that are left out.
pub fn warn(images: &[Unreadable], ui: Ui) {
    warn_all(&images[..images.len().min(MAX_NAMED)], ui);
    let more = images.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        ui.warn(format!("… and {more} more; --json lists all"));
    }
}

/// The set that was opened. Where opening failed for parts that are gone, it is the rest of the set, and a note says so.
///
/// # Errors
/// That of opening it as it was asked for.
pub fn or_rest(
    opened: Result<Box<dyn Store>>,
    path: &Path,
    options: &OpenOptions,
    ui: Ui,
) -> Result<Box<dyn Store>> {
    match opened {
        Err(error) if error.is_skippable() && options.missing == Missing::Error => {
            let skip = OpenOptions { missing: Missing::Skip, ..options.clone() };
            let rest = wellread_store::open(path, &skip).map_err(|_| error)?;
            ui.hint(format!(
                "note: {}: this describes what is there; other commands refuse the set without --missing skip",
                path.display()
            ));
            Ok(rest)
        }
        opened => opened,
    }
}

/// Sentences about parts that a set lacks, and about sites and files that opening left out as was asked for.
pub fn notes(images: &dyn Store) -> Vec<String> {
    let missing = images.hints().missing_parts.iter().map(|what| format!("missing: {what}"));
    missing.chain(notes_of_sites(images)).collect()
}

/// The sentences about sites and their files.
pub fn notes_of_sites(images: &dyn Store) -> Vec<String> {
    let sites = images.hints().sites;
    sites.map_or_else(Vec::new, |sites| sites.summary().left_out_in_words(images.len()))
}

/// Says such sentences of the set at `path`.
pub fn say(notes: &[String], path: &Path, ui: Ui) {
    for note in notes {
        ui.hint(format!("note: {}: {note}", path.display()));
    }
}

/// Says how many rows without an image were left out.
pub fn note_nulls(rows: usize, ui: Ui) {
    if rows > 0 {
        let were = if rows == 1 { "was" } else { "were" };
        ui.hint(format!("note: {} without an image {were} left out", counted(rows, "row")));
    }
}

/// A document with the counts of what opening the set left out.
pub fn with_counts(mut document: Value, counts: LeftOutCounts) -> Value {
    for (key, count) in counts.by_key() {
        document[key] = count.into();
    }
    document
}

/// Bytes of the files of a set, by which a later run knows it. If images may be left out, a file that cannot be looked at has none.
/// A link to nowhere is an image that cannot be read.
///
/// # Errors
/// A file that cannot be looked at, unless images may be left out.
pub fn bytes_on_disk(store: &dyn Store, may_leave_out: bool) -> Result<u64> {
    if !may_leave_out {
        return store.bytes_on_disk();
    }
    let length = |file: &PathBuf| place::metadata(file).map_or(0, |there| there.length);
    Ok(store.files()?.iter().map(length).sum())
}

/// An image by its row, its name where it has one, and the reason.
fn in_words(Unreadable { row, name, reason }: &Unreadable) -> String {
    let row = format!("row {row}");
    if *name == row {
        return format!("left out: {row}: {reason}");
    }
    format!("left out: {row}: {}: {reason}", name.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_name_has_its_row_once() {
        let said =
            |name: &str| in_words(&Unreadable { row: 1, name: name.into(), reason: "is cut off".into() });
        assert_eq!(said("row 1"), "left out: row 1: is cut off");
        assert_eq!(said("a\tb"), "left out: row 1: a\\tb: is cut off");
    }
}
