//! Which stage binds: the same images from cold files, warm files, memory and full batches, one difference at a time.
//!
//! ```text
//!  time of an image:  cold ── − warm ──▶ storage     warm ── − cached ──▶ decoding
//!                   cached ── − synthetic ──▶ copying       synthetic ──▶ the model
//! ```
//!
//! All four run in every round, in random order ([`wellread_measure::interleave`]); differences are taken within
//! rounds, so that a slow moment is common to both sides. They are times of the whole loop, not of threads: the work of
//! threads while the model computes costs nothing and counts nothing. The four stages add up to the time of an image
//! from cold files.

mod consumer;
mod diagnosis;
mod figure;
mod fit;
mod plain_loader;
mod remedy;
mod settings;

pub use consumer::Consumer;
pub use diagnosis::{Diagnosis, Run, Stage};
pub use figure::Figure;
pub(crate) use plain_loader::plain_loader;
pub use remedy::remedy;
pub use settings::Settings;

use crate::core::words::percent;
use crate::feed::{BatchSource, Feed, Open, Pass, RunLength};
use crate::model_loop::UTILISATION_MARKS;
use crate::sample::Sample;
use anyhow::{Result, bail};
use consumer::Step;
use fit::{batch_size, fitted};
use settings::SOURCES;
use std::cell::RefCell;
use std::time::Duration;
use wellread_loader::Batch;
use wellread_measure::clock::Stopwatch;
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::interleave::{Event, Plan};
use wellread_measure::intervals::{Interval, IntervalEstimator};
use wellread_measure::limits::{CopyLimits, LimitSettings, measure_copy};
use wellread_store::words::counted_with;
use wellread_trace::{Kind, labelled};

/// Shares that sum to more leave the answer open.
const MAX_SUM_OF_SHARES: f64 = 1.1;
/// Runs of a turn are repeated for this many seconds, so that small samples are no matter of microseconds, and at most so
/// often.
const TURN_LIMITS: (f64, usize) = (0.1, 25);

/// The stage in the place of decoding where files lie behind a network: both are in its time.
const FETCHING: (&str, &str) = ("fetching", "waiting for the link, decompressing and decoding");

/// Finds out which stage binds the loop over the set that `open` opens.
///
/// # Errors
/// A set that cannot be opened, read or batched; a model that does not exist or fails. A step of the model so long that
/// no round fits into the time budget.
pub fn diagnose(
    open: impl Fn() -> Result<Box<dyn wellread_store::Store>>,
    settings: &Settings,
    progress: &dyn Fn(usize, usize),
) -> Result<Diagnosis> {
    let open: &Open<'_> = &open;
    let begin = Stopwatch::start();
    let store = open()?;
    let Settings { limits, seed, crop, .. } = *settings;
    let consumer = RefCell::new(Step::new(&settings.consumer, seed));
    let mut step = |batch: &Batch| consumer.borrow_mut().run(batch);
    let batch_size = match settings.batch_size {
        Some(asked) => asked,
        None => batch_size(open, &*store, settings, &mut step)?,
    };
    let sample = Sample::draw(&*store, limits, batch_size, seed, crop)?;
    let is_remote = store.remote_path().is_some();
    drop(store);
    let how = plain_loader(sample.batch_size, settings.workers, seed, crop)?;
    // How long a run takes decides how many images there is time for.
    let (sample, feed) = fitted(open, sample, how, settings, &mut step)?;
    let mut notes = Vec::new();
    let not_cold = if is_remote { Some(String::new()) } else { feed.drop_pages()? };
    if let Some(why) = not_cold.as_ref().filter(|_| !is_remote) {
        notes.push(format!("storage was not measured: the files cannot be dropped from memory ({why})"));
    }
    let sources: Vec<_> =
        SOURCES.iter().filter(|(source, ..)| *source != BatchSource::Cold || not_cold.is_none()).collect();
    // Looks before the rounds are part of the time.
    let left = settings.time_budget.saturating_sub(Duration::from_secs_f64(begin.elapsed()));
    let mut plan = Plan::new(seed).rounds(settings.rounds).warmup(1).min_rounds(1).time_budget(left);
    for (source, name, ..) in &sources {
        let (feed, consumer) = (&feed, &consumer);
        plan = plan.add_with_turn(*name, move |turn| {
            let _turn = labelled(Kind::Turn, || (*name).to_owned()).with(turn.round as u64, 0);
            repeated(feed, *source, turn.round, &mut |batch| consumer.borrow_mut().run(batch))
        });
    }
    let outcome = plan.run(|p| {
        if !matches!(p.event, Event::Started) {
            progress(p.turns_done, p.turns);
        }
    })?;
    if let Some(failed) = outcome.variants.iter().find_map(|v| v.failure.as_ref()) {
        bail!("{}", failed.message);
    }
    // A round in which some pages stayed says nothing of storage.
    let rounds: Vec<usize> = (0..outcome.measured_rounds())
        .filter(|&r| {
            outcome.variants.iter().all(|v| v.runs.get(r).is_some_and(|run| run.value.not_cold.is_none()))
        })
        .collect();
    let lost = outcome.measured_rounds() - rounds.len();
    if lost > 0 {
        let rounds = counted_with(lost, "round", ["was", "were"]);
        notes.push(format!("{rounds} left out: pages of the files stayed in memory"));
    }
    let seconds = |index: usize| -> Vec<f64> {
        rounds.iter().map(|&r| outcome.variants[index].runs[r].value.image).collect()
    };
    let times: Vec<Vec<f64>> = (0..sources.len()).map(seconds).collect();
    let computed: Vec<Vec<f64>> = (0..sources.len())
        .map(|i| rounds.iter().map(|&r| outcome.variants[i].runs[r].value.utilisation).collect())
        .collect();
    let copy = measure_copy(&LimitSettings::default());
    let estimator = IntervalEstimator::seeded(seed);
    let delivered = sample.delivered_bytes(crop);
    let mut names: Vec<_> = sources.iter().map(|(_, name, stage, about)| (*name, *stage, *about)).collect();
    for (_, stage, about) in names.iter_mut().filter(|(_, stage, _)| is_remote && *stage == "decoding") {
        (*stage, *about) = FETCHING;
    }
    let runs = names
        .iter()
        .zip(&times)
        .map(|(&(name, ..), seconds)| run(name, seconds, delivered, settings.workers, &copy, &estimator));
    let runs: Vec<Run> = runs.collect();
    let has_model = settings.consumer != Consumer::Nothing;
    let stages = stages(&names, &times, has_model, &estimator);
    let warm = names.iter().position(|(name, ..)| *name == "warm").unwrap_or(0);
    let warm_stages = self::stages(&names[warm..], &times[warm..], has_model, &estimator);
    let (binds, binds_warm) = (binding(&stages, &estimator), binding(&warm_stages, &estimator));
    let utilisation = if has_model {
        (0..=warm).rev().map(|i| (names[i].0, Figure::of(&computed[i], &estimator))).collect()
    } else {
        vec![]
    };
    let verdict = verdict(&stages, binds, warm > 0, binds_warm, rounds.len());
    let model = consumer.borrow().about();
    Ok(Diagnosis {
        batch_size: sample.batch_size,
        sample,
        workers: settings.workers,
        model,
        rounds: rounds.len(),
        runs,
        stages,
        binds,
        binds_warm,
        utilisation,
        verdict,
        notes,
        memory_copy: copy,
    })
}

/// The measurement of a turn.
struct Turn {
    /// Seconds of an image.
    image: f64,
    /// Computing over all time.
    utilisation: f64,
    not_cold: Option<String>,
}

fn repeated(
    feed: &Feed<'_>,
    source: BatchSource,
    round: usize,
    step: &mut crate::feed::Step<'_>,
) -> Result<Turn> {
    let turn = Stopwatch::start();
    let mut passes: Vec<Pass> = Vec::new();
    while passes.is_empty() || (turn.elapsed() < TURN_LIMITS.0 && passes.len() < TURN_LIMITS.1) {
        let epoch = round * TURN_LIMITS.1 + passes.len();
        passes.push(feed.pass(source, RunLength::Once, epoch as u64, step)?);
    }
    let seconds: f64 = passes.iter().map(|pass| pass.seconds).sum();
    let images: usize = passes.iter().map(|pass| pass.images).sum();
    let computes: f64 = passes.iter().flat_map(|pass| &pass.computes).sum();
    Ok(Turn {
        image: seconds / images as f64,
        utilisation: computes / seconds,
        not_cold: passes.into_iter().find_map(|pass| pass.not_cold),
    })
}

fn run(
    name: &'static str,
    seconds: &[f64],
    delivered: f64,
    workers: usize,
    copy: &CopyLimits,
    estimator: &IntervalEstimator,
) -> Run {
    let rounds_us: Vec<f64> = seconds.iter().map(|s| 1e6 * s).collect();
    let us_per_image = Figure::of(&rounds_us, estimator);
    // Full batches that nothing is done with take no time worth a rate.
    let images_per_s = (us_per_image.value >= 0.1).then(|| 1e6 / us_per_image.value);
    let share = |rate| crate::roofline::share_of_copy(rate, delivered, workers + 1, copy);
    Run { name, us_per_image, images_per_s, share_of_copy: images_per_s.map(share), rounds_us }
}

/// Differences between neighbours, within rounds; the last source is a stage of its own where there is a model.
fn stages(
    names: &[(&'static str, &'static str, &'static str)],
    times: &[Vec<f64>],
    has_model: bool,
    estimator: &IntervalEstimator,
) -> Vec<Stage> {
    let count = names.len() - usize::from(!has_model);
    let stage = |i: usize| {
        let (_, name, about) = names[i];
        let added: Vec<f64> = match times.get(i + 1) {
            Some(next) => times[i].iter().zip(next).map(|(a, b)| a - b).collect(),
            None => times[i].clone(),
        };
        let shares: Vec<f64> = added.iter().zip(&times[0]).map(|(added, whole)| added / whole).collect();
        let us: Vec<f64> = added.iter().map(|s| 1e6 * s).collect();
        Stage {
            name,
            about,
            us_per_image: Figure::of(&us, estimator),
            share: Figure::of(&shares, estimator),
            shares,
        }
    };
    (0..count).map(stage).collect()
}

/// The stage whose share is beyond doubt larger than every other's, within rounds.
fn binding(stages: &[Stage], estimator: &IntervalEstimator) -> Option<&'static str> {
    let largest = stages.iter().max_by(|a, b| a.share.value.total_cmp(&b.share.value))?;
    let above = |interval: Interval| interval.low > 0.0;
    let clear = stages.iter().filter(|other| other.name != largest.name).all(|other| {
        let differences: Vec<f64> = largest.shares.iter().zip(&other.shares).map(|(a, b)| a - b).collect();
        differences.len() >= MIN_SAMPLES && estimator.median(&differences).is_some_and(above)
    });
    let known = largest.share.low.is_some_and(|low| low > 0.0);
    (clear && known).then_some(largest.name)
}

/// The answer in a sentence.
fn verdict(
    stages: &[Stage],
    binds: Option<&str>,
    cold: bool,
    binds_warm: Option<&str>,
    rounds: usize,
) -> String {
    if rounds < MIN_SAMPLES {
        return format!(
            "Too few data: {} measured and {MIN_SAMPLES} are needed (more time: --time-budget).",
            counted_with(rounds, "round", ["was", "were"])
        );
    }
    let share = |stage: &Stage| {
        // Beyond all of the time where noise makes another stage negative.
        let percent = |share: f64| percent(share.min(1.0));
        let ends = stage.share.low.zip(stage.share.high);
        let ends =
            ends.map_or(String::new(), |(low, high)| format!(", {} to {}", percent(low), percent(high)));
        format!("{}{ends}", percent(stage.share.value))
    };
    let is_remote = stages.iter().any(|stage| stage.name == FETCHING.0);
    let from = match (cold, is_remote) {
        (true, _) => "when files come from the disk",
        (false, true) => "over the link",
        (false, false) => "with files in memory",
    };
    let Some(stage) = binds.and_then(|name| stages.iter().find(|stage| stage.name == name)) else {
        let mut sorted: Vec<&Stage> = stages.iter().collect();
        sorted.sort_by(|a, b| b.share.value.total_cmp(&a.share.value));
        let first: Vec<_> = sorted.iter().take(2).map(|s| format!("{} ({})", s.name, share(s))).collect();
        return format!("Too few data to tell which binds {from}: {}.", first.join(" or "));
    };
    let what = match stage.name {
        "model" => "the model binds",
        name => &format!("{name} binds"),
    };
    let then = match binds_warm {
        _ if !cold => String::new(),
        Some(same) if same == stage.name => "; the same once files are in memory".to_owned(),
        Some("model") => "; once files are in memory the model binds".to_owned(),
        Some(other) => format!("; once files are in memory {other} binds"),
        None => "; once files are in memory no stage stands out".to_owned(),
    };
    let text = format!("{what} {from}: {} of the time of an image is {}{then}.", share(stage), stage.about);
    text[..1].to_uppercase() + &text[1..] + &doubt(stages)
}

/// The sentence on an answer that is not firm, as shares sum to far more than all of the time; else empty.
fn doubt(stages: &[Stage]) -> String {
    let sum: f64 = stages.iter().map(|stage| stage.share.value.clamp(0.0, 1.0)).sum();
    if sum <= MAX_SUM_OF_SHARES {
        return String::new();
    }
    format!(
        " This is not firm: shares sum to {}, as on a machine that is busy with something else. Measure again.",
        percent(sum)
    )
}

impl Diagnosis {
    /// The stage to do something about, of [`remedy`]: the one that binds. Where that is the model and loading does not hide
    /// behind it, it is the largest of the others. `None` where none stands out.
    pub fn worth_a_remedy(&self) -> Option<&'static str> {
        // From the slowest source, which the stages are of.
        let utilisation = self.utilisation.last().map(|(_, figure)| figure.value);
        worth_a_remedy(&self.stages, self.binds, utilisation)
    }
}

fn worth_a_remedy(
    stages: &[Stage],
    binds: Option<&'static str>,
    utilisation: Option<f64>,
) -> Option<&'static str> {
    let binds = binds?;
    let hides = utilisation.is_none_or(|share| UTILISATION_MARKS.iter().any(|(mark, _)| share >= *mark));
    if binds != "model" || hides {
        return Some(binds);
    }
    let others = stages.iter().filter(|stage| stage.name != "model" && stage.share.value > 0.0);
    others.max_by(|a, b| a.share.value.total_cmp(&b.share.value)).map(|stage| stage.name)
}

#[cfg(test)]
mod tests;
