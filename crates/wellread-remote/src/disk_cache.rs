//! Ranges of an object out of the cache on disk, where the process has one; missing ranges are fetched, and kept.
//!
//! ```text
//!  parts ──▶ there? ─yes─▶ buffers
//!              └─no──▶ rounded to whole pieces ──▶ fetch (joined, cut) ──▶ buffers, and kept block by block
//! ```
//!
//! An object is known by its server, address, length and ETag: one that is replaced is another one. Objects without an ETag, or with
//! a weak one, which may stand for several bodies, are not kept.

use crate::bucket::Bucket;
use crate::heads::Head;
use crate::object::Object;
use crate::ranges::{Piece, copy};
use bytes::Bytes;
use std::io;
use std::ops::Range;
use std::slice;
use wellread_store::disk_cache::{CachedObject, DiskCache, current};
use wellread_store::place::Part;

/// An open object in the cache on disk; `None` where it cannot be told from its successors.
#[derive(Debug)]
pub(crate) struct ObjectCache(Option<CachedObject>);

impl ObjectCache {
    /// An object as it was opened.
    ///
    /// # Errors
    /// The environment names a cache that cannot be used.
    pub(crate) fn new(object: &Object, bucket: &Bucket, head: &Head) -> io::Result<Self> {
        // Here, so that a folder that cannot be used is told when a set is opened.
        current().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let address = object.address.to_string();
        let tag = head.version.if_match();
        Ok(Self(tag.map(|tag| CachedObject::new(&[&bucket.endpoint, &address, &tag], head.length))))
    }

    /// The cache and the object there, where both are.
    fn there(&self) -> Option<(&'static DiskCache, &CachedObject)> {
        let object = self.0.as_ref()?;
        current().ok().flatten().map(|cache| (cache, object))
    }

    /// Keeps bytes that were fetched past this, if they are not there.
    pub(crate) fn keep(&self, offset: u64, bytes: &[u8]) {
        if let Some((cache, object)) = self.there()
            && !cache.has(object, offset..offset + bytes.len() as u64)
        {
            cache.keep(object, offset, bytes);
        }
    }

    /// Fills all `parts`; `fetch` gets those ranges that are not there.
    pub(crate) fn read(
        &self,
        parts: &mut [Part<'_>],
        fetch: impl FnOnce(&[Range<u64>]) -> io::Result<Vec<Piece>>,
    ) -> io::Result<()> {
        let range = |part: &Part<'_>| part.offset..part.offset + part.buffer.len() as u64;
        let there = self.there();
        let (mut missing, mut wanted) = (vec![], vec![]);
        for part in parts.iter_mut().filter(|part| !part.buffer.is_empty()) {
            match there {
                Some((cache, object)) if cache.read(object, part.offset, part.buffer) => {}
                Some((_, object)) => {
                    wanted.push(object.rounded(&range(part)));
                    missing.push(part);
                }
                None => {
                    wanted.push(range(part));
                    missing.push(part);
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let pieces = fetch(&wanted)?;
        if !missing.iter_mut().all(|part| copy(&pieces, part.offset, part.buffer)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((cache, object)) = there {
            for range in wanted {
                put(cache, object, &pieces, range);
            }
        }
        Ok(())
    }

    /// The bytes to fetch ahead of a range: `None` where it is there, else whole pieces, where there is a cache.
    pub(crate) fn wanted(&self, range: Range<u64>) -> Option<Range<u64>> {
        match self.there() {
            Some((cache, object)) if cache.has(object, range.clone()) => None,
            Some((_, object)) => Some(object.rounded(&range)),
            None => Some(range),
        }
    }
}

/// Whether the process has a cache on disk.
pub(crate) fn is_there() -> bool {
    current().is_ok_and(|cache| cache.is_some())
}

/// Keeps what was fetched ahead of an object, which is known by the answer.
pub(crate) fn keep(object: &Object, bucket: &Bucket, head: &Head, piece: &Piece) {
    let Ok(kept) = ObjectCache::new(object, bucket, head) else { return };
    if let Some((cache, object)) = kept.there() {
        let length: usize = piece.chunks.iter().map(Bytes::len).sum();
        put(cache, object, slice::from_ref(piece), piece.start..piece.start + length as u64);
    }
}

/// Puts a range there that the pieces have.
fn put(cache: &DiskCache, object: &CachedObject, pieces: &[Piece], range: Range<u64>) {
    let mut bytes = vec![];
    for range in CachedObject::blocks(range) {
        bytes.resize((range.end - range.start) as usize, 0);
        if copy(pieces, range.start, &mut bytes) {
            cache.keep(object, range.start, &bytes);
        }
    }
}
