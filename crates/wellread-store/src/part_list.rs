//! The file in a folder of tables that says that they are the parts of one set, which several processes have written at once.
//!
//! ```json
//! {"wellread_parts": 1, "parts": [
//! {"part": "part-00000.parquet", "images": 1000},
//! {"part": "part-00001.parquet", "images": 824}
//! ]}
//! ```
//!
//! Without it a folder of tables is several sets that are read as one. Images are called by their table as well, and a table that is not
//! there is not missed. With it the parts stand in its order, images are called as they were written, and a part that is gone is an error.

use crate::format::formats;
use crate::probe::Probe;
use crate::{Error, Result, entries, place};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Name of the list in its folder.
pub(crate) const FILE: &str = "wellread-parts.json";

/// Version of the form of the list.
const VERSION: u32 = 1;

/// One part.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct ListedPart {
    /// Name of its file or folder.
    pub part: String,
    /// Number of its images.
    pub images: usize,
}

/// The parts of a set, in the order of rows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct PartList {
    wellread_parts: u32,
    parts: Vec<ListedPart>,
}

impl PartList {
    /// A list of these parts.
    pub fn new(parts: Vec<ListedPart>) -> Self {
        Self { wellread_parts: VERSION, parts }
    }

    /// Reads that of `folder`; `None` where there is none.
    ///
    /// # Errors
    /// A list that cannot be read, or names what is no part of the folder.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE);
        if !place::exists(&path) {
            return Ok(None);
        }
        let bytes = place::read(&path)
            .map_err(|e| Error::io(&path, "cannot read the list of the set's parts", &e))?;
        let unusable = |cause: &dyn std::fmt::Display| {
            Error::new(&path, format_args!("the list of the set's parts cannot be used: {cause}")).hint(
                "copy it again from where the folder came from; without it images are called by their part as well",
            )
        };
        let list: Self = serde_json::from_slice(&bytes).map_err(|e| unusable(&e))?;
        if list.wellread_parts != VERSION {
            return Err(unusable(&format_args!("it is of version {}, not {VERSION}", list.wellread_parts)));
        }
        if list.parts.is_empty() {
            return Err(unusable(&"it names no part"));
        }
        let is_name = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
        if let Some(one) = list.parts.iter().find(|one| !is_name(&one.part)) {
            return Err(unusable(&format_args!("{:?} is no name of a part", one.part)));
        }
        let mut seen = HashSet::new();
        if let Some(one) = list.parts.iter().find(|one| !seen.insert(&one.part)) {
            return Err(unusable(&format_args!("it names {:?} twice", one.part)));
        }
        Ok(Some(list))
    }

    /// Writes it into `folder`; errors speak of `target`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path, target: &Path) -> Result<()> {
        let lines: Vec<String> = self
            .parts
            .iter()
            .map(|one| serde_json::json!({ "part": one.part, "images": one.images }).to_string())
            .collect();
        let text = format!("{{\"wellread_parts\": {VERSION}, \"parts\": [\n{}\n]}}\n", lines.join(",\n"));
        place::write(&folder.join(FILE), text.as_bytes())
            .map_err(|e| Error::io(target, "cannot write the list of the set's parts", &e))
    }

    /// Where the parts are, and how many images each has.
    pub fn parts(&self, folder: &Path) -> Vec<(PathBuf, usize)> {
        self.parts.iter().map(|one| (folder.join(&one.part), one.images)).collect()
    }
}

/// The entries of a folder with such a list that are no part of its set, as far as the first such one. `None` where
/// there is no list, or one that cannot be read.
///
/// # Errors
/// A folder that cannot be listed.
pub(crate) fn foreign_entries(folder: &Path) -> Result<Option<Vec<String>>> {
    let Ok(Some(list)) = PartList::read(folder) else { return Ok(None) };
    let known: HashSet<&str> = list.parts.iter().map(|one| one.part.as_str()).chain([FILE]).collect();
    for entry in entries::list(folder)? {
        if !known.contains(entry.name.as_str()) {
            return Ok(Some(vec![entry.name]));
        }
        if !entry.is_folder {
            continue;
        }
        let probe = Probe { levels: 1, ..Probe::new(&entry.path)? };
        let Some(format) = formats().iter().find(|format| (format.recognise)(&probe)) else {
            return Ok(Some(vec![entry.name]));
        };
        if let Some(foreign) = (format.foreign_entry)(&entry.path)? {
            return Ok(Some(vec![format!("{}/{foreign}", entry.name)]));
        }
    }
    Ok(Some(vec![]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_back_and_damage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(PartList::read(dir.path()).unwrap(), None);
        let part = |name: &str| ListedPart { part: name.to_owned(), images: 3 };
        let list = PartList::new(vec![part("b.parquet"), part("a \"b\".parquet")]);
        list.write(dir.path(), dir.path()).unwrap();
        assert_eq!(PartList::read(dir.path()).unwrap(), Some(list.clone()));
        let paths: Vec<_> = list.parts(dir.path()).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, [dir.path().join("b.parquet"), dir.path().join("a \"b\".parquet")]);
        let file = dir.path().join(FILE);
        let whole = std::fs::read_to_string(&file).unwrap();
        for broken in [
            &whole[..whole.len() - 4],
            "",
            "[]",
            &whole.replace(": 1,", ": 2,"),
            &whole.replace("b.p", "../b.p"),
            // Its images would be there twice.
            &whole.replace("a \\\"b\\\".p", "b.p"),
        ] {
            std::fs::write(&file, broken).unwrap();
            let error = PartList::read(dir.path()).unwrap_err().to_string();
            assert!(error.contains("wellread-parts.json") && error.contains("copy it again"), "{error}");
        }
    }

    #[test]
    fn what_is_not_listed_is_foreign() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(foreign_entries(dir.path()).unwrap(), None);
        PartList::new(vec![ListedPart { part: "a.parquet".to_owned(), images: 1 }])
            .write(dir.path(), dir.path())
            .unwrap();
        std::fs::write(dir.path().join("a.parquet"), "").unwrap();
        assert_eq!(foreign_entries(dir.path()).unwrap(), Some(vec![]));
        std::fs::write(dir.path().join("notes.txt"), "").unwrap();
        assert_eq!(foreign_entries(dir.path()).unwrap(), Some(vec!["notes.txt".to_owned()]));
    }
}
