//! Conversions: what they keep, check and record.

use crate::support::{arg, formats, generate, has_format, json, wellread};
use serde_json::Value;
use std::path::Path;

#[test]
fn converting_in_a_circle_keeps_pixels_and_metadata() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--channels", "2", "--depth", "3", "--formats", "parquet"]);
    let start = set.join("images.parquet");
    let first = json(&["checksum", arg(&start)]);
    let channels = json(&["info", arg(&start)])["channels"].clone();
    let size = json(&["info", arg(&start)])["physical_size_um"].clone();
    assert!(size.is_array());
    let mut from = start;
    for (target, format) in [
        ("a", "tiff"),
        ("b", "ome-zarr"),
        ("c.parquet", "parquet"),
        ("d.lance", "lance"),
        ("e.vortex", "vortex"),
        ("f.ome.zarr", "ome-zarr"),
        ("g.duckdb", "duckdb"),
        ("h.parquet", "parquet-duckdb"),
        ("i", "ome-arrow-dataset"),
        ("j", "tiff"),
    ] {
        if !has_format(format) {
            continue;
        }
        let to = dir.path().join(target);
        json(&["convert", arg(&from), arg(&to), "--format", format]);
        let strip = |list: &Value| -> Vec<Value> {
            list.as_array()
                .unwrap()
                .iter()
                .map(|i| serde_json::json!([i["name"], i["sha256"], i["shape_tczyx"]]))
                .collect()
        };
        assert_eq!(strip(&json(&["checksum", arg(&to)])), strip(&first), "{target}");
        let info = json(&["info", arg(&to)]);
        assert_eq!(info["physical_size_um"], size, "{target}");
        let names = |c: &Value| c.as_array().unwrap().iter().map(|c| c["name"].clone()).collect::<Vec<_>>();
        assert_eq!(names(&info["channels"]), names(&channels), "{target}");
        from = to;
    }
}

/// Output is read back unless that is left out, and the document and the last line say which.
#[test]
fn a_conversion_is_verified_unless_that_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let source = set.join("tiff");
    for (name, format) in [("a.parquet", "parquet"), ("a-zarr", "ome-zarr")] {
        let target = dir.path().join(name);
        let convert = ["convert", arg(&source), arg(&target), "--format", format, "--overwrite"];
        let checked = json(&convert);
        assert_eq!(checked["verified"], true, "{format}");
        assert!(checked["verify_seconds"].as_f64().unwrap() > 0.0, "{format}: {checked}");
        let sums = json(&["checksum", arg(&target)]);
        let unchecked = json(&[&convert[..], &["--no-verify"]].concat());
        assert_eq!(unchecked["verified"], false, "{format}");
        assert_eq!(unchecked["verify_seconds"], Value::Null, "{format}");
        assert_eq!(unchecked["images"], 3);
        // The same is written.
        assert_eq!(json(&["checksum", arg(&target)]), sums, "{format}");
        let said = |more: &[&str]| wellread(&[&convert[..], more].concat()).stdout;
        assert!(said(&[]).contains("read back and compared in "), "{format}");
        assert!(!said(&["--no-verify"]).contains("read back"), "{format}");
    }
}

/// The layout that is recorded is that of the chunks, whatever they were asked for by.
#[test]
fn a_dataset_names_the_layout_of_its_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff", "--channels", "2", "--depth", "3"]);
    for (i, (more, layout)) in [
        (&[][..], "z-plane"),
        (&["--chunk", "1,2,3,40,56"], "image"),
        (&["--chunk", "1,1,3,999,999"], "volume"),
        (&["--chunk", "1,1,1,40,56"], "z-plane"),
        (&["--chunk", "1,1,1,16,16"], "tile"),
        (&["--chunk", "1,1,2,16,16"], "block"),
        (&["--variant", "volume"], "volume"),
    ]
    .into_iter()
    .enumerate()
    {
        let target = dir.path().join(format!("{i}"));
        json(&[&["convert", arg(&set.join("tiff")), arg(&target), "--layout", "dataset"], more].concat());
        let info = wellread(&["info", arg(&target)]).stdout;
        assert!(info.contains(&format!("({layout})")), "{more:?} {layout}: {info}");
        let description = std::fs::read(target.join("_ome_arrow_dataset.json")).unwrap();
        let description: Value = serde_json::from_slice(&description).unwrap();
        assert_eq!(description["choice"]["layout"], layout, "{more:?}");
        let verified = json(&["verify", arg(&target), "--against", arg(&set.join("expected.json"))]);
        assert_eq!(verified["passed"], true, "{more:?}");
    }
}

/// A table's pixels are of one type, which holds those of all images, whatever the first is.
#[test]
fn images_of_several_types_go_into_every_table() {
    let dir = tempfile::tempdir().unwrap();
    for (mix, types) in
        [["uint8", "uint16"].as_slice(), &["int16", "uint16", "uint8"], &["uint16", "float32", "uint32"]]
            .into_iter()
            .enumerate()
    {
        let source = dir.path().join(format!("source-{mix}"));
        std::fs::create_dir(&source).unwrap();
        for (i, dtype) in types.iter().enumerate() {
            let set = dir.path().join(format!("{mix}-{dtype}"));
            generate(&set, 3, &["--formats", "tiff", "--dtype", dtype, "--seed", &i.to_string()]);
            for (k, file) in std::fs::read_dir(set.join("tiff")).unwrap().flatten().enumerate() {
                std::fs::copy(file.path(), source.join(format!("{k}-{dtype}.tiff"))).unwrap();
            }
        }
        for format in formats() {
            if ["tiff", "image-folder", "ome-zarr"].contains(&format.as_str()) {
                continue;
            }
            let target = dir.path().join(format!("{mix}-{format}"));
            json(&["convert", arg(&source), arg(&target), "--mixed", "--format", &format]);
            let read = ["--read-as", format.as_str()];
            let sums = |path: &std::path::Path, more: &[&str]| {
                let list = json(&[&["checksum", arg(path)], more].concat());
                let list = list.as_array().unwrap().iter();
                list.map(|i| serde_json::json!([i["dtype"], i["sha256"], i["shape_tczyx"]]))
                    .collect::<Vec<_>>()
            };
            assert_eq!(sums(&target, &read), sums(&source, &[]), "{format} {types:?}");
        }
    }
}

/// Images that cannot be read are left out where that is asked for, and named; all others are there.
#[test]
fn images_that_cannot_be_read_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    generate(&dir.path().join("set"), 8, &["--formats", "tiff"]);
    let source = dir.path().join("set/tiff");
    let sums = |path: &Path| -> Vec<(String, String)> {
        let text = |image: &Value, field: &str| image[field].as_str().unwrap().to_owned();
        let images = json(&["checksum", arg(path)]);
        images.as_array().unwrap().iter().map(|one| (text(one, "name"), text(one, "sha256"))).collect()
    };
    let mut expected = sums(&source);
    let mut files: Vec<_> = std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let whole = std::fs::read(&files[2]).unwrap();
    std::fs::write(&files[2], &whole[..whole.len() / 2]).unwrap();
    std::fs::write(&files[5], b"II*\0").unwrap();
    let names = [2, 5].map(|row| expected[row].0.clone());
    expected.retain(|(name, _)| !names.contains(name));
    let target = dir.path().join("some.parquet");
    let refused = wellread(&["convert", arg(&source), arg(&target)]);
    assert_eq!((refused.code, target.exists()), (1, false), "{}", refused.stderr);
    // Which others cannot be read, and how to do without them.
    let list = format!("`wellread verify {}` lists all of them", arg(&source));
    let way = format!("--on-error skip leaves such images out; {list}");
    assert!(refused.stderr.contains(&way), "{}", refused.stderr);
    let described = wellread(&["info", arg(&source)]);
    assert!(described.code == 1 && described.stderr.contains(&list), "{}", described.stderr);
    let done = json(&["convert", arg(&source), arg(&target), "--on-error", "skip"]);
    assert_eq!((&done["images"], &done["images_skipped"]), (&6.into(), &2.into()));
    for (skipped, (row, name)) in done["skipped"].as_array().unwrap().iter().zip([2, 5].iter().zip(&names)) {
        assert_eq!(skipped["row"], *row, "{skipped}");
        let reason = skipped["reason"].as_str().unwrap();
        assert!(reason.starts_with(&format!("{name}.ome.tiff: ")), "{skipped}");
    }
    assert_eq!(sums(&target), expected);
    // Checksums and statistics leave out the same.
    assert_eq!(wellread(&["checksum", arg(&source)]).code, 1);
    let read = json(&["checksum", arg(&source), "--on-error", "skip"]);
    let rows: Vec<_> = read.as_array().unwrap().iter().map(|one| one["row"].clone()).collect();
    assert_eq!(rows, [0, 1, 3, 4, 6, 7].map(Value::from));
    let said = wellread(&["checksum", arg(&source), "--on-error", "skip"]).stderr;
    assert!(said.starts_with("left out: row 2: ") && said.contains("\nleft out: row 5: "), "{said}");
    assert_eq!(wellread(&["stats", arg(&source)]).code, 1);
    let counted = json(&["stats", arg(&source), "--on-error", "skip"]);
    assert_eq!(counted["skipped"], done["skipped"]);
    let of_target = json(&["stats", arg(&target)]);
    assert_eq!((&counted["images"], &counted["channels"]), (&6.into(), &of_target["channels"]));
    assert_eq!(of_target["skipped"], Value::Null);
    // With nothing to read there is nothing to write.
    for file in &files {
        std::fs::write(file, b"II*\0").unwrap();
    }
    let refused = wellread(&["convert", arg(&source), arg(&target), "--overwrite", "--on-error", "skip"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert_eq!(sums(&target), expected);
}

#[test]
fn a_target_that_is_much_larger_than_its_source_says_what_makes_it_smaller() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let size = ["--images", "3", "--size", "1000x1000", "--formats", "tiff", "--compression", "deflate"];
    json(&[&["generate", arg(&set)][..], &size].concat());
    let source = set.join("tiff");
    let convert = |name: &str, more: &[&str]| {
        let target = dir.path().join(name);
        let how = ["convert", arg(&source), arg(&target), "--format", "tiff"];
        wellread(&[&how[..], more].concat()).stderr
    };
    let said = convert("bare", &[]);
    assert!(said.contains(" of the source (--tune size makes it smaller"), "{said}");
    assert!(said.contains("bare takes 5.7 MiB, 1."), "{said}");
    let said = convert("packed", &["--tune", "size"]);
    assert!(!said.contains("of the source"), "{said}");
}
