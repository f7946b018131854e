//! The cost of the model loop, probed before it is measured, and the part of it that fits into the time
//! budget.
//!
//! ```text
//!  steps on zeros ─▶ seconds of an image in the model, by mode ─┐
//!  a few batches of each set ─▶ seconds to open, and of an image ┴─▶ LoopPlan::of ─▶ Planned: steps, rounds, limits of runs
//! ```
//!
//! Each set is read image by image first, and batches follow only where a batch of these came soon enough. A batch of a format
//! that decodes a whole row group for each image can take longer than the budget.

use super::step::{EndlessBatches, built, loader, model_shape, not_for_rust, run_model};
use crate::budget::{self, LoopPlan, LoopRequest, ReadCost};
use crate::choices::Mode;
use crate::config::Config;
use crate::core::Session;
use crate::core::session::batch_shape;
use crate::core::variants::LEFT_OUT;
use crate::core::words::number;
use crate::data::FormatSet;
use crate::feed;
use anyhow::Result;
use wellread_measure::clock::Stopwatch;

/// Most batches of each set that are read to see how long it takes.
const PROBED_BATCHES: usize = 8;
/// Bytes of a batch of `float32` from which on single images are read for that.
const PROBED_BYTES: usize = 1 << 26;
/// Share of the budget from which on a larger probe would take too much of it.
const PROBE: f64 = 0.01;
/// Share of the budget that the images of a set's first batch may take, read one by one.
const FIRST_BATCH: f64 = 0.05;
/// Side of the part of an image that is probed first.
const FIRST_SIDE: usize = 32;

/// The plan that fits into the time budget, and the seconds that it was computed from.
pub(super) struct Planned {
    pub(super) plan: LoopPlan,
    pub(super) asked: LoopRequest,
    /// Seconds that an image takes the model.
    modes: Vec<(Mode, f64)>,
    /// And to be read.
    sets: Vec<ReadCost>,
    /// Seconds that there are for all of it.
    seconds: f64,
}

impl Planned {
    /// Seconds after which a run is cut.
    pub(super) fn limit(&self, mode: Mode, format: &str) -> Option<f64> {
        let (_, model_s) = self.modes.iter().find(|(known, _)| *known == mode)?;
        let set = self.sets.iter().find(|set| set.format == format)?;
        Some(self.plan.limit(*model_s, set, self.modes.len() * self.sets.len(), self.seconds))
    }

    /// Why a format is not measured that is too slow to be read.
    pub(super) fn too_slow(&self, format: &str) -> Option<String> {
        let (_, alone) = self.plan.slow.iter().find(|(slow, _)| *slow == format)?;
        let set = self.sets.iter().find(|set| set.format == format)?;
        Some(format!(
            "{LEFT_OUT}: when the time was planned its batches came at about {} images/s, far slower than those of the others. It \
             alone would take {} of the {} that there are for all (--formats {format} measures it, --time-budget gives more time)",
            number(set.image_s.recip()),
            budget::words(*alone),
            budget::words(self.seconds)
        ))
    }
}

/// The plan that fits into the time budget, by a probe of the model and of reading; `None` where this program runs
/// no model.
pub(super) fn plan(session: &Session<'_>) -> Result<Option<Planned>> {
    let config = session.config;
    let sets: Vec<&FormatSet> = session.own_sets().iter().filter(|set| set.error.is_none()).collect();
    if sets.is_empty() || not_for_rust(&config.model).is_some() {
        return Ok(None);
    }
    let asked = LoopRequest {
        rounds: config.repeats,
        steps: config.steps,
        batch_size: config.batch_size.min(session.prepared.expected.len()),
        ahead: feed::ahead(config.prefetch, config.loop_workers),
        cold: config.cold,
    };
    let shape = model_shape(&batch_shape(config, &session.prepared.expected))?;
    let enough = PROBE * session.seconds();
    let modes = config
        .modes
        .iter()
        .map(|&mode| Ok((mode, image_seconds(config, mode, shape, enough)?)))
        .collect::<Result<Vec<_>>>()?;
    let [_, c, h, w] = shape;
    let batch_size =
        if asked.batch_size * c * h * w * size_of::<f32>() > PROBED_BYTES { 1 } else { asked.batch_size };
    // A set that cannot be read says so when it is measured.
    let sets: Vec<ReadCost> = sets
        .iter()
        .map(|set| {
            reading(session, set, batch_size, enough)
                .unwrap_or(ReadCost { format: set.format, ..ReadCost::default() })
        })
        .collect();
    let seconds = session.remaining().as_secs_f64();
    Ok(Some(Planned { plan: LoopPlan::of(&asked, &modes, &sets, seconds), asked, modes, sets, seconds }))
}

/// The time to read a set: of single images where a batch of them takes too much of the budget, else of whole batches.
fn reading(session: &Session<'_>, set: &FormatSet, batch_size: usize, enough: f64) -> Result<ReadCost> {
    let opening = Stopwatch::start();
    let loader = loader(session, set, 1)?;
    let open_s = opening.elapsed();
    let clock = Stopwatch::start();
    let mut images = EndlessBatches::new(&loader, 0);
    let slow = seconds_if_slow(batch_size, FIRST_BATCH * session.seconds(), || {
        images.between_steps();
        images.next()?;
        Ok(clock.elapsed())
    })?;
    // Its threads read ahead, which the batches below must not share the processors with.
    drop(images);
    match slow {
        Some(image_s) => Ok(ReadCost { format: set.format, open_s, image_s }),
        None => reading_batches(session, set, batch_size, enough),
    }
}

/// Reads up to a batch of single images. The seconds of one if they take more than `most` together; `None` if the batch is read
/// sooner. `next` reads an image and returns the seconds since the first was asked for.
fn seconds_if_slow(
    batch_size: usize,
    most: f64,
    mut next: impl FnMut() -> Result<f64>,
) -> Result<Option<f64>> {
    for images in 1..=batch_size {
        let elapsed = next()?;
        if elapsed > most {
            return Ok(Some(elapsed / images as f64));
        }
    }
    Ok(None)
}

/// The time to read batches after the first, as many as are read in `enough` seconds and one at least.
fn reading_batches(
    session: &Session<'_>,
    set: &FormatSet,
    batch_size: usize,
    enough: f64,
) -> Result<ReadCost> {
    let opening = Stopwatch::start();
    let loader = loader(session, set, batch_size)?;
    let open_s = opening.elapsed();
    let mut batches = EndlessBatches::new(&loader, 0);
    // Starting threads and what a set keeps from its first read on are no part of a later batch.
    batches.next()?;
    let (mut images, clock) = (0, Stopwatch::start());
    for _ in 0..PROBED_BATCHES {
        batches.between_steps();
        images += batches.next()?.rows().len();
        if clock.elapsed() > enough {
            break;
        }
    }
    let image_s = clock.elapsed() / images.max(1) as f64;
    Ok(ReadCost { format: set.format, open_s, image_s })
}

/// Seconds that the model takes for an image of a batch of this shape. It runs steps on a small part of one image, then on
/// larger parts and on more images. It ends when one takes `enough` seconds or is all of the batch.
fn image_seconds(config: &Config, mode: Mode, [n, c, h, w]: [usize; 4], enough: f64) -> Result<f64> {
    let mut model = None;
    let model = built(config, &mut model, c)?;
    let mut step = |shape: [usize; 4]| {
        let values: usize = shape.iter().product();
        let pixels: Vec<f32> = (0..values).map(|i| (i % 7) as f32 / 7.0).collect();
        let clock = Stopwatch::start();
        run_model(&mut **model, mode, &pixels, shape, &[])?;
        Ok::<f64, anyhow::Error>(clock.elapsed())
    };
    let part = |side: usize, images: usize| [images, c, side.min(h), side.min(w)];
    // The first step starts threads and asks for memory.
    step(part(FIRST_SIDE, 1))?;
    let (mut images, mut side) = (1, FIRST_SIDE);
    let mut steps: Vec<(f64, f64)> = Vec::new();
    loop {
        let shape = part(side, images);
        let share = (images * shape[2] * shape[3]) as f64 / (h * w) as f64;
        let seconds = step(shape)?.min(step(shape)?);
        steps.push((share, seconds));
        let whole = side >= h.max(w);
        if seconds > enough || (whole && images >= n) {
            return Ok(budget::per_image(&steps));
        }
        if whole {
            images = (2 * images).min(n);
        } else {
            side *= 2;
        }
    }
}

/// Why a mode is not measured that does not fit into the time budget.
pub(super) fn too_long(plan: &LoopPlan, mode: Mode) -> Option<String> {
    let (_, least) = plan.skipped.iter().find(|(skipped, _)| *skipped == mode)?;
    Some(format!(
        "{LEFT_OUT}: one step on one image in every format would take about {} (smaller images: --crop 224x224, one format: \
         --formats, more time: --time-budget)",
        budget::words(*least)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads images of so many seconds each, and counts them.
    fn probed(image_s: f64, most: f64) -> (Option<f64>, usize) {
        let mut read = 0_u32;
        let slow = seconds_if_slow(16, most, || {
            read += 1;
            Ok(image_s * f64::from(read))
        });
        (slow.unwrap(), read as usize)
    }

    #[test]
    fn a_slow_set_is_probed_by_one_image_and_a_fast_one_goes_on_to_batches() {
        // Two batches of 16 such images would take 16 s, of a budget of 2 s.
        assert_eq!(probed(0.5, 0.1), (Some(0.5), 1));
        // Slow by its sixteen images alone: by as many as the time has room for.
        assert_eq!(probed(0.03125, 0.1), (Some(0.03125), 4));
        assert_eq!(probed(0.001, 0.1), (None, 16));
    }

    #[test]
    fn a_set_that_cannot_be_read_fails_its_probe() {
        seconds_if_slow(16, 0.1, || anyhow::bail!("damaged")).unwrap_err();
    }
}
