//! Track 1: one image at a time, as `Dataset.__getitem__`.
//!
//! Each run opens the set anew (`open_s`) and then takes samples one by one, in sequential, random or grouped
//! order (blocks of neighbouring rows, the blocks in random order), through a transform preset. A sample's
//! time runs from asking for a row to having its floats. With the `memory` cache, the rows are read once
//! before the clock starts.

use crate::data::WrittenSet;
use crate::suite::{Benchmark, Session};
use crate::variants::{self, Figures, Keys, Results, Settings, Unavailable, Variant};
use anyhow::Result;
use wellread_loader::order::Permutation;
use wellread_loader::{Cache, Dataset, ItemContext};
use wellread_measure::clock::Stopwatch;
use wellread_measure::memory::{PeakGuard, Scope};
use wellread_report::Cell;

/// The benchmark's registration.
pub static BENCHMARK: Benchmark =
    Benchmark { name: "dataset", about: "Track 1: single images, as Dataset.__getitem__", run };

/// Rows of a block of grouped access.
const GROUP: usize = 10;

fn run(session: &Session<'_>) -> Result<Results> {
    let config = session.config;
    let (mut variants, mut unavailable) = (Vec::new(), Vec::new());
    for set in &session.prepared.sets {
        for access in &config.access {
            for transform in &config.transforms {
                for cache in &config.caches {
                    let keys: Keys = vec![
                        ("format", Cell::from(set.format)),
                        ("access", Cell::from(access)),
                        ("transform", Cell::from(transform)),
                        ("cache", Cell::from(cache)),
                    ];
                    match &set.error {
                        Some(reason) => unavailable.push(Unavailable { keys, reason: reason.clone() }),
                        None => variants.push(Variant {
                            keys,
                            job: Box::new(move |turn| {
                                take_samples(
                                    session,
                                    set,
                                    access,
                                    transform,
                                    cache,
                                    turn.round as u64,
                                    turn.warmup,
                                )
                            }),
                        }),
                    }
                }
            }
        }
    }
    let settings = Settings {
        name: BENCHMARK.name,
        intervals: &["samples_per_sec", "open_s"],
        noise_figure: "p50_s",
        item_prefix: "",
    };
    variants::run(session, &settings, variants, unavailable)
}

/// Rows of one run.
pub fn rows_of(access: &str, n: usize, samples: usize, seed: u64, round: u64) -> Vec<usize> {
    let samples = samples.min(n);
    match access {
        "random" => {
            let order = Permutation::new(n, seed, round);
            (0..samples).map(|i| order.at(i)).collect()
        }
        "grouped" => {
            let order = Permutation::new(n.div_ceil(GROUP), seed, round);
            (0..n.div_ceil(GROUP))
                .flat_map(|g| order.at(g) * GROUP..(order.at(g) * GROUP + GROUP).min(n))
                .take(samples)
                .collect()
        }
        _ => (0..samples).collect(),
    }
}

fn take_samples(
    session: &Session<'_>,
    set: &WrittenSet,
    access: &str,
    transform: &str,
    cache: &str,
    round: u64,
    full: bool,
) -> Result<Figures> {
    let recipe = session.transform(transform)?;
    let rows =
        rows_of(access, session.prepared.expected.len(), session.config.samples, session.config.seed, round);
    let memory = PeakGuard::start(Scope::Process);
    let clock = Stopwatch::start();
    let dataset = Dataset::from_store(session.open(set)?);
    let open_s = clock.elapsed();
    let dataset = dataset.with_cache(if cache == "memory" { Cache::MEMORY } else { Cache::None });
    let (mut out, mut context) = (Vec::new(), ItemContext::new());
    context.set_seed(session.config.seed, 0);
    if cache == "memory" {
        for &row in &rows {
            dataset.sample_into(row, &recipe, &mut out, &mut context)?;
        }
    }
    let mut items = Vec::with_capacity(rows.len());
    let mut verified = true;
    for &row in &rows {
        let clock = Stopwatch::start();
        dataset.sample_into(row, &recipe, &mut out, &mut context)?;
        items.push(clock.elapsed());
        verified &= session.reference.agrees(transform, row, &out, full);
    }
    let total: f64 = items.iter().sum();
    let mut values = vec![
        ("samples_per_sec", rows.len() as f64 / total),
        ("num_samples", rows.len() as f64),
        ("open_s", open_s),
    ];
    if let Some(peak) = memory.stop().bytes {
        values.push(("peak_rss_mb", peak as f64 / 1e6));
    }
    Ok(Figures { values, items, verified, ..Figures::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouped_rows_are_blocks_in_another_order() {
        let rows = rows_of("grouped", 95, 95, 1, 0);
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..95).collect::<Vec<_>>());
        assert_ne!(rows, sorted);
        let steps = rows.windows(2).filter(|w| w[1] == w[0] + 1).count();
        assert!(steps >= 95 - 10 - 1);
        assert_eq!(rows_of("sequential", 10, 4, 1, 0), [0, 1, 2, 3]);
        assert_eq!(rows_of("random", 10, 400, 1, 0).len(), 10);
    }
}
