//! Decoded images in RAM; what came first stays.

use super::Shelf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_store::Result;

/// See [`super::Cache::Memory`]. A look at what is kept takes no lock.
pub(super) struct Memory {
    rows: Box<[OnceLock<Box<[u8]>>]>,
    room: Room,
}

/// Bytes that may still be kept.
pub(super) struct Room {
    limit: usize,
    left: AtomicUsize,
}

impl Room {
    pub fn new(limit: usize) -> Self {
        Self { limit, left: AtomicUsize::new(limit) }
    }

    /// Takes room, if there is enough.
    pub fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    pub fn give(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that are taken.
    pub fn taken(&self) -> usize {
        self.limit - self.left.load(Ordering::Relaxed)
    }
}

impl Memory {
    pub fn new(rows: usize, limit: usize) -> Self {
        Self { rows: std::iter::repeat_with(OnceLock::new).take(rows).collect(), room: Room::new(limit) }
    }

    fn get(&self, row: usize) -> Option<&[u8]> {
        self.rows.get(row)?.get().map(|pixels| &**pixels)
    }
}

impl Shelf for Memory {
    fn has(&self, row: usize) -> bool {
        self.get(row).is_some()
    }

    fn lend(&self, row: usize, _: &mut Vec<u8>, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        self.get(row).map_or(Ok(false), |pixels| each(pixels).map(|()| true))
    }

    fn reserve(&self, bytes: usize) -> bool {
        self.room.take(bytes)
    }

    fn release(&self, bytes: usize) {
        self.room.give(bytes);
    }

    fn keep(&self, row: usize, pixels: Vec<u8>) {
        let bytes = pixels.len();
        // Another thread may have been first; its pixels are the same.
        if self.rows[row].set(pixels.into_boxed_slice()).is_err() {
            self.room.give(bytes);
        }
    }

    fn size(&self) -> (usize, usize) {
        (self.room.taken(), self.rows.iter().filter(|kept| kept.get().is_some()).count())
    }
}
