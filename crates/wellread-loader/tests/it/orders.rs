//! Orders as loaders have them: huge sets, columns of a table, shards, classes in every batch.

use crate::support::{TestStore, images, parquet};
use arrow_array::{Int32Array, RecordBatch, StringArray};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{Dataset, Grouping, Loader, MemoryStore, Order, OrderQuality, Uneven};
use wellread_store::{
    Block, PixelSink, Request, Result, RowFacts, RowInfo, Scratch, Store, default_answers, delegate_store,
    unknown_facts,
};

/// As many images as you like, all of them one black pixel.
struct Endless {
    rows: usize,
    inner: MemoryStore,
}

impl Endless {
    fn dataset(rows: usize) -> Dataset {
        Dataset::from_store(Box::new(Self { rows, inner: MemoryStore::new("endless") }))
    }
}

impl Store for Endless {
    delegate_store!(self => self.inner; format, path, remote_path, layout, files, files_of);
    delegate_store!(self => self.inner; has_checksums, hints, heads, ranges);
    default_answers!(name, row_hints, scan, check);

    fn len(&self) -> usize {
        self.rows
    }
    fn row_info(&self, _: usize) -> Result<RowInfo> {
        Ok(RowInfo { shape: Shape::plane(1, 1), dtype: PixelType::U8 })
    }
    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        Ok(ImageMetadata::named(row.to_string()))
    }
    fn read(&self, requests: &[Request], _: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        requests.iter().enumerate().try_for_each(|(i, request)| {
            sink.put(i, &Block { region: request.region, data: &[0], dtype: PixelType::U8 })
        })
    }
}

impl RowFacts for Endless {
    unknown_facts!(position, grid, file, cut, metadata_rows, unkept, working_bytes);
}

/// Nothing is allocated per row, or these would not fit into memory.
#[test]
fn a_trillion_rows_start_at_once() {
    let n = 1_000_000_000_000;
    let dataset = Endless::dataset(n);
    for order in [Order::Sequential, Order::Random, Order::Block { rows: 1000, window: 100 }] {
        let builder = Loader::builder(&dataset).order(order.clone()).batch_size(32).seed(1);
        let loader = builder.clone().shard(3, 8, Uneven::Pad).workers(2).build().unwrap();
        let mut batches = loader.iter();
        let first = batches.next().unwrap().unwrap();
        assert!(first.rows().iter().all(|&row| row < n));
        let state = batches.state();
        assert_eq!(state.position(), 8 * 32);
        let mut rest = loader.resume(&state).unwrap();
        let again = loader.iter_at(0, 1).next().unwrap().unwrap();
        assert_eq!(rest.next().unwrap().unwrap().rows(), again.rows());
        let last = loader.iter_at(0, loader.len() - 1).next().unwrap().unwrap();
        assert_eq!(last.index(), loader.len() - 1);
        let quality = OrderQuality::by_blocks(&builder.build().unwrap(), 0, 1000).unwrap();
        let expected = match order {
            Order::Sequential => 1.0..=2.0,
            Order::Random => 31.0..=32.0,
            // 32 of 100 blocks: 100 (1 - 0.99^32) = 27.5.
            _ => 26.5..=28.5,
        };
        assert!(expected.contains(&quality.order.units_per_batch), "{order:?}: {quality:?}");
    }
}

/// Rows with a plate and a well, as a screen has them.
fn screen(folder: &Path) -> Dataset {
    let n = 60;
    let plates: Int32Array = (0..n).map(|i| Some(i / 30)).collect();
    let wells: StringArray = (0..n).map(|i| (i % 7 != 6).then(|| format!("B0{}", i % 3))).collect();
    let features = RecordBatch::try_from_iter([
        ("Metadata_Plate", Arc::new(plates) as _),
        ("Metadata_Well", Arc::new(wells) as _),
    ]);
    parquet(&folder.join("screen.parquet"), &images(60, Shape::plane(4, 4), PixelType::U8), features.ok())
}

#[test]
fn groups_may_be_columns_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = screen(folder.path());
    let well = |row: usize| if row % 7 == 6 { 9 } else { row % 3 };
    let torn = |rows: &[usize], group: &dyn Fn(usize) -> (usize, usize)| {
        let mut groups: Vec<_> = rows.iter().map(|&row| group(row)).collect();
        groups.dedup();
        groups.len() - groups.iter().collect::<HashSet<_>>().len()
    };
    let loader = |names: &[&str]| {
        Loader::builder(&dataset).grouped(Grouping::columns(names.iter().copied()), 1).build().unwrap()
    };
    let wells = loader(&["Metadata_Well"]).rows(0);
    assert_eq!(torn(&wells, &|row| (0, well(row))), 0);
    let both = loader(&["Metadata_Plate", "Metadata_Well"]).rows(0);
    assert_eq!(torn(&both, &|row| (row / 30, well(row))), 0);
    assert_ne!(torn(&wells, &|row| (row / 30, well(row))), wells.len());
    let quality = OrderQuality::by_groups(
        &Loader::builder(&dataset)
            .batch_size(2)
            .grouped(Grouping::columns(["Metadata_Well"]), 1)
            .build()
            .unwrap(),
        0,
        &Grouping::columns(["Metadata_Well"]),
    );
    assert!(quality.unwrap().order.units_per_batch < 1.2);

    // No well is both in training and in test.
    let by = Grouping::columns(["Metadata_Plate", "Metadata_Well"]);
    let parts = dataset.split(&[0.5, 0.5], Some(&by), 0).unwrap();
    let wells_of = |part: &[usize]| part.iter().map(|&row| (row / 30, well(row))).collect::<HashSet<_>>();
    assert!(wells_of(&parts[0]).is_disjoint(&wells_of(&parts[1])));
    assert_eq!(parts[0].len() + parts[1].len(), 60);

    for (names, expected) in
        [(&["Metadata_Site"][..], "Metadata_Plate, Metadata_Well"), (&[], "no column was given")]
    {
        let by = Grouping::columns(names.iter().copied());
        let error = Loader::builder(&dataset).grouped(by, 0).build().unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("screen.parquet"), "{error}");
    }
}

#[test]
fn every_batch_is_balanced() {
    // 40, 10 and 4 images of three classes.
    let class = |row: usize| usize::from(row >= 40) + usize::from(row >= 50);
    let dataset = Dataset::from_store(Box::new(images(54, Shape::plane(2, 2), PixelType::U8)));
    let keys = Grouping::keys((0..54).map(|row| class(row).to_string()));
    let builder = Loader::builder(&dataset).batch_size(8).balanced(keys.clone(), 5);
    for rank in 0..2 {
        let loader = builder.clone().shard(rank, 2, Uneven::DropLast).build().unwrap();
        assert_eq!(loader.images(), 27);
        for epoch in 0..3 {
            for batch in loader.iter_at(epoch, 0) {
                let mut counts = [0usize; 3];
                for &row in batch.unwrap().rows() {
                    counts[class(row)] += 1;
                }
                assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
            }
        }
    }
    // Every image of the largest class is seen before any comes again.
    let loader = builder.build().unwrap();
    let seen: Vec<usize> = (0..3).flat_map(|e| loader.rows(e)).filter(|&row| row < 40).take(40).collect();
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 40);
    let images = Some(300);
    let longer = Loader::builder(&dataset).order(Order::Balanced { by: keys, images }).build().unwrap();
    assert_eq!((longer.images(), longer.iter().map(|b| b.unwrap().len()).sum()), (300, 300));
}

#[test]
fn weights_hold_for_what_is_delivered() {
    let dataset = Dataset::from_store(Box::new(images(4, Shape::plane(2, 2), PixelType::U8)));
    let loader = Loader::builder(&dataset).weighted([0.0, 1.0, 3.0, 0.0], 1).batch_size(2).build().unwrap();
    assert_eq!(loader.images(), 4);
    let mut counts = HashMap::new();
    for _ in 0..1000 {
        for batch in &loader {
            for &row in batch.unwrap().rows() {
                *counts.entry(row).or_insert(0usize) += 1;
            }
        }
    }
    assert_eq!(counts.len(), 2);
    assert!(counts[&2].abs_diff(3000) < 6 * 28, "{counts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// All ranks have equally many batches and images; together they have each row once.
    #[test]
    fn shards_partition_the_rows(
        n in 1usize..90, batch_size in 1usize..9, world in 1usize..6, pad: bool, drop_last: bool, workers in 0usize..3,
    ) {
        let dataset = TestStore::new(images(n, Shape::plane(1, 2), PixelType::U8)).dataset();
        let uneven = if pad { Uneven::Pad } else { Uneven::DropLast };
        let loader = |rank| {
            Loader::builder(&dataset)
                .batch_size(batch_size).shuffle(3).drop_last(drop_last).workers(workers)
                .shard(rank, world, uneven).build()
        };
        let per_rank = match (drop_last, pad) {
            (true, _) => n / (batch_size * world) * batch_size,
            (false, false) => n / world,
            (false, true) => n.div_ceil(world),
        };
        if per_rank == 0 {
            let error = loader(0).unwrap_err().to_string();
            prop_assert!(error.contains("leaves none"), "{error}");
            prop_assert_eq!(error.contains("dropping the last batch"), drop_last, "{}", error);
            prop_assert_eq!(error.contains("more ranks than images") && error.contains("pad"), !drop_last);
            return Ok(());
        }
        let mut all = vec![];
        for rank in 0..world {
            let loader = loader(rank).unwrap();
            let rows: Vec<usize> = loader.iter().flat_map(|b| b.unwrap().rows().to_vec()).collect();
            prop_assert_eq!((rows.len(), loader.images(), loader.len()),
                (per_rank, per_rank, per_rank.div_ceil(batch_size)));
            prop_assert_eq!(&rows, &loader.rows(0));
            all.extend(rows);
        }
        let whole = Loader::builder(&dataset).shuffle(3).build().unwrap().rows(0);
        let mut expected: Vec<usize> = whole.iter().cycle().take(per_rank * world).copied().collect();
        expected.sort_unstable();
        all.sort_unstable();
        prop_assert_eq!(all, expected);
    }
}

#[test]
fn ranks_that_do_not_exist_are_refused() {
    let dataset = Dataset::from_store(Box::new(images(4, Shape::plane(2, 2), PixelType::U8)));
    for (rank, world) in [(2, 2), (0, 0)] {
        let error =
            Loader::builder(&dataset).shard(rank, world, Uneven::Pad).build().unwrap_err().to_string();
        assert!(error.contains(&format!("no rank {rank} of {world}")), "{error}");
    }
}
