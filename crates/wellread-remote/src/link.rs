//! The state that a process has once for all its places: a small runtime, HTTP clients, limits, and the known buckets
//! and objects.
//!
//! A process that was forked has none of the threads, so it makes all of it anew; the parent's is left as it is. Files
//! that were open stay open: they know addresses and ETags, not connections.

use crate::bucket::Bucket;
use crate::byte_limit::ByteLimit;
use crate::clients::Clients;
use crate::heads::Heads;
use crate::listings::Listings;
use crate::pieces::{POLL_INTERVAL, Pieces};
use crate::settings;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::ptr;
use std::str::FromStr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use wellread_store::parse_bytes;
use wellread_store::place::{self, shutdown};
use wellread_store::{guard, process};

/// Threads that wait for sockets and decrypt.
const THREADS: usize = 4;

/// How often a request is made at most, where nothing else is said. The shortest waits between them outlast a store that throttles for a
/// minute.
pub(crate) const ATTEMPTS: u32 = 16;

/// Limits of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How often a request is made at most.
    pub(crate) attempts: u32,
    /// How long nothing may come.
    pub(crate) stall: Duration,
    /// How long the removal of uploads that were begun may take.
    pub(crate) abort: Duration,
    /// Requests at once.
    pub(crate) in_flight: usize,
    /// Bytes fetched ahead and not read yet, of each reader.
    pub(crate) link_bytes: u64,
}

impl Limits {
    fn from_environment() -> io::Result<Self> {
        Ok(Self {
            attempts: number("WELLREAD_ATTEMPTS")?.unwrap_or(ATTEMPTS).max(1),
            stall: seconds("WELLREAD_TIMEOUT", 30.0)?,
            abort: seconds("WELLREAD_ABORT_TIMEOUT", 10.0)?,
            in_flight: match settings::get().in_flight {
                Some(in_flight) => in_flight,
                None => number("WELLREAD_IN_FLIGHT")?.unwrap_or(128),
            }
            .clamp(1, 4096),
            link_bytes: match settings::get().link_bytes {
                Some(bytes) => bytes,
                None => bytes("WELLREAD_LINK_BYTES")?.unwrap_or(256 << 20),
            },
        })
    }
}

/// A number in the environment; `None` where it is not set.
fn number<T: FromStr>(name: &str) -> io::Result<Option<T>> {
    let text = std::env::var(name).unwrap_or_default();
    if text.trim().is_empty() {
        return Ok(None);
    }
    text.trim().parse().map(Some).map_err(|_| {
        let cause = format!("the environment variable {name} is no number");
        io::Error::new(io::ErrorKind::InvalidInput, cause)
    })
}

/// A number of bytes in the environment, such as 1GiB; `None` where it is not set.
fn bytes(name: &str) -> io::Result<Option<u64>> {
    let text = std::env::var(name).unwrap_or_default();
    if text.trim().is_empty() {
        return Ok(None);
    }
    parse_bytes(text.trim()).map(Some).map_err(|why| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("the environment variable {name}: {why}"))
    })
}

/// Seconds in the environment, or others where it has none that can be waited for.
fn seconds(name: &str, otherwise: f64) -> io::Result<Duration> {
    let said = number(name)?.filter(|seconds: &f64| (0.05..1e6).contains(seconds));
    Ok(Duration::from_secs_f64(said.unwrap_or(otherwise)))
}

/// All that the process has once.
#[derive(Debug)]
pub(crate) struct Link {
    process: u32,
    runtime: Runtime,
    pub(crate) clients: Clients,
    pub(crate) limits: Limits,
    pub(crate) in_flight: Arc<Semaphore>,
    /// The bytes of requests ahead that are on their way.
    pub(crate) byte_limit: ByteLimit,
    pub(crate) heads: Heads,
    pub(crate) listings: Listings,
    /// The pieces that were asked for ahead.
    pub(crate) pieces: Pieces,
    buckets: Mutex<HashMap<String, Arc<Bucket>>>,
    /// Held while one is being connected to, so that its credentials are looked for once.
    connecting: Mutex<()>,
}

/// The link of this process, made at first use.
pub(crate) fn link() -> io::Result<&'static Link> {
    // No lock, which a thread of the parent may have held when this process was forked.
    static MADE: AtomicPtr<Link> = AtomicPtr::new(ptr::null_mut());
    let process = process::id();
    let mut known = MADE.load(Ordering::Acquire);
    loop {
        // SAFETY: the value there is never freed; that of the parent is left as it is.
        if let Some(link) = unsafe { known.as_ref() }
            && link.process == process
        {
            return Ok(link);
        }
        let new = Box::into_raw(Box::new(Link::new(process)?));
        match MADE.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => known = new,
            Err(other) => {
                // SAFETY: it was made here and put nowhere.
                let lost = unsafe { Box::from_raw(new) };
                lost.runtime.shutdown_background();
                known = other;
            }
        }
    }
}

impl Link {
    fn new(process: u32) -> io::Result<Self> {
        let limits = Limits::from_environment()?;
        let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(1, THREADS);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("wellread-remote")
            .on_thread_start(guard::quiet_this_thread)
            .enable_all()
            .build()?;
        Ok(Self {
            process,
            runtime,
            clients: Clients::new(limits.stall),
            limits,
            in_flight: Arc::new(Semaphore::new(limits.in_flight)),
            byte_limit: ByteLimit::default(),
            heads: Heads::default(),
            listings: Listings::default(),
            pieces: Pieces::default(),
            buckets: Mutex::default(),
            connecting: Mutex::default(),
        })
    }

    /// Whether it is this process's, whose threads are here.
    pub(crate) fn is_own(&self) -> bool {
        self.process == process::id()
    }

    /// Waits for `work`, which runs in the runtime's threads: the caller may be in any thread, also in that of another
    /// runtime. It is given up where nobody wants any more what the thread reads, and where the process ends and nothing answers.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let given_up = || io::Error::other("given up, since nobody wants it any more");
        if shutdown::has_timed_out(self.limits.abort) {
            return Err(given_up());
        }
        let (send, receive) = mpsc::sync_channel(1);
        let task = self.runtime.spawn(async move {
            let _ = send.send(work.await);
        });
        let asked = Instant::now();
        let answer = wait_for(&receive, self.limits.abort);
        place::count_waited(asked.elapsed());
        if matches!(answer, Some(Ok(_))) {
            shutdown::note_answer();
        }
        answer.unwrap_or_else(|| {
            task.abort();
            Err(given_up())
        })
    }

    /// Starts `work` without waiting for it.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.runtime.spawn(work)
    }

    fn buckets(&self) -> MutexGuard<'_, HashMap<String, Arc<Bucket>>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bucket `name`, connected to by `connect` if it is not known yet.
    pub(crate) fn bucket(
        &self,
        name: &str,
        connect: impl FnOnce() -> io::Result<Bucket>,
    ) -> io::Result<Arc<Bucket>> {
        if let Some(bucket) = self.buckets().get(name) {
            return Ok(bucket.clone());
        }
        let _one = self.connecting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = self.buckets().get(name) {
            return Ok(bucket.clone());
        }
        let bucket = Arc::new(connect()?);
        self.buckets().insert(name.to_owned(), bucket.clone());
        Ok(bucket)
    }
}

/// The value, once it is there; `None` if the waiting thread has given up meanwhile, or the process
/// ends and nothing answers for so long.
fn wait_for<T>(receive: &mpsc::Receiver<io::Result<T>>, patience: Duration) -> Option<io::Result<T>> {
    let ended = || Err(io::Error::other("the request ended in a panic"));
    let stop = place::stop();
    if stop.is_none() && !shutdown::is_begun() {
        return Some(receive.recv().unwrap_or_else(|_| ended()));
    }
    let is_stopped = || stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
    loop {
        match receive.recv_timeout(POLL_INTERVAL) {
            Ok(result) => return Some(result),
            Err(RecvTimeoutError::Disconnected) => return Some(ended()),
            Err(RecvTimeoutError::Timeout) if is_stopped() || shutdown::has_timed_out(patience) => {
                return None;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
