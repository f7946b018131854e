//! The predicted waiting for data of a model with a given step time, computed from the loader's speed and checked
//! against a loop.
//!
//! A loader has two speeds. While the model computes, the workers read: `background` batches per second. While a batch is
//! waited for, the thread that waits reads with them. That is `waiting` batches per second, which is what a loop without a model
//! gets. In steady state each step takes one batch, so with a step of `s` seconds and a wait of `w`
//!
//! ```text
//!   background · s + waiting · w = 1      ─▶      w = max(0, (1 − background · s) / waiting)
//! ```
//!
//! `waiting` is measured in a loop whose step takes no time. `background` cannot be measured alone; it follows from one more
//! loop, whose step takes [`LOADED`] of the time of a batch, by the same equation. Without workers it is 0: each batch is
//! read when it is asked for.
//!
//! The equation ignores the start of an epoch (threads start, nothing is read ahead).
//! It also ignores batches of very different cost, which the queue of batches ahead evens out. It also ignores that a model
//! takes processors from the workers.

use crate::core::words::number;
use crate::feed::{BatchSource, Feed, RunLength, simulate_step};
use crate::stages::Figure;
use anyhow::{Result, bail};
use serde::Serialize;
use std::cell::Cell;
use std::time::Duration;
use wellread_measure::interleave::Plan;
use wellread_measure::intervals::IntervalEstimator;

/// Step time of the loop that measures the speed in the background, as a share of the time of a batch. It is long
/// enough for reads meanwhile, and short enough that the loop still waits.
pub const LOADED: f64 = 0.8;

/// Seconds of a step that no model has: a loader that is waited for until then is always waited for.
const NEVER: f64 = 1e3;

/// Shares of waiting below this are 0.0 % in a table.
const ROUNDS_TO_NOTHING: f64 = 5e-4;

/// How fast a loader is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Batches per second while the model computes.
    pub background: f64,
    /// Batches per second while one is waited for.
    pub waiting: f64,
}

impl Speed {
    /// From the time of a batch in a loop without a model, and the wait in one whose step took `step` seconds.
    pub fn measured(batch: f64, step: f64, wait: f64) -> Self {
        let waiting = 1.0 / batch;
        // Noise must not make it negative, nor faster than with one thread more.
        let background = ((1.0 - wait * waiting) / step).clamp(0.0, waiting);
        Self { background, waiting }
    }

    /// Seconds that a step of `step` seconds waits for its batch.
    pub fn wait(&self, step: f64) -> f64 {
        ((1.0 - self.background * step) / self.waiting).max(0.0)
    }

    /// The same as a share of the whole step.
    pub fn wait_share(&self, step: f64) -> f64 {
        let wait = self.wait(step);
        wait / (wait + step)
    }

    /// The speed in batches that are so many of these in one.
    pub fn joined(&self, parts: f64) -> Self {
        Self { background: self.background / parts, waiting: self.waiting / parts }
    }

    /// Shortest step that does not wait; infinite where every step waits.
    pub fn enough(&self) -> f64 {
        let step = 1.0 / self.background;
        if step < NEVER { step } else { f64::INFINITY }
    }
}

/// Steps of a turn at least.
pub(super) const MIN_STEPS: usize = 3;
/// Turns of about this many seconds, of no more and no fewer steps than these.
const TURN_LIMITS: (f64, usize, usize) = (0.15, MIN_STEPS, 200);

/// How many steps of so many seconds a turn has.
pub fn steps_of(seconds: f64) -> usize {
    ((TURN_LIMITS.0 / seconds.max(1e-7)) as usize).clamp(TURN_LIMITS.1, TURN_LIMITS.2)
}

/// The loop without a model, and the loaded one: the two measurements behind a [`Speed`].
pub struct Probe<'f, 'a> {
    feed: &'f Feed<'a>,
    has_workers: bool,
}

impl<'f, 'a> Probe<'f, 'a> {
    /// The predictor of a feed whose loader has workers, or has none.
    pub fn new(feed: &'f Feed<'a>, workers: usize) -> Self {
        Self { feed, has_workers: workers > 0 }
    }

    /// Seconds of a batch in a loop without a model, in steady state.
    ///
    /// # Errors
    /// As [`Feed::pass`].
    pub fn batch(&self, epoch: u64) -> Result<f64> {
        let mut nothing = |_: &wellread_loader::Batch| Ok(());
        let few = self.feed.pass(BatchSource::Warm, RunLength::Steady(TURN_LIMITS.1), epoch, &mut nothing)?;
        let steps = steps_of(few.step());
        if steps <= TURN_LIMITS.1 {
            return Ok(few.step());
        }
        Ok(self.feed.pass(BatchSource::Warm, RunLength::Steady(steps), epoch, &mut nothing)?.step())
    }

    /// Both measurements, one after the other.
    ///
    /// # Errors
    /// As [`Feed::pass`].
    pub fn speed(&self, epoch: u64) -> Result<Speed> {
        let batch = self.batch(epoch)?;
        if !self.has_workers {
            return Ok(Speed { background: 0.0, waiting: 1.0 / batch });
        }
        let looped = run_loop(self.feed, LOADED * batch, epoch)?;
        Ok(Speed::measured(batch, looped.compute, looped.wait))
    }
}

/// Means of the steps of a loop, seconds.
#[derive(Clone, Copy, Debug)]
pub struct LoopTimes {
    /// The seconds that a step computed.
    pub compute: f64,
    /// All of the step but that.
    pub wait: f64,
}

impl LoopTimes {
    /// The same of batches that are so many of these in one.
    fn joined(&self, parts: f64) -> Self {
        Self { compute: self.compute * parts, wait: self.wait * parts }
    }

    /// Share of a step that was no computing.
    pub fn wait_share(&self) -> f64 {
        self.wait / (self.wait + self.compute)
    }
}

/// A real loop over the loader with a stand-in step of `step` seconds, in steady state.
///
/// # Errors
/// As [`Feed::pass`].
pub fn run_loop(feed: &Feed<'_>, step: f64, epoch: u64) -> Result<LoopTimes> {
    let pass = feed.pass(BatchSource::Warm, RunLength::Steady(steps_of(step)), epoch, &mut |_| {
        simulate_step(step);
        Ok(())
    })?;
    let compute = pass.compute();
    Ok(LoopTimes { compute, wait: (pass.step() - compute).max(0.0) })
}

/// The waiting of a step of some time, as predicted, and as measured by a loop where one was run.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// Time of the step, milliseconds.
    pub step_ms: f64,
    /// Share of the whole step that is waiting.
    pub data_wait_fraction: Figure,
    /// Computing over all time: accelerator utilisation.
    pub utilisation: Figure,
    /// Milliseconds of a step with its wait.
    pub whole_step_ms: Figure,
    /// The mark that the utilisation reaches: see [`crate::model_loop::utilisation_mark`].
    pub mark: &'static str,
    /// The result of a real loop with a stand-in of that time, in the same rounds.
    pub checked: Option<Checked>,
}

/// A real loop beside a prediction.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Share of the whole step that was waiting.
    pub data_wait_fraction: Figure,
    /// Milliseconds of a step with its wait.
    pub whole_step_ms: Figure,
    /// Predicted over measured time of a step.
    pub ratio: Figure,
    /// Whether the prediction was right: see [`agrees`]. None where it is off and the rounds are too few to say so.
    pub agrees: Option<bool>,
}

/// How far a prediction may be off.
pub const TOLERANCE: f64 = 0.2;

/// Whether the ratio of a predicted to a measured time of a step is within [`TOLERANCE`], or its interval reaches there.
pub fn agrees(ratio: &Figure) -> Option<bool> {
    let within = |low: f64, high: f64| low <= 1.0 + TOLERANCE && high >= 1.0 / (1.0 + TOLERANCE);
    match ratio.low.zip(ratio.high) {
        Some((low, high)) => Some(within(low, high)),
        None => within(ratio.value, ratio.value).then_some(true),
    }
}

/// Whether a step of so many milliseconds stands for none that does not wait ([`Speed::enough`]).
pub fn is_never(ms: f64) -> bool {
    !ms.is_finite()
}

/// From which step on nothing waits, of milliseconds, beside the waits that are predicted of longer and longer steps. Where every
/// step waits, that may be for microseconds: of a long step it is 0.0 %, and the sentence does not contradict that.
pub fn no_wait(from_ms: &Figure, predictions: &[Prediction]) -> String {
    if !is_never(from_ms.value) {
        return format!("no wait for steps from {} ms{}", number(from_ms.value), ends(from_ms));
    }
    let is_none = |p: &&Prediction| p.data_wait_fraction.value < ROUNDS_TO_NOTHING;
    match predictions.iter().rev().take_while(is_none).last() {
        Some(shortest) => format!("waits are 0.0 % for steps from {} ms", number(shortest.step_ms)),
        None => "every step waits, as far as these rounds tell".to_owned(),
    }
}

/// ` (LOW to HIGH)`, where there is an interval.
pub fn ends(figure: &Figure) -> String {
    let Some((low, high)) = figure.low.zip(figure.high) else { return String::new() };
    if is_never(high) {
        return format!(" ({} or more)", number(low));
    }
    format!(" ({} to {})", number(low), number(high))
}

/// The measurements of one round of predicting.
struct Round {
    speed: Speed,
    looped: Option<LoopTimes>,
}

/// Predicts the wait of steps of these times (seconds), each of a batch that is `parts` of those of the feed. With `check`, a real
/// loop with each follows in every round. Without any time at all it is one round that nothing warms up.
///
/// The speeds of a round and its loops are measured one right after the other, so that both see the same machine. The order
/// changes from round to round. Returns the predictions, and the shortest step that does not wait.
///
/// # Errors
/// As [`Feed::pass`]; no round within the time.
pub fn predict(
    feed: &Feed<'_>,
    workers: usize,
    parts: f64,
    steps: &[f64],
    check: bool,
    (rounds, budget, seed): (usize, Duration, u64),
    progress: &dyn Fn(usize, usize),
) -> Result<(Vec<Prediction>, Figure)> {
    let probe = Probe::new(feed, workers);
    let epoch = Cell::new(0);
    let next = || epoch.replace(epoch.get() + 1);
    let warmup = usize::from(!budget.is_zero());
    let mut plan = Plan::new(seed).rounds(rounds).warmup(warmup).min_rounds(1).time_budget(budget);
    plan = plan.add("speed", || {
        let speed = probe.speed(next())?.joined(parts);
        Ok::<_, anyhow::Error>(Round { speed, looped: None })
    });
    if check {
        for step in steps {
            let next = &next;
            plan = plan.add(format!("{step}"), move || {
                let looped = Some(run_loop(feed, *step / parts, next())?.joined(parts));
                Ok::<_, anyhow::Error>(Round { speed: Speed { background: 0.0, waiting: 1.0 }, looped })
            });
        }
    }
    let outcome = plan.run(|p| progress(p.turns_done, p.turns))?;
    if let Some(failed) = outcome.variants.iter().find_map(|v| v.failure.as_ref()) {
        bail!("{}", failed.message);
    }
    let estimator = IntervalEstimator::seeded(seed);
    let speeds: Vec<Speed> = outcome.variants[0].runs.iter().map(|run| run.value.speed).collect();
    let over =
        |of: &dyn Fn(&Speed) -> f64| Figure::of(&speeds.iter().map(of).collect::<Vec<_>>(), &estimator);
    let predictions = steps.iter().enumerate().map(|(i, &step)| {
        let checked = outcome.variants.get(i + 1).filter(|_| check).map(|variant| {
            let loops: Vec<LoopTimes> = variant.runs.iter().filter_map(|run| run.value.looped).collect();
            let of = |of: &dyn Fn(&LoopTimes) -> f64| {
                Figure::of(&loops.iter().map(of).collect::<Vec<_>>(), &estimator)
            };
            // At the time that the stand-in really took.
            let ratios: Vec<f64> = speeds
                .iter()
                .zip(&loops)
                .map(|(speed, l)| (l.compute + speed.wait(l.compute)) / (l.compute + l.wait))
                .collect();
            let ratio = Figure::of(&ratios, &estimator);
            Checked {
                data_wait_fraction: of(&LoopTimes::wait_share),
                whole_step_ms: of(&|l| 1e3 * (l.compute + l.wait)),
                ratio,
                agrees: agrees(&ratio),
            }
        });
        let utilisation = over(&|speed| 1.0 - speed.wait_share(step));
        Prediction {
            step_ms: 1e3 * step,
            data_wait_fraction: over(&|speed| speed.wait_share(step)),
            utilisation,
            whole_step_ms: over(&|speed| 1e3 * (step + speed.wait(step))),
            mark: crate::model_loop::utilisation_mark(utilisation.value),
            checked,
        }
    });
    Ok((predictions.collect(), over(&|speed| 1e3 * speed.enough())))
}

#[cfg(test)]
mod tests;
