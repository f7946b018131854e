//! The table of files in a folder that names files elsewhere: the folder opens without it, and the set lacks its columns.

use super::channel_columns::{channels, file_of};
use super::load_data;
use crate::format::OpenOptions;
use crate::surface::option_as;
use crate::{Store, place};
use std::path::Path;

/// Why a folder was not opened by the `load_data.csv` in it, in a sentence. It is `None` where it has none, and where `options` say how
/// files are read.
pub fn unused_table(store: &dyn Store, options: &OpenOptions) -> Option<String> {
    let is_said = options.layout.is_some() || options.pattern.is_some() || options.format.is_some();
    // A set that was opened by the table has the path of the table.
    if is_said || !place::is_folder(store.path()) || !store.hints().set_parts().is_empty() {
        return None;
    }
    store.row_hints(0).ok()?.file()?;
    let first = first_named(store.path())?;
    Some(format!(
        "the folder has a load_data.csv that was not used, since not all of its files lie in the folder. Its first is {first} \
         (say where they lie: {}, or give the table itself)",
        option_as("path_map", "FROM=TO")
    ))
}

/// The first file that the table of a folder names, by its path in the table; `None` where the folder has no such table.
fn first_named(folder: &Path) -> Option<String> {
    let path = folder.join(load_data::NAME);
    if !place::is_file(&path) || !load_data::is_one(&path) {
        return None;
    }
    let table = load_data::read(&path).ok()?;
    let channels = channels(&table.header);
    let cells = (0..table.len()).flat_map(|row| channels.iter().map(move |channel| (row, channel)));
    let mut files = cells.map(|(row, channel)| file_of(&table, row, channel));
    let (folder, name) = files.find(|(_, name)| !name.is_empty())?;
    Some(load_data::as_written(folder, name))
}
