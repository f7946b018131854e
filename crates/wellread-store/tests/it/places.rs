//! Sets in a place of another kind than the file system: every format reads and writes them, and none knows of it.

use crate::memory_place::{below, lose};
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::place;
use wellread_store::{ImageView, OpenOptions, Store, WriteOptions, create, open, read_image};

const SHAPE: Shape = Shape([1, 1, 1, 40, 56]);
/// No order of file names: an index of names stands beside the images.
const NAMES: [&str; 3] = ["b", "a", "plate/c"];

/// Name of the set, its format, the variant, and the side of a shard.
const SETS: [(&str, &str, Option<&str>, Option<usize>); 11] = [
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

fn options(variant: Option<&str>, shard: Option<usize>) -> WriteOptions {
    WriteOptions {
        variant: variant.map(str::to_owned),
        chunk: shard.map(|_| [1, 1, 1, 16, 16]),
        shard: shard.map(|side| [1, 1, 1, side, side]),
        ..WriteOptions::default()
    }
}

fn write(path: &Path, format: &str, options: &WriteOptions) {
    let mut writer = create(path, format, options).unwrap_or_else(|e| panic!("{e}"));
    for (row, name) in NAMES.iter().enumerate() {
        let pixels: Vec<u8> = (0..SHAPE.pixels()).map(|i| (row * 91 + i * 7 % 241) as u8).collect();
        let metadata = ImageMetadata::named(*name);
        let view = ImageView { metadata: &metadata, shape: SHAPE, dtype: PixelType::U8, pixels: &pixels };
        writer.write(&view).unwrap_or_else(|e| panic!("{e}"));
    }
    writer.finish().unwrap_or_else(|e| panic!("{e}"));
}

/// Puts a local file, or all that is in a folder, at an address.
fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        place::write(to, &std::fs::read(from).unwrap()).unwrap();
        return;
    }
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

fn recognised(path: &Path) -> Box<dyn Store> {
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
fn assert_same(other: &dyn Store, local: &dyn Store) {
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

#[test]
fn every_format_reads_what_lies_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("memory://read").join(name));
        write(&local, format, &options(variant, shard));
        copy(&local, &other);
        let (local, other) = (recognised(&local), recognised(&other));
        assert_eq!(other.path(), Path::new("memory://read").join(name));
        assert_same(&*other, &*local);
    }
}

#[test]
fn every_format_writes_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new("memory://written");
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), root.join(name));
        let options = options(variant, shard);
        write(&local, format, &options);
        write(&other, format, &options);
        assert_same(&*recognised(&other), &*recognised(&local));
        let error = create(&other, format, &options).err().unwrap().to_string();
        assert!(error.contains("already exists"), "{error}");
        // What is not finished leaves nothing.
        let unfinished = root.join(format!("unfinished-{name}"));
        drop(create(&unfinished, format, &options).unwrap_or_else(|e| panic!("{e}")));
        let resume = WriteOptions { resume: Some("these".into()), ..options };
        assert!(create(&unfinished, format, &resume).is_err());
        assert!(below(&unfinished).is_empty());
    }
    let hidden = |file: &PathBuf| file.to_string_lossy().contains(".wellread-");
    assert!(!below(root).iter().any(hidden), "{:?}", below(root));
}

#[test]
fn a_range_that_cannot_be_read_is_an_error_with_address_and_row() {
    for (name, format, variant, shard) in SETS {
        let address = Path::new("memory://lost").join(name);
        write(&address, format, &options(variant, shard));
        let store = recognised(&address);
        store.row_info(1).unwrap();
        lose(&address);
        let error = read_image(&*store, 1).unwrap_err().to_string();
        assert!(error.starts_with("memory://lost/"), "{error}");
        assert!(error.contains(name) && error.contains("row 1:"), "{error}");
        assert!(error.contains("the range is lost"), "{error}");
    }
}

#[test]
fn what_is_not_there_and_schemes_that_nobody_registered_are_errors() {
    for (address, expected) in [
        ("memory://none/plate.parquet", "memory://none/plate.parquet: cannot open"),
        ("elsewhere://bucket/plate.parquet", "this build cannot read elsewhere:// addresses"),
    ] {
        let error = open(address, &OpenOptions::default()).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = create("elsewhere://bucket/a", "tiff", &WriteOptions::default()).err().unwrap().to_string();
    assert!(error.contains("this build cannot write elsewhere:// addresses"), "{error}");
}
