//! Decoded images in RAM; the first ones stay.

use super::CacheBackend;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_store::Result;

/// See [`super::Cache::Memory`].
pub(super) struct Memory(Slots<Box<[u8]>>);

/// A slot per row that is filled once, and the bytes that may still be kept. A look at a slot takes no lock.
pub(super) struct Slots<T> {
    rows: Box<[OnceLock<T>]>,
    left: AtomicUsize,
}

impl<T> Slots<T> {
    pub fn new(rows: usize, limit: usize) -> Self {
        let rows = std::iter::repeat_with(OnceLock::new).take(rows).collect();
        Self { rows, left: AtomicUsize::new(limit) }
    }

    pub fn get(&self, row: usize) -> Option<&T> {
        self.rows.get(row)?.get()
    }

    /// Fills a slot; `false` where another thread was first.
    pub fn set(&self, row: usize, value: T) -> bool {
        self.rows[row].set(value).is_ok()
    }

    /// Takes room, if there is enough.
    pub fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    pub fn give(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes in filled slots, and how many those are. Room that a read has taken for images on their way is left out:
    /// two threads may have taken it for the same image.
    pub fn size(&self, bytes: impl Fn(&T) -> usize) -> (usize, usize) {
        let filled = self.rows.iter().filter_map(OnceLock::get);
        filled.fold((0, 0), |(sum, images), kept| (sum + bytes(kept), images + 1))
    }
}

impl Memory {
    pub fn new(rows: usize, limit: usize) -> Self {
        Self(Slots::new(rows, limit))
    }
}

impl CacheBackend for Memory {
    fn contains(&self, row: usize) -> bool {
        self.0.get(row).is_some()
    }

    fn with_pixels(
        &self,
        row: usize,
        _: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        self.0.get(row).map_or(Ok(false), |pixels| each(pixels).map(|()| true))
    }

    fn reserve(&self, bytes: usize) -> bool {
        self.0.take(bytes)
    }

    fn release(&self, bytes: usize) {
        self.0.give(bytes);
    }

    fn insert(&self, row: usize, pixels: Vec<u8>) {
        let bytes = pixels.len();
        // Another thread may have been first; its pixels are the same.
        if !self.0.set(row, pixels.into_boxed_slice()) {
            self.0.give(bytes);
        }
    }

    fn size(&self) -> (usize, usize) {
        self.0.size(|pixels| pixels.len())
    }
}
