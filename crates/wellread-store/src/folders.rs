//! Folders below a folder, each of them once.
//!
//! Links may lead to a folder by two ways, or back to one above: its images would be rows twice. Which folder it is tell
//! device and number; where the system has none, its path without links.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

#[cfg(unix)]
fn identity(folder: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    folder.metadata().map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn identity(folder: &Path) -> io::Result<Identity> {
    folder.canonicalize()
}

/// A folder found in a listing.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FolderEntry {
    /// Sorts first: a folder that lies there goes before a link to it, whichever was listed first.
    pub is_link: bool,
    /// Its path, relative to wherever the listing began.
    pub path: PathBuf,
}

/// The folders that were visited.
#[derive(Debug, Default)]
pub(crate) struct Visited(HashSet<Identity>);

impl Visited {
    /// Whether it is the first visit to a folder.
    ///
    /// # Errors
    /// A folder that cannot be looked at.
    pub fn is_first(&mut self, folder: &Path) -> io::Result<bool> {
        Ok(self.0.insert(identity(folder)?))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_is_visited_once_by_whatever_way() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        std::fs::create_dir(&a).unwrap();
        std::fs::create_dir(&b).unwrap();
        symlink("..", a.join("up")).unwrap();
        symlink("a", dir.path().join("to-a")).unwrap();
        symlink("round", dir.path().join("round")).unwrap();
        let mut visited = Visited::default();
        let mut first = |path: &str| visited.is_first(&dir.path().join(path));
        let answers = ["", "a", "b", "to-a", "a/up", "to-a/up/b", "./b"].map(|path| first(path).unwrap());
        assert_eq!(answers, [true, true, true, false, false, false, false]);
        assert!(first("round").is_err() && first("none").is_err());
    }

    #[test]
    fn folders_that_lie_there_come_before_links() {
        let found = |is_link, name: &str| FolderEntry { is_link, path: name.into() };
        let mut all = [found(true, "a"), found(false, "c"), found(false, "b")];
        all.sort();
        assert_eq!(all, [found(false, "b"), found(false, "c"), found(true, "a")]);
    }
}
