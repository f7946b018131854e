//! The variants to run, their rounds and their time.

use std::cell::RefCell;
use std::fmt::Display;
use std::time::Duration;

use super::outcome::VariantResult;
use super::progress::Turn;
use crate::error::{Error, Result};

pub(super) type StopCondition<'a, M> = Box<dyn Fn(&[VariantResult<M>]) -> bool + 'a>;

pub(super) type Job<'a, M> = Box<dyn FnMut(Turn) -> std::result::Result<M, String> + 'a>;

pub(super) type TurnCost<'a, M> = Box<dyn Fn(&M) -> Option<f64> + 'a>;

pub(super) type TimeSource<'a> = Box<dyn Fn() -> Duration + 'a>;

/// The variants to run, and their rounds. `M` is what a turn measures: seconds, or a struct of figures.
pub struct Plan<'a, M> {
    pub(super) seed: u64,
    pub(super) rounds: usize,
    pub(super) warmup: usize,
    pub(super) min_rounds: usize,
    pub(super) time_budget: Option<Duration>,
    pub(super) stop_condition: Option<StopCondition<'a, M>>,
    pub(super) jobs: Vec<(String, RefCell<Job<'a, M>>)>,
    /// The rank of each job: those of small ranks are the last to be left out.
    pub(super) ranks: Vec<usize>,
    /// Whether each job has its turns whatever the time.
    pub(super) required: Vec<bool>,
    pub(super) twins: Vec<String>,
    /// Whether a hidden turn repeats the variants one after the other.
    pub(super) rotates: bool,
    pub(super) fit: bool,
    pub(super) turn_cost: Option<TurnCost<'a, M>>,
    pub(super) now: Option<TimeSource<'a>>,
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
            stop_condition: None,
            jobs: Vec::new(),
            ranks: Vec::new(),
            required: Vec::new(),
            twins: Vec::new(),
            rotates: false,
            fit: false,
            turn_cost: None,
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

    /// Keeps to the time budget even where it is too short for a round of all variants. Those without room are left out
    /// ([`VariantResult::left_out`]), twins first, then those of the largest ranks. One that alone takes too long gives way to
    /// the others, whatever its rank. One variant is always measured.
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

    /// The variant added last is never left out for want of time, which is exceeded by a turn of it: see [`Plan::fit`].
    pub fn required(mut self) -> Self {
        if let Some(last) = self.required.last_mut() {
            *last = true;
        }
        self
    }

    /// Tells from a turn of warm-up how many seconds a turn that counts takes. `None` stands for as long as that of warm-up.
    pub fn turn_cost(mut self, cost: impl Fn(&M) -> Option<f64> + 'a) -> Self {
        self.turn_cost = Some(Box::new(cost));
        self
    }

    /// Tells the time that has gone by instead of the machine's clock, for tests of what the budget does.
    pub fn clock(mut self, now: impl Fn() -> Duration + 'a) -> Self {
        self.now = Some(Box::new(now));
        self
    }

    /// Asked after every measured round from the fewest on. It ends the plan when the measurements are enough, such as
    /// when every variant is known to a wanted [`crate::Precision`]. Variants are given in the order added, twins last.
    pub fn stop_when(mut self, enough: impl Fn(&[VariantResult<M>]) -> bool + 'a) -> Self {
        self.stop_condition = Some(Box::new(enough));
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
        self.required.push(false);
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

    /// The turns of a round, checked: every job, then the twins.
    pub(super) fn slots(&self) -> Result<Vec<Slot>> {
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
            slots.push(Slot { name: format!("{EACH_VARIANT} (A/A)"), job: None, twin: true });
        }
        Ok(slots)
    }
}

/// The name of the original of a twin that repeats the variants one after the other.
pub(super) const EACH_VARIANT: &str = "each in turn";

/// One turn of each round.
pub(super) struct Slot {
    pub(super) name: String,
    /// The job; None of a twin that repeats another in each round.
    pub(super) job: Option<usize>,
    pub(super) twin: bool,
}
