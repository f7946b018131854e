//! TIFF and OME-TIFF: what reference libraries write, what wellread writes, odd files, hostile files.

mod builder;
mod hostile;
mod layouts;
mod other_files;
mod parts;
mod real;
mod round_trip;
mod strips;
mod wide;

use std::path::Path;
use wellread_image::{PixelType, Region, Shape};
use wellread_store::{OpenOptions, Result, Scratch, Store, read_image, read_region};

/// A folder for one test.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn open(path: impl AsRef<Path>) -> Result<Box<dyn Store>> {
    wellread_store::open(path, &OpenOptions { format: Some("tiff".into()), ..OpenOptions::default() })
}

/// Writes `bytes` to a file and opens it.
fn open_bytes(dir: &Path, bytes: &[u8]) -> Result<Box<dyn Store>> {
    let path = dir.join("file.tif");
    std::fs::write(&path, bytes).unwrap();
    open(path)
}

/// The one image of a file.
fn only_image(dir: &Path, bytes: &[u8]) -> (Shape, PixelType, Vec<u8>) {
    let store = open_bytes(dir, bytes).unwrap();
    assert_eq!(store.len(), 1);
    let (info, pixels) = read_image(&*store, 0).unwrap();
    (info.shape, info.dtype, pixels)
}

/// The message of a failing open, shape, or read of row 0.
fn failure(dir: &Path, bytes: &[u8]) -> String {
    match open_bytes(dir, bytes).and_then(|store| read_image(&*store, 0)) {
        Ok((info, _)) => panic!("reading succeeded: {info:?}"),
        Err(e) => e.to_string(),
    }
}

/// Cuts a region out of a whole image.
fn cut(pixels: &[u8], shape: Shape, size: usize, region: &Region) -> Vec<u8> {
    let mut out = vec![0; region.pixels() * size];
    wellread_image::clip_runs(&shape.full(), region, |from, to, n| {
        out[to * size..(to + n) * size].copy_from_slice(&pixels[from * size..(from + n) * size]);
    });
    out
}

/// Reads a spread of regions of every image and compares them with the whole.
fn check_regions(store: &dyn Store) {
    let mut scratch = Scratch::default();
    let mut out = vec![];
    for row in 0..store.len() {
        let (info, whole) = read_image(store, row).unwrap();
        let s = info.shape.0;
        for i in 0..12usize {
            let mut region = info.shape.full();
            for (a, &n) in s.iter().enumerate() {
                let hash = (i * 7919 + a * 104_729 + 13) * 2_654_435_761 % 1_000_003;
                region.start[a] = hash % n;
                region.size[a] = 1 + (hash / 7) % (n - region.start[a]);
            }
            read_region(store, row, &region, &mut scratch, &mut out).unwrap();
            assert_eq!(out, cut(&whole, info.shape, info.dtype.size(), &region), "row {row}, {region:?}");
        }
    }
}
