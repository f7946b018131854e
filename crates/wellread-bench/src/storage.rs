//! Storage: how long each format takes to write, open, read whole and read at random, and how large it is.
//!
//! * `write`: from pixels in memory to a finished set (compression included, not waiting for the disk).
//! * `open`: opening the set and learning the first image's shape.
//! * `read_all`: opening and reading every image, native pixels, in storage order.
//! * `read_random`: opening and reading some images picked at random (`--random-images`, 10 as upstream).
//!
//! Opening is part of reading because stores do as little as they can when opened. `cold` runs first drop the
//! set's files from the page cache, and say when that did not work. Sweeps over codecs and chunk layouts follow on
//! request: [`crate::sweep`]. Turns are in random order: a set that a cold turn dropped is read once before its next warm
//! turn, outside of the clock.

mod pages;

use crate::choices::{Operation, PageCache};
use crate::core::judge::{Judge, Ranked, ranked};
use crate::core::series::{by_median, series};
use crate::core::variants::{self, Keys, Measurement, Results, Settings, Unavailable, Variant};
use crate::core::words::with_codec;
use crate::core::{Benchmark, Session};
use crate::data::{FormatSet, set_name};
use crate::page_files::{not_here, read_anywhere};
use crate::scratch_sets::ScratchSets;
use anyhow::{Result, bail};
use pages::Pages;
use std::rc::Rc;
use wellread_loader::order::Permutation;
use wellread_measure::clock::Stopwatch;
use wellread_measure::interleave::Turn;
use wellread_measure::page_cache;
use wellread_report::{Cell, Finding, Severity, Table};
use wellread_store::words::counted;
use wellread_store::{ImageView, Scratch, WriteOptions, checksum, read_region, registry};
use wellread_trace::{Kind, span};

/// The benchmark's registration.
pub static BENCHMARK: Benchmark = Benchmark {
    name: "storage",
    about: "write, open, read whole, read at random, size; reading includes opening",
    run,
    transforms: |_| vec![],
    headline: &["seconds", "images_per_s", "bits_per_pixel"],
    findings,
};

/// Most bytes of pixels that are kept in memory to be written; larger sets write their first images only.
const WRITE_BYTES: u64 = 1 << 29;

/// An image of the set.
pub(crate) struct InMemory {
    pub metadata: wellread_image::ImageMetadata,
    pub info: wellread_store::RowInfo,
    pub pixels: Vec<u8>,
}

impl InMemory {
    /// As writers take it.
    pub fn view(&self) -> ImageView<'_> {
        let Self { metadata, info, pixels } = self;
        ImageView { metadata, shape: info.shape, dtype: info.dtype, pixels }
    }
}

fn run(session: &Session<'_>) -> Result<Results> {
    let images = Rc::new(load_images(session)?);
    let scratch = Rc::new(scratch_sets(session)?);
    let pages = Rc::new(Pages::default());
    let mut variants = Vec::new();
    let mut unavailable = Vec::new();
    for set in &session.prepared.sets {
        for &operation in Operation::ALL {
            // Writing does not depend on what is in the page cache.
            let caches: &[PageCache] = match operation {
                Operation::Write => &[PageCache::Warm],
                _ if !session.config.cold => &[PageCache::Warm],
                Operation::ReadFiles => PageCache::ALL,
                _ => &[PageCache::Warm, PageCache::Cold],
            };
            for &cache in caches {
                let keys: Keys = vec![
                    ("format", Cell::from(set.format)),
                    ("operation", Cell::from(operation)),
                    ("cache", if operation == Operation::Write { Cell::Null } else { Cell::from(cache) }),
                ];
                if let Some(reason) = &set.error {
                    unavailable.push(Unavailable { keys, reason: reason.clone() });
                    continue;
                }
                let (images, scratch, pages) = (images.clone(), scratch.clone(), pages.clone());
                variants.push(Variant {
                    // Not every file system drops pages or reads past them.
                    peer: cache != PageCache::Warm,
                    keys,
                    job: Box::new(move |turn| {
                        if cache == PageCache::Cold {
                            let files = session.open(set)?.files()?;
                            pages.drop_of(&set.path, files)?;
                        } else if cache == PageCache::Warm && operation != Operation::Write {
                            pages.restore(&set.path)?;
                        }
                        if operation == Operation::ReadFiles {
                            return read_files(session, set, cache);
                        }
                        perform(session, set, operation, &session.write_options, &images, &scratch, turn)
                    }),
                });
            }
        }
    }
    let mut results = variants::run(session, &settings(BENCHMARK.name), variants, unavailable)?;
    results.notes.extend(memory_note(session, "write", &images));
    // The benchmarks that follow read files that are in the page cache.
    results.notes.extend(
        pages
            .restore_all()
            .err()
            .map(|why| format!("the sets could not be read back into the page cache: {why:#}")),
    );
    Ok(results)
}

/// How tables of storage operations are summarised.
pub(crate) fn settings(name: &'static str) -> Settings<'static> {
    Settings { name, intervals: &["seconds", "images_per_s"], noise_figure: "seconds", item_prefix: "item_" }
}

/// One run of an operation on `set`; written sets have `options`.
pub(crate) fn perform(
    session: &Session<'_>,
    set: &FormatSet,
    operation: Operation,
    options: &WriteOptions,
    images: &[InMemory],
    scratch: &ScratchSets,
    turn: Turn,
) -> Result<Measurement> {
    match operation {
        Operation::Write => write(session, set, options, images, scratch, turn.warmup),
        Operation::Open => open(session, set),
        Operation::ReadAll => read_all(session, set, turn.warmup),
        Operation::ReadRandom => read_random(session, set, turn.round as u64, turn.warmup),
        Operation::ReadFiles => read_files(session, set, PageCache::Warm),
    }
}

/// Where measured writes go: beside the prepared sets.
pub(crate) fn scratch_sets(session: &Session<'_>) -> Result<ScratchSets> {
    ScratchSets::new(session.prepared.folder.join("write"))
}

/// The first images of the set, as many as may be kept in memory.
pub(crate) fn load_images(session: &Session<'_>) -> Result<Vec<InMemory>> {
    let Some(set) = session.prepared.sets.iter().find(|s| s.error.is_none()) else { return Ok(vec![]) };
    let store = session.open(set)?;
    let (mut images, mut bytes) = (Vec::new(), 0u64);
    // As many as fit, told from their shapes: then one pass, whatever a single read costs.
    let mut last = 0;
    while last < store.len() && bytes <= WRITE_BYTES {
        let info = store.row_info(last)?;
        bytes += (info.shape.pixels() * info.dtype.size()) as u64;
        last += 1;
    }
    store.scan(0..last, &mut |row, info, pixels| {
        images.push(InMemory { metadata: store.metadata(row)?, info, pixels: pixels.to_vec() });
        Ok(())
    })?;
    Ok(images)
}

/// The note where not all images are in memory.
pub(crate) fn memory_note(session: &Session<'_>, what: &str, images: &[InMemory]) -> Option<String> {
    (images.len() < session.prepared.expected.len())
        .then(|| format!("{what}: the first {} only (memory limit)", counted(images.len(), session.thing())))
}

/// A run's time, rate and size.
fn measurement(
    seconds: f64,
    images: usize,
    session: &Session<'_>,
    set: &FormatSet,
    verified: bool,
) -> Measurement {
    let mut values = vec![("seconds", seconds)];
    if images > 0 {
        values.push(("images_per_s", images as f64 / seconds));
    }
    values.extend(size(session, set));
    Measurement { values, verified, ..Measurement::default() }
}

/// Columns that say how large a set is.
pub(crate) fn size(session: &Session<'_>, set: &FormatSet) -> Vec<(&'static str, f64)> {
    let Some(bytes) = session.bytes_on_disk(set) else { return vec![] };
    let pixels = session.prepared.pixels().max(1) as f64;
    vec![("bytes_on_disk", bytes as f64), ("bits_per_pixel", bytes as f64 * 8.0 / pixels)]
}

/// Writes the images as `set` was written, with the same `options`.
fn write(
    session: &Session<'_>,
    set: &FormatSet,
    options: &WriteOptions,
    images: &[InMemory],
    scratch: &ScratchSets,
    full: bool,
) -> Result<Measurement> {
    let format = registry::format_named(set.format)?;
    let pixels = images.iter().map(|image| image.pixels.len() as u64).sum();
    let target = scratch.next(images.len(), pixels)?.join(set_name(format));
    let types = images.iter().map(|image| image.info.dtype).collect();
    let options = WriteOptions { overwrite: true, types, ..options.clone() };
    let mut items = Vec::with_capacity(images.len());
    let clock = Stopwatch::start();
    let writing = span(Kind::WriteSet).with(images.len() as u64, 0);
    let mut writer = format.writer(&target, &options)?;
    let mut item = Stopwatch::start();
    for (row, image) in images.iter().enumerate() {
        let _image = span(Kind::WriteImage).with(row as u64, 0);
        writer.write(&image.view())?;
        items.push(item.lap());
    }
    writer.finish()?;
    drop(writing);
    let seconds = clock.elapsed();
    let _verify = span(Kind::Verify).with(images.len() as u64, 0);
    let store = (format.open)(&target, &session.open_options)?;
    let mut verified = store.len() == images.len();
    if full && verified {
        verified = checksum::all(&*store, session.write_options.jobs, &|| ())
            .into_iter()
            .zip(&session.prepared.expected)
            .all(|(found, expected)| found.is_ok_and(|f| f.sha256 == expected.sha256));
    }
    Ok(Measurement { items, ..measurement(seconds, images.len(), session, set, verified) })
}

fn open(session: &Session<'_>, set: &FormatSet) -> Result<Measurement> {
    let clock = Stopwatch::start();
    let store = session.open(set)?;
    let info = store.row_info(0)?;
    let seconds = clock.elapsed();
    let expected = &session.prepared.expected[0];
    let verified = info.shape.0 == expected.shape_tczyx && store.len() == session.prepared.expected.len();
    Ok(measurement(seconds, 0, session, set, verified))
}

/// Opens the set and reads every image in storage order.
fn read_all(session: &Session<'_>, set: &FormatSet, full: bool) -> Result<Measurement> {
    let mut agrees = true;
    let mut items = Vec::with_capacity(session.prepared.expected.len());
    let clock = Stopwatch::start();
    let mut reading = span(Kind::ReadSet);
    let store = session.open(set)?;
    reading.set(store.len() as u64, 0);
    let mut item = Stopwatch::start();
    store.scan(0..store.len(), &mut |row, _, pixels| {
        items.push(item.lap());
        agrees &= session.expected.agrees_native(row, pixels, full);
        Ok(())
    })?;
    let seconds = clock.elapsed();
    let images = items.len();
    let verified = agrees && images == session.prepared.expected.len();
    Ok(Measurement { items, ..measurement(seconds, images, session, set, verified) })
}

/// Reads the bytes of the set's files, one after the other.
fn read_files(session: &Session<'_>, set: &FormatSet, cache: PageCache) -> Result<Measurement> {
    let store = session.open(set)?;
    let (files, expected) = (store.files()?, store.bytes_on_disk()?);
    drop(store);
    if cache == PageCache::Direct
        && let Some(why) = not_here(&files)
    {
        bail!("{why}");
    }
    let clock = Stopwatch::start();
    let bytes = match cache {
        PageCache::Direct => page_cache::read_direct(&files)?,
        PageCache::Warm | PageCache::Cold => read_anywhere(&files)?,
    };
    let seconds = clock.elapsed();
    Ok(measurement(seconds, session.prepared.expected.len(), session, set, bytes == expected))
}

/// Opens the set and reads the images that `round` picks at random.
fn read_random(session: &Session<'_>, set: &FormatSet, round: u64, full: bool) -> Result<Measurement> {
    let n = session.prepared.expected.len();
    let permutation = Permutation::new(n, session.config.seed, round);
    let rows: Vec<usize> = (0..session.config.random_images.min(n)).map(|i| permutation.at(i)).collect();
    if rows.is_empty() {
        bail!("there is no image to read");
    }
    let mut read: Vec<Vec<u8>> = vec![Vec::new(); rows.len()];
    let mut scratch = Scratch::default();
    let mut items = Vec::with_capacity(rows.len());
    let clock = Stopwatch::start();
    let store = session.open(set)?;
    let mut item = Stopwatch::start();
    for (&row, pixels) in rows.iter().zip(&mut read) {
        let region = store.row_info(row)?.shape.full();
        read_region(&*store, row, &region, &mut scratch, pixels)?;
        items.push(item.lap());
    }
    let seconds = clock.elapsed();
    let verified =
        rows.iter().zip(&read).all(|(&row, pixels)| session.expected.agrees_native(row, pixels, full));
    Ok(Measurement { items, ..measurement(seconds, rows.len(), session, set, verified) })
}

fn findings(table: &Table, _: &Judge) -> Vec<Ranked> {
    ranked(60, smallest(table)).into_iter().collect()
}

fn smallest(table: &Table) -> Option<Finding> {
    // The same in every row of a format, whichever operations there was time for.
    let mut sorted = by_median(series(table, &[], "bits_per_pixel", |_| true));
    sorted.reverse();
    let first = sorted.first()?;
    let detail = sorted
        .iter()
        .map(|s| format!("{}: {:.2} bits", with_codec(table, &s.format), s.median()))
        .collect::<Vec<_>>()
        .join("; ");
    let (name, bits) = (with_codec(table, &first.format), first.median());
    let text = if sorted.len() > 1 {
        // A sweep has a smallest of all codecs.
        format!("With one codec for each format, {name} is smallest on disk: {bits:.2} bits per pixel")
    } else {
        format!("{name} takes {bits:.2} bits per pixel on disk")
    };
    Some(Finding::new(Severity::Info, text, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    #[test]
    fn the_smallest_is_one_of_formats_with_one_codec_each() {
        let text = |formats: &[(&str, &str, f64)]| {
            let mut table = Table::new(BENCHMARK.name);
            for (format, codec, bits) in formats {
                table.push(row![("format", *format), ("codec", *codec), ("bits_per_pixel", *bits)]);
            }
            smallest(&table).unwrap().text
        };
        let (parquet, tiff) = (("parquet", "zstd", 7.891), ("tiff", "none", 16.1));
        assert_eq!(
            text(&[tiff, parquet]),
            "With one codec for each format, parquet (zstd) is smallest on disk: 7.89 bits per pixel"
        );
        assert_eq!(text(&[parquet]), "parquet (zstd) takes 7.89 bits per pixel on disk");
    }
}
