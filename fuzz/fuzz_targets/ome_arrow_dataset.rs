//! The folder of an OME-Arrow dataset: one of its tables, or its description, in parts written over.
//!
//! The first byte of the input says which file is patched ([`wellread_fuzz::patch`]); the others are good ones.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;
use wellread_fuzz::{folder, patch, read_all};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{ImageView, WriteOptions, create};

const FILES: [&str; 4] = ["images.parquet", "chunks.parquet", "index.parquet", "_ome_arrow_dataset.json"];

/// A good dataset.
fn set() -> PathBuf {
    let path = folder().join("a.ome-arrow-dataset");
    let mut writer = create(&path, "ome-arrow-dataset", &WriteOptions::default()).expect("a writer");
    for row in 0..4usize {
        let shape = if row % 2 == 0 { Shape::plane(24, 40) } else { Shape([1, 2, 3, 9, 31]) };
        let values = (0..shape.pixels()).map(|p| (p / 5 + p * 31 % 17 + row) % 199);
        let pixels: Vec<u8> = values.flat_map(|v| (v as u16 * 7).to_le_bytes()).collect();
        let metadata = ImageMetadata { name: format!("image-{row}"), ..ImageMetadata::default() };
        let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels };
        writer.write(&image).expect("a good image");
    }
    writer.finish().expect("room for a dataset");
    path
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static GOOD: OnceLock<(PathBuf, [Vec<u8>; FILES.len()])> = OnceLock::new();
    let (set, good) = GOOD.get_or_init(|| {
        let set = set();
        let files = FILES.map(|name| std::fs::read(set.join(name)).expect("a file"));
        (set, files)
    });
    let Some((&which, patches)) = data.split_first() else { return };
    let which = usize::from(which) % FILES.len();
    let mut bytes = good[which].clone();
    patch(&mut bytes, patches);
    let write = |bytes: &[u8]| std::fs::write(set.join(FILES[which]), bytes).expect("a folder to write to");
    write(&bytes);
    read_all(set, "ome-arrow-dataset");
    write(&good[which]);
});
