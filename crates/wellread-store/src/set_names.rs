//! Names of the files of a set that is a folder with a file or folder per image, while it is being written.
//!
//! The rule: **a file is called as its image**, with the characters replaced that file systems refuse. If in this way
//! every file sorts behind the one before, that is all. Otherwise every file gets its row in front, `000012-NAME`, so
//! that any tool that lists the folder sees the rows in their order. Where file names alone do not give the names of all
//! images in their order, an index of names stands beside them ([`crate::name_index`]).
//!
//! Whether rows need numbers is known only at the first image that is out of order. From there on files are written
//! with numbers, into a folder of their own, since a number and a name can make another image's name. In the end
//! those before are moved there too, and that folder becomes the set. An interrupted run is gone on with in the same
//! way, because names and their order decide everything.

use crate::file_names::{numbered, safe};
use crate::finished::Finished;
use crate::staged::Staged;
use crate::{Error, Result, name_index, place};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The folder of files with numbers, below that of the set being written.
const NUMBERED: &str = ".numbered";

/// How a format lists the files of a folder.
pub(crate) struct Listing {
    /// The suffix that makes a file name of a name, such as `.ome.tiff`.
    pub ending: &'static str,
    /// Whether the ending counts when files are sorted.
    pub sorts_ending: bool,
    /// Name of the image in a file, from its name alone.
    pub name_of: fn(&Path) -> String,
}

/// Names chosen so far.
pub(crate) struct SetNames {
    listing: Listing,
    rows: Vec<Row>,
    /// File names without numbers, in small letters, as some file systems compare them.
    taken: HashSet<String>,
    /// The sort key of the last file.
    last: String,
    /// The first row whose file has a number from the beginning.
    first_numbered: Option<usize>,
    /// Whether file names without numbers are the names of the images.
    told_by_files: bool,
    /// Folders that were made.
    made: HashSet<PathBuf>,
}

/// One image.
struct Row {
    name: String,
    /// Folder of its class; empty for none.
    folder: String,
    /// The image's name in the folder, as a file name.
    stem: String,
}

impl SetNames {
    pub fn new(listing: Listing) -> Self {
        Self {
            listing,
            rows: vec![],
            taken: HashSet::new(),
            last: String::new(),
            first_numbered: None,
            told_by_files: true,
            made: HashSet::new(),
        }
    }

    /// Where to write the next image, called `name`, below `root`: in `folder`, if that is not empty, as `stem`. The
    /// folder is made.
    ///
    /// # Errors
    /// A folder cannot be made.
    pub fn next(&mut self, root: &Path, folder: &str, stem: &str, name: &str) -> Result<PathBuf> {
        let row = Row { name: name.to_owned(), folder: folder.to_owned(), stem: safe(stem) };
        if self.first_numbered.is_none() && !self.fits(&row) {
            self.first_numbered = Some(self.rows.len());
        }
        self.rows.push(row);
        let path = root.join(self.file_path(self.rows.len() - 1));
        let parent = path.parent().unwrap_or(root);
        if !self.made.contains(parent) {
            place::create_folder(parent).map_err(|e| Error::io(root, "cannot make a folder", &e))?;
            self.made.insert(parent.to_owned());
        }
        Ok(path)
    }

    /// Whether a file without a number sorts behind all others; notes it as the last.
    fn fits(&mut self, row: &Row) -> bool {
        let file = self.plain(row);
        let ending = if self.listing.sorts_ending { "" } else { self.listing.ending };
        let key = file.strip_suffix(ending).unwrap_or(&file);
        if !self.rows.is_empty() && *key <= *self.last || !self.taken.insert(file.to_lowercase()) {
            return false;
        }
        self.last = key.to_owned();
        self.told_by_files &= (self.listing.name_of)(Path::new(&file)) == row.name;
        true
    }

    fn plain(&self, row: &Row) -> String {
        below(&row.folder, &row.stem, self.listing.ending)
    }

    fn numbered(&self, at: usize) -> String {
        let row = &self.rows[at];
        below(&row.folder, &numbered(at, &row.stem), self.listing.ending)
    }

    /// Where a row is written.
    fn file_path(&self, at: usize) -> PathBuf {
        match self.first_numbered {
            Some(first) if at >= first => Path::new(NUMBERED).join(self.numbered(at)),
            _ => self.plain(&self.rows[at]).into(),
        }
    }

    /// The files of the set, in the order of rows, as they are called when it is finished. Also the folder below that
    /// of the set being written which will be the set, where it is another one.
    #[cfg(feature = "ome-zarr")]
    pub fn files(&self) -> (Option<&'static str>, Vec<String>) {
        match self.first_numbered {
            None => (None, self.rows.iter().map(|row| self.plain(row)).collect()),
            Some(_) => (Some(NUMBERED), (0..self.rows.len()).map(|at| self.numbered(at)).collect()),
        }
    }

    /// Gives every file its name and writes the index of names where it is needed.
    ///
    /// # Errors
    /// A file cannot be moved, the index cannot be written.
    pub fn finish(&self, staged: Staged) -> Result<Finished> {
        let root = staged.path().to_owned();
        let target = staged.target().to_owned();
        let Some(first) = self.first_numbered else {
            if !self.told_by_files {
                let images = self.rows.iter().map(|row| (self.plain(row), row.name.clone()));
                name_index::write(&root, images, &target)?;
            }
            return Ok(staged.finished());
        };
        let folder = root.join(NUMBERED);
        let cannot = |e: std::io::Error| Error::io(&target, "cannot give a file its name", &e);
        for at in 0..first {
            let to = folder.join(self.numbered(at));
            if let Some(parent) = to.parent().filter(|parent| !self.made.contains(*parent)) {
                place::create_folder(parent).map_err(cannot)?;
            }
            match place::rename(&root.join(self.file_path(at)), &to) {
                // An interrupted run was at this point before.
                Err(e) if e.kind() == ErrorKind::NotFound && place::exists(&to) => {}
                moved => moved.map_err(cannot)?,
            }
        }
        let images = (0..self.rows.len()).map(|at| (self.numbered(at), self.rows[at].name.clone()));
        name_index::write(&folder, images, &target)?;
        Ok(staged.finished_file(NUMBERED))
    }
}

/// Moves an image that is written into the set that is being written to `target`.
///
/// # Errors
/// It cannot be moved.
pub(crate) fn moved(from: &Path, to: &Path, target: &Path) -> Result<()> {
    let what = format!("cannot move {} into the set", from.display());
    place::rename(from, to).map_err(|e| Error::io(target, &what, &e))
}

/// A path below the set's folder, with `/` between its parts.
fn below(folder: &str, stem: &str, ending: &str) -> String {
    if folder.is_empty() { format!("{stem}{ending}") } else { format!("{folder}/{stem}{ending}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriteOptions;

    fn stem(path: &Path) -> String {
        path.with_extension("").to_str().unwrap().to_owned()
    }

    /// Files of a finished folder, sorted, and whether it has an index.
    fn files(names: &[&str], complete: usize) -> (Vec<String>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("set");
        let options = WriteOptions { resume: Some("x".into()), ..WriteOptions::default() };
        // The second round goes on with what the first one has left.
        for last in [false, true] {
            let staged = Staged::folder(&target, &options, false).unwrap();
            staged.create_dir().unwrap();
            let listing = Listing { ending: ".x", sorts_ending: true, name_of: stem };
            let mut set = SetNames::new(listing);
            for (row, name) in names.iter().enumerate() {
                let (class, inner) = name.rsplit_once('/').unwrap_or(("", name));
                let path = set.next(staged.path(), class, inner, name).unwrap();
                if last != (row < complete) {
                    std::fs::write(path, row.to_string()).unwrap();
                    staged.completed(row).unwrap();
                }
            }
            if last {
                set.finish(staged).unwrap().commit().unwrap();
            }
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside the set");
        let mut found = vec![];
        let mut folders = vec![target.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push(path.strip_prefix(&target).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found.sort();
        let listed = found.len();
        found.retain(|file| file != name_index::FILE);
        let has_index = found.len() < listed;
        // In any order of writing, each row is in its file.
        let arranged = name_index::arrange(&target, found.clone(), |f| Path::new(f)).unwrap();
        for (row, (file, name)) in arranged.iter().enumerate() {
            assert_eq!(std::fs::read_to_string(target.join(file)).unwrap(), row.to_string());
            assert_eq!(name.clone().unwrap_or_else(|| stem(Path::new(file))), names[row]);
        }
        (found, has_index)
    }

    #[test]
    fn files_are_called_as_images_unless_their_order_is_lost() {
        let cases: [(&[&str], &[&str], bool); 8] = [
            (&["a", "b", "c"], &["a.x", "b.x", "c.x"], false),
            (&["a:1", "b"], &["a_1.x", "b.x"], true),
            (&["b", "a"], &["000000-b.x", "000001-a.x"], true),
            (&["a", "a"], &["000000-a.x", "000001-a.x"], true),
            (&["A", "a"], &["000000-A.x", "000001-a.x"], true),
            // The ending sorts behind "-".
            (&["a", "a-1"], &["000000-a.x", "000001-a-1.x"], true),
            // A number and a name make another image's name.
            (
                &["!", "000000-!", "a", "b", "a"],
                &["000000-!.x", "000001-000000-!.x", "000002-a.x", "000003-b.x", "000004-a.x"],
                true,
            ),
            (&["k/b", "k/c", "j/a"], &["j/000002-a.x", "k/000000-b.x", "k/000001-c.x"], true),
        ];
        for (names, expected, has_index) in cases {
            for complete in 0..=names.len() {
                let found = files(names, complete);
                assert_eq!(
                    (found.0, found.1),
                    (expected.iter().map(|s| (*s).to_owned()).collect(), has_index)
                );
            }
        }
    }
}
