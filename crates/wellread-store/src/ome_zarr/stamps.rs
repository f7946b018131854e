//! Whether chunk and shard files are still what they were when they were first read.
//!
//! ```text
//!  a file was read ─▶ its length and time of the last change ─┬─ none known: kept for the next read
//!                                                             └─ other ones known: an error, and no mixture of old and new
//! ```
//!
//! Opening a set looks at no chunk, so that a file counts from its first read on. Remote places have versions, and are asked for
//! nothing. No lock is waited for: in a forked process its holder may not be there. A read that finds one taken is not checked, and the
//! next one is.

use crate::place::File;
use crate::stamp::Stamp;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::RwLock;

/// Parts of the files, each with a lock of its own.
const PARTS: usize = 16;
/// Files of a part that are known: about 10 MB in all parts together. Further files are not checked.
const MAX_FILES: usize = 1 << 14;

/// The stamps of files at their first read, by row and number of the chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkStamps {
    parts: [RwLock<HashMap<(usize, usize), u64>>; PARTS],
    state: RandomState,
}

impl ChunkStamps {
    fn part(&self, key: (usize, usize)) -> &RwLock<HashMap<(usize, usize), u64>> {
        &self.parts[self.state.hash_one(key) as usize % PARTS]
    }

    /// Whether the file of `key`, which was read just now, is another than at its first read. From that on it is known.
    pub fn is_other(&self, key: (usize, usize), file: &File) -> bool {
        let part = self.part(key);
        let Ok(known) = part.try_read() else { return false };
        if let Some(first) = known.get(&key) {
            let first = *first;
            drop(known);
            return Stamp::of(file).is_some_and(|now| self.state.hash_one(now) != first);
        }
        let has_room = known.len() < MAX_FILES;
        drop(known);
        // The system told it on opening: a first read, which is compared with nothing, asks no more.
        if has_room
            && let Some(opened) = Stamp::when_opened(file)
            && let Ok(mut known) = part.try_write()
        {
            known.entry(key).or_insert(self.state.hash_one(opened));
        }
        false
    }

    /// Whether the file of `key` was read before, and is known.
    pub fn has(&self, key: (usize, usize)) -> bool {
        self.part(key).try_read().is_ok_and(|known| known.contains_key(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_file_counts_from_its_first_read_on() {
        let stamps = ChunkStamps::default();
        let file = tempfile::tempfile().unwrap();
        let is_other = |key| stamps.is_other(key, &File::from(file.try_clone().unwrap()));
        assert!(!stamps.has((3, 1)) && !is_other((3, 1)) && stamps.has((3, 1)));
        file.set_len(7).unwrap();
        assert!(is_other((3, 1)) && is_other((3, 1)) && !is_other((3, 2)));
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(9)).unwrap();
        assert!(is_other((3, 2)));
    }
}
