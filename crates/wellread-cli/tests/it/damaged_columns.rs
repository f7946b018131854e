//! Columns beside images that are damaged: `verify` reads them too, and names the column.

use crate::support::{arg, generate, image_names, wellread};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A value that stands in the files as it is.
const MARK: &str = "Zx81-uniqueQwertz";

/// The file below `path` that has the mark, and where.
fn marked(path: &Path) -> Option<(PathBuf, usize)> {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().find_map(|entry| marked(&entry.unwrap().path()));
    }
    let bytes = fs::read(path).unwrap();
    bytes.windows(MARK.len()).position(|window| window == MARK.as_bytes()).map(|at| (path.to_owned(), at))
}

#[test]
fn a_damaged_column_is_a_problem_of_verify() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    let table = dir.path().join("doses.csv");
    let rows: Vec<String> = image_names(&tiff)
        .iter()
        .enumerate()
        .map(|(row, name)| format!("{name},{MARK}{row},{row}"))
        .collect();
    fs::write(&table, format!("image,compound,dose\n{}\n", rows.join("\n"))).unwrap();
    for (format, name) in [("parquet", "a.parquet"), ("ome-arrow-dataset", "a"), ("ome-zarr", "zarr")] {
        let target = dir.path().join(name);
        let done = wellread(&[
            "convert",
            arg(&tiff),
            arg(&target),
            "--format",
            format,
            "--join",
            arg(&table),
            "--on",
            "image",
        ]);
        assert_eq!(done.code, 0, "{format}: {}", done.stderr);
        let done = wellread(&["verify", arg(&target)]);
        assert_eq!(done.code, 0, "{format}: {}", done.stderr);
        // Some formats keep the key of the join, too.
        let columns = if done.stdout.contains(" and 3 columns read without error") { 3 } else { 2 };
        let said = format!(" and {columns} columns read without error");
        assert!(done.stdout.contains(&said), "{format}: {}", done.stdout);
        // The first place is in a page; footers have it as a bound later on.
        let (file, at) = marked(&target).unwrap_or_else(|| panic!("{format} has no {MARK}"));
        let mut bytes = fs::read(&file).unwrap();
        bytes[at + 2] ^= 1;
        fs::write(&file, bytes).unwrap();
        for more in [&[][..], &["--against", arg(&tiff)]] {
            let done = wellread(&[&["--json", "verify", arg(&target)], more].concat());
            assert_eq!(done.code, 1, "{format} {more:?}: {}", done.stdout);
            let document: Value = serde_json::from_str(&done.stdout).unwrap();
            assert_eq!(
                (&document["passed"], &document["columns"]),
                (&Value::from(false), &Value::from(columns))
            );
            assert_eq!(document["differences"], serde_json::json!({"column": 1}), "{format}");
            let problem = &document["problems"][0];
            assert_eq!(
                (&problem["name"], &problem["kind"]),
                (&Value::from("compound"), &Value::from("column"))
            );
            assert!(problem["problem"].as_str().unwrap().contains("checksum"), "{format}: {problem}");
            assert_eq!(
                document["summary"],
                serde_json::json!([format!("1 of {columns} columns cannot be read (first, \"compound\")")])
            );
            assert!(done.stderr.contains("compound: the column cannot be read"), "{format}: {}", done.stderr);
        }
    }
}
