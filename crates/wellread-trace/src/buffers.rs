//! Events of all threads.
//!
//! A thread writes to a chunk of its own and publishes each event by the chunk's length. So a recording can be
//! ended from any thread while others go on. A thread that ends leaves its chunk to the next, and its lane (the line of
//! the timeline that it is drawn in). So the threads of a hundred epochs are drawn as those of one.
//!
//! Long because chunks, threads and the lock that they share are one argument. It is why an event is written by one thread only, and
//! read when it changes no more.

use crate::Kind;
use crate::clock::{self, Anchor};
use std::cell::{RefCell, UnsafeCell};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Events that a recording keeps, about: some 48 MiB of memory, and twice as much of a file.
pub const LIMIT: usize = 1 << 20;

/// The level of recording: nothing, spans without details, everything.
pub(crate) static LEVEL: AtomicU8 = AtomicU8::new(OFF);
pub(crate) const OFF: u8 = 0;
const WITHOUT_DETAILS: u8 = 1;
const ALL: u8 = 2;

/// Counts recordings, so that a thread knows whether its chunk is of the present one.
static RECORDING: AtomicU64 = AtomicU64::new(0);
/// Spans that were not recorded for want of room.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Events of a chunk.
const CHUNK: usize = 256;

/// A span that has ended, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) args: [u64; 2],
    pub(crate) lane: u32,
    /// Its own name: an index from 1 on; 0 for none.
    pub(crate) label: u32,
    pub(crate) kind: Kind,
}

/// Events, written by one thread at a time and read by any.
struct Chunk {
    events: Box<[UnsafeCell<MaybeUninit<Event>>]>,
    /// So many are written and change no more.
    length: AtomicUsize,
}

// SAFETY: an event is written once, by the thread that has the chunk, before the length says that it is there. A
// reader looks at the length first. Chunks go from thread to thread under a lock.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new() -> Self {
        let events = std::iter::repeat_with(|| UnsafeCell::new(MaybeUninit::uninit())).take(CHUNK).collect();
        Self { events, length: AtomicUsize::new(0) }
    }

    fn is_full(&self) -> bool {
        self.length.load(Ordering::Relaxed) == CHUNK
    }

    /// Appends an event, for which there is room.
    ///
    /// # Safety
    /// The chunk is the calling thread's.
    unsafe fn push(&self, event: Event) {
        let length = self.length.load(Ordering::Relaxed);
        // SAFETY: nobody reads beyond the length, and nobody else writes.
        unsafe { (*self.events[length].get()).write(event) };
        self.length.store(length + 1, Ordering::Release);
    }

    fn events(&self) -> impl Iterator<Item = Event> {
        let written = &self.events[..self.length.load(Ordering::Acquire)];
        // SAFETY: events below the length are written and change no more.
        written.iter().map(|event| unsafe { (*event.get()).assume_init() })
    }
}

/// A line of the timeline.
struct Lane {
    name: String,
    /// Whether a thread has it.
    taken: bool,
    /// The tick from which on no thread has had it.
    left: u64,
}

/// The state that threads share.
struct Recording {
    number: u64,
    begun: Anchor,
    clock_cost: f64,
    chunks: Vec<Arc<Chunk>>,
    /// Those of threads that have ended, with room left.
    spare: Vec<Arc<Chunk>>,
    lanes: Vec<Lane>,
    labels: Vec<String>,
    /// Events that there is room for in all chunks.
    room: usize,
    /// Where the present section and the present part of it end, in such events.
    section: usize,
    part: usize,
}

static CURRENT: Mutex<Option<Recording>> = Mutex::new(None);

/// Whether this process was forked from one that recorded. It records nothing, and keeps off the lock, which a thread may
/// have held that exists in the other process only.
static FORKED: AtomicBool = AtomicBool::new(false);

fn current() -> Option<MutexGuard<'static, Option<Recording>>> {
    let own = !FORKED.load(Ordering::Relaxed);
    own.then(|| CURRENT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Makes processes that are forked from this one record nothing.
fn disable_in_forks() {
    #[cfg(unix)]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        extern "C" fn forked() {
            LEVEL.store(OFF, Ordering::Relaxed);
            FORKED.store(true, Ordering::Relaxed);
        }
        ONCE.call_once(|| {
            // SAFETY: the called function does nothing but write to two atomics. Without memory for it, forks record in
            // vain.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
    }
}

/// The state of a thread.
struct ThreadState {
    recording: u64,
    /// Its lane in that recording.
    lane: Option<usize>,
    chunk: Option<Arc<Chunk>>,
}

thread_local! {
    static LOCAL: RefCell<ThreadState> = const { RefCell::new(ThreadState::NEW) };
}

/// Leaves the calling thread's line of the timeline to the next thread of its name, as a thread that ends does. It is for one
/// that is kept for other work.
pub fn release_lane() {
    let _ = LOCAL.try_with(|local| drop(local.replace(ThreadState::NEW)));
}

impl Drop for ThreadState {
    fn drop(&mut self) {
        let (Some(lane), chunk) = (self.lane, self.chunk.take()) else { return };
        let Some(mut current) = current() else { return };
        if let Some(recording) = current.as_mut().filter(|recording| recording.number == self.recording) {
            (recording.lanes[lane].taken, recording.lanes[lane].left) = (false, clock::ticks());
            recording.spare.extend(chunk.filter(|chunk| !chunk.is_full()));
        }
    }
}

impl ThreadState {
    const NEW: Self = Self { recording: 0, lane: None, chunk: None };

    /// Takes a lane of the present recording that no thread has had since a tick, unless it has one. The first span
    /// takes it when it begins, so that no other thread is given it while that is open.
    #[inline]
    fn ensure_joined(&mut self, since: u64) {
        if self.recording != RECORDING.load(Ordering::Relaxed) {
            self.join(since);
        }
    }

    #[cold]
    fn join(&mut self, since: u64) {
        let mut current = current();
        let Some(recording) = current.as_deref_mut().and_then(Option::as_mut) else { return };
        if self.recording != recording.number {
            self.lane = Some(recording.lane(std::thread::current().name().unwrap_or("thread"), since));
            self.recording = recording.number;
            self.chunk = recording.spare.pop();
        }
    }

    /// A chunk of the present recording with room in it, and the lane; `None` where there is no recording or no room.
    /// It is for a span that began at a tick, which may have been in another thread.
    fn chunk(&mut self, begun: u64) -> Option<(&Chunk, usize)> {
        self.ensure_joined(begun);
        if self.chunk.as_ref().is_none_or(|chunk| chunk.is_full()) {
            self.next_chunk();
        }
        let chunk = self.chunk.as_deref().filter(|chunk| !chunk.is_full())?;
        Some((chunk, self.lane?))
    }

    #[cold]
    fn next_chunk(&mut self) {
        let mut current = current();
        let Some(recording) = current.as_deref_mut().and_then(Option::as_mut) else {
            self.chunk = None;
            return;
        };
        // Another has begun since: this span is none of it.
        if self.recording != recording.number {
            return;
        }
        match recording.grow() {
            Some(chunk) => self.chunk = Some(chunk),
            // Counted while the recording cannot end: a span that ends after it is no span of the next one.
            None => {
                DROPPED.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Recording {
    fn lane(&mut self, name: &str, since: u64) -> usize {
        let is_free = |lane: &Lane| !lane.taken && lane.left <= since && lane.name == name;
        if let Some(free) = self.lanes.iter().position(is_free) {
            self.lanes[free].taken = true;
            return free;
        }
        self.lanes.push(Lane { name: name.to_owned(), taken: true, left: 0 });
        self.lanes.len() - 1
    }

    /// Another chunk, unless even spans without details are too many by now.
    fn grow(&mut self) -> Option<Arc<Chunk>> {
        if self.room >= 2 * LIMIT {
            return None;
        }
        let chunk = Arc::new(Chunk::new());
        self.chunks.push(Arc::clone(&chunk));
        self.room += CHUNK;
        self.set_level();
        Some(chunk)
    }

    fn set_level(&self) {
        // The chunk that was given out last is for this part, too.
        LEVEL.store(if self.room <= self.part { ALL } else { WITHOUT_DETAILS }, Ordering::Relaxed);
    }
}

/// The tick at which a span begins; 0 where it is not recorded.
#[inline]
pub(crate) fn begin(kind: Kind, level: u8) -> u64 {
    if level < ALL && kind.is_detail() {
        DROPPED.fetch_add(1, Ordering::Relaxed);
        return 0;
    }
    // A thread that is ending has no lane any more.
    let _ = LOCAL.try_with(|local| local.borrow_mut().ensure_joined(u64::MAX));
    clock::ticks()
}

/// Records a span that ends now.
#[inline(never)]
pub(crate) fn end(event: Event) {
    let end = clock::ticks();
    // A thread that is ending has nothing left to write to.
    let _ = LOCAL.try_with(|local| {
        let mut local = local.borrow_mut();
        if let Some((chunk, lane)) = local.chunk(event.start) {
            // SAFETY: the chunk is this thread's until it ends, and has room.
            unsafe { chunk.push(Event { end, lane: lane as u32, ..event }) }
        }
    });
}

/// The index of a name; 0, which is none, where nothing is recorded any more.
pub(crate) fn label(name: String) -> u32 {
    let mut current = current();
    let Some(recording) = current.as_deref_mut().and_then(Option::as_mut) else { return 0 };
    let known = recording.labels.iter().position(|known| *known == name);
    let index = known.unwrap_or_else(|| {
        recording.labels.push(name);
        recording.labels.len() - 1
    });
    index as u32 + 1
}

/// Begins the recording of this process. `false`, and nothing is changed, where one is under way, or was under way in the
/// process that this one was forked from.
pub fn start() -> bool {
    let Some(mut current) = current().filter(|current| current.is_none()) else { return false };
    disable_in_forks();
    clock::choose();
    let clock_cost = clock::cost();
    let number = RECORDING.load(Ordering::Relaxed) + 1;
    let recording = Recording {
        number,
        begun: Anchor::now(),
        clock_cost,
        chunks: vec![],
        spare: vec![],
        lanes: vec![],
        labels: vec![],
        room: 0,
        section: LIMIT,
        part: LIMIT,
    };
    DROPPED.store(0, Ordering::Relaxed);
    RECORDING.store(number, Ordering::Relaxed);
    recording.set_level();
    *current = Some(recording);
    true
}

/// Whether a recording is under way.
pub fn is_recording() -> bool {
    LEVEL.load(Ordering::Relaxed) != OFF
}

/// Says that one of `left` equal sections of the run begins: it gets its share of the room that is left.
pub fn section(left: usize) {
    if let Some(recording) = current().as_deref_mut().and_then(Option::as_mut) {
        recording.section = share(recording.room, LIMIT, left);
        recording.part = recording.section;
        recording.set_level();
    }
}

/// Says that one of `left` equal parts of the section begins: it gets its share of the room that is left to the section.
/// The part ends where the returned value is dropped, which reports the spans that were dropped meanwhile.
pub fn part(left: usize) -> Part {
    if let Some(recording) = current().as_deref_mut().and_then(Option::as_mut) {
        recording.part = share(recording.room, recording.section, left);
        recording.set_level();
    }
    Part { dropped: DROPPED.load(Ordering::Relaxed) }
}

/// The end of the first of `left` shares of what is between `from` and `to`; 0 where nothing is. Chunks are whole, so a
/// small share is rounded up, and the last parts pay for it.
fn share(from: usize, to: usize, left: usize) -> usize {
    match to.checked_sub(from) {
        None | Some(0) => 0,
        Some(between) => {
            from + (between / left.max(1)).next_multiple_of(CHUNK).clamp(CHUNK, between.max(CHUNK))
        }
    }
}

/// A part of a section: [`part`].
#[derive(Debug)]
pub struct Part {
    dropped: u64,
}

impl Part {
    /// Spans that were dropped since it began.
    pub fn dropped(&self) -> u64 {
        DROPPED.load(Ordering::Relaxed).saturating_sub(self.dropped)
    }
}

/// Ends the recording; `None` where there is none. Spans that are open go unrecorded.
pub fn stop() -> Option<Recorded> {
    let (recording, dropped) = {
        let mut current = current()?;
        LEVEL.store(OFF, Ordering::Relaxed);
        (current.take()?, DROPPED.load(Ordering::Relaxed))
    };
    let ended = recording.begun.later();
    let to_nanoseconds = recording.begun.scale(ended);
    let of_chunk = |chunk: &Arc<Chunk>| chunk.events().collect::<Vec<_>>();
    let mut events: Vec<Event> = recording.chunks.iter().flat_map(of_chunk).collect();
    // A span that was open before this recording began is of the one before; one that ended since then is not of this one.
    events.retain(|event| event.start >= recording.begun.ticks && event.end <= ended.ticks);
    for event in &mut events {
        (event.start, event.end) = (to_nanoseconds(event.start), to_nanoseconds(event.end));
    }
    // A thread whose spans were all cancelled or open has no line.
    let mut lines = vec![None; recording.lanes.len()];
    for event in &events {
        lines[event.lane as usize] = Some(0);
    }
    for (line, shown) in lines.iter_mut().flatten().zip(0..) {
        *line = shown;
    }
    for event in &mut events {
        event.lane = lines[event.lane as usize].unwrap_or_default();
    }
    // Outer spans before those in them.
    events.sort_unstable_by_key(|event| (event.lane, event.start, std::cmp::Reverse(event.end)));
    // Several threads of a name that lived at the same time are numbered.
    let mut lanes: Vec<String> = Vec::new();
    let mut named: Vec<String> = Vec::new();
    for (lane, _) in recording.lanes.into_iter().zip(lines).filter(|(_, line)| line.is_some()) {
        let before = named.iter().filter(|name| **name == lane.name).count();
        lanes.push(if before == 0 { lane.name.clone() } else { format!("{} ({})", lane.name, before + 1) });
        named.push(lane.name);
    }
    Some(Recorded {
        events,
        lanes,
        labels: recording.labels,
        seconds: to_nanoseconds(ended.ticks) as f64 / 1e9,
        dropped,
        clock: clock::name(),
        clock_cost: recording.clock_cost,
    })
}

/// A recording that has ended.
#[derive(Debug)]
pub struct Recorded {
    /// By lane and start, in nanoseconds since the recording began.
    pub(crate) events: Vec<Event>,
    pub(crate) lanes: Vec<String>,
    pub(crate) labels: Vec<String>,
    pub(crate) seconds: f64,
    pub(crate) dropped: u64,
    pub(crate) clock: &'static str,
    pub(crate) clock_cost: f64,
}

impl Recorded {
    /// Number of spans.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is no span.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Spans that were dropped for want of room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How long was recorded.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

/// There is one recording per process, and so per program of tests.
#[cfg(test)]
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[cfg(test)]
mod tests;
