//! Asks for bytes before they are read: a format names the ranges, and a place makes requests of them.
//!
//! ```text
//!  rows ─ a store's heads(), ranges() ─▶ WantedRanges: files and ranges ─▶ FetchAhead of their place ─▶ PrefetchGuard
//!                                                                              │ fetched, kept           │ held until the rows
//!  the format reads as ever: File::read_exact_at ◀── what is there, or on its way ◀──────┘               ▼ were read
//! ```
//!
//! A format never learns where its bytes come from: it reads as if nobody had asked for them before.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes at the beginning of a file that headers are hoped to lie in.
pub const HEAD: u64 = 64 << 10;
/// Stands for the last [`HEAD`] bytes of a file, or all that it has, whatever its length.
pub const TAIL: Range<u64> = u64::MAX - HEAD..u64::MAX;

/// Bytes of files that are going to be read.
#[derive(Debug, Default)]
pub struct WantedRanges {
    files: BTreeMap<PathBuf, Vec<Range<u64>>>,
}

impl WantedRanges {
    /// Adds `length` bytes of a file from `offset` on. They may end behind the file.
    pub fn push(&mut self, file: &Path, offset: u64, length: u64) {
        if length == 0 {
            return;
        }
        let range = offset..offset.saturating_add(length);
        match self.files.get_mut(file) {
            Some(ranges) => ranges.push(range),
            None => {
                self.files.insert(file.to_owned(), vec![range]);
            }
        }
    }

    /// Adds the first bytes of a file: [`HEAD`].
    pub fn head(&mut self, file: &Path) {
        self.push(file, 0, HEAD);
    }

    /// Adds the last bytes of a file: [`HEAD`]. How long it is need not be known.
    pub fn tail(&mut self, file: &Path) {
        self.push(file, TAIL.start, HEAD);
    }

    /// Adds the last `most` bytes of a file of this length, or all where it has fewer.
    pub fn end(&mut self, file: &Path, length: u64, most: u64) {
        self.push(file, length.saturating_sub(most), length.min(most));
    }

    /// Adds all bytes of a file, however many these are.
    pub fn whole(&mut self, file: &Path) {
        self.push(file, 0, u64::MAX);
    }

    /// Cuts what is wanted from the beginning of files on to [`HEAD`]: for those who want to know what the files are.
    pub fn shorten(&mut self) {
        for range in self.files.values_mut().flatten().filter(|range| range.start == 0) {
            range.end = range.end.min(HEAD);
        }
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Each file with its ranges, which are in no order and may overlap; files in order of their paths.
    pub fn files(&self) -> impl Iterator<Item = FileRanges<'_>> {
        self.files.iter().map(|(file, ranges)| (file.as_path(), ranges.as_slice()))
    }
}

/// A file, and its wanted ranges; [`TAIL`] is counted from its end.
pub type FileRanges<'a> = (&'a Path, &'a [Range<u64>]);

/// Requested bytes, kept until they are read. Dropping it gives up what is still on its way.
pub type PrefetchGuard = Box<dyn Prefetched>;

/// The content of a [`PrefetchGuard`].
pub trait Prefetched: Send + Debug {
    /// Gives up what is on its way, also for those who wait for it: they get an error. For the end of reading; dropped instead, those
    /// who wait ask by themselves.
    fn give_up(&mut self);
}

/// One reader's way to ask a place for bytes ahead. The held bytes have a bound: beyond that, requests wait until
/// guards go.
pub trait FetchAhead: Send + Debug {
    /// Asks for bytes, and waits for none of them. A failed request gives its error when its bytes are read. `batches` calls,
    /// about, ask for so much of these files: 1 where nobody knows.
    ///
    /// # Errors
    /// Nothing can be asked for, as where there is no such bucket.
    fn fetch(&mut self, files: &[FileRanges<'_>], batches: usize) -> io::Result<PrefetchGuard>;

    /// Whether something that was asked for waits until guards go: asking for more brings nothing sooner.
    fn is_full(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_kept_by_file() {
        let mut wanted = WantedRanges::default();
        assert!(wanted.is_empty());
        wanted.push(Path::new("b"), 10, 5);
        wanted.push(Path::new("b"), 3, 0);
        wanted.head(Path::new("a"));
        wanted.push(Path::new("b"), 0, 2);
        wanted.whole(Path::new("c"));
        wanted.tail(Path::new("d"));
        let files: Vec<_> = wanted.files().map(|(file, ranges)| (file, ranges.to_vec())).collect();
        let of = |path: &'static str, ranges: &[Range<u64>]| (Path::new(path), ranges.to_vec());
        let whole = 0..u64::MAX;
        assert_eq!(
            files,
            [
                of("a", std::slice::from_ref(&(0..HEAD))),
                of("b", &[10..15, 0..2]),
                of("c", std::slice::from_ref(&whole)),
                of("d", std::slice::from_ref(&TAIL))
            ]
        );
        wanted.shorten();
        let files: Vec<_> = wanted.files().flat_map(|(_, ranges)| ranges.to_vec()).collect();
        assert_eq!(files, [0..HEAD, 10..15, 0..2, 0..HEAD, TAIL]);
    }

    #[test]
    fn the_end_of_a_file_is_at_most_all_of_it() {
        let mut wanted = WantedRanges::default();
        for (length, most) in [(100, 30), (100, 100), (20, 30), (0, 30)] {
            wanted.end(Path::new("a"), length, most);
        }
        let ranges: Vec<_> = wanted.files().flat_map(|(_, ranges)| ranges.to_vec()).collect();
        assert_eq!(ranges, [70..100, 0..100, 0..20]);
    }
}
