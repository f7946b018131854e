//! Files of this machine as if they lay in a bucket: what is read of them is recorded as the requests that it would be there.
//!
//! ```text
//!  a copy in the scratch folder ─ wellread-counted:///scratch/… ─▶ the format reads ─▶ near ranges joined, long ones cut,
//!                                   heads and tails of files once ─▶ place::note_ranges
//! ```
//!
//! Joining and keeping are those of `wellread-remote` (`docs/decisions/0044-remote-places.md`).

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use wellread_store::place::{self, File, Listing, Metadata, Part, Place, ReadRanges, note_ranges};

/// What stands before the path.
const SCHEME: &str = "wellread-counted://";
/// Bytes at the beginning and at the end of a file that come with one request, and are kept.
const WINDOW: u64 = 64 << 10;
/// Windows that are kept.
const KEPT: usize = 1 << 10;
/// A gap that is fetched along, and bytes of a request at most.
const GAP: u64 = 64 << 10;
const PIECE: u64 = 8 << 20;

#[derive(Debug)]
struct Counted;

static COUNTED: Counted = Counted;
wellread_store::register_place!("wellread-counted", COUNTED);

/// Files whose first or last window was fetched.
static WINDOWS: Mutex<Option<HashSet<(PathBuf, u64)>>> = Mutex::new(None);

/// The address of a file or folder of this machine, read of which is recorded.
pub(super) fn address(path: &Path) -> io::Result<PathBuf> {
    let whole = std::path::absolute(path)?;
    let text = whole.to_str().ok_or_else(|| io::Error::other("the scratch folder's name is no Unicode"))?;
    Ok(PathBuf::from(format!("{SCHEME}{text}")))
}

/// Forgets which windows were fetched.
pub(super) fn forget() {
    *WINDOWS.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
}

#[derive(Debug)]
struct CountedFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl CountedFile {
    /// The window that holds a range wholly.
    fn window(&self, offset: u64, end: u64) -> Option<Range<u64>> {
        if end <= WINDOW {
            return Some(0..WINDOW.min(self.length));
        }
        let start = self.length.saturating_sub(WINDOW);
        (offset >= start).then_some(start..self.length)
    }
}

impl ReadRanges for CountedFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.saturating_add(buffer.len() as u64);
        let Some(window) = self.window(offset, end) else {
            return self.read_ranges(&mut [Part { offset, buffer }]);
        };
        let mut kept = WINDOWS.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get_or_insert_with(HashSet::new);
        if kept.len() >= KEPT {
            kept.clear();
        }
        if !buffer.is_empty() && kept.insert((self.path.clone(), window.start)) {
            note_ranges(&self.path, &[window]);
        }
        self.file.peek_exact_at(buffer, offset)
    }

    fn read_ranges(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        let wanted =
            parts.iter().map(|part| part.offset..part.offset.saturating_add(part.buffer.len() as u64));
        note_ranges(&self.path, &requests(wanted.collect()));
        parts.iter_mut().try_for_each(|part| self.file.peek_exact_at(part.buffer, part.offset))
    }
}

/// The requests that some ranges take.
fn requests(mut wanted: Vec<Range<u64>>) -> Vec<Range<u64>> {
    wanted.retain(|range| !range.is_empty());
    wanted.sort_unstable_by_key(|range| range.start);
    let mut runs: Vec<Range<u64>> = vec![];
    for range in wanted {
        match runs.last_mut() {
            Some(run) if range.start <= run.end.saturating_add(GAP) => run.end = run.end.max(range.end),
            _ => runs.push(range),
        }
    }
    let cut = |run: Range<u64>| {
        let starts = (run.start..run.end).step_by(PIECE as usize);
        starts.map(move |start| start..run.end.min(start + PIECE))
    };
    runs.into_iter().flat_map(cut).collect()
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
        assert!(place::is_registered(&path) && place::link(&path).is_none());
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
        assert_eq!(ranges, [0..WINDOW, 100_000..111_000]);
        assert_eq!(requests(std::iter::once(0..PIECE + 1).collect()), [0..PIECE, PIECE..PIECE + 1]);
    }
}
