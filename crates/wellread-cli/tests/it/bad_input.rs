//! Bad input gives a message that names file and cause, and the right exit code; nothing is left half-written.
//!
//! Long because it is the list of what is refused, a case each.

use crate::support::{
    absent_formats, arg, files_below, formats, generate, has_format, json, leftovers, wellread, wellread_with,
};
use std::fs;
use std::path::PathBuf;

/// Expects failure with `code` and all of `words` in the message.
fn fails(args: &[&str], code: i32, words: &[&str]) {
    let done = wellread(args);
    assert_eq!(done.code, code, "{args:?}: {}{}", done.stdout, done.stderr);
    for word in words {
        assert!(done.stderr.contains(word), "{args:?}: no {word:?} in: {}", done.stderr);
    }
}

#[test]
fn the_name_of_a_file_is_no_folder_of_results() {
    let folders: [&[&str]; 7] = [
        &["bench", "dataset", "--output"],
        &["bench", "dataset", "--data-dir"],
        &["infer", "--output"],
        &["infer", "--output-dir"],
        &["rerun", "none", "--output"],
        &["advise", "none", "--scratch"],
        &["tasks", "train", "--config", "none.csv", "--output", "out.json", "--report"],
    ];
    for command in folders {
        fails(&[command, &["no/run.json"]].concat(), 2, &["takes a folder", "(hint: write no/run)"]);
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    fails(&["no-such-command"], 2, &[]);
    // The worker of infer is no command for people.
    let mistyped = wellread(&["infoo"]).stderr;
    assert!(mistyped.contains("'info'") && !mistyped.contains("worker"), "{mistyped}");
    let address = wellread(&["info", "file:///tmp/x"]);
    assert!(
        address.code != 0 && address.stderr.contains("give the path itself: /tmp/x"),
        "{}",
        address.stderr
    );
    let address = wellread(&["info", "file://localhost/tmp/my%20plate%"]).stderr;
    assert!(address.contains("give the path itself: /tmp/my plate%"), "{address}");
    for spelled in ["S3", "s3a"] {
        let said = wellread(&["info", &format!("{spelled}://lab/a.tif")]).stderr;
        assert!(said.contains("write s3://lab/a.tif"), "{said}");
    }
    // Before anything is read: none of the sets and results is there.
    let commands: [&[&str]; 13] = [
        &["generate"],
        &["stats", "none", "--out"],
        &["view", "none", "--out"],
        &["embed", "none", "--model", "none.onnx", "--out"],
        &["infer", "--out"],
        &["infer", "--output-dir"],
        &["bench", "dataset", "--out"],
        &["bench", "dataset", "--data-dir"],
        &["compare", "none", "none", "--markdown"],
        &["compare", "none", "--history"],
        &["rerun", "none", "--out"],
        &["tasks", "train", "--config", "none.csv", "--output"],
        &["stats", "none", "--trace"],
    ];
    for command in commands {
        let address = "s3://bucket/results";
        fails(&[command, &[address]].concat(), 2, &[address, "is an address", "give a local path"]);
    }
    fails(&["bench"], 2, &["WHAT"]);
    fails(&["bench", "nonsense", "--out", arg(&out)], 2, &["nonsense", "dataloader"]);
    fails(&["bench", "loop", "--model", "alexnet", "--out", arg(&out)], 2, &["alexnet", "small-cnn"]);
    fails(&["bench", "dataset", "--transform", "blur", "--out", arg(&out)], 2, &["blur", "augment"]);
    fails(&["bench", "all", "--batch-sizes", "0", "--out", arg(&out)], 2, &["at least one"]);
    fails(&["generate", arg(&out), "--size", "100"], 2, &["HEIGHTxWIDTH"]);
    fails(&["generate", arg(&out), "--size", "9999999x9999999"], 2, &["more than wellread accepts"]);
    let huge = wellread(&["generate", arg(&out), "--size", "1000000000000x1000000000000"]);
    assert!(huge.code == 2 && huge.stderr.contains("are too large"), "{}", huge.stderr);
    assert!(!huge.stderr.contains("corrupt"), "{}", huge.stderr);
    fails(&["generate", arg(&out), "--formats", "hdf5"], 2, &["hdf5", "parquet"]);
    fails(&["generate", arg(&out), "--dtype", "complex64"], 2, &["complex64", "uint16"]);
    fails(&["generate", arg(&out), "--kind", "noise", "--masks"], 2, &["--masks"]);
    fails(&["convert", "a", "b"], 2, &["--format"]);
    fails(&["convert", "a", "b.parquet", "--compression", "rar"], 2, &["rar", "zstd"]);
    fails(&["convert", "a", "b.parquet", "--chunk", "1,2"], 2, &["T,C,Z,Y,X"]);
    assert!(!out.exists());
}

/// An option that would change nothing is not taken in silence.
#[test]
fn options_that_contradict_or_do_nothing_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff,parquet"]);
    let (tiff, parquet) = (set.join("tiff"), set.join("images.parquet"));
    for path in [&tiff, &parquet] {
        fails(&["info", arg(path), "--table", "plate"], 2, &["has no tables", "leave table out"]);
        fails(&["stats", arg(path), "--level", "1"], 2, &["has no multiscale levels", "leave level out"]);
    }
    for set in [&tiff, &parquet] {
        fails(&["stats", arg(set), "--by", "nope"], 2, &["has no column \"nope\""]);
    }
    let level = ["verify", arg(&tiff), "--against", arg(&parquet), "--level", "1"];
    fails(
        &level,
        2,
        &["has no multiscale levels", "--level is of the first set; put the set with levels first"],
    );
    fails(&["info", arg(&tiff), "--column", "foo"], 2, &["has no columns of images", "leave column out"]);
    let with_tables: Vec<_> =
        formats().into_iter().filter(|f| ["duckdb", "lance"].contains(&f.as_str())).collect();
    for format in &with_tables {
        fails(&["verify", arg(&tiff), "--table", "plate"], 2, &["leave table out; it is for", format]);
    }
    let target = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for (layout, name, ending) in [
        ("dataset", "a.parquet", "parquet"),
        ("nested", "a.zarr", "ome-zarr"),
        ("nested", "a.lance", "lance"),
    ] {
        let message = ["layout of the target", ending, "leave the layout out"];
        fails(&["convert", arg(&tiff), &target(name), "--layout", layout], 2, &message);
    }
    json(&["convert", arg(&tiff), &target("b.parquet"), "--layout", "nested"]);
    // Settings of an engine that is not there are said to be without effect; sets are written all the same.
    let tuned = |name: &str, more: &[&str]| {
        let done = wellread(&[&["convert", arg(&tiff), &target(name), "--tune", "size"], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr.contains("--tune size changes nothing")
    };
    assert!(tuned("zarr", &["--format", "ome-zarr"]) && tuned("png", &["--format", "image-folder"]));
    assert!(tuned("lzw", &["--format", "tiff", "--compression", "lzw"]));
    assert!(!tuned("tiff", &["--format", "tiff"]) && !tuned("c.parquet", &[]));
}

/// A request for something that a format does not have is wrong usage, not a failure.
#[test]
fn what_a_format_does_not_have_is_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    let before = files_below(dir.path());
    let asked: [(&str, &[&str], &str); 21] = [
        ("out.jpg", &[], "written as PNG"),
        ("png", &["--format", "image-folder", "--compression", "lzw"], "PNG has no compression lzw"),
        ("png", &["--format", "image-folder", "--variant", "jpeg"], "has no variant \"jpeg\""),
        ("a.parquet", &["--compression", "lzw"], "Parquet has no compression lzw"),
        ("a.parquet", &["--variant", "ome"], "no variant \"ome\""),
        ("a.parquet", &["--shard", "1,1,1,8,8"], "no shards"),
        ("dataset", &["--format", "ome-arrow-dataset", "--variant", "x"], "has no layout \"x\""),
        ("a.zarr", &["--variant", "0.3"], "there are 0.4 and 0.5"),
        ("a.zarr", &["--compression", "lzw"], "OME-Zarr has no compression lzw"),
        ("zarr", &["--format", "ome-zarr", "--shard", "1,1,1,7,7"], "choose a shard"),
        ("zarr", &["--format", "ome-zarr", "--chunk", "1,1,1,16,0"], "is empty"),
        ("dataset", &["--format", "ome-arrow-dataset", "--chunk", "1,1,1,16,0"], "is empty"),
        ("a.parquet", &["--chunk", "1,1,1,16,0"], "not possible in OME-Arrow"),
        ("tiles", &["--format", "tiff", "--chunk", "1,1,1,17,23"], "X = 0 for strips of Y rows"),
        ("tiles", &["--format", "tiff", "--chunk", "1,1,1,0,0"], "X may be 0"),
        ("a.tiff", &["--variant", "0.4"], "TIFF has no variant \"0.4\""),
        ("a.tiff", &["--compression", "snappy"], "TIFF has no compression snappy"),
        ("a.tiff", &["--shard", "1,1,1,16,16"], "TIFF files have no shards"),
        ("png", &["--format", "image-folder", "--shard", "1,1,1,8,8"], "PNG files have no shards"),
        ("png", &["--format", "image-folder", "--chunk", "1,1,1,8,8"], "PNG files have no chunks"),
        (
            "dataset",
            &["--layout", "dataset", "--variant", "z-plane", "--chunk", "1,1,1,8,8"],
            "give one of them",
        ),
    ];
    for (target, more, said) in asked {
        let target = dir.path().join(target);
        fails(&[&["convert", arg(&tiff), arg(&target)], more].concat(), 2, &[said]);
    }
    for format in ["lance", "vortex", "duckdb"].into_iter().filter(|format| has_format(format)) {
        let target = dir.path().join("table");
        let command = ["convert", arg(&tiff), arg(&target), "--format", format, "--compression", "lzw"];
        fails(&command, 2, &["has no compression lzw"]);
    }
    assert_eq!(files_below(dir.path()), before);
}

/// The hint about chunks of TIFF can be followed.
#[test]
fn strips_are_asked_for_by_a_width_of_0() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 1, &["--formats", "parquet"]);
    let (images, strips) = (set.join("images.parquet"), dir.path().join("strips"));
    let command =
        ["convert", arg(&images), arg(&strips), "--format", "tiff", "--chunk", "1,1,1,16,0", "--resume"];
    json(&command);
    let files = files_below(&strips);
    let (_, bytes) = files.iter().find(|(path, _)| path.extension().is_some_and(|e| e == "tiff")).unwrap();
    // The directory has RowsPerStrip (278) of 16, and no TileWidth (322).
    let at = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let tags = usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let tag = |number: u16| {
        let mut entries = bytes[at + 2..at + 2 + 12 * tags].chunks_exact(12);
        let entry = entries.find(|entry| entry[..2] == number.to_le_bytes())?;
        Some(u16::from_le_bytes([entry[8], entry[9]]))
    };
    assert_eq!((tag(278), tag(322)), (Some(16), None));
    // The same command finds its work done.
    json(&command);
}

/// The error names the feature that brings a format which this build lacks, wherever its name or ending is given.
#[test]
fn formats_that_were_left_out_say_which_feature_is_off() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    for (format, ending) in [("lance", ".lance"), ("vortex", ".vortex"), ("duckdb", ".duckdb")] {
        if !absent_formats().iter().any(|f| f == format) {
            continue;
        }
        let target = dir.path().join(format!("x{ending}"));
        let message = [format, "not in this build", &format!("--features {format}")];
        fails(&["convert", arg(&tiff), arg(&target)], 2, &message);
        fails(&["convert", arg(&tiff), arg(&target), "--format", format], 2, &message);
        fails(&["bench", "storage", "--formats", format, "--out", arg(&target)], 2, &message);
        assert!(!target.exists());
    }
}

/// DuckDB's library is loaded when a database is opened. Without it everything else works, and each way to DuckDB says how to get it.
#[test]
fn a_library_that_is_not_there_is_named_with_how_to_get_it() {
    if !has_format("duckdb") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff,duckdb"]);
    let (tiff, database) = (set.join("tiff"), set.join("images.duckdb"));
    let absent = dir.path().join("libduckdb.so");
    let without = |args: &[&str]| wellread_with(("WELLREAD_DUCKDB", &absent), args);

    let target = dir.path().join("x.duckdb");
    for args in [
        &["info", arg(&database)][..],
        &["verify", arg(&database)],
        &["convert", arg(&tiff), arg(&target)],
        &["info", arg(&database), "--read-as", "duckdb"],
    ] {
        let done = without(args);
        assert_eq!(done.code, 1, "{args:?}: {}", done.stderr);
        for said in ["libduckdb.so", "WELLREAD_DUCKDB", "package duckdb"] {
            assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
        }
    }
    assert!(!target.exists());
    assert_eq!(without(&["info", arg(&tiff)]).code, 0);

    let doctor: serde_json::Value = serde_json::from_str(&without(&["--json", "doctor"]).stdout).unwrap();
    let missing: Vec<_> =
        doctor["formats_missing"].as_array().unwrap().iter().map(|m| m["name"].clone()).collect();
    assert!(["duckdb", "parquet-duckdb"].iter().all(|name| missing.contains(&(*name).into())), "{missing:?}");

    // All formats are those that can be used; the others stand in the result with their reasons.
    let out = dir.path().join("bench");
    let bench = |formats: &str, out: &std::path::Path| {
        let images = ["--images", "4", "--size", "16x16", "--repeats", "1"];
        without(
            &[&["--json", "bench", "storage", "--formats", formats, "--out", arg(out)], &images[..]].concat(),
        )
    };
    let done = bench("all", &out);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let summary = fs::read(out.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    for format in ["duckdb", "parquet-duckdb"] {
        let why = &summary["engines_missing"][format];
        assert!(why.as_str().is_some_and(|why| why.contains("WELLREAD_DUCKDB")), "{format}: {why}");
    }
    let done = bench("duckdb", &target);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stderr.contains("WELLREAD_DUCKDB"), "{}", done.stderr);
}

#[test]
fn missing_empty_and_foreign_paths_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fails(&["info", arg(&path("nothing"))], 1, &["nothing", "check the path"]);
    fs::create_dir(path("empty")).unwrap();
    fails(&["info", arg(&path("empty"))], 1, &["empty", "no image"]);
    fs::write(path("zero.tif"), b"").unwrap();
    fails(&["info", arg(&path("zero.tif"))], 1, &["zero.tif", "empty"]);
    fs::write(path("text.parquet"), b"this is no parquet file at all").unwrap();
    fails(&["info", arg(&path("text.parquet"))], 1, &["text.parquet", "recognised"]);
    fails(&["info", "hdfs://name/plate.parquet"], 1, &["hdfs://", "copy the data"]);
}

#[test]
fn a_folder_of_mixed_formats_is_refused_with_examples() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff,image-folder"]);
    let mixed = dir.path().join("mixed");
    fs::create_dir(&mixed).unwrap();
    for folder in ["tiff", "image-folder"] {
        for entry in fs::read_dir(set.join(folder)).unwrap().flatten() {
            fs::copy(entry.path(), mixed.join(entry.file_name())).unwrap();
        }
    }
    fails(&["info", arg(&mixed)], 1, &["mixed", ".tif", ".png"]);
}

#[test]
fn parquet_without_images_says_which_columns_it_has() {
    // A results table is a Parquet file of numbers.
    let dir = tempfile::tempdir().unwrap();
    let mut table = wellread_report::Table::new("numbers");
    table.push(wellread_report::row![("well", "A1"), ("area", 3.5)]);
    let path = dir.path().join("numbers.parquet");
    table.write_parquet(&path).unwrap();
    fails(&["info", arg(&path)], 1, &["numbers.parquet", "well", "area"]);
}

/// It was found with the second image, after notes on what the target leaves out.
#[test]
fn several_images_for_one_png_are_refused_before_anything_is_said_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let [set, profiles, joined, target] =
        ["set", "profiles.csv", "joined.parquet", "plate.png"].map(|name| dir.path().join(name));
    generate(&set, 2, &["--formats", "tiff"]);
    fs::write(&profiles, "name,dose\ncells-000000,1.5\ncells-000001,2.5\n").unwrap();
    let tiff = set.join("tiff");
    let join = ["convert", arg(&tiff), arg(&joined), "--join", arg(&profiles), "--on", "name"];
    assert_eq!(wellread(&join).code, 0);
    let done = wellread(&["convert", arg(&joined), arg(&target)]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains("plate.png: a target ending in .png holds one image"), "{}", done.stderr);
    assert!(!done.stderr.contains("note:") && !target.exists(), "{}", done.stderr);
    // The command of the hint is taken. A folder alone was refused for want of a format.
    let folder = dir.path().join("plate");
    assert!(
        done.stderr.contains("give a folder such as plate, and --format image-folder)"),
        "{}",
        done.stderr
    );
    let written = wellread(&["convert", arg(&joined), arg(&folder), "--format", "image-folder"]);
    assert!(written.code == 0 && folder.is_dir(), "{}", written.stderr);
}

/// A folder is read in the order of names, and its first set was the one that was named.
#[test]
fn a_report_of_a_set_names_the_set() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "parquet"]);
    let [first, asked] = ["back.parquet", "plate.parquet"].map(|name| dir.path().join(name));
    for copy in [&first, &asked] {
        fs::copy(set.join("images.parquet"), copy).unwrap();
    }
    let done = wellread(&["report", arg(&asked)]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let said = format!("{}: is no result table that can be read", asked.display());
    assert!(done.stderr.contains(&said) && !done.stderr.contains("back.parquet"), "{}", done.stderr);
}

#[test]
fn truncated_files_are_errors_not_panics() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let written = generate(&set, 2, &[]);
    let written = written["written"].as_array().unwrap();
    assert_eq!(written.len(), formats().len());
    for made in written {
        let format = &made["format"];
        let path = PathBuf::from(made["path"].as_str().unwrap());
        let name = path.file_name().unwrap().to_str().unwrap();
        let victim = if path.is_dir() {
            // The largest file holds pixels.
            files_below(&path).into_iter().max_by_key(|(_, content)| content.len()).unwrap().0
        } else {
            path.clone()
        };
        let whole = fs::read(&victim).unwrap();
        for part in [0, 1, 2, 3] {
            fs::write(&victim, &whole[..whole.len() * part / 4]).unwrap();
            let done = wellread(&["verify", arg(&path), "--against", arg(&set.join("expected.json"))]);
            assert_eq!(done.code, 1, "{format} cut at {part}/4: {}{}", done.stdout, done.stderr);
            assert!(done.stderr.contains(name), "{format}: {}", done.stderr);
            // The damaged one of a folder of files.
            if ["tiff", "ome-zarr", "image-folder"].contains(&format.as_str().unwrap()) {
                let file = victim.strip_prefix(&path).unwrap();
                assert!(done.stderr.contains(arg(file)), "{format} cut at {part}/4: {}", done.stderr);
            }
        }
        fs::write(&victim, &whole).unwrap();
        let target = dir.path().join("converted.parquet");
        fs::write(&victim, &whole[..whole.len() / 2]).unwrap();
        let done = wellread(&["convert", arg(&path), arg(&target)]);
        assert_eq!(done.code, 1, "{format}");
        assert!(!target.exists(), "{format}: a half-written target was left");
        assert_eq!(leftovers(dir.path()), Vec::<String>::new());
        fs::write(&victim, &whole).unwrap();
    }
}

#[test]
fn an_existing_target_is_kept_unless_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let target = dir.path().join("out.parquet");
    fs::write(&target, b"precious").unwrap();
    fails(&["convert", arg(&set.join("tiff")), arg(&target)], 1, &["already exists", "--overwrite"]);
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert_eq!(wellread(&["convert", arg(&set.join("tiff")), arg(&target), "--overwrite"]).code, 0);
    assert!(fs::read(&target).unwrap().starts_with(b"PAR1"));
}

#[test]
fn overwriting_keeps_what_is_hidden_and_links() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff,ome-zarr"]);
    let (source, zarr, target) = (set.join("tiff"), set.join("ome-zarr"), dir.path().join("t"));
    let to = |target, format| ["convert", arg(&source), target, "--format", format, "--overwrite", "--quiet"];
    let (to_target, to_zarr) = (to(arg(&target), "tiff"), to(arg(&zarr), "ome-zarr"));
    for command in [&to_target, &to_target, &to_zarr] {
        let done = wellread(command);
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    fs::create_dir(target.join(".git")).unwrap();
    fs::write(target.join(".git/HEAD"), "x").unwrap();
    fails(&to_target, 1, &["more than a set of images (.git)", "not replaced"]);
    assert_eq!(fs::read_to_string(target.join(".git/HEAD")).unwrap(), "x");
    fs::remove_dir_all(target.join(".git")).unwrap();
    // Only the JSON files that wellread writes are its own.
    fs::write(target.join("notes.json"), "{}").unwrap();
    fails(&to_target, 1, &["more than a set of images (notes.json)", "not replaced"]);
    fs::remove_file(target.join("notes.json")).unwrap();
    let image = fs::read_dir(&zarr).unwrap().map(|e| e.unwrap().path()).find(|p| p.is_dir()).unwrap();
    fs::create_dir(image.join("labels")).unwrap();
    fs::write(image.join("labels/.zattrs"), "{}").unwrap();
    fails(&to_zarr, 1, &["more than a set of images", "/labels)", "not replaced"]);
    assert!(image.join("labels/.zattrs").exists());
    #[cfg(unix)]
    {
        let (link, real) = (dir.path().join("link"), dir.path().join("real"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let done = wellread(&to(arg(&link), "tiff"));
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_dir(&real).unwrap().count(), fs::read_dir(&target).unwrap().count());
    }
}

#[test]
fn generate_keeps_what_is_there_unless_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--masks", "--formats", "tiff,parquet"]);
    let contents = || files_below(&set);
    let before = contents();
    let args = ["generate", arg(&set), "--images", "3", "--size", "40x56", "--seed", "7"];
    let with =
        |more: &[&'static str]| -> Vec<&str> { args.iter().copied().chain(more.iter().copied()).collect() };
    // Any one thing in the way is enough, and then nothing is written.
    fails(&with(&["--formats", "ome-zarr,parquet"]), 1, &["images.parquet", "already exists", "--overwrite"]);
    fails(&with(&["--formats", "ome-zarr"]), 1, &["expected.json", "already exists", "--overwrite"]);
    fs::remove_file(set.join("expected.json")).unwrap();
    fails(&with(&["--formats", "ome-zarr", "--masks"]), 1, &["masks", "already exists", "--overwrite"]);
    assert!(contents().iter().all(|file| before.contains(file)) && !set.join("ome-zarr").exists());
    let done = wellread(&with(&["--formats", "tiff,parquet", "--overwrite", "--quiet"]));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let done = wellread(&["verify", arg(&set.join("tiff")), "--against", arg(&set.join("expected.json"))]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_ne!(contents(), before);
}

/// A reader of the folder would take both for one set.
#[test]
fn generate_adds_nothing_to_a_folder_of_other_images() {
    let dir = tempfile::tempdir().unwrap();
    let (set, others) = (dir.path().join("set"), dir.path().join("others"));
    generate(&set, 2, &["--formats", "tiff"]);
    let files = files_below(&set.join("tiff"));
    let (image, _) =
        files.iter().find(|(path, _)| path.extension().is_some_and(|end| end == "tiff")).unwrap();
    for (folder, name) in [(others.clone(), "a.tif"), (others.join("deeper"), "b.tif")] {
        fs::create_dir_all(&folder).unwrap();
        fs::copy(image, folder.join(name)).unwrap();
    }
    fs::write(others.join("notes.txt"), "text").unwrap();
    let before = files_below(&others);
    let args = ["generate", arg(&others), "--images", "2", "--size", "40x56", "--formats", "image-folder"];
    for more in [&[][..], &["--overwrite"]] {
        let why = ["others", "holds other images already: a.tif, deeper", "choose another folder"];
        fails(&[&args[..], more].concat(), 1, &why);
        assert_eq!(files_below(&others), before);
        assert!(!others.join("image-folder").exists() && !others.join("expected.json").exists());
    }
    // Other files may lie there.
    fs::remove_file(others.join("a.tif")).unwrap();
    fs::remove_dir_all(others.join("deeper")).unwrap();
    assert_eq!(wellread(&[&args[..], &["--dtype", "uint8"]].concat()).code, 0);
}

/// Sets in other formats would stay beside checksums of other images.
#[test]
fn generate_replaces_no_part_of_a_set() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 4, &["--masks", "--formats", "tiff,parquet"]);
    let before = files_below(&set);
    let args = ["generate", arg(&set), "--images", "2", "--size", "40x56", "--overwrite", "--formats"];
    let with = |more: &[&'static str]| [&args[..], more].concat();
    fails(&with(&["parquet"]), 1, &["tiff, masks would stay from the earlier images", "--formats"]);
    fails(&with(&["parquet,tiff"]), 1, &["masks would stay from the earlier images", "--masks"]);
    assert_eq!(files_below(&set), before);
    assert_eq!(wellread(&with(&["parquet,tiff,ome-zarr", "--masks"])).code, 0);
    for name in ["tiff", "images.parquet", "ome-zarr"] {
        let expected = set.join("expected.json");
        assert_eq!(
            wellread(&["verify", arg(&set.join(name)), "--against", arg(&expected)]).code,
            0,
            "{name}"
        );
    }
}

#[test]
fn a_benchmark_does_not_replace_what_it_did_not_prepare() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "parquet"]);
    let before = fs::read(set.join("images.parquet")).unwrap();
    let out = dir.path().join("results");
    let args = ["bench", "storage", "--images", "2", "--out", arg(&out), "--data-dir", arg(&set)];
    fails(&args, 1, &["set: ", "not prepared", "--data-dir"]);
    assert_eq!(fs::read(set.join("images.parquet")).unwrap(), before);
}

#[test]
fn a_row_out_of_range_says_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "parquet"]);
    let path = set.join("images.parquet");
    fails(&["view", arg(&path), "--row", "7"], 2, &["rows 0 to 1"]);
    fails(&["info", arg(&path), "--level", "3"], 2, &["images.parquet", "level"]);
}

/// A full disk: a small tmpfs, where this process may mount one. Elsewhere [`crate::limits`] has files that may not grow.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 40, &["--formats", "parquet", "--kind", "noise"]);
    let small = dir.path().join("small");
    fs::create_dir(&small).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs", arg(&small)])
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        println!(
            "no right to mount a small disk; limits::files_that_may_not_grow_leave_nothing_behind is in its place"
        );
        return;
    }
    let results: Vec<_> = formats()
        .into_iter()
        .map(|format| {
            let target = small.join("target");
            let done =
                wellread(&["convert", arg(&set.join("images.parquet")), arg(&target), "--format", &format]);
            let left: Vec<_> = fs::read_dir(&small).unwrap().flatten().map(|e| e.file_name()).collect();
            (format, done, left)
        })
        .collect();
    let _ = std::process::Command::new("umount").arg(&small).status();
    for (format, done, left) in results {
        assert_eq!(done.code, 1, "{format}");
        assert!(done.stderr.contains("space"), "{format}: {}", done.stderr);
        assert!(left.is_empty(), "{format} left {left:?}");
    }
}
