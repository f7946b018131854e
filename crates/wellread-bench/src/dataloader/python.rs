//! Epochs of batches in Python: one turn of each framework, reader, batch size and number of workers.
//!
//! ```text
//!  sources ─▶ a variant each ─▶ request ─▶ nanoseconds of each batch and epoch, pixels, traffic ─▶ Measurement
//! ```

use crate::choices::Preset;
use crate::core::Session;
use crate::core::python_sources::{Lists, Source, seconds, sources};
use crate::core::variants::{Measurement, Unavailable};
use crate::traffic;
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::Cell as Shared;
use wellread_loader::{LoaderStats, Traffic};
use wellread_report::Cell;
use wellread_store::place::LinkUse;
use wellread_store::words::counted;

/// Epochs of a turn are repeated until so many seconds have gone by; most epochs of a turn.
const TURN_LIMITS: (f64, u64) = (0.12, 50);

/// One epoch of track 2. Values that a kept loader did not measure again are missing.
#[derive(Deserialize)]
struct Epoch {
    open_ns: Option<u64>,
    first_batch_ns: Option<u64>,
    whole_ns: u64,
    items_ns: Vec<u64>,
    images: usize,
    whole: bool,
    readers: Option<usize>,
    /// Bytes read and used when the epoch began and when it ended, of loaders that count them.
    traffic: Option<[(u64, u64); 2]>,
    /// Requests, bytes received and seconds waited at both times, where a set lies behind a network.
    link: Option<[(u64, u64, f64); 2]>,
}

/// Adds the variants of the frameworks to those of this program.
pub(super) fn add_variants<'s>(session: &'s Session<'s>, (variants, unavailable): Lists<'_, 's>) {
    let config = session.config;
    let sources = sources(session, "dataloader", unavailable);
    for Source { session, python, set, reader } in sources {
        for &batch_size in &config.batch_sizes {
            for &workers in &config.workers {
                let source = Source { session, python, set, reader };
                let keys = vec![("batch_size", Cell::from(batch_size)), ("workers", Cell::from(workers))];
                let images = session.prepared.expected.len();
                if batch_size > images {
                    let reason = format!("the set has only {}", counted(images, session.thing()));
                    unavailable.push(Unavailable { keys: source.keys(keys), reason });
                    continue;
                }
                let first = Shared::new(None);
                let key = format!("dataloader {} {} {batch_size} {workers}", set.format, reader.name);
                variants.push(source.variant(keys, move |source, turn| {
                    let request = source.request("dataloader", turn.warmup, json!({
                        "key": key, "keep": config.keep_open, "batch_size": batch_size, "workers": workers,
                        "first_epoch": turn.round as u64 * TURN_LIMITS.1, "turn_s": TURN_LIMITS.0, "most_epochs": TURN_LIMITS.1,
                    }));
                    let (measured, check) = source
                        .turn(turn, Preset::None, &request, |answer| epochs(session, answer, &first))?;
                    // A warm-up turn is one whole epoch, every row once, unless a slow peer was cut short; of any other
                    // the worker looks at some.
                    let once = |&times: &usize| times == 1 || times == 0 && !source.reader.is_own();
                    let enough = !turn.warmup || check.seen.iter().all(once);
                    Ok(Measurement { verified: measured.verified && enough, ..measured })
                }));
            }
        }
    }
}

/// A measurement of a turn's epochs. `first` is the time to the first batch of a loader that is kept, and images per second of its
/// first epoch.
fn epochs(session: &Session<'_>, answer: &Value, first: &Shared<Option<(f64, f64)>>) -> Result<Measurement> {
    let epochs = Vec::<Epoch>::deserialize(&answer["epochs"])?;
    // The worker makes one more epoch, once, of a loader that is kept.
    let opened = Option::<Epoch>::deserialize(&answer["first"])?;
    let n = epochs.len().max(1) as f64;
    let images: usize = epochs.iter().map(|e| e.images).sum();
    let total: f64 = epochs.iter().map(|e| e.whole_ns as f64 * 1e-9).sum();
    let mean = |of: fn(&Epoch) -> Option<u64>| {
        let known: Vec<f64> = epochs.iter().filter_map(of).map(|ns| ns as f64 * 1e-9).collect();
        if known.is_empty() { f64::NAN } else { known.iter().sum::<f64>() / known.len() as f64 }
    };
    if let Some(opened) = &opened {
        let first_batch = opened.first_batch_ns.map_or(f64::NAN, |ns| ns as f64 * 1e-9);
        first.set(Some((first_batch, first_epoch(std::slice::from_ref(opened)))));
    }
    let (first_batch, first_epoch) =
        first.get().unwrap_or_else(|| (mean(|e| e.first_batch_ns), first_epoch(&epochs)));
    let image = session.prepared.delivered_bytes(session.config.crop);
    let whole = epochs.iter().all(|e| e.whole);
    let mut values = vec![
        ("samples_per_sec", images as f64 / total),
        ("first_epoch_images_per_s", first_epoch),
        ("first_batch_s", first_batch),
        // An epoch that was cut short has no time.
        ("epoch_s", if whole { total / n } else { f64::NAN }),
        ("open_s", mean(|e| e.open_ns)),
        ("num_samples", images as f64 / n),
        ("readers", epochs.iter().find_map(|e| e.readers).map_or(f64::NAN, |n| n as f64)),
        ("delivered_bytes_per_s", images as f64 * image / total),
    ];
    let counted: Vec<_> = epochs.iter().filter_map(|e| e.traffic).collect();
    if let Some(&[(read, used), _]) = counted.first() {
        // Loaders that each epoch opens anew begin at nothing.
        let more = |of: fn((u64, u64)) -> u64| {
            counted.iter().map(|&[a, b]| of(b).saturating_sub(of(a))).sum::<u64>()
        };
        let before = Traffic { read, used };
        let after = Traffic { read: read + more(|t| t.0), used: used + more(|t| t.1) };
        let link = link_of(&epochs);
        let stats = |traffic, link| LoaderStats { traffic, link };
        let mut found = traffic::since(stats(before, None), stats(after, link));
        traffic::per_epoch(&mut found, n);
        values.extend(found);
    }
    let items = epochs.iter().flat_map(|e| seconds(&e.items_ns)).collect();
    Ok(Measurement { values, items, ..Measurement::default() })
}

/// The requests of all epochs over a link, where there is one.
fn link_of(epochs: &[Epoch]) -> Option<LinkUse> {
    let mut sum = None;
    let of = |(requests, bytes, waited_s)| LinkUse { requests, bytes, waited_s };
    for &[before, after] in epochs.iter().filter_map(|e| e.link.as_ref()) {
        let more = of(after).since(of(before));
        let sum = sum.get_or_insert_with(LinkUse::default);
        sum.requests += more.requests;
        sum.bytes += more.bytes;
        sum.waited_s += more.waited_s;
    }
    sum
}

/// Images per second of epochs that opened a set, opening included; NaN where one was cut short, or found it open.
fn first_epoch(epochs: &[Epoch]) -> f64 {
    let seconds: Option<f64> = epochs
        .iter()
        .map(|epoch| Some((epoch.open_ns.filter(|_| epoch.whole)? + epoch.whole_ns) as f64 * 1e-9))
        .sum();
    seconds
        .map_or(f64::NAN, |seconds| epochs.iter().map(|epoch| epoch.images).sum::<usize>() as f64 / seconds)
}
