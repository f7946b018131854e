//! Counting allocations of marked threads, and of loaders in steady state, for tests that are processes of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_loader::{Dataset, Loader, Output, Transform};
use wellread_store::{Hints, PixelSink, Request, Result, Scratch, Store, default_answers, delegate_store};

struct Counting;

/// Allocations so far of threads that were marked.
pub static COUNT: AtomicUsize = AtomicUsize::new(0);
/// One measurement at a time.
pub static ALONE: Mutex<()> = Mutex::new(());

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

/// Does `work` with its allocations counted.
pub fn marked<R>(work: impl FnOnce() -> R) -> R {
    MARKED.set(true);
    let result = work();
    MARKED.set(false);
    result
}

/// Marks the threads that read.
pub struct Watched(pub Box<dyn Store>);

impl Watched {
    pub fn dataset(self) -> Dataset {
        Dataset::from_store(Box::new(self))
    }
}

impl Store for Watched {
    delegate_store!(self => self.0; format, path, remote_path, len, row_info, name, metadata, layout, files);
    delegate_store!(self => self.0; files_of, has_checksums, row_hints, heads, ranges, check);
    default_answers!(scan);

    fn hints(&self) -> Hints<'_> {
        // Each batch is a read of its own, or allocations could not be told by batch.
        Hints { rows_per_read: 1, ..self.0.hints() }
    }
    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        MARKED.set(true);
        self.0.read(requests, scratch, sink)
    }
}

/// Epochs in which buffers are made as threads first need them; they pass on to the threads of the next epoch.
const FILLING: usize = 3;

/// Counts allocations of some batches after some others, epoch by epoch. On a busy machine a thread may sleep through
/// whole epochs and make its buffers in a later one. So not every one has none. An allocation per batch or item
/// would show in each, one now and then in most. Buffers are made once: where too many of them were seen, another look
/// is taken.
pub fn check_steady_state(
    dataset: &Dataset,
    workers: usize,
    transform: &Transform,
    [before, counted]: [usize; 2],
) {
    let builder = Loader::builder(dataset).batch_size(4).shuffle(1).workers(workers);
    let builder = builder.crops_per_image(1 + workers % 2);
    let builder = builder.output(if workers == 2 { Output::F16 } else { Output::F32 });
    let loader = builder.transform(transform.clone()).build().unwrap();
    check_steady_loader(&loader, [before, counted]);
}

/// As [`check_steady_state`], of any loader.
pub fn check_steady_loader(loader: &Loader, [before, counted]: [usize; 2]) {
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
    assert!(steady, "{counts:?} allocations, {loader:?}");
}

/// Allocations for each batch of so many images, read without workers: the median of some epochs.
pub fn allocations_per_batch(dataset: &Dataset, batch_size: usize) -> f64 {
    let loader = Loader::builder(dataset).batch_size(batch_size).shuffle(1).build().unwrap();
    let mut epochs: Vec<f64> = (0..FILLING + 9)
        .map(|_| {
            let before = COUNT.load(Ordering::Relaxed);
            marked(|| loader.iter().for_each(|batch| drop(batch.unwrap())));
            (COUNT.load(Ordering::Relaxed) - before) as f64 / loader.len() as f64
        })
        .skip(FILLING)
        .collect();
    epochs.sort_unstable_by(f64::total_cmp);
    epochs[epochs.len() / 2]
}
