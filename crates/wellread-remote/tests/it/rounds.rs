//! From an address to the first batch in four round trips at most, whatever the format and the number of images. Class folders whose
//! names have an index take five.
//!
//! ```text
//!  expect_rounds(2, 32, 15, 1): the server answers a round when all of its requests are there
//!     └ a program that waits for an answer in between does not get through; one that asks for more is counted
//! ```

use crate::gate;
use crate::opening::{LARGE, SMALL, copies, first_batch, opened, write};
use crate::pages;
use crate::server;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::Shape;
use wellread_loader::{Dataset, Loader, LoaderBuilder};
use wellread_store::{Store, WriteOptions};

/// Rows of the first batch.
const BATCH: usize = 16;
/// Images whose beginning and end are too far from each other to be fetched together.
const LONG: Shape = Shape([1, 1, 1, 600, 600]);

pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("image-{i:03}")).collect()
}

/// The same images in a folder and in a bucket whose listings have pages as long as those of clouds.
fn set(
    folder: &Path,
    [bucket, name]: [&str; 2],
    format: &str,
    (shape, images): (Shape, usize),
    options: &WriteOptions,
) -> [PathBuf; 2] {
    let paths = copies(folder, [bucket, name], format, (shape, &names(images)), options);
    pages::lengthen_pages(bucket);
    paths
}

/// The only batch of a loader of these rows.
fn batch_of(
    store: Box<dyn Store>,
    rows: &[usize],
    with: impl Fn(LoaderBuilder) -> LoaderBuilder,
) -> Vec<f32> {
    let dataset = Dataset::from_store(store);
    let builder = Loader::builder(&dataset).rows(rows).batch_size(BATCH).workers(1);
    first_batch(&with(builder).build().unwrap())
}

/// Images as they are.
fn whole(loader: LoaderBuilder) -> LoaderBuilder {
    loader
}

/// Opens a set in a bucket and takes the batch of the rows that `choose` tells, with what `with` adds. Checks that opening and the batch
/// take these rounds of requests, and no other request.
#[track_caller]
fn check(
    bucket: &str,
    paths: &[PathBuf; 2],
    choose: impl Fn(&dyn Store) -> Vec<usize>,
    with: impl Fn(LoaderBuilder) -> LoaderBuilder,
    [opening, batch]: [&[usize]; 2],
) {
    assert!(opening.len() + batch.len() <= 4, "{opening:?} {batch:?}");
    check_rounds(bucket, paths, choose, with, [opening, batch]);
}

/// As [`check`], of any number of rounds.
#[track_caller]
fn check_rounds(
    bucket: &str,
    [local, other]: &[PathBuf; 2],
    choose: impl Fn(&dyn Store) -> Vec<usize>,
    with: impl Fn(LoaderBuilder) -> LoaderBuilder,
    [opening, batch]: [&[usize]; 2],
) {
    let before = server::all_requests(bucket).len();
    gate::expect_rounds(bucket, opening);
    let store = opened(other);
    let asked = server::all_requests(bucket).split_off(before);
    assert_eq!((asked.len(), gate::rounds_left(bucket)), (opening.iter().sum::<usize>(), 0), "{asked:?}");
    let rows = choose(&*store);
    assert_eq!(rows.len(), BATCH);
    gate::expect_rounds(bucket, batch);
    let pixels = batch_of(store, &rows, &with);
    let asked = server::all_requests(bucket).split_off(before + asked.len());
    assert_eq!((asked.len(), gate::rounds_left(bucket)), (batch.iter().sum::<usize>(), 0), "{asked:?}");
    assert!(pixels == batch_of(opened(local), &rows, &with), "{bucket}");
}

fn first(_: &dyn Store) -> Vec<usize> {
    (0..BATCH).collect()
}

/// The first row, which is looked into when a folder is opened, and others that are not.
fn not_looked_into(store: &dyn Store) -> Vec<usize> {
    let is_new = |row: &usize| {
        let file = store.row_hints(*row).unwrap().file().unwrap();
        let key = file.to_str().unwrap().trim_start_matches("s3://").to_owned();
        !server::requests(&key).iter().any(|request| request.starts_with("GET"))
    };
    std::iter::once(0).chain((0..store.len()).filter(is_new)).take(BATCH).collect()
}

#[test]
fn a_folder_of_tiff_files() {
    let dir = tempfile::tempdir().unwrap();
    let plain = WriteOptions::default();
    let paths = set(dir.path(), ["rounds-tiff", "set"], "tiff", (LARGE, 100), &plain);
    // Opening asks for the listing, then for some files, whose beginnings and ends are near enough to come together. The batch asks for
    // the files that were not looked into, then for the pixels of the one that was.
    check("rounds-tiff", &paths, not_looked_into, whole, [&[2, 32], &[15, 1]]);
    // The names of all are known after one round trip more.
    let (store, local) = (opened(&paths[1]), opened(&paths[0]));
    gate::expect_rounds("rounds-tiff", &[100 - 32]);
    for row in 0..store.len() {
        assert_eq!(store.name(row).unwrap(), local.name(row).unwrap());
    }
    assert_eq!(gate::rounds_left("rounds-tiff"), 0);
}

#[test]
fn a_folder_of_long_tiff_files() {
    let dir = tempfile::tempdir().unwrap();
    let plain = WriteOptions::default();
    let paths = set(dir.path(), ["rounds-strips", "set"], "tiff", (LONG, 70), &plain);
    // The beginning and the end of each file, then a strip.
    let crop = |loader: LoaderBuilder| loader.crop(64, 48);
    check("rounds-strips", &paths, not_looked_into, crop, [&[2, 64], &[30, 16]]);
}

#[test]
fn a_long_file_in_a_folder_is_looked_into() {
    let dir = tempfile::tempdir().unwrap();
    let [local, other] =
        set(dir.path(), ["rounds-long", "set"], "tiff", (SMALL, 100), &WriteOptions::default());
    let two = dir.path().join("two.ome.tiff");
    write(&two, "tiff", SMALL, &names(2), &WriteOptions::default());
    let files = server::keys("rounds-long/set/");
    let last = Path::new(files[50].as_str()).file_name().unwrap().to_owned();
    let bytes = std::fs::read(two).unwrap();
    server::put(&files[50], &bytes);
    std::fs::write(local.join(last), &bytes).unwrap();
    let (store, local) = (opened(&other), opened(&local));
    assert_eq!((store.len(), local.len()), (101, 101));
    for row in 0..store.len() {
        assert_eq!(store.name(row).unwrap(), local.name(row).unwrap());
    }
}

#[test]
fn a_folder_of_ome_zarr_without_consolidated_metadata() {
    // Zarr v3 has a file of metadata for each group and array. Zarr v2 has three, which the first image tells, and the reader looks for
    // that of v3 as well.
    for (variant, metadata) in [("0.5", 2), ("0.4", 4)] {
        let dir = tempfile::tempdir().unwrap();
        let bucket = format!("rounds-zarr-{}", variant.replace('.', "-"));
        let options = WriteOptions { variant: Some(variant.into()), ..WriteOptions::default() };
        let paths = set(dir.path(), [&bucket, "set"], "ome-zarr", (SMALL, 50), &options);
        let heads = (BATCH - 1) * metadata;
        check(&bucket, &paths, first, whole, [&[2, 5], &[heads, BATCH]]);
    }
}

#[test]
fn a_series_of_ome_zarr_with_consolidated_metadata() {
    let numbers: ArrayRef = Arc::new(Int64Array::from((0..50).collect::<Vec<i64>>()));
    let columns = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
    for variant in ["0.5", "0.4"] {
        let dir = tempfile::tempdir().unwrap();
        let bucket = format!("rounds-series-{}", variant.replace('.', "-"));
        let options = WriteOptions {
            variant: Some(variant.into()),
            features: Some(columns.clone()),
            ..WriteOptions::default()
        };
        let paths = set(dir.path(), [&bucket, "cells.zarr"], "ome-zarr", (SMALL, 50), &options);
        // The metadata of all, the names and the columns come at once.
        check(&bucket, &paths, first, whole, [&[2, 3], &[BATCH]]);
    }
}

#[test]
fn a_folder_of_pictures_and_class_folders() {
    let plain = WriteOptions::default();
    let dir = tempfile::tempdir().unwrap();
    let paths = set(dir.path(), ["rounds-png", "set"], "image-folder", (LARGE, 50), &plain);
    // The header of the first, and names of classes beside the folder.
    check("rounds-png", &paths, first, whole, [&[2, 2], &[BATCH]]);
    let dir = tempfile::tempdir().unwrap();
    let classes: Vec<String> = (0..50).map(|i| format!("{}/{i:02}", ["a", "b", "c"][i % 3])).collect();
    let bucket = ["rounds-classes", "set"];
    let paths = copies(dir.path(), bucket, "image-folder", (LARGE, &classes), &plain);
    pages::lengthen_pages("rounds-classes");
    // The listings of the classes, then the order of all names, which tells the first image: a round more than other sets take.
    check_rounds("rounds-classes", &paths, first, whole, [&[2, 3, 1, 2], &[BATCH]]);
}

#[test]
fn tables_of_a_dataset_are_opened_together() {
    let dir = tempfile::tempdir().unwrap();
    let name = ["rounds-dataset", "images.ome-arrow-dataset"];
    let [local, other] = set(dir.path(), name, "ome-arrow-dataset", (LARGE, 48), &WriteOptions::default());
    // The listing, then the small tables and both ends of the large one.
    gate::expect_rounds("rounds-dataset", &[2, 4]);
    let store = opened(&other);
    assert_eq!(gate::rounds_left("rounds-dataset"), 0);
    let rows: Vec<usize> = (0..BATCH).collect();
    assert!(batch_of(store, &rows, whole) == batch_of(opened(&local), &rows, whole));
}

#[test]
fn a_table() {
    let dir = tempfile::tempdir().unwrap();
    let name = ["rounds-parquet", "images.parquet"];
    let paths = set(dir.path(), name, "parquet", (LARGE, 48), &WriteOptions::default());
    // Near enough to each other to be fetched together.
    let every_third = |_: &dyn Store| (0..BATCH).map(|i| 3 * i).collect::<Vec<usize>>();
    // Both ends of the file come with what it is.
    check("rounds-parquet", &paths, every_third, whole, [&[2], &[1]]);
}
