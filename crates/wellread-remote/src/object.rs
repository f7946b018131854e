//! Requests for one object: its facts, and some of its bytes.

use crate::address::Address;
use crate::attempts::{Asked, attempts, is_replaced, status};
use crate::bucket::Bucket;
use crate::failure::Fault;
use crate::heads::{Head, Version};
use crate::link::Link;
use crate::pace::Pace;
use crate::ranges::Piece;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::future::{join, try_join_all};
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wellread_store::place::{HEAD, TAIL, note_ranges};

/// Makes the store of a bucket.
pub(crate) type Connect = fn(&'static Link, &Address) -> io::Result<Bucket>;

/// An object by its address, and the way to its bucket.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) address: Address,
    pub(crate) connect: Connect,
}

impl Object {
    /// The object at an address.
    pub(crate) fn of(path: &Path, connect: Connect) -> io::Result<Self> {
        Ok(Self { address: Address::of(path)?, connect })
    }

    /// Another one of the same bucket.
    pub(crate) fn with_key(&self, key: Key) -> Self {
        Self { address: self.address.with_key(key), connect: self.connect }
    }

    /// Its bucket, connected to at first use.
    pub(crate) fn bucket(&self, link: &'static Link) -> io::Result<Arc<Bucket>> {
        link.bucket(&self.address.bucket_name(), || (self.connect)(link, &self.address))
    }

    /// Whether it was said not long ago that it is not there, by a listing or by an answer.
    pub(crate) fn is_absent(&self, link: &Link) -> bool {
        let (bucket, name) = (self.address.bucket_name(), self.address.to_string());
        let is_said = link.listings.lacks(&bucket, &name) || link.listings.is_absent(&bucket, &name);
        is_said && link.heads.get(&name).is_none()
    }

    /// A request for it, for errors.
    pub(crate) fn asked(&self, verb: &str, bucket: &Bucket) -> Asked {
        Asked { what: format!("{verb} {}", self.address), who: bucket.who.clone() }
    }

    /// The request for what it is, without its bytes, to be made in the threads of the link.
    pub(crate) fn head_request(
        &self,
        link: &'static Link,
        bucket: Arc<Bucket>,
    ) -> impl Future<Output = io::Result<Head>> + Send + use<> {
        let (key, asked) = (self.address.key.clone(), self.asked("HEAD", &bucket));
        async move {
            attempts(link, asked, || {
                let (bucket, key) = (bucket.clone(), key.clone());
                async move {
                    let meta = bucket.store.head(&key).await.map_err(|e| Fault::of(&e))?;
                    Ok(Head { length: meta.size, version: Version::of(&meta) })
                }
            })
            .await
        }
    }

    /// Its facts, asked for without its bytes.
    pub(crate) fn head(&self, link: &'static Link) -> io::Result<Head> {
        let asked = link.heads.ask();
        let head = link.wait(self.head_request(link, self.bucket(link)?))?;
        link.heads.learn(self.address.to_string(), head.clone(), asked);
        Ok(head)
    }

    /// Its facts, with its first bytes, which are kept: one request for a header.
    pub(crate) fn first(&self, link: &'static Link) -> io::Result<Head> {
        let asked = link.heads.ask();
        let pieces = match self.get(link, std::iter::once(0..HEAD).collect(), None) {
            // An empty object has no first byte.
            Err(e) if status(&e) == Some(416) => return self.head(link),
            pieces => pieces?,
        };
        let Some((piece, head)) = pieces.into_iter().next() else {
            return Err(io::Error::other("a request without an answer"));
        };
        self.keep_window(link, &piece, &head);
        link.heads.learn(self.address.to_string(), head.clone(), asked);
        Ok(head)
    }

    /// Its facts, with its first and last bytes, which are kept: one round trip for what tells how a file is laid out.
    pub(crate) fn ends(&self, link: &'static Link) -> io::Result<Head> {
        let (bucket, asked) = (self.bucket(link)?, link.heads.ask());
        let (first, last) =
            (self.request(link, bucket.clone(), 0..HEAD, None), self.request(link, bucket, TAIL, None));
        let (first, last) = link.wait(async move { Ok(join(first, last).await) })?;
        let (piece, head) = match first {
            // An empty object has no first byte.
            Err(e) if status(&e) == Some(416) => return self.head(link),
            first => first?,
        };
        link.heads.learn(self.address.to_string(), head.clone(), asked);
        self.keep_window(link, &piece, &head);
        // Some servers do not count from the end; whoever reads it asks for it.
        if let Ok((piece, of)) = last
            && head.version.is(&of.version)
        {
            self.keep_end(link, &piece, &head);
        }
        Ok(head)
    }

    /// Keeps its last bytes where its readers look for them.
    pub(crate) fn keep_end(&self, link: &Link, piece: &Piece, head: &Head) {
        if piece.start == head.length.saturating_sub(HEAD) {
            self.keep_window(link, piece, head);
        }
    }

    /// Keeps bytes of it, an end, where its readers look for them.
    pub(crate) fn keep_window(&self, link: &Link, piece: &Piece, head: &Head) {
        let bytes = whole(Piece { start: piece.start, chunks: piece.chunks.clone() });
        link.heads.keep_window(&self.address.to_string(), &head.version, piece.start, bytes);
    }

    /// The request for some bytes of it, or for the last ones ([`TAIL`]), to be made in the threads of the link.
    pub(crate) fn request(
        &self,
        link: &'static Link,
        bucket: Arc<Bucket>,
        range: Range<u64>,
        version: Option<Version>,
    ) -> impl Future<Output = io::Result<(Piece, Head)>> + Send + use<> {
        note_ranges(self.address.to_string(), std::slice::from_ref(&range));
        let verb = if range == TAIL { format!("GET the last {HEAD} bytes of") } else { get_verb(&range) };
        let (asked, key) = (self.asked(&verb, &bucket), self.address.key.clone());
        async move {
            let stall = link.limits.stall;
            attempts(link, asked, || once(bucket.clone(), key.clone(), range.clone(), version.clone(), stall))
                .await
        }
    }

    /// Bytes of it, all ranges at once; of the version that is named, or else an error. A range may end behind the object.
    pub(crate) fn get(
        &self,
        link: &'static Link,
        ranges: Vec<Range<u64>>,
        version: Option<&Version>,
    ) -> io::Result<Vec<(Piece, Head)>> {
        let bucket = self.bucket(link)?;
        let requests: Vec<_> = ranges
            .into_iter()
            .map(|range| self.request(link, bucket.clone(), range, version.cloned()))
            .collect();
        let got = link.wait(try_join_all(requests));
        if got.as_ref().is_err_and(is_replaced) {
            link.heads.forget(&self.address.to_string());
        }
        got
    }
}

/// The request for a range, for errors.
pub(crate) fn get_verb(range: &Range<u64>) -> String {
    format!("GET bytes {}-{} of", range.start, range.end.saturating_sub(1))
}

/// One request for a range, made once. `stall` is how long nothing may come, or too little.
pub(crate) async fn once(
    bucket: Arc<Bucket>,
    key: Key,
    range: Range<u64>,
    version: Option<Version>,
    stall: Duration,
) -> Result<(Piece, Head), Fault> {
    let range = if range == TAIL { GetRange::Suffix(HEAD) } else { GetRange::Bounded(range) };
    let options = GetOptions {
        range: Some(range),
        if_match: version.as_ref().and_then(Version::if_match),
        ..GetOptions::default()
    };
    let result = bucket.store.get_opts(&key, options).await.map_err(|e| Fault::of(&e))?;
    let head = Head { length: result.meta.size, version: Version::of(&result.meta) };
    // Servers may ignore the condition.
    if version.is_some_and(|version| !version.is(&head.version)) {
        return Err(Fault::Replaced);
    }
    let (start, expected) = (result.range.start, result.range.end - result.range.start);
    let mut stream = result.into_stream();
    let (mut chunks, mut got) = (vec![], 0);
    let (begun, mut pace) = (Instant::now(), Pace::new(stall));
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|e| Fault::of(&e))?;
        got += chunk.len() as u64;
        // A body may have no end.
        if got > expected {
            return Err(Fault::WrongRange(format!("more than {expected} bytes came")));
        }
        chunks.push(chunk);
        if got < expected && !pace.is_kept(begun.elapsed(), got) {
            return Err(Fault::Slow { got, expected });
        }
    }
    if got == expected { Ok((Piece { start, chunks }, head)) } else { Err(Fault::Short { got, expected }) }
}

/// The bytes of a piece in one.
pub(crate) fn whole(piece: Piece) -> Bytes {
    let mut chunks = piece.chunks;
    if chunks.len() == 1 {
        return chunks.swap_remove(0);
    }
    let mut bytes = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
    for chunk in &chunks {
        bytes.extend_from_slice(chunk);
    }
    bytes.freeze()
}
