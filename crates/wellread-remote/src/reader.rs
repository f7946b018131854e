//! An open object: ranges of one version of it.

use crate::attempts::status;
use crate::disk_cache::{self, ObjectCache};
use crate::heads::Head;
use crate::link::{Link, link};
use crate::object::Object;
use bytes::Bytes;
use std::io;
use std::ops::Range;
use wellread_store::place::{HEAD, Part, ReadRanges, TAIL, requests, window};

/// An object open for reading. It knows its address and version and holds no connection, so it serves forked processes too.
#[derive(Debug)]
pub(crate) struct Reader {
    object: Object,
    name: String,
    head: Head,
    /// Its bytes in the cache on disk.
    cache: ObjectCache,
}

impl Reader {
    /// The object as it is now: its facts come from listings and earlier answers, or else its first bytes are fetched.
    pub(crate) fn open(link: &'static Link, object: Object) -> io::Result<Self> {
        let name = object.address.to_string();
        let head = match link.heads.get(&name) {
            Some(head) => head,
            // An empty object has no bytes that could be asked for ahead.
            None => match link.pieces.head(&name) {
                Some(Err(e)) if status(&e) != Some(416) => return Err(e),
                Some(Ok(head)) => head,
                _ => object.first(link)?,
            },
        };
        let bucket = object.bucket(link)?;
        let cache = ObjectCache::new(&object, &bucket, &head)?;
        // Its first bytes came with its facts.
        if disk_cache::is_there()
            && let Some(bytes) = link.heads.window(&name, &head.version, 0)
        {
            cache.keep(0, &bytes);
        }
        Ok(Self { object, name, head, cache })
    }

    /// Fills all `parts`, which the file has: out of the cache on disk where there is one, else by requests that are made now.
    fn fetch(&self, link: &'static Link, parts: &mut [Part<'_>]) -> io::Result<()> {
        self.cache.read(parts, |wanted| {
            let got = self.object.get(link, requests(wanted), Some(&self.head.version))?;
            Ok(got.into_iter().map(|(piece, _)| piece).collect())
        })
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.head.length
    }

    /// Where a range of the file ends, which must have it.
    fn end(&self, offset: u64, length: usize) -> io::Result<u64> {
        let end = offset.checked_add(length as u64).filter(|&end| end <= self.head.length);
        end.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The bytes of a window, kept or fetched.
    fn window(&self, link: &'static Link, start: u64, end: u64) -> io::Result<Bytes> {
        let version = &self.head.version;
        if let Some(bytes) = link.heads.window(&self.name, version, start) {
            return Ok(bytes);
        }
        // The end that was asked for by its number is kept once it is here.
        if start > 0
            && let Some(Ok(_)) = link.pieces.answer(&self.name, &TAIL)
            && let Some(bytes) = link.heads.window(&self.name, version, start)
        {
            return Ok(bytes);
        }
        let mut bytes = vec![0; (end - start) as usize];
        self.fetch(link, &mut [Part { offset: start, buffer: &mut bytes }])?;
        let bytes = Bytes::from(bytes);
        link.heads.keep_window(&self.name, version, start, bytes.clone());
        Ok(bytes)
    }
}

impl ReadRanges for Reader {
    fn length(&self) -> io::Result<u64> {
        Ok(self.head.length)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = self.end(offset, buffer.len())?;
        if buffer.is_empty() {
            return Ok(());
        }
        let link = link()?;
        if let Some(read) = link.pieces.read(&self.name, &self.head.version, offset, buffer) {
            return read;
        }
        let Some(Range { start, end }) = window(self.head.length, offset, end) else {
            return self.fetch(link, &mut [Part { offset, buffer }]);
        };
        let bytes = self.window(link, start, end)?;
        let from = (offset - start) as usize;
        let found = bytes.get(from..from + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }

    fn read_ranges(&self, parts: &mut [Part<'_>]) -> io::Result<()> {
        let link = link()?;
        let mut left = Vec::with_capacity(parts.len());
        for Part { offset, buffer } in parts {
            self.end(*offset, buffer.len())?;
            match link.pieces.read(&self.name, &self.head.version, *offset, buffer) {
                Some(read) => read?,
                None => left.push(Part { offset: *offset, buffer }),
            }
        }
        self.fetch(link, &mut left)
    }

    fn fetch_ends(&self) -> io::Result<()> {
        let (link, length) = (link()?, self.head.length);
        let (name, version) = (&self.name, &self.head.version);
        let ends = [0..HEAD.min(length), length.saturating_sub(HEAD)..length];
        let is_missing = |end: &Range<u64>| {
            link.heads.window(name, version, end.start).is_none() && link.pieces.cover(name, end).0.is_empty()
        };
        // One of them, or a file that is no longer than one, is fetched by who reads it.
        if length <= HEAD || !ends.iter().all(is_missing) {
            return Ok(());
        }
        let mut bytes = ends.each_ref().map(|end| vec![0; (end.end - end.start) as usize]);
        let parts = ends.iter().zip(&mut bytes);
        let mut parts: Vec<_> =
            parts.map(|(end, buffer)| Part { offset: end.start, buffer: buffer.as_mut_slice() }).collect();
        self.fetch(link, &mut parts)?;
        drop(parts);
        for (end, bytes) in ends.iter().zip(bytes) {
            link.heads.keep_window(name, version, end.start, Bytes::from(bytes));
        }
        Ok(())
    }
}
