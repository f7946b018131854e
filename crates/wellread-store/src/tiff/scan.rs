//! Rows of a folder of TIFF files, by a look into all of them, or into some.
//!
//! Names do not tell which files hold several images, or planes of each other. Folders of up to [`SCAN`] files have all
//! their directories read at once. Larger ones have a sample read, and the rest only when the sample holds anything but
//! single images. Behind a network the bound is [`REMOTE_SCAN`] files.

use super::store::{IndexRef, NamedBy, Row, TiffStore};
use crate::ahead::Fetching;
use crate::place::{self, PrefetchGuard, WantedRanges};
use crate::{Store, threads};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Folders of more files have only [`SAMPLE`] of them looked into when opened.
const SCAN: usize = 256;
const SAMPLE: usize = 32;
/// As [`SCAN`], of folders behind a network: as many as come in one round trip, with the usual bound on requests.
const REMOTE_SCAN: usize = 64;
/// Files of the sample of such a folder that are its longest.
const LONGEST: usize = 8;
/// Files that are worth a thread.
const FILES_PER_THREAD: usize = 16;

impl TiffStore {
    /// Finds the rows of a folder.
    pub(super) fn find_rows(&mut self, named_by: NamedBy) {
        let n = self.files.len();
        let mut fetching = self.remote_path().and_then(|remote| Fetching::of(remote, None));
        let scan = if fetching.is_some() { REMOTE_SCAN } else { SCAN };
        let sample = self.sample(scan, named_by);
        // All of few files are looked into, most likely: their heads are on their way together.
        let first = if n > scan { sample.clone() } else { (0..n).collect() };
        let guards = self.ask(fetching.as_mut(), first.into_iter());
        let looked_into = threads::in_runs(sample.len(), FILES_PER_THREAD, |run| {
            sample[run].iter().map(|&file| self.index(file).ok()).collect::<Vec<_>>()
        });
        let looked_into: Vec<_> = looked_into.into_iter().flatten().collect();
        let is_related = |i: &IndexRef<'_>| i.others().next().is_some();
        // A companion may relate files that the sample leaves out.
        let related = !self.companions.is_empty() || looked_into.iter().flatten().any(is_related);
        let single = looked_into.iter().all(|i| i.as_ref().is_some_and(|i| i.series.len() == 1));
        drop(looked_into);
        if n > scan && single && !related {
            self.sampled = true;
            self.rows = (0..n as u32).map(|file| Row { file, series: 0 }).collect();
            return;
        }
        if !related {
            self.scan_all(fetching.as_mut());
        }
        let rest = if n <= SCAN { self.ask(fetching.as_mut(), 0..n) } else { vec![] };
        // Files whose planes belong to an image of another file are no rows, and need not be looked into.
        // Each may hold the description of all.
        let mut claimed: HashSet<PathBuf> = HashSet::new();
        let mut rows = vec![vec![]; n];
        for (i, file) in self.files.iter().enumerate() {
            if claimed.contains(&file.path) {
                continue;
            }
            match self.index(i) {
                Ok(index) => {
                    claimed.extend(index.others().filter(|p| *p != file.path).map(Path::to_owned));
                    rows[i] = Self::rows_of_file(i, &index);
                }
                // A file that cannot be read is a row whose use is an error that names the file.
                Err(_) => rows[i] = vec![Row { file: i as u32, series: 0 }],
            }
        }
        drop((guards, rest));
        let own = rows.into_iter().zip(&self.files).filter(|(_, file)| !claimed.contains(&file.path));
        self.rows = own.flat_map(|(rows, _)| rows).collect();
    }

    /// The files that are looked into first, in order: some from all over the folder. A remote folder may be larger than `scan` and small
    /// enough to be looked into as a whole here. Its longest files are among them, where a listing tells lengths: several images take more
    /// bytes than one.
    fn sample(&self, scan: usize, named_by: NamedBy) -> Vec<usize> {
        let n = self.files.len();
        let spread = |count: usize| (0..count.min(n)).map(move |i| i * (n - 1) / (count.min(n) - 1).max(1));
        if named_by != NamedBy::Listing || !(scan + 1..=SCAN).contains(&n) {
            return spread(SAMPLE).collect();
        }
        let mut sample: BTreeSet<usize> = spread(SAMPLE - LONGEST).collect();
        let length = |file: &usize| place::metadata(&self.files[*file].path).map_or(0, |meta| meta.length);
        let mut others: Vec<usize> = (0..n).filter(|file| !sample.contains(file)).collect();
        others.sort_by_cached_key(|file| Reverse(length(file)));
        sample.extend(others.into_iter().take(LONGEST));
        sample.into_iter().collect()
    }

    /// Asks for what is hoped to hold the directories of files that were not looked into, where each look would be a round trip.
    fn ask(&self, fetching: Option<&mut Fetching>, files: impl Iterator<Item = usize>) -> Vec<PrefetchGuard> {
        let Some(fetching) = fetching else { return vec![] };
        let unknown = files.map(|file| &self.files[file]).filter(|file| file.index.get().is_none());
        let mut wanted = WantedRanges::default();
        unknown.for_each(|file| self.want_directories(&file.path, &mut wanted));
        fetching.fetch(&wanted)
    }

    /// Adds the beginning of a file, where its header is, and its end, where many writers put the directories. They are taken to be where
    /// they are in the first file that was looked into.
    pub(super) fn want_directories(&self, file: &Path, wanted: &mut WantedRanges) {
        wanted.head(file);
        if *self.is_at_end.get().unwrap_or(&true) {
            wanted.tail(file);
        }
    }

    /// Reads the directories of every file; of remote files, of some at a time, which are asked for together.
    fn scan_all(&self, mut fetching: Option<&mut Fetching>) {
        let n = self.files.len();
        let step = if fetching.is_some() { SCAN } else { n.max(1) };
        for first in (0..n).step_by(step) {
            let files = first..(first + step).min(n);
            let guards = self.ask(fetching.as_deref_mut(), files.clone());
            self.scan_files(files);
            drop(guards);
        }
    }

    /// Looks into all files that opening has left out of a remote folder that is not large. A caller that asks for one name wants them
    /// all, and each would be a round trip.
    pub(super) fn look_into_rest(&self) {
        if self.sampled
            && self.files.len() <= SCAN
            && let Some(mut fetching) = self.remote_path().and_then(|remote| Fetching::of(remote, None))
        {
            self.scan_all(Some(&mut fetching));
        }
    }

    /// Reads the directories of these files.
    fn scan_files(&self, files: Range<usize>) {
        threads::in_runs(files.len(), FILES_PER_THREAD, |run| {
            for file in run {
                // Errors come back when the row is used.
                let _ = self.index(files.start + file);
            }
        });
    }
}
