//! The file in a folder that says what its images are called and in which order they stand.
//!
//! A folder of one file or folder per image lists them by file name. Names that file systems refuse, that are there
//! twice or that stand in another order cannot be told from that. Then the writer puts [`FILE`] beside the images.
//!
//! ```json
//! {"wellread_names": 1, "images": [
//! {"file": "000000-b.png", "name": "b"},
//! {"file": "000001-a_1.png", "name": "a/1"}
//! ]}
//! ```
//!
//! The listing decides which images there are, and the index what they are called. So other tools may remove or add
//! files. An entry without its file is dropped. A file without an entry comes behind the others, in the order of file
//! names and called as its file.

use crate::{Error, Result, place};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

pub(crate) use crate::file_names::INDEX as FILE;

/// Version of the form of the index.
const VERSION: u32 = 1;

/// One image: its file or folder below the folder of the index, with `/` between parts, and its name.
#[derive(Debug, Deserialize, Serialize)]
struct Entry<'a> {
    #[serde(borrow)]
    file: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Index<'a> {
    wellread_names: u32,
    #[serde(borrow)]
    images: Vec<Entry<'a>>,
}

/// Writes the index of `folder`: files below it and names, in the order of rows. Errors speak of `target`.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(
    folder: &Path,
    images: impl Iterator<Item = (String, String)>,
    target: &Path,
) -> Result<()> {
    let cannot = |e: std::io::Error| Error::io(target, "cannot write the index of names", &e);
    let file = place::create(&folder.join(FILE)).map_err(cannot)?;
    let mut out = BufWriter::new(file);
    write!(out, "{{\"wellread_names\": {VERSION}, \"images\": [").map_err(cannot)?;
    for (row, (file, name)) in images.enumerate() {
        let entry = Entry { file: file.into(), name: name.into() };
        writeln!(out, "{}", if row == 0 { "" } else { "," })
            .and_then(|()| serde_json::to_writer(&mut out, &entry).map_err(Into::into))
            .map_err(cannot)?;
    }
    out.write_all(b"\n]}\n").and_then(|()| out.flush()).map_err(cannot)
}

/// Puts `files`, as a folder lists them, in the order of its index, each with the name that the index gives it. `file`
/// is the path of one below the folder. Without an index they stay as they are.
///
/// # Errors
/// An index that cannot be read.
pub(crate) fn arrange<T>(
    folder: &Path,
    files: Vec<T>,
    file: impl Fn(&T) -> &Path,
) -> Result<Vec<(T, Option<String>)>> {
    let path = folder.join(FILE);
    let bytes = match place::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Ok(files.into_iter().map(|f| (f, None)).collect());
        }
        Err(e) => return Err(Error::io(&path, "cannot read the index of names", &e)),
    };
    let unusable = |cause: &dyn std::fmt::Display| {
        Error::new(&path, format_args!("the index of names cannot be used: {cause}")).hint(
            "copy it again from where the folder came from; without it images stand in the order of their files and \
             are called as these",
        )
    };
    let index: Index<'_> = serde_json::from_slice(&bytes).map_err(|e| unusable(&e))?;
    if index.wellread_names != VERSION {
        return Err(unusable(&format_args!("it is of version {}, not {VERSION}", index.wellread_names)));
    }
    let mut known: HashMap<PathBuf, (usize, String)> = HashMap::with_capacity(index.images.len());
    for (row, entry) in index.images.into_iter().enumerate() {
        // The first of two entries for a file counts.
        known.entry(PathBuf::from(&*entry.file)).or_insert_with(|| (row, entry.name.into_owned()));
    }
    let mut placed: Vec<_> = files
        .into_iter()
        .map(|one| match known.remove(file(&one)) {
            Some((row, name)) => (row, one, Some(name)),
            None => (usize::MAX, one, None),
        })
        .collect();
    // Stable: entries that are not in the index keep their order.
    placed.sort_by_key(|(row, ..)| *row);
    Ok(placed.into_iter().map(|(_, one, name)| (one, name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(folder: &Path, files: &[&str]) -> Result<Vec<(String, Option<String>)>> {
        let files = files.iter().map(PathBuf::from).collect();
        let arranged = arrange(folder, files, |f: &PathBuf| f)?;
        Ok(arranged.into_iter().map(|(f, name)| (f.to_str().unwrap().to_owned(), name)).collect())
    }

    #[test]
    fn the_listing_decides_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let row = |file: &str, name: Option<&str>| (file.to_owned(), name.map(str::to_owned));
        let as_listed = [row("a.png", None), row("x/b.png", None)];
        assert_eq!(arranged(dir.path(), &["a.png", "x/b.png"]).unwrap(), as_listed);
        let names = ["\u{0}\n\u{fffe}\"", "", "gone", "twice"];
        let files = ["x/b.png", "a.png", "c.png", "a.png"];
        let entries = files.iter().zip(names).map(|(f, n)| ((*f).to_owned(), n.to_owned()));
        write(dir.path(), entries, dir.path()).unwrap();
        assert_eq!(
            arranged(dir.path(), &["0.png", "a.png", "d.png", "x/b.png"]).unwrap(),
            [row("x/b.png", Some(names[0])), row("a.png", Some("")), row("0.png", None), row("d.png", None)]
        );
    }

    #[test]
    fn damage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), [("a".to_owned(), "b".to_owned())].into_iter(), dir.path()).unwrap();
        let file = dir.path().join(FILE);
        let whole = std::fs::read_to_string(&file).unwrap();
        assert!(arranged(dir.path(), &["a"]).is_ok());
        for broken in [&whole[..whole.len() - 4], "", "[]", &whole.replace(": 1,", ": 2,")] {
            std::fs::write(&file, broken).unwrap();
            let error = arranged(dir.path(), &["a"]).unwrap_err().to_string();
            assert!(error.contains("wellread-names.json") && error.contains("copy it again"), "{error}");
        }
    }
}
