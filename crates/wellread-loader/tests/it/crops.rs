//! Several crops of one image from one read.

use crate::support::{TestStore, bits, images};
use proptest::prelude::*;
use std::sync::atomic::Ordering;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{Dataset, Loader, RightAngles, Transform};
use wellread_store::{ImageView, WriteOptions};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Each crop is what its placement says, crops of a row stand together, and no piece is read twice.
    #[test]
    fn crops_are_placed_as_drawn_from_one_read(
        crops in 1usize..6, size in (1usize..30, 1usize..30), chunk in prop::option::of((3usize..20, 3usize..20)),
        workers in 0usize..3, seed: u64,
    ) {
        let shape = Shape([1, 2, 1, 50, 60]);
        let mut store = TestStore::new(images(5, shape, PixelType::U16));
        store.chunk = chunk.map(|(y, x)| [1, 2, 1, y, x]);
        store.backwards = true;
        let blocks = store.blocks.clone();
        let dataset = store.dataset();
        let transform = Transform::default().random_crop(size.0, size.1).flip(0.5, 0.0).right_angles(RightAngles::HalfTurns);
        let loader = Loader::builder(&dataset)
            .batch_size(2 * crops).crops_per_image(crops).shuffle(seed).workers(workers)
            .transform(transform.clone()).build().unwrap();
        prop_assert_eq!((loader.len(), loader.images(), loader.batch_size()), (3, 5 * crops, 2 * crops));
        let batches = loader.collect_epoch().unwrap();
        let rows: Vec<usize> = batches.iter().flat_map(|batch| batch.rows().to_vec()).collect();
        let expected: Vec<usize> = loader.rows(0).into_iter().flat_map(|row| vec![row; crops]).collect();
        prop_assert_eq!(&rows, &expected);
        let (height, width) = chunk.unwrap_or((50, 60));
        let pieces = |y: std::ops::Range<usize>, x: std::ops::Range<usize>| {
            let columns = x.start / width..x.end.div_ceil(width);
            (y.start / height..y.end.div_ceil(height)).flat_map(move |y| columns.clone().map(move |x| (y, x)))
        };
        let mut touched = std::collections::HashSet::new();
        for batch in &batches {
            for i in 0..batch.len() {
                let row = batch.rows()[i];
                let p = transform.placement_of_crop(shape, seed, 0, row, i % crops).unwrap();
                touched.extend(pieces(p.top..p.top + p.height, p.left..p.left + p.width).map(|piece| (row, piece)));
                let (_, pixels) = dataset.read(row).unwrap();
                for (n, got) in batch.image(i).iter().enumerate() {
                    let (c, y, x) = (n / (size.0 * size.1), n / size.1 % size.0, n % size.1);
                    let turned = p.quarter_turns == 2;
                    let y = if turned { size.0 - 1 - y } else { y };
                    let x = if turned == p.flip_horizontal { x } else { size.1 - 1 - x };
                    let at = (c * 50 + p.top + y) * 60 + p.left + x;
                    prop_assert_eq!(f64::from(*got), PixelType::U16.value_at(&pixels, at));
                }
            }
        }
        // The test itself read every crop's image whole.
        let own = 5 * crops * pieces(0..50, 0..60).count();
        prop_assert_eq!(blocks.load(Ordering::Relaxed), touched.len() + own);
    }
}

#[test]
fn crops_differ_and_the_first_is_the_only_one_of_before() {
    let dataset = TestStore::new(images(9, Shape::plane(64, 64), PixelType::U8)).dataset();
    let builder = Loader::builder(&dataset).batch_size(4).shuffle(3).random_crop(16, 16);
    let single = builder.clone().build().unwrap().collect_epoch().unwrap();
    let several = builder.clone().batch_size(16).crops_per_image(4).build().unwrap().collect_epoch().unwrap();
    for (single, several) in single.iter().zip(&several) {
        for i in 0..single.len() {
            assert_eq!(single.image(i), several.image(4 * i));
            assert_ne!(several.image(4 * i), several.image(4 * i + 1));
        }
    }
    let resumed = builder.clone().batch_size(8).crops_per_image(2).workers(2).build().unwrap();
    let all: Vec<_> = resumed.iter_at(4, 0).map(|batch| bits(&batch.unwrap())).collect();
    let rest: Vec<_> = resumed.iter_at(4, 1).map(|batch| bits(&batch.unwrap())).collect();
    assert_eq!(all[1..], rest);
}

#[test]
fn batches_hold_whole_rows() {
    let dataset = TestStore::new(images(9, Shape::plane(8, 8), PixelType::U8)).dataset();
    for (batch_size, crops) in [(4, 3), (4, 0), (4, 8)] {
        let error =
            Loader::builder(&dataset).batch_size(batch_size).crops_per_image(crops).build().unwrap_err();
        assert!(error.to_string().contains("multiple"), "{error}");
    }
    let short = Loader::builder(&dataset).batch_size(10).crops_per_image(5).build().unwrap();
    let sizes: Vec<usize> = short.iter().map(|batch| batch.unwrap().len()).collect();
    assert_eq!(sizes, [10, 10, 10, 10, 5]);
}

/// Bytes read are those of the files, and those used those of the crops.
#[test]
fn traffic_tells_what_is_read_for_what_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let options = WriteOptions { compression: wellread_store::Compression::None, ..WriteOptions::default() };
    let mut writer = wellread_store::create(&path, "tiff", &options).unwrap();
    for row in 0..4 {
        let metadata = ImageMetadata::named(format!("image {row}"));
        let pixels = vec![row as u8; 64 * 64];
        let shape = Shape::plane(64, 64);
        let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
        writer.write(&image).unwrap();
    }
    writer.finish().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    for workers in [0, 2] {
        let whole = Loader::builder(&dataset).batch_size(2).workers(workers).build().unwrap();
        assert_eq!(whole.collect_epoch().unwrap().len(), 2);
        let traffic = whole.traffic();
        assert_eq!(traffic.used, 4 * 64 * 64);
        assert!(traffic.amplification().is_some_and(|times| (1.0..1.6).contains(&times)), "{traffic:?}");
        let part = Loader::builder(&dataset).batch_size(2).workers(workers).crop(8, 8).build().unwrap();
        part.collect_epoch().unwrap();
        assert_eq!(part.traffic().used, 4 * 64);
        assert!(part.traffic().amplification().is_some_and(|times| times >= 1.0), "{:?}", part.traffic());
    }
}
