//! The end of the program when there is no more memory: a message and exit code 1.
//!
//! Memory for pixels is asked for in ways that fail with an error. Memory for the standard library and others ends in
//! `handle_alloc_error`, which aborts: a signal, and no advice. The allocator here notes what could not be had, and a
//! handler of that signal looks there.
//!
//! ```text
//!  alloc ──null──▶ noted ──▶ who asked by try_reserve: an error as any other
//!                        ──▶ handle_alloc_error ──▶ abort ──SIGABRT──▶ message, unfinished output removed, exit code 1
//! ```
//!
//! In the program alone: a Python process belongs to its user.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which notes what it did not give.
struct RecordingAllocator;

thread_local! {
    /// Bytes that this thread last asked for in vain.
    static FAILED_ALLOCATION_BYTES: Cell<usize> = const { Cell::new(0) };
}

#[cold]
fn record_failed_allocation(bytes: usize) {
    // A thread that is ending has no place to note it any more.
    let _ = FAILED_ALLOCATION_BYTES.try_with(|cell| cell.set(bytes));
}

// SAFETY: all is done by `System`.
unsafe impl GlobalAlloc for RecordingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() {
            record_failed_allocation(layout.size());
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if memory.is_null() {
            record_failed_allocation(layout.size());
        }
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { System.realloc(memory, layout, size) };
        if memory.is_null() {
            record_failed_allocation(size);
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: RecordingAllocator = RecordingAllocator;

/// Has the end of memory be an error. To be called first.
pub fn prepare() {
    #[cfg(unix)]
    signals::prepare();
}

#[cfg(unix)]
mod signals {
    use super::FAILED_ALLOCATION_BYTES;
    use std::cell::Cell;
    use std::hint::black_box;
    use std::mem::MaybeUninit;
    use std::panic;
    use std::ptr;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Stack that the first thread has for certain, however little address space is left later.
    const STACK: usize = 1 << 20;
    /// Memory that is given up to have some for ending.
    static RESERVE: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    /// The thread that ends the process, once there is one.
    static ENDING_THREAD: AtomicUsize = AtomicUsize::new(0);
    /// The message if there is no memory for a longer one.
    const FALLBACK_MESSAGE: &str = "error: not enough memory\n";
    /// Seconds that other threads leave to that one.
    const EXIT_GRACE_SECONDS: libc::c_uint = 10;

    pub fn prepare() {
        if is_limited() {
            // A stack that cannot grow is a signal like that of a wrong pointer.
            #[expect(
                clippy::large_stack_arrays,
                reason = "so that the stack has grown to this before memory is short"
            )]
            black_box(&mut [0u8; STACK]);
            // Printing where a panic came from takes memory, under a lock. The message that there is none takes the same
            // lock: the thread would wait for itself.
            for name in ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"] {
                // SAFETY: no other thread was started yet.
                unsafe { std::env::set_var(name, "0") };
            }
        }
        // Libraries that panic where they find no memory end as those that abort.
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = info.payload_as_str().unwrap_or_default();
            let is_of_memory = text.contains("failed to allocate memory")
                && FAILED_ALLOCATION_BYTES.try_with(Cell::get).is_ok_and(|bytes| bytes > 0);
            // The standard library's word on a thread that begins without room for its stack for signals.
            let is_of_thread = text.contains("failed to allocate an alternative stack") && is_limited();
            if is_of_memory || is_of_thread {
                std::process::abort();
            }
            print(info);
        }));
        if let Ok(mut reserve) = RESERVE.lock() {
            // Where there is not even that much, a message may be missing.
            let _ = reserve.try_reserve_exact(1 << 20);
        }
        // SAFETY: zeros are a valid action, and `on_abort` is a handler of one argument.
        unsafe {
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            action.sa_sigaction = on_abort as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(libc::SIGABRT, &raw const action, ptr::null_mut());
        }
    }

    /// Whether this process may have only so much address space (`ulimit -v`).
    fn is_limited() -> bool {
        let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
        // SAFETY: the limit may be written to, and zeros are a valid one.
        let limit = unsafe {
            if libc::getrlimit(libc::RLIMIT_AS, limit.as_mut_ptr()) != 0 {
                return false;
            }
            limit.assume_init()
        };
        limit.rlim_cur != libc::RLIM_INFINITY
    }

    /// Called within `abort`, by the thread that aborts, after its last allocation has returned. No lock of the allocator is
    /// held, so functions that allocate may be called.
    extern "C" fn on_abort(signal: libc::c_int) {
        let bytes = Some(FAILED_ALLOCATION_BYTES.try_with(Cell::get).unwrap_or(0)).filter(|&bytes| bytes > 0);
        // A thread that the standard library begins maps a stack for signals, and panics where it cannot.
        if bytes.is_none() && !is_limited() {
            // Another reason: as without this handler.
            // SAFETY: zeros are the default action.
            unsafe {
                let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
                libc::raise(signal);
            }
            return;
        }
        // SAFETY: asks for a number.
        let this = unsafe { libc::pthread_self() } as usize;
        if let Err(other) = ENDING_THREAD.compare_exchange(0, this, Ordering::SeqCst, Ordering::SeqCst) {
            // SAFETY: writes a constant, waits, ends the process.
            unsafe {
                if other == this {
                    // This thread found no memory for more.
                    let _ = libc::write(
                        libc::STDERR_FILENO,
                        FALLBACK_MESSAGE.as_ptr().cast(),
                        FALLBACK_MESSAGE.len(),
                    );
                } else {
                    // Another thread is saying it, and ends the process when that is done.
                    libc::sleep(EXIT_GRACE_SECONDS);
                }
                libc::_exit(1)
            }
        }
        if let Ok(mut reserve) = RESERVE.try_lock() {
            *reserve = Vec::new();
        }
        // Not by the standard library's stream, which another thread may have been writing to when it found no memory.
        let text = wellread_cli::out_of_memory(bytes) + "\n";
        // SAFETY: writes bytes that are there, and ends the process.
        unsafe {
            let _ = libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
            libc::_exit(1)
        }
    }
}
