//! Which TIFF files a path stands for: itself, or those of a folder and of all folders below it.
//!
//! A folder that also holds images of another format is refused, because reading only some of its images
//! would go unnoticed. Tables without images, such as profile tables, may lie beside the images. Links to folders are
//! followed, and each folder is listed once.

use crate::folders::{self, Sort, sort_file, sort_quickly};
use crate::format::{Naming, mixed_folder};
use crate::probe::Probe;
use crate::tiff::ifd::Header;
use crate::{Error, OpenOptions, Result};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The format's name and endings.
pub(super) const NAMING: Naming = Naming { name: "tiff", endings: &[".tif", ".tiff"] };

/// Whether a name ends like a TIFF file's.
pub(super) fn is_tiff_name(name: &str) -> bool {
    NAMING.has_ending(name)
}

/// Whether a name is that of OME-XML that describes TIFF files.
pub(crate) fn is_companion(name: &str) -> bool {
    name.to_lowercase().ends_with(".companion.ome")
}

/// Whether a probe is of a TIFF file, or of a folder with TIFF files in it or below it.
pub(super) fn recognise(probe: &Probe) -> bool {
    if !probe.is_dir {
        return Header::recognise(&probe.head);
    }
    if probe.entries_ending(NAMING.endings).next().is_some() {
        return true;
    }
    folders::has_image(&probe.path, probe.levels, |path, name, is_dir| {
        if is_dir || !is_tiff_name(name) { sort_quickly(path, name, is_dir, &NAMING) } else { Sort::Image }
    })
}

/// The files of a folder, by paths relative to it, sorted by bytes.
#[derive(Debug)]
pub(super) struct Listed {
    /// TIFF files.
    pub(super) files: Vec<PathBuf>,
    /// Files of OME-XML that describe some of them.
    pub(super) companions: Vec<PathBuf>,
}

/// The files of a folder.
///
/// # Errors
/// No TIFF file, images of other formats beside them, or a folder that cannot be listed.
pub(super) fn files(folder: &Path, options: &OpenOptions) -> Result<Listed> {
    let companions = RefCell::new(vec![]);
    let found = folders::images(folder, |path, name, is_dir| {
        if !is_dir && is_companion(name) {
            companions.borrow_mut().push(path.strip_prefix(folder).unwrap_or(path).to_owned());
            return Sort::Skip;
        }
        if is_dir || !is_tiff_name(name) { sort_file(path, name, is_dir, &NAMING) } else { Sort::Image }
    })?;
    let mut tiff: Vec<PathBuf> = found.images.into_iter().map(|image| image.path).collect();
    let sort = |paths: &mut Vec<PathBuf>| {
        paths.sort_unstable_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    };
    let mut companions: Vec<PathBuf> = companions.into_inner();
    sort(&mut tiff);
    sort(&mut companions);
    let Some(first) = tiff.first() else {
        return Err(Error::new(folder, "there is no TIFF file (.tif, .tiff) in the folder")
            .hint("give the folder that holds the images, or the folder above it"));
    };
    if let Some((other, format)) = found.other.filter(|_| options.format.is_none()) {
        return Err(mixed_folder(folder, (first, NAMING.name), (&other, format)));
    }
    Ok(Listed { files: tiff, companions })
}
