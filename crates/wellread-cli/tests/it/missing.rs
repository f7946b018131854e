//! Engines, libraries and frameworks that are not there: each reason takes one line, however many tables it stands in.

use crate::support::{arg, wellread, wellread_with};

/// Few images and few configurations of two benchmarks.
const SMALL: [&str; 21] = [
    "--images",
    "4",
    "--size",
    "16x16",
    "--repeats",
    "1",
    "--samples",
    "4",
    "--access",
    "random",
    "--transform",
    "none",
    "--cache",
    "none",
    "--batch-sizes",
    "2",
    "--workers",
    "0",
    "--time-budget",
    "100000",
    "--no-cold",
];

/// The names in each line on what is missing.
fn told(stdout: &str) -> Vec<Vec<&str>> {
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("  unavailable: "));
    lines.map(|line| line.split_once(": ").unwrap().0.split("; ").collect()).collect()
}

/// The reason in each of these lines.
fn reasons_of(stdout: &str) -> impl Iterator<Item = &str> {
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("  unavailable: "));
    lines.map(|line| line.split_once(": ").unwrap().1)
}

/// No build has a library of DuckDB here.
#[test]
fn each_engine_that_is_missing_is_in_one_line_of_all_tables() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("libduckdb.so");
    let without = |args: &[&str]| wellread_with(("WELLREAD_DUCKDB", &absent), args);
    let doctor = without(&["--json", "doctor", "--python", "no-such-python"]).stdout;
    let doctor: serde_json::Value = serde_json::from_str(&doctor).unwrap();
    let missing = doctor["formats_missing"].as_array().unwrap();
    let missing: Vec<&str> = missing.iter().map(|format| format["name"].as_str().unwrap()).collect();
    assert!(missing.contains(&"duckdb"), "{missing:?}");

    let out = dir.path().join("results");
    let bench = ["bench", "storage", "dataset", "dataloader", "--formats", "all", "--out", arg(&out)];
    let done = without(&[&bench[..], &SMALL].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    for name in ["storage: ", "dataset: ", "dataloader: "] {
        assert!(done.stdout.lines().any(|line| line.starts_with(name)), "{}", done.stdout);
    }
    let told = told(&done.stdout);
    for format in &missing {
        let lines = told.iter().filter(|names| names.contains(format)).count();
        assert_eq!(lines, 1, "{format}: {}", done.stdout);
    }
    // One reason is one line. Here it is the library that is not there, in a light build the build as well.
    let mut reasons: Vec<&str> = reasons_of(&done.stdout).collect();
    let lines = reasons.len();
    reasons.sort_unstable();
    reasons.dedup();
    assert!(lines > 0 && reasons.len() == lines, "{}", done.stdout);
}

#[cfg(unix)]
#[test]
fn a_framework_that_is_missing_is_one_line_of_all_tables() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let (python, out) = (dir.path().join("python"), dir.path().join("results"));
    std::fs::write(&python, "#!/bin/sh\nexit 3\n").unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let bench = ["bench", "dataset", "dataloader", "--framework", "rust,pytorch", "--python", arg(&python)];
    let formats = ["--formats", "tiff,parquet", "--out", arg(&out)];
    let done = wellread(&[&bench[..], &formats, &SMALL].concat());
    // The others are measured all the same.
    assert_eq!(done.code, 1, "{}", done.stdout);
    assert!(done.stderr.contains("error: nothing was measured of pytorch: "), "{}", done.stderr);
    assert_eq!(told(&done.stdout), [["pytorch"]], "{}", done.stdout);
    assert!(out.join("dataloader.parquet").exists());
}
