//! Track 3: a model fed by the loader; where does a step's time go?
//!
//! A step is: ask for a batch, have it (`wait`), run the model on it (`compute`). Threads start and the first batch
//! arrives before step 1 is counted; that time is in `first_batch_s`. `data_wait_fraction` is the sum of waiting over
//! the sum of step times. A slow model hides waiting: these figures hold for the model named. Each run opens the set
//! anew. Where its steps reach the end of the first epoch, `first_epoch_images_per_s` is the images of that epoch by
//! its time, opening and computing included.
//!
//! `accelerator_utilisation` has MLPerf Storage's definition: computing over all time. `utilisation_mark` names the
//! marks that a run reaches (90 % for 3D U-Net and ResNet-50, 70 % for CosmoFlow;
//! <https://mlcommons.org/benchmarks/storage/>).
//!
//! Waiting is measured a second time, by difference, in the same turn. The same steps run with batches that are full
//! already (`synthetic_step_s`), and with decoded images in memory (`cached_step_s`). They also run with files that are
//! not in the page cache (`cold_step_s`). The last reads every image once, starting included. `wait_by_difference_fraction` is the
//! share of a step that goes away with full batches. It also counts what the loader takes from the model by keeping
//! processors and memory busy, which no clock around waiting sees. Means of a few steps each; below zero where noise is
//! larger than the difference.
//!
//! Before anything is measured, steps on parts of an image of zeros give the model's time. A few batches of each
//! set the time to read. Parts that do not fit into the time budget then are cut ([`crate::budget::LoopPlan`]), and a
//! note names them. A run that takes far longer than that ends before its last step: its rows say so in the column
//! `cut`.

mod difference;
mod probe;
mod python;
mod step;
pub(crate) mod thresholds;
pub(crate) mod waiting;

pub(crate) use step::{model_shape, trained};
pub use thresholds::{UTILISATION_MARKS, advice, utilisation_mark};

use crate::budget::{self, LoopPlan};
use crate::choices::{Mode, Preset};
use crate::config::Config;
use crate::core::bounds::bounds;
use crate::core::judge::{Judge, Ranked};
use crate::core::python_sources::mark_own;
use crate::core::variants::{self, Keys, Measurement, Results, Settings, Unavailable, Variant};
use crate::core::{Benchmark, Session};
use crate::data::FormatSet;
use crate::roofline;
use crate::traffic;
use anyhow::Result;
use difference::differences;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use step::{EndlessBatches, Slot, built, loader, not_for_rust, run_model};
use wellread_loader::LoaderStats;
use wellread_measure::clock::Stopwatch;
use wellread_measure::interleave::Turn;
use wellread_measure::samples::median;
use wellread_report::{Cell, Table};
use wellread_store::words::counted;
use wellread_trace::{Kind, span};

/// The benchmark's registration.
pub static BENCHMARK: Benchmark = Benchmark {
    name: "loop",
    about: "a model fed by the loader",
    run,
    transforms: |_| vec![Preset::None],
    headline: &[
        "step_p50_s",
        "data_wait_fraction",
        "accelerator_utilisation",
        "images_per_sec",
        "first_epoch_images_per_s",
        "bytes_read_per_used",
    ],
    findings,
};

fn run(session: &Session<'_>) -> Result<Results> {
    let config = session.config;
    let (mut variants, mut unavailable) = (Vec::new(), Vec::new());
    let remarks: Rc<RefCell<BTreeSet<String>>> = Rc::default();
    let planned = probe::plan(session)?;
    remarks
        .borrow_mut()
        .extend(planned.as_ref().and_then(|planned| planned.plan.cut(&planned.asked, session.seconds())));
    let images = session.prepared.expected.len();
    let whole = || whole_set(images, config.batch_size, session.thing());
    remarks.borrow_mut().extend((config.batch_size > images).then(whole));
    let run = Run::of(session, planned.as_ref().map(|planned| &planned.plan));
    for &mode in &config.modes {
        let late = planned.as_ref().and_then(|planned| probe::too_long(&planned.plan, mode));
        for set in session.own_sets() {
            let run = Run {
                limit: planned
                    .as_ref()
                    .and_then(|planned| planned.limit(mode, set.format))
                    .unwrap_or(f64::INFINITY),
                ..run
            };
            let slow = planned.as_ref().and_then(|planned| planned.too_slow(set.format));
            let keys: Keys = vec![
                ("format", Cell::from(set.format)),
                ("mode", Cell::from(mode)),
                ("model", Cell::from(&config.model)),
                ("batch_size", Cell::from(run.batch_size)),
            ];
            let reason = set.error.clone().or(not_for_rust(&config.model)).or(late.clone()).or(slow);
            if let Some(reason) = reason {
                unavailable.push(Unavailable { keys, reason });
                continue;
            }
            // One model per variant, built when first needed: training goes on from round to round. Waiting by difference
            // has another, so that it teaches the first nothing.
            let models: Rc<RefCell<[Slot; 2]>> = Rc::default();
            let remarks = Rc::clone(&remarks);
            variants.push(Variant {
                peer: false,
                keys,
                job: Box::new(move |turn| {
                    let [model, spare] = &mut *models.borrow_mut();
                    let (mut measured, ahead) = steps(session, set, mode, model, turn, run)?;
                    let cut = measured.items.len() < run.steps && !turn.warmup;
                    if cut {
                        remarks.borrow_mut().insert(cut_short(set.format, mode, run.limit));
                    } else {
                        remarks.borrow_mut().extend(waiting::read_ahead(run.steps, ahead));
                    }
                    if !turn.warmup && run.differences && !cut {
                        let size = (run.batch_size, run.steps);
                        let (values, note) =
                            differences(session, set, mode, spare, turn.round as u64, &measured, size)?;
                        measured.values.extend(values);
                        remarks.borrow_mut().extend(note);
                    }
                    Ok(measured)
                }),
            });
        }
    }
    mark_own(session, (&mut variants, &mut unavailable));
    python::add_variants(session, (&mut variants, &mut unavailable));
    let settings = Settings {
        name: BENCHMARK.name,
        intervals: &[
            "data_wait_fraction",
            "accelerator_utilisation",
            "wait_by_difference_fraction",
            "images_per_sec",
            "first_epoch_images_per_s",
            "first_batch_s",
        ],
        noise_figure: "images_per_sec",
        item_prefix: "step_",
    };
    let mut results = variants::run(session, &settings, variants, unavailable)?;
    results.notes.extend(remarks.borrow().iter().cloned());
    results.notes.extend(traffic::uncounted(&results.table));
    results.table =
        roofline::with_share_of_copy(session, &results.table, "images_per_sec", config.loop_workers + 1);
    Ok(results)
}

/// The settings of each run: the requested ones, or the part of them that fits into the time budget.
#[derive(Clone, Copy)]
struct Run {
    batch_size: usize,
    steps: usize,
    differences: bool,
    /// Seconds after which no further step is made.
    limit: f64,
}

impl Run {
    fn of(session: &Session<'_>, plan: Option<&LoopPlan>) -> Self {
        let Config { batch_size, steps, .. } = *session.config;
        let batch_size = batch_size.min(session.prepared.expected.len());
        let whole = Self { batch_size, steps, differences: true, limit: f64::INFINITY };
        plan.map_or(whole, |plan| Self {
            batch_size: plan.batch_size,
            steps: plan.steps,
            differences: plan.differences,
            ..whole
        })
    }
}

/// The note where a batch of the requested size is larger than the set.
fn whole_set(images: usize, asked: usize, thing: &str) -> String {
    format!(
        "loop: batches of {images} instead of {asked} (--batch-size): the set has only {}",
        counted(images, thing)
    )
}

/// The note on runs that ended before their last step.
fn cut_short(format: &str, mode: Mode, limit: f64) -> String {
    format!(
        "loop: runs of {format} {} were cut after {}, before their last step (column cut). Loading or the model was far slower \
         than the probe before said",
        Cell::from(mode).text(),
        budget::words(limit)
    )
}

/// The first epoch of a set that was opened for a run: its time so far, opening included and pixels' comparison not, and its images.
#[derive(Default)]
struct FirstEpoch {
    seconds: f64,
    images: usize,
    whole: bool,
}

impl FirstEpoch {
    /// A batch and the step on it; `last` of its epoch. Images after the first epoch do not count.
    fn add(&mut self, seconds: f64, images: usize, last: bool) {
        if !self.whole {
            self.seconds += seconds;
            self.images += images;
            self.whole = last;
        }
    }

    /// Images per second; `None` where the run ended within the epoch.
    fn rate(&self) -> Option<f64> {
        self.whole.then(|| self.images as f64 / self.seconds)
    }
}

/// Measures the steps of one run; with it the number of batches that are read ahead.
fn steps(
    session: &Session<'_>,
    set: &FormatSet,
    mode: Mode,
    model: &mut Slot,
    turn: Turn,
    run: Run,
) -> Result<(Measurement, usize)> {
    let config = session.config;
    let (round, full) = (turn.round as u64, turn.warmup);
    let opening = Stopwatch::start();
    let loader = loader(session, set, run.batch_size)?;
    let mut batches = EndlessBatches::new(&loader, round * 1_000_000);
    // The batch that fills the pipeline and warms the model up; no step is counted yet.
    let batch = batches.next()?;
    let first_batch_s = opening.elapsed();
    let [n, c, h, w] = model_shape(batch.shape())?;
    let model = built(config, model, c)?;
    let computing = Stopwatch::start();
    let mut loss = run_model(&mut **model, mode, batch.pixels(), [n, c, h, w], batch.rows())?;
    let mut first_epoch = FirstEpoch::default();
    first_epoch.add(first_batch_s + computing.elapsed(), batch.rows().len(), batches.at_end());
    drop(batch);
    let (mut waits, mut computes, mut items) = (vec![], vec![], vec![]);
    let (mut images, mut verified) = (0, true);
    // Warm-up rounds check every pixel and need no statistics.
    let steps = if full { run.steps.min(budget::WARM_UP_STEPS) } else { run.steps };
    for number in 0..steps {
        if number > 0 && opening.elapsed() > run.limit {
            break;
        }
        batches.between_steps();
        let step = Stopwatch::start();
        let batch = batches.next()?;
        let wait = step.elapsed();
        let running = span(Kind::Step).with(number as u64, 0);
        loss = run_model(&mut **model, mode, batch.pixels(), [n, c, h, w], batch.rows())?;
        drop(running);
        let whole = step.elapsed();
        waits.push(wait);
        computes.push(whole - wait);
        items.push(whole);
        images += batch.rows().len();
        first_epoch.add(whole, batch.rows().len(), batches.at_end());
        let _verify = span(Kind::Verify).with(batch.rows().len() as u64, 0);
        for (row, values) in batch.rows().iter().zip(batch.pixels().chunks((c * h * w).max(1))) {
            verified &= session.expected.agrees(Preset::None, *row, values, full);
        }
    }
    let ahead = if config.loop_workers == 0 { 0 } else { loader.prefetch() };
    let total: f64 = items.iter().sum();
    let waited = waits.iter().sum::<f64>() / total;
    let mut values = vec![
        ("data_wait_fraction", waited),
        ("accelerator_utilisation", 1.0 - waited),
        ("images_per_sec", images as f64 / total),
        ("wait_p50_s", median(&waits).unwrap_or(f64::NAN)),
        ("compute_p50_s", median(&computes).unwrap_or(f64::NAN)),
        ("first_batch_s", first_batch_s),
        ("steps", items.len() as f64),
        ("batches_ahead", ahead as f64),
    ];
    values.extend(first_epoch.rate().map(|rate| ("first_epoch_images_per_s", rate)));
    values.extend(bounds(&loader, config));
    // From opening on: of a small set the first batches read all pages.
    values.extend(traffic::since(LoaderStats::default(), loader.stats()));
    if let Some(loss) = loss {
        values.push(("loss", f64::from(loss)));
    }
    let mut texts = vec![
        ("advice", waiting::read_ahead(items.len(), ahead).unwrap_or_else(|| advice(waited).to_owned())),
        ("utilisation_mark", utilisation_mark(1.0 - waited).to_owned()),
        ("backend", model.backend().to_owned()),
    ];
    if items.len() < steps {
        texts.push(("cut", format!("after {} of {}", items.len(), counted(steps, "step"))));
    }
    Ok((Measurement { values, texts, items, verified, ..Measurement::default() }, ahead))
}

/// The rank of what binds: before the fastest format.
const BINDING_RANK: u32 = 5;

fn findings(table: &Table, judge: &Judge) -> Vec<Ranked> {
    // The limit comes first: where the model is the limit, the fastest format makes nothing faster.
    let found = Mode::ALL.iter().filter_map(|&mode| waiting::finding(table, mode, judge)).enumerate();
    found.map(|(at, finding)| Ranked { rank: if at == 0 { BINDING_RANK } else { 20 }, finding }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_epoch_ends_with_its_last_batch() {
        let mut epoch = FirstEpoch::default();
        epoch.add(3.0, 8, false);
        assert_eq!(epoch.rate(), None);
        epoch.add(1.0, 8, true);
        epoch.add(1.0, 8, false);
        epoch.add(1.0, 8, true);
        assert_eq!(epoch.rate(), Some(4.0));
    }

    #[test]
    fn a_batch_of_the_whole_set_is_told() {
        assert_eq!(
            whole_set(12, 16, "cell"),
            "loop: batches of 12 instead of 16 (--batch-size): the set has only 12 cells"
        );
    }
}
