//! Fetching ahead, for whoever knows which rows come next: what stores want, handed to the places where it lies.
//!
//! ```text
//!  Fetching::of(set)  none for the file system: nothing is planned, nothing asked
//!      │ heads of rows far ahead ─▶ Ticket       1 the bytes that tell where pixels lie
//!      │ ranges of rows soon read ─▶ Ticket      2 the pixels, as they are compressed
//!      ▼
//!  the store reads these rows as ever           3 decode
//! ```

use crate::place::{self, FetchAhead, FileRanges, Ticket, Wanted};
use crate::{Request, Result, Store};
use std::path::Path;

/// One reader's fetching, in all places where files of its sets lie.
#[derive(Debug)]
pub struct Fetching {
    /// Bytes that are held at most, in each place.
    most: Option<u64>,
    /// By scheme; `None` where a place has no such thing.
    places: Vec<(String, Option<Box<dyn FetchAhead>>)>,
}

impl Fetching {
    /// For a set at `path`, if its place gains by being asked ahead; no more than `most` bytes are held, or than the place's own bound.
    pub fn of(path: &Path, most: Option<u64>) -> Option<Self> {
        let scheme = place::scheme(path)?.to_owned();
        let fetching = place::of(path).ahead(most)?;
        Some(Self { most, places: vec![(scheme, Some(fetching))] })
    }

    /// Asks for what has to be read before it can be told where the pixels of these rows lie; `whole` says that all of each image is
    /// going to be read. Asks nobody but what is in memory.
    pub fn heads(&mut self, store: &dyn Store, rows: &[usize], whole: bool) -> Vec<Ticket> {
        let mut wanted = Wanted::default();
        store.heads(rows, whole, &mut wanted);
        self.fetch(&wanted)
    }

    /// Asks for the first bytes of these files.
    pub fn first_bytes<'a>(&mut self, files: impl IntoIterator<Item = &'a Path>) -> Vec<Ticket> {
        let mut wanted = Wanted::default();
        for file in files {
            wanted.head(file);
        }
        self.fetch(&wanted)
    }

    /// Asks for the pixels of these requests; waits for what says where they lie.
    ///
    /// # Errors
    /// What says where they lie cannot be read.
    pub fn ranges(&mut self, store: &dyn Store, requests: &[Request]) -> Result<Vec<Ticket>> {
        let mut wanted = Wanted::default();
        store.ranges(requests, &mut wanted)?;
        Ok(self.fetch(&wanted))
    }

    /// Whether something that was asked for waits until tickets go.
    pub fn is_full(&self) -> bool {
        self.places.iter().any(|(_, fetching)| fetching.as_ref().is_some_and(|fetching| fetching.is_full()))
    }

    /// Asks the places. What cannot be asked for ahead is asked for when it is read, and says then why it cannot.
    fn fetch(&mut self, wanted: &Wanted) -> Vec<Ticket> {
        let files: Vec<FileRanges<'_>> = wanted.files().collect();
        let of_places = files.chunk_by(|a, b| place::scheme(a.0) == place::scheme(b.0));
        let mut tickets = vec![];
        for files in of_places {
            let Some(scheme) = place::scheme(files[0].0) else { continue };
            let at = self.places.iter().position(|(known, _)| known == scheme).unwrap_or_else(|| {
                self.places.push((scheme.to_owned(), place::of(files[0].0).ahead(self.most)));
                self.places.len() - 1
            });
            if let (_, Some(fetching)) = &mut self.places[at] {
                tickets.extend(fetching.fetch(files).ok());
            }
        }
        tickets
    }
}
