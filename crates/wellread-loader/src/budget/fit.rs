//! The most that fits into a bound: joined reads, threads, batches ahead.
//!
//! ```text
//!  FitRequest ── sizes: shapes of some rows ──▶ bytes of a batch, of a read, of a thread
//!                                                  │ fit: shorter joined reads, fewer batches ahead, fewer threads
//!                                                  ▼
//!                                               ReadAhead and MemoryUse, or an error that says what one batch takes
//! ```

use super::estimate::MemoryEstimate;
use super::memory_use::{Bytes, MemoryUse, RoundedUpBytes};
use crate::cache::Cache;
use crate::dataset::Dataset;
use crate::order::Rows;
use crate::pool::BatchBuffer;
use crate::row_fields::RowFields;
use crate::targets::Pairs;
use std::sync::Arc;
use wellread_store::ahead::Fetching;
use wellread_store::row_location::path_of_set;
use wellread_store::store::RowsAhead;
use wellread_store::words::counted;
use wellread_store::{Error, Result, RowCut, RowHints, RowInfo};

/// Rows that are looked at to know how large images are, spread over the set.
const SAMPLED_ROWS: usize = 1 << 16;
/// The same where each row's header is asked of a remote file.
const REMOTE_SAMPLED_ROWS: usize = 512;

/// The choices, and the bound.
pub(crate) struct FitRequest<'a> {
    pub(crate) limit: usize,
    pub(crate) estimate: MemoryEstimate<'a>,
    /// The same of targets, and which are whose.
    pub(crate) targets: Option<(MemoryEstimate<'a>, &'a Pairs)>,
    pub(crate) rows: &'a Rows,
    pub(crate) crops: usize,
    /// Rows and bytes of the largest batch.
    pub(crate) largest: usize,
    pub(crate) bytes: usize,
    /// Rows that a thread takes at a time.
    pub(crate) slice: usize,
    pub(crate) read_ahead: ReadAhead,
    /// Whether images or targets are remote: a part is for what is fetched ahead then.
    pub(crate) is_remote: bool,
}

/// The batches to read ahead, and the number of threads that read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadAhead {
    pub(crate) workers: usize,
    /// Whether the thread that waits for a batch reads, too.
    pub(crate) consumer_reads: bool,
    pub(crate) prefetch: usize,
    pub(crate) joined: usize,
}

impl ReadAhead {
    /// Threads that read.
    pub(crate) fn readers(self) -> usize {
        (self.workers + usize::from(self.consumer_reads)).max(1)
    }

    fn batches(self) -> usize {
        // And the one delivered last.
        1 + if self.workers == 0 { self.joined } else { self.prefetch }
    }
}

/// Part of a bound on memory for bytes that are fetched ahead from remote places; at most and at least.
const AHEAD_SHARE: usize = 4;
const AHEAD_BYTES: usize = 256 << 20;
const LEAST_AHEAD_BYTES: usize = 16 << 20;

/// The bytes of a bound on memory for what is fetched ahead from remote places.
pub(crate) fn ahead_share(limit: usize, is_remote: bool) -> usize {
    let share = (limit / AHEAD_SHARE).min(AHEAD_BYTES);
    // The least is what a place asks for in one request.
    if is_remote && share >= LEAST_AHEAD_BYTES { share } else { 0 }
}

/// Part of a bound on memory for illumination fields that are kept, at most.
const FIELDS_SHARE: usize = 4;

/// The illumination fields of rows, which are kept as far as they have room.
struct KeptFields<'a> {
    fields: Vec<&'a Arc<RowFields>>,
    /// Pixels of one.
    plane: usize,
}

impl<'a> KeptFields<'a> {
    fn of(request: &FitRequest<'a>) -> Self {
        let FitRequest { estimate, rows, .. } = request;
        let (info, hints) =
            (estimate.dataset.row_info(rows.get(0)), estimate.dataset.store().row_hints(rows.get(0)));
        let plane = match hints.ok().and_then(RowHints::cut) {
            // Fields are of what cells are cut out of.
            Some(RowCut { whole: [height, width], .. }) => height.saturating_mul(width),
            None => info.map_or(usize::MAX, |info| info.shape.y() * info.shape.x()),
        };
        let mut fields: Vec<&Arc<RowFields>> = vec![];
        for found in estimate.arrays.iter().filter_map(|array| array.compiled.fields()) {
            if !fields.iter().any(|known| Arc::ptr_eq(known, found)) {
                fields.push(found);
            }
        }
        Self { fields, plane }
    }

    /// The bytes that all would have, as far as they may be kept.
    fn all(&self) -> Vec<usize> {
        self.fields.iter().map(|fields| fields.keep_at_most(usize::MAX, self.plane)).collect()
    }

    /// The bytes that are kept under a bound, of these that all would have.
    fn under(all: &[usize], limit: usize) -> usize {
        let share = limit / FIELDS_SHARE / all.len().max(1);
        all.iter().map(|&bytes| bytes.min(share)).fold(0, usize::saturating_add)
    }

    /// Keeps no more from now on than a bound leaves room for.
    fn keep(&self, limit: usize) {
        let share = limit / FIELDS_SHARE / self.fields.len().max(1);
        for fields in &self.fields {
            fields.keep_at_most(share, self.plane);
        }
    }
}

/// The least bound, from `bound` on, that what is needed under it does not exceed.
fn least_bound(mut bound: usize, needed: impl Fn(usize) -> Result<usize>) -> Result<usize> {
    loop {
        let more = needed(bound)?;
        if more <= bound {
            return Ok(bound);
        }
        bound = more;
    }
}

/// The most that fits.
///
/// # Errors
/// When not even one batch, read by one thread, does; rows whose shape cannot be told are left for later.
pub(crate) fn fit(request: &FitRequest<'_>) -> Result<(ReadAhead, MemoryUse)> {
    let FitRequest { limit, estimate, targets, crops, largest, slice, .. } = request;
    let list = largest * crops * (size_of::<usize>() + size_of::<u64>());
    let batch = request.bytes + list + size_of::<BatchBuffer>() + 64;
    let mut read_ahead = request.read_ahead;
    // The rows as they are, and joined.
    let mut sets = vec![(*estimate, sizes(request, estimate, None)?)];
    if let Some((estimate, pairs)) = targets {
        sets.push((*estimate, sizes(request, estimate, Some(pairs))?));
    }
    let all_caches = sets.iter().flat_map(|(estimate, _)| estimate.dataset.caches());
    let preloads = all_caches.filter(|c| matches!(c, Cache::Preload { .. })).count();
    let threads = |a: ReadAhead| a.readers() + preloads;
    let kept = |(estimate, sizes): &(MemoryEstimate<'_>, Sizes)| {
        let of_cache = |cache: &Cache| match cache {
            // Mapped: the operating system's to keep or drop.
            Cache::File { .. } | Cache::Disk(_) => 0,
            _ => cache.limit().min(sizes.all),
        };
        estimate.dataset.caches().iter().map(of_cache).fold(0, usize::saturating_add)
    };
    let caches: usize = sets.iter().map(kept).fold(0, usize::saturating_add);
    let illumination = KeptFields::of(request);
    let fields = illumination.all();
    illumination.keep(*limit);
    let ahead = ahead_share(*limit, request.is_remote);
    let parts =
        |limit| KeptFields::under(&fields, limit).saturating_add(ahead_share(limit, request.is_remote));
    let left = limit.saturating_sub(caches).saturating_sub(parts(*limit));
    let share = |a: ReadAhead, left: usize| {
        let mut share = Share::default();
        for (i, (estimate, sizes)) in sets.iter().enumerate() {
            let [usual, most] =
                if a.joined > 1 { sizes.joined(estimate, a.joined, *slice)? } else { sizes.alone };
            // Where there is room, most images need nothing extra.
            share.own[i] = usual.max(most.min(left / 4 / sets.len() / threads(a)));
            share.extra = share.extra.max(most.saturating_sub(share.own[i]));
        }
        Ok::<_, Error>(share)
    };
    let total = |a: ReadAhead, left: usize| {
        let share = share(a, left)?;
        let batches = a.batches().saturating_mul(batch);
        let threads = threads(a).saturating_mul(share.of_thread());
        Ok::<_, Error>(batches.saturating_add(threads).saturating_add(share.extra))
    };
    while total(read_ahead, left)? > left && read_ahead.joined > 1 {
        read_ahead.joined /= 2;
        read_ahead.prefetch = read_ahead.prefetch.min(read_ahead.joined * (read_ahead.workers.max(1) + 1));
    }
    // Nobody asked for it.
    read_ahead.consumer_reads &= total(read_ahead, left)? <= left;
    let least = ReadAhead { prefetch: read_ahead.prefetch.min(read_ahead.joined.max(1)), ..read_ahead };
    // The store's kept pages are useful, but come after one batch, and leave half to the others.
    let spare = left.saturating_sub(total(least, left)?);
    let wanted_more = total(read_ahead, left)? - total(least, left)?;
    let wanted = sets.iter().map(|(estimate, _)| estimate.dataset.store().hints().page_cache_bytes());
    let wanted: usize = wanted.fold(0, usize::saturating_add);
    let pages = wanted.min((spare / 2).max(spare.saturating_sub(wanted_more)));
    let left = left - pages.min(left);
    while total(read_ahead, left)? > left && read_ahead.prefetch > read_ahead.joined {
        read_ahead.prefetch -= 1;
    }
    while total(read_ahead, left)? > left && read_ahead.workers > 1 {
        read_ahead.workers -= 1;
    }
    let own = share(read_ahead, left)?;
    if total(read_ahead, left)? > left {
        // With more memory, each thread has a larger share of its own.
        let least = least_bound(total(read_ahead, left)?, |left| total(read_ahead, left))?;
        let whole = least.saturating_add(caches);
        let least = least_bound(whole, |limit| Ok(whole.saturating_add(parts(limit))))?;
        let thread = own.of_thread().saturating_add(own.extra);
        return Err(too_small(request, batch, thread, caches, least));
    }
    let extra = left - (total(read_ahead, left)? - own.extra);
    // A thread that is alone needs no more than the largest image does, as far as that is known.
    let memory = MemoryUse {
        limit: *limit,
        batches: read_ahead.batches(),
        bytes_per_batch: batch,
        threads: threads(read_ahead),
        bytes_per_thread: own.of_thread(),
        target_bytes_per_thread: own.own[1],
        shared_bytes: extra,
        cache_bytes: caches,
        page_cache_bytes: pages,
        prefetch_bytes: ahead,
        lowered: lowered(request, read_ahead),
    };
    Ok((read_ahead, memory))
}

/// The memory that a thread takes for reading.
#[derive(Clone, Copy, Default)]
struct Share {
    /// Always: for images, and for their targets.
    own: [usize; 2],
    /// For the largest image or target, by turns with other threads.
    extra: usize,
}

impl Share {
    const fn of_thread(self) -> usize {
        self.own[0].saturating_add(self.own[1])
    }
}

/// A sentence about the choices that were lowered.
fn lowered(request: &FitRequest<'_>, read_ahead: ReadAhead) -> Option<String> {
    let asked = request.read_ahead;
    let before = [("joined batches", asked.joined), ("prefetch", asked.prefetch), ("workers", asked.workers)];
    let now = [read_ahead.joined, read_ahead.prefetch, read_ahead.workers];
    // Without workers there is nothing ahead.
    let is_idle = |what: &str| what == "prefetch" && asked.workers == 0;
    let changes = before.iter().zip(now).filter(|((what, before), now)| before != now && !is_idle(what));
    let changes: Vec<_> =
        changes.map(|((what, before), now)| format!("{what} lowered from {before} to {now}")).collect();
    (!changes.is_empty()).then(|| format!("{} to stay within {}", changes.join(", "), Bytes(request.limit)))
}

fn too_small(request: &FitRequest<'_>, batch: usize, thread: usize, caches: usize, least: usize) -> Error {
    let mut cause = format!(
        "a batch of {} has {}; with the one delivered before it and {} to read by one thread",
        counted(request.largest * request.crops, "image"),
        Bytes(batch),
        Bytes(thread)
    );
    if caches > 0 {
        cause += &format!(", and {} for caches", Bytes(caches));
    }
    cause += &format!(", that exceeds the memory of {}", Bytes(request.limit));
    let cache = if caches > 0 { ", a smaller cache" } else { "" };
    Error::new(path_of_set(request.estimate.dataset.store()), cause).hint(format_args!(
        "choose a smaller batch size or crop, float16 or stored pixels{cache}, or give at least {} of memory",
        RoundedUpBytes(least)
    ))
}

/// How much rows take that are read: the median of those looked at, and the most.
struct Sizes {
    alone: [usize; 2],
    /// Rows of the median and the most.
    rows: [(usize, RowInfo); 2],
    crops: usize,
    /// Bytes of pixels of all rows that a cache may keep.
    all: usize,
}

impl Sizes {
    fn joined(&self, estimate: &MemoryEstimate<'_>, joined: usize, slice: usize) -> Result<[usize; 2]> {
        let of = |(row, info): (usize, RowInfo)| estimate.like(row, info, self.crops, [slice, joined]);
        Ok([of(self.rows[0])?, of(self.rows[1])?])
    }
}

/// The requests for headers ahead, where the set has files of its own for its rows and they are remote.
fn of_headers(dataset: &Dataset, row: usize) -> Option<Fetching> {
    let store = dataset.store();
    let is_apart = store.hints().sites.is_some() || store.row_hints(row).ok()?.file().is_some();
    if is_apart { Fetching::of(store.remote_path()?, None) } else { None }
}

/// The sizes of images or, given their pairs, of targets.
fn sizes(request: &FitRequest<'_>, estimate: &MemoryEstimate<'_>, pairs: Option<&Pairs>) -> Result<Sizes> {
    let FitRequest { rows, crops, slice, .. } = request;
    let dataset = estimate.dataset;
    let paired = |row: usize| pairs.map_or(Ok(row), |pairs| pairs.row(request.estimate.dataset, row));
    let fetching = paired(rows.get(0)).ok().and_then(|row| of_headers(dataset, row));
    let n = rows.len().min(if fetching.is_some() { REMOTE_SAMPLED_ROWS } else { SAMPLED_ROWS });
    let sampled = |i: usize| paired(rows.get((i as u128 * rows.len() as u128 / n as u128) as usize));
    let mut found = Vec::with_capacity(n);
    let (mut bytes, mut error) = (0u128, None);
    let mut ahead = RowsAhead::heads_by(dataset.store(), fetching, n, |i| sampled(i).ok());
    for i in 0..n {
        ahead.before(i);
        let like = sampled(i).and_then(|row| {
            let info = dataset.row_info(row)?;
            let kept = dataset.kept_info(row)?;
            bytes += kept.shape.checked_bytes(kept.dtype).unwrap_or(usize::MAX) as u128;
            Ok((estimate.like(row, info, *crops, [*slice, 1])?, row, info))
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
    let all = bytes / found.len() as u128 * dataset.kept_rows() as u128;
    Ok(Sizes {
        alone: [usual.0, most.0],
        rows: [(usual.1, usual.2), (most.1, most.2)],
        crops: *crops,
        all: usize::try_from(all).unwrap_or(usize::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_leaves_what_is_needed_beside_its_parts() {
        let least = |bytes: usize, parts: fn(usize) -> usize| {
            least_bound(bytes, |bound| Ok(bytes.saturating_add(parts(bound)))).unwrap()
        };
        let of_remote = |bound| ahead_share(bound, true);
        for bytes in [1, 1000, 50 << 20, (48 << 20) + 7, 90 << 20, 5 << 30, usize::MAX - 1] {
            let bound = least(bytes, of_remote);
            assert!(bound == usize::MAX || bound - of_remote(bound) >= bytes, "{bytes}: {bound}");
            assert!(bound <= bytes.saturating_add(bytes / 3 + 1), "{bytes}: {bound}");
            assert_eq!(least(bytes, |bound| ahead_share(bound, false)), bytes);
        }
    }
}
