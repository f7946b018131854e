//! Paths that are not UTF-8: every command takes them, and JSON has them as lossy text.

use crate::support::{Done, arg, generate, has_format, wellread};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path in `folder` with a byte in it that is no UTF-8.
fn odd(folder: &Path, name: &[u8]) -> OsString {
    folder.join(OsStr::from_bytes(name)).into_os_string()
}

fn run(args: &[&OsStr]) -> Done {
    let mut all = vec![OsStr::new("--json")];
    all.extend(args);
    let done = wellread(&all);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    done
}

fn document(args: &[&OsStr]) -> Value {
    let done = run(args);
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stdout))
}

/// As [`document`], of words and paths.
macro_rules! document {
    ($($word:expr),+ $(,)?) => { document(&[$(OsStr::new($word)),+]) };
}

fn ends(value: &Value, end: &str) {
    assert!(value.as_str().is_some_and(|text| text.ends_with(end)), "{value} does not end in {end}");
}

/// Whether the file system takes such names.
fn takes_odd_names(folder: &Path) -> bool {
    std::fs::create_dir(odd(folder, b"x\xff")).is_ok()
}

#[test]
fn sets_at_paths_that_are_not_utf8_go_through_every_command() {
    let dir = tempfile::tempdir().unwrap();
    if !takes_odd_names(dir.path()) || !has_format("tiff") || !has_format("ome-zarr") {
        return;
    }
    generate(&dir.path().join("set"), 2, &["--formats", "tiff"]);
    let plain = dir.path().join("set/tiff");
    let (folder, back) = (odd(dir.path(), b"q\xff"), odd(dir.path(), b"z\xfe"));
    let converted = document!("convert", &plain, &folder, "--format", "tiff");
    ends(&converted["target"], "q\u{fffd}");
    let converted = document!("convert", &folder, &back, "--format", "ome-zarr", "--resume");
    ends(&converted["source"], "q\u{fffd}");
    ends(&converted["target"], "z\u{fffd}");
    let verified = document!("verify", &folder, "--against", &back);
    ends(&verified["path"], "q\u{fffd}");
    assert_eq!(verified["passed"], true);
    ends(&document!("info", &folder)["path"], "q\u{fffd}");
    let picture = odd(dir.path(), b"v\xff.png");
    ends(&document!("view", &folder, "--out", &picture)["out"], "v\u{fffd}.png");
    assert_eq!(document!("checksum", &folder).as_array().map(Vec::len), Some(2));
    run(&[OsStr::new("stats"), &folder]);

    let made = odd(dir.path(), b"g\xff");
    let made = document!("generate", &made, "--images", "2", "--size", "40x56", "--formats", "tiff");
    ends(&made["out"], "g\u{fffd}");
    ends(&made["written"][0]["path"], "g\u{fffd}/tiff");
}

#[test]
fn benchmarks_write_results_to_paths_that_are_not_utf8() {
    let dir = tempfile::tempdir().unwrap();
    if !takes_odd_names(dir.path()) || !has_format("tiff") {
        return;
    }
    generate(&dir.path().join("set"), 4, &["--formats", "tiff"]);
    let out = odd(dir.path(), b"rb\xff");
    let set = dir.path().join("set/tiff");
    let how = ["--in-place", "--no-cold", "--repeats", "2", "--framework", "rust"].map(OsStr::new);
    let args = ["bench", "dataset", "--input", arg(&set), "--out"].map(OsStr::new);
    let summary = document(&[&args[..], &[&out], &how[..]].concat());
    ends(&summary["configuration"]["out"], "rb\u{fffd}");
    assert!(Path::new(&out).join("summary.json").is_file() && Path::new(&out).join("report.html").is_file());
    ends(&document!("report", &out)["report"], "rb\u{fffd}/report.html");
}

/// Engines that take paths as text would write what nobody can open.
#[test]
fn targets_of_engines_that_take_text_are_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    if !takes_odd_names(dir.path()) || !has_format("tiff") {
        return;
    }
    generate(&dir.path().join("set"), 2, &["--formats", "tiff"]);
    let set = dir.path().join("set/tiff");
    let names = [("duckdb", "nu"), ("parquet-duckdb", "np"), ("lance", "nl")];
    for (format, name) in names.into_iter().filter(|(format, _)| has_format(format)) {
        let target = odd(dir.path(), &[name.as_bytes(), b"\xff"].concat());
        let [convert, flag, format_name] = ["convert", "--format", format].map(OsStr::new);
        let words: [&OsStr; 5] = [convert, set.as_os_str(), &target, flag, format_name];
        let done = wellread(&words);
        assert_ne!(done.code, 0, "{format}");
        assert!(done.stderr.contains("is not valid UTF-8"), "{format}: {}", done.stderr);
        assert!(!Path::new(&target).exists(), "{format}");
    }
    // The folder with odd names, and the set.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}
