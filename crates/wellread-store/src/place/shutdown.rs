//! The end of the process on a signal. Nothing comes into being or becomes complete any more. Removals are given up where nothing answers.
//!
//! ```text
//!  a place: InProgress::begin ─▶ check ─▶ a file, folder or object is made or moved
//!  the shutdown: begin ─▶ waits until none is in progress ─▶ unfinished output is removed, and nothing comes after that
//! ```

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks whether work is still in progress.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

static BEGUN: OnceLock<Instant> = OnceLock::new();
/// Milliseconds from then to the last answer. No lock, which a forked process may find held.
static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// Lets no work begin from now on.
pub fn begin() {
    let _ = BEGUN.set(Instant::now());
    // Work that begins meanwhile sees this, or is seen by [`InProgress::is_any`]: see [`InProgress::begin`].
    fence(Ordering::SeqCst);
}

/// Whether the process is ending.
pub fn is_begun() -> bool {
    BEGUN.get().is_some()
}

/// Notes that a request was answered.
pub fn note_answer() {
    if let Some(begun) = BEGUN.get() {
        ANSWERED.store(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
}

/// Whether the process is ending, and nothing was answered for so long.
pub fn has_timed_out(patience: Duration) -> bool {
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
pub fn run_awaited(in_progress: &'static InProgress, work: &mut dyn FnMut()) -> io::Result<()> {
    let _begun = in_progress.begin();
    check()?;
    run_as_awaited(true, work);
    Ok(())
}

/// Runs `work`, a part of that of another thread, for which `is_awaited` holds or does not.
pub fn run_as_awaited<T>(is_awaited: bool, work: impl FnOnce() -> T) -> T {
    let _restore = RestoreAwaited(IS_AWAITED.replace(is_awaited));
    work()
}

/// Whether this thread does work that the end waits for.
pub fn is_awaited() -> bool {
    IS_AWAITED.get()
}

/// For work that makes something.
///
/// # Errors
/// The process is ending, and the end does not wait for this thread.
pub fn check() -> io::Result<()> {
    if is_begun() && !is_awaited() {
        return Err(io::Error::other("the program is ending, and nothing is written any more"));
    }
    Ok(())
}

/// Counts work that makes something in a place: what is removed at the end waits for it, else some would come after that.
#[derive(Debug)]
pub struct InProgress(AtomicUsize);

impl InProgress {
    /// None is in progress.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it is for statics")]
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Begins; [`check`] has to follow.
    pub fn begin(&'static self) -> InProgressGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        InProgressGuard(self)
    }

    /// Whether any is in progress.
    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    /// Waits until none is, or nothing answers for so long.
    pub fn wait(&self, patience: Duration) {
        while self.is_any() && !has_timed_out(patience) {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Work that is in progress until this is dropped.
#[derive(Debug)]
#[must_use = "the work is no longer in progress when this is dropped"]
pub struct InProgressGuard(&'static InProgress);

impl Drop for InProgressGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_awaited_work_is_awaited_in_whatever_thread() {
        static WORK: InProgress = InProgress::new();
        let mut seen = vec![];
        run_awaited(&WORK, &mut || {
            let here = is_awaited();
            thread::scope(|scope| {
                let beside = scope.spawn(is_awaited);
                let part = scope.spawn(move || run_as_awaited(here, is_awaited) && !is_awaited());
                seen.extend([here, WORK.is_any(), beside.join().unwrap(), part.join().unwrap()]);
            });
        })
        .unwrap();
        assert_eq!((seen, is_awaited(), WORK.is_any()), (vec![true, true, false, true], false, false));
    }
}
