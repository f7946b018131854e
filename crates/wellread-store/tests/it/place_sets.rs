//! Sets of images in every built-in format, and the conditions for two of them to be the same. It is for tests of places,
//! also those of `wellread-remote`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{
    ImageView, OpenOptions, Store, StoreWriter, WriteOptions, create, open, place, read_image,
};

const SHAPE: Shape = Shape([1, 1, 1, 40, 56]);
/// No order of file names: an index of names stands beside the images.
pub(crate) const NAMES: [&str; 3] = ["b", "a", "plate/c"];

/// Name of the set, its format, the variant, and the side of a shard.
pub(crate) const SETS: [(&str, &str, Option<&str>, Option<usize>); 11] = [
    ("tiff", "tiff", None, None),
    ("tiff-plain", "tiff", Some("plain"), None),
    ("all.ome.tiff", "tiff", None, None),
    ("all.tiff", "tiff", Some("plain"), None),
    ("zarr", "ome-zarr", None, None),
    ("zarr-0.4", "ome-zarr", Some("0.4"), None),
    ("zarr-shards", "ome-zarr", None, Some(64)),
    ("png", "image-folder", None, None),
    ("table.parquet", "parquet", None, None),
    ("default.parquet", "parquet-default", None, None),
    ("dataset", "ome-arrow-dataset", None, None),
];

pub(crate) fn options(variant: Option<&str>, shard: Option<usize>) -> WriteOptions {
    WriteOptions {
        variant: variant.map(str::to_owned),
        chunk: shard.map(|_| [1, 1, 1, 16, 16]),
        shard: shard.map(|side| [1, 1, 1, side, side]),
        ..WriteOptions::default()
    }
}

pub(crate) fn write(path: &Path, format: &str, options: &WriteOptions) {
    let mut writer = create(path, format, options).unwrap_or_else(|e| panic!("{e}"));
    write_rows(&mut *writer, 0..NAMES.len());
    writer.finish().unwrap_or_else(|e| panic!("{e}"));
}

/// Writes some rows of the set.
pub(crate) fn write_rows(writer: &mut dyn StoreWriter, rows: Range<usize>) {
    for row in rows {
        let pixels: Vec<u8> = (0..SHAPE.pixels()).map(|i| (row * 91 + i * 7 % 241) as u8).collect();
        let metadata = ImageMetadata::named(NAMES[row]);
        let view = ImageView { metadata: &metadata, shape: SHAPE, dtype: PixelType::U8, pixels: &pixels };
        writer.write(&view).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Puts a local file, or all that is in a folder, at an address.
pub(crate) fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        place::write(to, &std::fs::read(from).unwrap()).unwrap();
        return;
    }
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

pub(crate) fn recognised(path: &Path) -> Box<dyn Store> {
    open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn names_below(store: &dyn Store) -> Vec<PathBuf> {
    let files = store.files().unwrap();
    let mut names: Vec<PathBuf> =
        files.iter().map(|file| file.strip_prefix(store.path()).unwrap().to_owned()).collect();
    names.sort();
    names
}

#[track_caller]
pub(crate) fn assert_same(other: &dyn Store, local: &dyn Store) {
    assert_eq!((other.format(), other.len()), (local.format(), NAMES.len()));
    assert_eq!(other.has_checksums(), local.has_checksums());
    assert_eq!(names_below(other), names_below(local));
    assert_eq!(other.bytes_on_disk().unwrap(), local.bytes_on_disk().unwrap());
    for (row, name) in NAMES.iter().enumerate() {
        assert_eq!(other.name(row).unwrap(), *name, "{}", other.format());
        assert_eq!(other.metadata(row).unwrap(), local.metadata(row).unwrap());
        assert_eq!(read_image(other, row).unwrap(), read_image(local, row).unwrap(), "{}", other.format());
    }
}
