//! The limits of a loader: those of this machine beside its throughput.
//!
//! ```text
//!  widening and scaling  the loader's kernel on a batch, the same threads         ─┐
//!  reading alone         the store's own reads into nothing, one thread × threads ─┼─▶ the smallest binds
//!  the bare codec        the library on whole images, one thread × threads         │   (disk: only with a cold cache)
//!  disk                  the set's files read past the page cache                 ─┤
//!  link                  of a set behind a network, in place of reading alone:    ─┘
//!                        bare requests of the same ranges, as many at once as are best
//! ```
//!
//! All in images per second. A loader faster than the smallest is bound by none of them: "limit not valid". The fastest
//! of several passes is a limit: a disturbance makes one smaller, and a limit that is too small is none.
//!
//! `share_of_copy` is no limit: it says how much is delivered in units that do not depend on the size of images. Memory copy reads
//! and writes each byte in buffers that exceed the caches; batches that stay in a cache exceed it.

mod kernel;
mod link;
mod parts;
mod passes;

use crate::choices::Preset;
use crate::core::Session;
use crate::data::FormatSet;
use crate::feed;
use anyhow::Result;
use kernel::Batches;
use parts::{bare, disk};
use passes::rate;
use std::collections::HashMap;
use std::hint::black_box;
use wellread_image::{PixelType, Region};
use wellread_loader::order::Permutation;
use wellread_loader::{Cache, Placement};
use wellread_measure::clock::Stopwatch;
use wellread_measure::limits::{CopyLimits, LimitSettings, measure_copy};
use wellread_report::{Cell, Table};
use wellread_store::bare_codec::BareCodec;
use wellread_store::{Block, PixelSink, Request, RowHints, Scratch};

/// Most images of a pass of reading. Another pass reads others, so that nothing is found in a cache that an epoch
/// would not find there.
const READ_IMAGES: usize = 1 << 15;

/// Limits of one set, images per second.
#[derive(Default)]
struct Limits {
    /// Reading into nothing, one thread. `None` where the bytes to read differ between images, and for a set behind a
    /// network. One thread would wait for requests that a loader makes ahead.
    reading: Option<f64>,
    /// The bare codec, one thread.
    codec: Option<f64>,
    disk: Option<f64>,
    link: Option<f64>,
}

/// The value of `bound_by` where more was delivered than the smallest limit allows.
pub(crate) const NOT_VALID: &str = "limit not valid";

/// Adds to every row of a table of `readers` and `samples_per_sec`: `limit_kernel_per_s`, `limit_read_per_s`,
/// `limit_link_per_s`, `limit_codec_per_s`, `limit_disk_per_s`, `bound_by`, `share_of_limit`, `share_of_copy` and, with
/// a GPU, `share_of_device_copy`. `bound_by` is the smallest limit of those that apply to a warm page cache, or
/// [`NOT_VALID`]. Returns remarks on what could not be measured.
pub(crate) fn with_limits(session: &Session<'_>, table: &Table) -> (Table, Vec<String>) {
    let copy = measure_copy(&LimitSettings::default());
    let config = session.config;
    let delivered = session.prepared.delivered_bytes(config.batch_crop());
    let device = session.frameworks.host_to_device();
    let mut notes = Vec::new();
    if config.random_crop.is_some() {
        // Neighbouring crops share what is decoded, by chance.
        notes.push(
            "with --random-crop the rates have one limit, widening and scaling: the work of reading \
                    depends on the places of the crops"
                .to_owned(),
        );
    }
    let mut limits: HashMap<&str, Limits> = HashMap::new();
    let mut late = vec![];
    for set in session.prepared.sets.iter().filter(|set| set.error.is_none()) {
        if config.random_crop.is_some() {
            limits.insert(set.format, Limits::default());
            continue;
        }
        // Limits that were not measured are not needed.
        if !(0..table.rows()).any(|row| {
            table.str("format", row) == Some(set.format) && table.f64("samples_per_sec", row).is_some()
        }) {
            continue;
        }
        if session.is_late() {
            late.push(set.format);
            continue;
        }
        match measure(session, set, &mut notes) {
            Ok(found) => {
                limits.insert(set.format, found);
            }
            Err(error) => notes.push(format!("{}: its limits could not be measured: {error:#}", set.format)),
        }
    }
    if !late.is_empty() {
        notes.push(format!("the limits of {} were not measured for want of time", late.join(", ")));
    }
    let mut kernels: HashMap<Batches, f64> = HashMap::new();
    let mut kernel = |batches: Option<Batches>| {
        batches.map(|batches| *kernels.entry(batches).or_insert_with(|| batches.rate()))
    };
    let mut out = Table::new(table.name());
    for row in 0..table.rows() {
        let mut cells: Vec<(String, Cell)> =
            table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), row))).collect();
        let found = table.str("format", row).and_then(|format| limits.get(format));
        let threads = readers(table, row).unwrap_or(1.0) as usize;
        let at = |found: &Limits| {
            found.at(threads, copy.threads, kernel(batches(session, table, row, (copy.threads, delivered))))
        };
        let measured = table.f64("samples_per_sec", row).is_some();
        let mut added = found.filter(|_| measured).map(at).unwrap_or_default();
        if keeps(table, row) {
            added.iter_mut().filter(|l| is_reading(l.name)).for_each(|l| l.binds = false);
        }
        let bound = added.iter().filter(|l| l.binds).min_by(|a, b| a.rate.total_cmp(&b.rate));
        for (name, _) in NAMES {
            let rate = added.iter().find(|l| l.name == name).map(|l| l.rate);
            cells.push((format!("limit_{name}_per_s"), rate.map_or(Cell::Null, Cell::from)));
        }
        let words = |l: &Limit| NAMES.iter().find(|n| n.0 == l.name).map_or("", |n| n.1);
        let share = bound.and_then(|l| Some(table.f64("samples_per_sec", row)? / l.rate));
        let valid = |l: &&Limit| if share.is_some_and(|share| share > 1.0) { NOT_VALID } else { words(l) };
        cells.push(("bound_by".to_owned(), bound.as_ref().map_or(Cell::Null, |l| Cell::from(valid(l)))));
        cells.push(("share_of_limit".to_owned(), share.map_or(Cell::Null, Cell::from)));
        cells.extend(shares(table.f64("samples_per_sec", row), delivered, threads, &copy, device));
        out.push(cells);
    }
    (out, notes)
}

/// Images of so many `delivered` bytes per second as a share of what as many threads can copy. NaN of no finite rate.
pub(crate) fn share_of_copy(images_per_s: f64, delivered: f64, threads: usize, copy: &CopyLimits) -> f64 {
    let share = images_per_s / copy_rate(delivered, threads, copy);
    if share.is_finite() { share } else { f64::NAN }
}

/// The shares of every loader's figure, as columns: `share_of_copy` by as many threads, and `share_of_device_copy`.
/// The latter is there where a framework has a device that takes so many bytes per second.
fn shares(
    rate: Option<f64>,
    delivered: f64,
    threads: usize,
    copy: &CopyLimits,
    device: Option<f64>,
) -> Vec<(String, Cell)> {
    let cell = |share: Option<f64>| share.filter(|s| s.is_finite()).map_or(Cell::Null, Cell::from);
    let of_copy = rate.map(|rate| share_of_copy(rate, delivered, threads, copy));
    let mut cells = vec![("share_of_copy".to_owned(), cell(of_copy))];
    if let Some(device) = device {
        cells.push(("share_of_device_copy".to_owned(), cell(rate.map(|rate| rate * delivered / device))));
    }
    cells
}

/// Adds `share_of_copy` and `share_of_device_copy` to every row of a table with a column of images per second `rate`.
/// They are shares of the rate at which so many `threads` can copy, and of the rate at which the device takes images.
pub(crate) fn with_share_of_copy(session: &Session<'_>, table: &Table, rate: &str, threads: usize) -> Table {
    let copy = measure_copy(&LimitSettings::default());
    let delivered = session.prepared.delivered_bytes(session.config.crop);
    let device = session.frameworks.host_to_device();
    let mut out = Table::new(table.name());
    for row in 0..table.rows() {
        let mut cells: Vec<(String, Cell)> =
            table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), row))).collect();
        cells.extend(shares(table.f64(rate, row), delivered, threads, &copy, device));
        out.push(cells);
    }
    out
}

/// Images per second that so many threads can copy: no more than each of them alone could, and than all threads can.
fn copy_rate(delivered: f64, threads: usize, copy: &CopyLimits) -> f64 {
    let [one, all] = [copy.one_thread, copy.all_threads].map(|bandwidth| bandwidth.bytes_per_second);
    let several = threads.min(copy.threads);
    let bytes_per_s = if several > 1 { all.min(one * several as f64) } else { one };
    bytes_per_s / delivered
}

/// Threads or processes that read in a row's configuration: as measured, otherwise its workers, or the one that has none.
pub(crate) fn readers(table: &Table, row: usize) -> Option<f64> {
    table.f64("readers", row).or_else(|| Some(table.f64("workers", row)?.max(1.0)))
}

/// The batches of a row's configuration on so many cores, an image of which has so many bytes on average. It is `None` where there are no
/// images, or no batches.
fn batches(
    session: &Session<'_>,
    table: &Table,
    row: usize,
    (cores, delivered): (usize, f64),
) -> Option<Batches> {
    let config = session.config;
    let first: PixelType = session.prepared.expected.first()?.dtype.parse().ok()?;
    let images = table.f64("batch_size", row)? as usize;
    let threads = (readers(table, row)? as usize).clamp(1, cores);
    Some(Batches {
        dtype: first,
        pixels: (delivered / size_of::<f32>() as f64) as usize,
        images,
        // Without workers the one that is filled, and the one in the consumer's hands.
        buffers: match table.f64("workers", row)? as usize {
            0 => 2,
            workers => feed::ahead(config.prefetch, workers),
        },
        threads,
    })
}

/// Whether the loader of a row keeps images: kept images are not read again, so that reading does not bind.
fn keeps(table: &Table, row: usize) -> bool {
    table.str("cache", row).is_some_and(|cache| cache != Cache::None.name())
}

/// Whether a limit is one of reading, which what is kept does not need.
fn is_reading(name: &str) -> bool {
    matches!(name, "read" | "link")
}

/// The limit of the configuration of a row: the smaller of its limits by name, and its images per second.
pub(crate) fn binding(table: &Table, row: usize) -> Option<(&'static str, f64)> {
    table.str("bound_by", row)?;
    let limit = |(name, words): (&str, &'static str)| {
        let binds = !is_reading(name) || !keeps(table, row);
        table.f64(&format!("limit_{name}_per_s"), row).filter(|_| binds).map(|rate| (words, rate))
    };
    NAMES[..3].iter().copied().filter_map(limit).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Limits by the names of their columns, and in words.
const NAMES: [(&str, &str); 5] = [
    ("kernel", "widening and scaling"),
    ("read", "reading and decoding"),
    ("link", "link"),
    ("codec", "bare codec"),
    ("disk", "disk"),
];

struct Limit {
    name: &'static str,
    rate: f64,
    /// Whether it can bind with a warm page cache.
    binds: bool,
}

impl Limits {
    /// All limits for a number of threads on so many cores; `kernel` is the rate of as many threads.
    fn at(&self, threads: usize, cores: usize, kernel: Option<f64>) -> Vec<Limit> {
        // More threads than cores add nothing.
        let threads = threads.clamp(1, cores) as f64;
        // One limit alone does not show whether it binds.
        let kernel = kernel.filter(|rate| rate.is_finite());
        let binds = self.reading.or(self.link).is_some();
        let mut all: Vec<Limit> = Vec::from_iter(kernel.map(|rate| Limit { name: "kernel", rate, binds }));
        all.extend(self.reading.map(|rate| Limit { name: "read", rate: rate * threads, binds: true }));
        all.extend(self.link.map(|rate| Limit { name: "link", rate, binds: true }));
        // It bounds reading, of which it is a part: to be looked at, not to be chosen.
        all.extend(self.codec.map(|rate| Limit { name: "codec", rate: rate * threads, binds: false }));
        all.extend(self.disk.map(|rate| Limit { name: "disk", rate, binds: false }));
        all
    }
}

fn measure(session: &Session<'_>, set: &FormatSet, notes: &mut Vec<String>) -> Result<Limits> {
    let store = session.open(set)?;
    let link = crate::link::of(&*store).map(|(link, _)| link);
    let is_remote = link.is_some();
    let reading = if is_remote { None } else { Some(reading(session, set)?) };
    let link = match link {
        Some(link) => link::limit(session, set, link)?,
        None => None,
    };
    let codec = match BareCodec::named(set.codec.as_deref().unwrap_or_default())? {
        Some(codec) => bare(codec, &*store).unwrap_or_else(|error| {
            notes.push(format!("{}: the bare codec could not be measured: {error:#}", set.format));
            None
        }),
        None => None,
    };
    let files = store.files()?;
    let images = store.len();
    drop(store);
    let disk = if session.config.cold && !is_remote { disk(&files, images, set.format, notes) } else { None };
    Ok(Limits { reading, codec, disk, link })
}

/// Images per second of one thread that reads images, of each what the recipe crops. Order is random, some at a time as
/// in a loader. It does nothing with them. As with the loaders, one set stays open or each pass opens it anew, outside of its
/// time. Pages that a store keeps decompressed would not be there either.
fn reading(session: &Session<'_>, set: &FormatSet) -> Result<f64> {
    struct DiscardSink(u64);
    impl PixelSink for DiscardSink {
        fn put(&mut self, _: usize, block: &Block<'_>) -> wellread_store::Result<()> {
            self.0 += u64::from(*block.data.last().unwrap_or(&0));
            Ok(())
        }

        fn mark_unmasked(&mut self, _: usize, _: &Block<'_>) {}
    }
    let (seed, transform) = (session.config.seed, session.transform(Preset::None)?);
    let mut store = session.open(set)?;
    let at_once = store.hints().rows_per_read.max(16);
    let mut scratch = Scratch::default();
    let mut epoch = 0;
    let images = store.len().min(READ_IMAGES);
    rate(images, || {
        if !session.config.keep_open && epoch > 0 {
            store = session.open(set)?;
        }
        // As the loaders do.
        store.hints().forget_pages();
        let clock = Stopwatch::start();
        let order = Permutation::new(store.len(), seed, epoch);
        epoch += 1;
        for first in (0..images).step_by(at_once) {
            let rows = first..(first + at_once).min(images);
            let mut requests = rows
                .map(|i| {
                    let row = order.at(i);
                    let shape = store.row_info(row)?.shape;
                    let Placement { top, left, height, width, .. } =
                        transform.placement(shape, seed, 0, row)?;
                    let size = [shape.t(), shape.c(), shape.z(), height, width];
                    Ok(Request { row, region: Region { start: [0, 0, 0, top, left], size } })
                })
                .collect::<Result<Vec<_>>>()?;
            requests.sort_by_key(|request| store.row_hints(request.row).map_or(u64::MAX, RowHints::position));
            let mut nothing = DiscardSink(0);
            store.read(&requests, &mut scratch, &mut nothing)?;
            black_box(nothing.0);
        }
        Ok(clock.elapsed())
    })
}

#[cfg(test)]
mod tests;
