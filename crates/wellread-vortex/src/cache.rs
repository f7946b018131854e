//! Pieces of columns that are kept open, shared by all threads of a table, up to a number of bytes.
//!
//! Opening a piece up takes as long as fetching several images from it, and random batches come back to the same
//! pieces. Most of a piece lies in the mapped file and counts for nothing; lists' bounds and decompressed values
//! do.

use crate::piece::Piece;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Column and index of a piece.
pub(crate) type Key = (u32, u32);

struct Kept {
    piece: Arc<Piece>,
    bytes: usize,
    used: AtomicBool,
}

#[derive(Default)]
struct Inner {
    kept: HashMap<Key, Kept>,
    /// In the order in which they are considered for eviction.
    clock: VecDeque<Key>,
    bytes: usize,
}

/// A bounded cache with second-chance eviction: an entry that was used since it was last considered stays.
///
/// Two threads that want the same piece at once may both open it, which costs little where values stay compressed;
/// the first one's is kept.
pub(crate) struct Cache {
    inner: Mutex<Inner>,
    capacity: usize,
}

impl Cache {
    /// A cache of `capacity` bytes; it keeps the latest piece even where that one alone is larger.
    pub fn new(capacity: usize) -> Self {
        Self { inner: Mutex::default(), capacity }
    }

    /// The piece of `key`, by `load` if it is not here.
    pub fn get<E>(&self, key: Key, load: impl FnOnce() -> Result<Piece, E>) -> Result<Arc<Piece>, E> {
        if let Some(kept) = self.lock().kept.get(&key) {
            kept.used.store(true, Ordering::Relaxed);
            return Ok(Arc::clone(&kept.piece));
        }
        let piece = Arc::new(load()?);
        let bytes = piece.bytes();
        let mut inner = self.lock();
        if let Some(kept) = inner.kept.get(&key) {
            return Ok(Arc::clone(&kept.piece));
        }
        inner.kept.insert(key, Kept { piece: Arc::clone(&piece), bytes, used: AtomicBool::new(false) });
        inner.clock.push_back(key);
        inner.bytes += bytes;
        while inner.bytes > self.capacity && inner.clock.len() > 1 {
            let Some(oldest) = inner.clock.pop_front() else { break };
            let stays = oldest == key
                || inner.kept.get(&oldest).is_some_and(|k| k.used.swap(false, Ordering::Relaxed));
            if stays {
                inner.clock.push_back(oldest);
            } else if let Some(gone) = inner.kept.remove(&oldest) {
                inner.bytes -= gone.bytes;
            }
        }
        Ok(piece)
    }

    /// Whether the piece of `key` is here.
    pub fn has(&self, key: Key) -> bool {
        self.lock().kept.contains_key(&key)
    }

    /// Forgets all pieces.
    pub fn forget(&self) {
        *self.lock() = Inner::default();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_bound_holds_and_what_is_used_stays() {
        let one = Piece::of_bytes(1000).bytes();
        let cache = Cache::new(10 * one);
        let loads = Cell::new(0);
        let get = |i| {
            let load = || {
                loads.set(loads.get() + 1);
                Ok::<_, String>(Piece::of_bytes(1000))
            };
            cache.get((0, i), load).unwrap()
        };
        for i in 0..100 {
            get(i);
            get(0);
            assert!(cache.lock().bytes <= 10 * one);
        }
        assert_eq!(loads.get(), 100, "piece 0 was in use and must have stayed");
        cache.get((1, 0), || Ok::<_, String>(Piece::of_bytes(1 << 20))).unwrap();
        cache
            .get((1, 0), || -> Result<_, String> { panic!("the latest piece is kept, however large") })
            .unwrap();
        assert!(cache.get((2, 0), || Err("no".to_owned())).is_err() && !cache.has((2, 0)));
        assert!(cache.get((2, 0), || Ok::<_, String>(Piece::of_bytes(1))).is_ok());
        cache.forget();
        assert_eq!(cache.lock().bytes, 0);
        assert!(cache.get((2, 0), || Err("loaded again".to_owned())).is_err());
    }
}
