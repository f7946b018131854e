//! One model and batch size, every framework: warm-up until steady, then rounds in random order.
//!
//! In a round each framework runs its share of the iterations. The first pass of a share follows another framework's,
//! and finds the processor's caches full of that one's data. It is not counted where it is short. So latencies are those
//! of a framework that runs by itself, and other work of the machine falls on all alike.

use crate::config::Config;
use crate::protocol::Prepared;
use crate::results::{FedStep, Round};
use crate::runner::FrameworkRunner;
use crate::shared::Shared;
use crate::source::{PREFETCH_BATCHES, Source};
use crate::statistics::{steady, window};
use anyhow::Result;
use std::cell::RefCell;
use std::time::Duration;
use wellread_measure::clock::Stopwatch;
use wellread_measure::interleave::{Plan, Progress, Turn};
use wellread_measure::memory::PeakGuard;

/// Most rounds: more would spend the time on going from one framework to the next.
const MAX_ROUNDS: usize = 10;
/// Most warm-up, in passes beyond those asked for and in time.
const MAX_WARMUP_PASSES: usize = 10;
/// See [`MAX_WARMUP_PASSES`].
const MAX_WARMUP_TIME: Duration = Duration::from_secs(20);
/// Passes shorter than this are run once before those that are counted.
const MIN_LONG_PASS: Duration = Duration::from_secs(1);

/// A batch, and where it comes from.
pub(crate) struct Batch<'b> {
    pub size: usize,
    pub input: [usize; 3],
    pub source: &'b Source,
    pub shared: &'b RefCell<Shared>,
}

/// The measurements of one framework.
#[derive(Debug)]
pub(crate) struct Measured {
    pub prepared: Prepared,
    pub warm: WarmupResult,
    pub rounds: Vec<Round>,
    pub peak: Peak,
}

/// Most bytes held: by the processes of a framework, and by its allocator on the device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peak {
    pub host: Option<u64>,
    pub device: Option<u64>,
}

impl Peak {
    fn include(&mut self, other: Self) {
        self.host = self.host.max(other.host);
        self.device = self.device.max(other.device);
    }
}

/// The findings of the warm-up.
#[derive(Debug, Default)]
pub(crate) struct WarmupResult {
    pub samples_ns: Vec<u64>,
    /// `None` where nothing was asked for that could tell.
    pub steady: Option<bool>,
    pub logits: Vec<f32>,
}

/// The result of a turn.
enum TurnResult {
    Warmup(WarmupResult, Peak),
    Round(Round, Peak),
}

/// Measures all runners; one that fails is a message in its place.
pub(crate) fn measure(
    runners: &mut [FrameworkRunner],
    batch: &Batch<'_>,
    config: &Config,
    progress: &dyn Fn(&Progress<'_>),
) -> Result<Vec<Result<Measured, String>>> {
    let [c, h, w] = batch.input;
    let prepared: Vec<Result<(Prepared, Peak), String>> = runners
        .iter_mut()
        .map(|runner| {
            if let Err(reason) = &runner.opened {
                return Err(reason.clone());
            }
            let shared = batch.shared.borrow();
            let (prepared, host) = runner.prepare(&shared, [batch.size, c, h, w]);
            prepared.map(|prepared| (prepared, Peak { host, device: None })).map_err(|e| format!("{e:#}"))
        })
        .collect();
    let rounds = config.iterations.min(MAX_ROUNDS);
    let mut plan = Plan::new(config.seed ^ batch.size as u64).rounds(rounds).warmup(1);
    let names: Vec<String> = runners.iter().map(FrameworkRunner::name).collect();
    let mut any = false;
    for ((runner, prepared), name) in runners.iter_mut().zip(&prepared).zip(&names) {
        if prepared.is_ok() {
            any = true;
            plan = plan.add_with_turn(name, move |turn| take(runner, batch, config, rounds, turn));
        }
    }
    let mut variants = if any { plan.run(|p| progress(p))?.variants } else { Vec::new() }.into_iter();
    Ok(prepared
        .into_iter()
        .map(|prepared| {
            let (prepared, peak) = prepared?;
            let variant = variants.next().ok_or("the plan ended early")?;
            if let Some(failure) = variant.failure {
                return Err(failure.message);
            }
            let mut measured = Measured { prepared, warm: WarmupResult::default(), rounds: Vec::new(), peak };
            for run in variant.warmup.into_iter().chain(variant.runs) {
                match run.value {
                    TurnResult::Warmup(warm, peak) => {
                        measured.warm = warm;
                        measured.peak.include(peak);
                    }
                    TurnResult::Round(round, peak) => {
                        measured.rounds.push(Round { position: run.position, ..round });
                        measured.peak.include(peak);
                    }
                }
            }
            Ok(measured)
        })
        .collect())
}

fn take(
    runner: &mut FrameworkRunner,
    batch: &Batch<'_>,
    config: &Config,
    rounds: usize,
    turn: Turn,
) -> Result<TurnResult> {
    if turn.warmup {
        let guard = runner.watch();
        let warmed = warm_up(runner, batch, config);
        let host = guard.map(PeakGuard::stop).and_then(|peak| peak.bytes);
        let (warm, device) = warmed?;
        return Ok(TurnResult::Warmup(warm, Peak { host, device }));
    }
    // Numbered from 0, without the round of warm-up.
    let round = turn.round - 1;
    let count = config.iterations * (round + 1) / rounds - config.iterations * round / rounds;
    if runner.pass().is_some_and(|pass| pass < MIN_LONG_PASS) {
        runner.passes(1)?;
    }
    let passes = runner.passes(count)?;
    let steps = run_fed_steps(runner, batch, config, count)?;
    // One look, when nothing is timed.
    let peak = Peak { host: runner.memory(), device: passes.device_peak_bytes };
    let round = Round { round, position: 0, samples_ns: passes.samples_ns, wall_ns: passes.wall_ns, steps };
    Ok(TurnResult::Round(round, peak))
}

/// At least the passes asked for, then more until two windows agree, within limits.
fn warm_up(
    runner: &mut FrameworkRunner,
    batch: &Batch<'_>,
    config: &Config,
) -> Result<(WarmupResult, Option<u64>)> {
    let begin = Stopwatch::start();
    let window = window(config.warmup);
    let most = config.warmup.saturating_mul(MAX_WARMUP_PASSES).max(2 * window);
    // One at least, so that there are outputs to compare.
    let mut passes = runner.passes(config.warmup.max(1))?;
    while config.warmup > 0
        && !steady(&passes.samples_ns, window)
        && passes.samples_ns.len() < most
        && begin.elapsed() < MAX_WARMUP_TIME.as_secs_f64()
    {
        let more = runner.passes(window)?;
        passes.samples_ns.extend(more.samples_ns);
        passes.device_peak_bytes = passes.device_peak_bytes.max(more.device_peak_bytes);
    }
    let logits = runner.logits(&mut batch.shared.borrow_mut())?;
    let steady = (config.warmup > 0).then(|| steady(&passes.samples_ns, window));
    let warm = WarmupResult { steady, samples_ns: passes.samples_ns, logits };
    Ok((warm, passes.device_peak_bytes))
}

/// As many steps with images through the loader; none for synthetic ones. The loader is there for the turn only, so
/// that it reads nothing while another framework is measured. As many batches as it reads ahead are taken before the
/// clock runs, and as many are left at the end. All counted batches were read while the clock ran.
fn run_fed_steps(
    runner: &mut FrameworkRunner,
    batch: &Batch<'_>,
    config: &Config,
    count: usize,
) -> Result<Vec<FedStep>> {
    let Some(mut feed) =
        batch.source.feed(batch.size, batch.input, count + 1 + 2 * PREFETCH_BATCHES, config)?
    else {
        return Ok(Vec::new());
    };
    for _ in 0..=PREFETCH_BATCHES {
        feed.next()?;
    }
    (0..count)
        .map(|_| {
            let begin = Stopwatch::start();
            let images = feed.next()?;
            let wait_ns = begin.elapsed_ns();
            batch.shared.borrow_mut().put(images)?;
            let step = runner.step()?;
            let whole_ns = begin.elapsed_ns();
            Ok(FedStep { wait_ns, fetch_ns: step.fetch_ns, forward_ns: step.forward_ns, whole_ns })
        })
        .collect()
}
