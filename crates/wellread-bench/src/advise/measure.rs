//! Measuring candidates and loader settings: every alternative in every round, in random order, after a warm-up round.
//!
//! ```text
//!  candidates, or a setting's values ─▶ rounds ─▶ Series: seconds of each in each round ─▶ best, versus, is_as_fast
//! ```

use super::candidates::Candidate;
use super::predict::{Probe, Speed, steps_of};
use super::verdict::PairedComparison;
use crate::feed::{BatchSource, Feed, LoaderSettings, Open, RunLength};
use crate::stages::Figure;
use anyhow::{Result, bail};
use std::time::Duration;
use wellread_loader::Cache;
use wellread_loader::order::Permutation;
use wellread_measure::clock::Stopwatch;
use wellread_measure::compare::{DEFAULT_THRESHOLD, NoiseFloor, Verdict, compare};
use wellread_measure::interleave::{Outcome, Plan};
use wellread_measure::intervals::{IntervalEstimator, Pairing};
use wellread_measure::samples::median;
use wellread_store::{Scratch, Store, read_region};

/// Images of a turn that are read one by one.
const SINGLE: usize = 8;

/// Differences between one or two rounds that may be chance.
const CHANCE_DIFFERENCE: f64 = 0.1;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct MeasureBudget {
    /// Measured rounds.
    pub rounds: usize,
    /// Begin no further round after this time.
    pub budget: Duration,
    /// Seed of orders and intervals.
    pub seed: u64,
}

/// One value per round of each alternative, seconds; less is better.
pub struct Series {
    /// Alternatives in the order given; empty where one failed.
    pub values: Vec<Vec<f64>>,
    /// Why those failed that did.
    pub failures: Vec<Option<String>>,
    noise: Option<NoiseFloor>,
    seed: u64,
}

impl Series {
    /// Values per alternative and round that were measured in turns.
    pub fn of(values: Vec<Vec<f64>>, seed: u64) -> Self {
        Self { failures: vec![None; values.len()], values, noise: None, seed }
    }

    /// The alternative of the smallest median; of one that touches "never" it is larger than every number.
    pub fn best(&self) -> Option<usize> {
        let told = |median: f64| if median.is_nan() { f64::INFINITY } else { median };
        let medians =
            self.values.iter().enumerate().filter_map(|(i, values)| Some((i, told(median(values)?))));
        medians.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i)
    }

    /// Whether an alternative was measured in rounds that all gave a number: an infinite one stands for "never".
    fn is_in_numbers(&self, one: usize) -> bool {
        !self.values[one].is_empty() && self.values[one].iter().all(|v| v.is_finite())
    }

    /// One alternative against another, round by round. A median of "never" has no ratio.
    pub fn versus(&self, one: usize, other: usize) -> PairedComparison {
        if !self.is_in_numbers(one) || !self.is_in_numbers(other) {
            return PairedComparison { ratio: None, verdict: Verdict::TooFewData };
        }
        let compared = compare(
            &self.values[one],
            &self.values[other],
            Pairing::Paired,
            self.noise,
            &IntervalEstimator::seeded(self.seed),
        );
        let ratio =
            compared.ratio.map(|r| Figure { value: r.estimate, low: Some(r.low), high: Some(r.high) });
        PairedComparison { ratio, verdict: compared.verdict }
    }

    /// Whether an alternative is shown to be as fast as the best. The whole interval of its time over that of the best lies below
    /// 1 + [`DEFAULT_THRESHOLD`]. Noise does not show it, nor do too few rounds.
    pub fn is_as_fast(&self, one: usize) -> bool {
        let Some(best) = self.best().filter(|_| !self.values[one].is_empty()) else { return false };
        let versus = self.versus(one, best);
        let high =
            versus.ratio.and_then(|ratio| ratio.high).filter(|_| versus.verdict != Verdict::TooFewData);
        one == best || high.is_some_and(|high| high <= 1.0 + DEFAULT_THRESHOLD)
    }

    /// Whether an alternative may be as good as the best, as noise hides a difference, or is worse by less than `negligible`.
    pub fn may_be_as_good(&self, one: usize, negligible: f64) -> bool {
        let Some(best) = self.best().filter(|_| !self.values[one].is_empty()) else { return false };
        let versus = self.versus(one, best);
        one == best
            || versus.verdict == Verdict::NoDifference
            || versus.ratio.is_some_and(|ratio| ratio.value < 1.0 + negligible)
    }

    /// Whether an alternative is worse than the best by more than `negligible` and beyond doubt. With too few rounds
    /// for an interval, it is where it was so in each of them. With one or two rounds, by more than [`CHANCE_DIFFERENCE`]. Where some
    /// of many rounds say "never", of which there is no ratio, it is where it was so in all but [`exceptions`].
    pub fn is_clearly_worse(&self, one: usize, negligible: f64) -> bool {
        let Some(best) = self.best().filter(|_| !self.values[one].is_empty()) else { return true };
        if one == best {
            return false;
        }
        let versus = self.versus(one, best);
        match versus.verdict {
            Verdict::Slower => versus.ratio.is_none_or(|ratio| ratio.value >= 1.0 + negligible),
            Verdict::Faster | Verdict::NoDifference => false,
            Verdict::TooFewData => {
                let pairs = || self.values[one].iter().zip(&self.values[best]);
                let most = 1.0 + if pairs().count() < 3 { CHANCE_DIFFERENCE } else { negligible };
                let worse = pairs().filter(|(this, of_best)| **this > most * **of_best).count();
                worse + exceptions(pairs().count()) >= pairs().count()
            }
        }
    }

    /// The median of one alternative, turned into something else.
    pub fn figure(&self, one: usize, of: impl Fn(f64) -> f64) -> Figure {
        let values: Vec<f64> = self.values[one].iter().map(|v| of(*v)).collect();
        Figure::of(&values, &IntervalEstimator::seeded(self.seed))
    }
}

/// In how many of so many rounds it may have been otherwise, for the rest to tell beyond doubt. It is a sign test at 5 %, both sides.
/// None of few rounds.
fn exceptions(rounds: usize) -> usize {
    let all = 2f64.powi(rounds as i32);
    let (mut ways, mut chance) = (1.0, 0.0);
    for others in 0..rounds {
        chance += 2.0 * ways / all;
        if chance >= 0.05 {
            return others.saturating_sub(1);
        }
        ways *= (rounds - others) as f64 / (others + 1) as f64;
    }
    0
}

/// The measurement of one turn of a candidate, seconds of an image.
pub struct Turn {
    batches: f64,
    single: f64,
    cold: f64,
}

/// Figures of all candidates: batches from a loader, single images at random, batches from cold files. The last is empty where the files
/// cannot be dropped from memory, or it was not asked for.
pub struct Figures {
    /// Batches.
    pub batches: Series,
    /// Single images.
    pub single: Series,
    /// From cold files.
    pub cold: Series,
    /// Seconds of the longest turn of each, warm-up included; `None` of one that had none.
    pub turns: Vec<Option<f64>>,
}

/// The files that batches are measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Files whose pages are in memory.
    Warm,
    /// The same, and files whose pages were dropped from it, where they can be.
    WarmAndCold,
}

/// A candidate and the rows of it that are the sample.
pub type Rows<'c> = (&'c Candidate, Vec<usize>);

/// Measures all `candidates`; `own` opens the user's set.
///
/// # Errors
/// None of them can be read.
pub fn candidates(
    candidates: &[Rows<'_>],
    own: &Open<'_>,
    how: &LoaderSettings,
    files: Files,
    pace: MeasureBudget,
    progress: &dyn Fn(usize, usize),
) -> Result<Figures> {
    // Candidates that do not fit into the time are left out, the last ones first; the first, the user's own set, never.
    let mut plan = Plan::new(pace.seed).rounds(pace.rounds).warmup(1).time_budget(pace.budget).fit();
    for (number, (candidate, rows)) in candidates.iter().enumerate() {
        let feed = Feed::new(Box::new(|| candidate.open(own)), rows.clone(), how.clone());
        let mut drops = files == Files::WarmAndCold;
        plan = plan.add_with_turn(number.to_string(), move |turn| -> Result<Turn> {
            let single = single(&*candidate.open(own)?, rows, pace.seed, turn.round as u64)?;
            let mut from_cold = f64::NAN;
            if drops {
                let pass =
                    feed.pass(BatchSource::Cold, RunLength::Once, turn.round as u64, &mut |_| Ok(()))?;
                drops = pass.not_cold.is_none();
                if drops {
                    from_cold = pass.image();
                }
            }
            let batches = Probe::new(&feed, how.workers).batch(turn.round as u64)?;
            Ok(Turn { batches: batches / how.batch_size as f64, single, cold: from_cold })
        });
        plan = plan.ranked(number);
        if number == 0 {
            plan = plan.required();
        }
    }
    plan = plan.twin("0");
    let outcome = plan.run(|p| progress(p.turns_done, p.turns))?;
    if outcome.variants.iter().all(|v| v.runs.is_empty()) {
        let why = outcome.variants.iter().find_map(|v| v.failure.as_ref());
        bail!("nothing could be measured: {}", why.map_or("no time", |f| f.message.as_str()));
    }
    Ok(Figures {
        batches: series(&outcome, |turn| turn.batches, pace.seed),
        single: series(&outcome, |turn| turn.single, pace.seed),
        cold: series(&outcome, |turn| turn.cold, pace.seed),
        turns: outcome
            .visible()
            .map(|v| v.warmup.iter().chain(&v.runs).map(|run| run.wall_seconds).reduce(f64::max))
            .collect(),
    })
}

fn series<M>(outcome: &Outcome<M>, of: impl Fn(&M) -> f64 + Copy, seed: u64) -> Series {
    let visible = || outcome.variants.iter().filter(|v| v.twin_of.is_none());
    let values = visible().map(|v| {
        let values = v.values(of);
        // Half of a figure is none.
        if v.failure.is_some() || values.iter().any(|x| !x.is_finite()) { vec![] } else { values }
    });
    Series {
        values: values.collect(),
        failures: visible().map(|v| v.failure.as_ref().map(|f| f.message.clone())).collect(),
        noise: outcome.noise_floor(of, &IntervalEstimator::seeded(seed)),
        seed,
    }
}

/// Median seconds of an image that is read alone.
fn single(store: &dyn Store, rows: &[usize], seed: u64, round: u64) -> Result<f64> {
    let order = Permutation::new(rows.len(), seed, round);
    let (mut scratch, mut pixels, mut times) = (Scratch::default(), Vec::new(), Vec::new());
    for i in 0..SINGLE.min(rows.len()) {
        let row = rows[order.at(i)];
        let region = store.row_info(row)?.shape.full();
        let clock = Stopwatch::start();
        read_region(store, row, &region, &mut scratch, &mut pixels)?;
        times.push(clock.elapsed());
    }
    Ok(median(&times).unwrap_or(f64::NAN))
}

/// The two speeds of a loader with each number of workers, one per round. There is none of those that there is no time for, which are
/// furthest from `usual`.
///
/// # Errors
/// A loader that fails.
pub fn workers<'a>(
    feed: impl Fn(usize) -> Feed<'a>,
    counts: &[usize],
    usual: usize,
    pace: MeasureBudget,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<Vec<Speed>>> {
    let feeds: Vec<_> = counts.iter().map(|&n| (feed(n), n)).collect();
    let ranks: Vec<usize> = counts.iter().map(|n| n.abs_diff(usual)).collect();
    let measure = |(feed, n): &(Feed<'a>, usize), round| Probe::new(feed, *n).speed(round);
    by(&feeds, &ranks, measure, pace, progress)
}

/// Seconds of an image with each batch size.
///
/// # Errors
/// A loader that fails.
pub fn batch_sizes<'a>(
    feed: impl Fn(usize) -> Feed<'a>,
    sizes: &[usize],
    workers: usize,
    pace: MeasureBudget,
    progress: &dyn Fn(usize, usize),
) -> Result<Series> {
    let feeds: Vec<_> = sizes.iter().map(|&size| (feed(size), size)).collect();
    let measure =
        |(feed, size): &(Feed<'a>, usize), round| Ok(Probe::new(feed, workers).batch(round)? / *size as f64);
    Ok(Series::of(by(&feeds, sizes, measure, pace, progress)?, pace.seed))
}

/// Seconds of an image in later epochs with each cache, and bytes that each keeps of an image.
///
/// # Errors
/// A loader that fails.
pub fn caches<'a>(
    feed: impl Fn(&Cache) -> Feed<'a>,
    caches: &[Cache],
    batch_size: usize,
    pace: MeasureBudget,
    progress: &dyn Fn(usize, usize),
) -> Result<(Series, Vec<f64>)> {
    let feeds: Vec<_> = caches.iter().map(feed).collect();
    let measure = |feed: &Feed<'a>, round| {
        let mut nothing = |_: &wellread_loader::Batch| Ok(());
        let few = feed.pass(BatchSource::Warm, RunLength::Steady(2), round, &mut nothing)?;
        let pass =
            feed.pass(BatchSource::Warm, RunLength::Steady(steps_of(few.step())), round, &mut nothing)?;
        Ok((pass.step() / batch_size as f64, pass.kept.0 as f64 / pass.kept.1.max(1) as f64))
    };
    let ranks: Vec<usize> = (0..caches.len()).collect();
    let values = by(&feeds, &ranks, measure, pace, progress)?;
    let kept =
        values.iter().map(|v| median(&v.iter().map(|x| x.1).collect::<Vec<_>>()).unwrap_or(0.0)).collect();
    let values: Vec<Vec<f64>> = values.iter().map(|v| v.iter().map(|x| x.0).collect()).collect();
    Ok((Series::of(values, pace.seed), kept))
}

/// Measures alternatives in rounds: one value of each per round. Alternatives that do not fit into the time are left
/// out, those of the largest ranks first, and have no values. Any failure is an error.
pub(super) fn by<A, M: Clone>(
    alternatives: &[A],
    ranks: &[usize],
    measure: impl Fn(&A, u64) -> Result<M>,
    pace: MeasureBudget,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<Vec<M>>> {
    let mut plan = Plan::new(pace.seed).rounds(pace.rounds).warmup(1).time_budget(pace.budget).fit();
    for (number, (alternative, rank)) in alternatives.iter().zip(ranks).enumerate() {
        let measure = &measure;
        plan = plan.add_with_turn(number.to_string(), move |turn| measure(alternative, turn.round as u64));
        plan = plan.ranked(*rank);
    }
    let outcome = plan.run(|p| progress(p.turns_done, p.turns))?;
    if let Some(failed) = outcome.variants.iter().find_map(|v| v.failure.as_ref()) {
        bail!("{}", failed.message);
    }
    let values = outcome.variants.iter().map(|v| v.runs.iter().map(|run| run.value.clone()).collect());
    Ok(values.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_those_of_a_sign_test() {
        assert_eq!([1, 5, 6, 8, 9, 10, 20].map(exceptions), [0, 0, 0, 0, 1, 1, 5]);
    }
}
