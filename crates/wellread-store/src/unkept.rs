//! Facts of images in a format for which wellread's metadata have no place, so that no conversion keeps them.

use crate::{RowHints, Store};

/// Those of the first image of `source`, in words such as `translations`; nothing in formats that keep no
/// others.
pub fn of_first(source: &dyn Store) -> Vec<&'static str> {
    #[cfg(feature = "ome-zarr")]
    if source.format() == crate::ome_zarr::FORMAT.name && !source.is_empty() {
        return crate::ome_zarr::unkept::of_first(source.path(), &source.name(0).unwrap_or_default());
    }
    #[cfg(feature = "tiff")]
    if source.format() == crate::tiff::FORMAT.name && !source.is_empty() {
        let file = source.row_hints(0).ok().and_then(RowHints::file);
        return file.map_or_else(Vec::new, |file| crate::tiff::unkept::of_file(&file));
    }
    if source.is_empty() { vec![] } else { source.row_hints(0).map_or_else(|_| vec![], RowHints::unkept) }
}
