//! Entries in folders beside files with proper names: pipes, devices, names that are no text.
#![cfg(unix)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::parquet::ParquetStore;
use wellread_store::{ImageView, OpenOptions, Store, WriteOptions, create, open, read_image};

/// Writes one small image to `path`.
fn image(path: &Path, format: &str) {
    let metadata = ImageMetadata::named("a");
    let (shape, dtype) = (Shape::plane(4, 4), PixelType::U8);
    let mut writer = create(path, format, &WriteOptions::default()).unwrap();
    writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[7; 16] }).unwrap();
    writer.finish().unwrap();
}

fn pipe(path: &Path) {
    let _ = std::fs::remove_file(path);
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn open_at(path: &Path) -> Box<dyn Store> {
    open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// A pipe that nobody writes to would be waited for without end.
#[test]
fn pipes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |store: &dyn Store, row: usize| {
        let error = read_image(store, row).unwrap_err();
        assert_eq!(error.row_index(), Some(row), "{error}");
        assert!(error.to_string().contains("pipe"), "{error}");
    };
    for (format, ending) in [("tiff", "tiff"), ("image-folder", "png")] {
        let folder = dir.path().join(format);
        std::fs::create_dir(&folder).unwrap();
        image(&folder.join(format!("b.{ending}")), format);
        pipe(&folder.join(format!("a.{ending}")));
        // A table that might hold images.
        pipe(&folder.join("t.parquet"));
        let store = open_at(&folder);
        assert_eq!(store.len(), 2);
        refused(&*store, 0);
        read_image(&*store, 1).unwrap();
    }
    let zarr = dir.path().join("x.zarr");
    image(&zarr, "ome-zarr");
    let chunk = zarr.join("0/c/0/0/0/0/0");
    pipe(&chunk);
    refused(&*open_at(&zarr), 0);
    let set = dir.path().join("set");
    std::fs::create_dir(&set).unwrap();
    pipe(&zarr.join("0/zarr.json"));
    std::fs::rename(&zarr, set.join("x.zarr")).unwrap();
    refused(&*open_at(&set), 0);
    let parquet = dir.path().join("a.parquet");
    pipe(&parquet);
    let error = ParquetStore::open(&parquet, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("pipe"), "{error}");
}

/// Names in other encodings are still told apart.
#[test]
fn names_that_are_no_text() {
    let dir = tempfile::tempdir().unwrap();
    for (format, ending) in [("tiff", ".tiff"), ("image-folder", ".png"), ("ome-zarr", ".zarr")] {
        let folder = dir.path().join(format);
        std::fs::create_dir(&folder).unwrap();
        let plain = dir.path().join(format!("plain{ending}"));
        image(&plain, format);
        for byte in [b'\xff', b'\xfe'] {
            let name = [b"a", &[byte][..], ending.as_bytes()].concat();
            let target = folder.join(OsStr::from_bytes(&name));
            let copied = std::process::Command::new("cp").arg("-r").arg(&plain).arg(&target).status();
            if !copied.unwrap().success() {
                println!("skipped: this file system takes no such names");
                return;
            }
        }
        let store = open_at(&folder);
        assert_eq!([0, 1].map(|row| store.name(row).unwrap()), ["a\\xFE", "a\\xFF"], "{format}");
        (0..2).for_each(|row| drop(read_image(&*store, row).unwrap()));
    }
    let class = dir.path().join("classes").join(OsStr::from_bytes(b"c\xff"));
    std::fs::create_dir_all(&class).unwrap();
    image(&class.join("a.png"), "image-folder");
    let forced = OpenOptions { format: Some("image-folder".into()), ..OpenOptions::default() };
    let store = open(dir.path().join("classes"), &forced).unwrap();
    assert_eq!(store.name(0).unwrap(), "c\\xFF/a");
}

/// Links back to a folder above, to a folder beside and to themselves: each image is one row.
#[test]
fn links_to_folders_make_no_rows_twice() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    for (format, ending) in [("tiff", "tiff"), ("image-folder", "png"), ("ome-zarr", "zarr")] {
        let set = dir.path().join(format);
        let elsewhere = dir.path().join(format!("{format}-elsewhere"));
        std::fs::create_dir_all(set.join("class")).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        let in_class = if format == "ome-zarr" { "b" } else { "class/b" };
        for name in ["a", in_class] {
            image(&set.join(format!("{name}.{ending}")), format);
        }
        image(&elsewhere.join(format!("c.{ending}")), format);
        let before = names(&set);
        assert_eq!(before.len(), 2, "{format}");
        // Names that are listed before and after those of what lies there.
        for (target, link) in
            [(".", "again"), ("..", "class/up"), ("class", "before"), ("class", "x"), ("round", "round")]
        {
            symlink(target, set.join(link)).unwrap();
        }
        if format == "ome-zarr" {
            symlink("a.zarr", set.join("0.zarr")).unwrap();
            symlink(".", set.join("self.zarr")).unwrap();
            symlink(elsewhere.join("c.zarr"), set.join("w.zarr")).unwrap();
            symlink(elsewhere.join("c.zarr"), set.join("v.zarr")).unwrap();
        } else {
            symlink(&elsewhere, set.join("w")).unwrap();
            symlink(&elsewhere, set.join("v")).unwrap();
        }
        let mut expected = before;
        // The first of two links to one folder counts.
        expected.push(match format {
            "ome-zarr" => "v".to_owned(),
            _ => "v/c".to_owned(),
        });
        let store = open_at(&set);
        assert_eq!(names(&set), expected, "{format}");
        (0..store.len()).for_each(|row| drop(read_image(&*store, row).unwrap()));
    }
    // A link to a file is a file of its own.
    let tiff = dir.path().join("tiff");
    symlink("a.tiff", tiff.join("z.tiff")).unwrap();
    assert_eq!(open_at(&tiff).len(), 4);
}

/// Names of all rows, without what differs between formats.
fn names(set: &Path) -> Vec<String> {
    let store = open_at(set);
    let path = |row| store.name(row).unwrap();
    (0..store.len()).map(path).collect()
}
