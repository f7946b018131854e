//! Images in RAM, decoded or compressed; those that were used least recently make room.
//!
//! One lock guards the table. Pixels leave it as shared pointers, so that nothing is copied or decoded under the
//! lock. An image that is evicted while it is being read lives until that is done.
//!
//! ```text
//!  an image is going to be read ─ reserve ─▶ awaited ─ reused ─▶ the oldest go, one of the same size gives its memory
//!                                                                  │ read
//!                                 table ◀─ insert ─────────────────┘
//! ```
//!
//! Fresh memory costs a page fault for each page and a pass of zeros, which takes as long as a part of the reading does.

use super::CacheBackend;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_store::Result;

/// See [`super::Cache::Lru`] and [`super::Cache::CompressedLru`].
pub(super) struct Lru<K> {
    limit: usize,
    table: Mutex<Table<K>>,
}

/// The form in which an image is kept, here and in [`super::memory::Slots`].
pub(super) trait CachedImage: Send + Sync {
    /// Whether its memory is its pixels, as they are: another image of as many may be read into it.
    const IS_PIXELS: bool;

    /// Made of pixels, outside of any lock.
    fn new(pixels: Vec<u8>) -> Self;

    /// Bytes that it takes.
    fn bytes(&self) -> usize;

    /// Their memory.
    fn into_memory(self) -> Vec<u8>;

    /// Hands the pixels to `each`; `false` when they cannot be had. `buffer` may be used.
    fn with_pixels(&self, buffer: &mut Vec<u8>, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool>;
}

impl CachedImage for Box<[u8]> {
    const IS_PIXELS: bool = true;

    fn new(pixels: Vec<u8>) -> Self {
        pixels.into_boxed_slice()
    }

    fn bytes(&self) -> usize {
        self.len()
    }

    fn into_memory(self) -> Vec<u8> {
        self.into_vec()
    }

    fn with_pixels(&self, _: &mut Vec<u8>, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        each(self).map(|()| true)
    }
}

struct Table<K> {
    rows: HashMap<usize, Entry<K>>,
    /// Rows by the time of their last use.
    by_use: BTreeMap<u64, usize>,
    clock: u64,
    bytes: usize,
    /// Bytes of images that are being read to be kept.
    awaited: usize,
}

struct Entry<K> {
    image: Arc<K>,
    used: u64,
}

impl<K> Lru<K> {
    pub fn new(limit: usize) -> Self {
        let table = Table { rows: HashMap::new(), by_use: BTreeMap::new(), clock: 0, bytes: 0, awaited: 0 };
        Self { limit, table: Mutex::new(table) }
    }

    fn lock(&self) -> MutexGuard<'_, Table<K>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Table<K> {
    fn get(&mut self, row: usize) -> Option<Arc<K>> {
        self.clock += 1;
        let entry = self.rows.get_mut(&row)?;
        self.by_use.remove(&entry.used);
        entry.used = self.clock;
        self.by_use.insert(self.clock, row);
        Some(Arc::clone(&entry.image))
    }
}

impl<K: CachedImage> Table<K> {
    /// Takes out those that were used least recently until `bytes` more have room. To be freed outside of the lock.
    fn make_room(&mut self, bytes: usize, limit: usize) -> Vec<Arc<K>> {
        let mut evicted = vec![];
        while self.bytes.saturating_add(bytes) > limit {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            let Some(entry) = self.rows.remove(&oldest) else { continue };
            self.bytes -= entry.image.bytes();
            evicted.push(entry.image);
        }
        evicted
    }
}

impl<K: CachedImage> CacheBackend for Lru<K> {
    fn contains(&self, row: usize) -> bool {
        self.lock().rows.contains_key(&row)
    }

    fn with_pixels(
        &self,
        row: usize,
        buffer: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let image = self.lock().get(row);
        image.map_or(Ok(false), |image| image.with_pixels(buffer, each))
    }

    fn reserve(&self, bytes: usize) -> bool {
        // Room is made when memory is asked for, or when the image is there.
        let fits = bytes <= self.limit;
        if fits {
            let mut table = self.lock();
            table.awaited = table.awaited.saturating_add(bytes);
        }
        fits
    }

    fn reused(&self, bytes: usize) -> Option<Vec<u8>> {
        if !K::IS_PIXELS {
            return None;
        }
        let mut table = self.lock();
        let awaited = table.awaited;
        let evicted = table.make_room(awaited, self.limit);
        drop(table);
        // One that is being read stays what it is until that is done.
        let mut memory = evicted.into_iter().filter_map(Arc::into_inner).map(K::into_memory);
        memory.find(|memory| memory.len() == bytes)
    }

    fn release(&self, bytes: usize) {
        let mut table = self.lock();
        table.awaited = table.awaited.saturating_sub(bytes);
    }

    fn insert(&self, row: usize, pixels: Vec<u8>) {
        self.release(pixels.len());
        if self.contains(row) {
            return;
        }
        let image = Arc::new(K::new(pixels));
        let bytes = image.bytes();
        let mut table = self.lock();
        if table.get(row).is_some() {
            return;
        }
        let evicted = table.make_room(bytes, self.limit);
        let used = table.clock;
        table.bytes += bytes;
        table.by_use.insert(used, row);
        table.rows.insert(row, Entry { image, used });
        drop(table);
        // Freed outside of the lock.
        drop(evicted);
    }

    fn size(&self) -> (usize, usize) {
        let table = self.lock();
        (table.bytes, table.rows.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_oldest_is_that_of_the_next() {
        let backend: Lru<Box<[u8]>> = Lru::new(30);
        let insert = |row: usize, memory: Vec<u8>| backend.insert(row, memory);
        for row in 0..3 {
            assert!(backend.reserve(10));
            assert!(backend.reused(10).is_none(), "there is room");
            insert(row, vec![row as u8; 10]);
        }
        let oldest = backend.lock().rows[&0].image.as_ptr();
        assert!(backend.reserve(10));
        let memory = backend.reused(10).unwrap();
        assert_eq!((memory.as_ptr(), memory.len(), backend.size()), (oldest, 10, (20, 2)));
        // Two threads that read get one each.
        assert!(backend.reserve(10));
        let second = backend.reused(10).unwrap();
        assert_eq!((second, backend.size()), (vec![1; 10], (10, 1)));
        insert(3, memory);
        backend.release(10);
        assert_eq!((backend.size(), backend.lock().awaited), ((20, 2), 0));
        // For another size, room is made all the same.
        assert!(backend.reserve(15));
        assert!(backend.reused(15).is_none());
        insert(4, vec![4; 15]);
        assert_eq!((backend.size(), backend.contains(2), backend.contains(3)), ((25, 2), false, true));
        // Pixels that are being read are not given away.
        let held = backend.lock().get(3).unwrap();
        assert!(backend.lock().get(4).is_some());
        assert!(backend.reserve(10));
        assert!(backend.reused(10).is_none());
        assert_eq!((held.len(), backend.contains(3)), (10, false));
        assert!(!backend.reserve(31));
    }

    #[test]
    fn compressed_images_make_room_when_the_next_is_there() {
        let backend: Lru<super::super::compressed::Packed> = Lru::new(1000);
        assert!(backend.reserve(1000));
        assert!(backend.reused(1000).is_none());
        backend.insert(0, vec![7; 1000]);
        assert!(backend.reserve(1000) && backend.reused(1000).is_none() && backend.contains(0));
    }
}
