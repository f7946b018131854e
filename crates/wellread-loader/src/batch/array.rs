//! One array of a batch: a view of its images, or of their targets.

use crate::dtype::{DType, Element};
use crate::pool::ArrayLayout;
use std::fmt;
use wellread_image::Shape;

/// Images of a batch, contiguous in C order: a view of them, or of their targets ([`crate::Batch::view`],
/// [`crate::Batch::targets`]).
#[derive(Clone, Copy)]
pub struct BatchArray<'a> {
    shape: [usize; 6],
    axes: usize,
    dtype: DType,
    bytes: &'a [u8],
}

impl<'a> BatchArray<'a> {
    /// `images` images that `memory` begins with.
    pub(super) fn new(layout: &ArrayLayout, images: usize, memory: &'a [u8]) -> Self {
        let (shape, axes) = shape_of(images, layout.shape);
        let size = images * layout.shape.pixels() * layout.dtype.size();
        Self { shape, axes, dtype: layout.dtype, bytes: &memory[..size] }
    }

    /// `[N, C, Y, X]`, or `[N, T, C, Z, Y, X]` for images with more than one time point or depth.
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.axes]
    }

    /// The type of the numbers.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The numbers as bytes, in C order of [`Self::shape`], little-endian, aligned to 64 bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The numbers of an array of `f32`.
    ///
    /// # Panics
    /// When the array holds another type ([`Self::dtype`]).
    pub fn pixels(&self) -> &'a [f32] {
        self.pixels_as()
    }

    /// The numbers: `u8`, `u16`, `half::f16` …
    ///
    /// # Panics
    /// When the array holds another type ([`Self::dtype`]).
    pub fn pixels_as<T: Element>(&self) -> &'a [T] {
        assert!(self.dtype == T::DTYPE, "the array holds {}, not {}", self.dtype, T::DTYPE);
        T::cast(self.bytes)
    }

    /// The numbers of image `i`.
    ///
    /// # Panics
    /// When there is no such image, or the array holds another type ([`Self::dtype`]).
    pub fn image_as<T: Element>(&self, i: usize) -> &'a [T] {
        let pixels = self.pixels_as();
        let each = pixels.len() / self.shape[0];
        &pixels[i * each..(i + 1) * each]
    }
}

impl fmt::Debug for BatchArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchArray({:?} {})", self.shape(), self.dtype)
    }
}

/// Sizes of the axes of so many images of a shape, and how many axes are shown.
pub(super) fn shape_of(images: usize, each: Shape) -> ([usize; 6], usize) {
    let [t, c, z, y, x] = each.0;
    if t == 1 && z == 1 { ([images, c, y, x, 1, 1], 4) } else { ([images, t, c, z, y, x], 6) }
}
