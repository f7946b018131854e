//! Chunks of a file that lies elsewhere than in the file system, fetched together before the rows in them are read.
//! Read one after the other, each of them would wait for a request.
//!
//! ```text
//!  rows ──plan──▶ extents of their chunks, of all leaves ──fetch──▶ bytes ──get──▶ the page that reads them
//!                                                       └─want───▶ asked for by a loader, batches before they are read
//! ```
//!
//! Before, in the same way, the pieces that tell which chunks hold which rows, of those pages that were not read from yet.

use super::input::Input;
use std::sync::Arc;
use wellread_store::place::WantedRanges;

/// Bytes that are fetched together, at most; more is read chunk by chunk.
const MAX_BYTES: u64 = 64 << 20;

/// Position and length in a file.
pub(super) type Extent = (u64, u64);

/// Chunks by where they lie; none unless all of them are here.
#[derive(Debug, Default)]
pub(super) struct Ahead(Vec<Chunk>);

#[derive(Debug)]
struct Chunk {
    input: Arc<Input>,
    extent: Extent,
    bytes: Vec<u64>,
}

impl Chunk {
    fn position(&self) -> (usize, Extent) {
        (Arc::as_ptr(&self.input).addr(), self.extent)
    }
}

impl Ahead {
    /// Notes a chunk that will be read.
    pub fn plan(&mut self, input: &Arc<Input>, extent: Extent) {
        self.0.push(Chunk { input: Arc::clone(input), extent, bytes: vec![] });
    }

    /// Fetches what was noted. Where that fails nothing is here: the reader of the chunks gives the error.
    pub fn fetch(&mut self) {
        self.0.sort_unstable_by_key(Chunk::position);
        self.0.dedup_by_key(|chunk| chunk.position());
        let bytes = self.0.iter().fold(0, |sum: u64, chunk| sum.saturating_add(chunk.extent.1));
        // One alone is read when it is wanted.
        if self.0.len() < 2 || bytes > MAX_BYTES || !self.read() {
            self.0.clear();
        }
    }

    fn read(&mut self) -> bool {
        self.0.chunk_by_mut(|a, b| Arc::ptr_eq(&a.input, &b.input)).all(|chunks| {
            let Some(input) = chunks.first().map(|chunk| Arc::clone(&chunk.input)) else { return true };
            input.read_together(chunks.iter_mut().map(|chunk| (chunk.extent, &mut chunk.bytes))).is_ok()
        })
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lets go of what was noted, for somebody else to ask for.
    pub fn want(&mut self, wanted: &mut WantedRanges) {
        for Chunk { input, extent: (offset, length), .. } in self.0.drain(..) {
            wanted.push(input.path(), offset, length);
        }
    }

    /// The bytes of a chunk, where they were fetched.
    pub fn get(&self, input: &Input, extent: Extent) -> Option<&[u8]> {
        let wanted = (std::ptr::from_ref(input).addr(), extent);
        let at = self.0.binary_search_by_key(&wanted, Chunk::position).ok()?;
        bytemuck::cast_slice::<u64, u8>(&self.0[at].bytes).get(..extent.1 as usize)
    }

    /// Lets go of all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_several_files_are_fetched_and_found() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| {
            let path = dir.path().join(name);
            let bytes: Vec<u8> = (0..100).map(|i| i + name.as_bytes()[0]).collect();
            std::fs::write(&path, bytes).unwrap();
            Arc::new(Input::open(&path).unwrap())
        });
        let mut ahead = Ahead::default();
        for (input, extent) in [(&b, (8, 3)), (&a, (16, 2)), (&a, (0, 9)), (&a, (16, 2))] {
            ahead.plan(input, extent);
        }
        ahead.fetch();
        assert_eq!(ahead.get(&a, (16, 2)), Some(&[b'a' + 16, b'a' + 17][..]));
        assert_eq!(ahead.get(&a, (0, 9)).unwrap().len(), 9);
        assert_eq!(ahead.get(&b, (8, 3)), Some(&[b'b' + 8, b'b' + 9, b'b' + 10][..]));
        assert!(ahead.get(&b, (0, 9)).is_none());
        // One that is not there takes the others with it.
        ahead.plan(&a, (96, 5));
        ahead.fetch();
        assert!(ahead.get(&a, (0, 9)).is_none());
    }

    #[test]
    fn what_is_noted_is_handed_on_by_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, [0_u8; 100]).unwrap();
        let input = Arc::new(Input::open(&path).unwrap());
        let (mut ahead, mut wanted) = (Ahead::default(), WantedRanges::default());
        ahead.plan(&input, (8, 3));
        ahead.plan(&input, (90, 10));
        ahead.want(&mut wanted);
        let files: Vec<_> = wanted.files().map(|(file, ranges)| (file.to_owned(), ranges.to_vec())).collect();
        assert_eq!(files, [(path, vec![8..11, 90..100])]);
        assert!(ahead.is_empty());
    }
}
