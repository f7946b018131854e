//! OME-Zarr: golden sets, round trips, agreement with zarrs over codecs, layouts and axes, damage.

mod golden;
mod hostile;
mod others;
mod plates;
mod round_trip;
mod series;
mod wide;
mod zarrs;

use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use wellread_image::{ImageMetadata, PixelType, Region, Shape};
use wellread_store::{
    CopySink, ImageView, OpenOptions, Scratch, Store, WriteOptions, create, open, read_image, read_region,
};

pub(crate) fn open_at(path: &Path) -> Box<dyn Store> {
    open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Pixels that compress a little and differ everywhere.
pub(crate) fn pattern(shape: Shape, dtype: PixelType, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    (0..shape.pixels() * dtype.size())
        .map(|i| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if i % 3 == 0 { (i / 7) as u8 } else { (state >> 60) as u8 }
        })
        .collect()
}

pub(super) fn dtypes() -> impl Strategy<Value = PixelType> {
    proptest::sample::select(PixelType::ALL.to_vec())
}

/// A region that fits `shape`, from five pairs of fractions.
pub(super) fn region_of(shape: Shape, cut: [(f64, f64); 5]) -> Region {
    let mut region = shape.full();
    for (a, (from, size)) in cut.into_iter().enumerate() {
        region.start[a] = (from * shape.0[a] as f64) as usize;
        region.size[a] = 1 + (size * (shape.0[a] - region.start[a] - 1) as f64) as usize;
    }
    region
}

/// The pixels of `region`, cut out of a whole image.
fn cut_out(shape: Shape, dtype: PixelType, pixels: &[u8], region: Region) -> Vec<u8> {
    let mut out = vec![0; region.pixels() * dtype.size()];
    let mut sink = CopySink::new(vec![(region, dtype, &mut out)]);
    let block = wellread_store::Block { region: shape.full(), data: pixels, dtype };
    wellread_store::PixelSink::put(&mut sink, 0, &block).unwrap();
    out
}

/// Whole and partial reads of row 0 give `pixels`.
pub(super) fn assert_reads(store: &dyn Store, shape: Shape, dtype: PixelType, pixels: &[u8], region: Region) {
    let (info, read) = read_image(store, 0).unwrap();
    assert_eq!((info.shape, info.dtype), (shape, dtype));
    assert!(read == pixels, "whole image differs");
    let (mut scratch, mut part) = (Scratch::default(), vec![]);
    read_region(store, 0, &region, &mut scratch, &mut part).unwrap();
    assert!(part == cut_out(shape, dtype, pixels, region), "region {region:?} differs");
}

pub(super) fn cuts() -> impl Strategy<Value = [(f64, f64); 5]> {
    prop::array::uniform5((0.0..1.0, 0.0..1.0))
}

/// A group around one array, as OME-Zarr 0.4 or 0.5, with the given axes.
pub(crate) fn write_group(dir: &Path, zarr: u8, axes: &str, dataset: &str) {
    let axes: Vec<Value> = axes
        .chars()
        .map(|name| {
            let kind = match name {
                't' => "time",
                'c' => "channel",
                _ => "space",
            };
            json!({"name": name.to_string(), "type": kind})
        })
        .collect();
    let multiscales = json!([{"axes": axes, "datasets": [{"path": dataset}], "version": "0.4"}]);
    std::fs::create_dir_all(dir).unwrap();
    if zarr == 3 {
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": {
            "version": "0.5", "multiscales": multiscales}}});
        std::fs::write(dir.join("zarr.json"), group.to_string()).unwrap();
    } else {
        std::fs::write(dir.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
        std::fs::write(dir.join(".zattrs"), json!({"multiscales": multiscales}).to_string()).unwrap();
    }
}

/// Writes a one-chunk image group by wellread's own writer at `path` (ending in `.zarr`).
pub(crate) fn write_small(path: &Path, options: &WriteOptions) -> Vec<u8> {
    let shape = Shape::plane(20, 30);
    let pixels = pattern(shape, PixelType::U16, 5);
    let mut writer = create(path, "ome-zarr", options).unwrap_or_else(|e| panic!("{e}"));
    let metadata = ImageMetadata::named("small");
    writer.write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels }).unwrap();
    writer.finish().unwrap();
    pixels
}
