//! A study that keeps to its time: smaller batches for a slow model, fewer images where a run takes long.
//!
//! ```text
//!  one image through the model ─▶ batch_size      one batch through the loop ─▶ fitted ─▶ rows of the sample
//! ```

use super::consumer::Consumer;
use super::plain_loader::plain_loader;
use super::settings::{SOURCES, Settings};
use crate::core::words::number;
use crate::feed::{BatchSource, Feed, LoaderSettings, Open, RunLength, Step};
use crate::sample::{Limits, Sample};
use anyhow::{Result, bail};
use wellread_measure::clock::Stopwatch;
use wellread_measure::compare::MIN_SAMPLES;
use wellread_store::Store;
use wellread_store::words::counted;

/// Steps of a study at least, where each run is one batch: from each source in each round and in the one of warm-up.
fn steps_of(rounds: usize) -> f64 {
    (SOURCES.len() * (rounds + 1)) as f64
}

/// Images of a batch where none is asked for. A model whose steps take long gets fewer: with one batch in a run, the
/// rounds then fit into the time.
pub(super) fn batch_size(
    open: &Open<'_>,
    store: &dyn Store,
    settings: &Settings,
    step: &mut Step<'_>,
) -> Result<usize> {
    let usual = crate::sample::batch_size(store, settings.crop)?;
    if !matches!(settings.consumer, Consumer::Model(_)) || store.is_empty() {
        return Ok(usual);
    }
    let one = Limits { images: 1, ..settings.limits };
    let sample = Sample::draw(store, one, 1, settings.seed, settings.crop)?;
    let how = plain_loader(1, settings.workers, settings.seed, settings.crop)?;
    let probe = Feed::new(Box::new(open), sample.rows, how);
    // The model's first step has work that it does once.
    let mut image = f64::INFINITY;
    for epoch in 0..2 {
        image = image.min(probe.pass(BatchSource::Warm, RunLength::Once, epoch, step)?.compute());
    }
    let each = settings.time_budget.as_secs_f64() / steps_of(settings.rounds);
    Ok(((each / image) as usize).clamp(1, usual))
}

/// The part of the sample whose runs fit into the time, and its feed.
///
/// # Errors
/// A set that cannot be read; a step so long that not even one round fits.
pub(super) fn fitted<'o>(
    open: &'o Open<'o>,
    mut sample: Sample,
    how: LoaderSettings,
    settings: &Settings,
    step: &mut Step<'_>,
) -> Result<(Sample, Feed<'o>)> {
    let feed = Feed::new(Box::new(open), sample.rows.clone(), how.clone());
    // One batch of a run, and from cold files if they are cold.
    let clock = Stopwatch::start();
    let probe = Feed::new(Box::new(open), sample.rows[..how.batch_size].to_vec(), how.clone());
    let mut compute = probe.pass(BatchSource::Cold, RunLength::Once, 0, step)?.compute();
    let batch = clock.elapsed();
    let budget = settings.time_budget.as_secs_f64();
    let is_too_long = |step_s: f64| step_s * steps_of(1) > budget;
    if matches!(settings.consumer, Consumer::Model(_)) && is_too_long(compute) {
        // Its first step has work that it does once, unless a batch size was looked for.
        compute = compute.min(probe.pass(BatchSource::Warm, RunLength::Once, 1, step)?.compute());
    }
    if settings.consumer != Consumer::Nothing && is_too_long(compute) {
        bail!(
            "a step of {} takes {} s, so that one round takes {} s with its warm-up: --time-budget is {} s. Give {:.0} s \
             for {}{}",
            counted(how.batch_size, sample.thing),
            number(compute),
            number(compute * steps_of(1)),
            number(budget),
            (compute * steps_of(MIN_SAMPLES)).ceil(),
            counted(MIN_SAMPLES, "round"),
            match settings.consumer {
                Consumer::Model(_) if how.batch_size > 1 => ", or a smaller --batch-size",
                Consumer::Model(_) if settings.crop.is_none() => ", or a --crop",
                _ => "",
            }
        );
    }
    // Each round runs four sources, of which two fill what they read from first; one round is warm-up.
    let runs = 6.0 * (settings.rounds + 1) as f64;
    let batches = (budget / runs / batch).max(1.0);
    if batches >= feed.steps() as f64 {
        return Ok((sample, feed));
    }
    // Every so manieth row of those that were drawn.
    let wanted = batches as usize * how.batch_size;
    let all = sample.rows.len();
    sample.rows = (0..wanted).map(|i| sample.rows[i * all / wanted]).collect();
    let feed = Feed::new(Box::new(open), sample.rows.clone(), how);
    Ok((sample, feed))
}
