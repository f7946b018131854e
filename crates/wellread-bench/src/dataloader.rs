//! Track 2: whole shuffled epochs in batches.
//!
//! A batch's time runs from asking the iterator for it to having it. `first_batch_s` counts from before the set is
//! opened to having the first batch: opening, starting threads and decoding included. `epoch_s` is the same for the
//! whole epoch without the opening. An epoch that would take more than its share of the time budget is cut short and
//! has none. `num_samples` gives the images that it read. A run repeats epochs for at least a tenth of a second (means
//! are given), and each opens anew. With `--keep-open` it measures later epochs of one loader, as a training run has
//! them (`first_batch_s` is then that of its first epoch). `--loader-cache` then keeps images from epoch to epoch by
//! the policies it names. The tables name the policy in a column `cache`, and its results in `cache_bytes`,
//! `cache_images`, `cache_hits` and `cache_misses`. `--random-crop` takes random crops instead, with `--crops` several
//! of each image from one read. `--memory` and `--prefetch` bound what a loader holds; `memory_bytes` says what that
//! came to, `prefetch` the batches ahead, and a note what was lowered. `scaling_efficiency` is the throughput relative
//! to 0 workers at the same batch size. It is divided by the number of threads that read (`readers`: the workers and the
//! thread that waits for batches). Where there are fewer cores, it is divided by those.

mod caching;
mod crops;
mod findings;
mod python;
mod scaling;

pub(crate) use findings::{limit_of, rates};

use crate::choices::Preset;
use crate::core::bounds::{bounded, bounds};
use crate::core::measurement::{fewest, full_turn_s};
use crate::core::python_sources::mark_own;
use crate::core::variants::{self, Keys, Measurement, Results, Settings, Unavailable, Variant};
use crate::core::{Benchmark, Session};
use crate::data::FormatSet;
use crate::expected::SeenRows;
use crate::{roofline, traffic};
use anyhow::{Result, bail};
use scaling::with_scaling;
use std::cell::RefCell;
use std::time::Duration;
use wellread_loader::{Cache, Dataset, Loader};
use wellread_measure::clock::Stopwatch;
use wellread_measure::interleave::Turn;
use wellread_report::Cell;
use wellread_store::words::counted;
use wellread_trace::{Kind, span};

/// The benchmark's registration.
pub static BENCHMARK: Benchmark = Benchmark {
    name: "dataloader",
    about: "shuffled epochs in batches; p50 is the wait for a batch",
    run,
    transforms: |_| vec![Preset::None],
    headline: &[
        "samples_per_sec",
        "first_epoch_images_per_s",
        "p50_s",
        "first_batch_s",
        "scaling_efficiency",
        "peak_growth_mb",
        "bytes_read_per_used",
        "requests",
        "link_wait_s",
        "cache_bytes",
    ],
    findings: findings::all,
};

fn run(session: &Session<'_>) -> Result<Results> {
    let config = session.config;
    let limits = RefCell::default();
    let (mut variants, mut unavailable) = (Vec::new(), Vec::new());
    for set in session.own_sets() {
        for &batch_size in &config.batch_sizes {
            let with_caches = |&workers| config.loader_caches.iter().map(move |cache| (workers, cache));
            for (workers, cache) in config.workers.iter().flat_map(with_caches) {
                let mut keys: Keys = vec![
                    ("format", Cell::from(set.format)),
                    ("batch_size", Cell::from(batch_size)),
                    ("workers", Cell::from(workers)),
                ];
                if config.crops > 1 {
                    keys.push(("crops", Cell::from(config.crops)));
                }
                if config.loader_caches != [Cache::None] {
                    keys.push(("cache", Cell::from(cache.to_string())));
                }
                if let Some(reason) = set.error.clone().or_else(|| why_no_batches(session, batch_size)) {
                    unavailable.push(Unavailable { keys, reason });
                    continue;
                }
                let mut kept = None;
                let limits = &limits;
                variants.push(Variant {
                    peer: false,
                    keys,
                    job: Box::new(move |turn| {
                        let how = (batch_size, workers, cache);
                        let share = session.turn_seconds();
                        let measured = epochs(session, set, how, &mut kept, turn, share)?;
                        if let Some(Opened { loader, .. }) = &kept {
                            note_limits(limits, set.format, how, loader);
                        }
                        Ok(measured)
                    }),
                });
            }
        }
    }
    mark_own(session, (&mut variants, &mut unavailable));
    python::add_variants(session, (&mut variants, &mut unavailable));
    let settings = Settings {
        name: BENCHMARK.name,
        intervals: &["samples_per_sec", "first_epoch_images_per_s", "first_batch_s", "epoch_s"],
        // An epoch that the time budget has cut short has no duration of its own.
        noise_figure: "samples_per_sec",
        item_prefix: "",
    };
    let mut results = variants::run(session, &settings, variants, unavailable)?;
    let (table, notes) =
        roofline::with_limits(session, &with_scaling(&results.table, wellread_worker::threads()));
    results.table = table;
    results.notes.extend(notes);
    results.notes.extend(limits.into_inner());
    results.notes.extend(traffic::uncounted(&results.table));
    results.notes.extend(crops::note(config.crops));
    Ok(results)
}

/// Why there are no batches of this size, if there are none.
fn why_no_batches(session: &Session<'_>, batch_size: usize) -> Option<String> {
    let (images, crops) = (session.prepared.expected.len(), session.config.crops);
    if !batch_size.is_multiple_of(crops) {
        return Some(format!("a batch of {batch_size} does not hold {crops} crops of each image"));
    }
    (batch_size > images * crops).then(|| format!("the set has only {}", counted(images, session.thing())))
}

/// Says once for each format, batch size and number of workers what the bound on memory made of them. Says of each cache once that it is
/// too small for an image.
fn note_limits(
    notes: &RefCell<Vec<String>>,
    format: &str,
    (batch_size, workers, cache): (usize, usize, &Cache),
    loader: &Loader,
) {
    let lowered = loader
        .memory()
        .filter(|memory| memory.lowered.is_some())
        .map(|memory| format!("{format}, batches of {batch_size}, {}: {memory}", counted(workers, "worker")));
    let beyond = loader.dataset().first_beyond_cache(&format!("--loader-cache {cache}"));
    let mut notes = notes.borrow_mut();
    for note in lowered.into_iter().chain(beyond) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// A loader, and the time of its opening.
struct Opened {
    loader: Loader,
    open_s: f64,
    /// Known after its first epoch.
    first_batch_s: Option<f64>,
    /// Images per second of that, opening included; NaN of one that was cut short.
    first_epoch: Option<f64>,
}

/// Epochs of a turn are repeated until this many seconds have gone by, so that small sets are not a matter of
/// microseconds. A turn has [`MAX_EPOCHS`] at most.
const TURN_SECONDS: f64 = 0.12;
const MAX_EPOCHS: u64 = 50;

/// One turn: an epoch, or as many as a turn lasts. Each opens anew, unless the loader is kept. Then the first epoch is one that
/// is made for its figure, before the one of warm-up, whose every pixel is compared.
fn epochs(
    session: &Session<'_>,
    set: &FormatSet,
    choices: (usize, usize, &Cache),
    kept: &mut Option<Opened>,
    turn: Turn,
    share: f64,
) -> Result<Measurement> {
    // Warm-up compares every pixel, once.
    let (round, full) = (turn.round as u64, turn.warmup);
    let lasting = Stopwatch::start();
    let mut all: Vec<Measurement> = Vec::new();
    let mut last_s = 0.0;
    let long_enough = TURN_SECONDS.min(share);
    if session.config.keep_open && kept.is_none() {
        epoch(session, set, choices, kept, round * MAX_EPOCHS, false, share)?;
    }
    while all.is_empty() || (!full && lasting.elapsed() < long_enough && (all.len() as u64) < MAX_EPOCHS) {
        if !session.config.keep_open {
            *kept = None;
        }
        let number = round * MAX_EPOCHS + all.len() as u64;
        let clock = Stopwatch::start();
        all.push(epoch(session, set, choices, kept, number, full, share)?);
        last_s = clock.elapsed();
    }
    if let Some(Opened { loader, .. }) = kept
        && full
        && session.config.keep_open
    {
        read_ahead(loader)?;
    }
    let mean = |name: &str| {
        let of = |m: &Measurement| m.values.iter().find(|(n, _)| *n == name).map_or(f64::NAN, |(_, v)| *v);
        all.iter().map(of).sum::<f64>() / all.len() as f64
    };
    let delivered = session.prepared.delivered_bytes(session.config.batch_crop());
    let values = all[0].values.iter().filter(|(name, _)| *name != MEASURED).map(|&(name, _)| match name {
        // A rate of the whole turn is what was done over what it took.
        "samples_per_sec" => (name, mean("num_samples") / mean(MEASURED)),
        "delivered_bytes_per_s" => (name, mean("num_samples") * delivered / mean(MEASURED)),
        FIRST_EPOCH if !session.config.keep_open => {
            (name, mean("num_samples") / (mean("open_s") + mean("epoch_s")))
        }
        _ => (name, mean(name)),
    });
    let batches = kept.as_ref().map_or(0, |opened| opened.loader.len());
    // Neither an epoch before that of warm-up nor reading ahead after it is part of a turn that counts.
    let in_batches: f64 = all[0].items.iter().sum();
    Ok(Measurement {
        full_turn_s: full_turn_s(full, [last_s - in_batches, in_batches], all[0].items.len(), batches),
        values: values.collect(),
        verified: all.iter().all(|m| m.verified),
        items: all.iter().flat_map(|m| m.items.iter().copied()).collect(),
        ..Measurement::default()
    })
}

/// So long without a byte read is the end of reading ahead; or twice what the first batch took, where that is longer.
const READ_AHEAD_IDLE_TIME: Duration = Duration::from_millis(100);

/// Has a loader that is kept read as far ahead as it may while a batch is held. It takes memory as it needs it. A
/// consumer that looks at every pixel, or is as fast as the readers, needs less than others. A buffer of large images
/// that a timed turn is the first to need takes longer than an epoch.
fn read_ahead(loader: &Loader) -> Result<()> {
    if loader.workers() == 0 {
        return Ok(());
    }
    let first = Stopwatch::start();
    let mut batches = loader.iter();
    let _held = batches.next().transpose()?;
    let at_rest = READ_AHEAD_IDLE_TIME.max(Duration::from_secs_f64(2.0 * first.elapsed()));
    loop {
        let before = loader.traffic().used;
        std::thread::sleep(at_rest);
        if loader.traffic().used == before {
            return Ok(());
        }
    }
}

/// Images per second of the first epoch of a set that was opened, opening included.
const FIRST_EPOCH: &str = "first_epoch_images_per_s";
/// Seconds that an epoch was measured; a value that does not reach the table.
const MEASURED: &str = "measured_s";

/// An epoch. One that has taken `share` seconds ends before its time, and has no `epoch_s`.
fn epoch(
    session: &Session<'_>,
    set: &FormatSet,
    (batch_size, workers, cache): (usize, usize, &Cache),
    kept: &mut Option<Opened>,
    number: u64,
    full: bool,
    share: f64,
) -> Result<Measurement> {
    let config = session.config;
    let mut recipe = session.transform(Preset::None)?;
    if let Some((height, width)) = config.random_crop {
        recipe = recipe.random_crop(height, width);
    }
    let opening = Stopwatch::start();
    let opened = if let Some(opened) = kept {
        opened
    } else {
        let dataset = Dataset::from_store(session.open(set)?).with_cache(cache)?;
        let builder = Loader::builder(&dataset)
            .batch_size(batch_size)
            .shuffle(config.seed)
            .workers(workers)
            .crops_per_image(config.crops)
            .transform(recipe);
        let loader = bounded(builder, config.memory, config.prefetch).build()?;
        kept.insert(Opened { loader, open_s: opening.elapsed(), first_batch_s: None, first_epoch: None })
    };
    if *cache == Cache::None {
        // A loader that is kept forgets its pages: all formats decode in every epoch.
        opened.loader.dataset().store().hints().forget_pages();
    }
    opened.loader.set_epoch(number);
    let before = opened.loader.stats();
    let kept_before = opened.loader.dataset().cache_report();
    let mut check = match config.random_crop {
        Some(_) if full => Some(crops::Check::new(session, opened.loader.dataset())?),
        _ => None,
    };
    let mut items = Vec::with_capacity(opened.loader.len());
    let (mut rows, mut verified) = (0, true);
    let images = session.prepared.expected.len();
    let mut seen = SeenRows::of(if full { images } else { 0 });
    let mut cut;
    let whole = Stopwatch::start();
    let mut batches = opened.loader.iter();
    loop {
        cut = items.len() >= fewest(full) && items.len() < opened.loader.len() && whole.elapsed() > share;
        if cut {
            break;
        }
        let clock = Stopwatch::start();
        let Some(batch) = batches.next() else { break };
        let batch = batch?;
        items.push(clock.elapsed());
        opened.first_batch_s.get_or_insert_with(|| opening.elapsed());
        rows += batch.rows().len();
        seen.add(batch.rows());
        let _verify = span(Kind::Verify).with(batch.rows().len() as u64, 0);
        if config.random_crop.is_some() {
            verified &= check.as_mut().map_or(Ok(true), |check| check.agrees(&opened.loader, &batch))?;
            continue;
        }
        let per_image = batch.pixels().len() / batch.rows().len().max(1);
        for (row, values) in batch.rows().iter().zip(batch.pixels().chunks(per_image.max(1))) {
            verified &= session.expected.agrees(Preset::None, *row, values, full);
        }
    }
    let epoch_s = whole.elapsed();
    if rows == 0 {
        bail!("the loader delivered no image");
    }
    let whole = if cut { f64::NAN } else { epoch_s };
    let first_epoch = *opened.first_epoch.get_or_insert(rows as f64 / (opened.open_s + whole));
    let delivered = session.prepared.delivered_bytes(config.batch_crop()) * rows as f64;
    let mut values = vec![
        ("samples_per_sec", rows as f64 / epoch_s),
        (FIRST_EPOCH, first_epoch),
        ("first_batch_s", opened.first_batch_s.unwrap_or(f64::NAN)),
        ("epoch_s", whole),
        (MEASURED, epoch_s),
        ("open_s", opened.open_s),
        ("num_samples", rows as f64),
        ("readers", opened.loader.readers() as f64),
        ("delivered_bytes_per_s", delivered / epoch_s),
    ];
    values.extend(traffic::since(before, opened.loader.stats()));
    values.extend(bounds(&opened.loader, config));
    if *cache != Cache::None {
        values.extend(caching::columns(&kept_before, &opened.loader.dataset().cache_report()));
    }
    Ok(Measurement {
        values,
        items,
        verified: verified && (cut || rows == images * config.crops && seen.is_each(config.crops)),
        ..Measurement::default()
    })
}
