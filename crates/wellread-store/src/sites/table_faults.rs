//! Faults of a table of files: files that lie elsewhere, rows that name the same files, channels that are parts of one file.

use super::channel_columns::ChannelColumns;
use super::group::NO_FILE;
use super::paths;
use crate::delimited::Table;
use crate::surface::{option, option_as};
use crate::{Error, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Beginnings of columns that choose a part of a file.
const PARTS: [&str; 2] = ["Frame_", "Series_"];

/// The first file of a table that is not there.
pub(super) struct Absent {
    /// The row that names it.
    pub row: usize,
    /// Its path as the table has it.
    pub named: String,
    /// Where it was looked for.
    pub resolved: PathBuf,
}

/// The error for a table whose files all lie elsewhere; `map` are the paths that were mapped.
pub(super) fn elsewhere(path: &Path, table: &Table, absent: &Absent, map: &[(String, String)]) -> Error {
    let fits_none = |pair: &&(String, String)| {
        let pair = std::slice::from_ref(*pair);
        let is_own = |row, at| paths::mapped(table.value(row, at), pair).is_none();
        (0..table.len()).all(|row| (0..table.header.len()).all(|at| is_own(row, at)))
    };
    let unfit = map.iter().find(fits_none);
    let Absent { row, named, resolved } = absent;
    let at =
        if map.is_empty() || unfit.is_some() { String::new() } else { format!(" at {}", resolved.display()) };
    let cause = format!("{named} is not there{at}, nor are the other files of the table's first rows");
    let error = Error::new(path, cause).row(*row).choice();
    match unfit {
        Some((from, to)) => {
            let pair = format!("{from}={to}");
            error.hint(format_args!("no path in the table begins as {} says", option_as("path_map", &pair)))
        }
        None if map.iter().any(|(_, to)| paths::is_relative(to)) => error.hint(format_args!(
            "the TO of {} begins at the folder of the table unless it is absolute",
            option("path_map")
        )),
        None => error.hint(format_args!(
            "say where they lie: {}, where FROM is the beginning of paths in the table",
            option_as("path_map", "FROM=TO")
        )),
    }
}

/// Refuses rows that whole files do not tell apart, and channels. `planes` are the files of all rows.
///
/// # Errors
/// Two rows that name the same files; two channels of a row that are parts of one file.
pub(super) fn check(path: &Path, table: &Table, channels: &[ChannelColumns], planes: &[u32]) -> Result<()> {
    if let Some(rows) = repeated(planes, channels.len()) {
        return Err(same_files(path, table, rows));
    }
    let Some((row, column)) = divided(table, channels, planes) else { return Ok(()) };
    let error = Error::new(path, "two channels are parts of one file").row(row);
    Err(reads_whole_files(error, &table.header[column]))
}

/// The first row in which two channels are different parts of one file, and the column that tells so.
fn divided(table: &Table, channels: &[ChannelColumns], planes: &[u32]) -> Option<(usize, usize)> {
    let parts: Vec<[Option<usize>; 2]> = channels.iter().map(|channel| parts_of(table, channel)).collect();
    let part = |row: usize, column: Option<usize>| {
        let value = column.map_or("", |column| table.value(row, column)).trim();
        if value.is_empty() { "0" } else { value }
    };
    let rows = planes.chunks_exact(channels.len().max(1)).enumerate();
    let mut of_one_file = rows.flat_map(|(row, files)| {
        let there = files.iter().enumerate().filter(|(_, file)| **file != NO_FILE);
        there.filter_map(move |(second, file)| {
            let first = files[..second].iter().position(|other| other == file)?;
            Some((row, first, second))
        })
    });
    of_one_file.find_map(|(row, first, second)| {
        let mut columns = parts[first].into_iter().zip(parts[second]);
        let (one, other) = columns.find(|(one, other)| part(row, *one) != part(row, *other))?;
        Some((row, other.or(one)?))
    })
}

/// The columns that choose the part of a channel's file.
fn parts_of(table: &Table, channel: &ChannelColumns) -> [Option<usize>; 2] {
    let named = channel.file.or(channel.address).and_then(|column| table.header[column].split_once('_'));
    PARTS.map(|part| named.and_then(|(_, name)| table.column(&format!("{part}{name}"))))
}

/// The error with the hint about a column that chooses a part of a file.
fn reads_whole_files(error: Error, column: &str) -> Error {
    error.unsupported().hint(format_args!(
        "wellread reads whole files and no {column:?}: open the files themselves, without the table"
    ))
}

/// The first two rows that have the same file for each of their channels. Rows that lack a file do not count.
fn repeated(planes: &[u32], channels: usize) -> Option<[usize; 2]> {
    let mut first: HashMap<&[u32], usize> = HashMap::new();
    let rows = planes.chunks_exact(channels.max(1)).enumerate();
    let mut whole = rows.filter(|(_, files)| !files.contains(&NO_FILE));
    whole.find_map(|(row, files)| first.insert(files, row).map(|before| [before, row]))
}

/// The error for two rows of the same files.
fn same_files(path: &Path, table: &Table, [first, second]: [usize; 2]) -> Error {
    let error = Error::new(path, format_args!("rows {first} and {second} name the same files")).row(second);
    let chooses = |name: &&String| PARTS.iter().any(|part| name.starts_with(part));
    match table.header.iter().find(chooses) {
        Some(column) => reads_whole_files(error, column),
        None => error.hint("leave one of them out of the table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_same_files_are_found() {
        assert_eq!(repeated(&[0, 1, 2, 3, 0, 1], 2), Some([0, 2]));
        assert_eq!(repeated(&[0, 1, 1, 0, 0, 2], 2), None);
        assert_eq!(repeated(&[0, NO_FILE, 0, NO_FILE], 2), None, "others are missing, and told as that");
        assert_eq!(repeated(&[], 0), None);
    }
}
