//! Columns of a table that tell the images of its cells, found by trying them. Hints of errors name these, so that whoever
//! follows a hint does not meet the next error.
//!
//! ```text
//!  columns beside the images ─ there in the table, too ──▶ both have …
//!  columns of names of files ─ values that name images ──▶ give one alone
//! ```

use super::table::CellTable;
use super::telling::{ILLUMINATION, NAMES, TELLING, by_name, resolved};
use crate::Store;
use crate::surface::{option, option_as};

/// Columns of names that are tried, at most: a table has one for each channel.
const MOST: usize = 32;

/// The columns to take, in words for a hint; where none is known, what there is.
pub(super) fn hint(images: &dyn Store, table: &CellTable) -> String {
    known(images, table).unwrap_or_else(|| {
        let such_as = images.name(0).map_or_else(|_| String::new(), |first| format!(", such as {first}"));
        let beside = images.hints().feature_names();
        let beside = match beside.as_slice() {
            [] => "are no columns beside the images".to_owned(),
            names => format!("are {} beside the images", names[..names.len().min(12)].join(", ")),
        };
        format!(
            "give a column with the names of the images{such_as}, or columns that both have ({}). There {beside}. As to the table, {}",
            option("cells.by"),
            table.there(&TELLING)
        )
    })
}

/// The same where columns are known.
pub(super) fn known(images: &dyn Store, table: &CellTable) -> Option<String> {
    let mut shared = images.hints().feature_names();
    shared.retain(|name| resolved(name, &table.names).is_some());
    let naming = naming(images, table);
    let alone = naming.first().map(|name| option_as("cells.by", name));
    let named = alone.map(|alone| match naming.as_slice() {
        [_] => format!("one column has names of images: {alone}"),
        names => format!("each of {} has names of images: give one alone, such as {alone}", names.join(", ")),
    });
    let apart = (naming.len() > 1 && images.hints().sites.is_none())
        .then(|| format!("images of one channel each can be put together first ({})", option("pattern")));
    let both = (!shared.is_empty()).then(|| format!("both have {}", shared.join(", ")));
    let parts: Vec<String> = [both, named, apart].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The columns of names of files of which values name images.
fn naming(images: &dyn Store, table: &CellTable) -> Vec<String> {
    let is_likely = |name: &&String| {
        let is_of_files = name.to_ascii_lowercase().contains("filename") && !name.contains(ILLUMINATION);
        is_of_files || NAMES.contains(&name.as_str())
    };
    let likely = table.names.iter().filter(is_likely).take(MOST);
    likely.filter(|name| names_images(images, table, name)).cloned().collect()
}

fn names_images(images: &dyn Store, table: &CellTable, name: &str) -> bool {
    let Ok(values) = table.read(&[name.to_owned()]) else { return false };
    let found = by_name(images, table, name, values.column(0));
    found.is_ok_and(|found| found.iter().any(Option::is_some))
}
