//! Running a plan: rounds in shuffled order, within the budget.
//!
//! ```text
//!   Plan ──slots──▶ turns of a round ──shuffle──▶ run_catching_panics ──▶ Run, or why it failed ──▶ Outcome
//!                                      ▲ left out where the budget has no room
//! ```

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::outcome::{Failure, Outcome, Run, Stopped, VariantResult};
use super::plan::{EACH_VARIANT, Job, Plan, Slot};
use super::progress::{Event, Flow, Progress, Turn};
use crate::error::Result;
use crate::rng::Rng;

/// Share of the budget that warm-up may take where a plan must keep to it.
const WARM_UP: f64 = 0.5;

impl<M> Plan<'_, M> {
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
                twin_of: slot.twin.then(|| slot.job.map_or(EACH_VARIANT, |job| &self.jobs[job].0).to_owned()),
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
                && self.stop_condition.as_ref().is_some_and(|enough| enough(&variants))
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
            let mut beyond = Duration::ZERO;
            if let Some(budget) = self.time_budget.filter(|_| self.fit && round == self.warmup) {
                beyond = self.drop_slow_variants(&slots, &mut variants, budget.saturating_sub(gone()));
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
            let latest = latest
                .map(|budget| if round < self.warmup { budget.mul_f64(WARM_UP) } else { budget + beyond });
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
                let slot = &slots[index];
                let is_late = !order[round].is_empty() && latest.is_some_and(|latest| gone() > latest);
                if is_late && !self.is_required(slot) {
                    variants[index].left_out = true;
                    continue;
                }
                if at >= in_time {
                    let warm = self.seconds_of_turn(&variants[index]);
                    // One that was never run takes as long as others did, twice: warm-up, and the turn that counts.
                    let usual = 2.0 * gone().as_secs_f64() / turns_done.max(1) as f64;
                    if has_no_time_for(warm.unwrap_or(usual)) {
                        continue;
                    }
                    if warm.is_none() && self.warmup > 0 {
                        let turn = Turn { round: self.warmup - 1, warmup: true, twin: slot.twin };
                        let (took, result) = self.run_timed(job, turn, order[turn.round].len(), &gone);
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
                        if self.seconds_of_turn(&variants[index]).is_some_and(has_no_time_for) {
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
                let (took, result) = self.run_timed(job, turn, order[round].len(), &gone);
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
    fn run_timed(
        &self,
        job: usize,
        turn: Turn,
        position: usize,
        gone: &dyn Fn() -> Duration,
    ) -> (Duration, std::result::Result<Run<M>, String>) {
        let started = gone();
        let result = run_catching_panics(&self.jobs[job].1, turn);
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

    /// Leaves out the variants whose warm-up says that a round with them does not fit into `left`. Those that are required stay:
    /// returns the time that they take beyond it.
    fn drop_slow_variants(
        &self,
        slots: &[Slot],
        variants: &mut [VariantResult<M>],
        left: Duration,
    ) -> Duration {
        let mut alive: Vec<usize> =
            (0..slots.len()).filter(|&i| variants[i].failure.is_none() && !variants[i].left_out).collect();
        alive.sort_by_key(|&index| self.rank(&slots[index]));
        let visible = alive.iter().filter(|&&index| !slots[index].twin).count();
        let costs: Vec<f64> =
            alive.iter().map(|&i| self.seconds_of_turn(&variants[i]).unwrap_or(0.0)).collect();
        let fits = fitting(&costs, visible, left.as_secs_f64());
        let mut beyond = 0.0;
        for ((&index, fits), cost) in alive.iter().zip(fits).zip(&costs) {
            let is_kept = fits || self.is_required(&slots[index]);
            variants[index].left_out = !is_kept;
            beyond += if is_kept && !fits { *cost } else { 0.0 };
        }
        Duration::from_secs_f64(beyond)
    }

    /// Whether a slot has its turns whatever the time; its twin tells nothing alone.
    fn is_required(&self, slot: &Slot) -> bool {
        slot.job.is_some_and(|job| !slot.twin && self.required[job])
    }

    /// Seconds that a turn that counts takes, by the variant's warm-up; `None` of one without.
    fn seconds_of_turn(&self, variant: &VariantResult<M>) -> Option<f64> {
        let told = |run: &Run<M>| self.turn_cost.as_ref().and_then(|cost| cost(&run.value));
        let seconds = variant.warmup.iter().map(|run| told(run).unwrap_or(run.wall_seconds));
        seconds.reduce(f64::max)
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
}

/// Which of these costs fit into `left` together, the first ones first. One that does not fit makes no room for dearer ones,
/// but cheaper ones after it may. Those after the first `visible` are of twins, which tell nothing alone. Where none of the
/// others fits, the cheapest of these is taken by itself.
fn fitting(costs: &[f64], visible: usize, left: f64) -> Vec<bool> {
    let mut sum = 0.0;
    let fits = costs.iter().map(|cost| {
        let fits = sum + cost <= left;
        sum += if fits { *cost } else { 0.0 };
        fits
    });
    let mut fits: Vec<bool> = fits.collect();
    if !fits[..visible].contains(&true) {
        fits.fill(false);
        if let Some(cheapest) = (0..visible).min_by(|&a, &b| costs[a].total_cmp(&costs[b])) {
            fits[cheapest] = true;
        }
    }
    fits
}

/// Notes a failure of a job: of the variant and of its twin, which is the same closure and would fail alike.
fn fail<M>(slots: &[Slot], variants: &mut [VariantResult<M>], job: usize, round: usize, message: &str) {
    for (slot, variant) in slots.iter().zip(variants) {
        if slot.job == Some(job) {
            variant.failure = Some(Failure { round, message: message.to_owned() });
        }
    }
}

/// Runs a closure, a panic becoming a message. A variant that panicked is never run again, so the state it
/// may have left half-changed is not seen.
fn run_catching_panics<M>(job: &RefCell<Job<'_, M>>, turn: Turn) -> std::result::Result<M, String> {
    catch_unwind(AssertUnwindSafe(|| (job.borrow_mut())(turn))).unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without a message".into());
        Err(format!("panicked: {text}"))
    })
}
