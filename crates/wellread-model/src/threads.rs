//! The threads of a model: a pool of its own, in which all of it runs.
//!
//! After `fork` the child must make a new model, since threads do not survive it.

use crate::tile::instruction_set;
use crate::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// A pool of that many threads; 0 takes as many as there are processors.
///
/// # Errors
/// Threads that cannot be started.
pub(crate) fn thread_pool(threads: usize) -> Result<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("wellread-model-{i}"))
        .build()
        .map_err(|e| Error::new(format_args!("cannot start {threads} threads: {e}")))
}

/// The kernels that compute in that pool where no library does: for reports.
pub(crate) fn own_kernels(pool: &ThreadPool) -> String {
    format!("wellread's own kernels, {} (cpu, {})", instruction_set(), in_words(pool.current_num_threads()))
}

/// So many threads in words.
pub(crate) fn in_words(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_in_the_singular() {
        assert_eq!([1, 2].map(in_words), ["1 thread", "2 threads"]);
        assert!(own_kernels(&thread_pool(1).unwrap()).ends_with(" (cpu, 1 thread)"));
    }
}
