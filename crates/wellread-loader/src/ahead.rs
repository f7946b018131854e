//! The distance ahead of its consumer at which an epoch asks for bytes that are remote, and the bytes that
//! it holds.
//!
//! ```text
//!  batches   delivered │ being read │ asked for: pixels │ asked for: heads │ later
//!                      └──────────── window ────────────┘
//!             guards dropped ◀─ note_read()  wait_turn() ─▶ the thread that asks
//! ```
//!
//! Only sets in places that gain by it have one ([`wellread_store::ahead`]). Bytes are bounded by the place; the window bounds how
//! many requests are thought of.

use crate::dataset::Dataset;
use crate::plan::LoaderShared;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wellread_store::place::PrefetchGuard;
use wellread_trace::{Kind, span};

/// Rows that are asked for ahead, about: with the usual bound on requests, four round trips of them.
const ROWS: usize = 512;
/// Rows whose heads are asked for beyond these, about.
const HEAD_ROWS: usize = 256;
/// Rows whose heads are asked for before the pixels of the first batch, about, unless it has more: less than a round trip of
/// them. Those of more would be answered before these pixels.
const FIRST_HEAD_ROWS: usize = 32;

/// How often somebody looks whether there is room.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The requests that one epoch makes ahead.
#[derive(Debug)]
pub(crate) struct Lookahead {
    /// Bytes that may be held.
    pub(crate) most: u64,
    /// Batches, from the one that is delivered next on.
    window: usize,
    /// The number of these that are made whether there is room or not, since somebody may be waiting for them.
    unconditional_batches: usize,
    /// Batches beyond the one whose pixels are asked for next: of the first one, and of the others.
    head_batches: [usize; 2],
    state: Mutex<State>,
    progressed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Batches that were read.
    batches_read: usize,
    /// Batches that were asked for.
    asked: usize,
    /// Whether nobody asks any more.
    ended: bool,
    stopped: bool,
    /// By batch, in order.
    held: VecDeque<(usize, Vec<PrefetchGuard>)>,
}

impl Lookahead {
    /// The requests ahead of the reader of a loader's batches; `None` where all of its sets lie on this machine.
    pub(crate) fn of(loader: &LoaderShared) -> Option<Self> {
        let LoaderShared { plan, dataset, targets, .. } = loader;
        let is_remote = dataset.is_remote() || targets.as_ref().is_some_and(Dataset::is_remote);
        let most = plan.ahead.filter(|_| is_remote)?;
        Some(Self::new(most, plan.largest, plan.read_ahead.prefetch.max(plan.read_ahead.joined)))
    }

    /// For batches of `rows` rows, of which `prefetch` are read ahead of the one that is delivered.
    fn new(most: u64, rows: usize, prefetch: usize) -> Self {
        let batches = |of: usize| of.div_ceil(rows.max(1));
        Self {
            most,
            window: batches(ROWS).max(2) + prefetch,
            unconditional_batches: prefetch + 1,
            head_batches: [FIRST_HEAD_ROWS / rows.max(1), batches(HEAD_ROWS)],
            state: Mutex::default(),
            progressed: Condvar::new(),
        }
    }

    /// Up to which batch heads are asked for before the pixels of `batch`.
    pub(crate) fn last_head(&self, batch: usize) -> usize {
        let [first, others] = self.head_batches;
        batch + if batch == 0 { first.saturating_sub(1) } else { others }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is a batch's turn to be asked for, and there is room; false once nobody wants the batches any more.
    pub(crate) fn wait_turn(&self, batch: usize, is_full: impl Fn() -> bool) -> bool {
        let mut state = self.lock();
        while !state.stopped && batch >= state.batches_read + self.window {
            state = self.progressed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        while !state.stopped && batch >= state.batches_read + self.unconditional_batches && is_full() {
            // Room comes when batches are read, and also when the requested bytes turn out fewer.
            (state, _) =
                self.progressed.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner);
        }
        !state.stopped
    }

    /// Notes that a batch was asked for.
    pub(crate) fn note_asked(&self, batch: usize) {
        self.lock().asked = batch + 1;
        self.progressed.notify_all();
    }

    /// Notes that nothing more is going to be asked for.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.progressed.notify_all();
    }

    /// Waits until a batch was asked for, so that its reader does not ask as well.
    pub(crate) fn wait_until_asked(&self, batch: usize) {
        let is_to_come = |state: &State| !state.stopped && !state.ended && batch >= state.asked;
        let mut state = self.lock();
        if !is_to_come(&state) {
            return;
        }
        let _wait = span(Kind::WaitRequest);
        while is_to_come(&state) {
            state = self.progressed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a batch was read already, so that nothing is to be asked for.
    pub(crate) fn is_read(&self, batch: usize) -> bool {
        batch < self.lock().batches_read
    }

    /// Keeps what was asked for until its batch was read.
    pub(crate) fn hold(&self, batch: usize, guards: Vec<PrefetchGuard>) {
        let mut state = self.lock();
        // Guards are dropped here without the lock.
        if !state.stopped && batch >= state.batches_read && !guards.is_empty() {
            let at = state.held.partition_point(|(held, _)| *held <= batch);
            state.held.insert(at, (batch, guards));
        }
    }

    /// Lets go what was asked for up to a batch that was read, and lets more be asked for.
    pub(crate) fn note_read(&self, batch: usize) {
        let mut state = self.lock();
        state.batches_read = state.batches_read.max(batch + 1);
        let read = state.held.partition_point(|(held, _)| *held <= batch);
        let gone: Vec<_> = state.held.drain(..read).collect();
        drop(state);
        drop(gone);
        self.progressed.notify_all();
    }

    /// Gives all up.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let gone = std::mem::take(&mut state.held);
        drop(state);
        self.progressed.notify_all();
        for mut guard in gone.into_iter().flat_map(|(_, guards)| guards) {
            guard.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::is_seen;
    use std::sync::Arc;
    use wellread_store::place::Prefetched;

    /// Is there as long as it is held.
    #[derive(Debug)]
    struct There {
        _is: Arc<()>,
    }

    impl Prefetched for There {
        fn give_up(&mut self) {}
    }

    fn guard(of: &Arc<()>) -> Vec<PrefetchGuard> {
        vec![Box::new(There { _is: Arc::clone(of) })]
    }

    #[test]
    fn what_was_read_is_let_go_and_the_window_moves() {
        let ahead = Lookahead::new(1, 256, 1);
        let held = Arc::new(());
        assert!(
            ahead.wait_turn(0, || false) && ahead.wait_turn(2, || false),
            "two batches, and the one that is read ahead"
        );
        for batch in [1, 0, 2] {
            ahead.hold(batch, guard(&held));
        }
        ahead.note_read(1);
        assert_eq!((Arc::strong_count(&held), ahead.is_read(1), ahead.is_read(2)), (2, true, false));
        ahead.hold(1, guard(&held));
        assert_eq!(Arc::strong_count(&held), 2, "what comes late is not kept");
        assert!(ahead.wait_turn(4, || false));
        assert!(ahead.wait_turn(3, || true), "near enough to be waited for, whether there is room or not");
        ahead.stop();
        assert_eq!((Arc::strong_count(&held), ahead.wait_turn(4, || false)), (1, false));
    }

    #[test]
    fn heads_of_the_first_batch_come_before_those_of_many_others() {
        for (rows, first, second) in [(1, 31, 257), (16, 1, 17), (32, 0, 9), (100, 0, 4)] {
            let ahead = Lookahead::new(1, rows, 1);
            assert_eq!([ahead.last_head(0), ahead.last_head(1)], [first, second], "{rows}");
        }
    }

    #[test]
    fn who_waits_is_woken() {
        let ahead = Arc::new(Lookahead::new(1, 256, 0));
        let other = Arc::clone(&ahead);
        let waiting = std::thread::spawn(move || {
            other.wait_until_asked(1);
            let turn = other.wait_turn(2, || false);
            other.end();
            (turn, other.wait_turn(100, || false))
        });
        ahead.note_asked(1);
        ahead.note_read(0);
        ahead.wait_until_asked(50);
        ahead.stop();
        assert_eq!(waiting.join().unwrap(), (true, false));
    }

    #[test]
    fn a_wait_for_a_request_is_seen() {
        let seen = is_seen("wait for request", || {
            let ahead = Lookahead::new(1, 256, 0);
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| ahead.wait_until_asked(0));
                std::thread::sleep(Duration::from_millis(5));
                ahead.note_asked(0);
                waiting.join().unwrap();
            });
        });
        assert!(seen);
    }
}
