//! Which TIFF files a path stands for: itself, or those of a folder and of the folders directly inside it.
//!
//! A folder that also holds images of another format is refused, because reading only some of its images
//! would go unnoticed. Tables without images, such as profile tables, may lie beside the images. Links to folders are
//! followed, and each folder is listed once.

use crate::folders::{self, Visited};
use crate::format::{Naming, foreign_format, mixed_folder};
use crate::probe::Probe;
use crate::tiff::ifd::Header;
use crate::{Error, OpenOptions, Result};
use std::path::{Path, PathBuf};

/// What the format is called.
pub(super) const NAMING: Naming = Naming { name: "tiff", endings: &[".tif", ".tiff"] };

/// Whether a name ends like a TIFF file's.
pub(super) fn is_tiff_name(name: &str) -> bool {
    NAMING.has_ending(name)
}

/// Whether a probe is of a TIFF file, or of a folder with TIFF files in it or in a folder of it.
pub(super) fn recognise(probe: &Probe) -> bool {
    if !probe.is_dir {
        return Header::recognise(&probe.head);
    }
    if probe.entries_ending(NAMING.endings).next().is_some() {
        return true;
    }
    // Folders of other formats are not looked into.
    let folder = |name: &&String| !name.starts_with('.') && !name.contains('.');
    probe.entries.iter().filter(folder).take(16).any(|name| {
        let listing = std::fs::read_dir(probe.path.join(name)).ok();
        listing
            .is_some_and(|mut l| l.any(|e| e.is_ok_and(|e| e.file_name().to_str().is_some_and(is_tiff_name))))
    })
}

/// The files of a folder by their paths relative to it, sorted by bytes.
///
/// # Errors
/// No TIFF file, images of other formats beside them, or a folder that cannot be listed.
pub(super) fn files(folder: &Path, options: &OpenOptions) -> Result<Vec<PathBuf>> {
    let mut found = FolderListing::default();
    list(folder, Path::new(""), &mut found)?;
    let mut visited = Visited::default();
    let fault = |place: &Path, e| Error::io(place, "cannot look at the folder", &e);
    visited.is_first(folder).map_err(|e| fault(folder, e))?;
    let mut folders = std::mem::take(&mut found.folders);
    folders.sort();
    for folders::FolderEntry { path, .. } in folders {
        let place = folder.join(&path);
        if visited.is_first(&place).map_err(|e| fault(&place, e))? {
            list(folder, &path, &mut found)?;
        }
    }
    let FolderListing { mut tiff, other, .. } = found;
    tiff.sort_unstable_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    let Some(first) = tiff.first() else {
        return Err(Error::new(folder, "there is no TIFF file (.tif, .tiff) in the folder")
            .hint("give the folder that holds the images, or the folder above it"));
    };
    if let Some((other, format)) = other.filter(|_| options.format.is_none()) {
        return Err(mixed_folder(folder, (first, &NAMING), (&other, format)));
    }
    Ok(tiff)
}

#[derive(Default)]
struct FolderListing {
    tiff: Vec<PathBuf>,
    folders: Vec<folders::FolderEntry>,
    /// The first image of another format, and that format.
    other: Option<(PathBuf, &'static str)>,
}

/// Adds what is directly in `folder/below`.
fn list(folder: &Path, below: &Path, found: &mut FolderListing) -> Result<()> {
    let place = folder.join(below);
    let fault = |e: std::io::Error| Error::io(&place, "cannot list the folder", &e);
    for entry in std::fs::read_dir(&place).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if text.starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(fault)?;
        let is_dir = kind.is_dir() || kind.is_symlink() && entry.path().is_dir();
        let path = below.join(&name);
        if !is_dir && is_tiff_name(&text) {
            found.tiff.push(path);
        } else if let Some(format) = foreign_format(&entry.path(), &NAMING) {
            found.other.get_or_insert((path, format));
        } else if is_dir {
            found.folders.push(folders::FolderEntry { is_link: kind.is_symlink(), path });
        }
    }
    Ok(())
}
