//! Threads started where the system may have no more of them: no memory, no address space, a limit of processes.
//!
//! `std::thread::spawn` panics then. Work that any number of threads can share is done by fewer; work that needs a
//! thread of its own is an error.

use crate::{Error, Result, place};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Threads that share the work of opening a set, at most: they wait for its disk more than they compute.
const THREADS: usize = 8;

/// Runs for each thread: not all runs take equally long.
const RUNS_PER_THREAD: usize = 4;

/// Does the same work on up to `threads` threads at once, of which this is one, and returns when all have ended. They share
/// what there is to do between themselves, and each gives up with this one what it waits for in places ([`place::until`]).
pub fn share(threads: usize, work: impl Fn() + Sync) {
    let stop = place::stop();
    let beside = || match &stop {
        Some(stop) => place::until(stop, &work),
        None => work(),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            if Builder::new().spawn_scoped(scope, beside).is_err() {
                break;
            }
        }
        work();
    });
}

/// Does the same for all `items`, up to `at_once` of them at a time; the first error ends it.
///
/// # Errors
/// The error of `work` for an item.
pub fn for_each<T: Sync, E: Send>(
    at_once: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    share(at_once.min(items.len()), || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = work(item) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                next.store(items.len(), Ordering::Relaxed);
            }
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Cuts `0..n` into runs of `least` or more, does `work` on each of them and returns what it made, in the order of the runs. Threads
/// share the runs: as many as there are processors, eight at most, and this one alone where `n` is less than two runs.
pub fn in_runs<T: Send>(n: usize, least: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let most = n / least.max(1);
    // To ask for the number of processors reads files.
    let threads = if most < 2 { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) };
    in_runs_on(threads.min(THREADS), n, most, work)
}

/// The same on so many threads, in `most` runs at most.
fn in_runs_on<T: Send>(
    threads: usize,
    n: usize,
    most: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let threads = threads.min(most);
    if threads < 2 {
        return if n == 0 { vec![] } else { vec![work(0..n)] };
    }
    let runs = most.min(threads * RUNS_PER_THREAD);
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(runs));
    share(threads, || {
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs {
                return;
            }
            let of_run = work(run * n / runs..(run + 1) * n / runs);
            made.lock().unwrap_or_else(PoisonError::into_inner).push((run, of_run));
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|(run, _)| *run);
    made.into_iter().map(|(_, of_run)| of_run).collect()
}

/// Starts a thread, for work on what is at `path`.
///
/// # Errors
/// The system has no more threads.
pub fn spawn<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Builder::new().spawn(work).map_err(|e| none_left(path, &e))
}

/// As [`spawn`], within a scope.
///
/// # Errors
/// As [`spawn`].
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    path: &Path,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(|e| none_left(path, &e))
}

/// The error of a thread that cannot be started.
pub fn none_left(path: &Path, error: &std::io::Error) -> Error {
    Error::new(path, format_args!("cannot start a thread: {error}"))
        .hint("use fewer threads, end other programs, or raise the limits (ulimit -v, ulimit -u)")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn work_is_shared() {
        for threads in [0, 1, 3] {
            let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            super::share(threads, || {
                while next.fetch_add(1, Ordering::Relaxed) < 100 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(done.into_inner(), 100);
        }
    }

    #[test]
    fn all_is_done_or_the_first_error_told() {
        let done = AtomicUsize::new(0);
        let items: Vec<usize> = (0..100).collect();
        let all = super::for_each(16, &items, |_| {
            done.fetch_add(1, Ordering::Relaxed);
            Ok::<_, String>(())
        });
        assert_eq!((all, done.into_inner()), (Ok(()), 100));
        let seven = |&i: &usize| if i == 7 { Err("seven") } else { Ok(()) };
        assert_eq!(super::for_each(16, &items, seven), Err("seven"));
        assert_eq!(super::for_each(16, &[] as &[u8], |_| Err("never")), Ok(()));
    }

    #[test]
    fn runs_come_in_their_order() {
        let all = |runs: Vec<Vec<usize>>| runs.into_iter().flatten().collect::<Vec<_>>();
        for threads in [0, 1, 2, 3, 8] {
            for n in [0, 1, 7, 100, 101] {
                let made = super::in_runs_on(threads, n, n / 5, Iterator::collect::<Vec<_>>);
                assert_eq!(all(made), (0..n).collect::<Vec<_>>(), "{n} on {threads}");
            }
        }
        assert_eq!(super::in_runs(9, 5, |run| (run.start, run.end)), [(0, 9)]);
        assert_eq!(super::in_runs(3, 0, |run| run.len()).iter().sum::<usize>(), 3);
        assert!(super::in_runs(1000, 10, |run| run.len()).iter().all(|&length| length >= 10));
    }
}
