//! Threads that read for a loader: an iteration's are kept for the next one, if that begins soon.
//!
//! An epoch of small images takes less than a millisecond, of which starting and joining threads was a tenth. Between
//! iterations a thread sleeps, holds nothing, and ends by itself after [`IDLE`], so that a process that goes on to something
//! else, such as forking, has none of them.
//!
//! ```text
//!   start(i) ──▶ free: thread i ──post──▶ work() ──▶ back to free ──▶ its task has ended ──▶ IDLE later: the thread, too
//!         └────▶ none: a new thread ─────────▲
//! ```

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread waits for the next iteration.
const IDLE: Duration = Duration::from_millis(100);

/// The threads of one loader.
pub(crate) struct Crew {
    free: Arc<Mutex<Vec<Free>>>,
    /// The process whose threads these are.
    process: u32,
}

/// A thread that has nothing to do.
struct Free {
    index: usize,
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

/// No code that can panic runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Crew {
    pub(crate) fn new() -> Self {
        Self { free: Arc::default(), process: wellread_store::process::id() }
    }

    /// Has thread `index`, named so, do the work. Only in the process that made the crew.
    ///
    /// # Errors
    /// There was none, and it cannot be started.
    pub(crate) fn start(&self, index: usize, work: impl FnOnce() + Send + 'static) -> io::Result<Task> {
        let ended = Handover::new();
        let job = Job { work: Box::new(work), ended: Ending(Arc::clone(&ended)) };
        let mut free = lock(&self.free);
        if let Some(at) = free.iter().position(|free| free.index == index) {
            free.swap_remove(at).post.put(Message::Work(job));
        } else {
            drop(free);
            let free = Arc::clone(&self.free);
            let thread = std::thread::Builder::new().name(format!("wellread-{index}"));
            thread.spawn(move || live(&free, index, job))?;
        }
        Ok(Task(ended))
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if self.process != wellread_store::process::id() {
            // A forked process has not the threads, and who holds the lock may be one of them.
            return;
        }
        for thread in lock(&self.free).drain(..) {
            thread.post.put(Message::End);
        }
    }
}

/// A thread's life.
fn live(free: &Mutex<Vec<Free>>, index: usize, mut job: Job) {
    let post = Handover::new();
    loop {
        let Job { work, ended } = job;
        work();
        wellread_trace::leave();
        lock(free).push(Free { index, post: Arc::clone(&post) });
        // After that: who waits for this may begin the next iteration at once.
        drop(ended);
        let message = post.take(Some(IDLE)).or_else(|| {
            let mut free = lock(free);
            let at = free.iter().position(|free| Arc::ptr_eq(&free.post, &post));
            if let Some(at) = at {
                free.swap_remove(at);
                return None;
            }
            drop(free);
            // It was taken just now, so something comes.
            post.take(None)
        });
        match message {
            Some(Message::Work(next)) => job = next,
            Some(Message::End) | None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn a_thread_serves_again_and_ends_when_nothing_comes() {
        let crew = Crew::new();
        let (send, seen) = channel();
        let run = |index| {
            let send = send.clone();
            let task = crew.start(index, move || send.send(thread::current().id()).unwrap()).unwrap();
            task.wait();
            seen.recv().unwrap()
        };
        let first = run(0);
        assert_eq!(run(0), first, "the thread that is free");
        assert_ne!(run(1), first, "another index is another thread");
        assert_eq!(lock(&crew.free).len(), 2);
        while !lock(&crew.free).is_empty() {
            thread::sleep(IDLE / 4);
        }
        assert_ne!(run(0), first, "a new one");
    }

    #[test]
    fn threads_that_are_busy_are_not_asked_and_a_crew_that_is_dropped_has_none() {
        let crew = Crew::new();
        let (go, wait) = channel::<()>();
        let busy = crew.start(0, move || wait.recv().unwrap()).unwrap();
        // The same index, while the first is at work: two iterations of a loader at once.
        crew.start(0, || {}).unwrap().wait();
        let free = Arc::downgrade(&crew.free);
        drop(crew);
        go.send(()).unwrap();
        busy.wait();
        // The last of them ends by itself.
        while free.strong_count() > 0 {
            thread::sleep(IDLE / 4);
        }
    }

    #[test]
    fn a_task_ends_in_a_panic_too_and_its_thread_with_it() {
        let crew = Crew::new();
        crew.start(0, || panic!("as asked")).unwrap().wait();
        assert!(lock(&crew.free).is_empty());
        crew.start(0, || {}).unwrap().wait();
    }
}
