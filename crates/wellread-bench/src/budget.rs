//! How a run keeps to its time budget.
//!
//! ```text
//!  --time-budget ─share─▶ a benchmark's part ─▶ interleave::Plan::fit   rounds are cut, then variants left out
//!                                           └─▶ LoopPlan::of(probe)     steps, then rounds, slow formats, images of a batch
//! ```
//!
//! Benchmarks that have not run share evenly what is left, so that one that ends early leaves its time to the others.
//! Here is only arithmetic on seconds; each caller names its measurement.

use crate::choices::Mode;
use std::time::Duration;
use wellread_store::words::counted;

/// A benchmark gets so much of its even part at least, however late it is.
const MIN_TIME_SHARE: f64 = 0.25;

/// The time of the next of `left` benchmarks, of `all`, when `gone` of the `whole` budget is spent.
pub fn share(whole: Duration, gone: Duration, left: usize, all: usize) -> Duration {
    let even = whole.div_f64(all.max(1) as f64);
    whole.saturating_sub(gone).div_f64(left.max(1) as f64).max(even.mul_f64(MIN_TIME_SHARE))
}

/// The time left of all benchmarks at most, when the running one has `current` left and `later` follow.
pub fn left_of_all(whole: Duration, gone: Duration, current: Duration, later: usize, all: usize) -> Duration {
    let least = whole.div_f64(all.max(1) as f64).mul_f64(MIN_TIME_SHARE * later as f64);
    if later == 0 { current } else { whole.saturating_sub(gone).max(current + least) }
}

/// The request for the model loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopRequest {
    /// Measured rounds.
    pub rounds: usize,
    /// Steps of a run.
    pub steps: usize,
    /// Images of a batch, no more than the set has.
    pub batch_size: usize,
    /// Batches that are read ahead, and a little more.
    pub ahead: usize,
    /// Whether files are read cold too.
    pub cold: bool,
}

/// The time to read a set, by a probe. It is fed to the model in every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadCost {
    /// Its format.
    pub format: &'static str,
    /// Seconds until it is open.
    pub open_s: f64,
    /// Seconds of an image, as the loop's loader delivers it.
    pub image_s: f64,
}

/// How the model loop is run so that it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopPlan {
    /// Modes that are measured.
    pub modes: Vec<Mode>,
    /// Formats that are not, since their reading alone is too slow for all others. Each has the seconds that it would take as
    /// the others would have to be measured with it.
    pub slow: Vec<(&'static str, f64)>,
    /// Modes that are not, with the seconds that they would take at the least.
    pub skipped: Vec<(Mode, f64)>,
    /// Steps of a run.
    pub steps: usize,
    /// Images of a batch.
    pub batch_size: usize,
    /// Whether waiting is measured by difference too.
    pub differences: bool,
    /// Seconds that all that was asked for would take.
    pub in_full: f64,
}

/// Rounds that are planned for: with fewer there are no intervals, and more are cut while running.
const ROUNDS: usize = 6;
/// Steps of a run are cut to so many before anything else is.
const STEPS: usize = 5;
/// Steps of a warm-up turn.
pub(crate) const WARM_UP_STEPS: usize = 2;
/// Steps of a run by difference: a part of the others, and never fewer than these.
const MIN_DIFFERENCE_STEPS: (usize, usize) = (5, 2);

/// A set that is left out takes so many times what others take, at least.
const SLOW_SET_FACTOR: f64 = 2.0;
/// A run is cut when it has taken so many times what was planned.
const OVERRUN_FACTOR: f64 = 3.0;

/// Steps of each run by difference, of so many steps of a run.
pub(crate) fn steps_by_difference(steps: usize) -> usize {
    (steps / MIN_DIFFERENCE_STEPS.0).max(MIN_DIFFERENCE_STEPS.1).min(steps)
}

/// A way to run the loop: rounds, steps, images of a batch, with waiting by difference or without.
#[derive(Clone, Copy)]
struct LoopConfig(usize, usize, usize, bool);

impl LoopConfig {
    /// Images that go through the model in all rounds of one set in one mode.
    fn images(self, asked: &LoopRequest) -> f64 {
        let Self(rounds, steps, batch_size, differences) = self;
        let few = steps_by_difference(steps);
        // Full batches, then decoded images, behind the batches read ahead, then cold files.
        let more = few + (few + asked.ahead) + if asked.cold { few } else { 0 };
        let measured = 1 + steps + if differences { more } else { 0 };
        ((1 + steps.min(WARM_UP_STEPS) + rounds * measured) * batch_size) as f64
    }

    /// Images that are read for them. Images of batches that are filled before, or kept in memory, are read
    /// once each.
    fn images_read(self, asked: &LoopRequest) -> f64 {
        let Self(rounds, steps, batch_size, differences) = self;
        let few = steps_by_difference(steps);
        let more = if differences { (2 + usize::from(asked.cold)) * few } else { 0 };
        ((1 + steps.min(WARM_UP_STEPS) + rounds * (1 + steps + more)) * batch_size) as f64
    }

    /// How often a set is opened for them.
    fn openings(self, asked: &LoopRequest) -> f64 {
        let Self(rounds, _, _, differences) = self;
        let more = if differences { 2 + usize::from(asked.cold) } else { 0 };
        (1 + rounds * (1 + more)) as f64
    }

    /// Seconds of one set in one mode. A step takes no longer than computing and reading one after the other.
    fn of(self, asked: &LoopRequest, model_s: f64, set: &ReadCost) -> f64 {
        model_s * self.images(asked)
            + set.image_s * self.images_read(asked)
            + set.open_s * self.openings(asked)
    }

    /// Seconds of one set in these modes.
    fn of_set(self, asked: &LoopRequest, modes: &[(Mode, f64)], set: &ReadCost) -> f64 {
        modes.iter().map(|(_, model_s)| self.of(asked, *model_s, set)).sum()
    }

    /// Seconds of these modes, of which the first set is measured twice in the first one.
    fn seconds(self, asked: &LoopRequest, modes: &[(Mode, f64)], sets: &[ReadCost]) -> f64 {
        let twin = modes.first().zip(sets.first());
        sets.iter().map(|set| self.of_set(asked, modes, set)).sum::<f64>()
            + twin.map_or(0.0, |((_, model_s), set)| self.of(asked, *model_s, set))
    }

    /// The sets that take more than their even part of `budget` and far more than most, where they are not most themselves.
    fn slow(
        self,
        asked: &LoopRequest,
        modes: &[(Mode, f64)],
        sets: &[ReadCost],
        budget: f64,
    ) -> Vec<ReadCost> {
        let mut all: Vec<f64> = sets.iter().map(|set| self.of_set(asked, modes, set)).collect();
        let is_slow = |seconds: f64, usual: f64| {
            seconds > budget / sets.len() as f64 && seconds > SLOW_SET_FACTOR * usual
        };
        let each = all.clone();
        all.sort_by(f64::total_cmp);
        // The lower one of an even number: one of two sets may be slow.
        let Some(&usual) = all.get(all.len().saturating_sub(1) / 2) else { return Vec::new() };
        sets.iter().zip(each).filter(|(_, seconds)| is_slow(*seconds, usual)).map(|(set, _)| *set).collect()
    }
}

impl LoopPlan {
    /// The plan that fits into `budget` seconds. `probe` has the model's seconds of one image in each mode, and
    /// each of `sets` its cost of reading. The plan first cuts the parts that say least about a format. These are steps
    /// beyond a few, waiting by difference, rounds that give intervals, images of a batch, and at last the slowest
    /// mode. Few sets that are far slower to read than the others are left out before more than waiting by difference
    /// is cut for all.
    pub fn of(asked: &LoopRequest, probe: &[(Mode, f64)], sets: &[ReadCost], budget: f64) -> Self {
        let in_full =
            LoopConfig(asked.rounds, asked.steps, asked.batch_size, true).seconds(asked, probe, sets);
        let loop_configs = loop_configs(asked);
        let last = LoopConfig(1, 1, 1, false);
        let (mut modes, mut skipped) = (probe.to_vec(), Vec::new());
        // The sets to leave out, and the others.
        let fits = |way: LoopConfig, modes: &[(Mode, f64)]| {
            if way.seconds(asked, modes, sets) <= budget {
                return Some((Vec::new(), sets.to_vec()));
            }
            let LoopConfig(_, _, _, differences) = way;
            let slow = if differences { Vec::new() } else { way.slow(asked, modes, sets, budget) };
            let rest: Vec<ReadCost> = sets.iter().filter(|set| !slow.contains(set)).copied().collect();
            (!slow.is_empty() && way.seconds(asked, modes, &rest) <= budget).then_some((slow, rest))
        };
        while !modes.is_empty() {
            let found = loop_configs.iter().find_map(|config| Some((*config, fits(*config, &modes)?)));
            if let Some((way, (slow, rest))) = found {
                let LoopConfig(_, steps, batch_size, differences) = way;
                if slow.is_empty() {
                    let modes = modes.iter().map(|(mode, _)| *mode).collect();
                    return Self { modes, slow: vec![], skipped, steps, batch_size, differences, in_full };
                }
                // Without them more of what was asked for may fit.
                let slow = slow.iter().map(|set| (set.format, way.of_set(asked, &modes, set))).collect();
                return Self { slow, skipped, in_full, ..Self::of(asked, &modes, &rest, budget) };
            }
            let costliest = modes.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
            let gone = modes.remove(costliest.map_or(0, |(at, _)| at));
            skipped.push((gone.0, last.seconds(asked, &[gone], sets)));
        }
        let LoopConfig(_, steps, batch_size, differences) = last;
        Self { modes: vec![], slow: vec![], skipped, steps, batch_size, differences, in_full }
    }

    /// Seconds after which a run is cut. They are a few times the plan's where one image takes the model `model_s`, and no
    /// less than half of a part. The part is that which one of so many configurations has of `budget`.
    pub fn limit(&self, model_s: f64, set: &ReadCost, configurations: usize, budget: f64) -> f64 {
        let images = ((1 + self.steps) * self.batch_size) as f64;
        let planned = set.open_s + images * (model_s + set.image_s);
        (OVERRUN_FACTOR * planned).max(budget / (2 * (configurations + 1)) as f64)
    }

    /// The parts of the request that were cut, in words; `None` where nothing was.
    pub fn cut(&self, asked: &LoopRequest, budget: f64) -> Option<String> {
        let mut cuts = Vec::new();
        if self.steps < asked.steps {
            cuts.push(format!("{} of {}", self.steps, counted(asked.steps, "step")));
        }
        if self.batch_size < asked.batch_size {
            cuts.push(format!("batches of {} instead of {} images", self.batch_size, asked.batch_size));
        }
        if !self.differences {
            cuts.push("no waiting by difference".to_owned());
        }
        if !self.slow.is_empty() {
            let names: Vec<&str> = self.slow.iter().map(|(format, _)| *format).collect();
            cuts.push(format!("without {}, too slow to read", names.join(", ")));
        }
        (!cuts.is_empty() && !self.modes.is_empty()).then(|| {
            format!(
                "loop: cut to fit its {} of the time budget: {} (in full it would take about {})",
                words(budget),
                cuts.join(", "),
                words(self.in_full)
            )
        })
    }
}

/// Ways to run the loop, the fullest first, the shortest last.
fn loop_configs(asked: &LoopRequest) -> Vec<LoopConfig> {
    let LoopRequest { steps, batch_size, rounds, .. } = *asked;
    let halves = |from: usize, least: usize| {
        std::iter::successors(Some(from), move |n| (*n > least).then(|| (n / 2).max(least)))
            .collect::<Vec<_>>()
    };
    let few = steps.min(STEPS);
    let mut loop_configs: Vec<LoopConfig> = halves(steps, few)
        .into_iter()
        .map(|steps| LoopConfig(rounds.min(ROUNDS), steps, batch_size, true))
        .collect();
    loop_configs.push(LoopConfig(rounds.min(ROUNDS), few, batch_size, false));
    loop_configs.extend([3, 1].map(|most| LoopConfig(rounds.min(most), few, batch_size, false)));
    loop_configs.extend(
        halves(batch_size, 1).into_iter().map(|batch_size| LoopConfig(1, few.min(2), batch_size, false)),
    );
    loop_configs.push(LoopConfig(1, 1, 1, false));
    loop_configs
}

/// Seconds of a whole image, from steps on parts of one or on several. Each has how many images' worth it was,
/// ascending, and its seconds. The fixed cost of a step is not multiplied: the last two steps tell it apart.
pub(crate) fn per_image(steps: &[(f64, f64)]) -> f64 {
    match *steps {
        [] => 0.0,
        [.., (less, before), (more, seconds)] if more > less && seconds > before => {
            let slope = (seconds - before) / (more - less);
            // No more than if nothing were fixed, and no less than if a batch cost what this step did.
            (slope + (seconds - slope * more).max(0.0) / more.max(1.0)).min(seconds / more)
        }
        [.., (more, seconds)] => seconds / more,
    }
}

/// Seconds as people say them: `4 s`, `12 minutes`, `3 hours`.
pub fn words(seconds: f64) -> String {
    match seconds {
        s if s < 9.95 => format!("{} s", (10.0 * s).round() / 10.0),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.0} hours", s / 3600.0),
    }
}

#[cfg(test)]
mod tests;
