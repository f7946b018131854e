//! A thread that fills a cache while the training starts.

use super::read_through::ReadThroughCache;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Builder;
use wellread_store::process::Thread;
use wellread_store::{Error, Result, RowHints, Scratch, place};

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
        let thread = Thread::start(Builder::new().name("wellread-preload".into()), move || {
            // Dropping the cache does not wait for a network.
            place::until(&stopped, || run(&weak, &stopped));
        })
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
        let (mut sized, mut bytes) = (vec![], 0usize);
        while bytes < BYTES
            && !stop.load(Ordering::Relaxed)
            && let Some(row) = order.next()
        {
            // A row that cannot be read is an error where it is asked for.
            if !kept.contains(row)
                && let Ok(info) = kept.inner().row_info(row)
            {
                let size = info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX);
                sized.push((row, size));
                bytes = bytes.saturating_add(size);
            }
        }
        if sized.is_empty() || stop.load(Ordering::Relaxed) {
            return;
        }
        // Rows that others read already are kept by them.
        let claim = kept.in_flight.claim(&sized, usize::MAX);
        let rows: Vec<usize> = claim.rows().iter().copied().filter(|&row| !kept.contains(row)).collect();
        if rows.is_empty() {
            continue;
        }
        // A panic of a reader is told where the row is asked for, as an error is, and the next rows are read.
        let mut fill = |rows: &[usize]| {
            let filled = catch_unwind(AssertUnwindSafe(|| kept.fill(rows, &mut scratch)));
            filled.unwrap_or_else(|_| {
                scratch = Scratch::default();
                Err(Error::new(kept.inner().path(), "panicked"))
            })
        };
        match fill(&rows) {
            Ok(true) => return,
            Ok(false) => {}
            Err(_) if stop.load(Ordering::Relaxed) => return,
            Err(_) => rows.chunks(1).for_each(|row| drop(fill(row))),
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

#[cfg(test)]
mod tests {
    use super::super::in_flight::InFlightReads;
    use super::super::memory::Memory;
    use super::*;
    use crate::MemoryStore;
    use std::sync::atomic::AtomicU64;
    use wellread_image::{PixelType, Shape};

    #[test]
    fn rows_that_others_read_are_left_to_them_and_none_is_read_once_it_is_stopped() {
        let mut store = MemoryStore::new("preloaded");
        for row in 0..4 {
            store.push(format!("{row}"), Shape::plane(2, 3), PixelType::U8, vec![row; 6]).unwrap();
        }
        let kept = Arc::new(ReadThroughCache {
            inner: Arc::new(store),
            backend: Box::new(Memory::new(4, 3 * 6)),
            chunk: 1,
            in_flight: InFlightReads::default(),
            hits: AtomicU64::default(),
            misses: AtomicU64::default(),
        });
        let are_kept = || (0..4).map(|row| kept.contains(row)).collect::<Vec<_>>();
        run(&Arc::downgrade(&kept), &AtomicBool::new(true));
        assert_eq!(are_kept(), [false; 4]);
        let claim = kept.in_flight.claim(&[(1, 6)], 6);
        run(&Arc::downgrade(&kept), &AtomicBool::new(false));
        // There is room for three, so none was taken for the row that was left.
        assert_eq!(are_kept(), [true, false, true, true]);
        drop(claim);
    }
}
