//! The columns of a table of files that name the file of each channel.

use crate::delimited::Table;

/// Prefixes of columns of the layout.
pub(super) const FILE: &str = "FileName_";
pub(super) const FOLDER: &str = "PathName_";
pub(super) const ADDRESS: &str = "URL_";

/// A channel of the table.
pub(super) struct ChannelColumns {
    /// Its name, without `Orig`.
    pub name: String,
    pub file: Option<usize>,
    pub folder: Option<usize>,
    pub address: Option<usize>,
}

/// The channels that a header names, in its order: those whose name begins with `Orig`, or all but illumination where none does.
pub(super) fn channels(header: &[String]) -> Vec<ChannelColumns> {
    let column = |name: String| header.iter().position(|column| *column == name);
    let mut named: Vec<&str> = vec![];
    for name in
        header.iter().filter_map(|column| column.strip_prefix(FILE).or_else(|| column.strip_prefix(ADDRESS)))
    {
        if !named.contains(&name) && !name.starts_with("Illum") {
            named.push(name);
        }
    }
    if named.iter().any(|name| name.starts_with("Orig")) {
        named.retain(|name| name.starts_with("Orig"));
    }
    let channel = |name: &str| ChannelColumns {
        name: name.strip_prefix("Orig").filter(|rest| !rest.is_empty()).unwrap_or(name).to_owned(),
        file: column(format!("{FILE}{name}")),
        folder: column(format!("{FOLDER}{name}")),
        address: column(format!("{ADDRESS}{name}")),
    };
    named.into_iter().map(channel).collect()
}

/// Folder and name of a channel's file in a row, as the table has them; an address has no folder.
pub(super) fn file_of<'t>(table: &'t Table, row: usize, channel: &ChannelColumns) -> (&'t str, &'t str) {
    let text = |column: Option<usize>| column.map_or("", |column| table.value(row, column));
    match text(channel.file) {
        "" => ("", text(channel.address)),
        name => (text(channel.folder), name),
    }
}
