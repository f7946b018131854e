//! Images in RAM, decoded or compressed; those that were used least recently make room.
//!
//! One lock guards the table; pixels are handed out of it as shared pointers, so that nothing is copied or decoded
//! under the lock, and an image that is evicted while it is being read lives until that is done.

use super::CacheBackend;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_store::Result;

/// See [`super::Cache::Lru`] and [`super::Cache::CompressedLru`].
pub(super) struct Lru<K> {
    limit: usize,
    table: Mutex<Table<K>>,
}

/// The form in which an image is kept.
pub(super) trait CachedImage: Send + Sync {
    /// Made of pixels, outside of any lock.
    fn new(pixels: Vec<u8>) -> Self;

    /// Bytes that it takes.
    fn bytes(&self) -> usize;

    /// Hands the pixels to `each`; `false` when they cannot be had. `buffer` may be used.
    fn with_pixels(&self, buffer: &mut Vec<u8>, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool>;
}

impl CachedImage for Box<[u8]> {
    fn new(pixels: Vec<u8>) -> Self {
        pixels.into_boxed_slice()
    }

    fn bytes(&self) -> usize {
        self.len()
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
}

struct Entry<K> {
    image: Arc<K>,
    used: u64,
}

impl<K> Lru<K> {
    pub fn new(limit: usize) -> Self {
        let table = Table { rows: HashMap::new(), by_use: BTreeMap::new(), clock: 0, bytes: 0 };
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
        // Room is made when the image is there.
        bytes <= self.limit
    }

    fn release(&self, _: usize) {}

    fn insert(&self, row: usize, pixels: Vec<u8>) {
        if self.contains(row) {
            return;
        }
        let image = Arc::new(K::new(pixels));
        let bytes = image.bytes();
        let mut evicted = vec![];
        let mut table = self.lock();
        if table.get(row).is_some() {
            return;
        }
        while table.bytes + bytes > self.limit {
            let Some((_, oldest)) = table.by_use.pop_first() else { break };
            let Some(entry) = table.rows.remove(&oldest) else { continue };
            table.bytes -= entry.image.bytes();
            evicted.push(entry);
        }
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
