//! The end of the process on a signal: nothing becomes complete any more, and what is removed is given up where nothing answers.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks whether objects are still being completed.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

static BEGUN: OnceLock<Instant> = OnceLock::new();
/// Milliseconds from then to the last answer. No lock, which a forked process may find held.
static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// Lets no object become complete from now on.
pub(crate) fn close() {
    let _ = BEGUN.set(Instant::now());
    // Work that begins meanwhile sees this, or is seen by [`is_completing`]: see [`Completing::begin`].
    fence(Ordering::SeqCst);
}

/// Whether the process is ending.
pub(crate) fn is_begun() -> bool {
    BEGUN.get().is_some()
}

/// Notes that a request was answered.
pub(crate) fn note_answer() {
    if let Some(begun) = BEGUN.get() {
        ANSWERED.store(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
}

/// Whether the process is ending, and nothing was answered for so long.
pub(crate) fn is_over(patience: Duration) -> bool {
    let answered = Duration::from_millis(ANSWERED.load(Ordering::Relaxed));
    BEGUN.get().is_some_and(|begun| begun.elapsed() >= answered + patience)
}

thread_local! {
    /// Whether this thread does work that the end waits for.
    static IS_AWAITED: Cell<bool> = const { Cell::new(false) };
}

/// Puts back what was there before, also when the work panics.
struct RestoreAwaited(bool);

impl Drop for RestoreAwaited {
    fn drop(&mut self) {
        IS_AWAITED.set(self.0);
    }
}

/// Runs `work` to its end though the process may be ending by then: [`check`] lets this thread go on.
///
/// # Errors
/// The process is ending already; nothing is run.
pub(crate) fn awaited(work: &mut dyn FnMut()) -> io::Result<()> {
    let _completing = Completing::begin();
    check()?;
    awaited_as(true, work);
    Ok(())
}

/// Runs `work`, a part of that of another thread, for which `is_awaited` holds or does not.
pub(crate) fn awaited_as<T>(is_awaited: bool, work: impl FnOnce() -> T) -> T {
    let _restore = RestoreAwaited(IS_AWAITED.replace(is_awaited));
    work()
}

/// Whether this thread does work that the end waits for.
pub(crate) fn is_awaited() -> bool {
    IS_AWAITED.get()
}

/// An error where the process is ending.
pub(crate) fn check() -> io::Result<()> {
    if is_begun() && !is_awaited() {
        return Err(io::Error::other("the program is ending, and nothing is written any more"));
    }
    Ok(())
}

/// Objects that are being completed or moved.
static COMPLETING: AtomicUsize = AtomicUsize::new(0);

/// Work that makes objects complete: what is removed at the end waits for it, else some would come after that.
#[derive(Debug)]
pub(crate) struct Completing(());

impl Completing {
    /// Begins; [`check`] has to follow.
    pub(crate) fn begin() -> Self {
        COMPLETING.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Completing {
    fn drop(&mut self) {
        COMPLETING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether any object is being completed.
pub(crate) fn is_completing() -> bool {
    COMPLETING.load(Ordering::SeqCst) > 0
}

/// Waits until none is, or nothing answers for so long.
pub(crate) fn wait_for_completing(patience: Duration) {
    while is_completing() && !is_over(patience) {
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_awaited_work_is_awaited_in_whatever_thread() {
        let mut seen = vec![];
        awaited(&mut || {
            let here = is_awaited();
            thread::scope(|scope| {
                let beside = scope.spawn(is_awaited);
                let part = scope.spawn(move || awaited_as(here, is_awaited) && !is_awaited());
                seen.extend([here, beside.join().unwrap(), part.join().unwrap()]);
            });
        })
        .unwrap();
        assert_eq!((seen, is_awaited()), (vec![true, false, true], false));
    }
}
