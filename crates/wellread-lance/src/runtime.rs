//! The runtime that Lance's asynchronous calls run in: one for the process, started at first use.

use crate::error::from_lance;
use std::convert::Infallible;
use std::future::Future;
use std::path::Path;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};
use wellread_store::guard::{guarded, quiet_this_thread};
use wellread_store::{Error, Result};

/// The runtime. Its threads wait for files; decoding runs in a pool of Lance's own.
fn runtime(path: &Path) -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<std::result::Result<Runtime, String>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("wellread-lance")
            .on_thread_start(quiet_this_thread)
            .enable_all()
            .build()
            .map_err(|e| e.to_string())
    });
    made.as_ref()
        .map_err(|e| Error::new(path, format_args!("the threads that Lance needs cannot be started: {e}")))
}

/// Runs `work`, which calls Lance; `None` where it panics.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    guarded(Path::new(""), "", || Ok::<_, Infallible>(work())).ok()
}

/// Waits for a call of Lance about the table at `path`; its errors and panics are errors of `what`.
pub(crate) fn wait<T>(path: &Path, what: &str, call: impl Future<Output = lance::Result<T>>) -> Result<T> {
    let runtime = runtime(path)?;
    let result = guarded(path, what, || Ok::<_, Infallible>(runtime.block_on(call)))?;
    result.map_err(|e| from_lance(path, what, &e))
}
