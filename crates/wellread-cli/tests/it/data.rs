//! Data commands: sets come out as they went in, in every format.

#[cfg(unix)]
use crate::support::interrupt;
use crate::support::{absent_formats, arg, formats, generate, json, wellread};
use serde_json::{Value, json as value};
use wellread_image::{ImageMetadata, PhysicalSize, PixelType, Shape};
use wellread_store::{ImageView, WriteOptions, create};

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
fn one_image_is_one_image() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    generate(&at("one"), 1, &["--formats", "parquet"]);
    generate(&at("two"), 2, &["--formats", "parquet"]);
    for (set, images) in [("one", "1 image"), ("two", "2 images")] {
        let path = at(set).join("images.parquet");
        let said = |args: &[&str]| {
            let done = wellread(args);
            assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
            done.stdout
        };
        let verified = said(&["verify", arg(&path)]);
        assert!(verified.starts_with(&format!("{images} (")), "{verified}");
        let of = said(&["stats", arg(&path)]);
        assert!(of.starts_with(&format!("{images} of uint16\n")), "{of}");
        let converted = said(&["convert", arg(&path), arg(&at(&format!("{set}.parquet")))]);
        assert!(converted.contains(&format!("{images} (")), "{converted}");
        let info = said(&["info", arg(&path)]);
        assert!(info.contains(" in 1 file\n"), "{info}");
    }
    let failed = wellread(&["view", arg(&at("one").join("images.parquet")), "--row", "5", "--out", "x.png"]);
    assert_eq!(failed.code, 2, "{}", failed.stderr);
    assert!(failed.stderr.contains("holds 1 image, rows 0 to 0"), "{}", failed.stderr);
}

#[test]
fn what_is_reckoned_from_some_rows_is_marked() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 7, &["--formats", "parquet"]);
    let path = set.join("images.parquet");
    let said = |more: &[&str]| {
        let done = wellread(&[&["info", arg(&path)][..], more].concat());
        assert_eq!(done.code, 0, "{more:?}: {}", done.stderr);
        done.stdout
    };
    let sampled = said(&["--rows", "1"]);
    assert!(sampled.contains("those of the first 1 of 7 images (--rows)"), "{sampled}");
    // 7 x 40 x 56 pixels of two bytes.
    assert!(sampled.contains("about 30.6 KiB (about "), "{sampled}");
    for all in [said(&[]), said(&["--rows", "7"])] {
        assert!(!all.contains("sampled") && !all.contains("about"), "{all}");
        assert!(all.contains(" 30.6 KiB ("), "{all}");
    }
}

/// An interrupted command removes its output with the folder that it made for that; a folder that was there stays.
#[cfg(unix)]
#[test]
fn an_interrupted_generate_leaves_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    for (signal, out, was_there) in [("INT", "new/set", false), ("TERM", "there", true)] {
        let out = dir.path().join(out);
        if was_there {
            std::fs::create_dir(&out).unwrap();
        }
        let args = ["generate", arg(&out), "--images", "100000", "--dtype", "uint8", "--formats", "parquet"];
        interrupt(&args, &out, signal);
        assert_eq!(out.exists(), was_there, "{signal}");
    }
    assert!(!dir.path().join("new").exists(), "it was made for the set");
}

/// Threads that make images go on while unfinished output is removed. They made its folder anew.
#[cfg(unix)]
#[test]
fn an_interrupted_generate_of_many_files_leaves_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    for turn in 0..6 {
        let out = dir.path().join("new");
        let args = [
            "generate",
            arg(&out),
            "--images",
            "100000",
            "--formats",
            "ome-zarr,image-folder,tiff",
            "--quiet",
        ];
        interrupt(&args, &out, "INT");
        assert!(!out.exists(), "turn {turn}");
    }
}

/// A set of which images were removed was put in its place.
#[cfg(unix)]
#[test]
fn an_interrupted_benchmark_leaves_no_part_of_a_set() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    generate(&source, 300, &["--formats", "tiff"]);
    for turn in 0..6 {
        let out = dir.path().join(format!("out-{turn}"));
        let set = out.join("data/ome-zarr");
        let input = source.join("tiff");
        let args = ["bench", "storage", "--input", arg(&input), "--formats", "ome-zarr", "--out", arg(&out)];
        interrupt(&args, &out.join("data"), "INT");
        // It may have been whole before the signal came.
        if set.exists() {
            assert_eq!(json(&["info", arg(&set)])["images"], 300, "turn {turn}");
        }
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

/// One rule for every option that counts threads which do all of the work; `--workers 0` reads without others.
#[test]
fn no_thread_at_all_is_refused_with_what_to_do() {
    for args in [
        &["checksum", "set", "--jobs", "0"][..],
        &["verify", "set", "--jobs", "0"],
        &["stats", "set", "--jobs", "0"],
        &["convert", "set", "set.parquet", "--jobs", "0"],
        &["generate", "set", "--jobs", "0"],
        &["embed", "set", "--model", "resnet50", "--out", "set.parquet", "--threads", "0"],
        &["infer", "--threads", "0"],
    ] {
        let refused = wellread(args);
        let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let hint = "give 1 to 1024, or leave the option out for one per processor";
        assert!(refused.code == 2 && said.contains(hint), "{args:?}: {said}");
    }
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
fn a_sheet_of_shrunk_images_says_how_to_see_one_larger() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("sheet.png");
    for (size, is_shrunk) in [("20x256", false), ("20x300", true)] {
        let set = dir.path().join(size);
        json(&["generate", arg(&set), "--images", "1", "--size", size, "--formats", "parquet"]);
        let view = |more: &[&str]| {
            let done =
                wellread(&[&["view", arg(&set.join("images.parquet")), "--out", arg(&out)], more].concat());
            assert_eq!(done.code, 0, "{}", done.stderr);
            done.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let way = "--row 0 draws that image with sides of up to 2048";
        assert_eq!(view(&[]).contains(way), is_shrunk, "{size}");
        assert_eq!((view(&["--quiet"]), view(&["--row", "0"])), (String::new(), String::new()), "{size}");
        let one = json(&["view", arg(&set.join("images.parquet")), "--row", "0", "--out", arg(&out)]);
        assert_eq!(Some(size), one["width"].as_u64().map(|width| format!("20x{width}")).as_deref());
    }
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
    let devices = document["candle_devices"].as_array().unwrap();
    assert_eq!(devices[0], "cpu");
    let line = done.stdout.lines().find(|line| line.starts_with("  ok       candle "));
    let hint = line.is_some_and(|line| line.contains("need a build with the cargo feature `cuda`"));
    assert!(line.is_some() && hint != devices.contains(&"cuda".into()), "{devices:?}: {}", done.stdout);
    // Every engine of the project is one or the other, and `formats` tells how to get those that are off.
    let all = [formats(), absent_formats()].concat();
    for engine in
        ["parquet", "tiff", "ome-zarr", "image-folder", "lance", "vortex", "duckdb", "parquet-duckdb"]
    {
        assert_eq!(all.iter().filter(|name| *name == engine).count(), 1, "{engine}: {all:?}");
    }
    for absent in document["formats_missing"].as_array().unwrap() {
        let (name, how) = (absent["name"].as_str().unwrap(), absent["how_to_get"].as_str().unwrap());
        let is_off = how.contains("left out of this build") && how.contains("--features");
        assert!(is_off || how.contains("pip install duckdb"), "{how}");
        let line = done.stdout.lines().find(|line| line.contains(&format!("missing  {name} ")));
        assert!(line.is_some_and(|line| line.contains(how)), "{name}: {}", done.stdout);
    }
}

#[test]
fn help_has_examples() {
    let commands =
        ["info", "checksum", "verify", "stats", "convert", "generate", "view", "embed", "bench", "report"];
    for command in commands {
        let done = wellread(&[command, "--help"]);
        assert_eq!(done.code, 0);
        assert!(done.stdout.contains("Example"), "{command}: {}", done.stdout);
    }
    let top = wellread(&["--help"]).stdout;
    assert!(top.starts_with("Convert and check sets of microscopy images"), "{top}");
}

/// A default can be copied from the help text to the command line.
#[test]
fn help_shows_lists_as_they_are_typed() {
    let help = wellread(&["bench", "--help"]).stdout;
    for list in ["1,4,16", "0,2,4", "sequential,random,grouped", "none,normalize,augment", "train,inference"]
    {
        assert!(help.contains(&format!("[default: {list}]")), "{list}: {help}");
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

#[test]
fn verify_says_in_both_forms_whether_damage_would_show() {
    let dir = tempfile::tempdir().unwrap();
    for (name, more, has) in [("with", &[][..], true), ("without", &["--no-checksums"][..], false)] {
        let folder = dir.path().join(name);
        let made = ["generate", arg(&folder), "--images", "2", "--size", "8x8", "--formats", "parquet,tiff"];
        json(&[&made[..], more].concat());
        for set in ["images.parquet", "tiff"] {
            let set = folder.join(set);
            let found = json(&["verify", arg(&set)]);
            assert_eq!((&found["passed"], &found["has_checksums"]), (&true.into(), &has.into()), "{found}");
            let said = wellread(&["verify", arg(&set)]).stdout;
            assert_eq!(said.contains("has no checksums of its own"), !has, "{said}");
        }
    }
}

/// A set of two microscopes, or of two objectives: the size of the first image is not that of all.
#[test]
fn several_sizes_of_pixels_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set.parquet");
    let mut writer = create(&set, "parquet", &WriteOptions::default()).unwrap();
    for (name, side) in [("a", 0.25), ("b", 0.5), ("c", 0.25)] {
        let size = Some(PhysicalSize { value: side, unit: "µm".to_owned() });
        let metadata = ImageMetadata {
            physical_size_y: size.clone(),
            physical_size_x: size,
            ..ImageMetadata::named(name)
        };
        let (shape, dtype) = (Shape::plane(1, 1), PixelType::U8);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[0] }).unwrap();
    }
    writer.finish().unwrap();
    let found = json(&["info", arg(&set)]);
    assert_eq!(found["physical_size_um"], value!([null, 0.25, 0.25]));
    assert_eq!(found["physical_size_um_range"], value!([[null, 0.25, 0.25], [null, 0.5, 0.5]]));
    let said = wellread(&["info", arg(&set)]).stdout;
    let line = "? x 0.2500 to 0.5000 x 0.2500 to 0.5000 µm (ZYX), of 1 image another than of the first";
    assert!(said.contains(line), "{said}");
}
