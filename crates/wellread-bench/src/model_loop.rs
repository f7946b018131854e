//! Track 3: a model fed by the loader; where does a step's time go?
//!
//! A step is: ask for a batch, have it (`wait`), run the model on it (`compute`). Threads start and the first
//! batch arrives before step 1 is counted; that time is in `first_batch_s`. `data_wait_fraction` is the sum of
//! waiting over the sum of step times. A slow model hides waiting: what is said here holds for the model
//! named.

use crate::choices::{Mode, Preset};
use crate::data::FormatSet;
use crate::findings::{Judge, Ranked, Series, by_median, number, percent, ranked, series};
use crate::framework::tracks;
use crate::suite::{Benchmark, Session};
use crate::variants::{self, Keys, Measurement, Results, Settings, Unavailable, Variant};
use anyhow::{Context as _, Result, bail};
use std::cell::RefCell;
use std::rc::Rc;
use wellread_loader::{Batches, Dataset, Loader};
use wellread_measure::clock::Stopwatch;
use wellread_measure::samples::median;
use wellread_model::{Model, ModelOptions};
use wellread_report::{Cell, Finding, Severity, Table};

/// The benchmark's registration.
pub static BENCHMARK: Benchmark = Benchmark {
    name: "loop",
    about: "a model fed by the loader (upstream's Track 3)",
    run,
    transforms: |_| vec![Preset::None],
    headline: &["step_p50_s", "data_wait_fraction", "images_per_sec"],
    findings,
};

fn run(session: &Session<'_>) -> Result<Results> {
    let config = session.config;
    let (mut variants, mut unavailable) = (Vec::new(), Vec::new());
    for &mode in &config.modes {
        for set in session.own_sets() {
            let keys: Keys = vec![
                ("format", Cell::from(set.format)),
                ("mode", Cell::from(mode)),
                ("model", Cell::from(&config.model)),
                ("batch_size", Cell::from(config.batch_size)),
            ];
            if let Some(reason) = set.error.clone().or(tracks::not_for_rust(&config.model)) {
                unavailable.push(Unavailable { keys, reason });
                continue;
            }
            // One model per variant, built when first needed: training goes on from round to round.
            let model: Rc<RefCell<Option<Box<dyn Model>>>> = Rc::default();
            variants.push(Variant {
                peer: false,
                keys,
                job: Box::new(move |turn| {
                    steps(session, set, mode, &mut model.borrow_mut(), turn.round as u64, turn.warmup)
                }),
            });
        }
    }
    tracks::mark_own(session, (&mut variants, &mut unavailable));
    let own = variants.len();
    tracks::model_loop(session, own, (&mut variants, &mut unavailable));
    let settings = Settings {
        name: BENCHMARK.name,
        intervals: &["data_wait_fraction", "images_per_sec", "first_batch_s"],
        noise_figure: "images_per_sec",
        item_prefix: "step_",
    };
    variants::run(session, &settings, variants, unavailable)
}

/// Upstream's advice for a share of waiting.
pub fn advice(data_wait_fraction: f64) -> &'static str {
    if data_wait_fraction < 0.30 {
        "loading is no bottleneck"
    } else if data_wait_fraction <= 0.50 {
        "loading is significant but acceptable"
    } else {
        "loading is the bottleneck: add workers, a larger batch, or a faster format"
    }
}

/// Batches without end: epoch after epoch.
struct Endless<'l> {
    loader: &'l Loader,
    epoch: u64,
    batches: Batches,
}

impl<'l> Endless<'l> {
    fn new(loader: &'l Loader, epoch: u64) -> Self {
        loader.set_epoch(epoch);
        let batches = loader.iter();
        Self { loader, epoch, batches }
    }

    fn next(&mut self) -> Result<wellread_loader::Batch> {
        if let Some(batch) = self.batches.next() {
            return Ok(batch?);
        }
        self.epoch += 1;
        self.loader.set_epoch(self.epoch);
        self.batches = self.loader.iter();
        match self.batches.next() {
            Some(batch) => Ok(batch?),
            None => bail!("the loader delivers no batch: --batch-size is larger than the set"),
        }
    }
}

fn steps(
    session: &Session<'_>,
    set: &FormatSet,
    mode: Mode,
    model: &mut Option<Box<dyn Model>>,
    round: u64,
    full: bool,
) -> Result<Measurement> {
    let config = session.config;
    let opening = Stopwatch::start();
    let dataset = Dataset::from_store(session.open(set)?);
    let builder = Loader::builder(&dataset)
        .batch_size(config.batch_size.min(dataset.len()))
        .drop_last(true)
        .shuffle(config.seed)
        .workers(config.loop_workers)
        .transform(session.transform(Preset::None)?);
    let loader = crate::dataloader::bounded(builder, config.memory).build()?;
    let mut batches = Endless::new(&loader, round * 1_000_000);
    // The batch that fills the pipeline and warms the model up; no step is counted yet.
    let batch = batches.next()?;
    let first_batch_s = opening.elapsed();
    let [n, c, h, w] = model_shape(batch.shape())?;
    let model = match model {
        Some(model) => model,
        None => model.insert(
            wellread_model::create(
                &config.model,
                &ModelOptions { seed: config.seed, in_channels: c, ..ModelOptions::default() },
            )
            .context("the model")?,
        ),
    };
    let mut loss = run_model(&mut **model, mode, batch.pixels(), [n, c, h, w])?;
    drop(batch);
    let (mut waits, mut computes, mut items) = (vec![], vec![], vec![]);
    let (mut images, mut verified) = (0, true);
    // Warm-up rounds check every pixel and need no statistics.
    let steps = if full { config.steps.min(2) } else { config.steps };
    for _ in 0..steps {
        let step = Stopwatch::start();
        let batch = batches.next()?;
        let wait = step.elapsed();
        loss = run_model(&mut **model, mode, batch.pixels(), [n, c, h, w])?;
        let whole = step.elapsed();
        waits.push(wait);
        computes.push(whole - wait);
        items.push(whole);
        images += batch.rows().len();
        for (row, values) in batch.rows().iter().zip(batch.pixels().chunks((c * h * w).max(1))) {
            verified &= session.expected.agrees(Preset::None, *row, values, full);
        }
    }
    let total: f64 = items.iter().sum();
    let waiting = waits.iter().sum::<f64>() / total;
    let mut values = vec![
        ("data_wait_fraction", waiting),
        ("images_per_sec", images as f64 / total),
        ("wait_p50_s", median(&waits).unwrap_or(f64::NAN)),
        ("compute_p50_s", median(&computes).unwrap_or(f64::NAN)),
        ("first_batch_s", first_batch_s),
    ];
    if let Some(memory) = loader.memory() {
        values.extend([("memory_bytes", memory.total() as f64), ("prefetch", loader.prefetch() as f64)]);
    }
    if let Some(loss) = loss {
        values.push(("loss", f64::from(loss)));
    }
    let texts = vec![("advice", advice(waiting).to_owned()), ("backend", model.backend().to_owned())];
    Ok(Measurement { values, texts, items, verified, ..Measurement::default() })
}

fn run_model(model: &mut dyn Model, mode: Mode, pixels: &[f32], shape: [usize; 4]) -> Result<Option<f32>> {
    if mode == Mode::Train {
        let loss = model.train_step(pixels, shape)?;
        if !loss.is_finite() {
            bail!("the loss is {loss}: training diverged");
        }
        return Ok(Some(loss));
    }
    let output = model.forward(pixels, shape)?;
    std::hint::black_box(output.as_slice());
    Ok(None)
}

/// N, C, H, W of a batch; T and Z are taken as further channels.
fn model_shape(shape: &[usize]) -> Result<[usize; 4]> {
    match *shape {
        [n, c, h, w] => Ok([n, c, h, w]),
        [n, t, c, z, h, w] => Ok([n, t * c * z, h, w]),
        _ => bail!("a batch of shape {shape:?} cannot be fed to a 2D model"),
    }
}

fn findings(table: &Table, judge: &Judge) -> Vec<Ranked> {
    Mode::ALL.iter().filter_map(|&mode| ranked(20, waiting(table, mode, judge))).collect()
}

fn waiting(table: &Table, mode: Mode, judge: &Judge) -> Option<Finding> {
    let is = |r: usize| table.cell("mode", r) == mode.into();
    let mut sorted = by_median(series(table, &["model"], "data_wait_fraction", is));
    sorted.reverse();
    let (best, worst) = (sorted.first()?, sorted.last()?);
    let interval = |s: &Series| {
        judge
            .median(&s.values)
            .map_or(String::new(), |i| format!(" ({} to {})", percent(i.low), percent(i.high)))
    };
    let fraction = worst.median();
    let severity = if fraction < 0.3 {
        Severity::Good
    } else if fraction <= 0.5 {
        Severity::Caution
    } else {
        Severity::Bad
    };
    let verb = if mode == Mode::Train { "training" } else { "inference" };
    let share = |s: &Series| format!("{}{} with {}", percent(s.median()), interval(s), s.format);
    let shares =
        if best.format == worst.format { share(best) } else { format!("{}, {}", share(best), share(worst)) };
    let rates = by_median(series(table, &["model"], "images_per_sec", is));
    let rate = rates.first().map_or(String::new(), |s| format!("{} images/s at most. ", number(s.median())));
    Some(Finding::new(
        severity,
        format!("In {verb} of {} a step waits for data for this share of its time: {shares}", best.label),
        format!(
            "{rate}With {}: {}. This holds for this model on this machine's CPU: a model or device that takes more images per second waits more.",
            worst.format,
            advice(fraction)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_has_upstreams_thresholds() {
        assert!(advice(0.29).contains("no bottleneck"));
        assert!(advice(0.30).contains("acceptable"));
        assert!(advice(0.50).contains("acceptable"));
        assert!(advice(0.51).contains("is the bottleneck"));
    }

    #[test]
    fn stacks_become_channels() {
        assert_eq!(model_shape(&[4, 2, 3, 5, 8, 9]).unwrap(), [4, 30, 8, 9]);
        assert!(model_shape(&[4]).is_err());
    }
}
