//! A thread that fills a cache while the training starts.

use super::read_through::ReadThroughCache;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Builder;
use wellread_store::process::Thread;
use wellread_store::{Error, Result, RowHints, Scratch};

/// Bytes of pixels that are read in one go, so that a thread that ends is not waited for long.
const BYTES: usize = 4 << 20;

/// The running thread; dropping it ends it.
pub(super) struct Preload {
    stop: Arc<AtomicBool>,
    thread: Option<Thread>,
}

impl Preload {
    /// Starts reading every row that is not kept yet, in storage order, until there is no room.
    pub fn start(kept: &Arc<ReadThroughCache>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (weak, stopped) = (Arc::downgrade(kept), Arc::clone(&stop));
        let path = kept.inner().path();
        let thread =
            Thread::start(Builder::new().name("wellread-preload".into()), move || run(&weak, &stopped))
                .map_err(|e| Error::new(path, format_args!("cannot start the thread that preloads: {e}")))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

fn run(kept: &Weak<ReadThroughCache>, stop: &AtomicBool) {
    let mut scratch = Scratch::default();
    let mut order: Vec<(u64, usize)> = match kept.upgrade() {
        Some(kept) => {
            let inner = kept.inner();
            let position = |row| inner.row_hints(row).map_or(u64::MAX, RowHints::position);
            (0..inner.len()).map(|row| (position(row), row)).collect()
        }
        None => return,
    };
    order.sort_unstable();
    let mut order = order.into_iter().map(|(_, row)| row);
    loop {
        // Looked for anew each time: this thread keeps no set open that nobody uses.
        let Some(kept) = kept.upgrade() else { return };
        let (mut rows, mut bytes) = (vec![], 0);
        while bytes < BYTES
            && let Some(row) = order.next()
        {
            // A row that cannot be read is an error where it is asked for.
            if !kept.contains(row)
                && let Ok(info) = kept.inner().row_info(row)
            {
                rows.push(row);
                bytes += info.shape.pixels() * info.dtype.size();
            }
        }
        if rows.is_empty() || stop.load(Ordering::Relaxed) {
            return;
        }
        match kept.fill(&rows, &mut scratch) {
            Ok(true) => return,
            Ok(false) => {}
            Err(_) => rows.iter().for_each(|&row| {
                let _ = kept.fill(&[row], &mut scratch);
            }),
        }
    }
}

impl Drop for Preload {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}
