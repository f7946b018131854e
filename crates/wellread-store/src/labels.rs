//! Label images (nuclei, cells) that lie beside images in their own folders, as OME-Zarr's `labels`. They are no rows of a set, and are
//! read by the place of their own.

use crate::Store;
use crate::words::first_few;
use std::fmt;
use std::path::PathBuf;

/// Most names that a sentence lists.
const MAX_LISTED: usize = 3;

/// Label images beside the images of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// Images that have some.
    pub images: usize,
    /// Their names, each once, sorted.
    pub names: Vec<String>,
    /// The place of the first one, which can be opened as a set.
    pub first: PathBuf,
}

impl fmt::Display for Labels {
    /// Their names and where they are read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = first_few(&self.names, MAX_LISTED);
        let such = if self.images > 1 || self.names.len() > 1 { "such as " } else { "" };
        write!(f, "{names} (read as a set of their own, {such}{})", self.first.display())
    }
}

/// The label images beside those of `source`; `None` where there are none, as in every format but OME-Zarr. No chunk is looked at,
/// and no metadata but that of the labels.
pub fn beside(source: &dyn Store) -> Option<Labels> {
    #[cfg(feature = "ome-zarr")]
    if source.format() == crate::ome_zarr::FORMAT.name {
        let found = crate::ome_zarr::labels::below(source.path());
        let (folder, first) = found.first().map(|(folder, names)| (folder, &names[0]))?;
        let first = folder.join(first);
        let images = found.len();
        let mut names: Vec<String> = found.into_iter().flat_map(|(_, names)| names).collect();
        names.sort_unstable();
        names.dedup();
        return Some(Labels { images, names, first });
    }
    let _ = source;
    None
}
