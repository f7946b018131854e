//! Images in RAM, compressed by LZ4.
//!
//! LZ4 because it is the only codec that unpacks at a good part of memory speed: what is won over reading the set
//! again is its own codec and the way to the file.

use super::Shelf;
use super::memory::Slots;
use wellread_store::Result;

/// See [`super::Cache::Compressed`].
pub(super) struct Compressed(Slots<Packed>);

struct Packed {
    /// Bytes of pixels; as many as `data` has where they are not compressed.
    pixels: usize,
    data: Box<[u8]>,
}

impl Compressed {
    pub fn new(rows: usize, limit: usize) -> Self {
        Self(Slots::new(rows, limit))
    }
}

impl Shelf for Compressed {
    fn has(&self, row: usize) -> bool {
        self.0.get(row).is_some()
    }

    fn lend(
        &self,
        row: usize,
        buffer: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let Some(packed) = self.0.get(row) else { return Ok(false) };
        if packed.data.len() == packed.pixels {
            return each(&packed.data).map(|()| true);
        }
        buffer.resize(packed.pixels, 0);
        // It was packed here, in this process; were memory at fault, the image would be read again.
        match lz4_flex::block::decompress_into(&packed.data, buffer) {
            Ok(n) if n == packed.pixels => each(buffer).map(|()| true),
            _ => Ok(false),
        }
    }

    fn reserve(&self, bytes: usize) -> bool {
        self.0.take(bytes)
    }

    fn release(&self, bytes: usize) {
        self.0.give(bytes);
    }

    fn keep(&self, row: usize, pixels: Vec<u8>) {
        let bytes = pixels.len();
        let mut data = lz4_flex::block::compress(&pixels);
        // Not worth unpacking for a sixteenth; and its length is what tells it from pixels.
        if data.len() > bytes - bytes / 16 || data.len() == bytes {
            data = pixels;
        }
        let kept = data.len();
        let packed = Packed { pixels: bytes, data: data.into_boxed_slice() };
        let is_first = self.0.set(row, packed);
        self.0.give(if is_first { bytes - kept } else { bytes });
    }

    fn size(&self) -> (usize, usize) {
        self.0.size()
    }
}
