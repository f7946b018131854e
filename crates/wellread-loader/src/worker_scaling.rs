//! How many workers run: those beyond the processors start only under pressure.
//!
//! With the consumer, who reads while it waits, there may be more threads than processors. The system then stops one of
//! them in the middle of a slice, and the batch that all wait for is its. So the surplus workers start only when they are
//! of use: when the consumer stays away, as in a training step, or when slices take longer than memory does. Those may
//! wait for a disk, of which more threads get more.
//!
//! ```text
//!   a worker's claim ──▶ is the consumer away? was the last slice long? ──▶ pressure ──high enough──▶ start the surplus
//! ```

use std::time::{Duration, Instant};

/// A consumer that has been away for longer does something else than to load: a training step.
const AWAY_AFTER: Duration = Duration::from_micros(100);

/// A slice that takes longer is not read from memory, or so large that being stopped does not matter.
const LONG_SLICE: Duration = Duration::from_micros(200);

/// What each claim after a long slice or beside a consumer that is away adds to the pressure; any other takes one from
/// it, so that a thread that was stopped now and then starts nobody.
const PRESSURE_STEP: u32 = 16;

/// The pressure at which the surplus workers start.
const START_PRESSURE: u32 = 2 * PRESSURE_STEP + 1;

/// Pressure does not rise beyond that, so that it soon falls again.
const MAX_PRESSURE: u32 = 2 * START_PRESSURE;

/// Which workers have started, and how great the pressure to start the others is; under the ring's lock.
#[derive(Debug)]
pub(crate) struct WorkerScaling {
    /// Workers that have started; those from this one on have not.
    started: usize,
    workers: usize,
    /// Whether there may be more threads than processors, so that times matter.
    is_timed: bool,
    pressure: u32,
    /// When the consumer went away, with a batch or to come for the first; `None` while it waits.
    consumer_left: Option<Instant>,
}

impl WorkerScaling {
    /// For so many workers beside a consumer who reads, too, or does not.
    /// `start_all` is what [`Self::needs_all`] said at the end of the iteration before.
    pub(crate) fn new(workers: usize, consumer_reads: bool, processors: usize, start_all: bool) -> Self {
        // One worker begins in any case: who else would notice that the consumer is away?
        let surplus = (workers + 1).saturating_sub(processors).min(workers.saturating_sub(1));
        let surplus = if consumer_reads { surplus } else { 0 };
        let started = if start_all { workers } else { workers - surplus };
        let (is_timed, pressure) = (surplus > 0, if start_all { START_PRESSURE } else { 0 });
        Self { started, workers, is_timed, pressure, consumer_left: is_timed.then(Instant::now) }
    }

    /// Workers that have started or, before the first slice, are to start at once.
    pub(crate) fn started(&self) -> usize {
        self.started
    }

    /// Whether [`Self::record_slice`] is to be called.
    pub(crate) fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Whether all workers are of use, as far as the latest claims say.
    pub(crate) fn needs_all(&self) -> bool {
        self.pressure >= PRESSURE_STEP
    }

    /// The consumer waits.
    pub(crate) fn consumer_waits(&mut self) {
        self.consumer_left = None;
    }

    /// The consumer goes.
    pub(crate) fn consumer_leaves(&mut self) {
        self.consumer_left = self.is_timed.then(Instant::now);
    }

    /// Counts a slice that took so long; the workers that are to be started now.
    pub(crate) fn record_slice(&mut self, took: Duration) -> std::ops::Range<usize> {
        let is_away = self.consumer_left.is_some_and(|left| left.elapsed() > AWAY_AFTER);
        self.pressure = if is_away || took > LONG_SLICE {
            (self.pressure + PRESSURE_STEP).min(MAX_PRESSURE)
        } else {
            self.pressure.saturating_sub(1)
        };
        let from = self.started;
        if self.pressure >= START_PRESSURE {
            self.started = self.workers;
        }
        from..self.started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(10);
    const SLOW: Duration = Duration::from_millis(1);

    #[test]
    fn workers_beyond_the_processors_do_not_start_but_one_always_does() {
        let started = |workers, processors| WorkerScaling::new(workers, true, processors, false).started();
        assert_eq!([started(1, 2), started(2, 2), started(2, 4), started(8, 4)], [1, 1, 2, 3]);
        assert_eq!([started(1, 1), started(4, 1)], [1, 1]);
        let alone = WorkerScaling::new(4, false, 2, false);
        assert!(alone.started() == 4 && !alone.is_timed(), "where the consumer does not read");
        assert_eq!(WorkerScaling::new(4, true, 2, true).started(), 4, "they were needed before");
    }

    #[test]
    fn surplus_workers_start_where_slices_are_long() {
        let mut scaling = WorkerScaling::new(3, true, 2, false);
        scaling.consumer_waits();
        for _ in 0..10 {
            // A thread that was stopped now and then.
            assert!(scaling.record_slice(SLOW).is_empty());
            assert!((0..PRESSURE_STEP).all(|_| scaling.record_slice(QUICK).is_empty()));
        }
        assert!(scaling.record_slice(SLOW).is_empty() && scaling.record_slice(SLOW).is_empty());
        assert_eq!(scaling.record_slice(SLOW), 1..3);
        assert!(scaling.record_slice(SLOW).is_empty(), "all have started");
        assert!(scaling.needs_all());
        for _ in 0..MAX_PRESSURE {
            scaling.record_slice(QUICK);
        }
        assert!(!scaling.needs_all(), "no longer");
    }

    #[test]
    fn surplus_workers_start_while_the_consumer_is_away() {
        let mut scaling = WorkerScaling::new(2, true, 1, false);
        // It has not come for the first batch yet.
        std::thread::sleep(2 * AWAY_AFTER);
        scaling.consumer_waits();
        assert!((0..100).all(|_| scaling.record_slice(QUICK).is_empty()), "it waits");
        scaling.consumer_leaves();
        std::thread::sleep(2 * AWAY_AFTER);
        assert!(scaling.record_slice(QUICK).is_empty() && scaling.record_slice(QUICK).is_empty());
        assert_eq!(scaling.record_slice(QUICK), 1..2);
    }
}
