//! Data commands: what goes in comes out, in every format.

#[cfg(unix)]
use crate::support::interrupt;
use crate::support::{
    Breakable, absent_formats, arg, files_below, formats, generate, has_format, json, wellread,
};
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

/// What an interrupted command made is removed with the folder that it made for that; a folder that was there stays.
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
    let devices = document["candle_devices"].as_array().unwrap();
    assert_eq!(devices[0], "cpu");
    let line = done.stdout.lines().find(|line| line.starts_with("  ok       candle "));
    let hint = line.is_some_and(|line| line.contains("need a build with the cargo feature `cuda`"));
    assert!(line.is_some() && hint != devices.contains(&"cuda".into()), "{devices:?}: {}", done.stdout);
    // Every engine of the project is one or the other, and what is off says how to get it.
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

/// What an interrupted run has left is compared with the source, also without `--no-verify`'s check of all: meanwhile
/// its files may have been replaced.
#[test]
fn a_source_that_has_changed_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 12, &["--formats", "tiff"]);
    let replaced = dir.path().join("replaced");
    generate(&replaced, 12, &["--formats", "tiff", "--seed", "7"]);
    let source = set.join("tiff");
    let mut files: Vec<_> = std::fs::read_dir(&source).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let other = std::fs::read(replaced.join("tiff").join(files[0].file_name().unwrap())).unwrap();
    let whole = std::fs::read(&files[9]).unwrap();
    // The header of one image is wrong for a while; no file changes its size.
    let mut broken = whole.clone();
    broken[..8].fill(b'x');
    for (format, more) in [("tiff", &["--no-verify"][..]), ("tiff", &[]), ("lance", &["--no-verify"])] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("{format}-{}", more.len()));
        let args =
            ["convert", arg(&source), arg(&target), "--format", format, "--read-as", "tiff", "--resume"];
        let args = [&args[..], more].concat();
        std::fs::write(&files[9], &broken).unwrap();
        assert_eq!(wellread(&args).code, 1);
        std::fs::write(&files[9], &whole).unwrap();
        let first = std::fs::read(&files[0]).unwrap();
        assert_eq!(other.len(), first.len(), "not compressed");
        std::fs::write(&files[0], &other).unwrap();
        let refused = wellread(&args);
        assert_eq!(refused.code, 1, "{format} {more:?}: {}", refused.stderr);
        for part in ["row 0", "the source has changed since"] {
            assert!(refused.stderr.contains(part), "{format} {more:?}: {}", refused.stderr);
        }
        assert!(!target.exists());
        let done = json(&args);
        assert_eq!(done["images_resumed"], 0, "{format} {more:?}");
        let verified = json(&["verify", arg(&target), "--against", arg(&source)]);
        assert_eq!(verified["passed"], true, "{format} {more:?}");
        std::fs::write(&files[0], &first).unwrap();
    }
}

/// A conversion that failed half way goes on where it was, with the images that are complete left alone.
#[test]
fn an_interrupted_conversion_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let Breakable { source, files, whole, broken } = Breakable::in_folder(dir.path());
    let set = dir.path().join("set");
    for (format, target) in
        [("tiff", "a"), ("ome-zarr", "b"), ("image-folder", "c"), ("lance", "d"), ("duckdb", "e")]
    {
        if !has_format(format) {
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
        assert_eq!(done["bytes_of_pixels"], json(&["info", arg(&target)])["bytes_of_pixels"], "{format}");
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
        if has_format(format) {
            let refused = wellread(&["convert", arg(&source), "x", "--format", format, "--resume"]);
            assert_eq!(refused.code, 2);
            assert!(refused.stderr.contains(why) && refused.stderr.contains("tiff"), "{}", refused.stderr);
        }
    }
}

/// A finished file that was damaged after an interrupted run is not taken for another source: it is named, and written again by the
/// same run.
#[test]
fn what_was_damaged_since_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let Breakable { source, files, whole, broken } = Breakable::in_folder(dir.path());
    let set = dir.path().join("set");
    for (format, ending) in [("tiff", "tiff"), ("ome-zarr", "zarr"), ("image-folder", "png")] {
        let target = dir.path().join(format!("to-{format}"));
        let args =
            ["convert", arg(&source), arg(&target), "--format", format, "--resume", "--read-as", "tiff"];
        std::fs::write(&files[7], &broken).unwrap();
        assert_eq!(wellread(&args).code, 1);
        std::fs::write(&files[7], &whole).unwrap();
        let left = dir.path().join(format!(".wellread-resume-to-{format}"));
        let mut images: Vec<_> = std::fs::read_dir(&left).unwrap().map(|e| e.unwrap().path()).collect();
        images.retain(|path| path.extension().is_some_and(|e| e == ending || e == "tif"));
        images.sort();
        // The pixels of row 3: the largest file of an image that is a folder.
        let mut of_image = if images[3].is_dir() { files_below(&images[3]) } else { vec![] };
        of_image.sort_by_key(|(_, content)| content.len());
        let damaged = of_image.pop().map_or_else(|| images[3].clone(), |(file, _)| file);
        let content = std::fs::read(&damaged).unwrap();
        std::fs::write(&damaged, &content[..content.len() / 2]).unwrap();
        let done = wellread(&[&args[..], &["--json"]].concat());
        assert_eq!(done.code, 0, "{format}: {}", done.stderr);
        let name = images[3].file_name().unwrap().to_str().unwrap();
        for words in
            ["what an interrupted run has left is damaged", name, "row 3", "3 images before it are kept"]
        {
            assert!(done.stderr.contains(words), "{format}: {words}: {}", done.stderr);
        }
        assert!(!done.stderr.contains("source has changed"), "{format}: {}", done.stderr);
        let document: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(document["images_resumed"], 3, "{format}");
        assert!(!left.exists());
        let verified = json(&["verify", arg(&target), "--against", arg(&set.join("expected.json"))]);
        assert_eq!(verified["passed"], true, "{format}");
    }
}

/// What is complete needs no going on: the same command says so and is done; another set at the target is kept.
#[test]
fn resuming_what_is_complete_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (set, other) = (dir.path().join("set"), dir.path().join("other"));
    generate(&set, 4, &["--formats", "tiff"]);
    generate(&other, 5, &["--formats", "tiff"]);
    for format in ["tiff", "ome-zarr", "image-folder", "lance", "duckdb"] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("target-{format}"));
        let resume = |source: &std::path::Path| {
            wellread(&["convert", arg(source), arg(&target), "--format", format, "--resume"])
        };
        assert_eq!(resume(&set.join("tiff")).code, 0);
        let before = json(&["checksum", arg(&target), "--read-as", format]);
        let again = resume(&set.join("tiff"));
        assert_eq!(again.code, 0, "{format}: {}", again.stderr);
        assert!(
            again.stdout.contains("is complete") && again.stdout.contains("4 images"),
            "{}",
            again.stdout
        );
        assert!(!again.stdout.contains("does not show"), "{}", again.stdout);
        let source = set.join("tiff");
        let document = json(&["convert", arg(&source), arg(&target), "--format", format, "--resume"]);
        assert_eq!((&document["images"], &document["images_resumed"]), (&4.into(), &4.into()));
        let refused = resume(&other.join("tiff"));
        assert!(refused.code == 1 && refused.stderr.contains("already exists"), "{}", refused.stderr);
        // A part that waits to be gone on with is of something that is not complete.
        let left = dir.path().join(format!(".wellread-resume-target-{format}"));
        std::fs::create_dir(&left).unwrap();
        assert_eq!(resume(&set.join("tiff")).code, 1);
        std::fs::remove_dir_all(&left).unwrap();
        assert_eq!(json(&["checksum", arg(&target), "--read-as", format]), before);
    }
}

/// Columns that a complete target has and the source lacks are told, also of formats that keep them beside several images.
#[test]
fn resuming_what_is_complete_tells_columns_that_are_none_now() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let (source, plan) = (set.join("tiff"), dir.path().join("plan.csv"));
    let names = json(&["checksum", arg(&source)]);
    let images = names.as_array().unwrap().iter().zip(["A01,7", "B02,3"]);
    let lines = images.map(|(image, values)| format!("{}.tiff,{values}\n", image["name"].as_str().unwrap()));
    std::fs::write(&plan, format!("file,well,dose\n{}", lines.collect::<String>())).unwrap();
    for target in ["folder", "series.zarr"] {
        let target = dir.path().join(target);
        let resume = |more: &[&str]| {
            let args = ["convert", arg(&source), arg(&target), "--format", "ome-zarr", "--resume"];
            wellread(&[&args[..], more].concat())
        };
        let join = ["--join", arg(&plan), "--on", "file", "--columns"];
        let [both, one] = ["well,dose", "well"].map(|columns| [&join[..], &[columns]].concat());
        let first = resume(&both);
        assert_eq!(first.code, 0, "{}", first.stderr);
        let again = resume(&both);
        assert!(again.code == 0 && again.stdout.contains("is complete"), "{} {}", again.stdout, again.stderr);
        let fewer = resume(&one);
        assert_eq!(fewer.code, 1, "{}", fewer.stdout);
        assert!(fewer.stderr.contains("it has a column \"dose\", which is none now"), "{}", fewer.stderr);
        assert!(!fewer.stderr.contains("\"well\""), "{}", fewer.stderr);
        let none = resume(&[]);
        assert_eq!(none.code, 1, "{}", none.stdout);
        for column in ["well", "dose"] {
            let said = format!("it has a column {column:?}, which is none now");
            assert!(none.stderr.contains(&said), "{}", none.stderr);
        }
    }
}

/// What nobody can see in a set is said, where it is asked for: a level of compression.
#[test]
fn resuming_what_is_complete_says_what_was_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let (source, target) = (set.join("tiff"), dir.path().join("a-zarr"));
    let resume = |level: &str| {
        let args = ["convert", arg(&source), arg(&target), "--format", "ome-zarr", "--resume"];
        wellread(&[&args[..], &["--compression", level]].concat())
    };
    assert_eq!(resume("zstd:3").code, 0);
    let again = resume("zstd:9");
    assert_eq!(again.code, 0, "{}", again.stderr);
    let said = "of the level of --compression zstd:9 it does not show what it was written with";
    assert!(again.stdout.contains("is complete") && again.stdout.contains(said), "{}", again.stdout);
}

/// What was written is read back unless that is left out, and the document and the last line say which.
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
