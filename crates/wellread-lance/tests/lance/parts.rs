//! Sets that several processes write: their parts become one dataset.

use super::{Image, check, image, open, open_table, write};
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use wellread_store::convert::ConvertOptions;
use wellread_store::parted::{PartedSet, holds, write_part};
use wellread_store::staged::Existing;
use wellread_store::subset::Subset;
use wellread_store::{Compression, Store, WriteOptions};

/// Lance's own library takes no folder of tables for a set: parts that several processes write become one table.
#[test]
fn parts_become_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let (images, source) = whole(dir.path(), 7);
    let target = dir.path().join("set.lance");
    let set = PartedSet::begin(&target, "lance", Existing::Kept, None).unwrap();
    assert!(set.joins());
    let [three, four] = [0..3, 3..7].map(|rows| part(&set, &source, rows, Compression::Default));
    let written = [data_files(&set.part(&three)), data_files(&set.part(&four))].concat();
    // In the order that is asked for, not by name.
    assert_eq!(set.commit(&[four, three], &WriteOptions::default()).unwrap(), 7);
    let turned: Vec<Image> = images[3..].iter().chain(&images[..3]).cloned().collect();
    check(&*open(&target).unwrap(), &turned);
    assert!(!target.join("wellread-parts.json").exists());
    // No pixel was written again: beside the files of the parts there is one with the numbers of the later rows.
    let files = data_files(&target);
    assert!(written.iter().all(|name| files.contains(name)) && files.len() == written.len() + 1, "{files:?}");
    assert!(
        open(&target).unwrap().hints().feature_names().is_empty(),
        "row_id counts rows, and is no column of somebody"
    );
    // Lance may put a hint beside the one version.
    let versions = names_in(&target.join("_versions"));
    let is_version = |name: &&OsString| name.to_string_lossy().ends_with(".manifest");
    assert_eq!(versions.iter().filter(is_version).count(), 1, "{versions:?}");
    // A LanceDB folder has the dataset in it.
    let database = dir.path().join("set.lancedb");
    let set = PartedSet::begin(&database, "lance", Existing::Kept, None).unwrap();
    let all = part(&set, &source, 0..7, Compression::Default);
    assert_eq!(set.commit(&[all], &WriteOptions::default()).unwrap(), 7);
    check(&*open_table(&database, Some("images")).unwrap(), &images);
}

/// Images, and the set of them in a folder.
fn whole(folder: &Path, count: usize) -> (Vec<Image>, Arc<dyn Store>) {
    let images: Vec<Image> = (0..count).map(|seed| image(Shape::plane(9, 8), PixelType::U16, seed)).collect();
    let path = folder.join("whole.lance");
    write(&path, &images, &WriteOptions::default()).unwrap();
    (images, open(&path).unwrap().into())
}

/// Rows of a set as a part; its name.
fn part(set: &PartedSet, source: &Arc<dyn Store>, rows: Range<usize>, compression: Compression) -> String {
    let name = set.part_name(rows.start);
    let part = Subset::of(Arc::clone(source), rows.collect());
    let options = WriteOptions { compression, ..WriteOptions::default() };
    write_part(&part, &set.part(&name), "lance", &options, ConvertOptions::default(), true, &mut |_| ())
        .unwrap();
    name
}

/// Names of the data files of a dataset.
fn data_files(folder: &Path) -> Vec<OsString> {
    names_in(&folder.join("data"))
}

fn names_in(folder: &Path) -> Vec<OsString> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Files that an interrupted commit has moved go back to the parts, which are whole for the next run.
#[test]
fn a_commit_that_was_interrupted_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let (images, source) = whole(dir.path(), 5);
    let target = dir.path().join("set.lance");
    let begin = || PartedSet::begin(&target, "lance", Existing::Kept, Some("rows 0 to 5")).unwrap();
    let set = begin();
    let names = [0..2, 2..5].map(|rows| part(&set, &source, rows, Compression::Default));
    let paths = names.each_ref().map(|name| set.part(name));
    let joined = dir.path().join(".wellread-resume-set.lance/joined/set.lance");
    let how = wellread_lance::FORMAT.join_parts.unwrap();
    assert!((how.join)(&paths, &joined).unwrap());
    assert!(paths.iter().all(|path| data_files(path).is_empty()));
    drop(set);
    let set = begin();
    assert!(!joined.exists());
    for (path, rows) in paths.iter().zip([0..2, 2..5]) {
        let wanted = Subset::of(Arc::clone(&source), rows.collect());
        assert!(holds(&wanted, path, "lance", &WriteOptions::default()).unwrap());
    }
    assert_eq!(set.commit(&names, &WriteOptions::default()).unwrap(), 5);
    check(&*open(&target).unwrap(), &images);
}

/// One table has one encoding: parts of two are written again.
#[test]
fn parts_with_unlike_columns_are_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let (images, source) = whole(dir.path(), 4);
    let target = dir.path().join("set.lance");
    let set = PartedSet::begin(&target, "lance", Existing::Kept, None).unwrap();
    let names = [(0..2, Compression::Default), (2..4, Compression::Zstd(3))]
        .map(|(rows, compression)| part(&set, &source, rows, compression));
    let written = names.each_ref().map(|name| data_files(&set.part(name))).concat();
    assert_eq!(set.commit(&names, &WriteOptions::default()).unwrap(), 4);
    check(&*open(&target).unwrap(), &images);
    assert!(data_files(&target).iter().all(|name| !written.contains(name)));
}
