//! Bytes aligned for batches: the system's, whole pages of the kernel's, or lent by others.

use super::kernel::{ForkInheritance, Pages};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::Arc;

/// Where the memory of batches comes from, in place of the loader's own. It may be memory that a device reads directly
/// (page-locked), say, or that belongs to another library.
///
/// # Safety
/// The memory that [`Self::take`] returns must be valid for reads and writes of as many bytes as asked for, initialised
/// and aligned to 64 bytes. Nobody else may use it until it comes back by [`Self::give`] or the batch is
/// [released](crate::Batch::release).
pub unsafe trait BatchMemory: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Memory of `bytes` bytes for one batch; `None` when there is none to be had. Called by any thread, under a lock:
    /// it must neither block for long nor call the loader.
    fn take(&self, bytes: usize) -> Option<NonNull<u8>>;

    /// Takes back what [`Self::take`] returned. Called by any thread.
    fn give(&self, start: NonNull<u8>, bytes: usize);
}

/// Bytes of alignment.
pub(super) const ALIGNMENT: usize = 64;

/// A fixed number of bytes, aligned to 64 bytes, zero at first.
pub(crate) struct AlignedBytes {
    owner: Owner,
    pub(super) start: NonNull<u8>,
    pub(super) len: usize,
}

/// Whom memory goes back to.
enum Owner {
    /// The system: the allocation, with room to align.
    System { base: NonNull<u8>, layout: Layout },
    /// The system's kernel, for large buffers.
    Kernel(Pages),
    /// The source that it was taken from.
    Source(Arc<dyn BatchMemory>),
    /// Nobody: its owner has it again.
    Released,
}

impl AlignedBytes {
    pub(super) fn new(len: usize) -> Option<Self> {
        if Pages::are_for(len) {
            let pages = Pages::new(len)?;
            let start = pages.start();
            return Some(Self { owner: Owner::Kernel(pages), start, len });
        }
        // Not `Layout` with an alignment of 64: the system allocator can give zeroed pages for free only at
        // its natural alignment. It would write the zeros itself otherwise.
        let bytes = len.checked_add(ALIGNMENT)?;
        let layout = Layout::from_size_align(bytes, align_of::<u64>()).ok()?;
        // SAFETY: the layout has at least `ALIGNMENT` bytes.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // SAFETY: the offset is below `ALIGNMENT`, and that many bytes were added above.
        let start = unsafe { base.add(base.align_offset(ALIGNMENT)) };
        Some(Self { owner: Owner::System { base, layout }, start, len })
    }

    /// Says whether processes that are forked from now on have the memory of a large buffer. Those that have it share
    /// it until this one writes to it. Then each small page is copied first, 18,000 of them for a batch of 75 MB, also
    /// where the pages were large.
    pub(super) fn set_fork_inheritance(&self, inheritance: ForkInheritance) {
        if let Owner::Kernel(pages) = &self.owner {
            pages.set_fork_inheritance(inheritance);
        }
    }

    /// Lets forked processes have the memory: the taker of a batch may fork, and look at it there.
    pub(crate) fn allow_fork_access(&self) {
        self.set_fork_inheritance(ForkInheritance::Inherit);
    }

    pub(super) fn of(source: &Arc<dyn BatchMemory>, len: usize) -> Option<Self> {
        let start = source.take(len)?;
        assert!(
            start.addr().get().is_multiple_of(ALIGNMENT),
            "memory for batches must be aligned to 64 bytes"
        );
        Some(Self { owner: Owner::Source(Arc::clone(source)), start, len })
    }

    /// Gives memory of others up to them without [`BatchMemory::give`]: where it begins. `None`, and nothing is changed,
    /// where it is the pool's own.
    pub(crate) fn release(&mut self) -> Option<NonNull<u8>> {
        if !matches!(self.owner, Owner::Source(_)) {
            return None;
        }
        self.owner = Owner::Released;
        Some(self.start)
    }

    /// The address of a byte, of which there are more.
    ///
    /// # Panics
    /// Where there are none.
    pub(crate) fn at(&mut self, byte: usize) -> NonNull<u8> {
        assert!(byte < self.len, "there is no byte {byte} of {}", self.len);
        // SAFETY: it lies inside, as asserted.
        unsafe { self.start.add(byte) }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `start` points to `len` bytes of this allocation, zero or written since.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        match &self.owner {
            // SAFETY: allocated in `new` with this layout.
            Owner::System { base, layout } => unsafe { dealloc(base.as_ptr(), *layout) },
            Owner::Source(source) => source.give(self.start, self.len),
            // Pages go with their owner.
            Owner::Kernel(_) | Owner::Released => {}
        }
    }
}

// SAFETY: it owns its memory, as a `Box<[u8]>` does; a lender of memory is `Send` and `Sync` itself.
unsafe impl Send for AlignedBytes {}
// SAFETY: shared access only reads.
unsafe impl Sync for AlignedBytes {}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBytes({})", self.len)
    }
}
