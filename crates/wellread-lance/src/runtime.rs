//! The runtime that Lance's asynchronous calls run in: one for the process, started at first use. A process that was
//! forked from it has none of its threads, so it starts one of its own.

use crate::error::from_lance;
use futures::future::{Either, select};
use std::convert::Infallible;
use std::future::{Future, pending};
use std::path::Path;
use std::pin::pin;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use wellread_store::guard::{guarded, quiet_this_thread};
use wellread_store::{Error, Result, place};

/// How often a thread that waits for a network looks whether anybody wants the answer.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A runtime, and the process that its threads are in.
struct Started {
    process: u32,
    runtime: Runtime,
}

/// The runtime. Its threads wait for files; decoding runs in a pool of Lance's own.
fn runtime(path: &Path) -> Result<&'static Runtime> {
    // No lock, which a thread of the parent may have held when this process was forked.
    static STARTED: AtomicPtr<Started> = AtomicPtr::new(ptr::null_mut());
    let process = wellread_store::process::id();
    let mut known = STARTED.load(Ordering::Acquire);
    loop {
        // SAFETY: the value there is never freed nor changed: a runtime of the parent is left as it is.
        if let Some(started) = unsafe { known.as_ref() }
            && started.process == process
        {
            return Ok(&started.runtime);
        }
        let runtime = start().map_err(|e| {
            Error::new(path, format_args!("the threads that Lance needs cannot be started: {e}"))
        })?;
        let new = Box::into_raw(Box::new(Started { process, runtime }));
        match STARTED.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => known = new,
            Err(other) => {
                // SAFETY: it was made here and put nowhere.
                drop(unsafe { Box::from_raw(new) });
                known = other;
            }
        }
    }
}

fn start() -> std::io::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("wellread-lance")
        .on_thread_start(quiet_this_thread)
        .enable_all()
        .build()
}

/// Runs `work`, which calls Lance; `None` where it panics.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    guarded(Path::new(""), "", || Ok::<_, Infallible>(work())).ok()
}

/// Ends once nobody wants any more what this thread reads of the table at `path`, where that is remote.
async fn unwanted(path: &Path) {
    let stop = if place::is_remote(path) { place::stop() } else { None };
    let Some(stop) = stop else { return pending().await };
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Waits for a call of Lance about the table at `path`; its errors and panics are errors of `what`.
pub(crate) fn wait<T>(
    path: &Path,
    what: &str,
    call: impl Future<Output = lance_core::Result<T>>,
) -> Result<T> {
    let runtime = runtime(path)?;
    let wanted = async {
        match select(pin!(call), pin!(unwanted(path))).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(_) => None,
        }
    };
    match guarded(path, what, || Ok::<_, Infallible>(runtime.block_on(wanted)))? {
        Some(result) => result.map_err(|e| from_lance(path, what, &e)),
        None => Err(Error::new(path, format_args!("{what}: given up, since nobody wants it any more"))),
    }
}
