//! The work of each thread over time: spans in memory, written as a timeline in Chrome's trace format.
//!
//! ```text
//!  span(Kind::Read) ── off: one look at an atomic, nothing else
//!        │ on
//!        ▼
//!  clock (a register of the processor) ──▶ buffers: chunks of events, one per thread at a time
//!                                               │ stop()
//!                                               ▼
//!                                         Recorded ──chrome──▶ {"traceEvents": […]}
//! ```
//!
//! There is one recording per process. Code opens a [`span`] for each piece of work to show and drops it at the end;
//! spans of a thread nest. A span costs two looks at the clock and 48 bytes. Nothing is allocated but a chunk of buffer
//! for some hundred events, which threads hand on to each other. [`LIMIT`] events are kept: later ones are dropped and
//! counted, and a long run can spread them over its parts ([`section`], [`part`]).
//!
//! | module | what it holds |
//! |---|---|
//! | `kind` | [`Kind`]: what can be seen, its name and arguments |
//! | `clock` | ticks, and what they are in nanoseconds |
//! | `buffers` | events of all threads |
//! | `chrome` | [`Recorded::write`] |
//! | [`process`] | which process made a file that is not finished, by its name, and whether it runs |
//!
//! ```
//! use wellread_trace::{Kind, span};
//!
//! assert!(wellread_trace::start());
//! {
//!     let mut reading = span(Kind::Read);
//!     reading.set(4096, 0);
//! }
//! let recorded = wellread_trace::stop().unwrap();
//! let mut json = Vec::new();
//! recorded.write(&mut json, &[("command", "an example")]).unwrap();
//! assert!(String::from_utf8(json).unwrap().contains(r#""name":"read""#));
//! ```

mod buffers;
mod chrome;
mod clock;
mod kind;
pub mod process;

pub use buffers::{LIMIT, Part, Recorded, is_recording, part, release_lane, section, start, stop};
pub use kind::Kind;

use buffers::{Event, LEVEL, OFF};
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

/// Something that a thread does, from where this was made to where it is dropped.
#[must_use = "a span ends where it is dropped"]
#[derive(Debug)]
pub struct Span {
    /// 0 where nothing is recorded.
    start: u64,
    args: [u64; 2],
    label: u32,
    kind: Kind,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

/// Begins a span.
#[inline]
pub fn span(kind: Kind) -> Span {
    let level = LEVEL.load(Ordering::Relaxed);
    let start = if level == OFF { 0 } else { buffers::begin(kind, level) };
    Span { start, args: [0; 2], label: 0, kind, thread: PhantomData }
}

/// Begins a span with a name of its own; `name` is called only while a recording is under way.
pub fn labelled(kind: Kind, name: impl FnOnce() -> String) -> Span {
    let mut span = span(kind);
    if span.start != 0 {
        span.label = buffers::label(name());
    }
    span
}

impl Span {
    /// Sets its arguments, which are named by its [`Kind`].
    #[inline]
    pub fn set(&mut self, first: u64, second: u64) {
        self.args = [first, second];
    }

    /// As [`Self::set`], at once.
    #[inline]
    pub fn with(mut self, first: u64, second: u64) -> Self {
        self.args = [first, second];
        self
    }

    /// Forgets it: nothing is recorded.
    #[inline]
    pub fn cancel(mut self) {
        self.start = 0;
    }
}

/// A moment at which something begins that ends elsewhere in the program, such as in another language. The thread it ends on
/// is the one that it is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    /// Now.
    pub fn now() -> Self {
        Self(span(Kind::Step).take())
    }

    /// Ends what began here, under a name of its own.
    pub fn end(self, kind: Kind, name: impl FnOnce() -> String) {
        if self.0 != 0 && is_recording() {
            let label = buffers::label(name());
            drop(Span { start: self.0, args: [0; 2], label, kind, thread: PhantomData });
        }
    }
}

impl Span {
    fn take(mut self) -> u64 {
        std::mem::take(&mut self.start)
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if self.start != 0 {
            let Self { start, args, label, kind, .. } = *self;
            buffers::end(Event { start, end: 0, args, lane: 0, label, kind });
        }
    }
}
