//! Runs variants interleaved, in random order, so that the machine's moods fall on all of them alike.
//!
//! Measured one after the other, whatever ran while the machine was warm, throttled or shared looks slow. A
//! [`Plan`] therefore goes in rounds: every round runs every variant once, in a freshly shuffled (seeded)
//! order; the first rounds are warm-up and kept apart. Values of one round are pairs
//! ([`crate::bootstrap::Pairing::Paired`]).
//!
//! A **twin** ([`Plan::twin`]) is a second, hidden turn of the same closure in each round: an A/A pair. The
//! interval of its ratio to the visible turn is the run's noise floor ([`Outcome::noise_floor`]). [`Plan::twin_of_each`] repeats
//! another variant in each round, so that no single noisy variant decides for all.
//!
//! A variant that fails or panics is recorded with its message, gets no further turns, and the others go on.
//! A time budget stops after a whole round, never within one, and not before the fewest rounds asked for. A plan that
//! must keep to its budget ([`Plan::fit`]) leaves variants out where not even one round of all of them fits: warm-up
//! takes half of the budget at most, and its times predict the first round. What was left out so comes after all, at the end
//! of the first measured round, where that has left time: variants are worth more than further rounds.
//!
//! ```
//! use wellread_measure::{bootstrap::Bootstrap, interleave::Plan, clock::time};
//!
//! let data: Vec<u64> = (0..20_000).map(|i| i * 2_654_435_761 % 65_536).collect();
//! let outcome = Plan::new(42)
//!     .rounds(8)
//!     .warmup(1)
//!     .add("stable", || Ok::<f64, String>(time(|| { let mut d = data.clone(); d.sort(); d }).1))
//!     .add("unstable", || Ok::<f64, String>(time(|| { let mut d = data.clone(); d.sort_unstable(); d }).1))
//!     .twin("stable")
//!     .run(|_progress| ())?;
//! let settings = Bootstrap::seeded(42);
//! let comparison = outcome.compare("unstable", "stable", |seconds| *seconds, &settings).unwrap();
//! println!("unstable is {} than stable, noise floor {:?}", comparison.verdict, comparison.noise_floor);
//! # Ok::<(), wellread_measure::Error>(())
//! ```

mod outcome;

use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::rng::Rng;

pub use outcome::{Failure, Outcome, Run, Stopped, VariantResult};

/// Which turn a closure is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Round, from 0, warm-up rounds counted first.
    pub round: usize,
    /// Whether this round is warm-up.
    pub warmup: bool,
    /// Whether this is the hidden turn of an A/A pair.
    pub twin: bool,
}

/// What the progress callback learns.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Name of the variant.
    pub variant: &'a str,
    /// The turn.
    pub turn: Turn,
    /// Rounds asked for, warm-up included.
    pub rounds: usize,
    /// Turns finished so far.
    pub turns_done: usize,
    /// Turns in all, should every round be run and nothing fail any more.
    pub turns: usize,
    /// Time since the plan began.
    pub elapsed: Duration,
    /// What is left at the pace so far and within the budget; unknown until a turn is done.
    pub remaining: Option<Duration>,
    /// What happened.
    pub event: Event<'a>,
}

/// What a [`Progress`] tells of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// The turn begins.
    Started,
    /// The turn ended after so many seconds.
    Finished(f64),
    /// The variant failed with this message.
    Failed(&'a str),
}

/// What the progress callback wants: `()` counts as [`Flow::Continue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// End the plan now; what was measured is returned.
    Stop,
}

impl From<()> for Flow {
    fn from((): ()) -> Self {
        Self::Continue
    }
}

type Enough<'a, M> = Box<dyn Fn(&[VariantResult<M>]) -> bool + 'a>;

type Job<'a, M> = Box<dyn FnMut(Turn) -> std::result::Result<M, String> + 'a>;

type Now<'a> = Box<dyn Fn() -> Duration + 'a>;

/// Share of the budget that warm-up may take where a plan must keep to it.
const WARM_UP: f64 = 0.5;

/// What to run, and how often. `M` is what a turn measures: seconds, or a struct of figures.
pub struct Plan<'a, M> {
    seed: u64,
    rounds: usize,
    warmup: usize,
    min_rounds: usize,
    time_budget: Option<Duration>,
    enough: Option<Enough<'a, M>>,
    jobs: Vec<(String, RefCell<Job<'a, M>>)>,
    /// Of each job: those of small ranks are the last to be left out.
    ranks: Vec<usize>,
    twins: Vec<String>,
    /// Whether a hidden turn repeats the variants one after the other.
    rotates: bool,
    fit: bool,
    now: Option<Now<'a>>,
}

impl<'a, M> Plan<'a, M> {
    /// An empty plan of 10 measured rounds and 1 of warm-up. The seed decides the orders.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            rounds: 10,
            warmup: 1,
            min_rounds: 1,
            time_budget: None,
            enough: None,
            jobs: Vec::new(),
            ranks: Vec::new(),
            twins: Vec::new(),
            rotates: false,
            fit: false,
            now: None,
        }
    }

    /// Number of measured rounds.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    /// Number of warm-up rounds before them.
    pub fn warmup(mut self, rounds: usize) -> Self {
        self.warmup = rounds;
        self
    }

    /// Begins no further round once it would end, at the pace of the slowest so far, after this time.
    pub fn time_budget(mut self, budget: Duration) -> Self {
        self.time_budget = Some(budget);
        self
    }

    /// Fewest measured rounds to run whatever the budget (at least 1).
    pub fn min_rounds(mut self, rounds: usize) -> Self {
        self.min_rounds = rounds.max(1);
        self
    }

    /// Keeps to the time budget even where it is too short for a round of all variants: those that it has no room for are
    /// left out ([`VariantResult::left_out`]), twins first, then those of the largest ranks. One variant is always measured.
    pub fn fit(mut self) -> Self {
        self.fit = true;
        self
    }

    /// The rank of the variant added last, 0 unless said: see [`Plan::fit`].
    pub fn ranked(mut self, rank: usize) -> Self {
        if let Some(last) = self.ranks.last_mut() {
            *last = rank;
        }
        self
    }

    /// Tells the time that has gone by instead of the machine's clock, for tests of what the budget does.
    pub fn clock(mut self, now: impl Fn() -> Duration + 'a) -> Self {
        self.now = Some(Box::new(now));
        self
    }

    /// Asked after every measured round from the fewest on: ends the plan when what was measured is enough, such as
    /// when every variant is known to a wanted [`crate::Precision`]. Variants are given in the order added, twins last.
    pub fn stop_when(mut self, enough: impl Fn(&[VariantResult<M>]) -> bool + 'a) -> Self {
        self.enough = Some(Box::new(enough));
        self
    }

    /// Adds a variant. The closure runs once per round and returns what it measured.
    pub fn add<E: Display>(
        self,
        name: impl Into<String>,
        mut job: impl FnMut() -> std::result::Result<M, E> + 'a,
    ) -> Self {
        self.add_with_turn(name, move |_| job())
    }

    /// As [`Plan::add`], for closures that want to know which turn they are given.
    pub fn add_with_turn<E: Display>(
        mut self,
        name: impl Into<String>,
        mut job: impl FnMut(Turn) -> std::result::Result<M, E> + 'a,
    ) -> Self {
        // The alternate form of anyhow's and similar errors holds the whole chain of causes.
        let job: Job<'a, M> = Box::new(move |turn| job(turn).map_err(|error| format!("{error:#}")));
        self.jobs.push((name.into(), RefCell::new(job)));
        self.ranks.push(0);
        self
    }

    /// Gives the named variant a second, hidden turn in every round: an A/A pair, for the noise floor.
    pub fn twin(mut self, name: impl Into<String>) -> Self {
        self.twins.push(name.into());
        self
    }

    /// Repeats another variant in a hidden turn of every round, one after the other: an A/A pair whose ratios are of all.
    pub fn twin_of_each(mut self) -> Self {
        self.rotates = true;
        self
    }

    /// Runs the plan. `progress` is called before and after each turn and may end the plan by returning
    /// [`Flow::Stop`].
    ///
    /// # Errors
    /// Only for a plan that makes no sense: no variant or no round, a name given twice, a twin of an unknown
    /// name. A failing variant is a result, not an error.
    pub fn run<F: Into<Flow>>(self, mut progress: impl FnMut(&Progress<'_>) -> F) -> Result<Outcome<M>> {
        let slots = self.slots()?;
        let mut variants: Vec<VariantResult<M>> = slots
            .iter()
            .map(|slot| VariantResult {
                name: slot.name.clone(),
                twin_of: slot.twin.then(|| slot.job.map_or(EACH, |job| &self.jobs[job].0).to_owned()),
                warmup: Vec::new(),
                runs: Vec::new(),
                failure: None,
                left_out: false,
            })
            .collect();

        let mut rng = Rng::seed(self.seed);
        let rounds = self.warmup + self.rounds;
        let started = Instant::now();
        let now = || self.now.as_ref().map_or_else(|| started.elapsed(), |now| now());
        let begin = now();
        let gone = || now().saturating_sub(begin);
        let has_no_time_for = |seconds: f64| {
            self.time_budget.is_some_and(|budget| gone().as_secs_f64() + seconds > budget.as_secs_f64())
        };
        let mut order: Vec<Vec<usize>> = Vec::new();
        let mut turns_done = 0;
        let mut slowest_round = Duration::ZERO;
        let mut stopped = Stopped::RoundsDone;

        'plan: for round in 0..rounds {
            let measured_rounds = round.saturating_sub(self.warmup);
            if measured_rounds >= self.min_rounds
                && self.enough.as_ref().is_some_and(|enough| enough(&variants))
            {
                stopped = Stopped::Enough;
                break;
            }
            let over = self.time_budget.is_some_and(|budget| gone() + slowest_round > budget);
            if over && round >= self.warmup && measured_rounds >= self.min_rounds {
                stopped = Stopped::TimeBudget;
                break;
            }
            let is_alive = |variant: &VariantResult<M>| variant.failure.is_none() && !variant.left_out;
            if let Some(budget) = self.time_budget.filter(|_| self.fit && round == self.warmup) {
                self.leave_out(&slots, &mut variants, budget.saturating_sub(gone()));
            }
            let has_turn =
                |&i: &usize| is_alive(&variants[i]) && self.job(&slots[i], round, &variants).is_some();
            let mut alive: Vec<usize> = (0..slots.len()).filter(has_turn).collect();
            if alive.is_empty() {
                stopped = Stopped::AllFailed;
                break;
            }
            rng.shuffle(&mut alive);
            if self.fit && round < self.warmup {
                // No figure uses warm-up: always in the order added, so that plans with alike variants leave out alike ones.
                alive.sort_by_key(|&index| (self.rank(&slots[index]), index));
            }
            // Those that were left out so far, should the first measured round leave time for them.
            let in_time = alive.len();
            if self.fit && round == self.warmup && self.time_budget.is_some() {
                let is_late = |v: &VariantResult<M>| v.failure.is_none() && v.left_out;
                let mut late: Vec<usize> = (0..slots.len()).filter(|&i| is_late(&variants[i])).collect();
                late.sort_by_key(|&index| (self.rank(&slots[index]), index));
                alive.extend(late);
            }
            // The latest time at which a turn of this round may begin; none is left out after its first measured one.
            let latest = self.time_budget.filter(|_| self.fit && round <= self.warmup);
            let latest =
                latest.map(|budget| if round < self.warmup { budget.mul_f64(WARM_UP) } else { budget });
            let round_begin = now();
            order.push(Vec::with_capacity(alive.len()));
            let mut in_round = in_time;
            let mut warming_late = Duration::ZERO;
            for (at, index) in alive.into_iter().enumerate() {
                // Its twin may have failed earlier in this round.
                if variants[index].failure.is_some() {
                    continue;
                }
                let Some(job) = self.job(&slots[index], round, &variants) else { continue };
                if !order[round].is_empty() && latest.is_some_and(|latest| gone() > latest) {
                    variants[index].left_out = true;
                    continue;
                }
                let slot = &slots[index];
                if at >= in_time {
                    let warm = variants[index].warmup.iter().map(|run| run.wall_seconds).reduce(f64::max);
                    // One that was never run takes as long as others did, twice: warm-up, and the turn that counts.
                    let usual = 2.0 * gone().as_secs_f64() / turns_done.max(1) as f64;
                    if has_no_time_for(warm.unwrap_or(usual)) {
                        continue;
                    }
                    if warm.is_none() && self.warmup > 0 {
                        let turn = Turn { round: self.warmup - 1, warmup: true, twin: slot.twin };
                        let (took, result) = self.timed(job, turn, order[turn.round].len(), &gone);
                        warming_late += took;
                        match result {
                            Ok(run) => variants[index].warmup.push(run),
                            Err(message) => {
                                fail(&slots, &mut variants, job, round, &message);
                                continue;
                            }
                        }
                        order[turn.round].push(index);
                        // It took longer than thought: a turn that counts has no time any more.
                        if has_no_time_for(took.as_secs_f64()) {
                            continue;
                        }
                    }
                    variants[index].left_out = false;
                    in_round += 1;
                }
                let turn = Turn { round, warmup: round < self.warmup, twin: slot.twin };
                let of_round = in_round - order[round].len();
                let mut report = |event, done_now: usize| {
                    let elapsed = gone();
                    let pace = (done_now > 0).then(|| elapsed.div_f64(done_now as f64));
                    let rest = of_round - (done_now - turns_done);
                    let later = self.later_rounds(rounds - round - 1, in_round, rest, pace, elapsed);
                    let turns = done_now + rest + later * in_round;
                    let remaining = pace.map(|pace| pace.mul_f64((turns - done_now) as f64));
                    let turns_done = done_now;
                    let variant = slot.name.as_str();
                    let progress_now =
                        Progress { variant, turn, rounds, turns_done, turns, elapsed, remaining, event };
                    progress(&progress_now).into() == Flow::Stop
                };
                if report(Event::Started, turns_done) {
                    stopped = Stopped::Asked;
                    break 'plan;
                }
                let (took, result) = self.timed(job, turn, order[round].len(), &gone);
                order[round].push(index);
                let done_now = turns_done + 1;
                let stop = match result {
                    Ok(run) => {
                        let of = &mut variants[index];
                        if turn.warmup { &mut of.warmup } else { &mut of.runs }.push(run);
                        report(Event::Finished(took.as_secs_f64()), done_now)
                    }
                    Err(message) => {
                        let stop = report(Event::Failed(&message), done_now);
                        fail(&slots, &mut variants, job, round, &message);
                        stop
                    }
                };
                turns_done = done_now;
                if stop {
                    stopped = Stopped::Asked;
                    break 'plan;
                }
            }
            // The first round that fits is predicted from each variant's warm-up, not from all of it.
            if !(self.fit && round < self.warmup) {
                let lasted = now().saturating_sub(round_begin).saturating_sub(warming_late);
                slowest_round = slowest_round.max(lasted);
            }
        }
        if variants[..self.jobs.len()].iter().all(|variant| variant.failure.is_some()) {
            stopped = Stopped::AllFailed;
        }
        Ok(Outcome {
            variants,
            warmup_rounds: order.len().min(self.warmup),
            order,
            seed: self.seed,
            wall_seconds: gone().as_secs_f64(),
            stopped,
        })
    }

    /// The job of a slot in a round; None where a twin of each has nothing left to repeat.
    fn job(&self, slot: &Slot, round: usize, variants: &[VariantResult<M>]) -> Option<usize> {
        slot.job.or_else(|| {
            let is_alive = |job: &usize| variants[*job].failure.is_none() && !variants[*job].left_out;
            let alive: Vec<usize> = (0..self.jobs.len()).filter(is_alive).collect();
            alive.get(round % alive.len().max(1)).copied()
        })
    }

    /// Takes a turn, which stands at this place in its round: how long it took, and its run or why it failed.
    fn timed(
        &self,
        job: usize,
        turn: Turn,
        position: usize,
        gone: &dyn Fn() -> Duration,
    ) -> (Duration, std::result::Result<Run<M>, String>) {
        let started = gone();
        let result = take_turn(&self.jobs[job].1, turn);
        let took = gone().saturating_sub(started);
        let (started_seconds, wall_seconds) = (started.as_secs_f64(), took.as_secs_f64());
        let run = result.map(|value| Run {
            round: turn.round,
            of: job,
            position,
            started_seconds,
            wall_seconds,
            value,
        });
        (took, run)
    }

    /// Leaves out the variants whose warm-up says that a round with them does not fit into `left`.
    fn leave_out(&self, slots: &[Slot], variants: &mut [VariantResult<M>], left: Duration) {
        let mut alive: Vec<usize> =
            (0..slots.len()).filter(|&i| variants[i].failure.is_none() && !variants[i].left_out).collect();
        alive.sort_by_key(|&index| self.rank(&slots[index]));
        let costs =
            alive.iter().map(|&i| variants[i].warmup.iter().map(|run| run.wall_seconds).fold(0.0, f64::max));
        for (index, fits) in alive.iter().zip(fitting(costs, left.as_secs_f64())) {
            variants[*index].left_out = !fits;
        }
    }

    /// A variant's rank; twins come after all others.
    fn rank(&self, slot: &Slot) -> usize {
        slot.job.filter(|_| !slot.twin).map_or(usize::MAX, |job| self.ranks[job])
    }

    /// How many of `most` further rounds of so many turns will fit at this pace, after the `rest` of this one.
    fn later_rounds(
        &self,
        most: usize,
        in_round: usize,
        rest: usize,
        pace: Option<Duration>,
        elapsed: Duration,
    ) -> usize {
        let (Some(budget), Some(pace)) = (self.time_budget, pace) else { return most };
        let left = budget.saturating_sub(elapsed + pace.mul_f64(rest as f64));
        let round = pace.as_secs_f64() * in_round as f64;
        if round > 0.0 { most.min((left.as_secs_f64() / round) as usize) } else { most }
    }

    /// The turns of a round, checked: every job, then the twins.
    fn slots(&self) -> Result<Vec<Slot>> {
        if self.jobs.is_empty() {
            return Err(Error::Plan("it has no variant; add one".into()));
        }
        if self.rounds == 0 {
            return Err(Error::Plan("it has no measured round; ask for at least 1".into()));
        }
        let mut slots: Vec<Slot> = Vec::new();
        for (job, (name, _)) in self.jobs.iter().enumerate() {
            if slots.iter().any(|slot| slot.name == *name) {
                return Err(Error::Plan(format!("the name {name:?} is given to two variants")));
            }
            slots.push(Slot { name: name.clone(), job: Some(job), twin: false });
        }
        for twin in &self.twins {
            let job = self.jobs.iter().position(|(name, _)| name == twin).ok_or_else(|| {
                let names: Vec<&str> = self.jobs.iter().map(|(name, _)| name.as_str()).collect();
                Error::Plan(format!(
                    "no variant {twin:?} to repeat as A/A pair; there are {}",
                    names.join(", ")
                ))
            })?;
            if slots.iter().any(|slot| slot.twin && slot.job == Some(job)) {
                return Err(Error::Plan(format!("the variant {twin:?} has two A/A twins")));
            }
            slots.push(Slot { name: format!("{twin} (A/A)"), job: Some(job), twin: true });
        }
        if self.rotates {
            slots.push(Slot { name: format!("{EACH} (A/A)"), job: None, twin: true });
        }
        Ok(slots)
    }
}

/// Which of these costs fit into `left` together, the first ones first; the first of all always does. One that does not fit
/// makes no room for dearer ones, but cheaper ones after it may.
fn fitting(costs: impl IntoIterator<Item = f64>, left: f64) -> Vec<bool> {
    let mut sum = 0.0;
    let fits = costs.into_iter().enumerate().map(|(at, cost)| {
        let fits = at == 0 || sum + cost <= left;
        sum += if fits { cost } else { 0.0 };
        fits
    });
    fits.collect()
}

/// Notes a failure of a job: of the variant and of its twin, which is the same closure and would fail alike.
fn fail<M>(slots: &[Slot], variants: &mut [VariantResult<M>], job: usize, round: usize, message: &str) {
    for (slot, variant) in slots.iter().zip(variants) {
        if slot.job == Some(job) {
            variant.failure = Some(Failure { round, message: message.to_owned() });
        }
    }
}

/// What a twin that repeats the variants one after the other is a twin of.
const EACH: &str = "each in turn";

/// One turn of each round.
struct Slot {
    name: String,
    /// The job; None of a twin that repeats another in each round.
    job: Option<usize>,
    twin: bool,
}

/// Runs a closure, a panic becoming a message. A variant that panicked is never run again, so the state it
/// may have left half-changed is not seen.
fn take_turn<M>(job: &RefCell<Job<'_, M>>, turn: Turn) -> std::result::Result<M, String> {
    catch_unwind(AssertUnwindSafe(|| (job.borrow_mut())(turn))).unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without a message".into());
        Err(format!("panicked: {text}"))
    })
}

#[cfg(test)]
mod tests;
