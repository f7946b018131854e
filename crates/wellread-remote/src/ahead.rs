//! Bytes that were asked for before they are read: fetched in order, up to a bound, and found by whoever reads them.
//!
//! ```text
//!  Session::fetch ─ ranges joined, cut, without what is asked for already ─▶ pieces ─ queue ─▶ room for its bytes ─▶ the link's turn ─▶ GET
//!       │ PrefetchGuard: keeps its pieces; dropped, what is on its way is given up                                  │
//!       ▼                                                                                                           ▼
//!  Reader::read_exact_at ─▶ Pieces: a piece with these bytes? ─ here: copied · on its way: waited for ◀─────────────┘
//!                                                             └ still in the queue: the reader asks by itself
//! ```
//!
//! Where the length of an object is not known, the last bytes are asked for by their number. They are found where the
//! reader keeps the ends of files, since before the answer nobody knows which bytes they are.
//!
//! A file that an epoch reads in many short ranges comes whole. It comes after the ranges of the first batch, in
//! half of the room at most ([`is_read_whole`]). The session keeps it.
//!
//! Room is bounded per session, that is per epoch of a loader. How many of its bytes are on their way at once, the process
//! decides by what the link gives ([`crate::byte_limit`]). A reader never waits for room: it asks itself for a
//! piece that is not asked for yet. So two loaders that hold their pieces cannot wait for each other. An error is
//! told to who reads the piece first.

use crate::byte_limit::units;
use crate::disk_cache;
use crate::heads::Version;
use crate::link::Link;
use crate::listings::Asked;
use crate::object::{Connect, Object};
use crate::pieces::{Piece, Slot, SlotFiller};
use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wellread_store::place::{
    FetchAhead, FileRanges, HEAD, PIECE, PrefetchGuard, Prefetched, TAIL, is_read_whole, requests, strides,
    window,
};

/// Bytes of a session at least: a piece, and the next one.
const MIN_SESSION_BYTES: u64 = 2 * PIECE;

/// Bytes of an object that is kept after its guard is dropped, at most: metadata, which are read several times while a set is opened.
const MAX_SMALL_OBJECT: u64 = 16 << 10;

/// Bytes of a range at most: of a longer one the rest is asked for when it is read.
const LONGEST: u64 = 16 << 30;

/// One reader's requests ahead.
#[derive(Debug)]
pub(crate) struct Session {
    link: &'static Link,
    connect: Connect,
    queue: UnboundedSender<Job>,
    /// Whether the first one in the queue waits for room.
    is_full: Arc<AtomicBool>,
    /// Files that come whole, and the bytes that these may have yet.
    whole: HashSet<Arc<str>>,
    room_for_whole: u64,
    kept: Kept,
}

/// A piece to be asked for.
#[derive(Debug)]
struct Job {
    piece: Weak<Piece>,
    object: Object,
    range: Range<u64>,
    /// The version that the bytes must have, where that is known.
    version: Option<Version>,
    /// When it was asked for.
    asked: Asked,
    /// The bytes that are expected: of an object whose length nobody knows, few.
    expected: u64,
}

/// Pieces that are kept.
#[derive(Debug)]
struct Kept {
    link: &'static Link,
    pieces: Vec<Arc<Piece>>,
}

impl Prefetched for Kept {
    fn give_up(&mut self) {
        if self.link.is_own() {
            self.pieces.drain(..).for_each(Piece::give_up);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // The locks of another process are left alone.
        if !self.link.is_own() {
            std::mem::forget(std::mem::take(&mut self.pieces));
        }
    }
}

impl Session {
    /// A session that holds `most` bytes, or the most that the process may hold, whichever is less.
    pub(crate) fn new(link: &'static Link, connect: Connect, most: Option<u64>) -> Self {
        let bound = link.limits.link_bytes;
        let room = most.map_or(bound, |most| most.min(bound)).max(MIN_SESSION_BYTES);
        let (queue, jobs) = unbounded_channel();
        let is_full = Arc::default();
        drop(link.start(dispatch(link, units(room), Arc::clone(&is_full), jobs)));
        let kept = Kept { link, pieces: vec![] };
        Self { link, connect, queue, is_full, whole: HashSet::new(), room_for_whole: room / 2, kept }
    }

    /// Asks for ranges of one file.
    fn file(&self, object: &Object, ranges: &[Range<u64>], pieces: &mut Vec<Arc<Piece>>) -> io::Result<()> {
        // Connected to here, where nobody waits: it may look for credentials.
        let bucket = object.bucket(self.link)?;
        let name: Arc<str> = object.address.to_string().into();
        let head = self.link.heads.get(&name);
        // A reader that opens it learns so without a request.
        if object.is_absent(self.link) {
            return Ok(());
        }
        // The length of a while ago tells how much is worth asking for; where none is known, what comes in one piece.
        let length = head.as_ref().map(|head| head.length).or_else(|| self.link.heads.last_length(&name));
        // Bytes on disk are read from there.
        let kept = head.as_ref().and_then(|head| disk_cache::ObjectCache::new(object, &bucket, head).ok());
        let version = head.map(|head| head.version);
        let inside = ranges.iter().filter_map(|range| match (length, range.start, range.end) {
            (Some(length), ..) if *range == TAIL => Some(length.saturating_sub(HEAD)..length),
            (None, ..) if *range == TAIL => None,
            (Some(length), start, end) => {
                Some(start.min(length)..end.min(length).min(start.saturating_add(LONGEST)))
            }
            (None, start, end) => Some(start..end.min(start.saturating_add(PIECE))),
        });
        // Bytes that came along with the file's beginning or end are read from there, and bytes on disk from
        // the disk.
        let is_kept = |range: &Range<u64>| {
            let Some((version, length)) = version.as_ref().zip(length) else { return false };
            let end = window(length, range.start, range.end);
            end.is_some_and(|end| self.link.heads.window(&name, version, end.start).is_some())
        };
        let wanted = inside.filter(|range| !is_kept(range)).filter_map(|range| match &kept {
            Some(kept) => kept.wanted(range),
            None => Some(range),
        });
        for range in requests(&wanted.collect::<Vec<_>>()) {
            let (known, missing) = self.link.pieces.cover(&name, &range);
            pieces.extend(known);
            let expected = |range: &Range<u64>| match length {
                Some(_) => range.end - range.start,
                None => (range.end - range.start).min(HEAD),
            };
            pieces.extend(missing.into_iter().map(|range| {
                let expected = expected(&range);
                self.ask(object, &name, range, version.clone(), expected)
            }));
        }
        if length.is_none() && ranges.contains(&TAIL) {
            let (known, missing) = self.link.pieces.cover(&name, &TAIL);
            pieces.extend(known);
            pieces.extend(missing.into_iter().map(|range| self.ask(object, &name, range, None, HEAD)));
        }
        Ok(())
    }

    /// Asks for all of a file, if its ranges are such that it comes with fewer requests then, and there is room. The ranges
    /// of the first batch are asked for before.
    fn whole(&mut self, object: &Object, ranges: &[Range<u64>], batches: usize) {
        if batches < 2 || ranges.len() < 2 {
            return;
        }
        let name: Arc<str> = object.address.to_string().into();
        if self.whole.contains(&name) {
            return;
        }
        let Some(head) = self.link.heads.get(&name).filter(|head| head.length <= self.room_for_whole) else {
            return;
        };
        let inside = ranges.iter().map(|range| range.start.min(head.length)..range.end.min(head.length));
        let asked = requests(&inside.collect::<Vec<_>>());
        if !is_read_whole(head.length, &asked, batches) {
            return;
        }
        let Ok(bucket) = object.bucket(self.link) else { return };
        let on_disk = disk_cache::ObjectCache::new(object, &bucket, &head).ok();
        for range in strides(head.length) {
            let wanted = match &on_disk {
                Some(on_disk) => on_disk.wanted(range),
                None => Some(range),
            };
            let Some(range) = wanted else { continue };
            let (known, missing) = self.link.pieces.cover(&name, &range);
            if missing.is_empty() {
                self.kept.pieces.extend(known);
            } else {
                let expected = range.end - range.start;
                self.kept.pieces.push(self.ask(object, &name, range, Some(head.version.clone()), expected));
            }
        }
        self.room_for_whole -= head.length;
        self.whole.insert(name);
    }

    /// Puts a piece into the queue.
    fn ask(
        &self,
        object: &Object,
        name: &Arc<str>,
        range: Range<u64>,
        version: Option<Version>,
        expected: u64,
    ) -> Arc<Piece> {
        let piece = self.link.pieces.add(name, range.clone());
        let asked = self.link.listings.ask(&object.address.bucket_name());
        let job =
            Job { piece: Arc::downgrade(&piece), object: object.clone(), range, version, asked, expected };
        // Where nobody takes it, whoever reads asks by himself.
        let _ = self.queue.send(job);
        piece
    }
}

impl FetchAhead for Session {
    fn fetch(&mut self, files: &[FileRanges<'_>], batches: usize) -> io::Result<PrefetchGuard> {
        let mut kept = Kept { link: self.link, pieces: vec![] };
        if !self.link.is_own() {
            return Ok(Box::new(kept));
        }
        for (path, ranges) in files {
            let Ok(object) = Object::of(path, self.connect) else { continue };
            self.file(&object, ranges, &mut kept.pieces)?;
            self.whole(&object, ranges, batches);
        }
        Ok(Box::new(kept))
    }

    fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
}

/// Lets pieces be asked for in the order in which they came, as there is room for them. It ends with its session, once that is
/// dropped and nothing is left in the queue.
async fn dispatch(link: &'static Link, all: u32, is_full: Arc<AtomicBool>, mut jobs: UnboundedReceiver<Job>) {
    let room = Arc::new(Semaphore::new(all as usize));
    let (begun, requests) = unbounded_channel();
    drop(link.start(send(link, requests)));
    while let Some(job) = jobs.recv().await {
        if job.piece.strong_count() == 0 {
            continue;
        }
        let bytes = units(job.range.end - job.range.start).min(all);
        let mut permit = room.clone().try_acquire_many_owned(bytes).ok();
        if permit.is_none() {
            // Not only in the queue, where each is for a moment, but without room.
            is_full.store(true, Ordering::Relaxed);
            permit = room.clone().acquire_many_owned(bytes).await.ok();
            is_full.store(false, Ordering::Relaxed);
        }
        let Some(permit) = permit else { return };
        let Some(filler) = job.piece.upgrade().and_then(|piece| Slot::begin(&piece.slot)) else { continue };
        // The task that takes it ends after this one.
        let _ = begun.send((job, filler, permit));
    }
}

/// Makes requests in their order, as many at once as keep the link busy.
async fn send(link: &'static Link, mut begun: UnboundedReceiver<(Job, SlotFiller, OwnedSemaphorePermit)>) {
    while let Some((job, filler, mut permit)) = begun.recv().await {
        let Job { piece, object, range, version, asked, expected } = job;
        let Some(passage) = link.byte_limit.enter(expected).await else { return };
        let Some(piece) = piece.upgrade() else { continue };
        let Ok(bucket) = object.bucket(link) else { continue };
        let task = link.start(async move {
            let (is_tail, is_head) = (range == TAIL, range == (0..HEAD));
            let asked_head = link.heads.ask();
            let (got, passage) = passage.held_for(object.request(link, bucket.clone(), range, version)).await;
            // Some servers do not count from the end. The reader that opens the file asks for its beginning.
            if is_tail && got.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::NotFound) {
                return;
            }
            if let Ok((piece, head)) = &got {
                // The object may have ended before.
                let came: usize = piece.chunks.iter().map(bytes::Bytes::len).sum();
                if let Some(passage) = passage {
                    passage.arrived(came as u64);
                }
                link.heads.learn(object.address.to_string(), head.clone(), asked_head);
                if is_tail {
                    object.keep_end(link, piece, head);
                } else if is_head && head.length <= MAX_SMALL_OBJECT {
                    object.keep_window(link, piece, head);
                }
                if disk_cache::is_there() {
                    tokio::task::block_in_place(|| disk_cache::keep(&object, &bucket, head, piece));
                }
                let over = (permit.num_permits() as u32).saturating_sub(units(came as u64));
                drop(permit.split(over as usize));
            } else if got.as_ref().is_err_and(crate::attempts::is_replaced) {
                link.heads.forget(&object.address.to_string());
            } else if is_head && got.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
                let address = &object.address;
                link.listings.note_absent(&address.bucket_name(), &address.to_string(), asked);
            }
            filler.finish(got, permit);
        });
        piece.runs(task.abort_handle());
    }
}
