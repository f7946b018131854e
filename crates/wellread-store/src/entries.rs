//! The entries of a folder, and those that are no part of a set of images: asked before a folder is replaced.

use crate::place::{self, Kind};
use crate::probe::DEPTH;
use crate::{Error, Result, journal};
use std::path::{Path, PathBuf};

/// The prefix of names of output that is not finished; the process with its place, a number and the target's name
/// follow.
pub(crate) const PARTIAL: &str = ".wellread-partial-";
/// The prefix of names of folders that keep a part of an output, so that a later run can go on with it. The target's
/// name follows.
pub(crate) const RESUME: &str = ".wellread-resume-";
/// The suffix of output that was moved aside to be replaced.
pub(crate) const OLD: &str = ".old";

/// The words behind the name of an image that lacks the mark of wellread's writers.
pub(crate) const UNMARKED: &str = ", which wellread did not write";

/// Something directly in a folder.
#[derive(Debug)]
pub struct Entry {
    /// Its name; bytes in it that are no Unicode are replaced.
    pub name: String,
    /// Its path, which begins with that of the folder.
    pub path: PathBuf,
    /// Whether it is a folder itself; links to folders are not.
    pub is_folder: bool,
    /// Its kind, as the listing says; a symbolic link is [`Kind::Symlink`].
    pub kind: Kind,
}

/// All entries directly in `folder`, hidden or not, by name. It leaves out wellread's own notes while it writes, and
/// entries that file systems put there unasked.
///
/// # Errors
/// The folder cannot be listed.
pub fn list(folder: &Path) -> Result<Vec<Entry>> {
    let cannot = |e: std::io::Error| Error::io(folder, "cannot list the folder", &e);
    let mut found = vec![];
    for entry in place::list(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let file_name = entry.name();
        let name = file_name.to_string_lossy().into_owned();
        if !is_disposable(&name) {
            let kind = entry.kind().map_err(cannot)?;
            found.push(Entry { name, path: folder.join(file_name), is_folder: kind == Kind::Folder, kind });
        }
    }
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Half-written output is of no use. Output that was moved aside may be the only copy, and a kept part is needed by the
/// run that goes on with it.
fn is_disposable(name: &str) -> bool {
    let is_partial = name.starts_with(PARTIAL) && !name.ends_with(OLD);
    is_partial
        || name == ".DS_Store"
        || name == journal::NAME
        || name.starts_with("._")
        || name.starts_with(".nfs")
}

/// The first thing in `folder`, at any depth, that is no part of a set whose files `belongs` knows by their names. It
/// is given by its path in the folder. Hidden things are none, nor are folders deeper than any set is read. Removal of a link to a
/// folder removes only the link.
///
/// # Errors
/// A folder cannot be listed.
pub fn foreign(folder: &Path, belongs: fn(&str) -> bool) -> Result<Option<String>> {
    foreign_within(
        folder,
        &|entry: &Entry| if belongs(&entry.name) { EntryRole::Yes } else { EntryRole::No },
        DEPTH,
    )
}

/// The role of a file in a folder of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRole {
    /// A part of a set that wellread wrote.
    Yes,
    /// No part of a set.
    No,
    /// An image that another program wrote: it may be the only copy.
    OfOthers,
}

/// As [`foreign`], by a look at each file: of an image it is said that wellread did not write it.
///
/// # Errors
/// A folder cannot be listed.
pub fn foreign_by_look(folder: &Path, belongs: fn(&Entry) -> EntryRole) -> Result<Option<String>> {
    foreign_within(folder, &belongs, DEPTH)
}

fn foreign_within(
    folder: &Path,
    belongs: &dyn Fn(&Entry) -> EntryRole,
    levels: usize,
) -> Result<Option<String>> {
    for entry in list(folder)? {
        let Entry { name, path, is_folder, kind } = &entry;
        if *is_folder {
            if name.starts_with('.') || levels == 0 {
                return Ok(Some(entry.name));
            }
            if let Some(foreign) = foreign_within(path, belongs, levels - 1)? {
                return Ok(Some(format!("{name}/{foreign}")));
            }
            continue;
        }
        if name.starts_with('.') {
            return Ok(Some(entry.name));
        }
        match belongs(&entry) {
            EntryRole::Yes => {}
            EntryRole::No if place::is_folder(path) => {}
            EntryRole::No => return Ok(Some(entry.name)),
            EntryRole::OfOthers if *kind == Kind::Symlink => {}
            EntryRole::OfOthers => return Ok(Some(format!("{name}{UNMARKED}"))),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_keeps_or_moved_aside_is_no_part_of_a_set() {
        let dir = tempfile::tempdir().unwrap();
        for name in
            [".wellread-journal", ".wellread-partial-1-0-x", ".DS_Store", "._a.tif", ".nfs01", "a.tif"]
        {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        let found = || foreign(dir.path(), |name| name == "a.tif").unwrap();
        assert_eq!(found(), None);
        for name in [".wellread-resume-x", ".wellread-partial-1-0-x.old", "b.json"] {
            std::fs::write(dir.path().join(name), b"").unwrap();
            assert_eq!(found().as_deref(), Some(name));
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
    }

    #[test]
    fn images_of_others_are_told_as_such() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("plate")).unwrap();
        std::fs::write(dir.path().join("plate/own.tif"), b"").unwrap();
        let found = || {
            foreign_by_look(dir.path(), |entry| match entry.name.as_str() {
                "own.tif" => EntryRole::Yes,
                "raw.tif" => EntryRole::OfOthers,
                _ => EntryRole::No,
            })
            .unwrap()
        };
        assert_eq!(found(), None);
        std::fs::write(dir.path().join("plate/raw.tif"), b"").unwrap();
        assert_eq!(found().as_deref(), Some("plate/raw.tif, which wellread did not write"));
        std::fs::write(dir.path().join("notes.txt"), b"").unwrap();
        assert_eq!(found().as_deref(), Some("notes.txt"));
    }

    #[test]
    fn folders_deeper_than_sets_are_read_are_no_part_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let deepest = "a/".repeat(DEPTH);
        std::fs::create_dir_all(dir.path().join(&deepest)).unwrap();
        std::fs::write(dir.path().join(&deepest).join("x.tif"), b"").unwrap();
        let found = || foreign(dir.path(), |name| name == "x.tif").unwrap();
        assert_eq!(found(), None);
        std::fs::create_dir(dir.path().join(&deepest).join("b")).unwrap();
        assert_eq!(found(), Some(deepest + "b"));
    }
}
