//! Files that stay open, mapped once parts of them were read often enough.
//!
//! A crop is a few columns of many rows. Reading copies the rows, whole; a map copies nothing. But its pages must be put in
//! place first, which costs more than one copy and less than many.
//!
//! ```text
//!  part of a file ─ fewer bytes read so than it has ─▶ pread
//!                 └ else, where there is room ───────▶ mapped: the bytes as they lie in the page cache
//! ```

use super::Mapping;
use crate::place::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Most files that are mapped at a time: a quarter of the mappings that Linux lets a process have unless it is told otherwise.
const MOST_MAPPED: usize = 1 << 14;

/// Files that are mapped.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// The parts of an open file that were read, and its map where it has one.
#[derive(Debug, Default)]
pub(crate) struct KeptMap {
    /// Bytes that were read for parts.
    read: AtomicU64,
    /// Nothing inside where it could not be mapped: it is not tried again.
    map: OnceLock<Option<Counted>>,
}

impl KeptMap {
    /// The file, where it is mapped and could be read so far.
    pub fn get(&self) -> Option<&Mapping> {
        self.map.get()?.as_ref().map(|Counted(map)| map).filter(|map| map.is_whole())
    }

    /// As [`Self::get`] for a part that takes `bytes` to read: maps the file once as many were read as it has.
    pub fn get_for_part(&self, file: &File, length: u64, bytes: u64) -> Option<&Mapping> {
        if self.map.get().is_none() {
            let read = self.read.fetch_add(bytes, Ordering::Relaxed);
            if read < length {
                return None;
            }
            // Another thread may have been first.
            let _ = self.map.set(Counted::of(file));
        }
        self.get()
    }
}

/// One of [`MAPPED`].
#[derive(Debug)]
struct Counted(Mapping);

impl Counted {
    fn of(file: &File) -> Option<Self> {
        let file = file.local().filter(|_| may_map())?;
        let more = |mapped| (mapped < MOST_MAPPED).then_some(mapped + 1);
        MAPPED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        if let Ok(map) = Mapping::of(file) {
            return Some(Self(map));
        }
        MAPPED.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether there is address space for maps. Where it is limited (`ulimit -v`), they would take what memory needs.
#[cfg(all(any(target_os = "linux", target_os = "macos"), target_pointer_width = "64", not(miri)))]
fn may_map() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes of an rlimit.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    known && limit.rlim_cur == libc::RLIM_INFINITY
}

#[cfg(not(all(any(target_os = "linux", target_os = "macos"), target_pointer_width = "64", not(miri))))]
fn may_map() -> bool {
    false
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(miri)))]
mod tests {
    use super::*;
    use crate::place;

    #[test]
    fn a_file_is_mapped_once_it_was_read_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, [7; 100]).unwrap();
        let (file, length) = place::open(&path).unwrap();
        let kept = KeptMap::default();
        assert!(
            kept.get_for_part(&file, length, 60).is_none() && kept.get_for_part(&file, length, 60).is_none()
        );
        assert!(kept.get().is_none());
        let is_limited = !may_map();
        let map = kept.get_for_part(&file, length, 60);
        assert_eq!(map.is_none(), is_limited);
        assert!(map.is_none_or(|map| map.as_ref().iter().all(|&byte| byte == 7)));
        assert_eq!(kept.get().is_none(), is_limited);
    }
}
