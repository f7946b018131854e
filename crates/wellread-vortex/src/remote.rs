//! A file that lies in another place than the file system. Its segments are fetched as ranges when pieces are opened, those of several
//! rows together.
//!
//! ```text
//!  rows ──tree──▶ pieces that are not kept ──fetch──▶ all their segments at once ──▶ the library, which asks for one after another
//! ```
//!
//! Nothing is mapped, so the bytes of a segment count as memory of its piece.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use vortex::array::buffer::BufferHandle;
use vortex::buffer::{Alignment, ByteBuffer, ByteBufferMut};
use vortex::error::{VortexResult, vortex_err};
use vortex::file::SegmentSpec;
use vortex::io::VortexReadAt;
use vortex::layout::segments::{SegmentFuture, SegmentId, SegmentSource};
use wellread_store::direct::PlaceError;
use wellread_store::place::{File, Part};

/// Bytes that are fetched and not asked for yet, at most. More are fetched when they are asked for.
const MOST_FETCHED: usize = 64 << 20;
/// Requests of the library at once while it opens a file.
const AT_ONCE: usize = 8;

/// Memory for some bytes of a file, aligned as the library wants them.
fn allocate(length: usize, alignment: Alignment) -> io::Result<ByteBufferMut> {
    // The library ends the process where there is none.
    Vec::<u8>::new().try_reserve_exact(length)?;
    Ok(ByteBufferMut::zeroed_aligned(length, alignment))
}

fn read(file: &File, offset: u64, length: usize, alignment: Alignment) -> io::Result<ByteBuffer> {
    let mut bytes = allocate(length, alignment)?;
    file.peek_exact_at(bytes.as_mut_slice(), offset)?;
    Ok(bytes.freeze())
}

/// The file, as the library opens it.
pub(crate) struct Source {
    pub file: Arc<File>,
    pub length: u64,
}

impl VortexReadAt for Source {
    fn concurrency(&self) -> usize {
        AT_ONCE
    }

    fn size(&self) -> std::pin::Pin<Box<dyn Future<Output = VortexResult<u64>> + Send>> {
        let length = self.length;
        Box::pin(async move { Ok(length) })
    }

    fn read_at(&self, offset: u64, length: usize, alignment: Alignment) -> SegmentFuture {
        let file = Arc::clone(&self.file);
        Box::pin(async move {
            let bytes = read(&file, offset, length, alignment).map_err(PlaceError::io)?;
            Ok(BufferHandle::new_host(bytes))
        })
    }
}

/// Segments that were fetched and not asked for yet.
#[derive(Default)]
struct Fetched {
    segments: HashMap<u32, ByteBuffer>,
    bytes: usize,
}

struct Inner {
    file: Arc<File>,
    specs: Arc<[SegmentSpec]>,
    /// No lock is waited for: in a forked process its holder may not be there.
    fetched: Mutex<Fetched>,
}

/// The segments of a file, as pieces are opened from them.
#[derive(Clone)]
pub(crate) struct Segments(Arc<Inner>);

impl Segments {
    pub fn new(file: Arc<File>, specs: Arc<[SegmentSpec]>) -> Self {
        Self(Arc::new(Inner { file, specs, fetched: Mutex::default() }))
    }

    /// Where segments lie in the file: position and length.
    pub fn ranges(&self, ids: &[SegmentId]) -> impl Iterator<Item = (u64, u64)> {
        let specs = ids.iter().filter_map(|id| self.0.specs.get(**id as usize));
        specs.map(|spec| (spec.offset, u64::from(spec.length)))
    }

    /// Fetches segments that will be asked for soon, all at once.
    ///
    /// # Errors
    /// The place's error.
    pub fn fetch(&self, ids: &mut Vec<SegmentId>) -> io::Result<()> {
        ids.sort_unstable();
        ids.dedup();
        // One alone is fetched when it is asked for.
        if ids.len() < 2 {
            return Ok(());
        }
        let mut room_left = MOST_FETCHED;
        let mut buffers = vec![];
        for id in &*ids {
            let Some(spec) = self.0.specs.get(**id as usize) else { continue };
            let Some(left) = room_left.checked_sub(spec.length as usize) else { break };
            room_left = left;
            buffers.push((**id, spec.offset, allocate(spec.length as usize, spec.alignment)?));
        }
        let mut parts: Vec<_> = buffers
            .iter_mut()
            .map(|(_, offset, bytes)| Part { offset: *offset, buffer: bytes.as_mut_slice() })
            .collect();
        // Their rows' share is counted as they are read.
        match &*self.0.file {
            File::Other(file) => file.read_ranges(&mut parts)?,
            File::Local(_) => {
                let file = &self.0.file;
                parts.iter_mut().try_for_each(|part| file.peek_exact_at(part.buffer, part.offset))?;
            }
        }
        drop(parts);
        self.0.keep(buffers);
        Ok(())
    }
}

impl Inner {
    fn keep(&self, segments: Vec<(u32, u64, ByteBufferMut)>) {
        let Ok(mut fetched) = self.fetched.try_lock() else { return };
        for (id, _, bytes) in segments {
            // Left by threads whose pieces others opened meanwhile.
            if fetched.bytes > MOST_FETCHED {
                *fetched = Fetched::default();
            }
            fetched.bytes += bytes.len();
            if let Some(before) = fetched.segments.insert(id, bytes.freeze()) {
                fetched.bytes -= before.len();
            }
        }
    }

    fn take(&self, id: u32) -> Option<ByteBuffer> {
        let mut fetched = self.fetched.try_lock().ok()?;
        let bytes = fetched.segments.remove(&id)?;
        fetched.bytes -= bytes.len();
        Some(bytes)
    }

    fn segment(&self, id: SegmentId) -> VortexResult<ByteBuffer> {
        if let Some(bytes) = self.take(*id) {
            return Ok(bytes);
        }
        let spec = self.specs.get(*id as usize).ok_or_else(|| vortex_err!("the file has no segment {id}"))?;
        let bytes = read(&self.file, spec.offset, spec.length as usize, spec.alignment);
        Ok(bytes.map_err(PlaceError::io)?)
    }
}

impl SegmentSource for Segments {
    fn request(&self, id: SegmentId) -> SegmentFuture {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.segment(id).map(BufferHandle::new_host) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vortex::io::runtime::BlockingRuntime as _;

    fn segments(bytes: &[u8], specs: &[(u64, u32)]) -> (tempfile::TempDir, Segments) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, bytes).unwrap();
        let file = Arc::new(wellread_store::place::open(&path).unwrap().0);
        let specs = specs.iter().map(|&(offset, length)| SegmentSpec {
            offset,
            length,
            alignment: Alignment::new(8),
        });
        (dir, Segments::new(file, specs.collect()))
    }

    fn ids<const N: usize>(numbers: [u32; N]) -> Vec<SegmentId> {
        numbers.map(SegmentId::from).to_vec()
    }

    #[test]
    fn segments_that_were_fetched_are_handed_on_once() {
        let (_dir, segments) = segments(&[0, 1, 2, 3, 4, 5], &[(0, 2), (2, 3), (5, 1)]);
        segments.fetch(&mut ids([2, 0, 2, 9])).unwrap();
        assert_eq!(segments.0.fetched.lock().unwrap().bytes, 3);
        let runtime = &crate::session::Session::reading().runtime;
        for _ in 0..2 {
            for (id, bytes) in [(0, &[0_u8, 1][..]), (1, &[2, 3, 4][..]), (2, &[5][..])] {
                let segment = runtime.block_on(segments.request(SegmentId::from(id))).unwrap();
                assert_eq!(segment.as_host_opt().unwrap().as_slice(), bytes);
            }
            assert_eq!(segments.0.fetched.lock().unwrap().bytes, 0);
        }
        assert!(runtime.block_on(segments.request(SegmentId::from(3))).is_err());
        assert_eq!(segments.ranges(&ids([1, 7])).collect::<Vec<_>>(), [(2, 3)]);
        segments.fetch(&mut ids([1])).unwrap();
        assert!(segments.0.fetched.lock().unwrap().segments.is_empty());
    }

    #[test]
    fn what_a_place_says_is_found_in_errors_of_the_library() {
        let (_dir, segments) = segments(&[0, 1], &[(0, 1), (1, 5)]);
        let runtime = &crate::session::Session::reading().runtime;
        let error = runtime.block_on(segments.request(SegmentId::from(1))).err().unwrap();
        assert_eq!(PlaceError::find(&error).unwrap().kind(), io::ErrorKind::UnexpectedEof);
        assert!(segments.fetch(&mut ids([0, 1])).is_err());
        assert!(PlaceError::find(&vortex::error::VortexError::from(io::Error::other("a codec"))).is_none());
    }
}
