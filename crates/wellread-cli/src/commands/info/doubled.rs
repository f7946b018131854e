//! Sites that a set has more than once, in several folders or sets.

use crate::output::Outcome;
use std::collections::{HashMap, HashSet};
use wellread_store::words::counted_with;
use wellread_store::{Store, features};

/// The beginning of columns about an image.
const METADATA: &str = "Metadata_";

/// A sentence about sites that several folders or sets have; `None` where there are none. They are alike in all columns of metadata.
///
/// # Errors
/// Columns or names that cannot be read.
pub(super) fn in_words(store: &dyn Store) -> Outcome<Option<String>> {
    let hints = store.hints();
    let mut columns = hints.feature_names();
    columns.retain(|name| name.starts_with(METADATA));
    let own = [features::WELL, features::SITE];
    if hints.are_crops || !own.iter().all(|name| columns.iter().any(|known| known == name)) {
        return Ok(None);
    }
    // A row without a well or a site is of none.
    columns.sort_by_key(|name| !own.contains(&name.as_str()));
    let values = features::row_values(store, &columns)?;
    let mut rows_of: HashMap<&[Option<String>], Vec<usize>> = HashMap::new();
    for (row, values) in values.iter().enumerate() {
        if values.iter().take(own.len()).all(Option::is_some) {
            rows_of.entry(values).or_default().push(row);
        }
    }
    let mut doubled = vec![];
    for rows in rows_of.into_values().filter(|rows| rows.len() > 1) {
        let names = rows.iter().map(|&row| store.name(row)).collect::<Result<Vec<_>, _>>()?;
        let folders: HashSet<&str> = names.iter().map(|name| folder_of(name)).collect();
        // Images of one folder are channels or planes of a site.
        if folders.len() == names.len() {
            doubled.push((rows[0], names));
        }
    }
    doubled.sort_unstable();
    Ok(doubled.first().map(|(_, names)| {
        let times = if doubled.iter().all(|(_, names)| names.len() == 2) { "twice" } else { "several times" };
        let sites = counted_with(doubled.len(), "site", ["is", "are"]);
        format!("{sites} there {times}, the first as {} and {}", names[0], names[1])
    }))
}

/// The folder in the name of an image, which may be the name of its set.
fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}
