//! A value made at first use, by one thread; others wait for it, which the timeline shows.

use crate::Result;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use wellread_trace::{Kind, span};

/// A value made at first use, once; a failure is not kept.
pub(crate) struct Lazy<T> {
    value: OnceLock<T>,
    making: Mutex<()>,
}

impl<T> Lazy<T> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { value: OnceLock::new(), making: Mutex::new(()) }
    }

    /// The value, where it was made.
    pub fn known(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value; made by `make`, by one thread at a time, where there is none yet.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _making = locked(&self.making);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = make()?;
        Ok(self.value.get_or_init(|| value))
    }
}

/// Locks what a thread holds while it reads what a table says of its rows. The wait for such a thread is a span.
pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    locked_with(of, || span(Kind::WaitIndex))
}

/// As [`locked`]; what `waiting` gives is held while this thread waits.
fn locked_with<T, W>(of: &Mutex<T>, waiting: impl FnOnce() -> W) -> MutexGuard<'_, T> {
    match of.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let _wait = waiting();
            of.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_finds_another_at_work_tells_that_it_waits() {
        let making = Mutex::new(0);
        let (tell, told) = channel();
        let mut held = making.lock().unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| *locked_with(&making, || tell.send(()).unwrap()));
            told.recv().unwrap();
            *held = 7;
            drop(held);
            assert_eq!(waiter.join().unwrap(), 7);
        });
        let mut has_waited = false;
        assert_eq!(*locked_with(&making, || has_waited = true), 7);
        assert!(!has_waited, "nobody holds it");
    }

    #[test]
    fn a_value_is_made_once_and_a_failure_is_not_kept() {
        let lazy = Lazy::<u32>::new();
        let failed = lazy.get(|| Err(crate::Error::new("a", "broken"))).copied();
        assert!(failed.is_err() && lazy.known().is_none());
        assert_eq!(lazy.get(|| Ok(5)).unwrap(), &5);
        assert_eq!(lazy.get(|| panic!("it is there")).unwrap(), &5);
    }
}
