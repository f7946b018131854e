//! Threads end when they should, and nothing hangs.

use crate::support::{Fault, TestStore, images};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::Duration;
use wellread_image::{PixelType, Shape};
use wellread_loader::{Batch, Dataset, Loader, OnError, Stopper, Transform};

fn is_shareable<T: Send + Sync>() {}

#[test]
fn everything_may_be_shared() {
    is_shareable::<Dataset>();
    is_shareable::<Loader>();
    is_shareable::<Batch>();
    is_shareable::<Transform>();
}

/// Dropping an iterator in mid-epoch ends reading at the next block: the batches in work are not finished.
#[test]
fn dropping_in_mid_epoch_stops_the_threads() {
    for (workers, on_error) in [(1, OnError::Raise), (2, OnError::Raise), (4, OnError::Skip)] {
        let mut store = TestStore::new(images(40, Shape::plane(64, 64), PixelType::U8));
        store.chunk = Some([1, 1, 1, 4, 4]);
        store.delay = Duration::from_millis(20);
        let blocks = store.blocks.clone();
        let builder = Loader::builder(&store.dataset()).batch_size(2).workers(workers);
        let iter = builder.on_error(on_error).build().unwrap().iter();
        while blocks.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        drop(iter);
        let after = blocks.load(Ordering::Relaxed);
        // Batches that may be in work hold this many blocks: ten seconds of reading.
        assert!(after < 2 * workers * 2 * 256, "{after} blocks were read");
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(blocks.load(Ordering::Relaxed), after, "a thread is still reading");
    }
}

#[test]
fn iterators_may_be_dropped_at_any_time_and_run_side_by_side() {
    let dataset = TestStore::new(images(30, Shape::plane(16, 16), PixelType::U8)).dataset();
    let loader = Loader::builder(&dataset).batch_size(3).shuffle(1).workers(2).prefetch(2).build().unwrap();
    for taken in 0..=10 {
        let mut iter = loader.iter();
        assert_eq!(iter.by_ref().take(taken).flatten().count(), taken);
    }
    let (mut a, mut b) = (loader.iter_at(0, 0), loader.iter_at(0, 0));
    while let (Some(x), Some(y)) = (a.next(), b.next()) {
        assert_eq!(x.unwrap().pixels(), y.unwrap().pixels());
    }
    assert!(a.next().is_none() && b.next().is_none() && a.next().is_none());
}

/// The threads that have read for [`without_workers_the_thread_that_asks_reads`].
static READERS: Mutex<Vec<ThreadId>> = Mutex::new(vec![]);

/// The threads that have read since this was asked before.
fn readers() -> Vec<ThreadId> {
    std::mem::take(&mut *READERS.lock().unwrap())
}

/// Without workers nobody reads but the thread that asks, whichever that is. With workers others have begun before it
/// asks.
#[test]
fn without_workers_the_thread_that_asks_reads() {
    let loader = |workers: usize| {
        let mut store = TestStore::new(images(12, Shape::plane(4, 4), PixelType::U8));
        store.on_read = || READERS.lock().unwrap().push(std::thread::current().id());
        Loader::builder(&store.dataset()).batch_size(2).workers(workers).build().unwrap()
    };
    let here = std::thread::current().id();
    let alone = loader(0);
    assert_eq!(alone.iter().flatten().count(), 6);
    let read = readers();
    assert!(!read.is_empty() && read.iter().all(|&reader| reader == here), "{read:?}, not {here:?}");
    let (there, count) = std::thread::scope(|scope| {
        let other = scope.spawn(|| (std::thread::current().id(), alone.iter().flatten().count()));
        other.join().unwrap()
    });
    let read = readers();
    assert!(count == 6 && there != here);
    assert!(!read.is_empty() && read.iter().all(|&reader| reader == there), "{read:?}, not {there:?}");

    let batches = loader(2).iter();
    while READERS.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    drop(batches);
    assert!(!readers().contains(&here), "nobody has asked for a batch here");
}

/// A thread that waits for a batch that nobody reads any more gets an error.
#[test]
fn stopping_ends_the_wait_for_a_batch() {
    for (workers, joined) in [(0, 1), (1, 1), (2, 1), (1, 4), (2, 4)] {
        let mut store = TestStore::new(images(400, Shape::plane(4, 4), PixelType::U8));
        store.rows_per_read = joined * 2;
        let loader = Loader::builder(&store.dataset()).batch_size(2).workers(workers).build().unwrap();
        let mut iter = loader.iter();
        iter.next().unwrap().unwrap();
        iter.stopper().stop();
        // Batches that were done by then may still come.
        assert!(iter.any(|batch| batch.is_err()), "{workers} workers, {joined} joined");
    }
}

/// The handle and the reads of [`a_batch_that_is_stopped_between_its_rows_is_an_error`].
static STOPPER: Mutex<Option<Stopper>> = Mutex::new(None);
static READS: AtomicUsize = AtomicUsize::new(0);

/// Rows of a batch that failed are read one by one. Those that were not read when it was stopped hold nothing.
#[test]
fn a_batch_that_is_stopped_between_its_rows_is_an_error() {
    let mut store = TestStore::new(images(8, Shape::plane(4, 4), PixelType::U8));
    store.faults = vec![(1, Fault::Fail)];
    // The first read is of all rows, and the second one of the first row alone.
    store.on_read = || {
        if READS.fetch_add(1, Ordering::Relaxed) == 1
            && let Some(stopper) = &*STOPPER.lock().unwrap()
        {
            stopper.stop();
        }
    };
    let builder = Loader::builder(&store.dataset()).batch_size(4).workers(0);
    let mut iter = builder.on_error(OnError::Skip).build().unwrap().iter();
    *STOPPER.lock().unwrap() = Some(iter.stopper());
    let error = iter.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("reading was cancelled"), "{error}");
    *STOPPER.lock().unwrap() = None;
}

#[test]
fn readers_run_no_further_ahead_than_prefetch() {
    let store = TestStore::new(images(40, Shape::plane(4, 4), PixelType::U8));
    let blocks = store.blocks.clone();
    let loader = Loader::builder(&store.dataset()).batch_size(2).workers(3).prefetch(4).build().unwrap();
    let mut iter = loader.iter();
    for delivered in 1..=20 {
        iter.next().unwrap().unwrap();
        // Give threads that would run too far every chance to.
        std::thread::sleep(Duration::from_millis(2));
        let read = blocks.load(Ordering::Relaxed);
        assert!(read <= 2 * (delivered + 4), "{read} images read after {delivered} batches");
    }
}

/// A batch stays as it is while later ones are read, even when all are kept.
#[test]
fn batches_may_be_kept() {
    let dataset = TestStore::new(images(24, Shape::plane(8, 8), PixelType::U8)).dataset();
    let loader = Loader::builder(&dataset).batch_size(2).workers(2).build().unwrap();
    for _ in 0..2 {
        let all = loader.collect_epoch().unwrap();
        for batch in &all {
            for (i, &row) in batch.rows().iter().enumerate() {
                let (_, native) = dataset.read(row).unwrap();
                assert!(batch.image(i).iter().zip(&native).all(|(a, b)| *a == *b as f32));
            }
        }
    }
}

/// The iterator owns what it needs, so it may outlive loader and dataset, and move to another thread.
#[test]
fn an_iterator_outlives_its_loader() {
    let iter = {
        let dataset = TestStore::new(images(6, Shape::plane(4, 4), PixelType::U8)).dataset();
        Loader::builder(&dataset).batch_size(2).workers(2).build().unwrap().iter()
    };
    assert_eq!(std::thread::spawn(move || iter.flatten().count()).join().unwrap(), 3);
}
