//! Files of this machine as if they lay in a bucket: reads are recorded as the requests that they would be there.
//!
//! ```text
//!  a copy in the scratch folder ─ wellread-counted:///scratch/… ─▶ the format reads ─▶ near ranges joined, long ones cut,
//!       └ asked for ahead: held by a guard,       heads and tails of files once ─▶ place::note_ranges
//!         recorded then, not when it is read ─────────────────────────────────────────▲
//! ```
//!
//! Joining is that of all places, keeping that of `wellread-remote` (`docs/decisions/0044-remote-places.md`).

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_store::place::{
    self, FetchAhead, File, FileRanges, HEAD, Listing, Metadata, Part, Place, PrefetchGuard, Prefetched,
    ReadRanges, TAIL, note_ranges, requests, window,
};

/// The prefix of the path.
const SCHEME: &str = "wellread-counted://";
/// Ends of files that are kept.
const KEPT: usize = 1 << 10;
/// Bytes that a reader's requests ahead hold, as a link's do if nothing else is said.
pub(super) const MAX_BYTES_AHEAD: u64 = 256 << 20;

#[derive(Debug)]
struct Counted;

static COUNTED: Counted = Counted;
wellread_store::register_place!("wellread-counted", COUNTED);

/// Files whose first or last bytes were fetched, and where these begin.
static WINDOWS: Mutex<Option<HashSet<(PathBuf, u64)>>> = Mutex::new(None);

/// Ranges of files that were asked for ahead, each with the number of the guard that holds it.
static HELD: Mutex<BTreeMap<PathBuf, HeldRanges>> = Mutex::new(BTreeMap::new());
type HeldRanges = Vec<(u64, Range<u64>)>;

/// The address of a file or folder of this machine, read of which is recorded.
pub(super) fn address(path: &Path) -> io::Result<PathBuf> {
    let whole = std::path::absolute(path)?;
    let text = whole.to_str().ok_or_else(|| io::Error::other("the scratch folder's name is no Unicode"))?;
    Ok(PathBuf::from(format!("{SCHEME}{text}")))
}

/// Forgets which windows were fetched.
pub(super) fn forget() {
    *lock(&WINDOWS) = None;
}

fn local(path: &Path) -> &Path {
    path.to_str().and_then(|text| text.strip_prefix(SCHEME)).map_or(path, Path::new)
}

impl Place for Counted {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        place::metadata(local(path))
    }

    fn list(&self, folder: &Path) -> io::Result<Listing> {
        place::list(local(folder))
    }

    fn open(&self, path: &Path) -> io::Result<(File, u64)> {
        let (file, length) = place::open(local(path))?;
        Ok((File::Other(Box::new(CountedFile { path: path.to_owned(), file, length })), length))
    }

    fn ahead(&self, most: Option<u64>) -> Option<Box<dyn FetchAhead>> {
        let most = most.map_or(MAX_BYTES_AHEAD, |most| most.min(MAX_BYTES_AHEAD));
        Some(Box::new(Asking { most, held: Arc::default() }))
    }
}

#[derive(Debug)]
struct CountedFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl ReadRanges for CountedFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.saturating_add(buffer.len() as u64);
        let range = offset..end;
        if !buffer.is_empty() && !missing(&self.path, &range).is_empty() {
            match window(self.length, offset, end) {
                Some(window) if keep(&self.path, window.start) => note_ranges(&self.path, &[window]),
                Some(_) => {}
                None => note_ranges(&self.path, &requests(&[range])),
            }
        }
        self.file.peek_exact_at(buffer, offset)
    }

    fn read_ranges(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        let all = parts.iter().map(|part| part.offset..part.offset.saturating_add(part.buffer.len() as u64));
        let wanted: Vec<_> = all.filter(|range| !missing(&self.path, range).is_empty()).collect();
        note_ranges(&self.path, &requests(&wanted));
        parts.iter_mut().try_for_each(|part| self.file.peek_exact_at(part.buffer, part.offset))
    }
}

/// A reader's requests ahead.
#[derive(Debug)]
struct Asking {
    most: u64,
    /// Bytes that its guards hold.
    held: Arc<AtomicU64>,
}

impl FetchAhead for Asking {
    // A sample may be short enough to come whole where its set is not: its rows are counted one by one.
    fn fetch(&mut self, files: &[FileRanges<'_>], _batches: usize) -> io::Result<PrefetchGuard> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut asked = Asked { number, files: vec![], bytes: 0, held: Arc::clone(&self.held) };
        for &(path, ranges) in files {
            // A missing file gives its error when it is read.
            let Ok(Metadata { length, .. }) = place::metadata(local(path)) else { continue };
            let inside = ranges.iter().map(|range| {
                let start =
                    if *range == TAIL { length.saturating_sub(HEAD) } else { range.start.min(length) };
                start..range.end.min(length)
            });
            let planned = requests(&inside.filter(|range| !is_kept(path, length, range)).collect::<Vec<_>>());
            let new: Vec<_> = planned.iter().flat_map(|range| missing(path, range)).collect();
            note_ranges(path, &new);
            // The link keeps an end that is asked for by its number.
            if ranges.contains(&TAIL) {
                keep(path, length.saturating_sub(HEAD));
            }
            asked.bytes += new.iter().map(|range| range.end - range.start).sum::<u64>();
            asked.files.push(path.to_owned());
            lock(&HELD)
                .entry(path.to_owned())
                .or_default()
                .extend(planned.into_iter().map(|range| (number, range)));
        }
        self.held.fetch_add(asked.bytes, Ordering::Relaxed);
        Ok(Box::new(asked))
    }

    fn is_full(&self) -> bool {
        self.held.load(Ordering::Relaxed) >= self.most
    }
}

/// The ranges of one request: they are held as long as this.
#[derive(Debug)]
struct Asked {
    number: u64,
    files: Vec<PathBuf>,
    bytes: u64,
    /// Bytes of all guards of the reader.
    held: Arc<AtomicU64>,
}

impl Prefetched for Asked {
    fn give_up(&mut self) {
        let mut held = lock(&HELD);
        for path in self.files.drain(..) {
            if let Some(ranges) = held.get_mut(&path) {
                ranges.retain(|(number, _)| *number != self.number);
                if ranges.is_empty() {
                    held.remove(&path);
                }
            }
        }
        self.held.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// The parts of a range that nobody asked for ahead.
fn missing(path: &Path, range: &Range<u64>) -> Vec<Range<u64>> {
    let is_near = |of: &Range<u64>| of.start < range.end && range.start < of.end;
    let all = lock(&HELD);
    let of_file = all.get(path).into_iter().flatten().map(|(_, range)| range);
    let mut held: Vec<Range<u64>> = of_file.filter(|of| is_near(of)).cloned().collect();
    drop(all);
    held.sort_unstable_by_key(|of| of.start);
    let (mut found, mut at) = (vec![], range.start);
    for of in held {
        if of.start > at {
            found.push(at..of.start);
        }
        at = at.max(of.end);
    }
    if at < range.end {
        found.push(at..range.end);
    }
    found
}

/// Whether a range came along with an end of its file.
fn is_kept(path: &Path, length: u64, range: &Range<u64>) -> bool {
    window(length, range.start, range.end).is_some_and(|end| {
        lock(&WINDOWS).as_ref().is_some_and(|kept| kept.contains(&(path.to_owned(), end.start)))
    })
}

/// Keeps an end of a file; whether it was not kept before.
fn keep(path: &Path, start: u64) -> bool {
    let mut kept = lock(&WINDOWS);
    let kept = kept.get_or_insert_with(HashSet::new);
    if kept.len() >= KEPT {
        kept.clear();
    }
    kept.insert((path.to_owned(), start))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_store::place::Recording;

    #[test]
    fn reads_are_recorded_as_requests() {
        let dir = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..400_000u32).map(|i| i as u8).collect();
        std::fs::write(dir.path().join("a"), &bytes).unwrap();
        let path = address(&dir.path().join("a")).unwrap();
        assert!(place::is_remote(&path) && place::link(&path).is_none());
        forget();
        let recording = Recording::start();
        let (file, length) = place::open(&path).unwrap();
        assert_eq!(length, 400_000);
        let (mut head, mut one, mut two) = ([0; 10], [0; 1000], [0; 1000]);
        file.peek_exact_at(&mut head, 5).unwrap();
        file.peek_exact_at(&mut head, 500).unwrap();
        let mut parts =
            [Part { offset: 100_000, buffer: &mut one }, Part { offset: 110_000, buffer: &mut two }];
        file.read_ranges(&mut parts).unwrap();
        assert_eq!((one[0], two[999]), (bytes[100_000], bytes[110_999]));
        let ranges: Vec<_> = recording.take().into_iter().map(|one| one.range).collect();
        assert_eq!(ranges, [0..HEAD, 100_000..111_000]);
    }

    #[test]
    fn what_was_asked_for_ahead_is_recorded_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ahead"), vec![1; 400_000]).unwrap();
        let path = address(&dir.path().join("ahead")).unwrap();
        let recording = Recording::start();
        let (file, _) = place::open(&path).unwrap();
        let mut asking = place::of(&path).ahead(Some(1)).unwrap();
        assert!(!asking.is_full());
        let near: [Range<u64>; 3] = [100_000..101_000, 110_000..111_000, 500_000..600_000];
        let guard = asking.fetch(&[(path.as_path(), near.as_slice())], 1).unwrap();
        assert!(asking.is_full());
        let more = asking.fetch(&[(path.as_path(), std::slice::from_ref(&(105_000..112_000)))], 1).unwrap();
        let mut bytes = [0; 1000];
        // Bytes of both guards together, and of the gap between.
        file.peek_exact_at(&mut bytes, 110_500).unwrap();
        file.peek_exact_at(&mut bytes, 103_000).unwrap();
        drop(guard);
        file.peek_exact_at(&mut bytes, 110_500).unwrap();
        file.peek_exact_at(&mut bytes, 103_000).unwrap();
        drop(more);
        assert!(!asking.is_full() && !lock(&HELD).contains_key(&path));
        let ranges: Vec<_> = recording.take().into_iter().map(|one| one.range).collect();
        assert_eq!(ranges, [100_000..111_000, 111_000..112_000, 103_000..104_000]);
    }
}
