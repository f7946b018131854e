//! `*.companion.ome`: OME-XML that describes images whose planes lie in the TIFF files beside it.
//!
//! Each of these files says whose it is; the reader of OME-TIFF finds the others by that. So the companion stands for those
//! files of its folder that it names, and is opened as they are.

use crate::{Error, Result, Store, place};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wellread_image::ome_xml;

/// The longest description that is read.
const LONGEST: u64 = 256 << 20;

/// Whether a file is one, by its name.
pub(super) fn is_one(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    name.ends_with(".companion.ome")
}

/// Opens the images of a companion.
///
/// # Errors
/// A description that cannot be read or names no file; files that are not there.
pub(super) fn open(path: &Path) -> Result<Box<dyn Store>> {
    let cannot = |e: &std::io::Error| Error::io(path, "cannot read the OME-XML", e);
    let (file, length) = place::open(path).map_err(|e| cannot(&e))?;
    if length > LONGEST {
        return Err(Error::new(path, format_args!("is too long for OME-XML ({length} bytes)")));
    }
    let mut bytes = vec![];
    file.peek_after(0, length, &mut bytes).map_err(|e| cannot(&e))?;
    let images = ome_xml::read(&ome_xml::decode(&bytes)).map_err(|e| Error::new(path, e))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for plane in images.iter().flat_map(|image| &image.planes) {
        named.extend(plane.file_name.as_deref());
    }
    let files: BTreeSet<PathBuf> = named.into_iter().map(|name| crate::tiff::beside(path, name)).collect();
    let files: Vec<PathBuf> = files.into_iter().collect();
    if files.is_empty() {
        return Err(Error::new(path, "names no TIFF file (TiffData/UUID/@FileName)")
            .hint("give the folder of the TIFF files"));
    }
    if let Some(missing) = files.iter().find(|file| !place::exists(file)) {
        return Err(Error::new(missing, "is not there, though the companion names it"));
    }
    crate::tiff::open_files(folder, files)
}
