//! The way to take for given figures, and what an epoch of each way reads.

use super::*;
use crate::stages::{Figure, plain_loader};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::MemoryStore;
use wellread_store::cells::CellOptions;
use wellread_store::{Compression, ImageView, WriteOptions};

fn series(medians: &[f64]) -> Series {
    let noisy = |m: &f64| (0..10).map(|r| m * (1.0 + 0.01 * ((r * 7) % 5) as f64)).collect();
    Series::of(medians.iter().map(noisy).collect(), 1)
}

#[test]
fn the_simplest_way_that_is_fast_enough_is_taken() {
    let chosen = |times: &[f64], enough| choose(&series(times), enough);
    assert_eq!(chosen(&[1e-3, 1.05e-3, 0.95e-3], None), Some((0, false)), "a twentieth is worth nothing");
    assert_eq!(chosen(&[1e-3, 2e-4, 1.9e-4], None), Some((1, false)));
    assert_eq!(chosen(&[1e-3, 5e-4, 1e-4], None), Some((2, false)));
    assert_eq!(chosen(&[1e-3, 5e-4], None), Some((1, false)), "nothing was stored");
    assert_eq!(chosen(&[1e-3, 5e-4, 1e-4], Some(2e-3)), Some((0, true)));
    assert_eq!(chosen(&[1e-3, 5e-4, 1e-4], Some(7e-4)), Some((1, true)));
    assert_eq!(choose(&Series::of(vec![vec![], vec![]], 1), None), None);
}

fn result(source: CropSource, name: &str, cells_per_s: f64) -> CropResult {
    CropResult {
        source,
        name: name.to_owned(),
        cells_per_s: Figure { value: cells_per_s, low: None, high: None },
        bytes_read_per_used: None,
        bytes_on_disk: if source == CropSource::Stored { 12.5e6 } else { 0.0 },
        versus_fastest: None,
        verdict: crate::advise::SpeedVerdict::TooFewData,
    }
}

#[test]
fn the_sentence_says_what_to_do_and_why() {
    let tried = [
        result(CropSource::Random, "cut out, random order", 100.0),
        result(CropSource::Block, "cut out, blocks", 200.0),
        result(CropSource::Stored, "stored as parquet (zstd)", 500.0),
    ];
    let said = |source, is_enough| reason(&tried, source, is_enough, &Cache::Lru { limit: 3 << 20 });
    assert_eq!(
        said(CropSource::Random, true),
        "cut the crops out on the fly in random order: 100 cells/s; this is within the step"
    );
    assert_eq!(
        said(CropSource::Block, false),
        "cut the crops out on the fly in block order, with the cache lru:3MiB: 200 cells/s, 2.00 times as many as in random \
         order; stored crops are not clearly faster by more than a tenth"
    );
    assert_eq!(
        said(CropSource::Stored, false),
        "keep the crops stored as parquet (zstd): 500 cells/s, 2.50 times as many as on the fly, for 12.5 MB more on disk"
    );
    let two = reason(&tried[..2], CropSource::Block, false, &Cache::Lru { limit: 1 << 20 });
    assert!(two.ends_with("2.00 times as many as in random order"), "{two}");
}

/// A table of `each` cells in each image.
fn table(folder: &Path, images: usize, each: usize) -> PathBuf {
    let mut text = "ImageName,x,y,ObjectNumber\n".to_owned();
    for cell in 1..=each {
        for image in 0..images {
            writeln!(text, "image_{image},{},{},{cell}", 5 + 8 * cell, 10 + 3 * cell).unwrap();
        }
    }
    let path = folder.join("cells.csv");
    std::fs::write(&path, text).unwrap();
    path
}

fn options() -> CellOptions {
    CellOptions { size: [8, 8], ..CellOptions::default() }
}

#[test]
fn images_are_drawn_with_all_of_their_cells() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = MemoryStore::new("set");
    for image in 0..20 {
        let shape = Shape::plane(300, 300);
        store.push(format!("image_{image}"), shape, PixelType::U16, vec![0; 2 * 300 * 300]).unwrap();
    }
    let cells = Cells::find(&store, &table(dir.path(), 20, 3), &options()).unwrap();
    let drawn = |least| WholeImages::draw(&store, &cells, least, 3).unwrap();
    // A whole block of images. Fewer where that would be eight times the fewest cells. No more than there are.
    assert_eq!([12, 2, 1000].map(|least| drawn(least).rows.len()), [24, 18, 60]);
    let of = drawn(12);
    let mut each = [0; 20];
    for &cell in &of.rows {
        each[cells.image_of(cell).unwrap()] += 1;
    }
    assert!(each.iter().all(|&n| n == 0 || n == 3), "{each:?}");
    // Sixteen images of 180,000 bytes, in whole MiB.
    assert_eq!(of.cache, Cache::Lru { limit: 3 << 20 });
}

/// Block order reads each image once, random order again for nearly each batch that has a cell of it.
#[test]
fn an_epoch_counts_what_it_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("images");
    let written = WriteOptions { compression: Compression::None, ..WriteOptions::default() };
    let mut writer = wellread_store::create(&path, "tiff", &written).unwrap();
    for image in 0..4 {
        let (metadata, pixels) = (ImageMetadata::named(format!("image_{image}")), vec![image as u8; 64 * 64]);
        let shape = Shape::plane(64, 64);
        let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
        writer.write(&image).unwrap();
    }
    writer.finish().unwrap();
    let table = table(dir.path(), 4, 6);
    let how = plain_loader(4, 0, 1, None).unwrap();
    let way = |source, order, cache: Cache| {
        let open = || -> Result<Dataset> {
            Ok(Dataset::open(&path)?.with_cache(&cache)?.cells(&table, &options())?)
        };
        let rows = (0..24).collect();
        let way =
            CropMethod { source, name: String::new(), bytes_on_disk: 0.0, open: Box::new(open), rows, order };
        way.epoch(&how, 0).unwrap()
    };
    let block = Order::Mixed { by: Grouping::Position, window: 2 };
    let block = way(CropSource::Block, block, Cache::Lru { limit: 1 << 20 });
    let random = way(CropSource::Random, Order::Random, Cache::None);
    assert_eq!((block.traffic.used, random.traffic.used), (24 * 64, 24 * 64));
    // Each image's pixels once, and its header.
    let images = 4 * 64 * 64;
    assert!((images..images * 8 / 5).contains(&block.traffic.read), "{block:?}");
    assert!(block.cell_s > 0.0 && random.traffic.read > 0, "{random:?}");
}
