//! `*.companion.ome`: OME-XML that describes images whose planes lie in the TIFF files beside it.
//!
//! The companion stands for those files of its folder that it names (`TiffData/UUID/@FileName`), and describes them, whether they
//! say whose they are or not. How it is read is the affair of [`crate::tiff`].

use crate::tiff::Companion;
use crate::{Error, Result, Store, place};
use std::path::{Path, PathBuf};

/// Whether a file is one, by its name.
pub(super) fn is_one(path: &Path) -> bool {
    path.file_name().is_some_and(|name| crate::tiff::is_companion(&name.to_string_lossy()))
}

/// The one in a folder; `None` where it has none or several.
pub(super) fn in_folder(folder: &Path) -> Option<PathBuf> {
    let entries = place::list(folder).ok()?.flatten();
    let mut companions = entries.map(|entry| folder.join(entry.name())).filter(|path| is_one(path));
    companions.next().filter(|_| companions.next().is_none())
}

/// Opens the images of a companion.
///
/// # Errors
/// A description that cannot be read or names no file; files that are not there.
pub(super) fn open(path: &Path) -> Result<Box<dyn Store>> {
    let companion = Companion::read(path)?;
    if companion.files.is_empty() {
        return Err(Error::new(path, "names no TIFF file (TiffData/UUID/@FileName)")
            .hint("give the folder of the TIFF files"));
    }
    if let Some(missing) = companion.files.iter().find(|file| !place::exists(file)) {
        return Err(Error::new(missing, "is not there, though the companion names it"));
    }
    crate::tiff::open_files(path.parent().unwrap_or(Path::new("")), companion.files.clone(), Some(companion))
}
