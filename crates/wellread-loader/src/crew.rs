//! Threads that read for a loader: an iteration's are kept for the next one, if that begins soon.
//!
//! An epoch of small images takes less than a millisecond, of which starting and joining threads was a tenth. Between
//! iterations a thread sleeps, holds nothing, and ends by itself after [`IDLE`], with the loader, or before the process is
//! forked.
//!
//! ```text
//!   start(i) ──▶ free: thread i ──post──▶ work() ──▶ back to free ──▶ its task has ended ──▶ IDLE later: the thread, too
//!         └────▶ none: a new thread ─────────▲
//! ```

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;
use wellread_store::process::{self, Thread};

/// How long a thread waits for the next iteration.
const IDLE: Duration = Duration::from_millis(100);

/// The threads of one loader.
pub(crate) struct Crew {
    roster: Arc<Mutex<Roster>>,
    /// The process whose threads these are.
    process: u32,
    idle: Duration,
}

#[derive(Default)]
struct Roster {
    free: Vec<Free>,
    /// All threads that nobody has joined.
    threads: Vec<Thread>,
}

/// A thread that has nothing to do.
struct Free {
    index: usize,
    id: ThreadId,
    post: Arc<Handover<Message>>,
}

enum Message {
    Work(Job),
    End,
}

struct Job {
    work: Box<dyn FnOnce() + Send>,
    ended: Ending,
}

/// Tells that a task has ended when it is dropped, also in a panic.
struct Ending(Arc<Handover<()>>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.put(());
    }
}

/// Work that was given to a thread.
pub(crate) struct Task(Arc<Handover<()>>);

impl Task {
    /// Waits until it has ended, and with it all that the work held.
    pub(crate) fn wait(self) {
        self.0.take(None);
    }
}

/// What one thread leaves for another.
struct Handover<T> {
    value: Mutex<Option<T>>,
    there: Condvar,
}

impl<T> Handover<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self { value: Mutex::new(None), there: Condvar::new() })
    }

    fn put(&self, value: T) {
        *lock(&self.value) = Some(value);
        self.there.notify_one();
    }

    /// Waits for it; `None` when it does not come in time.
    fn take(&self, within: Option<Duration>) -> Option<T> {
        let value = lock(&self.value);
        let is_empty = |value: &mut Option<T>| value.is_none();
        let mut value = match within {
            Some(time) => {
                let waited = self.there.wait_timeout_while(value, time, is_empty);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.there.wait_while(value, is_empty).unwrap_or_else(PoisonError::into_inner),
        };
        value.take()
    }
}

/// Locks. No code that can panic runs under the locks of threads; should it, the state is still the best there is.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Crew {
    pub(crate) fn new() -> Self {
        Self::waiting(IDLE)
    }

    /// Of threads that wait so long.
    fn waiting(idle: Duration) -> Self {
        let roster = Arc::default();
        #[cfg(unix)]
        forks::register(&roster);
        Self { roster, process: process::id(), idle }
    }

    /// Has thread `index`, named so, do the work. Only in the process that made the crew.
    ///
    /// # Errors
    /// There was none, and it cannot be started.
    pub(crate) fn start(&self, index: usize, work: impl FnOnce() + Send + 'static) -> io::Result<Task> {
        let ended = Handover::new();
        let job = Job { work: Box::new(work), ended: Ending(Arc::clone(&ended)) };
        let mut roster = lock(&self.roster);
        if let Some(at) = roster.free.iter().position(|free| free.index == index) {
            roster.free.swap_remove(at).post.put(Message::Work(job));
        } else {
            let (own, idle) = (Arc::clone(&self.roster), self.idle);
            let builder = thread::Builder::new().name(format!("wellread-{index}"));
            let thread = Thread::start(builder, move || live(&own, index, idle, job))?;
            roster.ended().for_each(Thread::join);
            roster.threads.push(thread);
        }
        Ok(Task(ended))
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // A forked process has not the threads, and who holds the lock may be one of them.
        if self.process == process::id() {
            dismiss(&self.roster);
        }
    }
}

impl Roster {
    /// Takes out the threads that have ended by themselves; to join them takes no time.
    fn ended(&mut self) -> impl Iterator<Item = Thread> {
        self.threads.extract_if(.., |thread| thread.is_finished())
    }
}

/// Ends the threads that have nothing to do, and waits until they and those that have ended by themselves are gone.
fn dismiss(roster: &Mutex<Roster>) {
    let mut roster = lock(roster);
    let mut gone: Vec<_> = roster.ended().collect();
    for free in std::mem::take(&mut roster.free) {
        free.post.put(Message::End);
        let thread = roster.threads.iter().position(|thread| thread.id() == free.id);
        gone.extend(thread.map(|at| roster.threads.swap_remove(at)));
    }
    drop(roster);
    gone.into_iter().for_each(Thread::join);
}

/// A thread's life.
fn live(roster: &Mutex<Roster>, index: usize, idle: Duration, mut job: Job) {
    let (post, id) = (Handover::new(), thread::current().id());
    loop {
        let Job { work, ended } = job;
        work();
        wellread_trace::leave();
        lock(roster).free.push(Free { index, id, post: Arc::clone(&post) });
        // After that: who waits for this may begin the next iteration at once.
        drop(ended);
        let message = post.take(Some(idle)).or_else(|| {
            let free = &mut lock(roster).free;
            let at = free.iter().position(|free| free.id == id)?;
            free.swap_remove(at);
            Some(Message::End)
        });
        // Else it was taken just now, so something comes.
        match message.or_else(|| post.take(None)) {
            Some(Message::Work(next)) => job = next,
            Some(Message::End) | None => return,
        }
    }
}

/// A process forks without threads that have nothing to do: where one ends at that moment, the child may find a lock of the
/// runtime closed, and an interpreter that forks warns of every thread.
#[cfg(unix)]
mod forks {
    use super::{Arc, Mutex, MutexGuard, Roster, dismiss, lock};
    use std::cell::Cell;
    use std::sync::{Once, Weak};

    type Rosters = Vec<Weak<Mutex<Roster>>>;

    /// The crews of this process.
    static ALL: Mutex<Rosters> = Mutex::new(vec![]);

    thread_local! {
        /// Held while this thread forks, so that the child has the lock open.
        static HELD: Cell<Option<MutexGuard<'static, Rosters>>> = const { Cell::new(None) };
    }

    pub fn register(roster: &Arc<Mutex<Roster>>) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the functions take and free locks and memory and wait for threads, which may be done there; in the child,
            // the lock is freed that its only thread holds. Without memory for it, forks find threads.
            let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
        let mut all = lock(&ALL);
        all.retain(|crew| crew.strong_count() > 0);
        all.push(Arc::downgrade(roster));
    }

    extern "C" fn before() {
        let all = lock(&ALL);
        for roster in all.iter().filter_map(Weak::upgrade) {
            dismiss(&roster);
        }
        // A thread that ends itself may fork, but has no such place any more.
        let _ = HELD.try_with(|held| held.set(Some(all)));
    }

    extern "C" fn in_parent() {
        let _ = HELD.try_with(Cell::take);
    }

    extern "C" fn in_child() {
        let all = HELD.try_with(Cell::take);
        // None of them is here.
        if let Ok(Some(mut all)) = all {
            all.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const MINUTES: Duration = Duration::from_mins(5);

    #[test]
    fn a_thread_serves_again() {
        let crew = Crew::waiting(MINUTES);
        let run = |index| {
            let (send, seen) = channel();
            crew.start(index, move || send.send(thread::current().id()).unwrap()).unwrap().wait();
            seen.recv().unwrap()
        };
        let first = run(0);
        assert_eq!(run(0), first, "the thread that is free");
        assert_ne!(run(1), first, "another index is another thread");
        assert_eq!(lock(&crew.roster).free.len(), 2);
        dismiss(&crew.roster);
        assert!(lock(&crew.roster).free.is_empty() && lock(&crew.roster).threads.is_empty());
        assert_ne!(run(0), first, "a new one");
    }

    #[test]
    fn threads_end_when_nothing_comes() {
        let crew = Crew::waiting(Duration::from_millis(1));
        crew.start(0, || {}).unwrap().wait();
        while !lock(&crew.roster).threads[0].is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(lock(&crew.roster).free.is_empty());
    }

    #[test]
    fn threads_that_are_busy_are_not_asked_and_a_crew_that_is_dropped_has_none() {
        let crew = Crew::waiting(Duration::from_millis(1));
        let (go, wait) = channel::<()>();
        let busy = crew.start(0, move || wait.recv().unwrap()).unwrap();
        // The same index, while the first is at work: two iterations of a loader at once.
        crew.start(0, || {}).unwrap().wait();
        let roster = Arc::downgrade(&crew.roster);
        drop(crew);
        go.send(()).unwrap();
        busy.wait();
        // The last of them ends by itself.
        while roster.strong_count() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_task_ends_in_a_panic_too_and_its_thread_with_it() {
        let crew = Crew::waiting(MINUTES);
        crew.start(0, || panic!("as asked")).unwrap().wait();
        assert!(lock(&crew.roster).free.is_empty());
        crew.start(0, || {}).unwrap().wait();
    }

    #[cfg(all(unix, not(miri)))]
    #[test]
    fn a_process_forks_without_threads_that_have_nothing_to_do() {
        let crew = Crew::waiting(MINUTES);
        crew.start(0, || {}).unwrap().wait();
        assert_eq!(lock(&crew.roster).free.len(), 1);
        // SAFETY: the child ends at once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: it ends the process without what the parent has registered.
            unsafe { libc::_exit(0) };
        }
        let mut status = -1;
        // SAFETY: the child is this process's, and the status may be written to.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        let roster = lock(&crew.roster);
        assert!(roster.free.is_empty() && roster.threads.is_empty(), "it was waited for");
    }
}
