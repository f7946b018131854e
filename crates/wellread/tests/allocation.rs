//! The formats of the engines: in steady state nothing is allocated where values are not compressed. Hardly anything is for an
//! image more where the engine's library decompresses them.

#[path = "../../wellread-loader/tests/it/counting.rs"]
#[allow(dead_code)]
mod counting;

use counting::{ALONE, Watched, allocations_per_batch, check_steady_state};
use std::path::Path;
use std::sync::PoisonError;
use wellread::store::table::{MemoryTable, RecordBatches, TableStore};
use wellread::store::{Compression, ImageView, OpenOptions, Store, WriteOptions};
use wellread::{ImageMetadata, PixelType, Shape, Transform};

const ROWS: usize = 256;

fn written(path: &Path, format: &str, dtype: PixelType, compression: Compression) {
    let options = WriteOptions { compression, ..WriteOptions::default() };
    let mut writer = wellread::store::create(path, format, &options).unwrap();
    let shape = Shape([1, 2, 1, 32, 32]);
    for row in 0..ROWS {
        let metadata = ImageMetadata::named(format!("image {row}"));
        // As many bits as a camera has, so that engines pack them where they may.
        let numbers = (0..shape.pixels()).map(|i| (((i * 31 + row * 7) * 2_654_435_761) >> 11) as u16 % 4096);
        let pixels: Vec<u8> = match dtype {
            PixelType::U16 => numbers.flat_map(u16::to_le_bytes).collect(),
            _ => numbers.flat_map(|n| (f32::from(n) / 7.0).to_le_bytes()).collect(),
        };
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
    }
    writer.finish().unwrap();
}

/// A set in each format of an engine that is built in.
fn sets(folder: &Path, dtype: PixelType, compression: Compression) -> Vec<Box<dyn Store>> {
    let formats = ["lance", "vortex", "duckdb"].into_iter();
    let known = formats.filter_map(|format| wellread::store::registry::format_named(format).ok());
    let opened = known.map(|format| {
        let path = folder.join(format!("{dtype}-{compression}{}", format.set_ending));
        written(&path, format.name, dtype, compression);
        let store = wellread::store::open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(store.format(), format.name);
        store
    });
    opened.collect()
}

/// The images of a store, as an Arrow table in memory.
fn in_memory(store: &dyn Store) -> Box<dyn Store> {
    let mut batches = RecordBatches::new(store).unwrap();
    let schema = batches.schema();
    let all: Vec<_> = std::iter::from_fn(|| batches.next_batch(store).unwrap()).collect();
    let table = MemoryTable::new("table", schema, all);
    Box::new(TableStore::open(Box::new(table), &OpenOptions::default()).unwrap())
}

#[test]
fn steady_state_allocates_nothing_for_tables() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    for dtype in [PixelType::U16, PixelType::F32] {
        let mut stores = sets(folder.path(), dtype, Compression::None);
        stores.extend(stores.first().map(|store| in_memory(store.as_ref())));
        for store in stores {
            let dataset = Watched(store).dataset();
            for workers in [0, 2] {
                println!("{} of {dtype}, {workers} workers", dataset.store().format());
                check_steady_state(&dataset, workers, &Transform::default().scale_to_unit(), [16, 40]);
            }
        }
    }
}

/// Where the library of an engine decompresses, it allocates: for what it decompresses at once, so not much more for more images.
#[test]
fn reading_more_compressed_images_at_once_allocates_hardly_more() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    for store in sets(folder.path(), PixelType::U16, Compression::Default) {
        let format = store.format();
        let dataset = Watched(store).dataset();
        let [few, many] = [4, 64].map(|batch_size| allocations_per_batch(&dataset, batch_size));
        println!("{format}: {few} and {many} allocations for batches of 4 and 64");
        assert!(few < 600.0, "{format}: {few} allocations for a read");
        let each = (many - few) / 60.0;
        assert!(each < 12.0, "{format}: {each} allocations for each image more, {few} for a read of 4");
    }
}
