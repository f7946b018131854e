//! Names and row order through conversions, and the output of `verify --against` for sets that differ.

use crate::support::{arg, formats, generate, has_format, json, wellread};
use serde_json::{Value, json as value};
use std::path::Path;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{ImageView, WriteOptions, create};

const SHAPE: Shape = Shape([1, 1, 1, 4, 5]);

fn pixels(seed: usize) -> Vec<u8> {
    (0..SHAPE.pixels()).map(|i| (seed * 31 + i) as u8).collect()
}

/// Writes images of these names and seeds.
fn write(path: &Path, format: &str, images: &[(&str, usize)]) {
    let mut writer = create(path, format, &WriteOptions::default()).unwrap();
    for (name, seed) in images {
        let metadata = ImageMetadata::named(*name);
        let pixels = pixels(*seed);
        let view = ImageView { metadata: &metadata, shape: SHAPE, dtype: PixelType::U8, pixels: &pixels };
        writer.write(&view).unwrap();
    }
    writer.finish().unwrap();
}

/// Names and digests in the order of rows.
fn sums(path: &Path, more: &[&str]) -> Vec<Value> {
    let list = json(&[&["checksum", arg(path)], more].concat());
    list.as_array().unwrap().iter().map(|i| value!([i["row"], i["name"], i["sha256"]])).collect()
}

/// A name of each kind that some format or file system does not take, and repeated ones.
fn awkward() -> Vec<(String, usize)> {
    let names = [
        "well B02",
        "well A01",
        "well B02",
        "well b02",
        "well B02-1",
        "",
        "plate 1/A01",
        "plate_1_A01",
        "a:b*c?",
        ".hidden",
        "two\nlines",
        " spaces ",
        "µ🔬 細胞",
        "..",
        "a.ome",
        "000003-well",
        "<a b=\"c\">&amp;",
    ];
    let mut names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    names.push("x".repeat(4096));
    names.push("x".repeat(4095) + "y");
    names.into_iter().enumerate().map(|(seed, name)| (name, seed)).collect()
}

/// The recipe of the issue: a table with repeated and awkward names, to every format and back.
#[test]
fn every_format_keeps_names_and_order() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source.parquet");
    let images = awkward();
    let images: Vec<_> = images.iter().map(|(name, seed)| (name.as_str(), *seed)).collect();
    write(&source, "parquet", &images);
    let expected = sums(&source, &[]);
    assert_eq!(expected[5][1], "");
    for format in formats() {
        let there = dir.path().join(format!("there-{format}"));
        let back = dir.path().join(format!("back-{format}.parquet"));
        json(&["convert", arg(&source), arg(&there), "--format", &format]);
        // Names of targets without an ending: the entry there tells the format only where it is a folder of
        // files.
        let as_written = ["--read-as", &format];
        assert_eq!(sums(&there, &as_written), expected, "{format}");
        let verified = json(&[&["verify", arg(&there), "--against", arg(&source)], &as_written[..]].concat());
        assert_eq!((&verified["passed"], &verified["differences"]), (&value!(true), &value!({})), "{format}");
        json(&[&["convert", arg(&there), arg(&back)], &as_written[..]].concat());
        assert_eq!(sums(&back, &[]), expected, "{format} and back");
        if !["lance", "vortex", "duckdb", "parquet-duckdb"].contains(&format.as_str()) {
            continue;
        }
        // The engine's set goes on to the formats of a file for each image.
        for files in ["tiff", "ome-zarr", "image-folder"] {
            let onward = dir.path().join(format!("{files}-of-{format}"));
            let words = ["convert", arg(&there), arg(&onward), "--format", files];
            json(&[&words[..], &as_written].concat());
            assert_eq!(sums(&onward, &["--read-as", files]), expected, "{format} to {files}");
        }
    }
}

/// A run goes on with an interrupted one among names that are out of order.
#[test]
fn resuming_keeps_names_and_order() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    let images = awkward();
    let images: Vec<_> = images.iter().map(|(name, seed)| (name.as_str(), *seed)).collect();
    write(&source, "tiff", &images);
    let expected = sums(&source, &[]);
    // One image cannot be read for a while; no file changes its size.
    for broken_row in [1, 9] {
        let file = std::fs::read_dir(&source)
            .unwrap()
            .map(|e| e.unwrap().path())
            .find(|p| p.file_name().unwrap().to_str().unwrap().starts_with(&format!("{broken_row:06}-")))
            .unwrap();
        let whole = std::fs::read(&file).unwrap();
        let mut broken = whole.clone();
        broken[..8].fill(b'x');
        for format in ["tiff", "ome-zarr", "image-folder", "lance", "duckdb"] {
            if !has_format(format) {
                continue;
            }
            let target = dir.path().join(format!("{format}-{broken_row}"));
            let args =
                ["convert", arg(&source), arg(&target), "--format", format, "--resume", "--read-as", "tiff"];
            std::fs::write(&file, &broken).unwrap();
            let failed = wellread(&args);
            assert_eq!(failed.code, 1, "{format}: {}", failed.stderr);
            std::fs::write(&file, &whole).unwrap();
            let done = json(&args);
            assert_eq!(done["images_resumed"], broken_row, "{format}");
            assert_eq!(sums(&target, &["--read-as", format]), expected, "{format}");
            assert!(!dir.path().join(format!(".wellread-resume-{format}-{broken_row}")).exists());
            // The same command again finds it complete, in order.
            assert_eq!(json(&args)["images_resumed"], images.len());
        }
    }
}

/// `verify --against` as a document, and its printed text.
fn verify(set: &Path, against: &Path, more: &[&str]) -> (Value, String) {
    let args = [&["verify", arg(set), "--against", arg(against)], more].concat();
    let done = wellread(&args);
    let document = wellread(&[&["--json"], &args[..]].concat());
    assert_eq!(done.code, document.code);
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(done.code, i32::from(document["passed"] == false));
    (document, done.stderr)
}

#[test]
fn verify_tells_order_names_and_pixels_apart() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let set = [("a", 1), ("twice", 2), ("twice", 3), ("d", 4)];
    write(&at("set.parquet"), "parquet", &set);
    for (format, name) in
        [("tiff", "tiff"), ("image-folder", "png"), ("ome-zarr", "zarr"), ("parquet", "x.parquet")]
    {
        let path = |what: &str| at(&format!("{what}-{name}"));
        // The same names in the same rows: only pixels tell that two images changed places.
        write(&path("order"), format, &[set[0], set[2], set[1], set[3]]);
        let (found, said) = verify(&path("order"), &at("set.parquet"), &[]);
        assert_eq!(found["differences"], value!({"order": 2}), "{format}: {found}");
        let first = &found["problems"][0];
        assert_eq!(
            [&first["row"], &first["expected_row"], &first["kind"], &first["name"]],
            [&value!(1), &value!(2), &value!("order"), &value!("twice")]
        );
        let words = "the same images in another order: 2 of 4 images in another row (first row 1, \"twice\")";
        assert!(
            said.contains(words) && said.contains("row 1: twice: is in row 1, but expected in row 2"),
            "{said}"
        );
        assert_eq!(verify(&path("order"), &at("set.parquet"), &["--ignore", "order"]).0["passed"], true);

        write(&path("names"), format, &[set[0], set[1], ("thrice", 3), set[3]]);
        let (found, said) = verify(&path("names"), &at("set.parquet"), &[]);
        assert_eq!(found["differences"], value!({"name": 1}), "{format}: {found}");
        assert!(said.contains("the same images with other names: 1 of 4"), "{said}");
        assert!(said.contains("row 2: thrice: is called so, but \"twice\" is expected"), "{said}");
        assert_eq!(verify(&path("names"), &at("set.parquet"), &["--ignore", "names"]).0["passed"], true);
        assert_eq!(verify(&path("names"), &at("set.parquet"), &["--ignore", "order"]).0["passed"], false);

        write(&path("pixels"), format, &[set[0], set[1], set[2], ("d", 9)]);
        let (found, said) = verify(&path("pixels"), &at("set.parquet"), &["--ignore", "order,names"]);
        assert_eq!(found["differences"], value!({"pixels": 1}), "{format}: {found}");
        let difference = &found["problems"][0]["first_difference"];
        assert_eq!(difference["tczyx"], value!([0, 0, 0, 0, 0]));
        assert_eq!(
            [&difference["found"], &difference["expected"], &difference["pixels_that_differ"]],
            [&value!((9 * 31 % 256).to_string()), &value!("124"), &value!(20)]
        );
        assert!(
            said.contains("row 3: d: pixels differ: 20 of them, the first at T=0 C=0 Z=0 Y=0 X=0"),
            "{said}"
        );
        assert!(said.contains("1 of 4 images with other pixels (first row 3, \"d\")"), "{said}");

        write(&path("fewer"), format, &[set[0], set[2], set[3]]);
        let (found, said) = verify(&path("fewer"), &at("set.parquet"), &[]);
        assert_eq!(found["differences"], value!({"missing": 1}), "{format}: {found}");
        assert!(said.contains("expected row 1: twice: is expected but not in the set"), "{said}");
        assert_eq!([&found["images"], &found["expected"]], [&value!(3), &value!(4)], "{format}");
        assert!(said.contains("1 problem in 3 images (4 expected)"), "{said}");
        let words = "1 of 4 images expected but not in the set (first expected row 1, \"twice\")";
        assert!(said.contains(words), "{said}");
    }
    // Against checksums alone the same is said, but for where the pixels differ.
    let expected = at("expected.json");
    std::fs::write(&expected, json(&["checksum", arg(&at("set.parquet"))]).to_string()).unwrap();
    let (found, said) = verify(&at("pixels-tiff"), &expected, &[]);
    assert_eq!(found["differences"], value!({"pixels": 1}));
    assert_eq!(found["problems"][0]["first_difference"], Value::Null);
    assert!(said.contains("pixels differ: sha256"), "{said}");
    assert_eq!(wellread(&["verify", arg(&at("pixels-tiff")), "--ignore", "order"]).code, 2);
}

/// A list of checksums says what is in a folder of other tools, in whatever order that sorts its files; a set says more.
#[test]
fn lists_of_checksums_are_for_folders_of_other_tools_too() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    write(&at("set.parquet"), "parquet", &[("b", 1), ("a", 2)]);
    std::fs::create_dir(at("pictures")).unwrap();
    for (name, seed) in [("a", 2), ("b", 1)] {
        let picture = image::GrayImage::from_raw(5, 4, pixels(seed)).unwrap();
        picture.save(at("pictures").join(format!("{name}.png"))).unwrap();
    }
    std::fs::write(at("expected.json"), json(&["checksum", arg(&at("set.parquet"))]).to_string()).unwrap();
    assert_eq!(verify(&at("pictures"), &at("expected.json"), &[]).0["passed"], true);
    let (found, said) = verify(&at("pictures"), &at("set.parquet"), &[]);
    assert_eq!(found["differences"], value!({"order": 2}));
    assert!(said.contains("--ignore order"), "{said}");
    // A set with an order of its own is held to it.
    write(&at("turned.parquet"), "parquet", &[("a", 2), ("b", 1)]);
    assert_eq!(
        verify(&at("turned.parquet"), &at("expected.json"), &[]).0["differences"],
        value!({"order": 2})
    );
}

/// Folders of other tools: images stand in the order of their files and are called as these.
#[test]
fn folders_of_other_tools_are_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("pictures");
    for class in ["b", "a"] {
        std::fs::create_dir_all(folder.join(class)).unwrap();
        for name in ["000001-x", "2", "10"] {
            let picture = image::GrayImage::from_raw(5, 4, pixels(name.len())).unwrap();
            picture.save(folder.join(class).join(format!("{name}.png"))).unwrap();
        }
    }
    let names = |path: &Path| sums(path, &[]).into_iter().map(|i| i[1].clone()).collect::<Vec<_>>();
    let expected = ["a/000001-x", "a/10", "a/2", "b/000001-x", "b/10", "b/2"];
    assert_eq!(names(&folder), expected);
    for format in ["image-folder", "tiff", "ome-zarr"] {
        let target = dir.path().join(format);
        json(&["convert", arg(&folder), arg(&target), "--format", format]);
        assert_eq!(names(&target), expected, "{format}");
    }
    let copied: Vec<_> = std::fs::read_dir(dir.path().join("image-folder")).unwrap().collect();
    assert_eq!(copied.len(), 2, "class folders with plain file names need no index");
}

#[test]
fn a_list_of_checksums_for_people_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let [set, list] = ["set.parquet", "sums.txt"].map(|name| dir.path().join(name));
    write(&set, "parquet", &[("a", 1), ("b", 2)]);
    std::fs::write(&list, wellread(&["checksum", arg(&set)]).stdout).unwrap();
    let refused = wellread(&["verify", arg(&set), "--against", arg(&list)]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("is what `wellread checksum` prints for people"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`wellread checksum --json`"), "{}", refused.stderr);
}

#[test]
fn checksums_for_people_have_a_line_for_each_image() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set.parquet");
    write(&set, "parquet", &[("two\nlines", 1), ("\u{1b}[31mred", 2), ("it's", 3)]);
    let said = wellread(&["checksum", arg(&set)]).stdout;
    let names: Vec<_> = said.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
    assert_eq!(names, [r"two\nlines", r"\u{1b}[31mred", "it's"]);
}

/// It said that all agree, as it does whatever the set is.
#[test]
fn a_set_is_not_compared_with_itself() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    let detour = set.join("../set/tiff");
    for other in [&tiff, &detour] {
        let refused = wellread(&["verify", arg(&tiff), "--against", arg(other)]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        let why = format!("{} is on both sides, and a set does not differ from itself", arg(other));
        assert!(refused.stderr.contains(&why), "{}", refused.stderr);
    }
    // Another way of opening it is another set.
    let named = json(&["verify", arg(&tiff), "--against", arg(&tiff), "--read-as", "tiff"]);
    assert_eq!(named["passed"], true);
}
