//! Good tables of engines, written over in parts.
//!
//! The first byte of an input chooses one of several tables. The rest are patches ([`patch`]): they reach the decoders
//! of pages and chunks, not only the engines' own checks of a footer.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use wellread_fuzz::{folder, patch, read_all};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{Compression, ImageView, OpenOptions, Tune, WriteOptions, create, open, read_image};

/// How the tables are written, one of them compressed.
const WAYS: [(Option<Compression>, Tune, PixelType); 4] = [
    (Some(Compression::Default), Tune::Random, PixelType::U16),
    (Some(Compression::None), Tune::Scan, PixelType::U8),
    (None, Tune::Random, PixelType::U16),
    (Some(Compression::Default), Tune::Scan, PixelType::F32),
];

/// A table: where it is, and its file with the good bytes.
struct Table {
    path: PathBuf,
    file: PathBuf,
    good: Vec<u8>,
}

/// Reads a Lance dataset whose data file is patched. Lance asks for as much memory as a piece of zstd declares, so
/// wellread must have looked at that before.
pub fn lance(data: &[u8]) {
    static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
    patched(data, "lance", TABLES.get_or_init(|| tables("lance", Compression::Zstd(3))));
}

/// Reads a Vortex file that is patched.
pub fn vortex(data: &[u8]) {
    static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
    patched(data, "vortex", TABLES.get_or_init(|| tables("vortex", Compression::Zstd(3))));
}

/// Reads a DuckDB database that is patched: its checksums tell, and DuckDB must say so and no more.
pub fn duckdb(data: &[u8]) {
    static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
    patched(data, "duckdb", TABLES.get_or_init(|| tables("duckdb", Compression::Default)));
}

fn tables(format: &str, compressed: Compression) -> Vec<Table> {
    let one = |(i, (compression, tune, dtype)): (usize, (Option<Compression>, Tune, PixelType))| {
        let path = folder().join(format!("{i}.{format}"));
        let compression = compression.unwrap_or(compressed);
        let options = WriteOptions { compression, tune, ..WriteOptions::default() };
        let mut writer = create(&path, format, &options).expect("a writer");
        for k in 0..5 {
            let shape = if k % 2 == 0 { Shape::plane(24, 40) } else { Shape([2, 2, 1, 9, 31]) };
            let values = (0..shape.pixels()).map(|p| (p / 5 + p * 31 % 17 + k) % 199);
            let pixels: Vec<u8> = match dtype {
                PixelType::U8 => values.map(|v| v as u8).collect(),
                PixelType::U16 => values.flat_map(|v| (v as u16 * 7).to_le_bytes()).collect(),
                _ => values.flat_map(|v| (v as f32 / 3.0).to_le_bytes()).collect(),
            };
            let metadata = ImageMetadata { name: format!("image-{k}"), ..ImageMetadata::default() };
            let image = ImageView { metadata: &metadata, shape, dtype, pixels: &pixels };
            writer.write(&image).expect("a good image");
        }
        writer.finish().expect("room for a table");
        let store = open(&path, &OpenOptions::default()).expect("a table");
        (0..5).for_each(|row| drop(read_image(&*store, row).expect("an image")));
        let file = if path.is_dir() { only_file(&path.join("data")) } else { path.clone() };
        let good = std::fs::read(&file).expect("a file");
        Table { path, file, good }
    };
    WAYS.into_iter().enumerate().map(one).collect()
}

fn only_file(folder: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(folder).expect("a folder");
    entries.next().expect("a file").expect("an entry").path()
}

fn patched(data: &[u8], format: &str, tables: &[Table]) {
    let Some((&which, patches)) = data.split_first() else { return };
    let table = &tables[usize::from(which) % tables.len()];
    let mut bytes = table.good.clone();
    patch(&mut bytes, patches);
    // A new file: a process that has the old one open keeps it.
    let _ = std::fs::remove_file(&table.file);
    std::fs::write(&table.file, bytes).expect("the temporary folder can be written to");
    read_all(&table.path, format);
}
