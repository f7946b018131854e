//! [`Lent`]: memory for batches that Python lends, such as torch's page-locked memory.
//!
//! ```text
//!  Python ──lend(address)──▶ free ──take──▶ loader's thread fills it ──▶ Batch ──released──▶ Python: the tensor it lent
//!                             ▲                      │ not delivered
//!                             └──────── give ────────┘
//! ```

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use wellread::BatchMemory;

/// Memory of equal size that is waiting for a batch. Its owner keeps what it lends alive.
#[pyclass(frozen, module = "wellread._native")]
pub(crate) struct Lent(pub(crate) Arc<FreeBuffers>);

/// The free part of it.
pub(crate) struct FreeBuffers {
    free: Mutex<Vec<usize>>,
}

// SAFETY: an address is on the shelf once, is aligned, and is as large as its owner says. The owner promised that it
// is kept and initialised (`Lent::lend`).
unsafe impl BatchMemory for FreeBuffers {
    fn take(&self, _: usize) -> Option<NonNull<u8>> {
        let address = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        NonNull::new(std::ptr::with_exposed_provenance_mut(address))
    }

    fn give(&self, start: NonNull<u8>, _: usize) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(start.as_ptr().expose_provenance());
    }
}

#[pymethods]
impl Lent {
    #[new]
    fn new() -> Self {
        Self(Arc::new(FreeBuffers { free: Mutex::default() }))
    }

    /// Takes back memory that is free, for at most so many batches: the addresses.
    fn withdraw(&self, batches: usize) -> Vec<usize> {
        let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free.len().saturating_sub(batches);
        free.split_off(kept)
    }

    /// Lends memory: `address`, a multiple of 64, has as many bytes as the loader's `batch_bytes`. It is kept until it
    /// comes back with a batch, and is not used meanwhile.
    fn lend(&self, address: usize) -> PyResult<()> {
        if address == 0 || !address.is_multiple_of(64) {
            return Err(PyValueError::new_err(format!("the address {address:#x} is not a multiple of 64")));
        }
        self.0.free.lock().unwrap_or_else(PoisonError::into_inner).push(address);
        Ok(())
    }
}
