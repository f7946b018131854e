//! The `wellread` program: see the library of this crate.

#[cfg(unix)]
mod closed_stdout;
mod out_of_memory;

use std::process::ExitCode;

fn main() -> ExitCode {
    out_of_memory::prepare();
    #[cfg(unix)]
    if closed_stdout::was_closed() {
        wellread_cli::stdout_is_closed();
    }
    ignore_file_size_signal();
    wellread_cli::run().into()
}

/// A file beyond the limit of its size (`ulimit -f`) is an error of the write, as a full disk is. Otherwise the signal
/// ends the process without a message, and a half-written file stays. This is for the program alone: a Python process
/// belongs to its user, and Python does so itself.
fn ignore_file_size_signal() {
    #[cfg(unix)]
    // SAFETY: sets a signal to be ignored, before any thread begins.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
