//! The link itself, measured: the server at the other end, and bare requests of ranges, whose bytes nobody looks
//! at.
//!
//! ```text
//!  ranges ─▶ one list ─▶ so many tasks as are asked for, each takes the next range ─▶ seconds until all are there
//! ```
//!
//! The requests are those that reading makes, by the same client; only joining, waiting for others and decoding are left out. So it
//! is the limit that the link sets to reading.

use crate::attempts::bare_attempts;
use crate::bucket::Bucket;
use crate::link::{Link, link};
use crate::object::{Connect, Object, get_verb, once};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use wellread_store::place::{FileRange, LinkAbout};

/// The server at the other end of the way to an address.
pub(crate) fn about(connect: Connect, path: &Path) -> io::Result<LinkAbout> {
    let link = link()?;
    let bucket = Object::of(path, connect)?.bucket(link)?;
    Ok(LinkAbout {
        endpoint: bucket.endpoint.clone(),
        region: bucket.region.clone(),
        credentials: bucket.who.clone(),
        in_flight: link.limits.in_flight,
    })
}

/// A range of an object, and the way to it.
struct Wanted {
    object: Object,
    bucket: Arc<Bucket>,
    range: Range<u64>,
}

/// Asks for all ranges, `at_once` at a time: how long it took.
pub(crate) fn fetch(connect: Connect, ranges: &[FileRange], at_once: usize) -> io::Result<Duration> {
    let link = link()?;
    let mut all = Vec::with_capacity(ranges.len());
    for FileRange { path, range } in ranges {
        let object = Object::of(path, connect)?;
        let bucket = object.bucket(link)?;
        all.push(Wanted { object, bucket, range: range.clone() });
    }
    let tasks = at_once.clamp(1, all.len().max(1));
    let (all, next) = (Arc::new(all), Arc::new(AtomicUsize::new(0)));
    let begun = Instant::now();
    link.wait(together(link, all, next, tasks))?;
    Ok(begun.elapsed())
}

async fn together(
    link: &'static Link,
    all: Arc<Vec<Wanted>>,
    next: Arc<AtomicUsize>,
    tasks: usize,
) -> io::Result<()> {
    // Dropped, as when nobody waits any more, it gives them up.
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        running.spawn(fetch_ranges(link, all.clone(), next.clone()));
    }
    let mut outcome = Ok(());
    while let Some(done) = running.join_next().await {
        outcome = outcome.and(done.map_err(io::Error::other).and_then(|done| done));
    }
    outcome
}

/// Takes range after range until none is left, or one cannot be had.
async fn fetch_ranges(link: &'static Link, all: Arc<Vec<Wanted>>, next: Arc<AtomicUsize>) -> io::Result<()> {
    while let Some(Wanted { object, bucket, range }) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
        let asked = object.asked(&get_verb(range), bucket);
        let (key, stall) = (&object.address.key, link.limits.stall);
        let got =
            bare_attempts(link, asked, || once(bucket.clone(), key.clone(), range.clone(), None, stall));
        if let Err(error) = got.await {
            next.store(all.len(), Ordering::Relaxed);
            return Err(error);
        }
    }
    Ok(())
}
