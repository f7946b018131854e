//! The memory-mapped file of decoded images that processes share: its header, entries and pixels, in parts written over.
//!
//! A process that ends half way, or another program, leaves such files; their content is checked before it is lent.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use wellread_fuzz::{folder, patch};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{Cache, Dataset};
use wellread_store::{ImageView, WriteOptions, create};

/// Images of the set.
const IMAGES: usize = 5;

struct Cached {
    set: PathBuf,
    /// The cache file, and its good bytes.
    file: PathBuf,
    good: Vec<u8>,
}

fn open(set: &Path) -> Dataset {
    let folder = folder().join("cache");
    let cache = Cache::File { folder: Some(folder), limit: 1 << 20 };
    Dataset::open(set).and_then(|dataset| dataset.with_cache(&cache)).expect("a good set")
}

/// A set whose images are all in its cache file.
fn cached() -> Cached {
    let set = folder().join("a.parquet");
    let mut writer = create(&set, "parquet", &WriteOptions::default()).expect("a writer");
    let shape = Shape::plane(20, 30);
    for row in 0..IMAGES {
        let pixels: Vec<u8> = (0..shape.pixels()).map(|p| (p * 31 % 251 + row) as u8).collect();
        let metadata = ImageMetadata { name: format!("image-{row}"), ..ImageMetadata::default() };
        let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
        writer.write(&image).expect("a good image");
    }
    writer.finish().expect("room for a set");
    let dataset = open(&set);
    (0..IMAGES).for_each(|row| drop(dataset.read(row).expect("a good image")));
    drop(dataset);
    let mut entries = std::fs::read_dir(folder().join("cache")).expect("a folder");
    let file = entries.next().expect("a file").expect("an entry").path();
    let good = std::fs::read(&file).expect("a file");
    Cached { set, file, good }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static CACHED: OnceLock<Cached> = OnceLock::new();
    let Cached { set, file, good } = CACHED.get_or_init(cached);
    let mut bytes = good.clone();
    patch(&mut bytes, data);
    // A new file: a map of the old one keeps what it was.
    let _ = std::fs::remove_file(file);
    std::fs::write(file, bytes).expect("a folder to write to");
    let dataset = open(set);
    for row in 0..IMAGES {
        if let Ok((info, pixels)) = dataset.read(row) {
            assert_eq!(pixels.len(), info.shape.pixels() * info.dtype.size());
        }
    }
});
