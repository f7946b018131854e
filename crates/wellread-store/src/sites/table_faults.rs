//! Faults of a table of files: files that lie elsewhere, rows that name the same files.

use super::group::NO_FILE;
use super::paths;
use crate::Error;
use crate::delimited::Table;
use crate::surface::{option, option_as};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The first file of a table that is not there.
pub(super) struct Absent {
    /// The row that names it.
    pub row: usize,
    /// Its path as the table has it.
    pub named: String,
    /// Where it was looked for.
    pub place: PathBuf,
}

/// The error for a table whose files all lie elsewhere; `map` are the paths that were mapped.
pub(super) fn elsewhere(path: &Path, table: &Table, absent: &Absent, map: &[(String, String)]) -> Error {
    let fits_none = |pair: &&(String, String)| {
        let pair = std::slice::from_ref(*pair);
        let is_own = |row, at| paths::mapped(table.value(row, at), pair).is_none();
        (0..table.len()).all(|row| (0..table.header.len()).all(|at| is_own(row, at)))
    };
    let unfit = map.iter().find(fits_none);
    let Absent { row, named, place } = absent;
    let at =
        if map.is_empty() || unfit.is_some() { String::new() } else { format!(" at {}", place.display()) };
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

/// The first two rows that have the same file for each of their channels: `planes` are the files of all rows. Rows that lack a
/// file do not count.
pub(super) fn repeated(planes: &[u32], channels: usize) -> Option<[usize; 2]> {
    let mut first: HashMap<&[u32], usize> = HashMap::new();
    let rows = planes.chunks_exact(channels.max(1)).enumerate();
    let mut whole = rows.filter(|(_, files)| !files.contains(&NO_FILE));
    whole.find_map(|(row, files)| first.insert(files, row).map(|before| [before, row]))
}

/// The error for two rows of the same files.
pub(super) fn same_files(path: &Path, table: &Table, [first, second]: [usize; 2]) -> Error {
    let error = Error::new(path, format_args!("rows {first} and {second} name the same files")).row(second);
    let chooses = |name: &&String| name.starts_with("Frame_") || name.starts_with("Series_");
    match table.header.iter().find(chooses) {
        Some(column) => error.unsupported().hint(format_args!(
            "wellread reads whole files and no {column:?}: open the files themselves, without the table"
        )),
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
