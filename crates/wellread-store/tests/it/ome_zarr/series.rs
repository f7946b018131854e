//! Several images in one target that ends in `.zarr`, with their names and columns.

use super::open_at;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray};
use std::path::Path;
use std::sync::Arc;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{ImageView, OpenOptions, WriteOptions, create, features, read_image};

const NAMES: [&str; 3] = ["b/cell-1", "a/cell-7", "b/cell-1"];

fn columns() -> RecordBatch {
    let wells: ArrayRef = Arc::new(StringArray::from(vec![Some("A01"), None, Some("B01")]));
    let areas: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 2.0, 3.0]));
    RecordBatch::try_from_iter_with_nullable([("Metadata_Well", wells, true), ("area", areas, true)]).unwrap()
}

fn write(path: &Path, variant: &str, jobs: usize, images: usize) -> wellread_store::Result<()> {
    let (variant, features) = (Some(variant.to_owned()), Some(columns()));
    let options = WriteOptions { variant, jobs, features, overwrite: true, ..WriteOptions::default() };
    let mut writer = create(path, "ome-zarr", &options)?;
    for (row, name) in NAMES.iter().enumerate().take(images) {
        let metadata = ImageMetadata::named(*name);
        let pixels = [row as u8; 4];
        let view = ImageView {
            metadata: &metadata,
            shape: Shape::plane(2, 2),
            dtype: PixelType::U8,
            pixels: &pixels,
        };
        writer.write(&view)?;
    }
    writer.finish()
}

#[test]
fn images_have_their_names_and_columns() {
    for (variant, jobs) in [("0.4", 1), ("0.5", 2)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells.zarr");
        write(&path, variant, jobs, 3).unwrap();
        // It is known as wellread's own, and replaced.
        write(&path, variant, jobs, 3).unwrap();
        let store = open_at(&path);
        assert_eq!((store.len(), store.format()), (3, "ome-zarr"));
        for (row, name) in NAMES.iter().enumerate() {
            assert_eq!(store.name(row).unwrap(), *name);
            assert_eq!(store.metadata(row).unwrap().name, *name);
            assert_eq!(read_image(&*store, row).unwrap().1, [row as u8; 4]);
        }
        assert_eq!(store.hints().feature_names(), ["Metadata_Well", "area"]);
        let read = features::all(&*store).unwrap().unwrap();
        assert_eq!(read.columns(), columns().columns());
        // In the order that is asked for.
        let asked = ["area", "Metadata_Well"].map(str::to_owned);
        let two = store.hints().features(&asked).unwrap().unwrap();
        assert_eq!(two.schema().field(0).name(), "area");
        assert_eq!(two.column(0).as_primitive::<Float64Type>().values(), &[0.5, 2.0, 3.0]);
        // Others find the images by the layout of bioformats2raw, and a group that goes takes its row along.
        let files =
            if variant == "0.4" { [".zattrs", "OME/.zattrs"] } else { ["zarr.json", "OME/zarr.json"] };
        let text = |file: &str| std::fs::read_to_string(path.join(file)).unwrap();
        assert!(text(files[0]).contains("\"bioformats2raw.layout\":3"), "{}", text(files[0]));
        // One file has the metadata of all.
        let parsed = |file: &str| serde_json::from_str::<serde_json::Value>(&text(file)).unwrap();
        let (of_image, of_series) = if variant == "0.4" {
            let all = parsed(".zmetadata")["metadata"].take();
            (all["1/0/.zarray"].clone(), all["OME/.zattrs"].clone())
        } else {
            let all = parsed("zarr.json")["consolidated_metadata"]["metadata"].take();
            (all["1/0"].clone(), all["OME"].clone())
        };
        let array = if variant == "0.4" { "1/0/.zarray" } else { "1/0/zarr.json" };
        assert_eq!((of_image, of_series), (parsed(array), parsed(files[1])));
        let series = text(files[1]);
        std::fs::write(path.join(files[1]), series.replace("[\"0\",\"1\",\"2\"]", "[\"2\",\"1\",\"9\"]"))
            .unwrap();
        let store = open_at(&path);
        assert_eq!(store.name(0).unwrap(), NAMES[1]);
        let read = features::all(&*store).unwrap().unwrap();
        let wells = read.column(0).as_string::<i32>();
        let areas = read.column(1).as_primitive::<Float64Type>();
        assert_eq!((wells.is_null(0), wells.value(1), areas.values()[1]), (true, "B01", 3.0));
        assert!(areas.is_null(2) && store.name(2).unwrap() == "9");
    }
}

/// Images without columns are a series too, where it is known that several come.
#[test]
fn images_without_columns_are_a_series() {
    for variant in ["0.4", "0.5"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells.ome.zarr");
        let options = WriteOptions {
            variant: Some(variant.to_owned()),
            images: NAMES.len(),
            overwrite: true,
            ..WriteOptions::default()
        };
        // The second time they take the place of the first.
        for _ in 0..2 {
            let mut writer = create(&path, "ome-zarr", &options).unwrap();
            for (row, name) in NAMES.iter().enumerate() {
                let (metadata, pixels) = (ImageMetadata::named(*name), [row as u8; 4]);
                let (shape, dtype) = (Shape::plane(2, 2), PixelType::U8);
                writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
            }
            writer.finish().unwrap();
        }
        let store = open_at(&path);
        let names: Vec<String> = (0..store.len()).map(|row| store.name(row).unwrap()).collect();
        assert_eq!(names, NAMES);
        assert_eq!(read_image(&*store, 2).unwrap().1, [2; 4]);
        assert!(
            store.hints().feature_names().is_empty() && !path.join("OME/wellread-columns.parquet").exists()
        );
        // One image has its group where other readers look for it.
        let one = dir.path().join("one.ome.zarr");
        let mut writer = create(&one, "ome-zarr", &WriteOptions { images: 1, ..options }).unwrap();
        let metadata = ImageMetadata::named("a");
        let (shape, dtype) = (Shape::plane(2, 2), PixelType::U8);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[7; 4] }).unwrap();
        writer.finish().unwrap();
        assert!(one.join("0").is_dir() && !one.join("OME").exists());
    }
}

/// One image keeps its columns: in its group, which stays where other readers look for it, or beside it in a folder.
#[test]
fn one_image_keeps_its_columns() {
    for variant in ["0.4", "0.5"] {
        for (target, file) in
            [("cell.zarr", "cell.zarr/wellread-columns.parquet"), ("cells", "cells/wellread-columns.parquet")]
        {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(target);
            let of_one = columns().slice(2, 1);
            let options = WriteOptions {
                variant: Some(variant.to_owned()),
                features: Some(of_one.clone()),
                overwrite: true,
                ..WriteOptions::default()
            };
            // The second time it takes the place of the first: the file of columns is wellread's own.
            for _ in 0..2 {
                let mut writer = create(&path, "ome-zarr", &options).unwrap();
                let metadata = ImageMetadata::named("cell-1");
                let (shape, dtype) = (Shape::plane(2, 2), PixelType::U8);
                writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[7; 4] }).unwrap();
                writer.finish().unwrap();
            }
            assert!(dir.path().join(file).is_file(), "{file}");
            let store = open_at(&path);
            assert_eq!((store.len(), store.name(0).unwrap().as_str()), (1, "cell-1"), "{target}");
            assert_eq!(read_image(&*store, 0).unwrap().1, [7; 4]);
            assert_eq!(store.hints().feature_names(), ["Metadata_Well", "area"], "{target}");
            let read = features::all(&*store).unwrap().unwrap();
            assert_eq!(read.columns(), of_one.columns(), "{target}");
        }
    }
}

#[test]
fn what_does_not_belong_together_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cells.zarr");
    let error = write(&path, "0.5", 1, 2).unwrap_err().to_string();
    assert!(error.contains("has 2 images, and 3 rows of columns"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    write(&path, "0.5", 1, 3).unwrap();
    let notes = path.join("OME/notes.txt");
    std::fs::write(&notes, "mine").unwrap();
    assert!(write(&path, "0.5", 1, 3).unwrap_err().to_string().contains("OME/notes.txt"));
    std::fs::remove_file(&notes).unwrap();
    let file = path.join("OME/wellread-columns.parquet");
    let whole = std::fs::read(&file).unwrap();
    for at in (0..whole.len()).step_by(31) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        std::fs::write(&file, &bytes).unwrap();
        // Values that are others now are nobody's fault; anything else is an error, and never a panic.
        drop(wellread_store::open(&path, &OpenOptions::default()).and_then(|store| features::all(&*store)));
        std::fs::write(&file, &whole[..at]).unwrap();
        assert!(wellread_store::open(&path, &OpenOptions::default()).is_err(), "cut at {at}");
    }
}
