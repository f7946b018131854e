//! Instructions that a thread executes: a figure that other programs on the machine hardly change.
//!
//! ```text
//! Instructions::count() ─▶ perf_event_open(2), user mode only ─▶ work ─▶ so_far()
//! ```
//!
//! Where times are noisy, as on shared machines, instructions tell whether the same work is done. Two runs of one
//! program differ by less than a per mille. They do not tell how long it takes; waiting for memory is not counted. The
//! kernel must allow it (`kernel.perf_event_paranoid` at most 2) and the processor must count, which that of many
//! virtual machines does not.

use std::fs::File;
use std::io::{self, Read};

use crate::sys;

/// A running counter of the instructions of the thread that made it, and of threads that it starts from then on.
///
/// ```
/// use wellread_measure::counters::Instructions;
///
/// match Instructions::count() {
///     Ok(counter) => {
///         let before = counter.so_far().unwrap();
///         let sum: u64 = std::hint::black_box(0..1000).sum();
///         std::hint::black_box(sum);
///         assert!(counter.so_far().unwrap() > before);
///     }
///     Err(why) => println!("not counted: {why}"),
/// }
/// ```
#[derive(Debug)]
pub struct Instructions {
    counter: File,
}

impl Instructions {
    /// Begins to count.
    ///
    /// # Errors
    /// The system does not allow it, or the machine does not count: which of the two, in words.
    pub fn count() -> io::Result<Self> {
        sys::count_instructions().map(|counter| Self { counter }).map_err(|e| explained(&e))
    }

    /// Instructions in user mode since [`Instructions::count`].
    ///
    /// # Errors
    /// The kernel does not give the figure.
    pub fn so_far(&self) -> io::Result<u64> {
        let mut value = [0; 8];
        (&self.counter).read_exact(&mut value)?;
        Ok(u64::from_ne_bytes(value))
    }
}

fn explained(error: &io::Error) -> io::Error {
    let paranoid = sys::proc_file("sys/kernel/perf_event_paranoid").unwrap_or_default();
    let text = match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "the system allows no counting of instructions (kernel.perf_event_paranoid is {}; 2 would do)",
            String::from_utf8_lossy(&paranoid).trim()
        ),
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
            "this processor, or the virtual machine it is in, counts no instructions".to_owned()
        }
        _ => format!("instructions cannot be counted: {error}"),
    };
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(steps: u64) {
        let mut state = 1u64;
        for step in 0..steps {
            state = std::hint::black_box(state.wrapping_mul(6364136223846793005).wrapping_add(step));
        }
    }

    #[test]
    fn twice_the_work_is_twice_the_instructions_or_the_reason_is_told() {
        let counter = match Instructions::count() {
            Ok(counter) => counter,
            Err(why) => {
                let why = why.to_string();
                assert!(why.contains("instructions"), "{why}");
                return;
            }
        };
        let of = |steps| {
            let before = counter.so_far().unwrap();
            work(steps);
            counter.so_far().unwrap() - before
        };
        let (once, twice) = (of(1_000_000), of(2_000_000));
        let ratio = twice as f64 / once as f64;
        assert!((1.9..2.1).contains(&ratio), "{once} {twice}");
    }

    #[test]
    fn refusals_are_explained() {
        let of = |kind: io::ErrorKind| explained(&kind.into()).to_string();
        assert!(of(io::ErrorKind::PermissionDenied).contains("perf_event_paranoid"));
        assert!(of(io::ErrorKind::NotFound).contains("virtual machine"));
        assert!(of(io::ErrorKind::Interrupted).contains("cannot be counted"));
    }
}
