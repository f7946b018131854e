//! Folders below a folder, to any depth that is sensible ([`DEPTH`]), each of them once.
//!
//! Microscopes and pipelines nest their output, as plate/well/site: an image that lies deeper than others is a row as
//! they are. Hidden folders are not looked into (folders of half-written output are hidden). Nor are folders that hold
//! no more images by their format, such as an OME-Zarr image.
//!
//! Links may lead to a folder by two ways, or back to one above: its images would be rows twice. Which folder it is tells its
//! [`Identity`].

#[cfg(any(feature = "tiff", feature = "image-folder"))]
use crate::format::foreign_format;
use crate::format::{Naming, formats};
use crate::place::{self, Entry, Identity, Kind, Listing};
use crate::probe::DEPTH;
use crate::{Error, Result};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

/// Folders, and names in them, that are looked at to tell a folder's format.
const LOOKED_INTO: usize = 1024;
const LOOKED_AT: usize = 1 << 16;

/// Names of files of which a Zarr group or array has one.
pub(crate) const ZARR_METADATA: [&str; 4] = ["zarr.json", ".zattrs", ".zgroup", ".zarray"];

/// Folders of a place behind a network that are listed ahead, at most.
const LISTED_AHEAD: usize = 1 << 14;

/// Whether a folder is a Zarr group or array, whatever it is called.
pub(crate) fn is_zarr(folder: &Path) -> bool {
    if place::of(folder).tells_names() {
        match place::list(folder) {
            Ok(entries) => return entries.flatten().any(|entry| is_zarr_metadata(&entry)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return false,
            // One that may not be listed may be read all the same.
            Err(_) => {}
        }
    }
    ZARR_METADATA.iter().any(|name| place::is_file(&folder.join(name)))
}

fn is_zarr_metadata(entry: &Entry) -> bool {
    let name = entry.name();
    ZARR_METADATA.iter().any(|file| name == *file) && entry.kind().is_ok_and(|kind| kind == Kind::File)
}

/// Lists folders before a search, where each listing is a round trip. It lists those of a level all at once, `most` at
/// most, down to the level that has an entry that `ends` the search. So the search waits for as many round trips as
/// there are levels. It does not look into a Zarr group, nor into a folder that is called as a set of some format.
fn look_ahead(root: &Path, levels: usize, most: usize, ends: impl Fn(&Path, &str, bool) -> bool) {
    if !place::of(root).tells_names() {
        return;
    }
    let (mut level, mut listed) = (vec![root.to_owned()], 0);
    for _ in 0..=levels {
        level.truncate(most - listed);
        listed += level.len();
        if level.is_empty() {
            return;
        }
        place::list_ahead(&level);
        let mut inside = vec![];
        let mut is_end = false;
        for folder in &level {
            is_end |= folders_in(folder, &ends, &mut inside);
        }
        if is_end {
            return;
        }
        level = inside;
    }
}

/// Adds the folders in a folder that may hold images further down; whether something else in it is what `ends` looking.
fn folders_in(folder: &Path, ends: &impl Fn(&Path, &str, bool) -> bool, inside: &mut Vec<PathBuf>) -> bool {
    let before = inside.len();
    let mut is_end = false;
    for entry in place::list(folder).into_iter().flatten().flatten() {
        if is_zarr_metadata(&entry) {
            inside.truncate(before);
            return is_end;
        }
        let name = entry.name();
        let text = name.to_string_lossy();
        if text.starts_with('.') {
            continue;
        }
        let path = folder.join(&name);
        let is_folder = entry.kind().is_ok_and(|kind| kind == Kind::Folder);
        if is_folder && !formats().iter().any(|format| format.has_ending(&text)) {
            inside.push(path);
        } else {
            is_end |= ends(&path, &text, is_folder);
        }
    }
    is_end
}

/// A folder found in a listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FolderEntry {
    /// Sorts first: a folder that lies there goes before a link to it, whichever was listed first.
    pub is_symlink: bool,
    /// Its path, relative to wherever the listing began.
    pub path: PathBuf,
}

impl Ord for FolderEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.is_symlink.cmp(&other.is_symlink).then_with(|| compare_paths(&self.path, &other.path))
    }
}

impl PartialOrd for FolderEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order of two relative paths, component by component as [`Path`] has it. Most are one name, which is compared at once. The
/// library would cut each into components, which takes most of the time of sorting.
fn compare_paths(one: &Path, other: &Path) -> Ordering {
    let [a, b] = [one, other].map(|path| path.as_os_str().as_encoded_bytes());
    let is_name = |bytes: &[u8]| !bytes.iter().any(|&byte| matches!(byte, b'/' | b'\\' | b':'));
    if is_name(a) && is_name(b) { a.cmp(b) } else { one.cmp(other) }
}

/// The role of an entry of a folder for the format that lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// An image.
    Image,
    /// Holds images of this other format.
    Other(&'static str),
    /// If it is a folder, one to look into.
    Below,
    /// None of these.
    Skip,
}

/// The role of an entry of a folder for a format that is called `own` and has a file per image. A folder that another
/// format's set is called as is not looked into.
#[cfg(any(feature = "tiff", feature = "image-folder"))]
pub(crate) fn sort_file(path: &Path, name: &str, is_dir: bool, own: &Naming) -> Sort {
    match foreign_format(path, own) {
        Some(format) => Sort::Other(format),
        None if is_dir && is_zarr(path) => Sort::Other("ome-zarr"),
        None => sort_folder(name, is_dir, own),
    }
}

/// As [`sort_file`], for telling a folder's format: without a look into tables.
pub(crate) fn sort_quickly(path: &Path, name: &str, is_dir: bool, own: &Naming) -> Sort {
    match sort_folder(name, is_dir, own) {
        Sort::Below if is_zarr(path) => Sort::Skip,
        sort => sort,
    }
}

fn sort_folder(name: &str, is_dir: bool, own: &Naming) -> Sort {
    let is_of_another = || !own.has_ending(name) && formats().iter().any(|format| format.has_ending(name));
    if is_dir && !is_of_another() { Sort::Below } else { Sort::Skip }
}

/// The entries below a folder.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Images: a file or a folder each, in no order.
    pub images: Vec<FolderEntry>,
    /// The first that holds images of another format, and that format.
    pub other: Option<(PathBuf, &'static str)>,
}

/// All images below `root`, by what `sort` says of each path, its name and whether it is a folder. Links to folders are
/// followed, but not to one above `root`. Among several ways to a folder, that without links counts.
///
/// # Errors
/// A folder that cannot be listed, or one that lies deeper than [`DEPTH`]: left out, its images would go unnoticed.
pub(crate) fn images(root: &Path, sort: impl Fn(&Path, &str, bool) -> Sort) -> Result<Found> {
    look_ahead(root, DEPTH, LISTED_AHEAD, |_, _, _| false);
    images_listed(root, sort, place::list)
}

/// As [`images`], with what `list` says lies in a folder: of some it may be known.
///
/// # Errors
/// As [`images`].
pub(crate) fn images_listed(
    root: &Path,
    sort: impl Fn(&Path, &str, bool) -> Sort,
    mut list: impl FnMut(&Path) -> io::Result<Listing>,
) -> Result<Found> {
    let mut found = Found::default();
    let mut visited = Visited::above(root);
    let mut waiting = BTreeSet::from([FolderEntry { is_symlink: false, path: PathBuf::new() }]);
    while let Some(FolderEntry { path: below, .. }) = waiting.pop_first() {
        let folder = if below.as_os_str().is_empty() { root.to_owned() } else { root.join(&below) };
        let first = visited.is_first(&folder);
        if !first.map_err(|e| Error::io(&folder, "cannot look at the folder", &e))? {
            continue;
        }
        if below.components().count() > DEPTH {
            return Err(Error::new(
                &folder,
                format_args!("lies more than {DEPTH} folders deep, and images are looked for to that depth"),
            )
            .hint("give a folder further down, or move the images up"));
        }
        let cannot = |e: io::Error| Error::io(&folder, "cannot list the folder", &e);
        for entry in list(&folder).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = entry.name();
            let text = name.to_string_lossy();
            if text.starts_with('.') {
                continue;
            }
            let kind = entry.kind().map_err(cannot)?;
            let (is_symlink, whole) = (kind == Kind::Symlink, folder.join(&name));
            let is_dir = kind == Kind::Folder || is_symlink && place::is_folder(&whole);
            let path = below.join(&name);
            match sort(&whole, &text, is_dir) {
                Sort::Image => found.images.push(FolderEntry { is_symlink, path }),
                Sort::Other(format) => {
                    found.other.get_or_insert((path, format));
                }
                Sort::Below if is_dir => {
                    waiting.insert(FolderEntry { is_symlink, path });
                }
                Sort::Below | Sort::Skip => {}
            }
        }
    }
    Ok(found)
}

/// Whether there is an image below `root`, to that many levels. It looks into the first folders, those of one level
/// before those of the next, and sorts entries by `sort`, as [`images`] does. A folder that cannot be listed holds
/// none.
pub(crate) fn has_image(root: &Path, levels: usize, sort: impl Fn(&Path, &str, bool) -> Sort) -> bool {
    look_ahead(root, levels, LOOKED_INTO, |path, name, is_dir| sort(path, name, is_dir) == Sort::Image);
    let mut visited = Visited::above(root);
    let mut waiting = VecDeque::from([(root.to_owned(), 0)]);
    let (mut looked_into, mut looked_at) = (0, 0);
    while let Some((folder, level)) = waiting.pop_front() {
        if !visited.is_first(&folder).unwrap_or(false) {
            continue;
        }
        looked_into += 1;
        if looked_into > LOOKED_INTO {
            return false;
        }
        let mut inside = vec![];
        for entry in place::list(&folder).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > LOOKED_AT {
                return false;
            }
            let name = entry.name();
            let text = name.to_string_lossy();
            if text.starts_with('.') {
                continue;
            }
            let path = folder.join(&name);
            let is_dir = match entry.kind() {
                Ok(Kind::Folder) => true,
                Ok(Kind::Symlink) => place::is_folder(&path),
                Ok(Kind::File | Kind::Other) | Err(_) => false,
            };
            match sort(&path, &text, is_dir) {
                Sort::Image => return true,
                Sort::Below if is_dir && level < levels => inside.push(path),
                Sort::Below | Sort::Other(_) | Sort::Skip => {}
            }
        }
        inside.sort();
        waiting.extend(inside.into_iter().map(|path| (path, level + 1)));
    }
    false
}

/// The folders that were visited.
#[derive(Debug, Default)]
pub(crate) struct Visited(HashSet<Identity>);

impl Visited {
    /// The folders above `root`, so that no link leads there.
    fn above(root: &Path) -> Self {
        let mut visited = Self::default();
        if let Ok(whole) = place::canonical(root) {
            // A folder that cannot be looked at cannot be listed by a link either.
            whole.ancestors().skip(1).for_each(|above| drop(visited.is_first(above)));
        }
        visited
    }

    /// Whether it is the first visit to a folder.
    ///
    /// # Errors
    /// A folder that cannot be looked at.
    pub fn is_first(&mut self, folder: &Path) -> io::Result<bool> {
        Ok(self.0.insert(place::identity(folder)?))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_have_the_order_of_their_components() {
        let names = [
            "", "a", "a.b", "a-b", "a/b", "a/b/c", "a/b.c", "a/b-c", "a b", "ab", "A", "\u{e9}", "10", "9",
            "c:d",
        ];
        for a in names.map(Path::new) {
            for b in names.map(Path::new) {
                assert_eq!(compare_paths(a, b), a.cmp(b), "{} {}", a.display(), b.display());
            }
        }
    }

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
    fn images_are_found_at_any_depth_that_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let put = |below: &str| {
            let file = dir.path().join(below);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        };
        ["a/b/c/1.x", "a/.hidden/2.x", "d/3.x", "no/4.x"].into_iter().for_each(put);
        // A way with a link to what also lies there, and ways up.
        symlink("a/b", dir.path().join("0")).unwrap();
        symlink("../..", dir.path().join("a/b/up")).unwrap();
        symlink("../..", dir.path().join("d/above")).unwrap();
        let sort = |_: &Path, name: &str, _: bool| match name {
            "no" => Sort::Skip,
            name if name.rsplit_once('.').is_some_and(|(_, ending)| ending == "x") => Sort::Image,
            name if name.rsplit_once('.').is_some_and(|(_, ending)| ending == "y") => Sort::Other("y"),
            _ => Sort::Below,
        };
        let mut found = images(dir.path(), sort).unwrap();
        found.images.sort();
        let paths: Vec<&str> = found.images.iter().map(|image| image.path.to_str().unwrap()).collect();
        assert_eq!((paths, found.other), (vec!["a/b/c/1.x", "d/3.x"], None));
        std::fs::remove_file(dir.path().join("d/3.x")).unwrap();
        std::fs::remove_file(dir.path().join("0")).unwrap();
        std::fs::remove_file(dir.path().join("d/above")).unwrap();
        assert!(has_image(dir.path(), 3, sort) && !has_image(dir.path(), 2, sort));
        put("a/b/5.y");
        assert_eq!(images(dir.path(), sort).unwrap().other, Some(("a/b/5.y".into(), "y")));
        put(&format!("{}6.x", "e/".repeat(DEPTH)));
        assert_eq!(images(dir.path(), sort).unwrap().images.len(), 2);
        std::fs::create_dir(dir.path().join("e/".repeat(DEPTH + 1))).unwrap();
        assert!(images(dir.path(), sort).unwrap_err().to_string().contains("16 folders deep"));
    }

    #[test]
    fn folders_that_lie_there_come_before_links() {
        let found = |is_symlink, name: &str| FolderEntry { is_symlink, path: name.into() };
        let mut all = [found(true, "a"), found(false, "c"), found(false, "b")];
        all.sort();
        assert_eq!(all, [found(false, "b"), found(false, "c"), found(true, "a")]);
    }
}
