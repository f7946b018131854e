//! One model and batch size, every framework: warm-up until steady, then rounds in random order.
//!
//! In a round each framework runs its share of the iterations. The first pass of a share follows another framework's, finds
//! the processor's caches full of that one's data, and is not counted where it is short; so latencies are those of a
//! framework that runs by itself, and whatever else the machine does meanwhile falls on all alike.

use crate::config::Config;
use crate::contender::Contender;
use crate::protocol::Prepared;
use crate::results::{FedStep, Round};
use crate::shared::Shared;
use crate::source::{AHEAD, Source};
use crate::statistics::{steady, window};
use anyhow::Result;
use std::cell::RefCell;
use std::time::Duration;
use wellread_measure::clock::Stopwatch;
use wellread_measure::interleave::{Plan, Progress, Turn};
use wellread_measure::memory::PeakGuard;

/// Most rounds: more would spend the time on going from one framework to the next.
const ROUNDS: usize = 10;
/// Most warm-up, in passes beyond those asked for and in time.
const MOST_WARMUP: usize = 10;
/// See [`MOST_WARMUP`].
const LONGEST_WARMUP: Duration = Duration::from_secs(20);
/// Passes shorter than this are run once before those that are counted.
const SHORT: Duration = Duration::from_secs(1);

/// A batch, and where it comes from.
pub(crate) struct Batch<'b> {
    pub size: usize,
    pub input: [usize; 3],
    pub source: &'b Source,
    pub shared: &'b RefCell<Shared>,
}

/// What was measured of one framework.
#[derive(Debug)]
pub(crate) struct Measured {
    pub prepared: Prepared,
    pub warm: Warm,
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

/// What the warm-up found.
#[derive(Debug, Default)]
pub(crate) struct Warm {
    pub samples_ns: Vec<u64>,
    /// `None` where nothing was asked for that could tell.
    pub steady: Option<bool>,
    pub logits: Vec<f32>,
}

/// What a turn gives.
enum Turned {
    Warm(Warm, Peak),
    Round(Round, Peak),
}

/// Measures all contenders; one that fails is a message in its place.
pub(crate) fn measure(
    contenders: &mut [Contender],
    batch: &Batch<'_>,
    config: &Config,
    progress: &dyn Fn(&Progress<'_>),
) -> Result<Vec<Result<Measured, String>>> {
    let [c, h, w] = batch.input;
    let prepared: Vec<Result<(Prepared, Peak), String>> = contenders
        .iter_mut()
        .map(|contender| {
            if let Err(reason) = &contender.opened {
                return Err(reason.clone());
            }
            let shared = batch.shared.borrow();
            let (prepared, host) = contender.prepare(&shared, [batch.size, c, h, w]);
            prepared.map(|prepared| (prepared, Peak { host, device: None })).map_err(|e| format!("{e:#}"))
        })
        .collect();
    let rounds = config.iterations.min(ROUNDS);
    let mut plan = Plan::new(config.seed ^ batch.size as u64).rounds(rounds).warmup(1);
    let names: Vec<String> = contenders.iter().map(Contender::name).collect();
    let mut any = false;
    for ((contender, prepared), name) in contenders.iter_mut().zip(&prepared).zip(&names) {
        if prepared.is_ok() {
            any = true;
            plan = plan.add_with_turn(name, move |turn| take(contender, batch, config, rounds, turn));
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
            let mut measured = Measured { prepared, warm: Warm::default(), rounds: Vec::new(), peak };
            for run in variant.warmup.into_iter().chain(variant.runs) {
                match run.value {
                    Turned::Warm(warm, peak) => {
                        measured.warm = warm;
                        measured.peak.include(peak);
                    }
                    Turned::Round(round, peak) => {
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
    contender: &mut Contender,
    batch: &Batch<'_>,
    config: &Config,
    rounds: usize,
    turn: Turn,
) -> Result<Turned> {
    if turn.warmup {
        let guard = contender.watch();
        let warmed = warm_up(contender, batch, config);
        let host = guard.map(PeakGuard::stop).and_then(|peak| peak.bytes);
        let (warm, device) = warmed?;
        return Ok(Turned::Warm(warm, Peak { host, device }));
    }
    // Numbered from 0, without the round of warm-up.
    let round = turn.round - 1;
    let count = config.iterations * (round + 1) / rounds - config.iterations * round / rounds;
    if contender.pass().is_some_and(|pass| pass < SHORT) {
        contender.passes(1)?;
    }
    let passes = contender.passes(count)?;
    let steps = fed(contender, batch, config, count)?;
    // One look, when nothing is timed.
    let peak = Peak { host: contender.memory(), device: passes.device_peak_bytes };
    let round = Round { round, position: 0, samples_ns: passes.samples_ns, wall_ns: passes.wall_ns, steps };
    Ok(Turned::Round(round, peak))
}

/// At least the passes asked for, then more until two windows agree, within limits.
fn warm_up(contender: &mut Contender, batch: &Batch<'_>, config: &Config) -> Result<(Warm, Option<u64>)> {
    let begin = Stopwatch::start();
    let window = window(config.warmup);
    let most = config.warmup.saturating_mul(MOST_WARMUP).max(2 * window);
    // One at least, so that there are outputs to compare.
    let mut passes = contender.passes(config.warmup.max(1))?;
    while config.warmup > 0
        && !steady(&passes.samples_ns, window)
        && passes.samples_ns.len() < most
        && begin.elapsed() < LONGEST_WARMUP.as_secs_f64()
    {
        let more = contender.passes(window)?;
        passes.samples_ns.extend(more.samples_ns);
        passes.device_peak_bytes = passes.device_peak_bytes.max(more.device_peak_bytes);
    }
    let logits = contender.logits(&mut batch.shared.borrow_mut())?;
    let steady = (config.warmup > 0).then(|| steady(&passes.samples_ns, window));
    let warm = Warm { steady, samples_ns: passes.samples_ns, logits };
    Ok((warm, passes.device_peak_bytes))
}

/// As many steps with images through the loader; none for synthetic ones. The loader is there for the turn only, so that
/// it reads nothing while another framework is measured. As many batches as it reads ahead are taken before the clock runs,
/// and as many are left at the end: what is counted was read while the clock ran.
fn fed(contender: &mut Contender, batch: &Batch<'_>, config: &Config, count: usize) -> Result<Vec<FedStep>> {
    let Some(mut feed) = batch.source.feed(batch.size, batch.input, count + 1 + 2 * AHEAD, config)? else {
        return Ok(Vec::new());
    };
    for _ in 0..=AHEAD {
        feed.next()?;
    }
    (0..count)
        .map(|_| {
            let begin = Stopwatch::start();
            let images = feed.next()?;
            let wait_ns = begin.elapsed_ns();
            batch.shared.borrow_mut().put(images)?;
            let step = contender.step()?;
            let whole_ns = begin.elapsed_ns();
            Ok(FedStep { wait_ns, fetch_ns: step.fetch_ns, forward_ns: step.forward_ns, whole_ns })
        })
        .collect()
}
