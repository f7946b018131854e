//! Cells in loaders: pieces decoded once, caches below the crops, the same batches for any number of threads.

use crate::support::{TestStore, bits, images};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::dataset::CellsFrom;
use wellread_loader::{
    Cache, Dataset, Field, Grouping, Loader, MemoryStore, Order, Pairing, Targets, Transform,
};
use wellread_store::cells::{CellOptions, Edge, Mask};
use wellread_store::with_columns::joined;
use wellread_store::{ImageView, OpenOptions, WriteOptions, read_image};

const SIDE: usize = 60;

/// Twelve cells of each image, in an order that goes from image to image.
fn table(folder: &Path, dataset: &Dataset) -> PathBuf {
    let mut text = "image,x,y\n".to_owned();
    for cell in 0..12 {
        for row in 0..dataset.len() {
            let name = dataset.name(row).unwrap();
            writeln!(text, "{name},{},{}", (cell * 17 + row * 5) % SIDE, (cell * 29 + row) % SIDE).unwrap();
        }
    }
    let path = folder.join("cells.csv");
    std::fs::write(&path, text).unwrap();
    path
}

fn options(edge: Edge) -> CellOptions {
    CellOptions { size: [14, 10], edge, ..CellOptions::default() }
}

#[test]
fn cells_of_one_batch_decode_each_piece_once() {
    let shape = Shape([1, 2, 1, SIDE, SIDE]);
    let mut store = TestStore::new(images(3, shape, PixelType::U16));
    store.chunk = Some([1, 1, 1, 16, 16]);
    let (blocks, reads) = (store.blocks.clone(), store.reads.clone());
    let images = store.dataset();
    let dir = tempfile::tempdir().unwrap();
    let cells = images.cells(table(dir.path(), &images), &options(Edge::Shift)).unwrap();
    assert_eq!((cells.len(), cells.row_info(0).unwrap().shape), (36, Shape([1, 2, 1, 14, 10])));
    assert_eq!(cells.cells_report().unwrap().cells, 36);
    let loader = Loader::builder(&cells).batch_size(36).sequential().build().unwrap();
    let whole = loader.iter().next().unwrap().unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    // Sixteen pieces of each of two channels of three images, of which few are in no cell.
    let decoded = blocks.load(Ordering::Relaxed);
    assert!(decoded <= 3 * 2 * 16, "{decoded} pieces");
    let one_by_one = Loader::builder(&cells).batch_size(1).sequential().build().unwrap();
    let apart: Vec<u32> = one_by_one.iter().flat_map(|batch| bits(&batch.unwrap()).2).collect();
    assert!(bits(&whole).2 == apart);
    assert!(blocks.load(Ordering::Relaxed) - decoded > 36 * 2, "each cell lies in several pieces");
}

/// An error that counted cells called them images.
#[test]
fn targets_that_are_too_few_for_cells_are_counted_as_both() {
    let shape = Shape::plane(SIDE, SIDE);
    let images = TestStore::new(images(2, shape, PixelType::U8)).dataset();
    let dir = tempfile::tempdir().unwrap();
    let cells = images.cells(table(dir.path(), &images), &options(Edge::Shift)).unwrap();
    let targets = Targets::labels(&images).pairing(Pairing::Order);
    let error = Loader::builder(&cells).batch_size(2).targets(targets).build().unwrap_err().to_string();
    assert!(error.contains("there are 2 targets for 24 cells, and pairing is by order"), "{error}");
    assert!(error.contains("give one target for each cell"), "{error}");
}

/// A batch takes crops from where the image's pixels lie: cropped once more, turned, some channels of them, beyond borders.
#[test]
fn crops_have_the_pixels_of_their_images() {
    const SIZE: [usize; 2] = [9, 7];
    let mut store = TestStore::new(images(3, Shape([1, 3, 1, SIDE, SIDE]), PixelType::U16));
    store.chunk = Some([1, 1, 1, 16, 16]);
    let plain = store.dataset();
    let cached = plain.clone().with_cache(&Cache::MEMORY).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = table(dir.path(), &plain);
    let transform = Transform::default().channels([2, 0]).crop(SIZE[0], SIZE[1]).flip(1.0, 0.0).scale(1.0);
    for (images, edge) in [(&plain, Edge::Pad), (&plain, Edge::Shift), (&cached, Edge::Pad)] {
        let cells = images.cells(&path, &options(edge)).unwrap();
        let loader = Loader::builder(&cells).batch_size(8).sequential().transform(transform.clone());
        let loader = loader.build().unwrap();
        let mut seen = 0;
        for batch in &loader {
            let batch = batch.unwrap();
            for (row, crop) in batch.rows().iter().zip(batch.pixels().chunks(2 * SIZE[0] * SIZE[1])) {
                // Copied, as those are who take no parts of blocks.
                let (info, bytes) = read_image(cells.store(), *row).unwrap();
                let Shape([_, _, _, height, width]) = info.shape;
                let pixel = |c: usize, y: usize, x: usize| {
                    let at = 2 * ((c * height + y) * width + x);
                    f32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
                };
                let [top, left] = [(height - SIZE[0]) / 2, (width - SIZE[1]) / 2];
                for (i, value) in crop.iter().enumerate() {
                    let (c, y, x) = (i / (SIZE[0] * SIZE[1]), i / SIZE[1] % SIZE[0], i % SIZE[1]);
                    let wanted = pixel([2, 0][c], top + y, left + SIZE[1] - 1 - x);
                    assert_eq!(value.to_bits(), wanted.to_bits(), "{edge:?} row {row}: {c} {y} {x}");
                }
                seen += 1;
            }
        }
        assert_eq!(seen, cells.len());
    }
}

/// The images are some rows of a set that has the cache.
#[test]
fn cells_report_the_cache_below_their_images() {
    let images = TestStore::new(images(4, Shape::plane(SIDE, SIDE), PixelType::U8)).dataset();
    let cached = images.with_cache(&Cache::MEMORY).unwrap();
    let some = cached.select([0, 2]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cells = some.cells(table(dir.path(), &some), &options(Edge::Shift)).unwrap();
    Loader::builder(&cells).batch_size(8).build().unwrap().collect_epoch().unwrap();
    assert_eq!(cells.cache_report().images, 2);
    assert_eq!(cells.cache_report(), cached.cache_report());
}

#[test]
fn caches_keep_images_and_not_crops() {
    let shape = Shape::plane(SIDE, SIDE);
    let store = TestStore::new(images(5, shape, PixelType::U8));
    let blocks = store.blocks.clone();
    let images = store.dataset();
    let dir = tempfile::tempdir().unwrap();
    let path = table(dir.path(), &images);
    let plain = images.cells(&path, &options(Edge::Pad)).unwrap();
    let epoch = |dataset: &Dataset| -> Vec<_> {
        let loader = Loader::builder(dataset).batch_size(7).shuffle(3).workers(0).build().unwrap();
        loader.iter().map(|batch| bits(&batch.unwrap())).collect()
    };
    let expected = epoch(&plain);
    // The cache of the images, and one that is asked for of the cells, are the same.
    let below = images.clone().with_cache(&Cache::MEMORY).unwrap().cells(&path, &options(Edge::Pad)).unwrap();
    let above = plain.clone().with_cache(&Cache::MEMORY).unwrap();
    for cached in [below, above] {
        let before = blocks.load(Ordering::Relaxed);
        for _ in 0..2 {
            assert!(epoch(&cached) == expected);
        }
        assert_eq!(blocks.load(Ordering::Relaxed) - before, 5, "each image once");
        let report = cached.cache_report();
        assert_eq!((report.images, report.bytes), (5, 5 * SIDE * SIDE));
    }
    // Threads that miss the same image leave it to one of them.
    let shared =
        images.clone().with_cache(&Cache::MEMORY).unwrap().cells(&path, &options(Edge::Pad)).unwrap();
    let before = blocks.load(Ordering::Relaxed);
    let loader = Loader::builder(&shared).batch_size(7).shuffle(3).workers(3).build().unwrap();
    let batches: Vec<_> = loader.iter().map(|batch| bits(&batch.unwrap())).collect();
    assert!(batches == expected);
    assert_eq!(blocks.load(Ordering::Relaxed) - before, 5, "each image once");
    // Opened anew, as a forked process does.
    assert!(epoch(&plain.reopened().unwrap()) == expected);
}

#[test]
fn block_order_mixes_cells_of_few_images() {
    let store = images(8, Shape::plane(SIDE, SIDE), PixelType::U8);
    let images = Dataset::from_store(Box::new(store));
    let dir = tempfile::tempdir().unwrap();
    let cells = images.cells(table(dir.path(), &images), &options(Edge::Shift)).unwrap();
    let order = Order::Mixed { by: Grouping::Position, window: 2 };
    let rows = |epoch, workers| {
        let loader = Loader::builder(&cells).batch_size(6).order(order.clone()).seed(4).workers(workers);
        let loader = loader.epoch(epoch).build().unwrap();
        loader.iter().map(|batch| batch.unwrap().rows().to_vec()).collect::<Vec<_>>()
    };
    let first = rows(0, 0);
    assert_eq!(first.concat().iter().collect::<HashSet<_>>().len(), 96);
    assert_eq!(first, rows(0, 2));
    assert_ne!(first, rows(1, 0));
    // A cell's image is its row modulo 8: four windows of two images, 24 cells each.
    for window in first.concat().chunks(24) {
        let met: HashSet<usize> = window.iter().map(|row| row % 8).collect();
        assert_eq!(met.len(), 2);
        assert_ne!(window[..12].iter().map(|row| row % 8).collect::<HashSet<_>>().len(), 1, "mixed");
    }
}

#[test]
fn errors_count_cells() {
    let images = Dataset::from_store(Box::new(images(1, Shape::plane(SIDE, SIDE), PixelType::U8)));
    let dir = tempfile::tempdir().unwrap();
    let cells = images.cells(table(dir.path(), &images), &options(Edge::Shift)).unwrap();
    let chosen = cells.select([12]).unwrap_err();
    let loaded = Loader::builder(&cells).rows([12]).build().unwrap_err();
    for error in [chosen, loaded] {
        assert_eq!(error.cause(), "row 12 was selected, but there are 12 cells");
    }
    let dose: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let doses = RecordBatch::try_from_iter([("dose", dose)]).unwrap();
    let error = joined(cells.store(), &[doses], &[], false).unwrap_err();
    assert_eq!(error.cause(), "has 1 row for 12 cells");
}

#[test]
fn memory_is_bounded_by_images_that_a_cache_keeps() {
    let shape = Shape::plane(SIDE, SIDE);
    let images = TestStore::new(images(5, shape, PixelType::U8)).dataset();
    let dir = tempfile::tempdir().unwrap();
    let cells = images.cells(table(dir.path(), &images), &options(Edge::Shift)).unwrap();
    let cached = cells.with_cache(&Cache::MEMORY).unwrap();
    let loader = Loader::builder(&cached).batch_size(4).memory(64 << 20).build().unwrap();
    assert_eq!(loader.memory().unwrap().cache_bytes, 5 * SIDE * SIDE);
}

#[test]
fn memory_is_bounded_by_masks_that_a_cache_keeps() {
    let shape = Shape::plane(SIDE, SIDE);
    let set = |value: u8| {
        let mut store = MemoryStore::new("set");
        store.push("a", shape, PixelType::U8, vec![value; SIDE * SIDE]).unwrap();
        Dataset::from_store(Box::new(store))
    };
    let (images, masks) = (set(9), set(1).with_cache(&Cache::MEMORY).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("cells.csv");
    std::fs::write(&table, "image,x,y,ObjectNumber\na,30,30,1\n").unwrap();
    let options = CellOptions { mask: Mask::Zero, ..options(Edge::Pad) };
    let cells = images.cells_from(CellsFrom::Path(&table), Some(&masks), &options).unwrap();
    let caches = |cells: &Dataset| {
        let loader = Loader::builder(cells).batch_size(1).memory(64 << 20).build().unwrap();
        loader.memory().unwrap().cache_bytes
    };
    assert_eq!(caches(&cells), SIDE * SIDE);
    assert_eq!(caches(&cells.with_cache(&Cache::MEMORY).unwrap()), 2 * SIDE * SIDE);
}

/// Two images in files, whose pixels are `value` of row and column.
fn written(path: &Path, value: impl Fn(usize, usize) -> u8) -> Dataset {
    let mut writer = wellread_store::create(path, "tiff", &WriteOptions::default()).unwrap();
    let pixels: Vec<u8> = (0..SIDE * SIDE).map(|i| value(i / SIDE, i % SIDE)).collect();
    for name in ["a", "b"] {
        let metadata = ImageMetadata::named(name);
        let shape = Shape::plane(SIDE, SIDE);
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels })
            .unwrap();
    }
    writer.finish().unwrap();
    Dataset::open_with(path, &OpenOptions::default()).unwrap()
}

/// Pixels outside of the cell are 0 after the correction too: of several planes, as their maximum, in parts of channels.
#[test]
fn a_dark_field_leaves_masked_pixels_at_zero() {
    const BOX: [usize; 2] = [14, 10];
    let dir = tempfile::tempdir().unwrap();
    // The second image's pixels are 0 inside of its cell, which is no mask.
    let value = |z: usize, c: usize, y: usize, x: usize| (10 * (1 + c) + z + (y * 7 + x * 3) % 5) as u16;
    for dtype in [PixelType::U8, PixelType::U16, PixelType::F32] {
        let shape = Shape([1, 3, 2, SIDE, SIDE]);
        let [mut images, mut labels] = ["images", "labels"].map(MemoryStore::new);
        for (name, factor) in [("a", 1), ("b", 0)] {
            let mut pixels = vec![];
            for (c, z) in (0..3).flat_map(|c| [(c, 0), (c, 1)]) {
                for i in 0..SIDE * SIDE {
                    let value = factor * value(z, c, i / SIDE, i % SIDE);
                    match dtype {
                        PixelType::U8 => pixels.push(value as u8),
                        PixelType::U16 => pixels.extend(value.to_le_bytes()),
                        _ => pixels.extend(f32::from(value).to_le_bytes()),
                    }
                }
            }
            images.push(name, shape, dtype, pixels).unwrap();
            let label = (0..SIDE * SIDE).map(|i| if i % SIDE < SIDE / 2 { 1 } else { 2 }).collect();
            labels.push(name, Shape::plane(SIDE, SIDE), PixelType::U8, label).unwrap();
        }
        let [images, labels] = [images, labels].map(|store| Dataset::from_store(Box::new(store)));
        let table = dir.path().join("cells.csv");
        // The border of both labels is in the middle of each box, and one box goes over the border of the image.
        let text = "image,x,y,ObjectNumber\na,30,30,1\na,30,2,2\nb,30,30,1\n";
        std::fs::write(&table, text).unwrap();
        let options = CellOptions { mask: Mask::Zero, ..options(Edge::Pad) };
        let cells = images.cells_from(CellsFrom::Path(&table), Some(&labels), &options).unwrap();
        let (gain, dark) = (vec![2.0; SIDE * SIDE], vec![3.0; SIDE * SIDE]);
        let field = Arc::new(Field::new([1, SIDE, SIDE], &gain, Some(dark)).unwrap());
        // Both channels of the middle, apart and in another order; the whole depth, or its maximum.
        for (project, mirror) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut transform = Transform::default().channels([2, 0]).illumination(Arc::clone(&field));
            transform.project = project;
            if mirror {
                transform = transform.flip(1.0, 0.0);
            }
            let loader = Loader::builder(&cells).batch_size(3).sequential().transform(transform);
            let batch = loader.build().unwrap().iter().next().unwrap().unwrap();
            let depth = if project { 1 } else { 2 };
            for (number, &got) in batch.pixels().iter().enumerate() {
                let [row, column] = [number / BOX[1] % BOX[0], number % BOX[1]];
                let plane = number / (BOX[0] * BOX[1]);
                let (z, c, cell) = (plane % depth, [2, 0][plane / depth % 2], plane / depth / 2);
                let column = if mirror { BOX[1] - 1 - column } else { column };
                let (y, x) = (row + [23, 0, 23][cell], column + 25);
                let is_own = (x < SIDE / 2) == (cell != 1) && (cell != 1 || y >= 5);
                // The first row of the box of the second cell lies five rows above the image.
                let y = if cell == 1 { y.saturating_sub(5) } else { y };
                let stored = if cell == 2 { 0 } else { value(if project { 1 } else { z }, c, y, x) };
                let wanted = if is_own { (f32::from(stored) - 3.0) / 2.0 } else { 0.0 };
                assert_eq!(got, wanted, "{dtype} {project} {mirror} cell {cell} {c} {z} {y} {x}");
            }
        }
    }
}

/// Some cells, as a set, have the images' files and shapes: the boxes and the masks tell their cache files apart.
#[test]
fn a_cache_file_is_of_the_boxes_and_masks_of_its_cells() {
    let dir = tempfile::tempdir().unwrap();
    let images = written(&dir.path().join("images"), |y, x| (1 + (y * 7 + x * 3) % 250) as u8);
    let labels = dir.path().join("labels");
    written(&labels, |_, x| if x < SIDE / 2 { 1 } else { 2 });
    let mut text = "image,x,y,ObjectNumber\n".to_owned();
    for row in 0..2 {
        let name = images.name(row).unwrap();
        // One at the border, and one over the border of both labels.
        writeln!(text, "{name},2,2,1\n{name},31,30,2").unwrap();
    }
    let table = dir.path().join("cells.csv");
    std::fs::write(&table, text).unwrap();
    let folder = dir.path().join("cache");
    let cache = Cache::File { folder: Some(folder.clone()), limit: usize::MAX };
    let kinds = [(Edge::Shift, Mask::None), (Edge::Pad, Mask::None), (Edge::Shift, Mask::Zero)];
    let mut crops = HashSet::new();
    for (number, (edge, mask)) in kinds.into_iter().enumerate() {
        let masks = (mask != Mask::None).then(|| labels.clone());
        let cells = images.cells(&table, &CellOptions { mask, masks, ..options(edge) }).unwrap();
        let some = cells.select([0, 1, 2, 3]).unwrap().with_cache(&cache).unwrap();
        // Another program that opens the same has the same file.
        let anew = some.reopened().unwrap();
        for set in [&some, &anew] {
            for row in 0..4 {
                assert_eq!(set.read(row).unwrap(), cells.read(row).unwrap(), "{edge:?} {mask:?} {row}");
            }
        }
        assert_eq!((some.cache_report().misses, anew.cache_report().misses), (4, 0));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), number + 1);
        crops.insert((0..4).map(|row| cells.read(row).unwrap().1).collect::<Vec<_>>());
    }
    assert_eq!(crops.len(), 3, "each kind has pixels of its own");
}
