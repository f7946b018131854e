//! Order and determinism: the same batches whatever the threads, every row once, groups together.

use crate::support::{Bits, TestStore, bits, images};
use proptest::prelude::*;
use std::time::Duration;
use wellread_image::{PixelType, Shape};
use wellread_loader::{Dataset, Grouping, Loader, LoaderBuilder, Order, Transform};

fn epochs(builder: &LoaderBuilder, n: usize) -> Vec<Vec<Bits>> {
    let loader = builder.clone().build().unwrap();
    (0..n).map(|_| loader.iter().map(|batch| bits(&batch.unwrap())).collect()).collect()
}

/// Small images (a batch is one slice) and large ones (split by rows among threads), on a store with random
/// delays and awkward chunks.
#[test]
fn batches_are_the_same_whatever_the_threads() {
    for (n, shape, batch_size) in
        [(37, Shape::plane(20, 20), 5), (7, Shape([1, 2, 1, 300, 500]), 4), (5, Shape([2, 1, 3, 33, 20]), 2)]
    {
        let mut store = TestStore::new(images(n, shape, PixelType::U16));
        store.chunk = Some([1, 1, 2, 128, 96]);
        store.delay = Duration::from_micros(300);
        let dataset = store.dataset();
        for order in [Order::Sequential, Order::Random, Order::Grouped(Grouping::name_prefix("_"))] {
            let builder = Loader::builder(&dataset)
                .batch_size(batch_size)
                .order(order)
                .seed(9)
                .transform(Transform::preset("augment").unwrap().random_crop(15, 15));
            let expected = epochs(&builder, 2);
            assert_ne!(expected[0], expected[1], "augmentation differs by epoch");
            for (workers, prefetch) in [(1, 1), (1, 3), (2, 1), (2, 4), (4, 2), (4, 9)] {
                let got = epochs(&builder.clone().workers(workers).prefetch(prefetch), 2);
                assert!(got == expected, "{workers} workers, prefetch {prefetch}, {shape}");
            }
        }
    }
}

#[test]
fn whole_large_images_are_the_same_whatever_the_threads() {
    let dataset = TestStore::new(images(6, Shape::plane(700, 900), PixelType::U8)).dataset();
    let builder = Loader::builder(&dataset).batch_size(4).shuffle(3).scale_to_unit();
    assert_eq!(epochs(&builder, 1), epochs(&builder.clone().workers(3), 1));
}

/// Stores whose reads have a cost of their own are asked for several batches at once. The batches are the same, also
/// when they are resized or end in the middle of a run.
#[test]
fn joined_reads_deliver_the_same_batches() {
    let dataset = |rows_per_read| {
        let mut store = TestStore::new(images(43, Shape([1, 2, 1, 20, 24]), PixelType::U16));
        store.rows_per_read = rows_per_read;
        (store.reads.clone(), store.dataset())
    };
    for transform in ["none", "augment"] {
        let builder = |dataset: &Dataset| {
            let transform = Transform::preset(transform).unwrap().resize(9, 11);
            Loader::builder(dataset).batch_size(4).shuffle(5).transform(transform)
        };
        let expected = epochs(&builder(&dataset(1).1), 2);
        for (workers, rows_per_read, joined) in [(0, 16, 4), (1, 17, 5), (2, 1000, 11), (3, 8, 2)] {
            let (reads, dataset) = dataset(rows_per_read);
            let builder = builder(&dataset).workers(workers);
            assert_eq!(builder.clone().build().unwrap().batches_per_read(), joined);
            assert!(epochs(&builder, 2) == expected, "{workers} workers, {joined} joined");
            assert_eq!(reads.load(std::sync::atomic::Ordering::Relaxed), 2 * 11usize.div_ceil(joined));
        }
        // Fewer batches ahead than the store asked for: the choice holds.
        let (_, dataset) = dataset(1000);
        let builder = builder(&dataset).workers(1).prefetch(4);
        assert_eq!(builder.clone().build().unwrap().batches_per_read(), 2);
        assert!(epochs(&builder, 2) == expected);
    }
}

#[test]
fn seeds_and_epochs_change_the_order() {
    let dataset = TestStore::new(images(50, Shape::plane(4, 4), PixelType::U8)).dataset();
    let loader = |seed| Loader::builder(&dataset).shuffle(seed).build().unwrap();
    let a = loader(1);
    assert_eq!(a.rows(0), loader(1).rows(0));
    assert_ne!(a.rows(0), loader(2).rows(0));
    assert_ne!(a.rows(0), a.rows(1));
    let delivered =
        |l: &Loader| -> Vec<usize> { l.iter().flat_map(|batch| batch.unwrap().rows().to_vec()).collect() };
    assert_eq!((delivered(&a), delivered(&a)), (a.rows(0), a.rows(1)));
    assert_eq!(a.epoch(), 2);
    a.set_epoch(0);
    assert_eq!(delivered(&a), a.rows(0));
}

#[test]
fn an_epoch_can_be_resumed_in_the_middle() {
    let dataset = TestStore::new(images(23, Shape::plane(9, 9), PixelType::U8)).dataset();
    for workers in [0, 2] {
        let loader = Loader::builder(&dataset)
            .batch_size(4)
            .shuffle(5)
            .random_crop(5, 5)
            .workers(workers)
            .build()
            .unwrap();
        let all: Vec<_> = loader.iter_at(7, 0).map(|batch| bits(&batch.unwrap())).collect();
        let rest: Vec<_> = loader.iter_at(7, 2).map(|batch| bits(&batch.unwrap())).collect();
        assert_eq!(all[2..], rest);
        assert_eq!(loader.iter_at(7, 100).count(), 0);
        let mut iter = loader.iter_at(7, 4);
        assert_eq!((iter.remaining(), iter.position()), (2, 4));
        assert_eq!(iter.next().unwrap().unwrap().index(), 4);
        assert_eq!(iter.remaining(), 1);
    }
}

#[test]
fn the_last_batch_is_short_or_dropped() {
    let dataset = TestStore::new(images(10, Shape::plane(4, 6), PixelType::U8)).dataset();
    for workers in [0, 2] {
        let builder = Loader::builder(&dataset).batch_size(4).workers(workers);
        let sizes = |l: &Loader| -> Vec<usize> { l.iter().map(|batch| batch.unwrap().len()).collect() };
        let kept = builder.clone().build().unwrap();
        assert_eq!((sizes(&kept), kept.len(), kept.images()), (vec![4, 4, 2], 3, 10));
        let dropped = builder.clone().drop_last(true).build().unwrap();
        assert_eq!((sizes(&dropped), dropped.len(), dropped.images()), (vec![4, 4], 2, 8));
        let larger = builder.clone().batch_size(usize::MAX).build().unwrap();
        assert_eq!((sizes(&larger), larger.len()), (vec![10], 1));
        let batch = larger.iter().next().unwrap().unwrap();
        assert_eq!(batch.shape(), [10, 1, 4, 6]);
    }
}

#[test]
fn groups_stay_together_in_an_order_of_their_own() {
    let dataset = TestStore::new(images(30, Shape::plane(4, 4), PixelType::U8)).dataset();
    let keys: Vec<String> = (0..30).map(|i| format!("well {}", i / 7)).collect();
    type GroupOf = fn(usize) -> usize;
    let groupings: [(Grouping, GroupOf); 3] = [
        (Grouping::name_prefix("_"), |row| row % 3),
        (Grouping::by_name(|name| name.len().to_string()), |row| usize::from(row >= 10)),
        (Grouping::keys(keys), |row| row / 7),
    ];
    for (grouping, group) in groupings {
        let loader = Loader::builder(&dataset).grouped(grouping, 1).build().unwrap();
        let mut orders = std::collections::HashSet::new();
        for epoch in 0..12 {
            let rows = loader.rows(epoch);
            let mut sorted = rows.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..30).collect::<Vec<_>>());
            let mut order: Vec<usize> = rows.iter().map(|&row| group(row)).collect();
            order.dedup();
            let distinct: std::collections::HashSet<_> = order.iter().collect();
            assert_eq!(distinct.len(), order.len(), "a group was torn: {order:?}");
            assert!(rows.windows(2).all(|w| group(w[0]) != group(w[1]) || w[0] < w[1]));
            orders.insert(order);
        }
        assert!(orders.len() > 1, "groups always in the same order");
    }
}

#[test]
fn five_dimensional_images_keep_their_axes() {
    let shape = Shape([2, 3, 4, 5, 6]);
    let dataset = TestStore::new(images(3, shape, PixelType::I16)).dataset();
    let batch = Loader::builder(&dataset).batch_size(3).build().unwrap().iter().next().unwrap().unwrap();
    assert_eq!(batch.shape(), [3, 2, 3, 4, 5, 6]);
    let (_, native) = dataset.read(1).unwrap();
    let expected: Vec<f32> =
        native.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]]) as f32).collect();
    assert_eq!(batch.image(1), expected);
}

#[test]
fn mixed_shapes_batch_after_a_crop_or_resize() {
    let mut store = images(2, Shape::plane(10, 12), PixelType::U8);
    store.push("big", Shape::plane(30, 20), PixelType::U8, vec![7; 600]).unwrap();
    let dataset = TestStore::new(store).dataset();
    for builder in [Loader::builder(&dataset).crop(8, 8), Loader::builder(&dataset).resize(8, 8)] {
        let batch = builder.build().unwrap().iter().next().unwrap().unwrap();
        assert_eq!(batch.shape(), [3, 1, 8, 8]);
        assert!(batch.image(2).iter().all(|v| (v - 7.0).abs() < 1e-5));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_selected_row_comes_once(
        n in 1usize..60, batch_size in 1usize..20, workers in 0usize..4, seed: u64, step in 1usize..4,
    ) {
        let dataset = TestStore::new(images(n, Shape::plane(2, 3), PixelType::U8)).dataset();
        let rows: Vec<usize> = (0..n).step_by(step).collect();
        let loader = Loader::builder(&dataset)
            .rows(rows.clone()).batch_size(batch_size).shuffle(seed).workers(workers).build().unwrap();
        let mut got = vec![];
        for batch in &loader {
            let batch = batch.unwrap();
            for (i, &row) in batch.rows().iter().enumerate() {
                let (_, native) = dataset.read(row).unwrap();
                prop_assert!(batch.image(i).iter().zip(&native).all(|(a, b)| *a == *b as f32));
                got.push(row);
            }
        }
        got.sort_unstable();
        prop_assert_eq!(got, rows);
    }
}
