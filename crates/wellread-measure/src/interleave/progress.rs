//! The information of a running plan for closures and callbacks.

use std::time::Duration;

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

/// The information for the progress callback.
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
    /// The time that is left at the pace so far and within the budget; unknown until a turn is done.
    pub remaining: Option<Duration>,
    /// The event.
    pub event: Event<'a>,
}

/// The event of a [`Progress`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// The turn begins.
    Started,
    /// The turn ended after so many seconds.
    Finished(f64),
    /// The variant failed with this message.
    Failed(&'a str),
}

/// The answer of the progress callback: `()` counts as [`Flow::Continue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// End the plan now; the measurements so far are returned.
    Stop,
}

impl From<()> for Flow {
    fn from((): ()) -> Self {
        Self::Continue
    }
}
