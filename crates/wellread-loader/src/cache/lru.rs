//! Decoded images in RAM; those that were used least recently make room.
//!
//! One lock guards the table; pixels are handed out of it as shared pointers, so that nothing is copied or decoded
//! under the lock, and an image that is evicted while it is being read lives until that is done.

use super::Shelf;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_store::Result;

/// See [`super::Cache::Lru`].
pub(super) struct Lru {
    limit: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    rows: HashMap<usize, Entry>,
    /// Rows by the time of their last use.
    by_use: BTreeMap<u64, usize>,
    clock: u64,
    bytes: usize,
}

struct Entry {
    pixels: Arc<[u8]>,
    used: u64,
}

impl Lru {
    pub fn new(limit: usize) -> Self {
        Self { limit, table: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn get(&mut self, row: usize) -> Option<Arc<[u8]>> {
        self.clock += 1;
        let entry = self.rows.get_mut(&row)?;
        self.by_use.remove(&entry.used);
        entry.used = self.clock;
        self.by_use.insert(self.clock, row);
        Some(Arc::clone(&entry.pixels))
    }
}

impl Shelf for Lru {
    fn has(&self, row: usize) -> bool {
        self.lock().rows.contains_key(&row)
    }

    fn lend(&self, row: usize, _: &mut Vec<u8>, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let pixels = self.lock().get(row);
        pixels.map_or(Ok(false), |pixels| each(&pixels).map(|()| true))
    }

    fn reserve(&self, bytes: usize) -> bool {
        // Room is made when the image is there.
        bytes <= self.limit
    }

    fn release(&self, _: usize) {}

    fn keep(&self, row: usize, pixels: Vec<u8>) {
        let pixels: Arc<[u8]> = pixels.into();
        let mut evicted = vec![];
        let mut table = self.lock();
        if table.get(row).is_some() {
            return;
        }
        while table.bytes + pixels.len() > self.limit {
            let Some((_, oldest)) = table.by_use.pop_first() else { break };
            let Some(entry) = table.rows.remove(&oldest) else { continue };
            table.bytes -= entry.pixels.len();
            evicted.push(entry);
        }
        let used = table.clock;
        table.bytes += pixels.len();
        table.by_use.insert(used, row);
        table.rows.insert(row, Entry { pixels, used });
        drop(table);
        // Freed outside of the lock.
        drop(evicted);
    }

    fn size(&self) -> (usize, usize) {
        let table = self.lock();
        (table.bytes, table.rows.len())
    }
}
