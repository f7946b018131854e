//! Names and row order: every format gives images back with their names and in their order.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::convert::{ConvertOptions, convert};
use wellread_store::subset::Subset;
use wellread_store::{ImageView, OpenOptions, Store, WriteOptions, create, open, open_all, read_image};

const SHAPE: Shape = Shape([1, 1, 1, 2, 3]);

/// Targets: name of the file or folder, format, variant.
const TARGETS: [(&str, &str, Option<&str>); 10] = [
    ("tiff", "tiff", None),
    ("tiff-plain", "tiff", Some("plain")),
    ("all.ome.tiff", "tiff", None),
    ("all.tiff", "tiff", Some("plain")),
    ("zarr", "ome-zarr", None),
    ("zarr-0.4", "ome-zarr", Some("0.4")),
    ("png", "image-folder", None),
    ("table.parquet", "parquet", None),
    ("default.parquet", "parquet-default", None),
    ("dataset", "ome-arrow-dataset", None),
];

fn pixels(row: usize) -> Vec<u8> {
    (0..SHAPE.pixels()).map(|i| (row * 7 + i) as u8).collect()
}

fn options(variant: Option<&str>) -> WriteOptions {
    WriteOptions { variant: variant.map(str::to_owned), jobs: 2, ..WriteOptions::default() }
}

/// Writes images called so, each with pixels by its row.
fn write(path: &Path, format: &str, variant: Option<&str>, names: &[String]) {
    let mut writer = create(path, format, &options(variant)).unwrap();
    for (row, name) in names.iter().enumerate() {
        let metadata = ImageMetadata::named(name);
        let view =
            ImageView { metadata: &metadata, shape: SHAPE, dtype: PixelType::U8, pixels: &pixels(row) };
        writer.write(&view).unwrap();
    }
    writer.finish().unwrap();
}

fn open_as(path: &Path, format: &str) -> Box<dyn Store> {
    // Recognised without help, too.
    let store = open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(store.format(), format.strip_suffix("-default").unwrap_or(format), "{}", path.display());
    store
}

fn names_of(store: &dyn Store) -> Vec<String> {
    (0..store.len()).map(|row| store.name(row).unwrap()).collect()
}

#[track_caller]
fn assert_same(store: &dyn Store, names: &[String]) {
    assert_eq!(names_of(store), names, "{}", store.path().display());
    for (row, name) in names.iter().enumerate() {
        assert_eq!(store.metadata(row).unwrap().name, *name);
        assert!(read_image(store, row).unwrap().1 == pixels(row), "{} row {row}", store.path().display());
    }
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Names that have broken some format, and names made of what could.
fn a_name() -> impl Strategy<Value = String> {
    let known = [
        "",
        "a",
        "A",
        "b",
        "a-1",
        "a-000001",
        "000000-a",
        "000001-a",
        "image",
        "a/b",
        "a_b",
        "a:b",
        "/",
        "//",
        "a/",
        "/a",
        "..",
        "../a",
        ".",
        ".hidden",
        " a",
        "a ",
        "a.",
        "a.ome",
        "a.zarr",
        "a.ome.tiff",
        "a.tif/b",
        "zarr.json/x",
        "x.parquet/y",
        "wellread-names.json/z",
        "wellread-names.json",
        ".wellread-journal",
        ".numbered/a",
        "con",
        "é",
        "e\u{301}",
        "a\nb",
        "a\0b",
        "a\tb\r",
        "\u{feff}a",
        "\u{fffe}",
        "µ🔬/細胞",
        "a\\b",
        "a*?\"<>|",
        "<a b=\"c\">&amp;",
        "]]>",
        "%2F",
        "a%00",
    ];
    let characters = ['a', 'B', '/', '.', '-', ' ', '0', '\n', '\0', 'µ', '\u{10ffff}', '_', '"', '\\'];
    prop_oneof![
        6 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        2 => prop::collection::vec(prop::sample::select(characters.to_vec()), 0..8).prop_map(|c| c.into_iter().collect()),
        1 => (prop::sample::select(vec!["x", "µ", "a/"]), 0usize..3).prop_map(|(c, n)| format!("{}{n}", c.repeat(4096 / c.len() - 1))),
        1 => ".{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// From a table to every format and back, and between formats.
    #[test]
    fn every_format_keeps_names_and_order(names in prop::collection::vec(a_name(), 1..9), via in 0..TARGETS.len()) {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source.parquet");
        write(&source, "parquet", None, &names);
        for (target, format, variant) in TARGETS {
            let from = open(&source, &OpenOptions::default()).unwrap();
            let path = dir.path().join(target);
            let writer = create(&path, format, &options(variant)).unwrap();
            let converted = convert(&*from, writer, ConvertOptions::default(), &mut |_| ()).unwrap();
            converted.check(&*from, format, None, from.len(), 2, &|| ()).unwrap();
            converted.commit().unwrap();
            assert_same(&*open_as(&path, format), &names);
        }
        // A converted set is a source like any other.
        let (middle, format, _) = TARGETS[via];
        let from = open_as(&dir.path().join(middle), format);
        for (target, format, variant) in TARGETS {
            let path = dir.path().join(format!("again-{target}"));
            let writer = create(&path, format, &options(variant)).unwrap();
            let converted = convert(&*from, writer, ConvertOptions::default(), &mut |_| ()).unwrap();
            converted.check(&*from, format, None, from.len(), 2, &|| ()).unwrap();
            converted.commit().unwrap();
            assert_same(&*open_as(&path, format), &names);
        }
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    files
}

#[test]
fn file_names_are_plain_where_they_tell_all() {
    let dir = tempfile::tempdir().unwrap();
    for (format, ending) in [("tiff", ".ome.tiff"), ("ome-zarr", ".zarr"), ("image-folder", ".png")] {
        let path = dir.path().join(format);
        let names = strings(&["20240101-plate", "a", "b c", "µ"]);
        write(&path, format, None, &names);
        assert_eq!(files(&path), names.iter().map(|n| format!("{n}{ending}")).collect::<Vec<_>>());
        // Out of order: other tools see the rows in their order too.
        let path = dir.path().join(format!("{format}-2"));
        write(&path, format, None, &strings(&["b", "a:1", "b"]));
        let expected = ["000000-b", "000001-a_1", "000002-b"].map(|n| format!("{n}{ending}"));
        assert_eq!(files(&path), [&expected[..], &["wellread-names.json".to_owned()]].concat());
    }
}

#[test]
fn classes_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let names = strings(&["dog/1", "cat/1", "dog/2", "dog/1", "cat.v1/x", "a.tif/b", "top"]);
    write(dir.path().join("set").as_path(), "image-folder", None, &names);
    let path = dir.path().join("set");
    assert_eq!(files(&path), ["000006-top.png", "a.tif_", "cat", "cat.v1", "dog", "wellread-names.json"]);
    assert_eq!(files(&path.join("dog")), ["000000-1.png", "000002-2.png", "000003-1.png"]);
    let store = open_as(&path, "image-folder");
    assert_same(&*store, &names);
    assert_eq!(wellread_store::image_folder::class_of(&store.name(2).unwrap()), Some("dog"));
    // In order, names alone tell everything.
    let sorted = strings(&["cat/1", "cat/2", "dog/1"]);
    let path = dir.path().join("sorted");
    write(&path, "image-folder", None, &sorted);
    assert_eq!(files(&path), ["cat", "dog"]);
    assert_same(&*open_as(&path, "image-folder"), &sorted);
}

/// One image in a file of its own keeps its name, whatever the file is called.
#[test]
fn a_single_image_keeps_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let targets = [
        ("one.png", "image-folder", None),
        ("one.zarr", "ome-zarr", None),
        ("two.zarr", "ome-zarr", Some("0.4")),
        ("one.ome.tiff", "tiff", None),
        ("two.tiff", "tiff", Some("plain")),
    ];
    for name in ["plate 1/A\n01", "", " a", "µ\0"] {
        for (file, format, variant) in targets {
            let path = dir.path().join(file);
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_dir_all(&path);
            write(&path, format, variant, &strings(&[name]));
            assert_same(&*open_as(&path, format), &strings(&[name]));
        }
    }
}

/// Other tools may take files away, add some and change the index: names are right or there is an error.
#[test]
fn folders_may_change_after_writing() {
    let dir = tempfile::tempdir().unwrap();
    for (format, ending) in [("tiff", ".ome.tiff"), ("ome-zarr", ".zarr"), ("image-folder", ".png")] {
        let path = dir.path().join(format);
        write(&path, format, None, &strings(&["c/1", "b", "a", "b"]));
        let c = if format == "image-folder" { "c/000000-1" } else { "000000-c_1" };
        let more = dir.path().join(format!("{format}-more"));
        write(&more, format, None, &strings(&["000000-first", "new"]));
        let file = |folder: &Path, stem: &str| folder.join(format!("{stem}{ending}"));
        std::fs::rename(file(&path, "000001-b"), dir.path().join(format!("gone{ending}"))).unwrap();
        std::fs::rename(file(&more, "new"), file(&path, "new")).unwrap();
        std::fs::rename(file(&more, "000000-first"), file(&path, "000000-first")).unwrap();
        let store = open_as(&path, format);
        let name = "000000-first";
        assert_eq!(
            names_of(&*store),
            ["c/1", "a", "b", if format == "tiff" { "000000-first" } else { name }, "new"]
        );
        let rows = [(0, 0), (1, 2), (2, 3), (3, 0), (4, 1)];
        for (row, written) in rows {
            assert_eq!(read_image(&*store, row).unwrap().1, pixels(written), "{format} {row}");
        }
        // Renamed: called as its file again.
        std::fs::rename(file(&path, "000002-a"), file(&path, "z")).unwrap();
        let expected_z = "z";
        assert_eq!(names_of(&*open_as(&path, format)), ["c/1", "b", "000000-first", "new", expected_z]);
        std::fs::write(path.join("wellread-names.json"), "{\"wellread_names\": 1, \"images\": [").unwrap();
        let error = open(&path, &OpenOptions::default()).err().unwrap().to_string();
        assert!(error.contains("wellread-names.json") && error.contains("copy it again"), "{error}");
        // Without an index, the order is that of the numbers; OME-TIFF has the names as well.
        std::fs::remove_file(path.join("wellread-names.json")).unwrap();
        let names = names_of(&*open_as(&path, format));
        let expected = match format {
            "tiff" => ["c/1", "000000-first", "b", "new", "z"].map(str::to_owned),
            "ome-zarr" => ["000000-c_1", "000000-first", "000003-b", "new", "z"].map(str::to_owned),
            _ => ["000000-first", "000003-b", c, "new", "z"].map(str::to_owned),
        };
        assert_eq!(names, expected, "{format}");
    }
}

/// A file that cannot be read is a row called by its file's name. Its pixels, shape and metadata are the error.
#[test]
fn files_that_cannot_be_read_have_names() {
    for (format, ending) in [("tiff", ".ome.tiff"), ("image-folder", ".png")] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format);
        write(&path, format, None, &strings(&["a", "b", "c"]));
        let damaged = path.join(format!("b{ending}"));
        let whole = std::fs::read(&damaged).unwrap();
        let junk = b"junk".repeat(50);
        for bytes in [&b""[..], junk.as_slice(), &whole[..16]] {
            std::fs::write(&damaged, bytes).unwrap();
            let store = open_as(&path, format);
            assert_eq!(names_of(&*store), ["a", "b", "c"], "{format}, {} bytes", bytes.len());
            assert!(store.row_info(1).is_err() && store.metadata(1).is_err() && store.name(3).is_err());
            assert_eq!(read_image(&*store, 1).unwrap_err().row_index(), Some(1));
            assert_eq!(read_image(&*store, 2).unwrap().1, pixels(2));
        }
    }
}

/// Told by names of files: a row's name is that of its set alone where none is there twice.
#[test]
fn names_of_combined_folders_begin_with_these_where_one_is_there_twice() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["A", "B", "C"].map(|folder| dir.path().join(folder));
    for (path, names) in paths.iter().zip([["north", "south"], ["east", "west"], ["south", "west"]]) {
        write(path, "tiff", None, &strings(&names));
    }
    let [a, b, c] = paths;
    let combined = |sets: Vec<PathBuf>| open_all(&sets, &OpenOptions::default()).unwrap();
    let apart = combined(vec![a.clone(), b]);
    assert_eq!(names_of(&*apart), ["north", "south", "east", "west"]);
    assert!(!apart.hints().names_begin_with_parts());
    let alike = combined(vec![a, c]);
    assert_eq!(names_of(&*alike), ["A/north", "A/south", "C/south", "C/west"]);
    assert!(alike.hints().names_begin_with_parts());
    assert!(Subset::of(alike, vec![3, 0]).hints().names_begin_with_parts());
}

/// Opening a large folder, and its names, take the listing and the index: not a look into each file.
#[test]
fn no_file_is_looked_into_for_its_name() {
    const N: usize = 1_000;
    let dir = tempfile::tempdir().unwrap();
    let name = |row: usize| format!("well {}/{row}", N - row);
    for (format, ending) in [("image-folder", ".png"), ("ome-zarr", ".zarr"), ("tiff", ".ome.tiff")] {
        let path = dir.path().join(format);
        std::fs::create_dir(&path).unwrap();
        let sample = dir.path().join(format!("{format}-sample"));
        write(&sample, format, None, &strings(&["sample"]));
        let mut index = "{\"wellread_names\": 1, \"images\": [".to_owned();
        for row in 0..N {
            let file = format!("{row:06}-x{ending}");
            // A read of one of these gives an error.
            match format {
                "ome-zarr" => std::fs::create_dir(path.join(&file)).unwrap(),
                _ => std::fs::write(path.join(&file), "").unwrap(),
            }
            if row > 0 {
                index.push(',');
            }
            index.push_str(&format!("\n{{\"file\": {file:?}, \"name\": {:?}}}", name(row)));
        }
        // A fixed number of a large folder of TIFF files is looked into.
        for i in (0..32).filter(|_| format == "tiff") {
            let file = path.join(format!("{:06}-x{ending}", i * (N - 1) / 31));
            std::fs::copy(sample.join(format!("sample{ending}")), file).unwrap();
        }
        std::fs::write(path.join("wellread-names.json"), format!("{index}\n]}}\n")).unwrap();
        let store =
            open(&path, &OpenOptions { format: Some(format.into()), ..OpenOptions::default() }).unwrap();
        assert_eq!(store.len(), N);
        for row in 0..N {
            assert_eq!(store.name(row).unwrap(), name(row));
        }
        assert!(store.row_info(1).is_err(), "the files themselves hold nothing");
    }
}
