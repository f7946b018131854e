//! Source pixels as kernels take them.

use super::raw::Raw;
use wellread_image::PixelType;

/// A rectangle of source pixels.
pub(crate) struct Patch<'a> {
    /// Bytes from the first pixel of the first row on.
    pub(crate) data: &'a [u8],
    pub(crate) dtype: PixelType,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Pixels from one row to the next.
    pub(crate) stride: usize,
}

impl Patch<'_> {
    /// Pixels as elements of their size.
    pub(super) fn elements<R: Raw>(&self) -> &[R] {
        let n = self.data.len() / size_of::<R>();
        bytemuck::cast_slice(&self.data[..n * size_of::<R>()])
    }
}
