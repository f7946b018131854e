//! Decoded pages, shared by all threads of a store, up to a number of bytes.
//!
//! Random batches come back to the same pages again and again: a page of 1 MiB holds a hundred images of
//! upstream's size. So a page is decoded once, to the images' own pixel type, and its images are handed out
//! as slices of that. Two threads that want the same page do not decode it twice: the second waits for the
//! first. The lock over the whole is held for a look-up only.
//!
//! Where a set is larger than the cache, a page goes for each that comes: its memory is used again for that one.

use super::dictionary::Table;
use super::pages::FastPathError;
use crate::PageCache;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_image::PixelType;
use wellread_trace::{Kind, span};

/// Which page, of which list of pieces, decoded to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub group: u32,
    pub source: u8,
    /// Index of the data page; [`Key::DICTIONARY`] for the dictionary.
    pub page: u32,
    pub dtype: PixelType,
}

impl Key {
    pub const DICTIONARY: u32 = u32::MAX;
}

/// The kept form of a page.
#[derive(Debug)]
pub(super) enum Entry {
    /// All its values as pixels.
    Pixels(Vec<u8>),
    /// Its values as stored, where decoding all of them would not do. They expand too much, or some other
    /// image of the page has values that the pixel type cannot hold. Decoded part by part.
    Stored { bytes: Vec<u8>, coding: StoredCoding },
    /// A dictionary.
    Table(Table),
}

/// Encoding of [`Entry::Stored`].
#[derive(Clone, Debug)]
pub(super) enum StoredCoding {
    Plain,
    ByteStreamSplit,
    Delta,
    /// Indices into an [`Entry::Table`].
    Dictionary(Arc<Entry>),
}

impl Entry {
    fn bytes(&self) -> usize {
        64 + match self {
            Self::Pixels(bytes) | Self::Stored { bytes, .. } => bytes.capacity(),
            Self::Table(table) => table.bytes(),
        }
    }

    /// The memory of its values.
    fn take_buffer(&mut self) -> Vec<u8> {
        match self {
            Self::Pixels(bytes) | Self::Stored { bytes, .. } => std::mem::take(bytes),
            Self::Table(_) => vec![],
        }
    }
}

#[derive(Default)]
struct Slot {
    entry: Mutex<Option<Arc<Entry>>>,
    used: AtomicBool,
}

#[derive(Default)]
struct Inner {
    slots: HashMap<Key, Arc<Slot>>,
    /// Loaded entries in the order in which they are considered for eviction, with their sizes.
    clock: VecDeque<(Key, usize)>,
    bytes: usize,
    /// Slots that went and that nobody else holds, to be used again.
    spare_slots: Vec<Arc<Slot>>,
}

/// Bytes of an entry whose memory is used again, at most.
const MAX_SPARE_BYTES: usize = 16 << 20;

/// A bounded cache with second-chance eviction: an entry that was used since it was last considered stays.
#[derive(Default)]
pub(super) struct Cache {
    inner: Mutex<Inner>,
    /// Entries that went and that nobody else holds, to be used again. They do not count, as what is being decoded does
    /// not: it will be that. It is locked last: a thread that has it waits for nobody.
    spare: Mutex<Vec<Arc<Entry>>>,
    /// Threads that decode now, and the most that did at a time.
    loading: AtomicUsize,
    most_loading: AtomicUsize,
    capacity: AtomicUsize,
}

/// A thread that decodes, counted until this is dropped.
struct Loading<'a>(&'a AtomicUsize);

impl<'a> Loading<'a> {
    fn begin(cache: &'a Cache) -> Self {
        let loading = cache.loading.fetch_add(1, Ordering::Relaxed) + 1;
        cache.most_loading.fetch_max(loading, Ordering::Relaxed);
        Self(&cache.loading)
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The entry, in the memory of one that nobody else holds, where there is one.
fn reused(spare: Option<Arc<Entry>>, entry: Entry) -> Arc<Entry> {
    let Some(mut spare) = spare else { return Arc::new(entry) };
    match Arc::get_mut(&mut spare) {
        Some(room) => *room = entry,
        None => spare = Arc::new(entry),
    }
    spare
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    /// A cache of `capacity` bytes; it keeps the latest entry even where that one alone is larger.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: AtomicUsize::new(capacity), ..Self::default() }
    }

    /// Bytes that are kept at most.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Keeps no more than `bytes` from now on.
    pub fn limit(&self, bytes: usize) {
        self.capacity.fetch_min(bytes, Ordering::Relaxed);
        self.evict(&mut lock(&self.inner), bytes, None);
        lock(&self.spare).clear();
    }

    /// Forgets all entries that are loaded.
    pub fn forget(&self) {
        let Inner { slots, clock, bytes, spare_slots } = &mut *lock(&self.inner);
        for (key, size) in clock.drain(..) {
            *bytes -= size;
            if let Some(slot) = slots.remove(&key) {
                self.reclaim(slot, spare_slots);
            }
        }
    }

    /// Whether the entry of `key` is here, or being loaded.
    pub fn has(&self, key: Key) -> bool {
        let slot = lock(&self.inner).slots.get(&key).cloned();
        slot.is_some_and(|slot| !slot.entry.try_lock().is_ok_and(|entry| entry.is_none()))
    }

    /// The entry of `key`, by `load` if it is not here. `load` is given memory for values, with others in it.
    pub fn get(
        &self,
        key: Key,
        load: impl FnOnce(Vec<u8>) -> Result<Entry, FastPathError>,
    ) -> Result<Arc<Entry>, FastPathError> {
        let slot = {
            let Inner { slots, spare_slots, .. } = &mut *lock(&self.inner);
            Arc::clone(slots.entry(key).or_insert_with(|| spare_slots.pop().unwrap_or_default()))
        };
        let mut entry = if let Ok(entry) = slot.entry.try_lock() {
            entry
        } else {
            // Another thread is loading it.
            let _wait = span(Kind::WaitPage);
            lock(&slot.entry)
        };
        if let Some(found) = &*entry {
            slot.used.store(true, Ordering::Relaxed);
            let found = Arc::clone(found);
            drop(entry);
            self.put_back(slot);
            return Ok(found);
        }
        let mut spare = lock(&self.spare).pop();
        let buffer = spare.as_mut().and_then(Arc::get_mut).map(Entry::take_buffer).unwrap_or_default();
        // A page loads its dictionary on the way.
        let loading = (key.page != Key::DICTIONARY).then(|| Loading::begin(self));
        let loaded = load(buffer);
        drop(loading);
        match loaded {
            Ok(loaded) => {
                let loaded = reused(spare, loaded);
                *entry = Some(Arc::clone(&loaded));
                drop(entry);
                self.admit(key, &slot, loaded.bytes());
                self.put_back(slot);
                Ok(loaded)
            }
            Err(fault) => {
                drop(entry);
                let mut inner = lock(&self.inner);
                // The thread that has the entry now loads it, and may want `inner` for that: do not wait for
                // it.
                let is_empty = slot.entry.try_lock().is_ok_and(|entry| entry.is_none());
                if is_empty && inner.slots.get(&key).is_some_and(|s| Arc::ptr_eq(s, &slot)) {
                    inner.slots.remove(&key);
                }
                Err(fault)
            }
        }
    }

    fn admit(&self, key: Key, slot: &Arc<Slot>, bytes: usize) {
        let mut inner = lock(&self.inner);
        // A failed load by another thread may have removed the slot meanwhile.
        if !inner.slots.get(&key).is_some_and(|s| Arc::ptr_eq(s, slot)) {
            return;
        }
        inner.clock.push_back((key, bytes));
        inner.bytes += bytes;
        self.evict(&mut inner, self.capacity(), Some(key));
    }

    /// Forgets entries until there are no more than `capacity` bytes, or one entry.
    fn evict(&self, inner: &mut Inner, capacity: usize, latest: Option<Key>) {
        while inner.bytes > capacity && inner.clock.len() > 1 {
            let Some((oldest, bytes)) = inner.clock.pop_front() else { break };
            let used = inner.slots.get(&oldest).is_some_and(|s| s.used.swap(false, Ordering::Relaxed));
            if used || latest == Some(oldest) {
                inner.clock.push_back((oldest, bytes));
            } else {
                inner.bytes -= bytes;
                if let Some(slot) = inner.slots.remove(&oldest) {
                    self.reclaim(slot, &mut inner.spare_slots);
                }
            }
        }
    }

    /// Takes the memory of a slot that went meanwhile.
    fn put_back(&self, slot: Arc<Slot>) {
        if Arc::strong_count(&slot) == 1 {
            self.reclaim(slot, &mut lock(&self.inner).spare_slots);
        }
    }

    /// Takes the memory of a slot that went, where nobody else holds it.
    fn reclaim(&self, mut slot: Arc<Slot>, slots: &mut Vec<Arc<Slot>>) {
        let Some(own) = Arc::get_mut(&mut slot) else { return };
        own.used = AtomicBool::new(false);
        let entry = own.entry.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if slots.len() < self.most_spare() {
            slots.push(slot);
        }
        if let Some(entry) = entry {
            self.release(entry);
        }
    }

    /// Entries that are kept to be used again, at most. There is one for each thread that decodes, and one more, since not all
    /// that read may have been seen to decode at once.
    fn most_spare(&self) -> usize {
        self.most_loading.load(Ordering::Relaxed) + 1
    }

    /// Takes an entry back, to use its memory again where nobody else has it: neither this cache nor another reader.
    pub fn release(&self, mut entry: Arc<Entry>) {
        let Some(own) = Arc::get_mut(&mut entry).filter(|own| own.bytes() <= MAX_SPARE_BYTES) else {
            return;
        };
        // Without the dictionary that it may have been read by.
        *own = Entry::Pixels(own.take_buffer());
        let mut spare = lock(&self.spare);
        if spare.len() < self.most_spare() {
            spare.push(entry);
        }
    }

    /// Bytes kept now.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        lock(&self.inner).bytes
    }
}

impl PageCache for Cache {
    fn max_bytes(&self) -> usize {
        self.capacity()
    }

    fn keep_at_most(&self, bytes: usize) {
        self.limit(bytes);
    }

    fn forget_all(&self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests;
