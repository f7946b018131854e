//! Images of a folder that the table in it does not name: the set is without them, which nobody would notice.

use super::paths::Folders;
use crate::file_names::{PICTURES, TIFF, ends, path_text};
use crate::folders::{self, Sort};
use crate::place;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The images below a folder that are not among `named`, by their paths there. A folder that cannot be listed has none.
/// `folders` are those that were listed for the names.
pub(super) fn below<'f>(
    folder: &Path,
    named: impl Iterator<Item = &'f PathBuf>,
    folders: &Folders,
) -> Vec<String> {
    let whole = |path: &Path| place::absolute(path).unwrap_or_else(|_| path.to_owned());
    let root = whole(folder);
    let below_root = |file: &PathBuf| whole(file).strip_prefix(&root).ok().map(Path::to_owned);
    let named: HashSet<PathBuf> = named.filter_map(below_root).collect();
    let found = folders::images_listed(folder, sort, |folder| folders.list(folder)).unwrap_or_default();
    let images = found.images.into_iter().map(|image| image.path);
    let mut others: Vec<PathBuf> = images.filter(|path| !named.contains(path)).collect();
    others.sort();
    others.iter().map(|path| path_text(path)).collect()
}

/// Whether an entry is an image, by its name alone.
fn sort(_: &Path, name: &str, is_dir: bool) -> Sort {
    let name = Path::new(name);
    if is_dir {
        if ends(name, &["zarr"]) { Sort::Skip } else { Sort::Below }
    } else if ends(name, TIFF) || ends(name, PICTURES) {
        Sort::Image
    } else {
        Sort::Skip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_are_not_named_are_found_at_any_depth() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::create_dir(dir.path().join("c.zarr")).unwrap();
        for name in
            ["x.tif", "y.TIF", "notes.txt", "a/b/z.png", "a/named.tiff", "c.zarr/0.tif", ".hidden.tif"]
        {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        let named = [dir.path().join("a/named.tiff"), dir.path().join("./x.tif"), "elsewhere/y.TIF".into()];
        let mut folders = Folders::default();
        let found = |folders: &Folders| below(dir.path(), named.iter(), folders);
        assert_eq!(found(&folders), ["a/b/z.png", "y.TIF"]);
        assert!(below(&dir.path().join("none"), named.iter(), &folders).is_empty());
        // A folder that was listed before is not listed again.
        assert!(!folders.has(&dir.path().join("a/b/none.png")));
        std::fs::remove_file(dir.path().join("a/b/z.png")).unwrap();
        assert_eq!(found(&folders), ["a/b/z.png", "y.TIF"]);
    }
}
