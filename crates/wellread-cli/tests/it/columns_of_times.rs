//! Columns that stop a conversion, as times that no other table has, and what gets a user through; times as text.

use crate::columns::write_parquet;
use crate::support::{arg, generate, has_format, image_names, json, wellread};
use arrow_array::{
    ArrayRef, BinaryArray, Date32Array, DurationSecondArray, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn table(path: &Path) -> RecordBatch {
    let file = std::fs::File::open(path).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap()
}

/// A set of four images with these columns beside them, as somebody else writes it.
fn set_with(folder: &Path, name: &str, columns: &[(&str, ArrayRef)]) -> PathBuf {
    let made = folder.join("made");
    if !made.exists() {
        generate(&made, 4, &["--formats", "parquet"]);
    }
    let images = table(&made.join("images.parquet"));
    let image = images.column_by_name("ome_image").unwrap();
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_parquet(&path, columns.iter().cloned().chain([("ome_image", Arc::clone(image))]));
    path
}

fn numbers(values: [i64; 4]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// Groups by dates and times are called by them. Their numbers alone told nobody anything.
#[test]
fn groups_by_dates_and_times_are_called_by_them() {
    let dir = tempfile::tempdir().unwrap();
    let seen = vec![Some(1_700_000_000_000), None, Some(1_700_000_000_000), Some(-500)];
    let columns: [(&str, ArrayRef); 4] = [
        ("day", Arc::new(Date32Array::from(vec![20_778, 20_778, 0, 0]))),
        ("seen", Arc::new(TimestampMillisecondArray::from(seen.clone()))),
        ("zoned", Arc::new(TimestampMillisecondArray::from(seen).with_timezone("Europe/Vienna"))),
        ("wait", Arc::new(DurationSecondArray::from(vec![90, 90, 0, 0]))),
    ];
    let set = set_with(dir.path(), "set.parquet", &columns);
    let no_time: Option<&str> = None;
    for (by, expected) in [
        ("day", vec![Some("2026-11-21"), Some("1970-01-01")]),
        ("seen", vec![Some("2023-11-14T22:13:20"), no_time, Some("1969-12-31T23:59:59.5")]),
        ("zoned", vec![Some("2023-11-14T22:13:20Z"), no_time, Some("1969-12-31T23:59:59.5Z")]),
        ("wait", vec![Some("PT1M30S"), Some("PT0S")]),
    ] {
        let document = json(&["stats", arg(&set), "--by", by]);
        let keys: Vec<&Value> =
            document["groups"].as_array().unwrap().iter().map(|group| &group["key"][0]).collect();
        assert_eq!(serde_json::json!(keys), serde_json::json!(expected), "{by}");
        let done = wellread(&["stats", arg(&set), "--by", by]);
        let first = format!("{by}: {}\n", expected[0].unwrap());
        assert!(done.code == 0 && done.stdout.contains(&first), "{}", done.stdout);
    }
}

/// A column that is plain in one part and binary in another stops a conversion, until it is left out.
#[test]
fn a_conversion_goes_on_without_a_column() {
    let dir = tempfile::tempdir().unwrap();
    let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values(["a", "b", "c", "d"]));
    let dose = numbers([1, 2, 3, 4]);
    set_with(dir.path(), "parts/a.parquet", &[("thumb", numbers([5; 4])), ("dose", dose.clone())]);
    set_with(dir.path(), "parts/b.parquet", &[("thumb", bytes), ("dose", dose)]);
    let parts = dir.path().join("parts");
    let whole = dir.path().join("whole.parquet");
    let convert = ["convert", arg(&parts), arg(&whole)];
    let stopped = wellread(&convert);
    assert_eq!(stopped.code, 2, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("the column \"thumb\" has binary values in b"), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("without the column: --without-column COLUMN"), "{}", stopped.stderr);
    assert!(!whole.exists());
    for (option, columns) in [("--without-column", "thumb"), ("--without-columns", "thumb,dose")] {
        let document = json(&[&convert[..], &[option, columns, "--overwrite"]].concat());
        let left: Vec<&str> = columns.split(',').collect();
        assert_eq!(document["columns_left_out"], serde_json::json!(left));
        assert_eq!(document["feature_columns"], 2 - left.len());
        assert_eq!(document["images"], 8);
        let found = table(&whole);
        assert!(found.column_by_name("thumb").is_none());
        assert_eq!(found.column_by_name("dose").is_some(), left.len() == 1, "{columns}");
    }
    // A name that is none, and nodes of a cluster.
    let none = wellread(&[&convert[..], &["--without-column", "thum", "--overwrite"]].concat());
    assert!(none.code == 2 && none.stderr.contains("has no column \"thum\""), "{}", none.stderr);
    assert!(none.stderr.contains("columns beside its images: thumb, dose"), "{}", none.stderr);
    let on = ["--without-column", "thumb", "--on", "ray"];
    let refused = wellread(&[&convert[..], &on].concat());
    assert!(refused.code == 2 && refused.stderr.contains("--without-column"), "{}", refused.stderr);
}

/// A name with a comma, and columns of a joined table, are left out like others.
#[test]
fn columns_of_any_name_and_of_joined_tables_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("a,b", numbers([1; 4])), ("a", numbers([2; 4])), ("dose", numbers([3; 4]))];
    let set = set_with(dir.path(), "set.parquet", &columns);
    let whole = dir.path().join("whole.parquet");
    let names = |path: &Path| -> Vec<String> {
        let schema = table(path).schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.filter(|name| !["row_id", "ome_image"].contains(&name.as_str())).collect()
    };
    for (options, left, kept) in [
        (&["--without-column", "a,b"][..], &["a,b"][..], &["a", "dose"][..]),
        (&["--without-column", "a,b", "--without-column", "dose"], &["a,b", "dose"], &["a"]),
        (&["--without-column", "a,dose"], &["a", "dose"], &["a,b"]),
    ] {
        let convert = ["convert", arg(&set), arg(&whole), "--overwrite"];
        let document = json(&[&convert[..], options].concat());
        assert_eq!(document["columns_left_out"], serde_json::json!(left), "{options:?}");
        assert_eq!(names(&whole), kept, "{options:?}");
    }
    // A joined table, one of whose times no other table has.
    let until = TimestampMicrosecondArray::from(vec![Some(0), None, Some(i64::MAX), Some(1)]);
    let joined = dir.path().join("joined.parquet");
    let called: ArrayRef = Arc::new(StringArray::from_iter_values(image_names(&set)));
    let columns: [(&str, ArrayRef); 3] =
        [("file", called), ("until", Arc::new(until)), ("dose", numbers([7; 4]))];
    write_parquet(&joined, columns);
    let join = ["--join", arg(&joined), "--on", "file"];
    let convert = [&["convert", arg(&set), arg(&whole), "--overwrite"][..], &join].concat();
    let stopped = wellread(&convert);
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("row 2: the column \"until\" has the time infinity"),
        "{}",
        stopped.stderr
    );
    assert!(stopped.stderr.contains("leave the column out (--without-column)"), "{}", stopped.stderr);
    for (options, kept) in [
        (&["--without-column", "until"][..], &["a,b", "a", "dose", "file", "dose_y"][..]),
        // The column that tells the image may be left out too.
        (&["--without-column", "until,file,a", "--without-column", "a,b"], &["dose", "dose_y"]),
        (&["--without-column", "until,dose"], &["a,b", "a", "file"]),
        (&["--without-column", "until,dose", "--columns", "dose"], &["a,b", "a", "dose"]),
    ] {
        let document = json(&[&convert[..], options].concat());
        assert_eq!(names(&whole), kept, "{options:?}");
        assert_eq!(document["images_with_profile"], 4, "{options:?}");
    }
    let dose = table(&whole).column_by_name("dose").cloned();
    assert_eq!(dose, Some(numbers([7; 4])), "that of the joined table");
    let none = wellread(&[&convert[..], &["--without-column", "till"]].concat());
    assert!(none.code == 2 && none.stderr.contains("has no column \"till\""), "{}", none.stderr);
    assert!(none.stderr.contains("joined.parquet: file, until, dose"), "{}", none.stderr);
    let nothing = wellread(&[&convert[..], &["--without-column", "file,until,dose"]].concat());
    assert!(nothing.code == 2 && nothing.stderr.contains("no column but those"), "{}", nothing.stderr);
}

/// Times that other tables do not have are named with their row, and a conversion goes on without their column.
#[test]
fn times_that_a_target_does_not_have_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let micros = |third: i64| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from(vec![Some(0), None, Some(third), Some(1)]))
    };
    let infinite = set_with(
        dir.path(),
        "infinite.parquet",
        &[("until", micros(i64::MAX)), ("dose", numbers([1, 2, 3, 4]))],
    );
    let target = dir.path().join("target.parquet");
    let stopped = wellread(&["convert", arg(&infinite), arg(&target)]);
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("row 2: the column \"until\" has the time infinity"),
        "{}",
        stopped.stderr
    );
    assert_eq!(stopped.stderr.matches("--without-column").count(), 1, "{}", stopped.stderr);
    let document = json(&["convert", arg(&infinite), arg(&target), "--without-column", "until"]);
    assert_eq!(document["feature_columns"], 1);
    assert_eq!(document["images"], 4);
    // The last time of pandas is infinity in DuckDB alone.
    let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![0, 1, 2, i64::MAX]));
    let last = set_with(dir.path(), "last.parquet", &[("until", nanos)]);
    if has_format("duckdb") {
        let target = dir.path().join("last.duckdb");
        let convert = ["convert", arg(&last), arg(&target)];
        let ways: [&[&str]; 2] = [&[], &["--no-verify"]];
        for more in ways {
            let stopped = wellread(&[&convert[..], more].concat());
            assert_eq!(stopped.code, 2, "{}", stopped.stderr);
            let said = "row 3: the column \"until\" has 2262-04-11T23:47:16.854775807, and DuckDB cannot hold this time";
            assert!(stopped.stderr.contains(said) && !target.exists(), "{}", stopped.stderr);
            assert_eq!(stopped.stderr.matches("--without-column").count(), 1, "{}", stopped.stderr);
        }
        json(&[&convert[..], &["--without-column", "until"]].concat());
    }
    // The year 10000 is a time of most formats.
    let far = set_with(dir.path(), "far.parquet", &[("until", micros(253_402_300_800_000_000))]);
    for format in ["parquet", "lance", "vortex", "duckdb", "ome-zarr"] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("far-{format}"));
        let convert = ["convert", arg(&far), arg(&target), "--format", format];
        let done = wellread(&convert);
        if format != "vortex" {
            assert_eq!(done.code, 0, "{format}: {}", done.stderr);
            continue;
        }
        assert_eq!(done.code, 2, "{}", done.stderr);
        let said =
            "row 2: Vortex cannot be written: the column \"until\" has the time +010000-01-01T00:00:00";
        assert!(done.stderr.contains(said) && !target.exists(), "{}", done.stderr);
        json(&[&convert[..], &["--without-column", "until"]].concat());
    }
}

/// DuckDB keeps no zones, and parts of several zones become one of UTC: both are said. The moments stay.
#[test]
fn zones_that_are_lost_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let zoned = |zone: &str| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from(vec![1, 2, 3, 4]).with_timezone(zone))
    };
    let [berlin, utc] = ["Europe/Berlin", "UTC"].map(zoned);
    let set = set_with(dir.path(), "set.parquet", &[("seen", berlin.clone()), ("in_utc", utc.clone())]);
    for format in ["parquet", "lance", "vortex", "duckdb", "parquet-duckdb"] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("target-{format}"));
        let done = wellread(&["convert", arg(&set), arg(&target), "--format", format]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let said = format!(
            "note: {format} keeps no zones; the times are the same moments in UTC: seen (Europe/Berlin)\n"
        );
        assert_eq!(done.stderr.contains(&said), format.contains("duckdb"), "{format}: {}", done.stderr);
        assert!(!done.stderr.contains("in_utc"), "{}", done.stderr);
    }
    set_with(dir.path(), "parts/a.parquet", &[("seen", berlin.clone()), ("in_utc", utc.clone())]);
    set_with(dir.path(), "parts/b.parquet", &[("seen", utc.clone()), ("in_utc", utc.clone())]);
    let [parts, whole] = ["parts", "whole.parquet"].map(|name| dir.path().join(name));
    let done = wellread(&["convert", arg(&parts), arg(&whole)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = "note: parts have different zones, and the times become UTC: seen\n";
    assert!(done.stderr.contains(said), "{}", done.stderr);
    let twice = TimestampMicrosecondArray::from(vec![1, 2, 3, 4, 1, 2, 3, 4]).with_timezone("UTC");
    let twice: ArrayRef = Arc::new(twice);
    assert_eq!(table(&whole).column_by_name("seen"), Some(&twice));
    // Crops of their images, and columns that have another name in the target.
    let cells = dir.path().join("cells.csv");
    let rows: Vec<String> = image_names(&parts).iter().map(|name| format!("{name},20,20\n")).collect();
    std::fs::write(&cells, format!("ImageName,x,y\n{}", rows.concat())).unwrap();
    let crops = dir.path().join("crops.parquet");
    let of_cells = ["--cells", arg(&cells), "--cells-size", "8x8"];
    let done = wellread(&[&["convert", arg(&parts), arg(&crops)], &of_cells[..]].concat());
    assert!(done.code == 0 && done.stderr.contains(said), "{}", done.stderr);
    if has_format("lance") {
        set_with(dir.path(), "dots/a.parquet", &[("seen.at", berlin.clone())]);
        set_with(dir.path(), "dots/b.parquet", &[("seen.at", utc.clone())]);
        let [dots, target] = ["dots", "dots.lance"].map(|name| dir.path().join(name));
        let done = wellread(&["convert", arg(&dots), arg(&target)]);
        let said = "note: parts have different zones, and the times become UTC: seen_at\n";
        assert!(done.code == 0 && done.stderr.contains(said), "{}", done.stderr);
    }
    // Parts of one zone keep it.
    set_with(dir.path(), "parts/b.parquet", &[("seen", berlin), ("in_utc", utc)]);
    let done = wellread(&["convert", arg(&parts), arg(&whole), "--overwrite"]);
    assert!(done.code == 0 && !done.stderr.contains("zones"), "{}", done.stderr);
}
