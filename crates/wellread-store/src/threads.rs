//! Threads started where the system may have no more of them: no memory, no address space, a limit of processes.
//!
//! `std::thread::spawn` panics then. Work that any number of threads can share is done by fewer; what needs a thread of its
//! own is an error.

use crate::{Error, Result};
use std::path::Path;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Does the same work on up to `threads` threads at once, of which this is one, and returns when all have ended. They share
/// what there is to do between themselves.
pub fn share(threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            if Builder::new().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
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
}
