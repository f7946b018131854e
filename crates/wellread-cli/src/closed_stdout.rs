//! Whether the program began with a closed stdout (`wellread … >&-`).
//!
//! Rust's start opens `/dev/null` in the place of a closed stream, which takes all that is printed: it would be lost without an error.
//! So a function that the system calls before that start looks first. A user's own `>/dev/null` is an open stream, and no error.
//!
//! ```text
//!  system ─▶ record_closed_stdout: is there a stream 1? ─▶ Rust's start: /dev/null where there is none ─▶ main ─▶ was_closed
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Called before `main`, and before Rust's own start.
extern "C" fn record_closed_stdout() {
    // SAFETY: asks for the flags of a stream, which need not be open.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    // An error of it is that the stream is not open.
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the functions of this section are called once each, before all else. This one calls nothing that needs Rust's start.
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static BEFORE_MAIN: extern "C" fn() = record_closed_stdout;

/// Whether stdout was closed when the program began.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
