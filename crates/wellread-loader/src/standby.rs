//! Workers on standby: with the consumer, who reads while it waits, there may be more threads than processors.
//!
//! The system then stops one of them in the middle of a slice, and the batch that all wait for is its. So the workers
//! beyond the processors begin only when they are of use: when the consumer stays away, as in a training step, or when
//! slices take longer than memory does. Those may wait for a disk, of which more threads get more.
//!
//! ```text
//!   a worker's claim ──▶ has the consumer been away? was the last slice long? ──often enough──▶ the others are called
//! ```

use std::time::{Duration, Instant};

/// A consumer that has been away for longer does something else than to load.
const NEAR: Duration = Duration::from_micros(100);

/// A slice that takes longer is not read from memory, or so large that being stopped does not matter.
const BRIEF: Duration = Duration::from_micros(200);

/// What each claim after a long slice or beside a consumer that is away counts; one that says nothing of the kind counts
/// one less, so that a thread that was stopped now and then calls nobody.
const STEP: u32 = 16;

/// Where the others are called.
const ENOUGH: u32 = 2 * STEP + 1;

/// Signs beyond that are not counted, so that they are soon forgotten.
const MOST: u32 = 2 * ENOUGH;

/// Who is on standby, and why they may be called; under the ring's lock.
#[derive(Debug)]
pub(crate) struct Standby {
    /// Workers from this one on are on standby; those before it are at work.
    first: usize,
    workers: usize,
    /// Whether there may be more threads than processors, so that times matter.
    is_timed: bool,
    signs: u32,
    /// When the consumer left, with a batch or to come for the first; `None` while it waits.
    left: Option<Instant>,
}

impl Standby {
    /// For so many workers beside a consumer who reads, too, or does not.
    /// `called` is what [`Self::is_needed`] said at the end of the iteration before.
    pub(crate) fn new(workers: usize, consumer_reads: bool, processors: usize, called: bool) -> Self {
        // One worker begins in any case: who else would notice that the consumer is away?
        let surplus = (workers + 1).saturating_sub(processors).min(workers.saturating_sub(1));
        let surplus = if consumer_reads { surplus } else { 0 };
        let first = if called { workers } else { workers - surplus };
        let (is_timed, signs) = (surplus > 0, if called { ENOUGH } else { 0 });
        Self { first, workers, is_timed, signs, left: is_timed.then(Instant::now) }
    }

    /// Workers that begin at once.
    pub(crate) fn first(&self) -> usize {
        self.first
    }

    /// Whether claims are to be told how long slices took.
    pub(crate) fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Whether all workers are of use, as far as the latest claims say.
    pub(crate) fn is_needed(&self) -> bool {
        self.signs >= STEP
    }

    /// The consumer waits.
    pub(crate) fn arrive(&mut self) {
        self.left = None;
    }

    /// The consumer goes.
    pub(crate) fn leave(&mut self) {
        self.left = self.is_timed.then(Instant::now);
    }

    /// Which workers one of the others is to call now, its last slice having taken so long.
    pub(crate) fn call(&mut self, took: Duration) -> std::ops::Range<usize> {
        let is_away = self.left.is_some_and(|left| left.elapsed() > NEAR);
        self.signs = if is_away || took > BRIEF {
            (self.signs + STEP).min(MOST)
        } else {
            self.signs.saturating_sub(1)
        };
        let from = self.first;
        if self.signs >= ENOUGH {
            self.first = self.workers;
        }
        from..self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(10);
    const SLOW: Duration = Duration::from_millis(1);

    #[test]
    fn workers_beyond_the_processors_are_on_standby_but_never_all() {
        let first = |workers, processors| Standby::new(workers, true, processors, false).first();
        assert_eq!([first(1, 2), first(2, 2), first(2, 4), first(8, 4)], [1, 1, 2, 3]);
        assert_eq!([first(1, 1), first(4, 1)], [1, 1]);
        let alone = Standby::new(4, false, 2, false);
        assert!(alone.first() == 4 && !alone.is_timed(), "where the consumer does not read");
        assert_eq!(Standby::new(4, true, 2, true).first(), 4, "they were needed before");
    }

    #[test]
    fn they_are_called_where_slices_are_long() {
        let mut standby = Standby::new(3, true, 2, false);
        standby.arrive();
        for _ in 0..10 {
            // A thread that was stopped now and then.
            assert!(standby.call(SLOW).is_empty());
            assert!((0..STEP).all(|_| standby.call(QUICK).is_empty()));
        }
        assert!(standby.call(SLOW).is_empty() && standby.call(SLOW).is_empty());
        assert_eq!(standby.call(SLOW), 1..3);
        assert!(standby.call(SLOW).is_empty(), "nobody is left to be called");
        assert!(standby.is_needed());
        for _ in 0..MOST {
            standby.call(QUICK);
        }
        assert!(!standby.is_needed(), "no longer");
    }

    #[test]
    fn they_are_called_while_the_consumer_is_away() {
        let mut standby = Standby::new(2, true, 1, false);
        // It has not come for the first batch yet.
        std::thread::sleep(2 * NEAR);
        standby.arrive();
        assert!((0..100).all(|_| standby.call(QUICK).is_empty()), "it waits");
        standby.leave();
        std::thread::sleep(2 * NEAR);
        assert!(standby.call(QUICK).is_empty() && standby.call(QUICK).is_empty());
        assert_eq!(standby.call(QUICK), 1..2);
    }
}
