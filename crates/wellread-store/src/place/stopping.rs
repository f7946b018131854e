//! Waiting for a place that ends early: the reader names a flag that tells that nobody wants the bytes any
//! more.
//!
//! ```text
//!  until(stop, read) ─▶ a format ─▶ File::read_exact_at ─▶ a place, which waits and looks at stop()
//! ```
//!
//! It holds for the thread alone. A place that waits for nothing, such as the file system, need not look.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

thread_local! {
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Puts back what was there before, also when a reader panics.
struct RestoreStop(Option<Arc<AtomicBool>>);

impl Drop for RestoreStop {
    fn drop(&mut self) {
        STOP.set(self.0.take());
    }
}

/// Runs `work`. Once `stop` is set, what it waits for in places ends with an error.
pub fn until<T>(stop: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    let _restore = RestoreStop(STOP.replace(Some(Arc::clone(stop))));
    work()
}

/// Runs `work` and waits for it though [`stop`] is set: what cleans up must not be given up as what it cleans up after.
pub fn to_its_end<T>(work: impl FnOnce() -> T) -> T {
    let _restore = RestoreStop(STOP.replace(None));
    work()
}

/// The flag that tells this thread that nobody needs its result any more; for places.
pub fn stop() -> Option<Arc<AtomicBool>> {
    STOP.with_borrow(Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn it_is_known_while_work_runs_and_no_longer() {
        let (one, other) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let is_set = || stop().map(|stop| stop.load(Ordering::Relaxed));
        assert_eq!(is_set(), None);
        until(&one, || {
            assert_eq!(is_set(), Some(true));
            until(&other, || assert_eq!(is_set(), Some(false)));
            assert_eq!(is_set(), Some(true));
            assert_eq!(to_its_end(is_set), None);
            assert_eq!(is_set(), Some(true));
        });
        assert!(std::panic::catch_unwind(|| until::<()>(&one, || panic!("a reader"))).is_err());
        assert_eq!(is_set(), None);
        assert_eq!((Arc::strong_count(&one), Arc::strong_count(&other)), (1, 1));
    }
}
