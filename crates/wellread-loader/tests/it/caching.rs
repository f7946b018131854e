//! The memory cache reads each image once and changes no pixel.

use crate::support::{Fault, TestStore, bits, images};
use std::sync::atomic::Ordering;
use wellread_image::{PixelType, Shape};
use wellread_loader::{Cache, CacheReport, Dataset, Loader};

#[test]
fn cached_images_are_read_once() {
    let store = TestStore::new(images(20, Shape([1, 3, 1, 9, 7]), PixelType::U16));
    let blocks = store.blocks.clone();
    let plain = store.dataset();
    let cached = plain.clone().with_cache(&Cache::MEMORY).unwrap();
    assert_eq!(blocks.load(Ordering::Relaxed), 0, "nothing is read before it is asked for");
    let loader = |dataset, workers| {
        Loader::builder(dataset)
            .batch_size(6)
            .shuffle(1)
            .channels([2, 0])
            .random_crop(5, 5)
            .workers(workers)
            .build()
            .unwrap()
    };
    let expected: Vec<_> = loader(&plain, 0).iter().map(|batch| bits(&batch.unwrap())).collect();
    let before = blocks.load(Ordering::Relaxed);
    for workers in [0, 1, 2] {
        let got: Vec<_> = loader(&cached, workers).iter().map(|batch| bits(&batch.unwrap())).collect();
        assert_eq!(got, expected);
        assert_eq!(blocks.load(Ordering::Relaxed) - before, 20, "each image once");
    }
    assert_eq!(cached.read(3).unwrap(), plain.read(3).unwrap());
    assert_eq!((cached.name(3).unwrap(), cached.len()), (plain.name(3).unwrap(), 20));
    assert_eq!(cached.store().format(), "test");
}

#[test]
fn the_limit_holds_and_the_rest_is_read_each_time() {
    let shape = Shape([1, 2, 1, 5, 5]);
    let each = shape.pixels() * PixelType::U16.size();
    let store = TestStore::new(images(10, shape, PixelType::U16));
    let blocks = store.blocks.clone();
    let plain = store.dataset();
    // Room for four images and a half.
    let cached = plain.clone().with_cache(&Cache::Memory { limit: 4 * each + each / 2 }).unwrap();
    let loader = |dataset, workers| {
        Loader::builder(dataset).batch_size(3).shuffle(5).workers(workers).build().unwrap()
    };
    let mut misses = 0;
    for workers in [0, 2] {
        for epoch in 0..3 {
            let [a, b] = [&plain, &cached].map(|dataset| {
                let before = blocks.load(Ordering::Relaxed);
                let loader = loader(dataset, workers);
                loader.set_epoch(epoch);
                let got: Vec<_> = loader.iter().map(|batch| bits(&batch.unwrap())).collect();
                (got, blocks.load(Ordering::Relaxed) - before)
            });
            assert_eq!(a.0, b.0);
            let reads = if (workers, epoch) == (0, 0) { 10 } else { 6 };
            assert_eq!((a.1, b.1), (10, reads), "workers {workers}, epoch {epoch}");
            misses += reads as u64;
            assert_eq!(cached.cache_report().misses, misses);
        }
    }
}

/// Channels that are no neighbours are asked for one by one.
#[test]
fn what_there_is_no_room_for_is_no_hit() {
    let shape = Shape([1, 3, 1, 4, 4]);
    let each = shape.pixels();
    let chunks = |limit| Cache::Chunked { rows: 4, limit };
    for (cache, counts) in [
        (Cache::Memory { limit: 1 }, [(0, 10), (0, 20)]),
        (Cache::Memory { limit: 4 * each }, [(4, 10), (12, 16)]),
        (Cache::MEMORY, [(10, 10), (30, 10)]),
        (chunks(1), [(0, 10), (0, 20)]),
        (chunks(usize::MAX), [(10, 10), (30, 10)]),
    ] {
        let store = images(10, shape, PixelType::U8);
        let cached = Dataset::from_store(Box::new(store)).with_cache(&cache).unwrap();
        // A read of all rows.
        let loader = Loader::builder(&cached).batch_size(10).channels([2, 0]).build().unwrap();
        for expected in counts {
            assert_eq!(loader.iter().flatten().count(), 1);
            let report = cached.cache_report();
            assert_eq!((report.hits, report.misses), expected, "{cache}");
        }
    }
}

/// A forked process must not use the cache of its parent, whose threads may have its locks.
#[test]
fn a_store_that_was_given_has_an_empty_cache_when_it_is_opened_anew() {
    let plain = Dataset::from_store(Box::new(images(3, Shape::plane(4, 4), PixelType::U8)));
    for cache in [Cache::Lru { limit: usize::MAX }, Cache::MEMORY] {
        let cached = plain.clone().with_cache(&cache).unwrap();
        assert_eq!(cached.read(1).unwrap(), plain.read(1).unwrap());
        let anew = cached.reopened().unwrap();
        for set in [&anew, &anew.reopened().unwrap()] {
            assert_eq!(set.cache_report(), CacheReport::default(), "{cache}");
        }
        assert_eq!(anew.read(1).unwrap(), plain.read(1).unwrap());
        assert_eq!((anew.cache_report().images, cached.cache_report().images), (1, 1), "{cache}");
    }
}

#[test]
fn failures_are_not_cached() {
    let mut store = TestStore::new(images(4, Shape::plane(4, 4), PixelType::U8));
    store.faults = vec![(2, Fault::Fail)];
    let dataset = store.dataset().with_cache(&Cache::MEMORY).unwrap();
    let loader = Loader::builder(&dataset).batch_size(2).build().unwrap();
    for _ in 0..2 {
        let got: Vec<_> = loader.iter().collect();
        assert!(got[0].is_ok());
        assert_eq!(got[1].as_ref().unwrap_err().row_index(), Some(2));
    }
}

/// Missing pixels would be another image's, whose memory is used again.
#[test]
fn images_of_which_pixels_are_missing_are_not_kept() {
    let shape = Shape::plane(4, 4);
    for cache in
        [Cache::MEMORY, Cache::Lru { limit: shape.pixels() }, Cache::Chunked { rows: 2, limit: 1000 }]
    {
        let mut store = TestStore::new(images(4, shape, PixelType::U8));
        store.faults = vec![(1, Fault::Short), (3, Fault::WrongType)];
        let dataset = store.dataset().with_cache(&cache).unwrap();
        let loader = Loader::builder(&dataset).batch_size(1).build().unwrap();
        for _ in 0..2 {
            let got: Vec<_> = loader.iter().collect();
            assert!(got[0].is_ok() && got[2].is_ok(), "{cache}");
            for (row, says) in [(1, "4 pixels too few"), (3, "16 bytes of int8")] {
                let error = got[row].as_ref().unwrap_err();
                assert_eq!(error.row_index(), Some(row), "{cache}");
                assert!(error.to_string().contains(says), "{cache}: {error}");
            }
        }
    }
}

#[test]
fn a_panic_of_a_reader_takes_no_room_for_good() {
    let shape = Shape::plane(4, 4);
    let each = shape.pixels();
    // Room for two images.
    for cache in [Cache::Memory { limit: 2 * each }, Cache::Lru { limit: 2 * each }] {
        let mut store = TestStore::new(images(4, shape, PixelType::U8));
        store.faults = vec![(2, Fault::Panic)];
        let dataset = store.dataset().with_cache(&cache).unwrap();
        let read = || dataset.read(2).is_ok();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err(), "{cache}");
        dataset.read(0).unwrap();
        dataset.read(1).unwrap();
        let report = dataset.cache_report();
        assert_eq!((report.images, report.bytes), (2, 2 * each), "{cache}");
    }
}
