//! Images that differ in size: threads share the work of a batch, and the batches are the same.

use crate::support::{Bits, Fault, TestStore, bits, pixels};
use proptest::prelude::*;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;
use wellread_image::{PixelType, Shape};
use wellread_loader::{Dataset, Loader, LoaderBuilder, MemoryStore, OnError};
use wellread_store::{
    Error, PixelSink, Request, Result, RowInfo, Scratch, Store, default_answers, delegate_store,
};

/// Images of these sides.
fn sized(sides: &[usize]) -> MemoryStore {
    let mut store = MemoryStore::new("sized");
    for (i, &side) in sides.iter().enumerate() {
        let shape = Shape::plane(side, side);
        store
            .push(i.to_string(), shape, PixelType::U16, pixels(shape, PixelType::U16, i as u64 + 1))
            .unwrap();
    }
    store
}

/// A store in which the large image is not done before all others are.
struct Together {
    inner: MemoryStore,
    large: usize,
    others: Mutex<usize>,
    done: Condvar,
    /// Where workers are to look at rows only while the consumer waits for them. It has the consumer, and the sender by which
    /// the first of them tells it.
    begun: Option<(ThreadId, Mutex<Option<Sender<()>>>)>,
}

impl Together {
    fn pause(&self) {
        if let Some((consumer, begun)) = &self.begun
            && *consumer != thread::current().id()
            && let Some(begun) = begun.lock().unwrap().take()
        {
            begun.send(()).unwrap();
            // Time for the consumer to fall asleep; should it need more, the test is an easier one.
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Store for Together {
    delegate_store!(self => self.inner; path, remote_path, len, name, metadata, layout, files, files_of);
    delegate_store!(self => self.inner; has_checksums, hints, row_hints, heads, ranges, check);
    default_answers!(scan);

    fn format(&self) -> &'static str {
        "together"
    }
    fn row_info(&self, row: usize) -> Result<RowInfo> {
        self.pause();
        self.inner.row_info(row)
    }
    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        if requests.iter().any(|request| request.row == self.large) {
            let others = self.others.lock().unwrap();
            let all = self.len() - 1;
            let wait = Duration::from_mins(5);
            let (others, waited) = self.done.wait_timeout_while(others, wait, |n| *n < all).unwrap();
            drop(others);
            if waited.timed_out() {
                return Err(Error::new(self.path(), "the others wait for the large one"));
            }
        }
        self.inner.read(requests, scratch, sink)?;
        *self.others.lock().unwrap() += requests.iter().filter(|request| request.row != self.large).count();
        self.done.notify_all();
        Ok(())
    }
}

/// While one thread reads a huge image, others read the rest of its batch, the last of the epoch too.
#[test]
fn a_huge_image_keeps_no_thread_idle() {
    let consumer = thread::current().id();
    for (large, workers, waits) in
        [0, 3, 11].into_iter().flat_map(|large| [(large, 2, false), (large, 4, false), (large, 2, true)])
    {
        let sides: Vec<usize> = (0..12).map(|i| if i == large { 2000 } else { 20 }).collect();
        let (others, done) = Default::default();
        let (begun, has_begun) = channel();
        let begun = waits.then(|| (consumer, Mutex::new(Some(begun))));
        let dataset =
            Dataset::from_store(Box::new(Together { inner: sized(&sides), large, others, done, begun }));
        let loader = Loader::builder(&dataset).batch_size(12).crop(20, 20).workers(workers).build().unwrap();
        let mut batches = loader.iter();
        if waits {
            has_begun.recv_timeout(Duration::from_mins(5)).unwrap();
        }
        let batch = batches.next().unwrap().unwrap();
        assert_eq!(batch.rows(), (0..12).collect::<Vec<_>>());
    }
}

fn epoch(builder: &LoaderBuilder) -> (Vec<Result<Bits, String>>, Vec<usize>) {
    let loader = builder.clone().build().unwrap();
    let mut batches = loader.iter();
    let all = batches.by_ref().map(|b| b.map(|b| bits(&b)).map_err(|e| e.to_string())).collect();
    (all, batches.skipped().rows().iter().map(|(row, _)| *row).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// However sizes are mixed and the work is divided: the same batches, errors and rows left out.
    #[test]
    fn batches_are_the_same_however_sizes_differ(
        sides in prop::collection::vec(prop_oneof![4 => 12usize..60, 1 => 900usize..1700], 5..24),
        batch_size in 1usize..14, crops in 1usize..3, faulty in prop::collection::vec(0usize..24, 0..3),
        skip: bool, chunk: bool, seed: u64,
    ) {
        let mut store = TestStore::new(sized(&sides));
        store.chunk = chunk.then_some([1, 1, 1, 512, 512]);
        store.faults = faulty.iter().map(|&row| (row, Fault::Fail)).collect();
        let dataset = store.dataset();
        let builder = Loader::builder(&dataset)
            .batch_size(batch_size * crops).crops_per_image(crops).shuffle(seed)
            .random_crop(12, 12).flip(0.5, 0.5)
            .on_error(if skip { OnError::Skip } else { OnError::Raise });
        let expected = epoch(&builder);
        for workers in [1, 3] {
            prop_assert!(epoch(&builder.clone().workers(workers)) == expected);
        }
    }
}
