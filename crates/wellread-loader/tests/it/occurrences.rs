//! A row that an epoch has more than once is drawn anew each time, the same whoever delivers it.

use crate::support::{Bits, TestStore, bits, images};
use proptest::prelude::*;
use std::collections::HashMap;
use wellread_image::{PixelType, Shape};
use wellread_loader::{
    Dataset, Grouping, Jitter, Loader, LoaderBuilder, LoaderState, Order, Transform, Uneven,
};

const SHAPE: Shape = Shape([1, 1, 1, 24, 24]);

fn dataset(n: usize) -> Dataset {
    TestStore::new(images(n, SHAPE, PixelType::U8)).dataset()
}

fn transform() -> Transform {
    let jitter = Jitter { brightness: 0.3, ..Jitter::default() };
    Transform::default().scale_to_unit().random_crop(9, 9).flip(0.5, 0.5).jitter(jitter)
}

/// Orders that have rows more than once.
fn repeating(dataset: &Dataset) -> Vec<LoaderBuilder> {
    let n = dataset.len();
    let builder = Loader::builder(dataset).seed(3).transform(transform());
    let rows: Vec<usize> = (0..n).chain(0..n / 2).chain([0, 0]).collect();
    let by = Grouping::name_prefix("_");
    vec![
        builder.clone().order(Order::Weighted { weights: vec![1.0; n].into(), images: Some(3 * n) }),
        builder.clone().order(Order::Balanced { by: by.clone(), images: Some(3 * n) }),
        builder.clone().rows(rows.clone()),
        builder.clone().rows(rows.clone()).order(Order::Random),
        builder.clone().rows(rows.clone()).order(Order::Block { rows: 4, window: 2 }),
        builder.rows(rows).order(Order::Grouped(by)),
    ]
}

/// Row, occurrence and pixels of each image.
fn epoch(loader: &Loader, epoch: u64) -> Vec<(usize, u64, Vec<u32>)> {
    let mut all = vec![];
    for batch in loader.iter_at(epoch, 0) {
        let batch = batch.unwrap();
        for (i, (&row, &occurrence)) in batch.rows().iter().zip(batch.occurrences()).enumerate() {
            all.push((row, occurrence, batch.image(i).iter().map(|v| v.to_bits()).collect()));
        }
    }
    all
}

/// The number of images of a row that differ, and the number of all.
fn distinct(all: &[(usize, u64, Vec<u32>)]) -> (usize, usize) {
    let mut of_row: HashMap<usize, Vec<(u64, &Vec<u32>)>> = HashMap::new();
    for (row, occurrence, pixels) in all {
        of_row.entry(*row).or_default().push((*occurrence, pixels));
    }
    let (mut different, mut repeated) = (0, 0);
    for mut images in of_row.into_values().filter(|images| images.len() > 1) {
        repeated += images.len();
        images.sort_unstable();
        assert!(images.windows(2).all(|pair| pair[0].0 != pair[1].0), "an occurrence comes twice");
        let mut pixels: Vec<_> = images.into_iter().map(|(_, pixels)| pixels).collect();
        pixels.sort_unstable();
        pixels.dedup();
        different += pixels.len();
    }
    (different, repeated)
}

#[test]
fn repeated_rows_are_drawn_anew() {
    let dataset = dataset(20);
    for builder in repeating(&dataset) {
        let loader = builder.batch_size(7).build().unwrap();
        let all = epoch(&loader, 1);
        // Brightness alone makes equal images as good as impossible.
        let (different, repeated) = distinct(&all);
        assert!(repeated > 20 && different == repeated, "{different} of {repeated}");
    }
}

/// An order that has each row once draws as it always has: by seed, epoch and row.
#[test]
fn rows_that_come_once_are_drawn_by_row_alone() {
    let dataset = dataset(20);
    for order in
        [Order::Random, Order::Block { rows: 4, window: 2 }, Order::Grouped(Grouping::name_prefix("_"))]
    {
        let builder = Loader::builder(&dataset).seed(3).transform(transform()).batch_size(3);
        let mut shuffled = epoch(&builder.clone().order(order).build().unwrap(), 2);
        shuffled.sort_unstable();
        let stored = epoch(&builder.batch_size(20).build().unwrap(), 2);
        assert!(stored.iter().all(|(_, occurrence, _)| *occurrence == 0));
        assert!(stored == shuffled);
    }
}

/// Images that ranks repeat to be even are drawn anew too, and the rest as without ranks.
#[test]
fn padding_is_drawn_anew() {
    let dataset = dataset(3);
    let builder = Loader::builder(&dataset).seed(3).transform(transform()).order(Order::Random).batch_size(2);
    let whole = epoch(&builder.clone().build().unwrap(), 0);
    let ranks = (0..8).flat_map(|rank| {
        let loader = builder.clone().shard(rank, 8, Uneven::Pad).build().unwrap();
        epoch(&loader, 0)
    });
    let mut ranks: Vec<_> = ranks.collect();
    assert_eq!(distinct(&ranks), (8, 8));
    ranks.sort_unstable_by_key(|(_, occurrence, _)| *occurrence);
    assert_eq!(
        ranks.iter().map(|(_, occurrence, _)| *occurrence).collect::<Vec<_>>(),
        [0, 0, 0, 1, 1, 1, 2, 2]
    );
    assert!(whole.iter().all(|image| ranks[..3].contains(image)));
}

/// The placement is told for masks.
#[test]
fn placements_are_those_of_the_occurrence() {
    let dataset = dataset(9);
    let crop = Transform::default().random_crop(5, 6);
    let builder = Loader::builder(&dataset).transform(crop.clone()).weighted([1.0; 9], 4);
    let loader = builder.crops_per_image(2).batch_size(6).build().unwrap();
    for batch in loader.iter_at(5, 0) {
        let batch = batch.unwrap();
        for i in 0..batch.len() {
            let (row, occurrence) = (batch.rows()[i], batch.occurrences()[i]);
            let p = crop.placement_of_occurrence(SHAPE, 4, 5, row, occurrence, i % 2).unwrap();
            let (_, pixels) = dataset.read(row).unwrap();
            let corner = f32::from(pixels[p.top * 24 + p.left]);
            assert_eq!(batch.image(i)[0].to_bits(), corner.to_bits());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    /// Batch size, threads and ranks change nothing, nor does an interruption.
    #[test]
    fn draws_are_the_same_whoever_delivers(
        order in 0usize..6, batch_size in 1usize..9, workers in 0usize..3, world in 1usize..4, stop in 0usize..4,
    ) {
        let dataset = dataset(20);
        let builder = repeating(&dataset).swap_remove(order);
        let mut expected = epoch(&builder.clone().batch_size(16).build().unwrap(), 1);
        let mut got = vec![];
        for rank in 0..world {
            let builder = builder.clone().shard(rank, world, Uneven::DropLast).batch_size(batch_size);
            let loader = builder.workers(workers).build().unwrap();
            got.extend(epoch(&loader, 1));
            let all: Vec<Bits> = loader.iter_at(1, 0).map(|b| bits(&b.unwrap())).collect();
            let mut batches = loader.iter_at(1, 0);
            let before: Vec<Bits> = batches.by_ref().take(stop).map(|b| bits(&b.unwrap())).collect();
            let state = LoaderState::from_json(&batches.state().to_json()).unwrap();
            drop(batches);
            let rest = loader.resume(&state).unwrap().map(|b| bits(&b.unwrap()));
            prop_assert!(before.into_iter().chain(rest).eq(all));
        }
        let least = expected.len() / world * world;
        prop_assert_eq!(got.len(), least);
        // Where ranks leave some out, they are the last of the order.
        expected.truncate(least);
        expected.sort_unstable();
        got.sort_unstable();
        prop_assert!(got == expected);
    }
}
