//! [`LentMemory`]: memory for batches that Python lends, such as torch's page-locked memory.
//!
//! ```text
//!  Python ──lend(address, bytes)──▶ free ──take(bytes)──▶ loader's thread fills it ──▶ Batch ──released──▶ Python: the tensor it lent
//!                                   ▲                             │ not delivered
//!                                   └──────────── give ───────────┘
//! ```

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread::BatchMemory;

/// Memory that is waiting for a batch, each piece for one of its size. Its owner keeps what it lends alive.
#[pyclass(frozen, module = "wellread._native")]
pub(crate) struct LentMemory(pub(crate) Arc<FreeBuffers>);

/// The free part of it. The native loaders of several ranks share it, and their batches may differ in size.
pub(crate) struct FreeBuffers {
    /// Addresses, and the bytes that each has.
    free: Mutex<Vec<(usize, usize)>>,
}

impl FreeBuffers {
    fn lock(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of free memory of exactly so many bytes, which is no longer free.
    fn pop(&self, bytes: usize) -> Option<usize> {
        let mut free = self.lock();
        let place = free.iter().rposition(|&(_, size)| size == bytes)?;
        Some(free.swap_remove(place).0)
    }
}

// SAFETY: an address is in the list once, is aligned, and is taken for a batch of its size alone. The owner promised
// that it is kept, initialised and of that size (`LentMemory::lend`).
unsafe impl BatchMemory for FreeBuffers {
    fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(self.pop(bytes)?))
    }

    fn give(&self, start: NonNull<u8>, bytes: usize) {
        self.lock().push((start.as_ptr().expose_provenance(), bytes));
    }
}

#[pymethods]
impl LentMemory {
    #[new]
    fn new() -> Self {
        Self(Arc::new(FreeBuffers { free: Mutex::default() }))
    }

    /// Takes back memory of so many bytes that is free, for at most so many batches: the addresses.
    fn withdraw(&self, batches: usize, bytes: usize) -> Vec<usize> {
        (0..batches).map_while(|_| self.0.pop(bytes)).collect()
    }

    /// Lends memory: `address`, a multiple of 64, has so many bytes, which are the `batch_bytes` of the loader that
    /// shall take it. It is kept until it comes back with a batch, and is not used meanwhile.
    fn lend(&self, address: usize, bytes: usize) -> PyResult<()> {
        if address == 0 || !address.is_multiple_of(64) {
            return Err(PyValueError::new_err(format!("the address {address:#x} is not a multiple of 64")));
        }
        self.0.lock().push((address, bytes));
        Ok(())
    }
}
