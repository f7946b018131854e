//! How activations lie in memory: channels in blocks, pixels within a block.
//!
//! ```text
//! block of 64 channels ▸ image ▸ row ▸ pixel ▸ its 64 channels        (float32, images with a border of zeros)
//! ```
//!
//! One block of a result is one contiguous piece of memory, so threads write disjoint pieces. A row of a kernel
//! sees contiguous memory, so nothing is unfolded. A head of an attention layer of 64 is one block. Channels
//! beyond the last are zeros. Images of fewer than 64 channels have one block of just these.

/// Channels of a block.
pub(super) const BLOCK: usize = 64;

/// Sizes of an array of activations, without the number of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Layout {
    /// Channels that mean something.
    pub channels: usize,
    /// Channels of a block in memory.
    pub block: usize,
    /// Rows of an image, without border.
    pub height: usize,
    /// Columns of an image, without border.
    pub width: usize,
    /// Width of the border of zeros around each image.
    pub pad: usize,
}

impl Layout {
    /// The layout of images as they come in: all their channels are one block.
    pub fn of_images(shape: crate::infer::network::Shape, pad: usize) -> Self {
        Self { block: shape.channels, ..Self::of(shape, pad) }
    }

    /// The layout of results, in blocks of [`BLOCK`].
    pub fn of(shape: crate::infer::network::Shape, pad: usize) -> Self {
        Self { channels: shape.channels, block: BLOCK, height: shape.height, width: shape.width, pad }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.channels.div_ceil(self.block)
    }

    /// Pixels of an image that mean something.
    pub fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// Floats from a row to the next.
    pub fn row(&self) -> usize {
        (self.width + 2 * self.pad) * self.block
    }

    /// Floats from an image to the next, within a block.
    pub fn image(&self) -> usize {
        (self.height + 2 * self.pad) * self.row()
    }

    /// Floats of `batch` images.
    pub fn floats(&self, batch: usize) -> usize {
        self.blocks() * batch * self.image()
    }

    /// Where pixel `number` of all images begins within a block, numbered image by image and row by row.
    pub fn offset(&self, number: usize) -> usize {
        let (image, pixel) = (number / self.pixels(), number % self.pixels());
        let (y, x) = (pixel / self.width, pixel % self.width);
        image * self.image() + (y + self.pad) * self.row() + (x + self.pad) * self.block
    }
}
