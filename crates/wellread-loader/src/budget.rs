//! The bound on what a loader holds at once ([`LoaderBuilder::memory`](crate::LoaderBuilder::memory)).
//!
//! ```text
//!  limit  ≥  (prefetch + 1 delivered) × batch  +  threads × share  +  extra  +  caches
//!             ring                                scratch, pieces     of images larger than most
//! ```
//!
//! What a row takes while it is read follows from its shape and from what its store says of pieces
//! ([`Store::working_bytes`]): [`Needs`]. A thread may use its share without asking; for an image that takes more it
//! waits until the extra part is free ([`Working`]), and gives its buffers back afterwards. Where all that exceeds the
//! limit, first joined reads become shorter, then the thread that waits for batches does not read, then fewer batches are
//! read ahead, then fewer threads read ([`fit`]).
//! Not counted are descriptions of the set (its index, names, shapes) and batches that the caller keeps.

use crate::cache::Cache;
use crate::dataset::Dataset;
use crate::item::{INTERMEDIATE, Job};
use crate::order::Rows;
use crate::pool::BatchBuffer;
use crate::ranks::TABLE_BYTES;
use crate::recipe::Recipe;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};
use wellread_store::words::counted;
use wellread_store::{Error, Result, RowInfo};

/// Bytes per row of lists that threads keep of the rows in work: requests, targets, places.
const ROW: usize = 1 << 10;
/// Rows that are looked at to know how large images are, spread over the set.
const LOOKED_AT: usize = 1 << 16;

/// What a loader holds at most: the parts of its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// The bound that was set.
    pub limit: usize,
    /// Batches: those ahead, and the one delivered last.
    pub batches: usize,
    /// Bytes of a batch.
    pub batch: usize,
    /// Threads that read.
    pub threads: usize,
    /// Bytes that each thread may use for itself.
    pub thread: usize,
    /// Bytes that threads share for images larger than most.
    pub extra: usize,
    /// Bytes of the caches of the dataset.
    pub caches: usize,
    /// Bytes of decoded pages that the store may keep.
    pub pages: usize,
    /// What was lowered to stay within the limit, as a sentence.
    pub lowered: Option<String>,
}

impl MemoryUse {
    /// Bytes that are held at most.
    pub const fn total(&self) -> usize {
        self.batches * self.batch + self.threads * self.thread + self.extra + self.caches + self.pages
    }
}

impl fmt::Display for MemoryUse {
    /// `up to 61.2 MiB of 64 MiB: 5 batches of 9.2 MiB, 2 threads with 3.5 MiB, caches 8 MiB`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "up to {} of {}: {} of {}, {} with {}",
            Bytes(self.total()),
            Bytes(self.limit),
            counted(self.batches, "batch"),
            Bytes(self.batch),
            counted(self.threads, "thread"),
            Bytes(self.thread),
        )?;
        for (bytes, what) in [
            (self.extra, "for larger images"),
            (self.caches, "for caches"),
            (self.pages, "for decoded pages"),
        ] {
            if bytes > 0 {
                write!(f, ", {} {what}", Bytes(bytes))?;
            }
        }
        self.lowered.as_ref().map_or(Ok(()), |lowered| write!(f, "; {lowered}"))
    }
}

/// An amount of memory as people read it.
pub(crate) struct Bytes(pub(crate) usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
        let unit = (self.0.max(1).ilog2() as usize / 10).min(units.len() - 1);
        let number = self.0 as f64 / (1u64 << (10 * unit)) as f64;
        let digits = usize::from(unit > 0 && number.fract() != 0.0);
        write!(f, "{number:.digits$} {}", units[unit])
    }
}

/// The same, not less than there is: an amount to be given. In KiB at least, with tenths.
struct Enough(usize);

impl fmt::Display for Enough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB"];
        let unit = (self.0.max(1).ilog2() as usize / 10).clamp(1, units.len());
        let tenths = (self.0 as u128 * 10).div_ceil(1 << (10 * unit));
        let (whole, tenth) = (tenths / 10, tenths % 10);
        let unit = units[unit - 1];
        if tenth == 0 { write!(f, "{whole} {unit}") } else { write!(f, "{whole}.{tenth} {unit}") }
    }
}

/// How much memory reading takes, the output aside.
pub(crate) struct Needs<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) recipe: &'a Recipe,
    /// Bytes of an image in the batch.
    pub(crate) output: usize,
}

impl Needs<'_> {
    /// Bytes that reading rows in one call takes, `floats` of them in the intermediate buffer.
    pub(crate) fn of(&self, rows: impl Iterator<Item = (usize, RowInfo)>, floats: usize) -> Result<usize> {
        let store = self.dataset.store();
        let (mut largest, mut all, mut whole, mut pixels, mut n) = (0usize, 0usize, 0usize, 0usize, 0usize);
        for (row, info) in rows {
            let working = store.working_bytes(row)?;
            largest = largest.max(working);
            all = all.saturating_add(working);
            whole = whole.saturating_add(info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX));
            pixels = pixels.max(self.crop(info));
            n += 1;
        }
        // Where a read has a price of its own, the engine decodes all its rows at once; a cache reads whole images of
        // all rows.
        let reading = if store.rows_per_read() > 1 { all } else { largest };
        let reading = reading.saturating_add(if self.dataset.is_cached() { whole } else { 0 });
        let later = if floats == 0 && self.recipe.finish.is_none() {
            0
        } else {
            // Straight and turned, then as floats of the output's size, a plane between, values near a percentile.
            (2 * pixels)
                .saturating_add(3 * self.output_floats())
                .saturating_mul(4)
                .saturating_add(TABLE_BYTES)
        };
        Ok(reading.saturating_add(floats.saturating_mul(4)).saturating_add(later).saturating_add(n * ROW))
    }

    /// The same for as many rows like this one as are read in one call.
    fn like(&self, row: usize, info: RowInfo, crops: usize, [slice, joined]: [usize; 2]) -> Result<usize> {
        let transform = &self.recipe.transform;
        let is_direct = !transform.project
            && transform.illumination.is_none()
            && transform.resize.is_none()
            && transform.max_degrees == 0.0
            && self.recipe.finish.is_none();
        let each = if is_direct { 0 } else { self.crop(info).saturating_mul(crops) };
        let floats = each.max(each.saturating_mul(slice).min(INTERMEDIATE));
        let one = self.of(std::iter::once((row, info)), floats)?;
        let others = slice.saturating_mul(joined).saturating_sub(1);
        let per_row = if self.dataset.store().rows_per_read() > 1 {
            self.dataset.store().working_bytes(row)?
        } else if self.dataset.is_cached() {
            info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX).min(SPLIT / others.max(1))
        } else {
            0
        };
        Ok(one.saturating_add(others.saturating_mul(per_row.saturating_add(ROW))))
    }

    /// Pixels of the largest crop of an image, all channels.
    fn crop(&self, info: RowInfo) -> usize {
        let depth = info.shape.t().saturating_mul(self.recipe.channels.len()).saturating_mul(info.shape.z());
        let (height, width) = match self.recipe.transform.crop {
            crate::Crop::Center { height, width } | crate::Crop::Random { height, width } => (height, width),
            _ => (info.shape.y(), info.shape.x()),
        };
        depth.saturating_mul(height).saturating_mul(width)
    }

    const fn output_floats(&self) -> usize {
        // Of one byte at least.
        self.output
    }
}

/// Bytes to be read of which a slice of a batch is made of, so that threads share the work where images differ in size.
pub(crate) const SPLIT: usize = 4 << 20;

/// What was asked for, and what is to be bounded.
pub(crate) struct Wanted<'a> {
    pub(crate) limit: usize,
    pub(crate) needs: Needs<'a>,
    pub(crate) rows: &'a Rows,
    pub(crate) crops: usize,
    /// Rows and bytes of the largest batch.
    pub(crate) largest: usize,
    pub(crate) bytes: usize,
    /// Rows that a thread takes at a time.
    pub(crate) slice: usize,
    pub(crate) ahead: Ahead,
}

/// What is read ahead, and by how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ahead {
    pub(crate) workers: usize,
    /// Threads that can run at once.
    pub(crate) processors: usize,
    /// Whether the thread that waits for a batch reads, too.
    pub(crate) helps: bool,
    pub(crate) prefetch: usize,
    pub(crate) joined: usize,
}

impl Ahead {
    /// Threads that read.
    pub(crate) fn readers(self) -> usize {
        (self.workers + usize::from(self.helps)).max(1)
    }

    fn batches(self) -> usize {
        // And the one delivered last.
        1 + if self.workers == 0 { self.joined } else { self.prefetch }
    }
}

/// The most that fits.
///
/// # Errors
/// When not even one batch, read by one thread, does; rows whose shape cannot be told are left for later.
pub(crate) fn fit(wanted: &Wanted<'_>) -> Result<(Ahead, MemoryUse)> {
    let Wanted { limit, needs, crops, largest, slice, .. } = wanted;
    let dataset = needs.dataset;
    let list = largest * crops * (size_of::<usize>() + size_of::<u64>());
    let batch = wanted.bytes + list + size_of::<BatchBuffer>() + 64;
    let mut ahead = wanted.ahead;
    // Of rows as they are, and joined.
    let sizes = sizes(wanted)?;
    let preloads = dataset.caches().iter().filter(|c| matches!(c, Cache::Preload { .. })).count();
    let threads = |a: Ahead| a.readers() + preloads;
    let kept = |cache: &Cache| match cache {
        // Mapped: the operating system's to keep or drop.
        Cache::File { .. } => 0,
        _ => cache.limit().min(sizes.all),
    };
    let caches: usize = dataset.caches().iter().map(kept).fold(0, usize::saturating_add);
    let left = limit.saturating_sub(caches);
    let share = |a: Ahead, left: usize| {
        let [usual, most] = if a.joined > 1 { sizes.joined(needs, a.joined, *slice)? } else { sizes.alone };
        // Where there is room, most images need nothing extra.
        Ok::<_, Error>((usual.max(most.min(left / 4 / threads(a))), most))
    };
    let total = |a: Ahead, left: usize| {
        let (own, most) = share(a, left)?;
        let batches = a.batches().saturating_mul(batch);
        let threads = threads(a).saturating_mul(own);
        Ok::<_, Error>(batches.saturating_add(threads).saturating_add(most.saturating_sub(own)))
    };
    while total(ahead, left)? > left && ahead.joined > 1 {
        ahead.joined /= 2;
        ahead.prefetch = ahead.prefetch.min(ahead.joined * (ahead.workers.max(1) + 1));
    }
    // Nobody asked for it.
    ahead.helps &= total(ahead, left)? <= left;
    let least = Ahead { prefetch: ahead.prefetch.min(ahead.joined.max(1)), ..ahead };
    // What the store keeps of pages is useful, but comes after one batch, and leaves half to the others.
    let spare = left.saturating_sub(total(least, left)?);
    let wanted_more = total(ahead, left)? - total(least, left)?;
    let pages = dataset.store().page_cache().min((spare / 2).max(spare.saturating_sub(wanted_more)));
    let left = left - pages.min(left);
    while total(ahead, left)? > left && ahead.prefetch > ahead.joined {
        ahead.prefetch -= 1;
    }
    while total(ahead, left)? > left && ahead.workers > 1 {
        ahead.workers -= 1;
    }
    let (own, most) = share(ahead, left)?;
    if total(ahead, left)? > left {
        let mut least = total(ahead, left)?;
        // With more memory, each thread has a larger share of its own.
        loop {
            let more = total(ahead, least)?;
            if more <= least {
                break;
            }
            least = more;
        }
        return Err(too_small(wanted, batch, own.max(most), caches, least.saturating_add(caches)));
    }
    let extra = left - (total(ahead, left)? - most.saturating_sub(own));
    // A thread that is alone needs no more than the largest image does, as far as that is known.
    let memory = MemoryUse {
        limit: *limit,
        batches: ahead.batches(),
        batch,
        threads: threads(ahead),
        thread: own,
        extra,
        caches,
        pages,
        lowered: lowered(wanted, ahead),
    };
    Ok((ahead, memory))
}

/// What was lowered, as a sentence.
fn lowered(wanted: &Wanted<'_>, ahead: Ahead) -> Option<String> {
    let asked = wanted.ahead;
    let before = [("joined batches", asked.joined), ("prefetch", asked.prefetch), ("workers", asked.workers)];
    let now = [ahead.joined, ahead.prefetch, ahead.workers];
    // Without workers there is nothing ahead.
    let is_idle = |what: &str| what == "prefetch" && asked.workers == 0;
    let changes = before.iter().zip(now).filter(|((what, before), now)| before != now && !is_idle(what));
    let changes: Vec<_> =
        changes.map(|((what, before), now)| format!("{what} lowered from {before} to {now}")).collect();
    (!changes.is_empty()).then(|| format!("{} to stay within {}", changes.join(", "), Bytes(wanted.limit)))
}

fn too_small(wanted: &Wanted<'_>, batch: usize, thread: usize, caches: usize, least: usize) -> Error {
    let mut cause = format!(
        "a batch of {} has {}; with the one delivered before it and {} to read by one thread",
        counted(wanted.largest * wanted.crops, "image"),
        Bytes(batch),
        Bytes(thread)
    );
    if caches > 0 {
        cause += &format!(", and {} for caches", Bytes(caches));
    }
    cause += &format!(", that exceeds the memory of {}", Bytes(wanted.limit));
    let cache = if caches > 0 { ", a smaller cache" } else { "" };
    Error::new(wanted.needs.dataset.store().path(), cause).hint(format_args!(
        "choose a smaller batch size or crop, float16 or stored pixels{cache}, or give at least {} of memory",
        Enough(least)
    ))
}

/// How much rows take that are read: the median of those looked at, and the most.
struct Sizes {
    alone: [usize; 2],
    /// Rows of the median and the most.
    rows: [(usize, RowInfo); 2],
    crops: usize,
    /// Bytes of pixels of all rows.
    all: usize,
}

impl Sizes {
    fn joined(&self, needs: &Needs<'_>, joined: usize, slice: usize) -> Result<[usize; 2]> {
        let of = |(row, info): (usize, RowInfo)| needs.like(row, info, self.crops, [slice, joined]);
        Ok([of(self.rows[0])?, of(self.rows[1])?])
    }
}

fn sizes(wanted: &Wanted<'_>) -> Result<Sizes> {
    let Wanted { needs, rows, crops, slice, .. } = wanted;
    let dataset = needs.dataset;
    let n = rows.len().min(LOOKED_AT);
    let mut found = Vec::with_capacity(n);
    let (mut bytes, mut error) = (0u128, None);
    for i in 0..n {
        let row = rows.get((i as u128 * rows.len() as u128 / n as u128) as usize);
        let like = dataset.row_info(row).and_then(|info| {
            bytes += info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX) as u128;
            Ok((needs.like(row, info, *crops, [*slice, 1])?, row, info))
        });
        match like {
            Ok(like) => found.push(like),
            // A row that cannot be read is an error where it is delivered, unless there is no other.
            Err(e) => error = Some(e),
        }
    }
    found.sort_unstable_by_key(|(need, ..)| *need);
    let (Some(&usual), Some(&most)) = (found.get(found.len() / 2), found.last()) else {
        return Err(error.expect("there is a row, and it failed"));
    };
    let all = bytes / found.len() as u128 * dataset.len() as u128;
    Ok(Sizes {
        alone: [usual.0, most.0],
        rows: [(usual.1, usual.2), (most.1, most.2)],
        crops: *crops,
        all: usize::try_from(all).unwrap_or(usize::MAX),
    })
}

/// What threads may use for reading, while they read.
pub(crate) struct Working {
    /// Of each thread, without asking.
    share: usize,
    /// Of all together, for images that need more.
    extra: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

/// A part of what threads share; given back when dropped.
pub(crate) struct Extra<'a> {
    working: &'a Working,
    bytes: usize,
}

impl Working {
    pub(crate) fn new(memory: &MemoryUse) -> Self {
        let MemoryUse { thread, extra, .. } = *memory;
        Self { share: thread, extra, free: Mutex::new(extra), freed: Condvar::new() }
    }

    /// Takes what a read needs beyond the thread's share; waits for it if need be. A thread holds one at a time, so none
    /// waits for another that waits.
    ///
    /// # Errors
    /// More than there is; and when the iteration ends meanwhile.
    pub(crate) fn take(&self, job: &Job<'_>, need: usize) -> Result<Option<Extra<'_>>> {
        let Some(bytes) = need.checked_sub(self.share).filter(|&bytes| bytes > 0) else { return Ok(None) };
        let path = job.dataset.store().path();
        if bytes > self.extra {
            let there = self.share + self.extra;
            return Err(Error::new(
                path,
                format_args!(
                    "reading the image takes up to {} of memory, and there are {} for it",
                    Bytes(need),
                    Bytes(there)
                ),
            )
            .hint("give the loader more memory, or choose a smaller batch size or fewer workers"));
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free < bytes {
            if job.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(Error::new(path, "reading was cancelled"));
            }
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= bytes;
        Ok(Some(Extra { working: self, bytes }))
    }
}

impl Drop for Extra<'_> {
    fn drop(&mut self) {
        *self.working.free.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
        self.working.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::parse_bytes;

    #[test]
    fn an_amount_to_be_given_is_not_less_than_what_is_needed() {
        let kib = 1 << 10;
        let more =
            [1, 700, kib, kib + 1, 53_800_000, (51 << 20) + kib * 512, (1 << 30) - 1, 1 << 40, 3 << 50];
        for bytes in more {
            let text = Enough(bytes).to_string();
            let given = usize::try_from(parse_bytes(&text).unwrap()).unwrap();
            assert!(given >= bytes && given <= bytes + bytes / 9 + kib, "{bytes}: {text}");
        }
        assert_eq!(Enough((51 << 20) + (300 << 10)).to_string(), "51.3 MiB");
        assert_eq!(Enough((51 << 20) + (310 << 10)).to_string(), "51.4 MiB");
    }
}
