//! Fetching ahead, for whoever knows which rows come next: what stores want, handed to the places where it lies.
//!
//! ```text
//!  Fetching::of(set)  none for the file system: nothing is planned, nothing asked
//!      │ Store::heads of rows far ahead ─▶ PrefetchGuards  1 the bytes that tell where pixels lie
//!      │ Store::ranges of rows soon read ─▶ PrefetchGuards 2 the pixels, as they are compressed
//!      ▼
//!  the store reads these rows as ever                     3 decode
//! ```

use crate::place::{self, FetchAhead, FileRanges, PrefetchGuard, WantedRanges};
use std::path::Path;
use std::sync::Mutex;

/// Bytes at the end of a file that hold most of what tells where the pixels of a thousand rows lie.
pub const END: u64 = 1 << 20;

/// Bytes of files that are remote, which are read in many small parts, one after the other. They are asked for at once, and held as
/// long as this.
#[derive(Debug, Default)]
pub struct HeldBytes {
    _held: Mutex<Vec<PrefetchGuard>>,
}

impl HeldBytes {
    /// Asks for the end of a file of this length, where metadata lie.
    pub fn of_end(file: &Path, length: u64) -> Self {
        let mut wanted = WantedRanges::default();
        wanted.end(file, length, END);
        Self::of(&wanted)
    }

    /// Asks for bytes of files that all lie in one place.
    pub fn of(wanted: &WantedRanges) -> Self {
        let fetching = wanted.files().next().and_then(|(first, _)| Fetching::of(first, None));
        let held = fetching.map(|mut fetching| fetching.fetch(wanted)).unwrap_or_default();
        Self { _held: Mutex::new(held) }
    }
}

/// One reader's fetching, in all places where files of its sets lie.
#[derive(Debug)]
pub struct Fetching {
    /// Bytes that are held at most, in each place.
    most: Option<u64>,
    /// By scheme; `None` where a place has no such thing.
    places: Vec<(String, Option<Box<dyn FetchAhead>>)>,
}

impl Fetching {
    /// For a set at `path`, if its place gains by being asked ahead. No more than `most` bytes are held, or than the place's own bound.
    pub fn of(path: &Path, most: Option<u64>) -> Option<Self> {
        let scheme = place::scheme(path)?.to_owned();
        let fetching = place::of(path).ahead(most)?;
        Some(Self { most, places: vec![(scheme, Some(fetching))] })
    }

    /// Asks for the first bytes of these files.
    pub fn first_bytes<'a>(&mut self, files: impl IntoIterator<Item = &'a Path>) -> Vec<PrefetchGuard> {
        let mut wanted = WantedRanges::default();
        for file in files {
            wanted.head(file);
        }
        self.fetch(&wanted)
    }

    /// Whether something that was asked for waits until guards go.
    pub fn is_full(&self) -> bool {
        self.places.iter().any(|(_, fetching)| fetching.as_ref().is_some_and(|fetching| fetching.is_full()))
    }

    /// Asks the places. A request that cannot be made ahead is made when its bytes are read, and reports its
    /// error then.
    pub fn fetch(&mut self, wanted: &WantedRanges) -> Vec<PrefetchGuard> {
        self.fetch_batch(wanted, 1)
    }

    /// Asks the places for the bytes of a batch; `batches` of them, about, are asked for in all. A file whose bytes
    /// are all wanted in the end, in short ranges, may come whole.
    pub fn fetch_batch(&mut self, wanted: &WantedRanges, batches: usize) -> Vec<PrefetchGuard> {
        let files: Vec<FileRanges<'_>> = wanted.files().collect();
        let of_places = files.chunk_by(|a, b| place::scheme(a.0) == place::scheme(b.0));
        let mut guards = vec![];
        for files in of_places {
            let Some(scheme) = place::scheme(files[0].0) else { continue };
            let at = self.places.iter().position(|(known, _)| known == scheme).unwrap_or_else(|| {
                self.places.push((scheme.to_owned(), place::of(files[0].0).ahead(self.most)));
                self.places.len() - 1
            });
            if let (_, Some(fetching)) = &mut self.places[at] {
                guards.extend(fetching.fetch(files, batches).ok());
            }
        }
        guards
    }
}
