//! Memory of batches: buffers, and the pool that they come from and return to.
//!
//! Memory is aligned to 64 bytes (a cache line, an AVX-512 vector, what DLPack consumers hope for), zeroed
//! once by the operating system when it is first taken and never again: each batch overwrites all it shows.
//!
//! ```text
//!  BatchMemory or the system ──▶ BufferPool::take ──▶ BatchBuffer, filled in parts by threads ──▶ Batch
//!                                     ▲                                                            │ dropped
//!                                     └──────────────────────── give ◀─────────────────────────────┘
//! ```

use crate::fill::Fill;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::{self, NonNull};
#[cfg(all(target_os = "linux", not(miri)))]
use std::sync::atomic::AtomicU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Memory for one full batch.
#[derive(Debug)]
pub(crate) struct BatchBuffer {
    pub(crate) pixels: AlignedBytes,
    pub(crate) rows: Vec<usize>,
    /// Of each row, see [`crate::Batch::occurrences`].
    pub(crate) occurrences: Vec<u64>,
}

impl BatchBuffer {
    /// Takes images out of the first `images`, `each` bytes to an image: those after them close up.
    ///
    /// # Panics
    /// When `failed` is not in order or not below `images`.
    pub(crate) fn remove(&mut self, failed: impl Iterator<Item = usize>, images: usize, each: usize) {
        let pixels = self.pixels.as_mut_slice();
        let mut failed = failed.peekable();
        let mut to = failed.peek().copied().unwrap_or(images);
        while let Some(gap) = failed.next() {
            let next = failed.peek().copied().unwrap_or(images);
            let kept = gap + 1..next;
            self.rows.copy_within(kept.clone(), to);
            self.occurrences.copy_within(kept.clone(), to);
            pixels.copy_within(kept.start * each..kept.end * each, to * each);
            to += kept.len();
        }
    }

    /// Rows `within` to be filled with what is at `positions`, `each` bytes to a row.
    pub(crate) fn fill(&mut self, positions: Range<usize>, within: Range<usize>, each: usize) -> Fill<'_> {
        let Self { pixels, rows, occurrences } = self;
        Fill {
            positions,
            pixels: &mut pixels.as_mut_slice()[within.start * each..within.end * each],
            rows: &mut rows[within.clone()],
            occurrences: &mut occurrences[within],
        }
    }

    /// The memory of some rows, `each` bytes to a row, as pointers that outlive the borrow: threads fill
    /// disjoint rows at the same time. No reference to the whole is made, which would invalidate theirs.
    ///
    /// # Panics
    /// When the buffer has fewer rows or bytes.
    pub(crate) fn part(&mut self, rows: Range<usize>, each: usize) -> PartMemory {
        assert!(rows.start <= rows.end && rows.end <= self.rows.len() && rows.end * each <= self.pixels.len);
        assert!(rows.end <= self.occurrences.len());
        let (start, len) = (rows.start, rows.len());
        // SAFETY: all ranges lie inside their allocations, as asserted.
        unsafe {
            PartMemory {
                pixels: ptr::slice_from_raw_parts_mut(
                    self.pixels.start.as_ptr().add(start * each),
                    len * each,
                ),
                rows: ptr::slice_from_raw_parts_mut(self.rows.as_mut_ptr().add(start), len),
                occurrences: ptr::slice_from_raw_parts_mut(self.occurrences.as_mut_ptr().add(start), len),
            }
        }
    }
}

/// The memory of some rows of a batch: [`BatchBuffer::part`].
#[derive(Clone, Copy)]
pub(crate) struct PartMemory {
    pub(crate) pixels: *mut [u8],
    pub(crate) rows: *mut [usize],
    pub(crate) occurrences: *mut [u64],
}

impl PartMemory {
    /// The first `rows` rows, `each` bytes to a row, and the others.
    pub(crate) fn split_at(self, rows: usize, each: usize) -> (Self, Self) {
        assert!(
            rows <= self.rows.len() && rows * each <= self.pixels.len() && rows <= self.occurrences.len()
        );
        let (n, bytes) = (self.rows.len() - rows, self.pixels.len() - rows * each);
        let first = Self {
            pixels: ptr::slice_from_raw_parts_mut(self.pixels.cast(), rows * each),
            rows: ptr::slice_from_raw_parts_mut(self.rows.cast(), rows),
            occurrences: ptr::slice_from_raw_parts_mut(self.occurrences.cast(), rows),
        };
        // SAFETY: as asserted, the new starts lie inside what they begin in, or at its end.
        let rest = unsafe {
            Self {
                pixels: ptr::slice_from_raw_parts_mut(self.pixels.cast::<u8>().add(rows * each), bytes),
                rows: ptr::slice_from_raw_parts_mut(self.rows.cast::<usize>().add(rows), n),
                occurrences: ptr::slice_from_raw_parts_mut(self.occurrences.cast::<u64>().add(rows), n),
            }
        };
        (first, rest)
    }
}

/// Where the memory of batches comes from, in place of the loader's own: memory that a device reads directly
/// (page-locked), say, or that belongs to another library.
///
/// # Safety
/// What [`Self::take`] returns must be valid for reads and writes of as many bytes as asked for, initialised, aligned to
/// 64 bytes, and used by nobody else until it comes back by [`Self::give`] or the batch is
/// [released](crate::Batch::release).
pub unsafe trait BatchMemory: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Memory of `bytes` bytes for one batch; `None` when there is none to be had. Called by any thread, under a lock:
    /// it must neither block for long nor call the loader.
    fn take(&self, bytes: usize) -> Option<NonNull<u8>>;

    /// Takes back what [`Self::take`] returned. Called by any thread.
    fn give(&self, start: NonNull<u8>, bytes: usize);
}

/// Buffers of equal size that nobody uses at the moment.
pub(crate) struct BufferPool {
    stock: Mutex<Stock>,
    /// A buffer has come back.
    returned: Condvar,
    /// Where memory comes from, if not from the system. It keeps what is free itself.
    source: Option<Arc<dyn BatchMemory>>,
    bytes: usize,
    /// Images.
    rows: usize,
    /// Buffers kept for reuse; more than these are freed.
    keep: usize,
    /// The process it was made in. A batch that a forked child drops is freed there instead: another thread may have
    /// held the lock at the fork.
    process: u32,
}

#[derive(Default)]
struct Stock {
    free: Vec<BatchBuffer>,
    /// Buffers of the pool's own that are in use.
    in_use: usize,
    /// How often one has come back.
    returns: u64,
    /// So many in use are no reason to wait for one of them: it was waited for in vain.
    in_vain: usize,
    /// Threads asleep on `returned`.
    waiting: usize,
}

impl BufferPool {
    /// A pool of buffers for `rows` images and `bytes` bytes in all.
    pub(crate) fn new(bytes: usize, rows: usize, keep: usize, source: Option<Arc<dyn BatchMemory>>) -> Self {
        let stock = Mutex::new(Stock { free: Vec::with_capacity(keep), ..Stock::default() });
        Self {
            stock,
            returned: Condvar::new(),
            source,
            bytes,
            rows,
            keep,
            process: wellread_store::process::id(),
        }
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next buffer would be a new one although `enough` are in use, and is worth waiting for one of those.
    pub(crate) fn is_short(&self, enough: usize) -> bool {
        if self.bytes < LARGE || self.source.is_some() {
            return false;
        }
        let stock = self.stock();
        stock.free.is_empty() && stock.in_use >= enough.max(stock.in_vain)
    }

    /// Waits for a buffer to come back, `longest` at most or until `stop`; what is left of that time. Another thread may
    /// have taken it. Who keeps batches is waited for ever more rarely: when twice as many are in use as the last time
    /// that none came back.
    pub(crate) fn wait_for_return(&self, longest: Duration, stop: &AtomicBool) -> Duration {
        let until = Instant::now() + longest;
        let mut stock = self.stock();
        let before = stock.returns;
        let none = |stock: &mut Stock| {
            stock.free.is_empty() && stock.returns == before && !stop.load(Ordering::Relaxed)
        };
        stock.waiting += 1;
        let waited = self.returned.wait_timeout_while(stock, longest, none);
        let (mut stock, _) = waited.unwrap_or_else(PoisonError::into_inner);
        stock.waiting -= 1;
        if none(&mut stock) {
            stock.in_vain = stock.in_use * 2;
            return Duration::ZERO;
        }
        until.saturating_duration_since(Instant::now())
    }

    /// Wakes those who wait for a buffer, to see that they shall stop.
    pub(crate) fn wake(&self) {
        // Under the lock, so that no thread is between its look at `stop` and its sleep.
        if self.stock().waiting > 0 {
            self.returned.notify_all();
        }
    }

    /// A buffer, used before or new; `None` when memory is exhausted.
    pub(crate) fn take(&self) -> Option<BatchBuffer> {
        let used = {
            let mut stock = self.stock();
            stock.in_use += 1;
            stock.free.pop()
        };
        let found = used.or_else(|| {
            let pixels = match &self.source {
                None => AlignedBytes::new(self.bytes)?,
                Some(source) => AlignedBytes::of(source, self.bytes)?,
            };
            Some(BatchBuffer { pixels, rows: vec![0; self.rows], occurrences: vec![0; self.rows] })
        });
        if found.is_none() {
            self.stock().in_use -= 1;
        }
        found
    }

    pub(crate) fn give(&self, buffer: BatchBuffer) {
        if self.process != wellread_store::process::id() || self.source.is_some() {
            return;
        }
        buffer.pixels.set(Forks::Lack);
        let mut stock = self.stock();
        stock.in_use = stock.in_use.saturating_sub(1);
        if stock.free.len() < self.keep {
            stock.free.push(buffer);
            stock.returns += 1;
            if stock.waiting > 0 {
                self.returned.notify_all();
            }
        }
    }
}

/// Bytes of alignment.
const ALIGNMENT: usize = 64;

/// Bytes from which on a buffer is asked for in large pages: some of them, or what they round up to would weigh.
const LARGE: usize = 8 << 20;
/// Bytes of a large page, or a multiple of its.
const LARGE_PAGE: usize = 2 << 20;

/// Has the system take the whole large pages of a new buffer as such, where it has them and likes to. A batch of 75 MB is 36
/// pages instead of 18,000 then, each of which interrupts whoever writes to it first: a first epoch takes half the time.
fn in_large_pages(start: NonNull<u8>, len: usize) {
    let inside = start.align_offset(LARGE_PAGE);
    let whole = len.saturating_sub(inside) / LARGE_PAGE * LARGE_PAGE;
    #[cfg(all(target_os = "linux", not(miri)))]
    if whole > 0 {
        // SAFETY: the range is inside of the buffer; the advice changes neither its bytes nor who may use them. Where it is
        // refused, pages are small.
        unsafe { libc::madvise(start.add(inside).as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = whole;
}

/// A fixed number of bytes, aligned to 64 bytes, zero at first.
pub(crate) struct AlignedBytes {
    owner: Owner,
    start: NonNull<u8>,
    len: usize,
}

/// Whether processes that are forked from this one have the memory, too.
#[derive(Clone, Copy)]
enum Forks {
    Have,
    Lack,
}

/// Whom memory goes back to.
enum Owner {
    /// The system: what was allocated, with room to align.
    System { base: NonNull<u8>, layout: Layout },
    /// The system's kernel, for large buffers: pages of their own, so that nobody else's are told what these are.
    #[cfg(all(target_os = "linux", not(miri)))]
    Kernel {
        /// The process that said so, while processes forked from it lack it; else 0.
        lacking: AtomicU32,
    },
    /// Whoever it was taken from.
    Source(Arc<dyn BatchMemory>),
    /// Nobody: its owner has it again.
    Released,
}

impl AlignedBytes {
    fn new(len: usize) -> Option<Self> {
        #[cfg(all(target_os = "linux", not(miri)))]
        if len >= LARGE {
            return Self::mapped(len);
        }
        // Not `Layout` with an alignment of 64: the system allocator can give zeroed pages for free only at
        // its natural alignment, and would write the zeros itself otherwise.
        let bytes = len.checked_add(ALIGNMENT)?;
        let layout = Layout::from_size_align(bytes, align_of::<u64>()).ok()?;
        // SAFETY: the layout has at least `ALIGNMENT` bytes.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // SAFETY: the offset is below `ALIGNMENT`, and that many bytes were added above.
        let start = unsafe { base.add(base.align_offset(ALIGNMENT)) };
        Some(Self { owner: Owner::System { base, layout }, start, len })
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    fn mapped(len: usize) -> Option<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new pages, at a place of the kernel's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new(start.cast())?;
        in_large_pages(start, len);
        let this = Self { owner: Owner::Kernel { lacking: AtomicU32::new(0) }, start, len };
        this.set(Forks::Lack);
        Some(this)
    }

    /// Says whether processes that are forked from now on have the memory of a large buffer. Those that have it share it
    /// until this one writes to it: then each small page is copied first, 18,000 of them for a batch of 75 MB, also where the
    /// pages were large.
    fn set(&self, forks: Forks) {
        #[cfg(all(target_os = "linux", not(miri)))]
        if let Owner::Kernel { lacking } = &self.owner {
            let (advice, process) = match forks {
                Forks::Have => (libc::MADV_DOFORK, 0),
                Forks::Lack => (libc::MADV_DONTFORK, wellread_store::process::id()),
            };
            lacking.store(process, Ordering::Relaxed);
            // SAFETY: it is all of a mapping of its own. What a forked process lacks is what nobody there can reach: it
            // was never delivered, or has come back. Where the advice is refused, it is shared.
            unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, advice) };
        }
        #[cfg(not(all(target_os = "linux", not(miri))))]
        let _ = forks;
    }

    /// Whoever it is delivered to may fork, and look at it there.
    pub(crate) fn delivered(&self) {
        self.set(Forks::Have);
    }

    fn of(source: &Arc<dyn BatchMemory>, len: usize) -> Option<Self> {
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
            #[cfg(all(target_os = "linux", not(miri)))]
            Owner::Kernel { lacking } => {
                let process = lacking.load(Ordering::Relaxed);
                // A process that was forked meanwhile lacks it, and may have something else at this place.
                if process == 0 || process == wellread_store::process::id() {
                    // SAFETY: mapped in `mapped`, there in this process, and nobody's any more.
                    unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
                }
            }
            Owner::Source(source) => source.give(self.start, self.len),
            Owner::Released => {}
        }
    }
}

// SAFETY: it owns its memory, as a `Box<[u8]>` does; who lends memory is `Send` and `Sync` itself.
unsafe impl Send for AlignedBytes {}
// SAFETY: shared access only reads.
unsafe impl Sync for AlignedBytes {}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBytes({})", self.len)
    }
}

#[cfg(test)]
mod tests;
