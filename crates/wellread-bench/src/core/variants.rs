//! Running the variants of a benchmark, and turning their turns into table rows.
//!
//! All variants of a benchmark run interleaved (see [`wellread_measure::interleave`]): every round runs each once, in
//! a new random order. One warm-up round that no figure uses comes before. Another variant in each round runs twice as an
//! A/A pair; the interval of these ratios is the noise floor printed beside the results. Rows of the table are runs.
//! Columns ending in `_ci_low` and `_ci_high` are the 95 % interval of the configuration's median over runs, where
//! there are enough runs. For latencies, the interval is of the items of all runs, by the medians of runs. Fewer runs
//! are shown by their range.
//!
//! Peak memory is that of the configuration's warm-up turn, the same in each of its rows. `peak_rss_mb` is the
//! most that the whole process held, and `peak_growth_mb` is its rise above the memory held before. Memory that
//! other configurations freed is given back to the kernel first. That would slow timed turns down, so it is
//! done before the turn that is not timed.

use super::ranks::ranks;
use super::session::Session;
use super::table::{RowWriter, intervals};
use crate::budget;
use crate::live::LiveFigures;
use anyhow::{Context as _, Result};
use std::cell::RefCell;
use wellread_measure::interleave::{Event, Outcome, Plan, Run, Stopped, Turn, VariantResult};
use wellread_measure::intervals::IntervalEstimator;
use wellread_measure::memory::{PeakGuard, PeakMemory, PeakSource, Scope, release_free_heap};
use wellread_measure::precision::Precision;
use wellread_measure::samples::median_in_place;
use wellread_measure::steady::{ChangePoints, Shape, steady_state};
use wellread_report::columns::{Better, quantity};
use wellread_report::table::samples::{BATCHES, medians_tell};
use wellread_report::{Cell, Row, Samples as RawSamples, Table};
use wellread_store::words::{counted, counted_with, first_and_more};
use wellread_trace::{Kind, labelled};

pub use super::measurement::{Keys, LEFT_OUT, Measurement, Results, Settings, Unavailable, Variant, name_of};

/// Most rounds of a benchmark that measures until a precision is reached.
const MAX_ROUNDS: usize = 1_000;
/// Changes within a run that are told: smaller shares matter to nobody.
const MIN_CHANGE: f64 = 0.1;
/// Configurations that a remark names.
const NAMED: usize = 3;

/// Runs all variants and makes the table.
///
/// # Errors
/// Only when the plan itself makes no sense; failing variants become rows with status `failed`.
pub fn run(
    session: &Session<'_>,
    settings: &Settings<'_>,
    variants: Vec<Variant<'_>>,
    unavailable: Vec<Unavailable>,
) -> Result<Results> {
    let config = session.config;
    let keys: Vec<(Keys, bool)> = variants.iter().map(|v| (v.keys.clone(), v.peer)).collect();
    let mut table = Table::new(settings.name);
    let mut results = Results {
        table: Table::new(settings.name),
        samples: RawSamples::new(settings.name),
        noise_floor: None,
        detectable: None,
        notes: session.notes.clone(),
        rounds: 0,
    };
    let mut writer = RowWriter { session, table: &mut table };
    if !variants.is_empty() {
        session.pace.set_variants(variants.len());
        let live = RefCell::new(LiveFigures::new(settings.noise_figure));
        let mut plan =
            Plan::new(config.seed).rounds(config.repeats).warmup(1).time_budget(session.remaining()).fit();
        let ranks = ranks(&keys);
        plan = plan.twin_of_each().turn_cost(|measured: &Measurement| measured.full_turn_s);
        // Turns of the rounds asked for, warm-up and twin included: a trace has room for as much of each.
        let turns =
            std::cell::Cell::new((variants.len() + 1).saturating_mul(config.repeats.saturating_add(1)));
        for (mut variant, rank) in variants.into_iter().zip(ranks) {
            let (name, turns, live) = (name_of(&variant.keys), &turns, &live);
            let format = variant.keys.first().map_or_else(String::new, |(_, cell)| cell.text());
            let kind = name_of(&variant.keys.get(1..).unwrap_or_default().to_vec());
            let label = format!("{} {name}", settings.name);
            plan = plan.add_with_turn(name, move |turn| {
                let part = wellread_trace::part(turns.get());
                turns.set(turns.get().saturating_sub(1).max(1));
                let mut span = labelled(Kind::Turn, || label.clone());
                let measured = run_watching_memory(&mut variant, turn);
                span.set(turn.round as u64, part.dropped());
                drop(span);
                let figure = measured.as_ref().ok().filter(|_| !turn.warmup && !turn.twin);
                if let Some(figure) = figure.and_then(|measured| value(measured, settings)) {
                    (session.watch.current)(&live.borrow_mut().add(&format, &kind, figure));
                }
                measured
            });
            plan = plan.ranked(rank);
        }
        if let Some(share) = config.precision {
            let wanted = Precision { share };
            let by = IntervalEstimator::seeded(config.seed);
            plan = plan
                .rounds(MAX_ROUNDS)
                .stop_when(move |variants| are_known(variants, settings, config.repeats, wanted, &by));
        }
        let mut outcome = plan
            .run(|p| {
                // For rounds without a known end, the time says more than their number.
                let (done, of) = match config.precision {
                    Some(_) => (p.elapsed.as_secs() as usize, session.budget().as_secs().max(1) as usize),
                    None => (p.turns_done, p.turns),
                };
                if !matches!(p.event, Event::Started) {
                    let left = match config.precision {
                        Some(_) => Some(session.budget().saturating_sub(p.elapsed)),
                        None => p.remaining,
                    };
                    (session.watch.left)(left.map(|left| session.left(left)));
                    (session.watch.progress)(settings.name, done.min(of), of);
                }
            })
            .with_context(|| format!("benchmark {}", settings.name))?;
        let estimator = IntervalEstimator::seeded(config.seed);
        let figure = |measured: &Measurement| value(measured, settings).unwrap_or(f64::NAN);
        // Rounds that were not measured for want of time, and rounds that turn out to be warm-up, are two
        // things.
        let in_time = outcome.measured_rounds();
        results.notes.extend(trim_warmup(&mut outcome, &keys, settings, config.seed));
        results.noise_floor = outcome.noise_floor(figure, &estimator).map(|n| n.fraction());
        results.detectable = outcome.smallest_detectable(figure, &estimator);
        results.rounds = outcome.measured_rounds();
        if let Some(share) = config.precision.filter(|_| outcome.stopped != Stopped::Enough) {
            results.notes.extend(not_reached(&outcome, settings, share, &estimator));
        } else if in_time < config.repeats {
            results.notes.push(format!(
                "{}: {in_time} of {}; its part of the time budget is {}",
                settings.name,
                counted(config.repeats, "round"),
                budget::words(session.seconds())
            ));
        }
        add_rows(&mut writer, &mut results, &outcome, &keys, settings, &estimator);
    }
    for missing in unavailable {
        writer.unmeasured(&missing.keys, "unavailable", &missing.reason);
    }
    results.table = table;
    Ok(results)
}

/// Adds the rows of all configurations, the times of their items, and the notes about them.
fn add_rows(
    writer: &mut RowWriter<'_, '_>,
    results: &mut Results,
    outcome: &Outcome<Measurement>,
    keys: &[(Keys, bool)],
    settings: &Settings<'_>,
    estimator: &IntervalEstimator,
) {
    let session = writer.session;
    let reason = format!("{LEFT_OUT}: {} had {}", settings.name, budget::words(session.seconds()));
    let mut misleading = 0;
    for (variant, (keys, peer)) in outcome.visible().zip(keys) {
        if let Some(failure) = &variant.failure {
            // An unavailable variant becomes a finding, grouped by reason; a failed one becomes an error.
            writer.unmeasured(keys, if *peer { "unavailable" } else { "failed" }, &failure.message);
            continue;
        }
        if variant.left_out {
            writer.unmeasured(keys, "unavailable", &reason);
            continue;
        }
        let runs: Vec<&Measurement> = variant.runs.iter().map(|r| &r.value).collect();
        // A checksum that was wrong in warm-up, where all of it is compared, marks every run.
        let warm_ok = variant.warmup.iter().all(|r| r.value.verified);
        let mut intervals = intervals(&runs, settings, estimator);
        // When batches come several at once, half of them are there when they are asked for: their median is no
        // batch's time. Batches that threads read ahead are waited for or not: that is what was measured.
        let reads_ahead = keys.iter().any(|(name, value)| *name == "workers" && *value != Cell::from(0usize));
        let tells = settings.name != BATCHES
            || reads_ahead
            || medians_tell(runs.iter().map(|run| run.items.as_slice()));
        let p50 = format!("{}p50_s", settings.item_prefix);
        if !tells {
            misleading += 1;
            intervals.retain(|(name, _, _)| *name != p50);
        }
        let peak = largest_peak(outcome, &variant.name);
        if let Some(note) = peak.and_then(inexact_peak)
            && !results.notes.contains(&note)
        {
            results.notes.push(note);
        }
        for (n, run) in variant.runs.iter().enumerate() {
            let verified = warm_ok && run.value.verified;
            let hidden = (!tells).then_some(p50.as_str());
            writer.measured(keys, n, &run.value, verified, (settings.item_prefix, hidden), &intervals, peak);
            if !run.value.items.is_empty() {
                let mut which: Row = keys.iter().map(|(k, cell)| ((*k).to_owned(), cell.clone())).collect();
                which.extend([("run", n), ("position", run.position)].map(|(k, v)| (k.to_owned(), v.into())));
                results.samples.push(which, run.value.items.clone());
            }
        }
        if !warm_ok || runs.iter().any(|r| !r.verified) {
            results.notes.push(format!("{}: the checksum of the pixels DIFFERS: do not use", name_of(keys)));
        }
    }
    if misleading > 0 {
        results.notes.push(format!(
            "{}: no p50 where one read brings several batches ({misleading} of {} configurations), since most are there when they \
             are asked for. The throughput tells how fast they are. With workers p50 is the wait for a batch that was read ahead",
            settings.name,
            keys.len()
        ));
    }
}

/// Counts rounds that turn out to be warm-up as such, and says so, and which runs begin slower than they go on.
fn trim_warmup(
    outcome: &mut Outcome<Measurement>,
    keys: &[(Keys, bool)],
    settings: &Settings<'_>,
    seed: u64,
) -> Vec<String> {
    let more_is_better = quantity(settings.noise_figure).better == Better::Higher;
    let cost = |measured: &Measurement| {
        let figure = value(measured, settings).unwrap_or(f64::NAN);
        if more_is_better { figure.recip() } else { figure }
    };
    // One test for the benchmark: one in twenty finds something where there is nothing, and loses some rounds.
    let rounds = outcome.warmup_left(cost, &ChangePoints { level: 0.05, ..ChangePoints::seeded(seed) });
    let mut notes = Vec::new();
    if rounds > 0 {
        outcome.lengthen_warmup(rounds);
        let which = match rounds {
            1 => "round after the warm-up was slower too and is".to_owned(),
            n => format!("{n} rounds after the warm-up were slower too and are"),
        };
        let (name, left) = (settings.name, counted(outcome.measured_rounds(), "round"));
        notes.push(format!("{name}: the first {which} counted as warm-up, which leaves {left}"));
    }
    let slow: Vec<String> = outcome
        .visible()
        .zip(keys)
        .filter_map(|(variant, (keys, _))| {
            Some(super::measurement::told(keys) + " " + &slow_begin(variant, seed)?)
        })
        .collect();
    if !slow.is_empty() {
        notes.push(format!(
            "{}: runs begin slower than they go on, and their figures hold both: {}",
            settings.name,
            first_and_more(&slow, NAMED, ["; ", "; and"])
        ));
    }
    notes
}

/// Says how much slower the first items of a configuration's runs are, in the median over runs, where they are.
fn slow_begin(variant: &VariantResult<Measurement>, seed: u64) -> Option<String> {
    let items = variant.runs.iter().map(|run| run.value.items.len()).min()?;
    let at = |i: usize| {
        median_in_place(&mut variant.runs.iter().map(|run| run.value.items[i]).collect::<Vec<_>>())
    };
    let series: Vec<f64> = (0..items).filter_map(at).collect();
    let found = steady_state(&series, &ChangePoints { tolerance: MIN_CHANGE, ..ChangePoints::seeded(seed) });
    let (from, first) = (found.steady_from?, found.changes.first()?);
    let steady = found.changes.last()?.after;
    // A clock's steps may make a steady time nothing at all.
    (found.shape == Shape::WarmUp && 2 * from <= items && steady > 0.0)
        .then(|| format!("(the first {from} of {items} by {:.0} %)", 100.0 * (first.before / steady - 1.0)))
}

/// The figure of every run that the precision and the noise floor are of.
fn figures(variant: &VariantResult<Measurement>, settings: &Settings<'_>) -> Vec<f64> {
    variant.runs.iter().filter_map(|run| value(&run.value, settings)).collect()
}

/// Whether a variant is shown and has figures: it did not fail, and there was time for it.
fn has_figures(variant: &VariantResult<Measurement>) -> bool {
    variant.twin_of.is_none() && variant.failure.is_none() && !variant.left_out
}

/// Whether the medians of all that have figures are known well enough: the others get no further turns.
fn are_known(
    variants: &[VariantResult<Measurement>],
    settings: &Settings<'_>,
    repeats: usize,
    wanted: Precision,
    estimator: &IntervalEstimator,
) -> bool {
    let is_enough = |values: &[f64]| values.len() >= repeats && wanted.is_reached(values, estimator);
    let measured = variants.iter().filter(|variant| has_figures(variant));
    measured.map(|variant| figures(variant, settings)).all(|values| is_enough(&values))
}

/// The note where time was up before every median was known well enough.
fn not_reached(
    outcome: &Outcome<Measurement>,
    settings: &Settings<'_>,
    share: f64,
    estimator: &IntervalEstimator,
) -> Option<String> {
    let wanted = Precision { share };
    let measured: Vec<_> = outcome.visible().filter(|variant| has_figures(variant)).collect();
    let reached = |values: &[f64]| estimator.median(values).is_some_and(|i| Precision::of(&i) <= share);
    let missed: Vec<Vec<f64>> =
        measured.iter().map(|v| figures(v, settings)).filter(|values| !reached(values)).collect();
    let needed = missed.iter().filter_map(|values| wanted.samples_needed(values, estimator)).max();
    (!missed.is_empty()).then(|| {
        format!(
            "{}: {} of {} not known to {:.1} % after {}{}",
            settings.name,
            missed.len(),
            counted_with(measured.len(), "configuration", ["is", "are"]),
            100.0 * share,
            counted(outcome.measured_rounds(), "round"),
            needed.map_or(String::new(), |n| format!("; about {n} would be needed (--time-budget)"))
        )
    })
}

/// Runs a turn, and watches its memory when it is warm-up.
fn run_watching_memory(variant: &mut Variant<'_>, turn: Turn) -> Result<Measurement> {
    if !turn.warmup {
        return (variant.job)(turn);
    }
    release_free_heap();
    let guard = PeakGuard::start(Scope::Process);
    let mut measured = (variant.job)(turn)?;
    measured.peak.get_or_insert_with(|| guard.stop());
    Ok(measured)
}

/// The largest peak of a variant's warm-up turns, those of its twin included. The first of the two makes all
/// that a variant sets up once.
fn largest_peak<'o>(outcome: &'o Outcome<Measurement>, name: &str) -> Option<&'o PeakMemory> {
    let is_of = |run: &&Run<Measurement>| outcome.variants[run.of].name == name;
    outcome
        .variants
        .iter()
        .flat_map(|v| &v.warmup)
        .filter(is_of)
        .filter_map(|run| run.value.peak.as_ref())
        .max_by_key(|peak| peak.growth())
}

/// The note on a peak that is an upper bound or unknown.
fn inexact_peak(peak: &PeakMemory) -> Option<String> {
    match &peak.source {
        PeakSource::HighWaterMarkOfProcess { reason, exact: false } => Some(format!(
            "peak memory: the kernel's mark could not be set back ({reason}). Where peak_growth_mb is missing, peak_rss_mb is the most that the process held so far, for whatever it did"
        )),
        PeakSource::TreeSamples { .. } => Some(
            "peak memory in Python is that of the worker and its processes, each shared page once. It is looked at \
             every 20 ms, so a shorter peak can be missed"
                .to_owned(),
        ),
        PeakSource::Unavailable { reason } => Some(format!("peak memory is not known: {reason}")),
        _ => None,
    }
}

fn value(measured: &Measurement, settings: &Settings<'_>) -> Option<f64> {
    if settings.noise_figure.strip_prefix(settings.item_prefix) == Some("p50_s") {
        return median_in_place(&mut measured.items.clone());
    }
    measured.values.iter().find(|(name, _)| *name == settings.noise_figure).map(|(_, v)| *v)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It gets no turns: the others would be measured until the time is up.
    #[test]
    fn one_without_time_keeps_no_precision_from_being_reached() {
        let settings =
            Settings { name: "dataset", intervals: &[], noise_figure: "samples_per_sec", item_prefix: "" };
        let variant = |runs: usize, left_out: bool| VariantResult {
            name: "tiff".to_owned(),
            twin_of: None,
            warmup: vec![],
            runs: (0..runs)
                .map(|round| Run {
                    round,
                    of: 0,
                    position: 0,
                    started_seconds: 0.0,
                    wall_seconds: 1.0,
                    value: Measurement { values: vec![("samples_per_sec", 5.0)], ..Measurement::default() },
                })
                .collect(),
            failure: None,
            left_out,
        };
        let by = IntervalEstimator::seeded(1);
        let known =
            |other| are_known(&[variant(10, false), other], &settings, 10, Precision { share: 0.02 }, &by);
        assert!(known(variant(0, true)));
        assert!(!known(variant(0, false)) && !known(variant(9, false)) && known(variant(10, false)));
    }
}
