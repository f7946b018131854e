//! The bound on memory holds: allocations while epochs run are measured, all threads together.
//!
//! In a process of its own, where nothing else allocates.

#[path = "it/support.rs"]
#[allow(dead_code)]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use support::{Bits, TestStore, bits, images, parquet, pixels, written};
use wellread_image::{PixelType, Shape};
use wellread_loader::{Cache, Dataset, Loader, LoaderBuilder, MemoryStore, OnError};
use wellread_store::WriteOptions;

struct Weighing;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// One measurement at a time.
static ALONE: Mutex<()> = Mutex::new(());

// SAFETY: all calls go to the system allocator unchanged.
unsafe impl GlobalAlloc for Weighing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: passed on as given.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: passed on as given.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on as given.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Weighing = Weighing;

/// The memory that two epochs allocate at most at a time, besides earlier memory, and a digest of their
/// batches.
fn run(builder: &LoaderBuilder) -> (usize, Vec<u64>, Loader) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let loader = builder.clone().build().unwrap();
    let mut sums = Vec::with_capacity(10_000);
    for _ in 0..2 {
        for batch in &loader {
            let batch = batch.unwrap();
            let sum = batch.pixels().iter().fold(0u64, |sum, v| sum.rotate_left(5) ^ u64::from(v.to_bits()));
            sums.push(sum ^ batch.rows().iter().fold(0, |sum: u64, &row| sum.rotate_left(9) ^ row as u64));
            // The caller takes its time, so that the loader reads as far ahead as it may.
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
    }
    (PEAK.load(Ordering::Relaxed) - before, sums, loader)
}

/// The memory of the test itself, of starting threads and the like.
const SLACK: usize = 200_000;

fn check(builder: &LoaderBuilder, limit: usize) -> Loader {
    let (_, expected, _) = run(builder);
    let (peak, sums, loader) = run(&builder.clone().memory(limit));
    let memory = loader.memory().unwrap();
    assert!(memory.total() <= limit, "{memory}");
    assert!(peak <= limit + SLACK, "{peak} bytes of {limit}: {memory}");
    assert_eq!(sums, expected, "{memory}");
    loader
}

fn sides(sides: impl Iterator<Item = usize>) -> MemoryStore {
    let mut store = MemoryStore::new("sized");
    for (i, side) in sides.enumerate() {
        let shape = Shape::plane(side, side);
        store
            .push(i.to_string(), shape, PixelType::U16, pixels(shape, PixelType::U16, i as u64 + 1))
            .unwrap();
    }
    store
}

#[test]
fn prefetch_is_lowered_until_it_fits() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dataset = Dataset::from_store(Box::new(images(200, Shape::plane(100, 100), PixelType::U16)));
    // 640 KB a batch.
    let builder = Loader::builder(&dataset).batch_size(16).shuffle(1).workers(2).prefetch(10);
    // Threads of a busy machine may not get as far ahead as they may.
    assert!((0..100).any(|_| run(&builder).0 > 6_400_000), "never are ten batches ahead");
    let roomy = check(&builder, 64 << 20);
    assert_eq!((roomy.prefetch(), roomy.memory().unwrap().lowered.as_deref()), (10, None));
    let tight = check(&builder, 4 << 20);
    assert!((2..6).contains(&tight.prefetch()), "{}", tight.memory().unwrap());
    let line = tight.memory().unwrap().to_string();
    assert!(line.contains("of 4 MiB: ") && line.contains("; prefetch lowered from 10 to "), "{line}");
    let tightest = check(&builder, 1_500_000);
    assert_eq!(tightest.prefetch(), 1);
    let error = builder.memory(1_000_000).build().unwrap_err().to_string();
    assert!(
        error.contains("a batch of 16 images has 625.") && error.contains("smaller batch size"),
        "{error}"
    );
    assert!(error.contains("at least 1.3 MiB of memory"), "{error}");
}

/// Pages in the store's cache and in work count.
#[test]
fn decoded_pages_count() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let dataset = parquet(
        &folder.path().join("set.parquet"),
        &images(1000, Shape::plane(100, 100), PixelType::U16),
        None,
    );
    let open = || {
        let dataset = dataset.reopened().unwrap();
        // Its index is in memory before.
        assert!((0..1000).all(|row| dataset.store().row_hints(row).unwrap().working_bytes().is_ok()));
        dataset
    };
    for workers in [0, 1, 3] {
        let builder = || Loader::builder(&open()).batch_size(8).shuffle(1).workers(workers).clone();
        let (unbounded, expected, _) = run(&builder());
        assert!(unbounded > 15 << 20, "the cache holds all pages: {unbounded}");
        for limit in [12 << 20, 16 << 20] {
            let (peak, sums, loader) = run(&builder().memory(limit));
            let memory = loader.memory().unwrap();
            assert!(memory.total() <= limit && peak <= limit + SLACK, "{peak} of {limit}: {memory}");
            assert!(sums == expected);
        }
    }
}

/// One image in ten has a hundred times the pixels of the others.
#[test]
fn images_that_differ_in_size_stay_within_the_bound() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let store = sides((0..60).map(|i| if i % 10 == 3 { 800 } else { 60 + i }));
    for format in ["tiff", "ome-zarr", "parquet", "image-folder"] {
        let dataset = written(&folder.path().join(format), format, &store, &WriteOptions::default());
        for transform in [
            wellread_loader::Transform::default().resize(64, 64).scale_by_percentiles(1.0, 99.0),
            wellread_loader::Transform::default().random_crop(50, 50),
        ] {
            let dataset = dataset.reopened().unwrap();
            // Headers are in memory before.
            assert!((0..60).all(|row| dataset.store().row_hints(row).unwrap().working_bytes().is_ok()));
            let builder = Loader::builder(&dataset).batch_size(6).shuffle(2).workers(3).transform(transform);
            let limit = 36 << 20;
            let (_, expected, _) = run(&builder);
            let (peak, sums, loader) = run(&builder.memory(limit));
            let memory = loader.memory().unwrap();
            assert!(
                memory.total() <= limit && peak <= limit + SLACK,
                "{format}: {peak} of {limit}: {memory}"
            );
            assert!(sums == expected, "{format}");
        }
    }
}

/// Reads of several batches at once become shorter.
#[test]
fn joined_reads_stay_within_the_bound() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut store = TestStore::new(images(400, Shape::plane(64, 64), PixelType::U8));
    store.rows_per_read = 128;
    let dataset = store.dataset();
    for workers in [0, 2] {
        let builder = Loader::builder(&dataset).batch_size(8).shuffle(2).workers(workers);
        assert_eq!(builder.clone().build().unwrap().batches_per_read(), 16);
        let loader = check(&builder, 2 << 20);
        assert!((1..16).contains(&loader.batches_per_read()), "{}", loader.batches_per_read());
        assert!(loader.memory().unwrap().to_string().contains("joined batches lowered from 16 to"));
    }
}

#[test]
fn caches_count() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dataset = Dataset::from_store(Box::new(images(200, Shape::plane(100, 100), PixelType::U16)));
    for cache in ["memory:1MiB", "lru:1MiB", "compressed:1MiB", "preload:1MiB", "chunked:8:1MiB"] {
        let cache: Cache = cache.parse().unwrap();
        let cached = || dataset.clone().with_cache(&cache).unwrap();
        let builder = || Loader::builder(&cached()).batch_size(8).shuffle(3).workers(2).prefetch(20);
        let (_, expected, _) = run(&builder());
        let (peak, sums, loader) = run(&builder().memory(8 << 20));
        let memory = loader.memory().unwrap();
        assert_eq!(memory.cache_bytes, 1 << 20);
        assert!(peak <= (8 << 20) + SLACK, "{cache}: {peak}: {memory}");
        assert!(sums == expected);
    }
    let all = dataset.with_cache(&Cache::MEMORY).unwrap();
    let error = Loader::builder(&all).batch_size(8).memory(3 << 20).build().unwrap_err().to_string();
    assert!(error.contains("3.8 MiB for caches") && error.contains("a smaller cache"), "{error}");
}

/// A row that nobody looked at when the loader was made and that takes too much is an error of that row.
#[test]
fn an_image_that_alone_does_not_fit_is_refused() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let store = sides((0..30).map(|i| if i == 17 { 1500 } else { 40 }));
    let dataset = Dataset::from_store(Box::new(store));
    let builder = Loader::builder(&dataset).batch_size(5).crop(40, 40).workers(2);
    let error = builder.clone().memory(1 << 20).build().unwrap_err().to_string();
    assert!(error.contains("to read by one thread") && error.contains("1 MiB"), "{error}");
    // Without it there is room.
    let rows: Vec<usize> = (0..30).filter(|&row| row != 17).collect();
    let loader = builder.on_error(OnError::Skip).rows(rows).memory(1 << 20).build().unwrap();
    let all: Vec<Bits> = loader.iter().map(|batch| bits(&batch.unwrap())).collect();
    assert_eq!(all.iter().map(|(_, rows, _)| rows.len()).sum::<usize>(), 29);
}
