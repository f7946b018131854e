//! A value made at first use.

use crate::Result;
use std::sync::{Mutex, OnceLock, PoisonError};

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
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = make()?;
        Ok(self.value.get_or_init(|| value))
    }
}
