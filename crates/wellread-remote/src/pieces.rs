//! Pieces of objects that were asked for ahead, by address: who reads looks here first.
//!
//! ```text
//!  Queued ─▶ Asked ─┬─▶ Here     bytes, and which version of the object they are of
//!     │             ├─▶ Failed   the error, for the first who reads it
//!     │             ├─▶ Left     nobody keeps it; who waits for it asks by itself
//!     │             └─▶ GivenUp  nor does anybody want it; who waits for it is told so
//!     └─ a reader comes ─▶ Left  it asks by itself
//! ```

use crate::heads::{Head, Version};
use crate::ranges;
use std::collections::HashMap;
use std::io;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use wellread_store::place::count_waited;
use wellread_store::process;

/// How long a reader waits for a piece to be asked for that is still in the queue. It is there for no longer than this, unless
/// there is no room for it.
const PATIENCE: Duration = Duration::from_millis(20);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that came, with the room that they take.
#[derive(Debug)]
pub(crate) struct Here {
    piece: ranges::Piece,
    head: Head,
    _room: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum State {
    Queued,
    Asked,
    Here(Arc<Here>),
    Failed(io::Error),
    Left,
    GivenUp,
}

/// What became of a piece.
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
    pub(crate) fn begin(slot: &Arc<Self>) -> Option<Filling> {
        let mut state = lock(&slot.state);
        if !matches!(*state, State::Queued) {
            return None;
        }
        *state = State::Asked;
        drop(state);
        slot.changed.notify_all();
        Some(Filling(Arc::clone(slot)))
    }

    /// The bytes, once here. `None` where nobody asks for them: then the reader has to.
    fn wait(&self) -> Option<io::Result<Arc<Here>>> {
        let begun = Instant::now();
        let got = self.settled();
        count_waited(begun.elapsed());
        got
    }

    fn settled(&self) -> Option<io::Result<Arc<Here>>> {
        let queued = |state: &mut State| matches!(state, State::Queued);
        let waited = self.changed.wait_timeout_while(lock(&self.state), PATIENCE, queued);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                State::Here(here) => return Some(Ok(Arc::clone(here))),
                State::Asked => {}
                State::GivenUp => {
                    return Some(Err(io::Error::other("given up, since nobody wants it any more")));
                }
                State::Queued | State::Failed(_) | State::Left => {
                    return match mem::replace(&mut *state, State::Left) {
                        State::Failed(error) => Some(Err(error)),
                        _ => None,
                    };
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether somebody who reads it later need not ask again.
    fn is_of_use(&self) -> bool {
        !matches!(*lock(&self.state), State::Left | State::GivenUp)
    }

    /// Tells those who wait that nobody asks any more.
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
pub(crate) struct Filling(Arc<Slot>);

impl Filling {
    /// What the request has come to.
    pub(crate) fn finish(self, got: io::Result<(ranges::Piece, Head)>, room: OwnedSemaphorePermit) {
        let mut state = lock(&self.0.state);
        if matches!(*state, State::Asked) {
            *state = match got {
                Ok((piece, head)) => State::Here(Arc::new(Here { piece, head, _room: room })),
                Err(error) => State::Failed(error),
            };
        }
    }
}

impl Drop for Filling {
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
        self.all.tidy(&self.name);
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
    fn tidy(&self, name: &str) {
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

    /// What an object is, if some of it was asked for: waits for the answer.
    pub(crate) fn head(&self, name: &str) -> Option<io::Result<Head>> {
        let mut pieces = self.touching(name, &(0..u64::MAX)).into_iter();
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
mod tests {
    use super::*;
    use bytes::Bytes;
    use tokio::sync::Semaphore;

    fn pieces() -> &'static Pieces {
        Box::leak(Box::default())
    }

    fn version() -> Version {
        Version::new(Some("a".into()), 1)
    }

    /// Answers with bytes that are as large as their offset.
    fn fill(piece: &Arc<Piece>) {
        let Range { start, end } = piece.range;
        let chunks = vec![(start..end).map(|at| at as u8).collect::<Vec<_>>().into()];
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let head = Head { length: 100, version: version() };
        Slot::begin(&piece.slot).unwrap().finish(Ok((ranges::Piece { start, chunks }, head)), room);
    }

    #[test]
    fn bytes_are_read_over_the_borders_of_pieces_and_only_where_all_are_there() {
        let (all, name) = (pieces(), Arc::from("s3://b/k"));
        let two = [all.add(&name, 20..30), all.add(&name, 10..20)];
        for piece in &two {
            fill(piece);
        }
        let mut bytes = [0; 12];
        all.read(&name, &version(), 15, &mut bytes).unwrap().unwrap();
        assert_eq!(bytes, std::array::from_fn::<u8, 12, _>(|i| 15 + i as u8));
        assert!(all.read(&name, &version(), 5, &mut bytes).is_none());
        assert!(all.read(&name, &version(), 25, &mut bytes).is_none());
        let other = Version::new(Some("b".into()), 1);
        assert!(all.read(&name, &other, 15, &mut bytes).is_none());
        assert_eq!(all.head(&name).unwrap().unwrap().length, 100);
        let (held, missing) = all.cover(&name, &(0..40));
        assert_eq!((held.len(), missing), (2, vec![0..10, 30..40]));
        drop((held, two));
        assert_eq!(all.objects(), 0, "what nobody keeps is forgotten");
        assert!(all.head(&name).is_none());
    }

    #[test]
    fn an_error_is_told_once_and_who_reads_then_asks_again() {
        let (all, name) = (pieces(), Arc::from("s3://b/k"));
        let piece = all.add(&name, 0..10);
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        Slot::begin(&piece.slot).unwrap().finish(Err(io::ErrorKind::NotFound.into()), room);
        let mut bytes = [0; 10];
        let error = all.read(&name, &version(), 0, &mut bytes).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(all.read(&name, &version(), 0, &mut bytes).is_none());
    }

    #[test]
    fn what_is_given_up_or_has_no_room_is_left_to_the_reader() {
        let (all, name) = (pieces(), Arc::from("s3://b/k"));
        let (given_up, queued) = (all.add(&name, 0..10), all.add(&name, 10..20));
        drop(Slot::begin(&given_up.slot).unwrap());
        let mut bytes = [0; 10];
        assert!(all.read(&name, &version(), 0, &mut bytes).is_none());
        assert!(all.read(&name, &version(), 10, &mut bytes).is_none());
        assert!(Slot::begin(&queued.slot).is_none(), "the reader has asked for it");
        // So it is asked for anew by who wants it next.
        assert_eq!(all.cover(&name, &(0..20)).1, std::slice::from_ref(&(0..20)));
    }

    #[test]
    fn who_waits_is_told_when_all_is_given_up() {
        let (all, name) = (pieces(), Arc::from("s3://b/k"));
        let (one, two) = (all.add(&name, 0..10), all.add(&name, 10..20));
        let (slot, kept) = (Arc::clone(&one.slot), Arc::clone(&two));
        let filling = Slot::begin(&slot).unwrap();
        Piece::give_up(one);
        assert!(slot.wait().unwrap().unwrap_err().to_string().contains("given up"));
        drop(filling);
        assert!(slot.wait().unwrap().is_err(), "for good");
        Piece::give_up(two);
        assert!(kept.slot.is_of_use(), "somebody else wants it");
    }

    #[test]
    fn a_reader_waits_for_what_is_on_its_way() {
        let (all, name) = (pieces(), Arc::from("s3://b/k"));
        let piece = all.add(&name, 0..10);
        let filling = Slot::begin(&piece.slot).unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 10];
            all.read("s3://b/k", &version(), 0, &mut bytes).map(|read| read.map(|()| bytes))
        });
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let came = ranges::Piece { start: 0, chunks: vec![Bytes::from_static(&[7; 10])] };
        filling.finish(Ok((came, Head { length: 10, version: version() })), room);
        assert_eq!(reader.join().unwrap().unwrap().unwrap(), [7; 10]);
    }
}
