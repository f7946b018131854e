//! Rows that are files or folders below an opened path, each with something that is read on first access.

use crate::{Error, Result, place};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One image: its file or folder below the opened path (empty for the path itself; whole for what lies elsewhere) and its name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImageLocation {
    /// Name of the image.
    pub name: String,
    /// Path below the opened one.
    pub below: PathBuf,
}

/// The rows of a folder, each with a `T` that is filled on first access.
#[derive(Debug)]
pub(crate) struct FileRows<T> {
    root: PathBuf,
    rows: Vec<FileRow<T>>,
    /// A row that lies behind a network by an address of its own.
    remote: Option<PathBuf>,
}

/// One row of [`FileRows`].
#[derive(Debug)]
pub(crate) struct FileRow<T> {
    pub location: ImageLocation,
    /// The value that was loaded from it.
    pub loaded: OnceLock<T>,
}

impl<T> FileRows<T> {
    /// Rows at `locations` below `root`.
    pub fn new(root: &Path, locations: Vec<ImageLocation>) -> Self {
        let remote =
            locations.iter().map(|location| &location.below).find(|below| place::is_remote(below)).cloned();
        let rows =
            locations.into_iter().map(|location| FileRow { location, loaded: OnceLock::new() }).collect();
        Self { root: root.to_owned(), rows, remote }
    }

    /// The opened path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// An address of a row, or of all of them, that lies behind a network.
    pub fn remote_path(&self) -> Option<&Path> {
        let root = Some(self.root.as_path()).filter(|root| place::is_remote(root));
        root.or(self.remote.as_deref())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// All rows, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, FileRow<T>> {
        self.rows.iter()
    }

    /// A row.
    ///
    /// # Errors
    /// No such row.
    pub fn row(&self, row: usize) -> Result<&FileRow<T>> {
        self.rows.get(row).ok_or_else(|| Error::no_such_row(&self.root, row, self.rows.len()))
    }

    /// The file or folder of a row.
    pub fn path_of(&self, row: &FileRow<T>) -> PathBuf {
        if row.location.below.as_os_str().is_empty() {
            self.root.clone()
        } else if place::is_remote(&row.location.below) {
            // A whole address, which does not lie below the path.
            row.location.below.clone()
        } else {
            self.root.join(&row.location.below)
        }
    }

    /// The value that is kept of a row; `load` (given the row's path) makes it on first access.
    ///
    /// # Errors
    /// No such row, or the error of `load`, with the row's number.
    pub fn get(&self, row: usize, load: impl FnOnce(&Path) -> Result<T>) -> Result<&T> {
        let entry = self.row(row)?;
        if let Some(loaded) = entry.loaded.get() {
            return Ok(loaded);
        }
        let loaded = load(&self.path_of(entry)).map_err(|e| e.row(row))?;
        Ok(entry.loaded.get_or_init(|| loaded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_once_and_names_the_row() {
        let location = |name: &str| ImageLocation { name: name.into(), below: name.into() };
        let rows: FileRows<u32> = FileRows::new(Path::new("set"), vec![location("a"), location("b")]);
        let failed = rows.get(1, |path| Err(Error::new(path, "broken"))).unwrap_err();
        assert_eq!(failed.to_string(), "set/b: row 1: broken");
        assert_eq!(rows.get(1, |_| Ok(7)).unwrap(), &7);
        assert_eq!(rows.get(1, |_| panic!("kept")).unwrap(), &7);
        assert!(rows.get(2, |_| Ok(0)).unwrap_err().to_string().contains("there are 2 images"));
    }
}
