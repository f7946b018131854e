//! Where LZW strips can be entered, so that a few rows of a long strip cost a few rows.
//!
//! Microscopes write a plane as one LZW strip. After a clear code, mostly 3,838 codes apart, a decoder starts anew.
//! Some of those places are kept of each strip that was read in part.
//!
//! ```text
//!  strip   |■■■■■■|■■■■■■■|■■■■■■|■■■■■■■|■■■■■■|…      | a clear code
//!  rows                       [wanted]
//!  read             from here ↑        ↑ to here: the last place before, the first one behind
//! ```
//!
//! Reading finds the places. The first read of a strip follows its codes from its start to the wanted rows, without
//! decoding them ([`super::lzw`], `skim`). A later one that goes farther follows them from the last known place; both
//! add places. They are at least [`RESTART_SPACING`] apart, and a store keeps at most [`MEMORY`] bytes of them, of the strips
//! that were read last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Decoded bytes between two places that are kept.
const RESTART_SPACING: usize = 16 << 10;
/// Bytes of places, and of the tables that find them, that a store keeps.
const MEMORY: usize = 64 << 20;
/// Bytes that a strip's places take beside themselves, about.
const OVERHEAD: usize = 96;
/// Parts that threads use without waiting for each other.
const SHARDS: usize = 16;
/// Stored bytes that a strip must have to be worth it.
pub(super) const MIN_STRIP: u64 = 64 << 10;

/// A place behind a clear code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Restart {
    /// Number of the strip's bit that follows.
    pub(super) bit: u32,
    /// Number of the decoded byte that it stands for.
    pub(super) pos: u32,
}

impl Restart {
    /// The start of a strip, where there need be no clear code.
    pub(super) const START: Self = Self { bit: 0, pos: 0 };
}

/// The places of a strip that are known so far, in their order.
#[derive(Debug, Default)]
pub(super) struct StripRestarts {
    known: Arc<[Restart]>,
    new: Vec<Restart>,
}

impl StripRestarts {
    /// The last place at or before decoded byte `pos`.
    pub(super) fn before(&self, pos: usize) -> Option<Restart> {
        let n = self.known.partition_point(|place| place.pos as usize <= pos);
        self.known[..n].last().copied()
    }

    /// The first place at or behind decoded byte `pos`.
    pub(super) fn behind(&self, pos: usize) -> Option<Restart> {
        let n = self.known.partition_point(|place| (place.pos as usize) < pos);
        self.known.get(n).copied()
    }

    /// Notes a place, unless it is near to the last one, or before it.
    pub(super) fn note(&mut self, bit: usize, pos: usize) {
        let last = self.new.last().or(self.known.last()).map_or(0, |place| place.pos as usize);
        if pos >= last.saturating_add(RESTART_SPACING)
            && let (Ok(bit), Ok(pos)) = (u32::try_from(bit), u32::try_from(pos))
        {
            self.new.push(Restart { bit, pos });
        }
    }
}

/// Identifies an open file: the number of a row's file among all of this process, and which of the files that its images refer to.
pub(super) type FileKey = (u64, u32);

/// A strip: its file, as files of stores are told apart, and where it begins there.
type StripKey = (FileKey, u64);

/// The places of a store's strips.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    shards: [Mutex<Shard>; SHARDS],
}

/// Strips used lately, and strips that were when the former had grown to half of the memory and took their place.
#[derive(Debug, Default)]
struct Shard {
    recent: HashMap<StripKey, Arc<[Restart]>>,
    older: HashMap<StripKey, Arc<[Restart]>>,
    /// Bytes of `recent`.
    bytes: usize,
}

impl Shard {
    fn put(&mut self, strip: StripKey, places: Arc<[Restart]>) {
        let size = |places: &[Restart]| OVERHEAD + size_of_val(places);
        let bytes = size(&places);
        if self.bytes + bytes > MEMORY / SHARDS / 2 {
            self.older = std::mem::take(&mut self.recent);
            self.bytes = 0;
        }
        let replaced = self.recent.insert(strip, places);
        // The entry that it replaces may have gone above, with all others.
        self.bytes = self.bytes + bytes - replaced.map_or(0, |places| size(&places));
    }

    fn get(&mut self, strip: StripKey) -> Option<Arc<[Restart]>> {
        if let Some(places) = self.recent.get(&strip) {
            return Some(places.clone());
        }
        let places = self.older.remove(&strip)?;
        self.put(strip, places.clone());
        Some(places)
    }
}

impl Restarts {
    /// The known places of a strip. Nobody waits for it: where another thread is at it, or a process was forked
    /// meanwhile, nothing is.
    pub(super) fn of(&self, strip: StripKey) -> StripRestarts {
        let mut shard = self.shard(strip).try_lock();
        let known = shard.as_mut().ok().and_then(|shard| shard.get(strip)).unwrap_or_default();
        StripRestarts { known, new: vec![] }
    }

    /// Keeps what was noted of a strip.
    pub(super) fn keep(&self, strip: StripKey, places: &StripRestarts) {
        if places.new.is_empty() {
            return;
        }
        let all = places.known.iter().chain(&places.new).copied().collect();
        if let Ok(mut shard) = self.shard(strip).try_lock() {
            shard.put(strip, all);
        }
    }

    /// Forgets a strip that is not what it was.
    pub(super) fn forget(&self, strip: StripKey) {
        if let Ok(mut shard) = self.shard(strip).try_lock() {
            shard.older.remove(&strip);
            // Its bytes stay counted until the next change of generations.
            shard.recent.remove(&strip);
        }
    }

    fn shard(&self, ((file, source), _): StripKey) -> &Mutex<Shard> {
        &self.shards[(file.wrapping_add(u64::from(source)) % SHARDS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_apart_and_found() {
        let restarts = Restarts::default();
        let strip = ((7, 0), 8);
        let mut places = restarts.of(strip);
        assert_eq!((places.before(usize::MAX), places.behind(0)), (None, None));
        for i in 1..=100 {
            places.note(i * 5000, i * 5000);
        }
        restarts.keep(strip, &places);
        let places = restarts.of(strip);
        let known = [20_000, 40_000, 60_000].map(|pos| Restart { bit: pos, pos });
        assert_eq!(places.known[..3], known);
        assert_eq!((places.before(19_999), places.before(20_000)), (None, Some(known[0])));
        assert_eq!((places.behind(20_000), places.behind(20_001)), (Some(known[0]), Some(known[1])));
        assert_eq!(places.behind(500_001), None);
        // A longer read goes on where they end.
        let mut places = places;
        places.note(1, 300_000);
        places.note(9_000_000, 515_999);
        places.note(9_000_001, 516_384);
        restarts.keep(strip, &places);
        assert_eq!(restarts.of(strip).known.last(), Some(&Restart { bit: 9_000_001, pos: 516_384 }));
        assert!(restarts.of(((7, 0), 9)).known.is_empty());
        restarts.forget(strip);
        assert!(restarts.of(strip).known.is_empty());
    }

    #[test]
    fn memory_is_bounded_and_the_last_used_stay() {
        let restarts = Restarts::default();
        let mut places = StripRestarts::default();
        for i in 1..=1000 {
            places.note(i, i * RESTART_SPACING);
        }
        // All of one shard, several times what that may keep.
        let strips = 5 * MEMORY / SHARDS / 8000;
        for strip in 0..strips {
            restarts.keep(((0, 0), strip as u64), &places);
            assert_eq!(restarts.of(((0, 0), 0)).known.len(), 1000, "{strip}: it is in use");
        }
        let shard = restarts.shards[0].lock().unwrap();
        let kept = shard.recent.len() + shard.older.len();
        assert!(kept * (8000 + OVERHEAD) <= MEMORY / SHARDS, "{kept}");
        let is_kept = |strip| shard.recent.contains_key(&strip) || shard.older.contains_key(&strip);
        assert!(is_kept(((0, 0), strips as u64 - 1)) && !is_kept(((0, 0), 1)));
    }
}
