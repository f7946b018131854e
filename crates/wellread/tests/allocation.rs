//! The formats of the engines: a read makes Arrow arrays, whose small parts are allocated, but hardly any for each image.

#[path = "../../wellread-loader/tests/it/counting.rs"]
#[allow(dead_code)]
mod counting;

use counting::{ALONE, Watched, allocations_per_batch};
use std::path::Path;
use std::sync::PoisonError;
use wellread::store::{Compression, ImageView, OpenOptions, WriteOptions};
use wellread::{ImageMetadata, PixelType, Shape};

const ROWS: usize = 256;

fn written(path: &Path, format: &str) {
    let options = WriteOptions { compression: Compression::None, ..WriteOptions::default() };
    let mut writer = wellread::store::create(path, format, &options).unwrap();
    let shape = Shape([1, 2, 1, 32, 32]);
    for row in 0..ROWS {
        let metadata = ImageMetadata::named(format!("image {row}"));
        let pixels: Vec<u8> =
            (0..2 * shape.pixels()).map(|i| (((i * 31 + row * 7) * 2_654_435_761) >> 11) as u8).collect();
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels })
            .unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn reading_more_images_at_once_allocates_hardly_more() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    for format in ["lance", "vortex", "duckdb"] {
        let Ok(known) = wellread::store::registry::format_named(format) else { continue };
        let path = folder.path().join(format!("set{}", known.set_ending));
        written(&path, format);
        let store = wellread::store::open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(store.format(), format);
        let dataset = Watched(store).dataset();
        let [few, many] = [4, 64].map(|batch_size| allocations_per_batch(&dataset, batch_size));
        println!("{format}: {few} and {many} allocations for batches of 4 and 64");
        assert!(few < 600.0, "{format}: {few} allocations for a read");
        let each = (many - few) / 60.0;
        assert!(each < 12.0, "{format}: {each} allocations for each image more, {few} for a read of 4");
    }
}
