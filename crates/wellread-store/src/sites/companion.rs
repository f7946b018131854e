//! `*.companion.ome`: OME-XML that describes images whose planes lie in the TIFF files beside it.
//!
//! The companion stands for those files of its folder that it names (`TiffData/UUID/@FileName`), and describes them, whether they
//! say whose they are or not. How it is read is the affair of [`crate::tiff`].

use crate::format::Missing;
use crate::surface::option_as;
use crate::tiff::Companion;
use crate::words::counted;
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

/// Most images that are named.
const NAMED: usize = 5;

/// Opens the images of a companion; where missing files are to be skipped, without images that lack some.
///
/// # Errors
/// A description that cannot be read or names no file; images that lack files, or no other image.
pub(super) fn open(path: &Path, missing: Missing) -> Result<Box<dyn Store>> {
    let mut companion = Companion::read(path)?;
    if companion.files.is_empty() {
        return Err(Error::new(path, "names no TIFF file (TiffData/UUID/@FileName)")
            .hint("give the folder of the TIFF files"));
    }
    let images = companion.count;
    let lacking = companion.leave_out_incomplete();
    let more = if lacking.len() > NAMED { "; …" } else { "" };
    let cause = format!(
        "{} of {images} {} files: {}{more}",
        counted(lacking.len(), "image"),
        if lacking.len() == 1 { "lacks" } else { "lack" },
        lacking[..lacking.len().min(NAMED)].join("; ")
    );
    if !lacking.is_empty() && (missing != Missing::Skip || companion.files.is_empty()) {
        let (error, skip) = (Error::new(path, cause), option_as("missing", "skip"));
        let zeros = "a companion's images cannot be read as zeros";
        return Err(match (missing, companion.files.is_empty()) {
            (Missing::Zero, true) => error.hint(format_args!("put the files beside it: {zeros}")),
            (_, true) => error.hint("put the files beside it"),
            (Missing::Zero, false) => error.hint(format_args!("{zeros}; use {skip}")),
            (_, false) => error.skippable().hint(format_args!("{skip} leaves such images out")),
        });
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let missing_parts = if lacking.is_empty() { vec![] } else { vec![format!("{cause} (left out)")] };
    crate::tiff::open_companion(folder, companion, missing_parts, lacking.len())
}
