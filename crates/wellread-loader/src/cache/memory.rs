//! Images in RAM, decoded or compressed; the first ones stay.

use super::CacheBackend;
use super::lru::CachedImage;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_store::Result;

/// See [`super::Cache::Memory`].
pub(super) type Memory = Slots<Box<[u8]>>;

/// A slot per row that is filled once, and the bytes that may still be kept. A look at a slot takes no lock.
pub(super) struct Slots<K> {
    rows: Box<[OnceLock<K>]>,
    left: AtomicUsize,
}

impl<K> Slots<K> {
    pub fn new(rows: usize, limit: usize) -> Self {
        let rows = std::iter::repeat_with(OnceLock::new).take(rows).collect();
        Self { rows, left: AtomicUsize::new(limit) }
    }

    fn get(&self, row: usize) -> Option<&K> {
        self.rows.get(row)?.get()
    }
}

impl<K: CachedImage> CacheBackend for Slots<K> {
    fn contains(&self, row: usize) -> bool {
        self.get(row).is_some()
    }

    fn with_pixels(
        &self,
        row: usize,
        buffer: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        self.get(row).map_or(Ok(false), |image| image.with_pixels(buffer, each))
    }

    fn reserve(&self, bytes: usize) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn release(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }

    fn insert(&self, row: usize, pixels: Vec<u8>) {
        let bytes = pixels.len();
        let image = K::new(pixels);
        let kept = image.bytes();
        // Another thread may have been first; its pixels are the same.
        let is_first = self.rows[row].set(image).is_ok();
        self.release(if is_first { bytes - kept } else { bytes });
    }

    /// Room that a read has taken for images on their way is left out: two threads may have taken it for the same image.
    fn size(&self) -> (usize, usize) {
        let filled = self.rows.iter().filter_map(OnceLock::get);
        filled.fold((0, 0), |(sum, images), image| (sum + image.bytes(), images + 1))
    }
}
