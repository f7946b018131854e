//! What lies beside pixels or says how they look, and is not read with them: `info` and `convert` name it. What makes files larger than
//! the pixels.

use crate::support::{arg, files_below, generate, json, wellread};
use std::fs;
use std::path::{Path, PathBuf};

/// Two OME-Zarr images in a folder, and the first one's own folder.
fn zarr_images(dir: &Path) -> (PathBuf, PathBuf) {
    generate(&dir.join("set"), 2, &["--formats", "ome-zarr", "--dtype", "uint16"]);
    let set = dir.join("set/ome-zarr");
    let mut images: Vec<PathBuf> = fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().path()).collect();
    images.retain(|path| path.extension().is_some_and(|ending| ending == "zarr"));
    images.sort();
    (set, images.swap_remove(0))
}

#[test]
fn labels_beside_images_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (set, image) = zarr_images(dir.path());
    assert_eq!(json(&["info", arg(&set)])["labels"], serde_json::Value::Null);
    let cells = image.join("labels/cells");
    for (file, content) in files_below(&image) {
        let copy = cells.join(file.strip_prefix(&image).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, content).unwrap();
    }
    fs::write(image.join("labels/.zgroup"), r#"{"zarr_format": 2}"#).unwrap();
    fs::write(image.join("labels/.zattrs"), r#"{"labels": ["cells"]}"#).unwrap();
    assert_eq!(json(&["info", arg(&set)])["labels"], serde_json::json!(["cells"]));
    let said = wellread(&["info", arg(&set)]).stdout;
    assert!(said.contains("beside 1 image: cells (read as a set of their own, "), "{said}");
    let done = wellread(&["convert", arg(&set), arg(&dir.path().join("to")), "--format", "ome-zarr"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let note = "note: labels of 1 image are left out: cells (read as a set of their own, ";
    assert_eq!(done.stdout.matches(note).count(), 1, "{}", done.stdout);
    let document = json(&["convert", arg(&set), arg(&dir.path().join("to.parquet"))]);
    assert_eq!(document["labels_left_out"], serde_json::json!(["cells"]));
    // As it says.
    assert_eq!(json(&["info", arg(&cells)])["images"], 1);
}

#[test]
fn the_look_that_a_tiff_asks_for_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff", "--dtype", "uint8", "--no-checksums"]);
    let set = set.join("tiff");
    let target = |name: &str| dir.path().join(name);
    assert_eq!(json(&["info", arg(&set)])["looks"], serde_json::Value::Null);
    // The tag of photometric interpretation: a SHORT, 1 (BlackIsZero).
    let tag = [6, 1, 3, 0, 1, 0, 0, 0, 1, 0];
    let whole = files_below(&set);
    let photometric = |value: u8| {
        for (file, content) in &whole {
            let mut changed = content.clone();
            let places: Vec<usize> =
                content.windows(tag.len()).enumerate().filter(|(_, w)| *w == tag).map(|(at, _)| at).collect();
            for at in &places {
                changed[at + 8] = value;
            }
            fs::write(file, changed).unwrap();
        }
    };
    for (value, what) in [
        (0, "2 images are WhiteIsZero (small numbers are bright); the numbers are kept, the look is not"),
        (3, "2 images are of indices into a palette; the indices are kept, the colours are not"),
    ] {
        photometric(value);
        let said = wellread(&["info", arg(&set)]).stdout;
        assert!(said.contains(what), "{said}");
        let done = wellread(&["convert", arg(&set), arg(&target(&format!("{value}.parquet")))]);
        assert_eq!(done.stdout.matches(what).count(), 1, "{}{}", done.stdout, done.stderr);
    }
}

#[test]
fn metadata_is_no_fault_of_a_codec() {
    let dir = tempfile::tempdir().unwrap();
    let (_, image) = zarr_images(dir.path());
    let metadata = ["zarr.json", ".zattrs"].map(|name| image.join(name));
    let metadata = metadata.iter().find(|file| file.is_file()).unwrap();
    let text = fs::read_to_string(metadata).unwrap() + &" ".repeat(1 << 20);
    fs::write(metadata, text).unwrap();
    let info = json(&["info", arg(&image)]);
    assert!(info["bytes_on_disk"].as_u64() > info["bytes_of_pixels"].as_u64(), "{info}");
    let said = wellread(&["info", arg(&image)]).stdout;
    assert!(!said.contains("larger than the pixels"), "{said}");
}

#[test]
fn info_says_that_plain_parquet_keeps_few_bits_in_many() {
    let dir = tempfile::tempdir().unwrap();
    let (set, _) = zarr_images(dir.path());
    for (codec, is_wide) in [("none", true), ("zstd", false)] {
        let target = dir.path().join(format!("{codec}.parquet"));
        json(&["convert", arg(&set), arg(&target), "--compression", codec]);
        let said = wellread(&["info", arg(&target)]).stdout;
        assert_eq!(said.contains("Parquet keeps 16-bit pixels in 32 bits"), is_wide, "{said}");
    }
}
