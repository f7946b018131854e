//! Folders in folders, such as plate/well/site: no image is left out because it lies deeper than others.

use crate::support::{arg, has_format, json, wellread};
use serde_json::{Value, json as value};
use std::path::Path;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{ImageView, WriteOptions, create};

/// Writes one image to this file or folder, and the folders that it is in.
fn put(path: &Path, format: &str, seed: u8) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let metadata = ImageMetadata::named(path.file_stem().unwrap().to_str().unwrap());
    let view = ImageView {
        metadata: &metadata,
        shape: Shape::plane(4, 5),
        dtype: PixelType::U8,
        pixels: &[seed; 20],
    };
    let mut writer = create(path, format, &WriteOptions::default()).unwrap();
    writer.write(&view).unwrap();
    writer.finish().unwrap();
}

/// Names and digests in the order of rows.
fn sums(path: &Path, more: &[&str]) -> Vec<Value> {
    let list = json(&[&["checksum", arg(path)], more].concat());
    list.as_array().unwrap().iter().map(|i| value!([i["name"], i["sha256"]])).collect()
}

#[test]
fn images_at_different_depths_are_all_converted() {
    for (format, ending) in [("tiff", "tif"), ("image-folder", "png"), ("ome-zarr", "zarr")] {
        if !has_format(format) {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let plate = dir.path().join("plate");
        put(&plate.join(format!("A01/site1/1.{ending}")), format, 1);
        // Every image lies two folders deep.
        assert_eq!(sums(&plate, &[])[0][0], "A01/site1/1", "{format}");
        put(&plate.join(format!("B01/2.{ending}")), format, 2);
        // A hidden folder is no part of the set.
        put(&plate.join(format!("B01/.wellread-partial-1-2-x/3.{ending}")), format, 3);
        let expected = sums(&plate, &[]);
        let names: Vec<&Value> = expected.iter().map(|image| &image[0]).collect();
        assert_eq!(names, [&value!("A01/site1/1"), &value!("B01/2")], "{format}");
        assert_eq!(sums(&plate, &["--read-as", format]), expected);
        let table = dir.path().join("plate.parquet");
        let back = dir.path().join("back");
        json(&["convert", arg(&plate), arg(&table)]);
        json(&["convert", arg(&table), arg(&back), "--format", format]);
        for set in [&table, &back] {
            assert_eq!(sums(set, &[]), expected, "{format}");
            let verified = json(&["verify", arg(set), "--against", arg(&plate)]);
            assert_eq!(verified["passed"], true, "{format}: {verified}");
        }
    }
}

#[test]
fn images_of_another_format_further_down_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let plate = dir.path().join("plate");
    put(&plate.join("1.tif"), "tiff", 1);
    put(&plate.join("A01/site1/2.png"), "image-folder", 2);
    let told = wellread(&["info", arg(&plate)]);
    assert_ne!(told.code, 0, "{}", told.stdout);
    assert!(told.stderr.contains("mixes image formats") && told.stderr.contains("2.png"), "{}", told.stderr);
    assert_eq!(sums(&plate, &["--read-as", "tiff"]).len(), 1);
}

/// A folder is not taken for a set that may be replaced because there is an image somewhere below it.
#[test]
fn folders_of_other_things_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    put(&project.join("data/plate/1.tif"), "tiff", 1);
    let source = dir.path().join("source.tif");
    put(&source, "tiff", 2);
    let refused = wellread(&["convert", arg(&source), arg(&project), "--format", "tiff", "--overwrite"]);
    assert!(refused.code != 0 && refused.stderr.contains("not replaced"), "{}", refused.stderr);
    assert!(project.join("data/plate/1.tif").exists());
}
