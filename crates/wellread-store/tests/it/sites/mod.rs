//! Images made of several files each: layouts, patterns, tables of files, missing files, every error.

mod companions;
mod fields;
mod imagexpress;
mod joins;
mod labels;
mod layouts;
mod missing;
mod real;
mod tables;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use std::path::Path;
use wellread_store::{Missing, OpenOptions, Store, open, read_image};

/// Width and height of a plane.
const SIZE: [usize; 2] = [3, 2];

/// An uncompressed TIFF file of one uint16 plane whose first pixel is `first`, with a description where that is not empty.
fn tiff(first: u16, size: [usize; 2], description: &str) -> Vec<u8> {
    let count = (size[0] * size[1]) as u16;
    let pixels: Vec<u8> = (0..count).flat_map(|i| (first + i).to_le_bytes()).collect();
    tiff_of(&pixels, 16, size, description)
}

/// An uncompressed TIFF file of one plane of these pixels, of so many bits each.
fn tiff_of(pixels: &[u8], bits: u32, [width, height]: [usize; 2], description: &str) -> Vec<u8> {
    let text = format!("{description}\0");
    let entries: u16 = if description.is_empty() { 9 } else { 10 };
    let directory = 8u32;
    let data = directory + 2 + 12 * u32::from(entries) + 4;
    let mut out = b"II*\0".to_vec();
    out.extend(directory.to_le_bytes());
    out.extend(entries.to_le_bytes());
    let mut entry = |tag: u16, kind: u16, count: u32, value: u32| {
        out.extend(tag.to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend(value.to_le_bytes());
    };
    entry(256, 4, 1, width as u32);
    entry(257, 4, 1, height as u32);
    entry(258, 3, 1, bits);
    entry(259, 3, 1, 1);
    entry(262, 3, 1, 1);
    if !description.is_empty() {
        entry(270, 2, text.len() as u32, data + pixels.len() as u32);
    }
    entry(273, 4, 1, data);
    entry(277, 3, 1, 1);
    entry(278, 4, 1, height as u32);
    entry(279, 4, 1, pixels.len() as u32);
    out.extend(0u32.to_le_bytes());
    out.extend(pixels);
    if !description.is_empty() {
        out.extend(text.as_bytes());
    }
    out
}

/// Writes a file for each name; its first pixel is 100 times its place in the list.
fn write(folder: &Path, names: &[&str]) {
    for (i, name) in names.iter().enumerate() {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, tiff(100 * i as u16, SIZE, "")).unwrap();
    }
}

/// The pixels of the files at these places in the list, one after the other.
fn pixels(files: &[u16]) -> Vec<u8> {
    let each = (SIZE[0] * SIZE[1]) as u16;
    files.iter().flat_map(|&i| (0..each).flat_map(move |p| (100 * i + p).to_le_bytes())).collect()
}

fn options() -> OpenOptions {
    OpenOptions::default()
}

fn layout(name: &str) -> OpenOptions {
    OpenOptions { layout: Some(name.to_owned()), ..options() }
}

fn pattern(text: &str) -> OpenOptions {
    OpenOptions { pattern: Some(text.to_owned()), ..options() }
}

fn with_missing(missing: Missing) -> OpenOptions {
    OpenOptions { missing, ..options() }
}

/// The message of a failing open.
fn failure(path: &Path, options: &OpenOptions) -> String {
    open(path, options).err().expect("opening should fail").to_string()
}

fn names(store: &dyn Store) -> Vec<String> {
    (0..store.len()).map(|row| store.name(row).unwrap()).collect()
}

fn channels(store: &dyn Store) -> Vec<String> {
    store.metadata(0).unwrap().channels.into_iter().map(|channel| channel.name).collect()
}

/// T, C and Z of a row, and its pixels.
fn image(store: &dyn Store, row: usize) -> ([usize; 3], Vec<u8>) {
    let (info, pixels) = read_image(store, row).unwrap();
    let [t, c, z, ..] = info.shape.0;
    ([t, c, z], pixels)
}

/// A column of text.
fn text(store: &dyn Store, name: &str) -> Vec<String> {
    let table = store.hints().features(&[name.to_owned()]).unwrap().unwrap();
    table.column(0).as_string::<i32>().iter().map(|value| value.unwrap_or("null").to_owned()).collect()
}

/// A column of whole numbers.
fn numbers(store: &dyn Store, name: &str) -> Vec<i64> {
    let table = store.hints().features(&[name.to_owned()]).unwrap().unwrap();
    table.column(0).as_primitive::<Int64Type>().values().to_vec()
}
