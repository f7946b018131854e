//! The files of a set, or of a part of it, by their paths: nothing is opened.

use crate::{Result, Store, features, file_names, place};
use std::ops::Range;
use std::path::PathBuf;

/// One file (or folder, of OME-Zarr) of the set that is made into sites.
pub(super) struct FileText {
    /// Its path, with `/`, as far as that is known from the root of the file system.
    whole: String,
    /// Where its path below the opened folder begins in that.
    below: usize,
    /// Length of the ending of its name.
    ending: usize,
}

impl FileText {
    /// A file below an opened folder.
    pub fn at(root: &str, below: &str) -> Self {
        let name = below.rsplit('/').next().unwrap_or(below);
        let ending = name.len() - features::stem(name).len();
        Self { whole: format!("{root}/{below}"), below: root.len() + 1, ending }
    }

    /// Its path below the opened folder.
    pub fn below(&self) -> &str {
        &self.whole[self.below..]
    }

    /// The end of the path with so many folders, without the ending of the name where that is asked for. Also the
    /// position where the path below the opened folder begins in it, if it does.
    pub fn end(&self, folders: usize, with_ending: bool) -> Option<(&str, Option<usize>)> {
        let whole = &self.whole[..self.whole.len() - if with_ending { 0 } else { self.ending }];
        let mut cuts = whole.rmatch_indices('/').map(|(at, _)| at + 1).chain([0]);
        let start = cuts.nth(folders)?;
        Some((&whole[start..], self.below.checked_sub(start)))
    }

    /// The folders below the opened one that are not in such an end.
    pub fn rest(&self, folders: usize) -> &str {
        let below = self.below();
        let mut cuts = below.rmatch_indices('/').map(|(at, _)| at);
        cuts.nth(folders).map_or("", |at| &below[..at])
    }
}

/// The files of rows of a store, which lie in a folder.
pub(super) struct FilesOfRows<'a> {
    store: &'a dyn Store,
    rows: Range<usize>,
    folder: PathBuf,
}

impl<'a> FilesOfRows<'a> {
    /// All rows of a store.
    pub fn of_store(store: &'a dyn Store) -> Self {
        Self { store, rows: 0..store.len(), folder: store.path().to_owned() }
    }

    /// Those of a part of it, below the folder that they have in common. `None` where they are in one file, or in none.
    pub fn of_part(store: &'a dyn Store, rows: Range<usize>) -> Option<Self> {
        let file = |row: usize| store.row_hints(row).ok()?.file();
        // Files of a folder are in the order of their paths: what the first and the last have in common, all have.
        let (first, last) = (file(rows.clone().next()?)?, file(rows.clone().next_back()?)?);
        let mut folder = first.clone();
        while !last.starts_with(&folder) {
            folder.pop();
        }
        (folder != first).then_some(Self { store, rows, folder })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the first is a file, or begins in one: tables have none.
    pub fn are_files(&self) -> bool {
        self.store.row_hints(self.rows.start).is_ok_and(|hints| hints.file().is_some())
    }

    /// Their files, each when it is asked for: their names alone, nothing is opened.
    pub fn files(&self) -> impl Iterator<Item = Result<FileText>> {
        self.every(1)
    }

    /// The first file, and each that is `step` rows behind another.
    pub fn every(&self, step: usize) -> impl Iterator<Item = Result<FileText>> {
        let absolute = place::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let root = file_names::path_text(&absolute);
        let text = move |row| -> Result<FileText> {
            let file = self.store.row_hints(row)?.file();
            let below = match &file {
                Some(file) => file_names::path_text(file.strip_prefix(&self.folder).unwrap_or(file)),
                None => self.store.name(row)?,
            };
            Ok(FileText::at(&root, &below))
        };
        self.rows.clone().step_by(step).map(text)
    }
}
