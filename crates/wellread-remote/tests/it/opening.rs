//! The requests of opening a set in a bucket: their number, and which of them come at once. No clock tells.

use crate::gate;
use crate::pages;
use crate::server;
use crate::sets::copy;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{Dataset, Loader};
use wellread_store::{ImageView, Missing, OpenOptions, Store, WriteOptions, create, open, read_image};

/// Keys on a page of the server's listings.
const PAGE: usize = 5;

/// Small images: a file is less than what is asked for of its beginning.
pub(crate) const SMALL: Shape = Shape([1, 1, 1, 6, 8]);
/// Larger ones, of which more is to be asked for.
pub(crate) const LARGE: Shape = Shape([1, 1, 1, 300, 400]);

pub(crate) fn write(path: &Path, format: &str, shape: Shape, names: &[String], options: &WriteOptions) {
    let mut writer = create(path, format, options).unwrap_or_else(|e| panic!("{e}"));
    for (row, name) in names.iter().enumerate() {
        // Numbers that hardly compress.
        let pixels: Vec<u8> =
            (0..shape.pixels()).map(|i| ((i + row).wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let metadata = ImageMetadata::named(name.clone());
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels })
            .unwrap();
    }
    writer.finish().unwrap_or_else(|e| panic!("{e}"));
}

/// The same images in a folder and in a bucket, where the set is called `name`.
pub(crate) fn copies(
    folder: &Path,
    [bucket, name]: [&str; 2],
    format: &str,
    (shape, names): (Shape, &[String]),
    options: &WriteOptions,
) -> [PathBuf; 2] {
    server::url();
    let (local, other) = (folder.join(name), PathBuf::from(format!("s3://{bucket}/{name}")));
    write(&local, format, shape, names, options);
    copy(&local, &other);
    [local, other]
}

pub(crate) fn opened(path: &Path) -> Box<dyn Store> {
    open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Requests for a bucket, by what they are: HEAD, pages of listings, GET.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    heads: usize,
    pages: usize,
    gets: usize,
}

impl Asked {
    /// Those that came to it while `work` ran.
    fn by<T>(bucket: &str, work: impl FnOnce() -> T) -> (T, Self) {
        let before = server::all_requests(bucket).len();
        let done = work();
        let asked = server::all_requests(bucket).split_off(before);
        let of = |is: &dyn Fn(&str) -> bool| asked.iter().filter(|one| is(one)).count();
        let listing = format!("GET {bucket}");
        let gets = of(&|one| one.starts_with("GET ") && one != listing);
        (done, Self { heads: of(&|one| one.starts_with("HEAD ")), pages: of(&|one| one == listing), gets })
    }
}

fn assert_alike(other: &dyn Store, local: &dyn Store) {
    assert_eq!(other.len(), local.len());
    for row in 0..local.len() {
        assert_eq!(other.name(row).unwrap(), local.name(row).unwrap());
        assert_eq!(other.metadata(row).unwrap(), local.metadata(row).unwrap());
        assert_eq!(read_image(other, row).unwrap(), read_image(local, row).unwrap(), "row {row}");
    }
}

/// A loader over all of a set, whose images are one batch.
fn one_batch(path: &Path) -> Loader {
    let dataset = Dataset::from_store(opened(path));
    Loader::builder(&dataset).batch_size(dataset.len()).workers(1).build().unwrap()
}

pub(crate) fn first_batch(loader: &Loader) -> Vec<f32> {
    loader.iter().next().unwrap().unwrap().pixels().to_vec()
}

#[test]
fn a_folder_of_tiff_files_is_listed_once_and_some_headers_are_asked_for_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..300).map(|i| format!("image-{i:03}")).collect();
    let [local, other] =
        copies(dir.path(), ["open-tiff", "set"], "tiff", (SMALL, &names), &WriteOptions::default());
    gate::hold("open-tiff", 32);
    let (store, asked) = Asked::by("open-tiff", || opened(&other));
    assert_eq!(asked, Asked { heads: 1, pages: names.len() / PAGE, gets: 32 });
    assert!(gate::most_at_once("open-tiff") >= 32);
    // The others when they are read.
    let rows = [1, 150, 298];
    let (images, asked) = Asked::by("open-tiff", || rows.map(|row| read_image(&*store, row).unwrap()));
    assert!(
        asked.gets >= 1 && asked.gets <= 2 * rows.len() && (asked.heads, asked.pages) == (0, 0),
        "{asked:?}"
    );
    let local = opened(&local);
    assert_eq!(images, rows.map(|row| read_image(&*local, row).unwrap()));
}

#[test]
fn a_file_that_opening_did_not_look_into_and_is_another_kind_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..300).map(|i| format!("image-{i:03}")).collect();
    let [local, other] =
        copies(dir.path(), ["open-odd", "set"], "tiff", (SMALL, &names), &WriteOptions::default());
    let two = dir.path().join("two.ome.tiff");
    write(&two, "tiff", SMALL, &names[..2], &WriteOptions::default());
    let files = server::keys("open-odd/set/");
    assert_eq!(files.len(), names.len());
    server::put(&files[1], &std::fs::read(&two).unwrap());
    let store = opened(&other);
    assert_eq!(store.len(), names.len());
    let error = store.row_info(1).unwrap_err().to_string();
    let said = ["image-001", "row 1", "holds 2 images, where one was expected", "open this file by itself"];
    assert!(said.iter().all(|words| error.contains(words)), "{error}");
    assert_eq!(read_image(&*store, 2).unwrap(), read_image(&*opened(&local), 2).unwrap());
}

#[test]
fn few_files_are_all_looked_into_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..60).map(|i| format!("image-{i:02}")).collect();
    let [_, other] =
        copies(dir.path(), ["open-few", "set"], "tiff", (SMALL, &names), &WriteOptions::default());
    gate::hold("open-few", names.len());
    let (_, asked) = Asked::by("open-few", || opened(&other));
    assert_eq!(asked, Asked { heads: 1, pages: names.len() / PAGE, gets: names.len() });
    assert!(gate::most_at_once("open-few") >= names.len());
}

#[test]
fn class_folders_are_listed_once_each() {
    let dir = tempfile::tempdir().unwrap();
    let classes = ["a", "b", "c", "d"];
    let names: Vec<String> =
        classes.iter().flat_map(|class| (0..3).map(move |i| format!("{class}/{i}"))).collect();
    let [local, other] = copies(
        dir.path(),
        ["open-classes", "set"],
        "image-folder",
        (SMALL, &names),
        &WriteOptions::default(),
    );
    let (store, asked) = Asked::by("open-classes", || opened(&other));
    // The names of classes may lie beside the set, and the first picture is looked into.
    assert_eq!(asked, Asked { heads: 1, pages: 1 + classes.len(), gets: 2 });
    assert_eq!(server::requests("open-classes/Labels.json").len(), 1);
    assert_alike(&*store, &*opened(&local));
}

#[test]
fn a_folder_of_ome_zarr_is_told_by_its_first_image_whose_metadata_come_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..6).map(|i| format!("image-{i}")).collect();
    let [local, other] =
        copies(dir.path(), ["open-zarr", "set"], "ome-zarr", (SMALL, &names), &WriteOptions::default());
    gate::hold("open-zarr", 5);
    let (store, asked) = Asked::by("open-zarr", || opened(&other));
    // The folder, and all metadata of its first image, whose names are guessed: whether it is of Zarr v2 or v3, and its array.
    assert_eq!(asked, Asked { heads: 1, pages: names.len().div_ceil(PAGE), gets: 5 });
    assert!(gate::most_at_once("open-zarr") >= 5);
    let (info, asked) = Asked::by("open-zarr", || store.row_info(0).unwrap());
    assert_eq!((info.shape, asked), (SMALL, Asked { heads: 0, pages: 0, gets: 0 }));
    // The group, the array and the chunk of each image, once.
    let loader = one_batch(&other);
    let (batch, asked) = Asked::by("open-zarr", || first_batch(&loader));
    assert!(asked.gets >= names.len() && asked.gets <= 3 * names.len(), "{asked:?}");
    assert_eq!((asked.heads, asked.pages, batch), (0, 0, first_batch(&one_batch(&local))));
    assert_alike(&*store, &*opened(&local));
}

#[test]
fn consolidated_metadata_of_a_series_are_one_request() {
    let numbers: ArrayRef = Arc::new(Int64Array::from((0..4).collect::<Vec<i64>>()));
    let columns = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
    let names: Vec<String> = (0..4).map(|i| format!("image-{i}")).collect();
    for (variant, all, files) in [
        ("0.5", "zarr.json", &["zarr.json", "0/zarr.json"][..]),
        ("0.4", ".zmetadata", &[".zgroup", ".zattrs", "0/.zarray"][..]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let bucket = format!("open-series-{}", variant.replace('.', "-"));
        let options = WriteOptions {
            variant: Some(variant.into()),
            features: Some(columns.clone()),
            ..WriteOptions::default()
        };
        let [local, other] =
            copies(dir.path(), [&bucket, "cells.zarr"], "ome-zarr", (SMALL, &names), &options);
        let key = |file: &str| format!("{bucket}/cells.zarr/{file}");
        let put = server::requests(&key(all)).len();
        let store = opened(&other);
        assert_eq!(server::requests(&key(all)).len() - put, 1, "{variant}");
        // The chunks of the first batch are left, which come at once.
        let loader = one_batch(&other);
        gate::hold(&bucket, names.len());
        let (batch, asked) = Asked::by(&bucket, || first_batch(&loader));
        assert_eq!(asked, Asked { heads: 0, pages: 0, gets: names.len() }, "{variant}");
        assert!(gate::most_at_once(&bucket) >= names.len());
        assert_eq!(batch, first_batch(&one_batch(&local)));
        assert_alike(&*store, &*opened(&local));
        let of_images =
            (0..names.len()).flat_map(|row| files.iter().map(move |file| format!("{row}/{file}")));
        for file in of_images {
            let asked = server::requests(&key(&file));
            assert!(asked.iter().all(|one| one == "PUT"), "{file}: {asked:?}");
        }
        // Metadata that it does not name are read for themselves.
        let consolidated = String::from_utf8(server::get(&key(all)).unwrap()).unwrap();
        let without = consolidated.replace("\"2/", "\"9/").replace("\"2\":{", "\"9\":{");
        server::put(&key(all), without.as_bytes());
        assert_alike(&*opened(&other), &*opened(&local));
    }
}

#[test]
fn images_in_a_bucket_that_a_table_here_names_are_asked_for_ahead() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..12).map(|i| format!("image-{i:02}")).collect();
    let plain = WriteOptions { variant: Some("plain".into()), ..WriteOptions::default() };
    let [local, _] = copies(dir.path(), ["open-named", "set"], "tiff", (LARGE, &names), &plain);
    let mut files: Vec<String> = server::keys("open-named/set/");
    files.sort();
    let mut table = "FileName_OrigDNA,PathName_OrigDNA,Metadata_Well\n".to_owned();
    for (row, key) in files.iter().enumerate() {
        let file = key.rsplit('/').next().unwrap();
        table += &format!("{file},s3://open-named/set,A{:02}\n", row + 1);
    }
    let path = dir.path().join("load_data.csv");
    std::fs::write(&path, table).unwrap();
    let dataset = Dataset::from_store(opened(&path));
    assert!(dataset.is_remote() && !Dataset::from_store(opened(&local)).is_remote());
    let loader = Loader::builder(&dataset).batch_size(3).workers(1).build().unwrap();
    let here =
        Loader::builder(&Dataset::from_store(opened(&local))).batch_size(3).workers(1).build().unwrap();
    let epoch = |loader: &Loader| -> Vec<Vec<f32>> {
        loader.iter().map(|batch| batch.unwrap().pixels().to_vec()).collect()
    };
    // All images at once, not a batch.
    gate::hold("open-named", names.len());
    assert_eq!(epoch(&loader), epoch(&here));
    assert!(gate::most_at_once("open-named") >= names.len());
}

/// A well that cannot be listed may be there: its pixels are no zeros, and its images are not left out.
#[test]
fn what_a_plate_names_in_a_well_that_cannot_be_listed_is_read() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    let plate = dir.path().join("plate.zarr");
    let well = plate.join("A/1");
    std::fs::create_dir_all(&well).unwrap();
    let options = WriteOptions { variant: Some("0.5".into()), ..WriteOptions::default() };
    for field in ["0", "1"] {
        let image = dir.path().join(format!("{field}.zarr"));
        write(&image, "ome-zarr", SMALL, &[field.to_owned()], &options);
        std::fs::rename(image, well.join(field)).unwrap();
    }
    let group = |ome: &str| {
        format!(
            r#"{{"zarr_format": 3, "node_type": "group", "attributes": {{"ome": {{"version": "0.5", {ome}}}}}}}"#
        )
    };
    let wells = r#""plate": {"rows": [{"name": "A"}], "columns": [{"name": "1"}], "wells": [{"path": "A/1", "rowIndex": 0, "columnIndex": 0}]}"#;
    std::fs::write(plate.join("zarr.json"), group(wells)).unwrap();
    let fields = r#""well": {"images": [{"path": "0"}, {"path": "1"}]}"#;
    std::fs::write(well.join("zarr.json"), group(fields)).unwrap();
    let other = PathBuf::from("s3://open-unlisted/plate.zarr");
    copy(&plate, &other);
    pages::refuse_to_list("open-unlisted/plate.zarr/A/1");
    let with = |path: &Path, missing| open(path, &OpenOptions { missing, ..OpenOptions::default() });
    for missing in [Missing::Zero, Missing::Skip, Missing::Error] {
        assert_alike(&*with(&other, missing).unwrap(), &*with(&plate, missing).unwrap());
    }
    server::put("open-unlisted/plate.zarr/A/1/zarr.json", b"{");
    let error = with(&other, Missing::Skip).err().unwrap().to_string();
    assert!(error.contains("A/1/zarr.json") && error.contains("malformed"), "{error}");
}

#[test]
fn addresses_of_other_spellings_are_told() {
    server::url();
    for (given, shown, hint) in [
        ("s3:/plates/a.parquet", "s3://plates/a.parquet: ", "give it as text: s3://plates/a.parquet"),
        ("https:/me:word@host/a.tif?sig=1", "https://host/a.tif: ", "give it as text: https://host/a.tif"),
        ("gcs://plates/a.parquet", "gcs://plates/a.parquet: ", "write gs://plates/a.parquet"),
        ("azure://plates/a.parquet", "azure://plates/a.parquet: ", "write az://plates/a.parquet"),
        ("s3a://plates/a.parquet", "s3a://plates/a.parquet: ", "write s3://plates/a.parquet"),
    ] {
        let opened = open(Path::new(given), &OpenOptions::default()).err().unwrap().to_string();
        let written = create(given, "parquet", &WriteOptions::default()).err().unwrap().to_string();
        for error in [opened, written] {
            assert!(error.starts_with(shown) && error.contains(hint) && !error.contains("word"), "{error}");
        }
    }
}
