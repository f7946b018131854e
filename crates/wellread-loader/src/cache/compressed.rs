//! Images in RAM, compressed by LZ4.
//!
//! LZ4 is the only codec that unpacks at a good part of memory speed. The cache saves the set's own codec and the
//! way to the file.

use super::lru::{CachedImage, Lru};
use super::memory::Slots;
use wellread_store::Result;

/// See [`super::Cache::Compressed`].
pub(super) type Compressed = Slots<Packed>;

/// See [`super::Cache::CompressedLru`].
pub(super) type CompressedLru = Lru<Packed>;

/// An image, compressed where that makes it smaller.
pub(super) struct Packed {
    /// Bytes of pixels; as many as `data` has where they are not compressed.
    pixels: usize,
    data: Box<[u8]>,
}

impl CachedImage for Packed {
    const IS_PIXELS: bool = false;

    fn new(pixels: Vec<u8>) -> Self {
        let bytes = pixels.len();
        let mut data = lz4_flex::block::compress(&pixels);
        // Not worth unpacking for a sixteenth; and its length is what tells it from pixels.
        if data.len() > bytes - bytes / 16 || data.len() == bytes {
            data = pixels;
        }
        Self { pixels: bytes, data: data.into_boxed_slice() }
    }

    fn bytes(&self) -> usize {
        self.data.len()
    }

    fn into_memory(self) -> Vec<u8> {
        self.data.into_vec()
    }

    fn with_pixels(&self, buffer: &mut Vec<u8>, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        if self.data.len() == self.pixels {
            return each(&self.data).map(|()| true);
        }
        buffer.resize(self.pixels, 0);
        // It was packed here, in this process; were memory at fault, the image would be read again.
        match lz4_flex::block::decompress_into(&self.data, buffer) {
            Ok(n) if n == self.pixels => each(buffer).map(|()| true),
            _ => Ok(false),
        }
    }
}
