//! The reader of DuckDB's blocks: blocks of a small database are in parts written over. Their checksums are put right, so
//! that what lies behind them is reached. DuckDB itself is kept away from them.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;
use wellread_fuzz::{folder, patch};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{Compression, ImageView, WriteOptions, create};

/// Pixel types, and whether they are packed.
const WAYS: [(PixelType, Compression); 3] = [
    (PixelType::U16, Compression::Default),
    (PixelType::F32, Compression::Default),
    (PixelType::U8, Compression::None),
];

/// A database and its bytes.
fn database((dtype, compression): (PixelType, Compression)) -> (PathBuf, Vec<u8>) {
    let path = folder().join(format!("{dtype}.duckdb"));
    let options = WriteOptions { compression, ..WriteOptions::default() };
    let mut writer = create(&path, "duckdb", &options).expect("a writer");
    let shape = Shape::plane(40, 50);
    for row in 0..6usize {
        let values = (0..shape.pixels()).map(|p| (p / 7 + p * 31 % 17 + row) % 199);
        let pixels: Vec<u8> = match dtype {
            PixelType::U8 => values.map(|v| v as u8).collect(),
            PixelType::U16 => values.flat_map(|v| (v as u16 * 7).to_le_bytes()).collect(),
            _ => values.flat_map(|v| (v as f32 / 4.0).to_le_bytes()).collect(),
        };
        let metadata = ImageMetadata { name: format!("image-{row}"), ..ImageMetadata::default() };
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels })
            .expect("a good image");
    }
    writer.finish().expect("room for a database");
    let bytes = std::fs::read(&path).expect("a file");
    (path, bytes)
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static DATABASES: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
    let databases = DATABASES.get_or_init(|| WAYS.into_iter().map(database).collect());
    let Some((&which, patches)) = data.split_first() else { return };
    let (path, good) = &databases[usize::from(which) % databases.len()];
    let read = wellread_duckdb::fuzzing::read_damaged(path, good, &["ome_image", "chunks"], |blocks| {
        patch(blocks, patches);
    });
    let whole = read.expect("a database whose pixels are read from its blocks");
    assert!(whole || !patches.is_empty(), "a good database is read");
});
