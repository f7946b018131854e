//! Track 1: one image at a time, as `Dataset.__getitem__`.
//!
//! Each run opens the set anew (`open_s`) and then takes samples one by one through a transform preset. The order is
//! sequential, random, grouped (blocks of neighbouring rows, the blocks in random order) or by blocks. The last is the rows of
//! several such blocks shuffled among each other. A sample's time runs from asking for a row to having its floats in a
//! new array, as `__getitem__` gives one. With the `memory` cache, the rows are read once before the clock starts. A
//! variant that would take more than its share of the time budget takes fewer samples (`num_samples`).
//!
//! Each order has two figures of its randomness (see [`wellread_loader::OrderQuality`]). `mixing` is the number of
//! blocks that 16 images come from, relative to random order. `jump` is the distance on disk from one image to the
//! next, as a share of the set. `instructions_per_sample` counts what the reading thread executes (user mode), where
//! the machine counts instructions: noise hardly changes it. `bytes_read_per_used` is the read amplification.

mod python;

use crate::choices::{Access, Preset};
use crate::core::access::rows_of;
use crate::core::judge::{Judge, Ranked, ranked};
use crate::core::measurement::{fewest, full_turn_s};
use crate::core::python_sources::mark_own;
use crate::core::series::{Series, by_median, series};
use crate::core::variants::{self, Keys, Measurement, Results, Settings, Unavailable, Variant};
use crate::core::words::{number, with_codec};
use crate::core::{Benchmark, Session};
use crate::data::FormatSet;
use crate::traffic;
use anyhow::Result;
use wellread_loader::order::quality::{self, Spread};
use wellread_loader::{Cache, Dataset, ItemContext};
use wellread_measure::clock::Stopwatch;
use wellread_measure::counters::Instructions;
use wellread_measure::interleave::Turn;
use wellread_report::{Cell, Finding, Severity, Table};
use wellread_store::RowHints;
use wellread_store::place::LinkUse;
use wellread_trace::{Kind, span};

/// The benchmark's registration.
pub static BENCHMARK: Benchmark = Benchmark {
    name: "dataset",
    about: "single images, as Dataset.__getitem__; opening is not included",
    run,
    transforms: |config| {
        // Transforms of the user's own are given the plain images.
        let given = (!config.user_transforms.is_empty()).then_some(Preset::None);
        config.transforms.iter().copied().chain(given).collect()
    },
    headline: &[
        "p50_s",
        "p95_s",
        "samples_per_sec",
        "first_epoch_images_per_s",
        "open_s",
        "mixing",
        "jump",
        "bytes_read_per_used",
    ],
    findings,
};

/// The columns with an interval over runs.
const INTERVALS: &[&str] = &["samples_per_sec", "first_epoch_images_per_s", "open_s"];

/// Images that follow each other and are looked at together for [`Spread`]: a batch of the defaults.
const SPREAD_WINDOW: usize = 16;

fn run(session: &Session<'_>) -> Result<Results> {
    let config = session.config;
    let (mut variants, mut unavailable) = (Vec::new(), Vec::new());
    for set in session.own_sets() {
        for name in &config.user_transforms {
            let keys = vec![("format", Cell::from(set.format)), ("transform", Cell::from(name))];
            let reason = python::only_in_python(name);
            unavailable.push(Unavailable { keys, reason: set.error.clone().unwrap_or(reason) });
        }
        for &access in &config.access {
            for &transform in &config.transforms {
                for cache in &config.caches {
                    let keys: Keys = vec![
                        ("format", Cell::from(set.format)),
                        ("access", Cell::from(access)),
                        ("transform", Cell::from(transform)),
                        ("cache", Cell::from(cache.to_string())),
                    ];
                    match &set.error {
                        Some(reason) => unavailable.push(Unavailable { keys, reason: reason.clone() }),
                        None => variants.push(Variant {
                            peer: false,
                            keys,
                            job: Box::new(move |turn| {
                                // A format that decodes hundreds of images for one must not take the others' time.
                                let share = session.turn_seconds();
                                take_samples(session, set, access, transform, cache, turn, share)
                            }),
                        }),
                    }
                }
            }
        }
    }
    mark_own(session, (&mut variants, &mut unavailable));
    let plain = config.transforms.contains(&Preset::None);
    if plain || !config.user_transforms.is_empty() {
        python::add_variants(session, (&mut variants, &mut unavailable));
    }
    let settings =
        Settings { name: BENCHMARK.name, intervals: INTERVALS, noise_figure: "p50_s", item_prefix: "" };
    let mut results = variants::run(session, &settings, variants, unavailable)?;
    results.table = crate::roofline::with_share_of_copy(session, &results.table, "samples_per_sec", 1);
    results.notes.extend(traffic::uncounted(&results.table));
    if config.in_python() && !plain && !config.transforms.is_empty() {
        results.notes.push(
            "dataset: frameworks are measured with the transforms none and normalize where none is asked for"
                .to_owned(),
        );
    }
    Ok(results)
}

fn take_samples(
    session: &Session<'_>,
    set: &FormatSet,
    access: Access,
    transform: Preset,
    cache: &Cache,
    turn: Turn,
    share: f64,
) -> Result<Measurement> {
    let recipe = session.transform(transform)?;
    let images = session.prepared.expected.len();
    let (round, full) = (turn.round as u64, turn.warmup);
    let mut rows = rows_of(access, images, session.config, round);
    let whole_turn = Stopwatch::start();
    let dataset = Dataset::from_store(session.open(set)?);
    let open_s = whole_turn.elapsed();
    let dataset = dataset.with_cache(cache)?;
    let mut context = ItemContext::new();
    context.set_seed(session.config.seed, 0);
    // A cache has the pass that fills it.
    let mut first_epoch = None;
    if *cache != Cache::None {
        let filling = Stopwatch::start();
        let mut filled = 0;
        while filled < rows.len() && (filled < fewest(full) || filling.elapsed() < share) {
            let mut out = Vec::new();
            dataset.sample_into(rows[filled], &recipe, &mut out, &mut context)?;
            filled += 1;
        }
        rows.truncate(filled);
        first_epoch = Some(filled as f64 / (open_s + filling.elapsed()));
    }
    let mut items = Vec::with_capacity(rows.len());
    let mut verified = true;
    // Where the machine counts them; read outside of what is timed.
    let counter = Instructions::count().ok();
    let executed = || counter.as_ref().and_then(|counter| counter.so_far().ok());
    // Bytes read to fill a cache do not count.
    context.take_traffic();
    let link_before = LinkUse::now();
    let mut instructions = counter.as_ref().map(|_| 0);
    let whole = Stopwatch::start();
    for &row in &rows {
        if items.len() >= fewest(full) && whole.elapsed() > share {
            break;
        }
        let before = executed();
        let clock = Stopwatch::start();
        // As `__getitem__` does: an array for each image.
        let mut out = Vec::new();
        dataset.sample_into(row, &recipe, &mut out, &mut context)?;
        items.push(clock.elapsed());
        instructions =
            instructions.zip(executed().zip(before)).map(|(sum, (now, before))| sum + (now - before));
        let _verify = span(Kind::Verify).with(1, 0);
        verified &= session.expected.agrees(transform, row, &out, full);
    }
    rows.truncate(items.len());
    let full_turn_s = full_turn_s(full, [open_s, whole_turn.elapsed() - open_s], items.len(), images);
    let random = rows_of(Access::Random, images, session.config, round);
    let disk = |row| dataset.store().row_hints(row).map_or(u64::MAX, RowHints::position);
    let extent = quality::extent(random.iter().copied(), disk);
    let spread = |rows: &[usize]| {
        let batches: Vec<&[usize]> = rows.chunks(SPREAD_WINDOW).collect();
        Spread::of(&batches, |row| row / session.config.block_rows, disk, extent)
    };
    let (order, shuffled) = (spread(&rows), spread(&random));
    let total: f64 = items.iter().sum();
    let mut values = vec![
        ("samples_per_sec", rows.len() as f64 / total),
        ("first_epoch_images_per_s", first_epoch.unwrap_or(rows.len() as f64 / (open_s + total))),
        ("num_samples", rows.len() as f64),
        ("open_s", open_s),
        ("mixing", order.units_per_batch / shuffled.units_per_batch),
        ("rank_correlation", order.rank_correlation),
        ("jump", order.jump),
        ("instructions_per_sample", instructions.map_or(f64::NAN, |sum: u64| sum as f64 / rows.len() as f64)),
    ];
    let read = context.take_traffic();
    values.extend(traffic::amplification(read));
    let link = dataset.is_remote().then(|| LinkUse::now().since(link_before));
    traffic::put(&mut values, traffic::over_link(link, read.used));
    Ok(Measurement { values, items, verified, full_turn_s, ..Measurement::default() })
}

fn findings(table: &Table, judge: &Judge) -> Vec<Ranked> {
    ranked(50, single_images(table, judge)).into_iter().collect()
}

/// By throughput, which counts the slow images too: a format that decodes a hundred images at once has a fast
/// median and a slow maximum.
fn single_images(table: &Table, judge: &Judge) -> Option<Finding> {
    let keep = |r: usize| {
        table.cell("access", r) == Access::Random.into()
            && table.cell("transform", r) == Preset::None.into()
            && table.str("cache", r) == Some(Cache::None.name())
    };
    let sorted = by_median(series(table, &["access"], "samples_per_sec", keep));
    let latency = |column: &str, s: &Series| {
        let of = series(table, &["access"], column, |r| {
            keep(r) && table.str("format", r) == Some(s.format.as_str())
        });
        of.first().map_or(f64::NAN, |l| 1e3 * l.median())
    };
    let name = |s: &Series| with_codec(table, &s.format);
    let (first, second) = (sorted.first()?, sorted.get(1)?);
    let compared = judge.compare(first, second)?;
    let unit = judge.per_second();
    let detail = sorted
        .iter()
        .map(|s| {
            format!(
                "{}: {} {unit}, half within {:.3} ms, the slowest {:.3} ms",
                name(s),
                number(s.median()),
                latency("p50_s", s),
                latency("max_s", s)
            )
        })
        .collect::<Vec<_>>()
        .join("; ");
    let text = if compared.is_clear() {
        format!(
            "For single images at random {} is fastest once it is open: {} {unit}, {} {}",
            name(first),
            number(first.median()),
            compared.times(),
            name(second)
        )
    } else {
        let none = compared.no_verdict(&name(first), &name(second));
        // Within a sentence.
        let none = none.strip_prefix("It is").map_or_else(|| none.clone(), |rest| format!("it is{rest}"));
        format!(
            "For single images at random {none}; the first is {} the second{}",
            compared.times(),
            compared.no_verdict_reason()
        )
    };
    Some(Finding::new(Severity::Info, text, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    #[test]
    fn rates_that_are_printed_have_intervals() {
        for rate in ["samples_per_sec", "first_epoch_images_per_s", "open_s"] {
            assert!(BENCHMARK.headline.contains(&rate) && INTERVALS.contains(&rate), "{rate}");
        }
    }

    #[test]
    fn too_early_is_said_within_the_sentence() {
        let mut table = Table::new("dataset");
        for (format, rate) in [("tiff", 200.0), ("parquet", 100.0)] {
            table.push(row![
                ("format", format),
                ("access", Access::Random),
                ("transform", Preset::None),
                ("cache", Cache::None.name()),
                ("run", 0),
                ("samples_per_sec", rate)
            ]);
        }
        let text = single_images(&table, &Judge::new(1, None)).unwrap().text;
        assert!(
            text.starts_with("For single images at random it is too early to say which of tiff and"),
            "{text}"
        );
    }
}
