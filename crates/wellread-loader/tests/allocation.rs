//! In steady state nothing is allocated, neither by the consumer nor by the workers.
//!
//! A counting allocator counts only threads that are marked: the test marks its own, and the store marks each worker as
//! it reads. In a process of its own: stores share the files that one may keep open, and others would take them all.

#[path = "it/support.rs"]
#[allow(dead_code)]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use support::{TestStore, images, parquet, written};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{Dataset, ItemContext, Jitter, Loader, Noise, Normalize, Output, Transform};
use wellread_store::{
    Compression, OpenOptions, PixelSink, Request, Result, RowInfo, Scratch, Store, StoreLayout, WriteOptions,
};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);
/// One measurement at a time.
static ALONE: Mutex<()> = Mutex::new(());

thread_local! {
    static MARKED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: all calls go to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if MARKED.get() {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: passed on as given.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on as given.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn marked<R>(work: impl FnOnce() -> R) -> R {
    MARKED.set(true);
    let result = work();
    MARKED.set(false);
    result
}

#[test]
fn the_counter_counts() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = COUNT.load(Ordering::Relaxed);
    marked(|| std::hint::black_box(vec![1u8; 100]));
    assert_eq!(COUNT.load(Ordering::Relaxed) - before, 1);
}

#[test]
fn steady_state_allocates_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let augment = Transform::preset("augment").unwrap().channels([1, 0]).normalize([0.5, 0.4], [1.0, 2.0]);
    let transforms = [
        Transform::default(),
        augment.clone(),
        augment.random_crop(20, 20),
        Transform::default().resize(12, 12),
        Transform::default()
            .random_resized_crop(12, 12)
            .scale_by_percentiles(1.0, 99.0)
            .jitter(Jitter { brightness: 0.1, contrast: 0.1, gamma: 0.1, per_channel: true })
            .noise(Noise { photon: 0.01, gaussian: 0.01 })
            .normalize_with(Normalize::PerImage)
            .channel_dropout(0.3),
    ];
    for transform in transforms {
        for workers in [0, 1, 2] {
            let dataset = Watched(Box::new(images(512, Shape([1, 2, 1, 32, 32]), PixelType::U16))).dataset();
            check_steady_state(&dataset, workers, &transform, [16, 40]);
        }
    }
}

/// A file whose decoded pages fit the reader's cache: each is decoded once, and from then on nothing is allocated.
#[test]
fn steady_state_allocates_nothing_for_parquet() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.parquet");
    parquet(&path, &images(256, Shape([1, 2, 1, 32, 32]), PixelType::U16), None);
    for workers in [0, 2] {
        let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
        let transform = Transform::default().scale_to_unit();
        check_steady_state(&Watched(store).dataset(), workers, &transform, [16, 40]);
    }
}

/// Sets of many files, as many as stay open between reads (a quarter of what the process may have open): read into the same
/// buffers, decoded by the same decoders, and nothing is allocated for an image.
#[test]
fn steady_state_allocates_nothing_for_files_that_stay_open() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let store = images(40, Shape::plane(32, 32), PixelType::U16);
    for (format, compression) in [
        ("tiff", Compression::Lzw),
        ("tiff", Compression::Zstd(3)),
        ("ome-zarr", Compression::Zstd(3)),
        ("ome-zarr", Compression::None),
    ] {
        let path = folder.path().join(format!("{format}-{compression}"));
        written(&path, format, &store, &WriteOptions { compression, ..WriteOptions::default() });
        for workers in [0, 2] {
            let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
            let transform = Transform::default().scale_to_unit();
            check_steady_state(&Watched(store).dataset(), workers, &transform, [2, 8]);
        }
    }
}

/// Marks the threads that read.
struct Watched(Box<dyn Store>);

impl Watched {
    fn dataset(self) -> Dataset {
        Dataset::from_store(Box::new(self))
    }
}

impl Store for Watched {
    fn format(&self) -> &'static str {
        self.0.format()
    }
    fn path(&self) -> &Path {
        self.0.path()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn row_info(&self, row: usize) -> Result<RowInfo> {
        self.0.row_info(row)
    }
    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.0.metadata(row)
    }
    fn layout(&self) -> Result<StoreLayout> {
        self.0.layout()
    }
    fn files(&self) -> Result<Vec<PathBuf>> {
        self.0.files()
    }
    fn position(&self, row: usize) -> u64 {
        self.0.position(row)
    }
    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        MARKED.set(true);
        self.0.read(requests, scratch, sink)
    }
}

/// Epochs in which buffers are made as threads first need them; they pass on to the threads of the next epoch.
const FILLING: usize = 3;

/// Counts allocations of some batches after some others, epoch by epoch. On a busy machine a thread may sleep through whole
/// epochs and make its buffers in a later one, so that not every one has none; an allocation per batch or item would show in
/// each, one now and then in most. Buffers are made once: where too many of them were seen, another look is taken.
fn check_steady_state(
    dataset: &Dataset,
    workers: usize,
    transform: &Transform,
    [before, counted]: [usize; 2],
) {
    let builder = Loader::builder(dataset).batch_size(4).shuffle(1).workers(workers);
    let builder = builder.crops_per_image(1 + workers % 2);
    let builder = builder.output(if workers == 2 { Output::F16 } else { Output::F32 });
    let loader = builder.transform(transform.clone()).build().unwrap();
    let epoch = || {
        let mut iter = loader.iter();
        for _ in 0..before {
            iter.next().unwrap().unwrap();
        }
        let so_far = COUNT.load(Ordering::Relaxed);
        marked(|| {
            for _ in 0..counted {
                iter.next().unwrap().unwrap();
            }
        });
        COUNT.load(Ordering::Relaxed) - so_far
    };
    let mut counts: Vec<usize> = vec![];
    let steady = (0..5).any(|_| {
        counts = (0..20).map(|_| epoch()).collect();
        let steady = &counts[FILLING..];
        2 * steady.iter().filter(|&&n| n == 0).count() > steady.len()
    });
    MARKED.set(false);
    assert!(steady, "{counts:?} allocations, {workers} workers, {transform:?}");
}

#[test]
fn single_items_allocate_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dataset = TestStore::new(images(20, Shape::plane(32, 32), PixelType::U8)).dataset();
    for name in Transform::PRESETS {
        let transform = Transform::preset(name).unwrap();
        let (mut out, mut context) = (vec![], ItemContext::new());
        let mut epoch = |out: &mut Vec<f32>| {
            for row in 0..20 {
                dataset.sample_into(row, &transform, out, &mut context).unwrap();
            }
        };
        epoch(&mut out);
        let before = COUNT.load(Ordering::Relaxed);
        marked(|| epoch(&mut out));
        assert_eq!(COUNT.load(Ordering::Relaxed), before, "{name}");
    }
}
