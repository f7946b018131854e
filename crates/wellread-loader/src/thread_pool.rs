//! The thread pool of a loader: the workers of an iteration are kept for the next one, if that begins soon.
//!
//! An epoch of small images takes less than a millisecond, of which starting and joining threads was a tenth. Between
//! iterations a thread is idle: it sleeps, holds nothing, and exits by itself after [`IDLE_TIMEOUT`], with the loader, or
//! before the process is forked.
//!
//! ```text
//!   start(i) ──▶ idle: thread i ──inbox──▶ work() ──▶ back to idle ──▶ its task is done ──▶ IDLE_TIMEOUT: it exits
//!         └────▶ none: a new thread ──────────▲
//! ```

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;
use wellread_store::process::{self, Thread};

/// How long an idle thread waits for the next iteration.
const IDLE_TIMEOUT: Duration = Duration::from_millis(100);

/// The worker threads of one loader.
pub(crate) struct ThreadPool {
    state: Arc<Mutex<ThreadPoolState>>,
    /// The process whose threads these are.
    process: u32,
    idle_timeout: Duration,
}

#[derive(Default)]
struct ThreadPoolState {
    idle: Vec<IdleThread>,
    /// All threads that have not been joined.
    threads: Vec<Thread>,
}

/// A thread without work.
struct IdleThread {
    index: usize,
    id: ThreadId,
    inbox: Arc<OneSlotChannel<Message>>,
}

enum Message {
    Run(Job),
    Exit,
}

struct Job {
    work: Box<dyn FnOnce() + Send>,
    completion: CompletionGuard,
}

/// Signals that a task is done when it is dropped, also when its work panics.
struct CompletionGuard(Arc<OneSlotChannel<()>>);

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        self.0.send(());
    }
}

/// Work that was given to a thread.
pub(crate) struct Task(Arc<OneSlotChannel<()>>);

impl Task {
    /// Waits until it has ended, and with it all that the work held.
    pub(crate) fn wait(self) {
        self.0.receive(None);
    }
}

/// A channel with room for one value: what one thread sends to another.
struct OneSlotChannel<T> {
    value: Mutex<Option<T>>,
    filled: Condvar,
}

impl<T> OneSlotChannel<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self { value: Mutex::new(None), filled: Condvar::new() })
    }

    fn send(&self, value: T) {
        *lock(&self.value) = Some(value);
        self.filled.notify_one();
    }

    /// Waits for the value; `None` when it does not come in time.
    fn receive(&self, timeout: Option<Duration>) -> Option<T> {
        let value = lock(&self.value);
        let is_empty = |value: &mut Option<T>| value.is_none();
        let mut value = match timeout {
            Some(timeout) => {
                let waited = self.filled.wait_timeout_while(value, timeout, is_empty);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.filled.wait_while(value, is_empty).unwrap_or_else(PoisonError::into_inner),
        };
        value.take()
    }
}

/// Locks. No code that can panic runs under the locks of threads; should it, the state is still the best there is.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadPool {
    pub(crate) fn new() -> Self {
        Self::with_idle_timeout(IDLE_TIMEOUT)
    }

    /// A pool whose idle threads exit after this time.
    fn with_idle_timeout(idle_timeout: Duration) -> Self {
        let state = Arc::default();
        #[cfg(unix)]
        fork_handlers::register(&state);
        Self { state, process: process::id(), idle_timeout }
    }

    /// Has worker `index`, whose thread is named so, do the work. Only in the process that made the pool.
    ///
    /// # Errors
    /// There was none, and it cannot be started.
    pub(crate) fn start(&self, index: usize, work: impl FnOnce() + Send + 'static) -> io::Result<Task> {
        let done = OneSlotChannel::new();
        let job = Job { work: Box::new(work), completion: CompletionGuard(Arc::clone(&done)) };
        let mut state = lock(&self.state);
        if let Some(at) = state.idle.iter().position(|thread| thread.index == index) {
            state.idle.swap_remove(at).inbox.send(Message::Run(job));
        } else {
            let (shared, idle_timeout) = (Arc::clone(&self.state), self.idle_timeout);
            let builder = thread::Builder::new().name(format!("wellread-{index}"));
            let thread = Thread::start(builder, move || worker_loop(&shared, index, idle_timeout, job))?;
            state.take_finished().for_each(Thread::join);
            state.threads.push(thread);
        }
        Ok(Task(done))
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // A forked process has not the threads, and who holds the lock may be one of them.
        if self.process == process::id() {
            stop_idle_threads(&self.state);
        }
    }
}

impl ThreadPoolState {
    /// Takes out the threads that have exited by themselves; to join them takes no time.
    fn take_finished(&mut self) -> impl Iterator<Item = Thread> {
        self.threads.extract_if(.., |thread| thread.is_finished())
    }
}

/// Stops the idle threads, and joins them and those that have exited by themselves.
fn stop_idle_threads(state: &Mutex<ThreadPoolState>) {
    let mut state = lock(state);
    let mut finished: Vec<_> = state.take_finished().collect();
    for thread in std::mem::take(&mut state.idle) {
        thread.inbox.send(Message::Exit);
        let handle = state.threads.iter().position(|handle| handle.id() == thread.id);
        finished.extend(handle.map(|at| state.threads.swap_remove(at)));
    }
    drop(state);
    finished.into_iter().for_each(Thread::join);
}

/// What a thread does: job after job, until it has been idle for too long or is told to exit.
fn worker_loop(state: &Mutex<ThreadPoolState>, index: usize, idle_timeout: Duration, mut job: Job) {
    let (inbox, id) = (OneSlotChannel::new(), thread::current().id());
    loop {
        let Job { work, completion } = job;
        work();
        wellread_trace::leave();
        lock(state).idle.push(IdleThread { index, id, inbox: Arc::clone(&inbox) });
        // After that: who waits for this may begin the next iteration at once.
        drop(completion);
        let message = inbox.receive(Some(idle_timeout)).or_else(|| {
            let idle = &mut lock(state).idle;
            let at = idle.iter().position(|thread| thread.id == id)?;
            idle.swap_remove(at);
            Some(Message::Exit)
        });
        // Else it was taken just now, so something comes.
        match message.or_else(|| inbox.receive(None)) {
            Some(Message::Run(next)) => job = next,
            Some(Message::Exit) | None => return,
        }
    }
}

/// A process forks without idle threads: where one ends at that moment, the child may find a lock of the
/// runtime closed, and an interpreter that forks warns of every thread.
#[cfg(unix)]
mod fork_handlers {
    use super::{Arc, Mutex, MutexGuard, ThreadPoolState, lock, stop_idle_threads};
    use std::cell::Cell;
    use std::sync::{Once, Weak};

    type Pools = Vec<Weak<Mutex<ThreadPoolState>>>;

    /// The thread pools of this process.
    static POOLS: Mutex<Pools> = Mutex::new(vec![]);

    thread_local! {
        /// Held while this thread forks, so that the child has the lock open.
        static LOCKED_FOR_FORK: Cell<Option<MutexGuard<'static, Pools>>> = const { Cell::new(None) };
    }

    pub fn register(state: &Arc<Mutex<ThreadPoolState>>) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the functions take and free locks and memory and wait for threads, which may be done there; in the child,
            // the lock is freed that its only thread holds. Without memory for it, forks find threads.
            let _ = unsafe {
                libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child))
            };
        });
        let mut all = lock(&POOLS);
        all.retain(|pool| pool.strong_count() > 0);
        all.push(Arc::downgrade(state));
    }

    extern "C" fn before_fork() {
        let all = lock(&POOLS);
        for state in all.iter().filter_map(Weak::upgrade) {
            stop_idle_threads(&state);
        }
        // A thread that ends itself may fork, but has no such place any more.
        let _ = LOCKED_FOR_FORK.try_with(|held| held.set(Some(all)));
    }

    extern "C" fn after_fork_in_parent() {
        let _ = LOCKED_FOR_FORK.try_with(Cell::take);
    }

    extern "C" fn after_fork_in_child() {
        let all = LOCKED_FOR_FORK.try_with(Cell::take);
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
        let pool = ThreadPool::with_idle_timeout(MINUTES);
        let run = |index| {
            let (send, seen) = channel();
            pool.start(index, move || send.send(thread::current().id()).unwrap()).unwrap().wait();
            seen.recv().unwrap()
        };
        let first = run(0);
        assert_eq!(run(0), first, "the thread that is idle");
        assert_ne!(run(1), first, "another index is another thread");
        assert_eq!(lock(&pool.state).idle.len(), 2);
        stop_idle_threads(&pool.state);
        assert!(lock(&pool.state).idle.is_empty() && lock(&pool.state).threads.is_empty());
        assert_ne!(run(0), first, "a new one");
    }

    #[test]
    fn threads_end_when_nothing_comes() {
        let pool = ThreadPool::with_idle_timeout(Duration::from_millis(1));
        pool.start(0, || {}).unwrap().wait();
        while !lock(&pool.state).threads[0].is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(lock(&pool.state).idle.is_empty());
    }

    #[test]
    fn threads_that_are_busy_are_not_asked_and_a_pool_that_is_dropped_has_none() {
        let pool = ThreadPool::with_idle_timeout(Duration::from_millis(1));
        let (go, wait) = channel::<()>();
        let busy = pool.start(0, move || wait.recv().unwrap()).unwrap();
        // The same index, while the first is at work: two iterations of a loader at once.
        pool.start(0, || {}).unwrap().wait();
        let state = Arc::downgrade(&pool.state);
        drop(pool);
        go.send(()).unwrap();
        busy.wait();
        // The last of them ends by itself.
        while state.strong_count() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_task_ends_in_a_panic_too_and_its_thread_with_it() {
        let pool = ThreadPool::with_idle_timeout(MINUTES);
        pool.start(0, || panic!("as asked")).unwrap().wait();
        assert!(lock(&pool.state).idle.is_empty());
        pool.start(0, || {}).unwrap().wait();
    }

    #[cfg(all(unix, not(miri)))]
    #[test]
    fn a_process_forks_without_threads_that_have_nothing_to_do() {
        let pool = ThreadPool::with_idle_timeout(MINUTES);
        pool.start(0, || {}).unwrap().wait();
        assert_eq!(lock(&pool.state).idle.len(), 1);
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
        let state = lock(&pool.state);
        assert!(state.idle.is_empty() && state.threads.is_empty(), "it was waited for");
    }
}
