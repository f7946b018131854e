//! Pieces of objects that were asked for ahead, by address: a reader looks here first.
//!
//! ```text
//!  Queued ─▶ Asked ─┬─▶ Here     bytes, and which version of the object they are of
//!     │             ├─▶ Failed   the error, for the first who reads it
//!     │             ├─▶ Left     nobody keeps it; who waits for it asks by itself
//!     │             └─▶ GivenUp  its reader has ended: who is told to stop as well gets an error, all others ask by themselves
//!     └─ a reader comes ─▶ Left  it asks by itself
//! ```

use crate::heads::{Head, Version};
use crate::ranges;
use std::collections::HashMap;
use std::io;
use std::mem;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use wellread_store::place::{self, count_waited};
use wellread_store::process;

/// How long a reader waits for a piece to be asked for that is still in the queue. It is there for no longer than this, unless
/// there is no room for it.
const MAX_QUEUE_WAIT: Duration = Duration::from_millis(20);

/// How often a thread that waits looks whether anybody wants the answer.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that came, with the room that they take.
#[derive(Debug)]
pub(crate) struct FetchedBytes {
    piece: ranges::Piece,
    head: Head,
    _room: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum State {
    Queued,
    Asked,
    Here(Arc<FetchedBytes>),
    Failed(io::Error),
    Left,
    GivenUp,
}

/// The result of a piece.
#[derive(Debug)]
pub(crate) struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

impl Slot {
    fn new() -> Self {
        Self { state: Mutex::new(State::Queued), changed: Condvar::new() }
    }

    /// Takes a piece to be asked for; `None` where a reader has done so.
    pub(crate) fn begin(slot: &Arc<Self>) -> Option<SlotFiller> {
        let mut state = lock(&slot.state);
        if !matches!(*state, State::Queued) {
            return None;
        }
        *state = State::Asked;
        drop(state);
        slot.changed.notify_all();
        Some(SlotFiller(Arc::clone(slot)))
    }

    /// The bytes, once here. `None` where nobody asks for them: then the reader has to.
    fn wait(&self) -> Option<io::Result<Arc<FetchedBytes>>> {
        let begun = Instant::now();
        let got = self.settled();
        count_waited(begun.elapsed());
        got
    }

    fn settled(&self) -> Option<io::Result<Arc<FetchedBytes>>> {
        let stop = place::stop();
        let is_stopped = || stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        let given_up = || io::Error::other("given up, since nobody wants it any more");
        let queued = |state: &mut State| matches!(state, State::Queued);
        let waited = self.changed.wait_timeout_while(lock(&self.state), MAX_QUEUE_WAIT, queued);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                State::Here(here) => return Some(Ok(Arc::clone(here))),
                State::Asked if is_stopped() => return Some(Err(given_up())),
                State::Asked => {}
                // Others may want it: they ask by themselves.
                State::GivenUp => return is_stopped().then(|| Err(given_up())),
                State::Queued | State::Failed(_) | State::Left => {
                    return match mem::replace(&mut *state, State::Left) {
                        State::Failed(error) => Some(Err(error)),
                        _ => None,
                    };
                }
            }
            state = if stop.is_some() {
                self.changed.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Whether somebody who reads it later need not ask again.
    fn is_of_use(&self) -> bool {
        !matches!(*lock(&self.state), State::Left | State::GivenUp)
    }

    /// Tells the waiting threads that the one that asked wants it no more.
    fn give_up(&self) {
        let mut state = lock(&self.state);
        if matches!(*state, State::Queued | State::Asked) {
            *state = State::GivenUp;
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// The duty to fill a slot. Dropped before, as when the request is given up, the slot is left to those who read it.
#[derive(Debug)]
pub(crate) struct SlotFiller(Arc<Slot>);

impl SlotFiller {
    /// Sets the result of the request.
    pub(crate) fn finish(self, got: io::Result<(ranges::Piece, Head)>, room: OwnedSemaphorePermit) {
        let mut state = lock(&self.0.state);
        if matches!(*state, State::Asked) {
            *state = match got {
                Ok((piece, head)) => State::Here(Arc::new(FetchedBytes { piece, head, _room: room })),
                Err(error) => State::Failed(error),
            };
        }
    }
}

impl Drop for SlotFiller {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if matches!(*state, State::Asked) {
            *state = State::Left;
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

/// A range of an object that somebody is going to read.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Where it is found, and by which process.
    all: &'static Pieces,
    process: u32,
    /// The object's address.
    name: Arc<str>,
    range: Range<u64>,
    pub(crate) slot: Arc<Slot>,
    task: OnceLock<AbortHandle>,
}

impl Piece {
    /// A piece that nobody has asked for yet.
    fn new(all: &'static Pieces, name: Arc<str>, range: Range<u64>) -> Self {
        let (slot, process) = (Arc::new(Slot::new()), process::id());
        Self { all, process, name, range, slot, task: OnceLock::new() }
    }

    fn holds(&self, range: &Range<u64>) -> bool {
        self.range.start <= range.start && range.end <= self.range.end
    }

    /// Lets go of a piece; those who wait for it are told, unless others keep it.
    pub(crate) fn give_up(piece: Arc<Self>) {
        if Arc::strong_count(&piece) == 1 {
            piece.slot.give_up();
        }
        drop(piece);
    }

    /// Notes what is given up when nobody wants the piece any more.
    pub(crate) fn runs(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // In a forked process there is neither the task nor, for certain, the lock.
        if self.process != process::id() {
            return;
        }
        if let Some(task) = self.task.get() {
            task.abort();
        }
        self.all.forget_unkept(&self.name);
    }
}

/// Ranges of an object that were asked for, in the order in which they were.
type OfObject = Vec<(Range<u64>, Weak<Piece>)>;

/// All pieces of a process that somebody keeps.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Mutex<HashMap<Arc<str>, OfObject>>);

impl Pieces {
    /// A piece that is found from now on.
    pub(crate) fn add(&'static self, name: &Arc<str>, range: Range<u64>) -> Arc<Piece> {
        let piece = Arc::new(Piece::new(self, Arc::clone(name), range.clone()));
        lock(&self.0).entry(Arc::clone(name)).or_default().push((range, Arc::downgrade(&piece)));
        piece
    }

    /// Forgets the pieces of an object that nobody keeps.
    fn forget_unkept(&self, name: &str) {
        let mut all = lock(&self.0);
        let Some(pieces) = all.get_mut(name) else { return };
        pieces.retain(|(_, piece)| piece.strong_count() > 0);
        if pieces.is_empty() {
            all.remove(name);
        }
    }

    /// Those pieces of an object that touch a range.
    fn touching(&self, name: &str, range: &Range<u64>) -> Vec<Arc<Piece>> {
        let all = lock(&self.0);
        let Some(pieces) = all.get(name) else { return vec![] };
        // To be dropped without the lock.
        let touching = pieces.iter().filter(|(of, _)| of.start < range.end && range.start < of.end);
        touching.filter_map(|(_, piece)| piece.upgrade()).collect()
    }

    /// Pieces that hold parts of a range, in order, and the parts that none holds.
    pub(crate) fn cover(&self, name: &str, range: &Range<u64>) -> (Vec<Arc<Piece>>, Vec<Range<u64>>) {
        let mut pieces = self.touching(name, range);
        pieces.retain(|piece| piece.slot.is_of_use());
        // One alone, the first that was asked for: it is here first.
        if let Some(at) = pieces.iter().position(|piece| piece.holds(range)) {
            return (vec![pieces.swap_remove(at)], vec![]);
        }
        pieces.sort_by_key(|piece| piece.range.start);
        let (mut held, mut missing, mut at) = (vec![], vec![], range.start);
        for piece in pieces {
            if at >= range.end || piece.range.end <= at {
                continue;
            }
            if piece.range.start > at {
                missing.push(at..piece.range.start);
            }
            at = piece.range.end;
            held.push(piece);
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        (held, missing)
    }

    /// Fills `buffer` with the bytes of this version of an object from `offset` on, if all of them were asked for. `None` where they
    /// were not: the reader asks by itself, also where they are of another version, so that the server says so.
    pub(crate) fn read(
        &self,
        name: &str,
        version: &Version,
        offset: u64,
        buffer: &mut [u8],
    ) -> Option<io::Result<()>> {
        let end = offset.checked_add(buffer.len() as u64)?;
        let (pieces, missing) = self.cover(name, &(offset..end));
        if pieces.is_empty() || !missing.is_empty() {
            return None;
        }
        // Not kept while they are waited for: so they are given up when those let them go who do.
        let slots: Vec<_> =
            pieces.into_iter().map(|piece| (piece.range.end, Arc::clone(&piece.slot))).collect();
        let (mut at, mut rest) = (offset, buffer);
        for (end, slot) in slots {
            let here = match slot.wait()? {
                Ok(here) => here,
                Err(error) => return Some(Err(error)),
            };
            if !version.is(&here.head.version) {
                return None;
            }
            let n = rest.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let (now, later) = mem::take(&mut rest).split_at_mut(n);
            if !ranges::copy(std::slice::from_ref(&here.piece), at, now) {
                return None;
            }
            (at, rest) = (at + n as u64, later);
        }
        Some(Ok(()))
    }

    /// The facts of an object, if some of it was asked for: waits for the answer.
    pub(crate) fn head(&self, name: &str) -> Option<io::Result<Head>> {
        self.answer(name, &(0..u64::MAX))
    }

    /// As [`Self::head`], if some of this range was asked for.
    pub(crate) fn answer(&self, name: &str, range: &Range<u64>) -> Option<io::Result<Head>> {
        let mut pieces = self.touching(name, range).into_iter();
        let slot = pieces.find(|piece| piece.slot.is_of_use()).map(|piece| Arc::clone(&piece.slot))?;
        drop(pieces);
        Some(slot.wait()?.map(|here| here.head.clone()))
    }

    /// Objects of which something is kept.
    #[cfg(test)]
    pub(crate) fn objects(&self) -> usize {
        lock(&self.0).len()
    }
}

#[cfg(test)]
mod tests;
