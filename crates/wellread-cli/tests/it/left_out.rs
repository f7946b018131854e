//! Files and metadata beside pixels that are not read with them: `info` and `convert` name them. Also the parts that
//! make files larger than the pixels.

use crate::support::{arg, files_below, generate, image_names, json, wellread};
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
    assert_eq!(done.stderr.matches(note).count(), 1, "{}", done.stderr);
    let document = json(&["convert", arg(&set), arg(&dir.path().join("to.parquet"))]);
    assert_eq!(document["labels_left_out"], serde_json::json!(["cells"]));
    // As it says.
    assert_eq!(json(&["info", arg(&cells)])["images"], 1);
}

/// The metadata file of the only OME-Zarr image below a folder, and the image's first multiscale.
fn multiscale(folder: &Path) -> (PathBuf, serde_json::Value, &'static str) {
    let texts = files_below(folder).into_iter();
    let mut texts = texts.map(|(file, bytes)| (file, String::from_utf8_lossy(&bytes).into_owned()));
    let (file, text) = texts.find(|(_, text)| text.contains("\"multiscales\"")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pointers = ["/attributes/ome/multiscales/0", "/multiscales/0"];
    let pointer = pointers.into_iter().find(|pointer| all.pointer(pointer).is_some()).unwrap();
    (file, all, pointer)
}

/// Sizes without a unit, time, and metadata that only notes can name.
#[test]
fn ome_zarr_keeps_what_it_says_and_tells_of_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let (_, image) = zarr_images(dir.path());
    let (file, mut all, pointer) = multiscale(&image);
    let scale = serde_json::json!([7.5, 1.0, 2.0, 0.5, 0.25]);
    let of = all.pointer_mut(pointer).unwrap();
    of["name"] = "its own".into();
    of["axes"] = serde_json::json!([
        {"name": "t", "type": "time", "unit": "second"}, {"name": "c", "type": "channel"},
        {"name": "z", "type": "space"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"},
    ]);
    let moved = serde_json::json!({"type": "translation", "translation": [0.0, 0.0, 0.0, 10.0, 20.0]});
    of["datasets"][0]["coordinateTransformations"] =
        serde_json::json!([{"type": "scale", "scale": scale}, moved]);
    fs::write(&file, all.to_string()).unwrap();
    let convert = |name: &str, more: &[&str]| {
        let target = dir.path().join(name);
        let done = wellread(&[&["convert", arg(&image), arg(&target)], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let note = "note: translations, names of multiscales are left out: wellread has no place for";
        assert!(done.stderr.contains(note), "{}", done.stderr);
        (target, done.stderr)
    };
    let (target, said) = convert("to", &["--format", "ome-zarr"]);
    assert!(!said.contains("ome-zarr has no place for"), "{said}");
    let (_, written, pointer) = multiscale(&target);
    let of = written.pointer(pointer).unwrap();
    assert_eq!(of["datasets"][0]["coordinateTransformations"][0]["scale"], scale);
    assert_eq!((&of["axes"][0]["unit"], of["axes"][4].get("unit")), (&"second".into(), None));
    // An OME-XML size without a unit is one in micrometres.
    let (target, said) = convert("to.ome.tiff", &[]);
    assert!(said.contains("tiff has no place for pixel sizes;"), "{said}");
    let tiff = fs::read(target).unwrap();
    let xml = b"TimeIncrement=\"7.5\" TimeIncrementUnit=\"s\"";
    assert!(tiff.windows(xml.len()).any(|bytes| bytes == xml));
    let (_, said) = convert("dataset", &["--format", "ome-arrow-dataset"]);
    assert!(said.contains("has no place for pixel sizes, times between time points;"), "{said}");
    // Nothing has to be read back to know it.
    let (_, said) = convert("unread", &["--format", "ome-arrow-dataset", "--no-verify"]);
    assert!(said.contains("has no place for pixel sizes, times between time points;"), "{said}");
    let (target, said) = convert("to.parquet", &[]);
    assert!(said.contains("parquet has no place for times between time points;"), "{said}");
    let back = dir.path().join("back");
    json(&["convert", arg(&target), arg(&back), "--format", "ome-zarr"]);
    let (_, written, pointer) = multiscale(&back);
    let of = written.pointer(pointer).unwrap();
    let scale = serde_json::json!([1.0, 1.0, 2.0, 0.5, 0.25]);
    assert_eq!(of["datasets"][0]["coordinateTransformations"][0]["scale"], scale);
    assert_eq!(of["axes"][4].get("unit"), None);
}

/// Sets that are made of others say what their images say.
#[test]
fn what_is_left_out_of_parts_and_of_cells_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (set, named) = zarr_images(dir.path());
    let (file, mut all, pointer) = multiscale(&named);
    all.pointer_mut(pointer).unwrap()["name"] = "its own".into();
    fs::write(&file, all.to_string()).unwrap();
    let others = fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().path());
    let mut others = others.filter(|path| *path != named && path.extension().is_some_and(|e| e == "zarr"));
    let moved = others.next().unwrap();
    let (file, mut all, pointer) = multiscale(&moved);
    all.pointer_mut(pointer).unwrap()["datasets"][0]["coordinateTransformations"] = serde_json::json!([
        {"type": "scale", "scale": [1.0, 1.0, 1.0, 1.0, 1.0]},
        {"type": "translation", "translation": [0.0, 0.0, 0.0, 10.0, 20.0]},
    ]);
    fs::write(&file, all.to_string()).unwrap();
    // The first image of each part, each fact once.
    let parts = set.join("*.zarr");
    let done = wellread(&["convert", arg(&parts), arg(&dir.path().join("parts.parquet"))]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let note =
        "note: names of multiscales, translations are left out: wellread has no place for what ome-zarr says";
    assert_eq!(done.stderr.matches(note).count(), 1, "{}", done.stderr);
    let document = json(&["convert", arg(&parts), arg(&dir.path().join("again.parquet"))]);
    assert_eq!(document["metadata_left_out"], serde_json::json!(["names of multiscales", "translations"]));
    // Cells are called otherwise than their images, which is no fact that is lost.
    let table = dir.path().join("cells.csv");
    fs::write(&table, format!("image,x,y\n{},20,20\n", image_names(&moved)[0])).unwrap();
    let convert = |target: &str, more: &[&str]| {
        let target = dir.path().join(target);
        json(&[&["convert", arg(&moved), arg(&target)], more].concat())["metadata_left_out"].clone()
    };
    let whole = convert("whole.parquet", &[]);
    assert!(whole.as_array().unwrap().contains(&"translations".into()), "{whole}");
    assert_eq!(convert("cells.parquet", &["--cells", arg(&table), "--cells-size", "8x8"]), whole);
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
        assert_eq!(done.stderr.matches(what).count(), 1, "{}{}", done.stdout, done.stderr);
    }
}

/// Classes are told by the names of images: an image folder has them again.
#[test]
fn classes_are_not_lost_from_image_folder_to_image_folder() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 4, &["--formats", "image-folder"]);
    let classes = dir.path().join("classes");
    let mut pictures: Vec<PathBuf> =
        fs::read_dir(set.join("image-folder")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pictures.retain(|path| path.extension().is_some_and(|ending| ending == "png"));
    pictures.sort();
    for (i, picture) in pictures.iter().enumerate() {
        let folder = classes.join(["a", "b"][i % 2]);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(picture, folder.join(format!("{i}.png"))).unwrap();
    }
    let convert = |target: &str, format: &str| {
        let target = dir.path().join(target);
        let done = wellread(&["convert", arg(&classes), arg(&target), "--format", format]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        (target, done.stdout + &done.stderr)
    };
    let (target, said) = convert("again", "image-folder");
    assert!(!said.contains("leaves out"), "{said}");
    let columns = |set: &Path| json(&["info", arg(set)])["columns"].clone();
    assert_eq!(columns(&target), columns(&classes));
    assert_eq!(columns(&target), serde_json::json!(["class", "label"]));
    let (_, said) = convert("tiff", "tiff");
    assert!(said.contains("leaves out 2 columns (class …)"), "{said}");
    let (target, said) = convert("zarr", "ome-zarr");
    assert!(!said.contains("leaves out"), "{said}");
    assert_eq!(columns(&target), columns(&classes));
    // The classes of a file are lost.
    fs::write(classes.join("Labels.json"), r#"{"a": "first", "b": "second"}"#).unwrap();
    let (_, said) = convert("named", "image-folder");
    assert!(said.contains("leaves out 2 columns (label …)"), "{said}");
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

/// A default is printed as it is typed.
#[test]
fn defaults_of_lists_are_printed_as_they_are_typed() {
    let said = wellread(&["stats", "--help"]).stdout;
    assert!(said.contains("[default: 0.1,1,5,25,50,75,95,99,99.9]"), "{said}");
    let said = wellread(&["infer", "--help"]).stdout;
    assert!(said.contains("1,8,32,128]"), "{said}");
}

#[test]
fn channels_that_pictures_call_by_colours_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "parquet", "--dtype", "uint8", "--channels", "3"]);
    let pictures = dir.path().join("pictures");
    let stored = set.join("images.parquet");
    // A loss is told with --quiet too, and like other notes not on stdout.
    let said = wellread(&["--quiet", "convert", arg(&stored), arg(&pictures), "--format", "image-folder"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let note = "note: image-folder has no place for channel names, ";
    assert!(said.stderr.starts_with(note), "{}", said.stderr);
    assert!(!said.stdout.contains("note: "), "{}", said.stdout);
    let lost = |more: &[&str]| {
        let convert = ["convert", arg(&stored), arg(&pictures), "--format", "image-folder", "--overwrite"];
        json(&[&convert[..], more].concat())["facts_left_out"].clone()
    };
    let facts = lost(&[]);
    assert_eq!(facts, lost(&["--no-verify"]));
    for fact in ["channel names", "wavelengths", "channel colours"] {
        assert!(facts.as_array().unwrap().contains(&fact.into()), "{facts}");
    }
    // Colours are called so again.
    let back = dir.path().join("back.parquet");
    let said = wellread(&["convert", arg(&pictures), arg(&back)]);
    assert!(said.code == 0 && !said.stderr.contains("channel names"), "{}", said.stderr);
}

/// A note on a loss stood before the error of a conversion that was never begun.
#[test]
fn a_target_that_cannot_be_written_is_refused_before_any_note() {
    let dir = tempfile::tempdir().unwrap();
    let classes = dir.path().join("classes");
    generate(&dir.path().join("set"), 1, &["--formats", "image-folder", "--no-checksums"]);
    fs::create_dir_all(classes.join("a")).unwrap();
    let mut pictures = files_below(&dir.path().join("set/image-folder")).into_iter();
    let (picture, _) = pictures.find(|(file, _)| file.extension().is_some_and(|e| e == "png")).unwrap();
    fs::copy(picture, classes.join("a/1.png")).unwrap();
    // The classes of a file are no names of folders.
    fs::write(classes.join("Labels.json"), r#"{"a": "first"}"#).unwrap();
    let to = |name: &str| wellread(&["convert", arg(&classes), arg(&dir.path().join(name))]);
    let note = "note: image-folder has no place for columns beside the images";
    let written = to("1.png");
    assert!(written.stderr.starts_with(note), "{}", written.stderr);
    let refused = to("1.jpg");
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
    assert!(refused.stderr.starts_with("error: "), "{}", refused.stderr);
    assert!(!refused.stderr.contains("note: "), "{}", refused.stderr);
}
