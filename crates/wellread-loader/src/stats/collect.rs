//! The pass over a set that counts every pixel.
//!
//! ```text
//!  rows ──groups of neighbours──▶ threads ── counts of values, one list per channel ─────────┐
//!                                    └────── moments of each group, added up in row order ───┴─▶ PartialStats, Stats
//! ```

use super::bins::{Counts, bins, is_exact};
use super::channel_order::ChannelOrder;
use super::document::Stats;
use super::moments::Moments;
use super::partial::PartialStats;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use wellread_image::PixelType;
use wellread_store::convert::other_type;
use wellread_store::store::RowsAhead;
use wellread_store::{Error, Result, RowInfo, Scratch, Store};
use wellread_trace::{Kind, span};

/// Bytes of counts of one thread, at most: a bound on the channels of a set.
const MAX_THREAD_COUNT_BYTES: usize = 256 << 20;
/// Bytes of counts of all threads, at most: a bound on their number.
const MAX_TOTAL_COUNT_BYTES: usize = 1 << 30;

/// The counts of one thread.
struct ThreadStats<'a> {
    store: &'a dyn Store,
    order: &'a ChannelOrder,
    dtype: PixelType,
    /// The row that has this type.
    first: usize,
    counts: Vec<Counts>,
    /// The moments of the group at hand, one per channel.
    moments: Vec<Moments>,
}

/// Moments of a group of rows, by its number.
type Group = (usize, Vec<Moments>);

impl Stats {
    /// Reads every pixel of a set, with `jobs` threads. `done` is called once per row.
    ///
    /// # Errors
    /// The first row that cannot be read. Images of several pixel types. More channels than memory has room to count.
    pub fn of(store: &dyn Store, percents: &[f64], jobs: usize, done: &(dyn Fn() + Sync)) -> Result<Self> {
        let rows: Vec<usize> = (0..store.len()).collect();
        of_rows(store, &rows, percents, jobs, done)
    }
}

/// Statistics of some rows of a set, in ascending order.
pub(super) fn of_rows(
    store: &dyn Store,
    rows: &[usize],
    percents: &[f64],
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Result<Stats> {
    let Some(&first_row) = rows.first() else {
        return Err(Error::new(store.path(), "there are no images to compute statistics of"));
    };
    if let Some(bad) = percents.iter().find(|p| !(0.0..=100.0).contains(*p)) {
        return Err(Error::new(store.path(), format_args!("{bad} is no percentile")).hint("give 0 to 100"));
    }
    let info = store.row_info(first_row)?;
    let order = ChannelOrder::of(store, rows)?;
    Ok(pass(store, rows, (first_row, info), &order, jobs, done)?.finish(&order, percents))
}

impl PartialStats {
    /// Reads every pixel of some rows of a set, with `jobs` threads, for [`PartialStats::add`]. Parts end where a group of
    /// [`group_of`] rows does. `first` is the first row of all parts, whose pixel type is that of all, and `order` is that of
    /// the channels of all parts. `done` is called once per row.
    ///
    /// # Errors
    /// As [`Stats::of`].
    pub fn of(
        store: &dyn Store,
        rows: &[usize],
        first: usize,
        order: &ChannelOrder,
        jobs: usize,
        done: &(dyn Fn() + Sync),
    ) -> Result<Self> {
        pass(store, rows, (first, store.row_info(first)?), order, jobs, done)
    }
}

/// Rows that are handed out together, and whose moments are summed together: neighbouring rows share pages and chunks,
/// and some stores a query.
pub fn group_of(store: &dyn Store) -> usize {
    store.hints().rows_per_read.max(16)
}

/// Counts the values of some rows, all of the pixel type of the row `first`, whose shape and type are `info`.
fn pass(
    store: &dyn Store,
    rows: &[usize],
    (first, info): (usize, RowInfo),
    order: &ChannelOrder,
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Result<PartialStats> {
    let dtype = info.dtype;
    let each = bins(dtype) * size_of::<u64>();
    let jobs = jobs.clamp(1, rows.len().max(1)).min((MAX_TOTAL_COUNT_BYTES / (each * info.shape.c())).max(1));
    let group = group_of(store);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let groups = Mutex::new(Vec::<Group>::new());
    let all = Mutex::new(Vec::<Counts>::new());
    let failed = Mutex::new(None::<(usize, Error)>);
    wellread_store::threads::share(jobs, || {
        let mut pass = ThreadStats { store, order, dtype, first, counts: vec![], moments: vec![] };
        let (mut scratch, mut pixels) = (Scratch::default(), vec![]);
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(rows) = rows.chunks(group).nth(number) else { break };
            let _rows = span(Kind::Rows).with(number as u64, rows.len() as u64);
            if let Err(error) = pass.group(rows, &mut scratch, &mut pixels, done) {
                stop.store(true, Ordering::Relaxed);
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                // Among several, the first in order: groups are handed out in order.
                if failed.as_ref().is_none_or(|(before, _)| number < *before) {
                    *failed = Some((number, error));
                }
                break;
            }
            let moments = std::mem::take(&mut pass.moments);
            groups.lock().unwrap_or_else(PoisonError::into_inner).push((number, moments));
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        for (c, counts) in pass.counts.into_iter().enumerate() {
            match all.get_mut(c) {
                Some(sum) => sum.add(&counts),
                None => all.push(counts),
            }
        }
    });
    if let Some((_, error)) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let counts = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut groups = groups.into_inner().unwrap_or_else(PoisonError::into_inner);
    groups.sort_unstable_by_key(|(number, _)| *number);
    let groups = groups.into_iter().map(|(_, moments)| moments).collect();
    Ok(PartialStats::new(dtype, rows.len() as u64, counts, groups))
}

impl ThreadStats<'_> {
    fn group(
        &mut self,
        rows: &[usize],
        scratch: &mut Scratch,
        pixels: &mut Vec<u8>,
        done: &(dyn Fn() + Sync),
    ) -> Result<()> {
        let store = self.store;
        if store.hints().rows_per_read > 1 {
            for run in rows.chunk_by(|a, b| a + 1 == *b) {
                store.scan(run[0]..run[0] + run.len(), &mut |row, info, pixels| {
                    self.image(row, info, pixels)?;
                    done();
                    Ok(())
                })?;
            }
            return Ok(());
        }
        let mut ahead = RowsAhead::of_rows(store, rows.len(), |i| rows.get(i).copied());
        for (i, &row) in rows.iter().enumerate() {
            ahead.before(i);
            let info = store.row_info(row)?;
            wellread_store::read_region(store, row, &info.shape.full(), scratch, pixels)?;
            self.image(row, info, pixels)?;
            done();
        }
        Ok(())
    }

    fn image(&mut self, row: usize, info: RowInfo, pixels: &[u8]) -> Result<()> {
        let path = self.store.path();
        if info.dtype != self.dtype {
            return Err(other_type(self.store, (row, info.dtype), (self.first, self.dtype)).hint(
                "compute the statistics of each pixel type by itself, or have the files written anew in one type",
            ));
        }
        let channels = info.shape.c();
        // Metadata may name fewer channels than there are: those go by number.
        let places = self.order.positions(row).filter(|places| places.len() == channels);
        let counted = places.into_iter().flatten().map(|place| place + 1).fold(channels, usize::max);
        if counted.saturating_mul(bins(self.dtype) * size_of::<u64>()) > MAX_THREAD_COUNT_BYTES {
            return Err(Error::new(path, format_args!("there are too many channels to count: {channels}"))
                .row(row)
                .hint("are these channels, or another axis?"));
        }
        if self.counts.len() < counted {
            self.counts.resize_with(counted, || Counts::new(self.dtype));
        }
        if self.moments.len() < counted {
            self.moments.resize(counted, Moments::NONE);
        }
        let volume = info.shape.z() * info.shape.y() * info.shape.x() * info.dtype.size();
        for (number, data) in pixels.chunks_exact(volume).enumerate() {
            let c = number % channels;
            let c = places.map_or(c, |places| places[c]);
            if is_exact(self.dtype) {
                self.counts[c].count_narrow(data);
            } else {
                let moments = Moments::of_wide(self.dtype, data, &mut self.counts[c]);
                self.moments[c] = self.moments[c].merge(moments);
            }
        }
        Ok(())
    }
}
