//! Data commands: what goes in comes out, in every format.

use crate::support::{arg, formats, generate, json, wellread};
use serde_json::Value;

#[test]
fn every_format_holds_the_same_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let written = generate(&set, 5, &[]);
    let expected = set.join("expected.json");
    let written = written["written"].as_array().unwrap();
    let names: Vec<_> = written.iter().map(|set| set["format"].as_str().unwrap()).collect();
    assert_eq!(names, formats());
    for format in written {
        assert_eq!(format["error"], Value::Null);
        let path = format["path"].as_str().unwrap();
        let info = json(&["info", path]);
        // A second reader or writer of a format is recognised as that format.
        let name = format["format"].as_str().unwrap();
        assert_eq!(
            info["format"],
            name.strip_suffix("-default").or(name.strip_suffix("-duckdb")).unwrap_or(name)
        );
        assert_eq!(info["images"], 5);
        assert_eq!(info["shape_tczyx"], serde_json::json!([1, 1, 1, 40, 56]));
        assert_eq!(info["dtype"], "uint16");
        assert_eq!(info["bytes_of_pixels"], 5 * 40 * 56 * 2);
        assert!(info["bytes_on_disk"].as_u64().unwrap() > 0);
        let verified = json(&["verify", path, "--against", arg(&expected)]);
        assert_eq!(verified["passed"], true);
    }
}

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
        ("f", "ome-zarr"),
        ("g.duckdb", "duckdb"),
        ("h.parquet", "parquet-duckdb"),
        ("i", "ome-arrow-dataset"),
        ("j", "tiff"),
    ] {
        if !formats().iter().any(|f| f == format) {
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

#[test]
fn generated_sets_depend_on_the_seed_alone() {
    let dir = tempfile::tempdir().unwrap();
    let sums = |name: &str, more: &[&str]| {
        let out = dir.path().join(name);
        let mut args = vec!["--formats", "tiff"];
        args.extend(more);
        generate(&out, 3, &args);
        std::fs::read_to_string(out.join("expected.json")).unwrap()
    };
    assert_eq!(sums("a", &["--jobs", "1"]), sums("b", &["--jobs", "3"]));
    assert_ne!(sums("c", &["--seed", "1"]), sums("d", &["--seed", "2"]));
}

#[test]
fn masks_are_written_beside_the_images() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--masks", "--formats", "tiff"]);
    let info = json(&["info", arg(&set.join("masks"))]);
    assert_eq!((&info["images"], &info["dtype"]), (&Value::from(2), &Value::from("uint16")));
}

#[test]
fn verify_names_the_rows_that_differ() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 4, &["--formats", "tiff,parquet"]);
    let path = set.join("expected.json");
    let mut expected: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    expected["images"][2]["sha256"] = Value::from("0".repeat(64));
    std::fs::write(&path, expected.to_string()).unwrap();
    let parquet = set.join("images.parquet");
    let done = wellread(&["verify", arg(&parquet), "--against", arg(&path)]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("row 2") && done.stderr.contains("pixels differ"), "{}", done.stderr);
    assert_eq!(json(&["verify", arg(&parquet), "--against", arg(&set.join("tiff"))])["passed"], true);
}

#[test]
fn view_draws_a_png() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 5, &["--formats", "parquet", "--channels", "3"]);
    let out = dir.path().join("sheet.png");
    let document = json(&["view", arg(&set.join("images.parquet")), "--out", arg(&out)]);
    assert_eq!(document["rows"].as_array().unwrap().len(), 5);
    let png = std::fs::read(&out).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    let one = json(&["view", arg(&set.join("images.parquet")), "--row", "3", "--out", arg(&out)]);
    assert_eq!((&one["width"], &one["height"]), (&Value::from(56), &Value::from(40)));
}

#[test]
fn doctor_names_every_format_and_says_what_is_missing() {
    let document = json(&["doctor", "--python", "no-such-python"]);
    assert!(!formats().is_empty());
    for format in document["formats"].as_array().unwrap() {
        for field in ["name", "about", "engine"] {
            assert!(format[field].as_str().is_some_and(|text| !text.is_empty()), "{format}");
        }
    }
    assert_eq!(document["python_missing"], "not found");
    let done = wellread(&["doctor", "--python", "no-such-python"]);
    assert_eq!(done.code, 0);
    assert!(done.stdout.contains("missing  no-such-python"));
}

#[test]
fn help_has_examples() {
    for command in ["info", "checksum", "verify", "stats", "convert", "generate", "view", "bench", "report"] {
        let done = wellread(&[command, "--help"]);
        assert_eq!(done.code, 0);
        assert!(done.stdout.contains("Example"), "{command}: {}", done.stdout);
    }
}

/// A conversion that failed half way goes on where it was, with the images that are complete left alone.
#[test]
fn an_interrupted_conversion_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 12, &["--formats", "tiff"]);
    let source = set.join("tiff");
    let mut files: Vec<_> = std::fs::read_dir(&source).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let whole = std::fs::read(&files[7]).unwrap();
    // The header of one image is wrong for a while; no file changes its size.
    let mut broken = whole.clone();
    broken[..8].fill(b'x');
    for (format, target) in
        [("tiff", "a"), ("ome-zarr", "b"), ("image-folder", "c"), ("lance", "d"), ("duckdb", "e")]
    {
        if !formats().iter().any(|f| f == format) {
            continue;
        }
        let target = dir.path().join(target);
        let args = ["convert", arg(&source), arg(&target), "--format", format, "--resume", "--jobs", "2"];
        std::fs::write(&files[7], &broken).unwrap();
        let failed = wellread(&[&args[..], &["--read-as", "tiff"]].concat());
        assert_eq!(failed.code, 1, "{}", failed.stderr);
        assert!(!target.exists());
        let left =
            dir.path().join(format!(".wellread-resume-{}", target.file_name().unwrap().to_str().unwrap()));
        // A file of a complete image, for tables one of several.
        let first = first_file(&if format == "lance" { left.join("data") } else { left.clone() });
        let before = std::fs::metadata(&first).unwrap().modified().unwrap();
        // Other options would make another set.
        let other = wellread(&[&args[..], &["--read-as", "tiff", "--tune", "size"]].concat());
        assert!(other.code == 1 && other.stderr.contains("other options"), "{}", other.stderr);
        std::fs::write(&files[7], &whole).unwrap();
        let done = json(&[&args[..], &["--read-as", "tiff"]].concat());
        assert_eq!(done["images_resumed"], 7, "{format}");
        assert!(!left.exists());
        if format != "duckdb" {
            let same = target.join(first.strip_prefix(&left).unwrap());
            assert_eq!(std::fs::metadata(same).unwrap().modified().unwrap(), before);
        }
        let verified = json(&["verify", arg(&target), "--against", arg(&set.join("expected.json"))]);
        assert_eq!(verified["passed"], true, "{format}");
    }
    for (format, why) in [
        ("parquet", "index at its end"),
        ("ome-arrow-dataset", "index at its end"),
        ("vortex", "layout at its end"),
        ("parquet-duckdb", "one statement"),
    ] {
        if formats().iter().any(|f| f == format) {
            let refused = wellread(&["convert", arg(&source), "x", "--format", format, "--resume"]);
            assert_eq!(refused.code, 2);
            assert!(refused.stderr.contains(why) && refused.stderr.contains("tiff"), "{}", refused.stderr);
        }
    }
}

fn first_file(folder: &std::path::Path) -> std::path::PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path());
    files.find(|p| p.extension().is_some()).unwrap()
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
            json(&["convert", arg(&source), arg(&target), "--format", &format]);
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

/// Statistics are the same in every format and with any number of threads, and the file holds what is printed.
#[test]
fn statistics_of_a_set() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let written = generate(&set, 20, &["--channels", "2"]);
    // A format that cannot hold such images says so.
    let written = written["written"].as_array().unwrap().iter().filter(|w| w["error"].is_null());
    let paths: Vec<&str> = written.map(|w| w["path"].as_str().unwrap()).collect();
    let mut first = json(&["stats", paths[0], "--jobs", "1"]);
    assert_eq!((&first["images"], &first["dtype"]), (&20.into(), &"uint16".into()));
    let channels = first["channels"].as_array().unwrap();
    assert_eq!(channels.len(), 2);
    for channel in channels {
        assert_eq!(channel["count"], 20 * 40 * 56);
        let counts = channel["histogram"]["counts"].as_array().unwrap();
        assert_eq!(counts.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), 20 * 40 * 56);
        let values = |key: &str| channel[key].as_f64().unwrap();
        assert!(values("min") < values("mean") && values("mean") < values("max") && values("std") > 0.0);
        let percentiles = channel["percentiles"].as_array().unwrap();
        assert_eq!(percentiles.len(), 9);
        assert!(percentiles.windows(2).all(|p| p[0]["value"].as_f64() <= p[1]["value"].as_f64()));
    }
    let out = dir.path().join("stats.json");
    let done = wellread(&["stats", paths[0], "--jobs", "2", "--out", arg(&out)]);
    assert!(
        done.code == 0 && done.stdout.contains("channel 1") && done.stdout.contains("p99.9"),
        "{}",
        done.stdout
    );
    let file: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    assert_eq!(file, first);
    // Names of channels are not kept by every format.
    let strip = |document: &mut Value| {
        for channel in document["channels"].as_array_mut().unwrap() {
            channel["name"] = Value::Null;
        }
    };
    strip(&mut first);
    for path in &paths[1..] {
        let mut other = json(&["stats", path]);
        strip(&mut other);
        assert_eq!(other, first, "{path}");
    }
    let one = json(&["stats", paths[0], "--percentiles", "50"]);
    assert_eq!(one["channels"][0]["percentiles"].as_array().unwrap().len(), 1);
    assert_eq!(wellread(&["stats", paths[0], "--percentiles", "101"]).code, 2);
    let nowhere = dir.path().join("set").join("expected.json").join("stats.json");
    assert_eq!(wellread(&["stats", paths[0], "--out", arg(&nowhere)]).code, 1);
    // An earlier file of statistics may be replaced; a set, or anything else, may not.
    assert_eq!(wellread(&["stats", paths[0], "--out", arg(&out)]).code, 0);
    for there in &paths {
        let done = wellread(&["stats", paths[0], "--out", there]);
        assert!(done.code == 1 && done.stderr.contains("no file of statistics"), "{there}: {}", done.stderr);
        assert_eq!(wellread(&["verify", there]).code, 0);
    }
    assert_eq!(wellread(&["stats", arg(&dir.path().join("nothing"))]).code, 1);
}
