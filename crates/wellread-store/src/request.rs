//! Plain types of reading: shape and pixel type of a row, and a request for a region of it.

use wellread_image::{PixelType, Region, Shape};

/// Shape and pixel type of one row (image), known without reading its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowInfo {
    /// Size along T, C, Z, Y, X.
    pub shape: Shape,
    /// Pixel type as delivered in [`Block`](crate::Block)s.
    pub dtype: PixelType,
}

impl RowInfo {
    /// [`RowHints::working_bytes`](crate::RowHints::working_bytes) where a format does not know better: three times the image.
    pub fn working_bytes(self) -> usize {
        self.shape.checked_bytes(self.dtype).map_or(usize::MAX, |bytes| bytes.saturating_mul(3))
    }
}

/// One row, or a region of it, to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Image index, `0..store.len()`.
    pub row: usize,
    /// The box to read; must fit the row's shape.
    pub region: Region,
}
