//! Large buffers as whole pages of the kernel's, where Linux has them.

/// Whether processes that are forked from this one have the memory, too.
#[derive(Clone, Copy)]
pub(super) enum ForkInheritance {
    Inherit,
    Exclude,
}

/// Bytes from which on a buffer is asked for in large pages. For smaller ones, a part of a page or the rounding
/// would weigh.
pub(super) const MIN_LARGE_PAGE_BYTES: usize = 8 << 20;

pub(super) use os::Pages;

#[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
mod os {
    use crate::pool::kernel::{ForkInheritance, MIN_LARGE_PAGE_BYTES};
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Bytes of a large page, or a multiple of its.
    const LARGE_PAGE: usize = 2 << 20;

    /// Pages of their own, so that nobody else's are told what these are. Zero at first.
    pub(in super::super) struct Pages {
        start: NonNull<u8>,
        len: usize,
        /// The process that said so, while processes forked from it lack them; else 0.
        excluded_by: AtomicU32,
    }

    impl Pages {
        /// Whether a buffer of so many bytes is made of them.
        pub fn are_for(len: usize) -> bool {
            len >= MIN_LARGE_PAGE_BYTES
        }

        /// New ones, with all of their bytes; `None` where there is no memory.
        pub fn new(len: usize) -> Option<Self> {
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: new pages, at a place of the kernel's choice.
            let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
            if start == libc::MAP_FAILED {
                return None;
            }
            let start = NonNull::new(start.cast())?;
            advise_large_pages(start, len);
            let this = Self { start, len, excluded_by: AtomicU32::new(0) };
            this.set_fork_inheritance(ForkInheritance::Exclude);
            Some(this)
        }

        /// Where they begin.
        pub fn start(&self) -> NonNull<u8> {
            self.start
        }

        /// Says whether processes that are forked from now on have them.
        pub fn set_fork_inheritance(&self, inheritance: ForkInheritance) {
            let (advice, process) = match inheritance {
                ForkInheritance::Inherit => (libc::MADV_DOFORK, 0),
                ForkInheritance::Exclude => (libc::MADV_DONTFORK, wellread_store::process::id()),
            };
            self.excluded_by.store(process, Ordering::Relaxed);
            // SAFETY: it is all of a mapping of its own. A forked process lacks only memory that nobody there can
            // reach: it was never delivered, or has come back. Where the advice is refused, it is shared.
            unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, advice) };
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            let process = self.excluded_by.load(Ordering::Relaxed);
            // A process that was forked meanwhile lacks it, and may have something else at this place.
            if process == 0 || process == wellread_store::process::id() {
                // SAFETY: mapped in `new`, there in this process, and nobody's any more.
                unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
            }
        }
    }

    /// Has the system take the whole large pages of a new buffer as such, where it has them and likes to. A batch of 75 MB is 36
    /// pages instead of 18,000 then, each of which interrupts whoever writes to it first. A first epoch takes half the time.
    fn advise_large_pages(start: NonNull<u8>, len: usize) {
        let inside = start.align_offset(LARGE_PAGE);
        let whole = len.saturating_sub(inside) / LARGE_PAGE * LARGE_PAGE;
        if whole > 0 {
            // SAFETY: the range is inside of the buffer; the advice changes neither its bytes nor who may use them. Where it is
            // refused, pages are small.
            unsafe { libc::madvise(start.add(inside).as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
        }
    }
}

#[cfg(any(not(target_os = "linux"), miri, feature = "portable"))]
mod os {
    use crate::pool::kernel::ForkInheritance;
    use std::ptr::NonNull;

    /// There are none: large buffers come from the system's allocator, as small ones do.
    pub(in super::super) enum Pages {}

    impl Pages {
        pub fn are_for(_: usize) -> bool {
            false
        }

        pub fn new(_: usize) -> Option<Self> {
            None
        }

        pub fn start(&self) -> NonNull<u8> {
            match *self {}
        }

        pub fn set_fork_inheritance(&self, _: ForkInheritance) {
            match *self {}
        }
    }
}
