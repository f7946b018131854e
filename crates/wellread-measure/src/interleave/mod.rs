//! Runs variants interleaved, in random order, so that the machine's moods fall on all of them alike.
//!
//! Measured one after the other, whatever ran while the machine was warm, throttled or shared looks slow. A
//! [`Plan`] therefore goes in rounds: every round runs every variant once, in a freshly shuffled (seeded)
//! order; the first rounds are warm-up and kept apart. Values of one round are pairs
//! ([`crate::bootstrap::Pairing::Paired`]).
//!
//! A **twin** ([`Plan::twin`]) is a second, hidden turn of the same closure in each round: an A/A pair. The
//! interval of its ratio to the visible turn is the run's noise floor ([`Outcome::noise_floor`]).
//!
//! A variant that fails or panics is recorded with its message, gets no further turns, and the others go on.
//! A time budget stops after a whole round, never within one, and not before the fewest rounds asked for.
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

/// What to run, and how often. `M` is what a turn measures: seconds, or a struct of figures.
pub struct Plan<'a, M> {
    seed: u64,
    rounds: usize,
    warmup: usize,
    min_rounds: usize,
    time_budget: Option<Duration>,
    enough: Option<Enough<'a, M>>,
    jobs: Vec<(String, RefCell<Job<'a, M>>)>,
    twins: Vec<String>,
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
            twins: Vec::new(),
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
        self
    }

    /// Gives the named variant a second, hidden turn in every round: an A/A pair, for the noise floor.
    pub fn twin(mut self, name: impl Into<String>) -> Self {
        self.twins.push(name.into());
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
                twin_of: slot.twin.then(|| self.jobs[slot.job].0.clone()),
                warmup: Vec::new(),
                runs: Vec::new(),
                failure: None,
            })
            .collect();

        let mut rng = Rng::seed(self.seed);
        let rounds = self.warmup + self.rounds;
        let begin = Instant::now();
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
            let over = self.time_budget.is_some_and(|budget| begin.elapsed() + slowest_round > budget);
            if over && round >= self.warmup && measured_rounds >= self.min_rounds {
                stopped = Stopped::TimeBudget;
                break;
            }
            let mut alive: Vec<usize> = (0..slots.len()).filter(|&i| variants[i].failure.is_none()).collect();
            if alive.is_empty() {
                stopped = Stopped::AllFailed;
                break;
            }
            rng.shuffle(&mut alive);
            let round_begin = Instant::now();
            order.push(Vec::with_capacity(alive.len()));
            let in_round = alive.len();
            for index in alive {
                // Its twin may have failed earlier in this round.
                if variants[index].failure.is_some() {
                    continue;
                }
                let slot = &slots[index];
                let turn = Turn { round, warmup: round < self.warmup, twin: slot.twin };
                let turns = turns_done + in_round - order[round].len() + (rounds - round - 1) * in_round;
                let mut report = |event, turns_done: usize| {
                    let elapsed = begin.elapsed();
                    let remaining = (turns_done > 0).then(|| {
                        let left =
                            elapsed.mul_f64(turns.saturating_sub(turns_done) as f64 / turns_done as f64);
                        self.time_budget.map_or(left, |budget| left.min(budget.saturating_sub(elapsed)))
                    });
                    let variant = slot.name.as_str();
                    let progress_now =
                        Progress { variant, turn, rounds, turns_done, turns, elapsed, remaining, event };
                    progress(&progress_now).into() == Flow::Stop
                };
                if report(Event::Started, turns_done) {
                    stopped = Stopped::Asked;
                    break 'plan;
                }
                let position = order[round].len();
                order[round].push(index);
                let started = Instant::now();
                let result = take_turn(&self.jobs[slot.job].1, turn);
                let wall_seconds = started.elapsed().as_secs_f64();
                turns_done += 1;
                let stop = match result {
                    Ok(value) => {
                        let started_seconds = started.duration_since(begin).as_secs_f64();
                        let run = Run { round, position, started_seconds, wall_seconds, value };
                        let of = &mut variants[index];
                        if turn.warmup { &mut of.warmup } else { &mut of.runs }.push(run);
                        report(Event::Finished(wall_seconds), turns_done)
                    }
                    Err(message) => {
                        let stop = report(Event::Failed(&message), turns_done);
                        // The twin is the same closure: it would fail alike.
                        for (other, variant) in slots.iter().zip(&mut variants) {
                            if other.job == slot.job {
                                variant.failure = Some(Failure { round, message: message.clone() });
                            }
                        }
                        stop
                    }
                };
                if stop {
                    stopped = Stopped::Asked;
                    break 'plan;
                }
            }
            slowest_round = slowest_round.max(round_begin.elapsed());
        }
        if variants.iter().all(|variant| variant.failure.is_some()) {
            stopped = Stopped::AllFailed;
        }
        Ok(Outcome {
            variants,
            warmup_rounds: order.len().min(self.warmup),
            order,
            seed: self.seed,
            wall_seconds: begin.elapsed().as_secs_f64(),
            stopped,
        })
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
            slots.push(Slot { name: name.clone(), job, twin: false });
        }
        for twin in &self.twins {
            let job = self.jobs.iter().position(|(name, _)| name == twin).ok_or_else(|| {
                let names: Vec<&str> = self.jobs.iter().map(|(name, _)| name.as_str()).collect();
                Error::Plan(format!(
                    "no variant {twin:?} to repeat as A/A pair; there are {}",
                    names.join(", ")
                ))
            })?;
            if slots.iter().any(|slot| slot.twin && slot.job == job) {
                return Err(Error::Plan(format!("the variant {twin:?} has two A/A twins")));
            }
            slots.push(Slot { name: format!("{twin} (A/A)"), job, twin: true });
        }
        Ok(slots)
    }
}

/// One turn of each round.
struct Slot {
    name: String,
    job: usize,
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
