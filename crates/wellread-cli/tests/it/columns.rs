//! Columns beside images in conversions: columns that go along, that are left out and named, that become another
//! type.

use crate::support::{arg, generate, has_format, image_names, json, wellread};
use arrow_array::{
    ArrayRef, Date32Array, Date64Array, DurationMicrosecondArray, Int64Array, NullArray, RecordBatch,
    StringArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use serde_json::Value;
use std::sync::Arc;

/// Columns that cannot go along are named once, on stderr and in the document: those of the profiles, and those of the
/// set itself.
#[test]
fn columns_that_are_left_out_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    let image: ArrayRef = Arc::new(StringArray::from_iter_values(image_names(&tiff)));
    let empty: ArrayRef = Arc::new(NullArray::new(3));
    let dose: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let profiles = dir.path().join("profiles.parquet");
    // The index is of pandas, and is neither taken nor named.
    let index: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 9]));
    let columns =
        [("image", image), ("Metadata_Empty", empty.clone()), ("dose", dose), ("__index_level_0__", index)];
    write_parquet(&profiles, columns);
    let convert = |source: &std::path::Path, name: &str, more: &[&str]| {
        let target = dir.path().join(name);
        let done = wellread(&[&["--json", "convert", arg(source), arg(&target)], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        (serde_json::from_str::<Value>(&done.stdout).unwrap(), done.stderr)
    };
    let join = ["--join", arg(&profiles), "--on", "image"];
    let (document, said) = convert(&tiff, "joined.parquet", &join);
    assert_eq!(document["columns_left_out"], serde_json::json!(["Metadata_Empty"]));
    assert_eq!(document["feature_columns"], 2);
    assert_eq!(said.matches("Metadata_Empty").count(), 1, "{said}");
    assert!(said.contains("left out: Metadata_Empty (nothing but nulls)"), "{said}");
    assert!(!said.contains("dose") && !said.contains("__index_level"), "{said}");
    let asked = [&join[..], &["--columns", "dose,__index_level_0__"]].concat();
    assert_eq!(convert(&tiff, "asked.parquet", &asked).0["feature_columns"], 2, "where it is asked for");
    // The same in a set of images that somebody else has written.
    let joined = dir.path().join("joined.parquet");
    let file = std::fs::File::open(&joined).unwrap();
    let batch =
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap();
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(f, c)| (f.name().as_str(), c.clone()));
    let columns = columns.chain([("Metadata_Void", empty)]);
    write_parquet(&joined, columns);
    for format in ["parquet", "ome-arrow-dataset"] {
        let (document, said) = convert(&joined, &format!("again-{format}"), &["--format", format]);
        assert_eq!(document["columns_left_out"], serde_json::json!(["Metadata_Void"]));
        assert_eq!(document["feature_columns"], 2);
        assert_eq!(said.matches("Metadata_Void").count(), 1, "{said}");
    }
    let (document, said) = convert(&dir.path().join("again-parquet"), "whole.parquet", &[]);
    assert_eq!(document["columns_left_out"], serde_json::json!([]));
    assert!(!said.contains("left out"), "{said}");
}

/// With two columns of images in a table, the message names the one that is not converted, whichever it is and in every
/// format.
#[test]
fn a_column_of_images_that_is_left_out_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "parquet"]);
    let file = std::fs::File::open(set.join("images.parquet")).unwrap();
    let batch =
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap();
    let images = batch.column_by_name("ome_image").unwrap();
    let two = dir.path().join("two.parquet");
    write_parquet(&two, [("ome_image", images.clone()), ("second", images.clone())]);
    let formats = ["parquet", "ome-arrow-dataset", "tiff"];
    for (i, (column, other)) in
        [(None, "second"), (Some("ome_image"), "second"), (Some("second"), "ome_image")]
            .into_iter()
            .enumerate()
    {
        for format in formats {
            let target = dir.path().join(format!("{i}-{format}"));
            let mut args = vec!["--json", "convert", arg(&two), arg(&target), "--format", format];
            if let Some(name) = column {
                args.extend(["--column", name]);
            }
            let done = wellread(&args);
            assert_eq!(done.code, 0, "{}", done.stderr);
            let document: Value = serde_json::from_str(&done.stdout).unwrap();
            assert_eq!(document["columns_left_out"], serde_json::json!([other]), "{column:?} {format}");
            assert!(done.stderr.contains(&format!("left out: {other} (nested values)")), "{}", done.stderr);
        }
    }
    // Nested values make no groups, and no row is at fault.
    let done = wellread(&["stats", arg(&two), "--column", "ome_image", "--by", "second"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains("the column \"second\" has nested values"), "{}", done.stderr);
    assert!(!done.stderr.contains("row 0"), "{}", done.stderr);
}

/// Durations stay durations where the format has them, from profiles and from a set; elsewhere it is said what they become.
#[test]
fn durations_are_kept_or_said_to_become_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let image: ArrayRef = Arc::new(StringArray::from_iter_values(image_names(&set.join("tiff"))));
    let waits: ArrayRef = Arc::new(DurationMicrosecondArray::from(vec![Some(7), None, Some(-1)]));
    let profiles = dir.path().join("profiles.parquet");
    write_parquet(&profiles, [("image", image), ("Wait", waits.clone())]);
    let kept = |path: &std::path::Path| {
        let file = std::fs::File::open(path).unwrap();
        let batch =
            ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap();
        assert_eq!(batch.column_by_name("Wait"), Some(&waits), "{}", path.display());
    };
    let joined = dir.path().join("joined.parquet");
    let join = ["--join", arg(&profiles), "--on", "image"];
    let done = wellread(&[&["convert", arg(&set.join("tiff")), arg(&joined)], &join[..]].concat());
    assert!(done.code == 0 && !done.stderr.contains("whole numbers"), "{}", done.stderr);
    kept(&joined);
    for format in ["parquet", "ome-arrow-dataset", "lance", "vortex", "duckdb"] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format);
        let done = wellread(&["convert", arg(&joined), arg(&target), "--format", format]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let becomes_numbers = ["vortex", "duckdb"].contains(&format);
        let said = done.stderr.contains("has no durations") && done.stderr.contains("Wait (microseconds)");
        assert_eq!(said, becomes_numbers, "{format}: {}", done.stderr);
        let back = dir.path().join(format!("{format}-back.parquet"));
        json(&["convert", arg(&target), arg(&back)]);
        if !becomes_numbers {
            kept(&back);
        }
    }
}

/// DuckDB's appender takes times with a zone in microseconds, which is said where that loses something.
#[test]
fn nanoseconds_of_times_with_a_zone_are_kept_or_named() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let image: ArrayRef = Arc::new(StringArray::from_iter_values(image_names(&set.join("tiff"))));
    let zoned = |values: [i64; 2]| -> ArrayRef {
        Arc::new(TimestampNanosecondArray::from(values.to_vec()).with_timezone("UTC"))
    };
    let profiles = dir.path().join("profiles.parquet");
    write_parquet(
        &profiles,
        [("image", image), ("Fine", zoned([1, 1_999])), ("Coarse", zoned([1_000, -2_000]))],
    );
    for format in ["parquet", "lance", "vortex", "duckdb", "parquet-duckdb"] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format);
        let source = set.join("tiff");
        let convert = ["convert", arg(&source), arg(&target), "--format", format];
        let done = wellread(&[&convert[..], &["--join", arg(&profiles), "--on", "image"]].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let said = done.stderr.contains("their nanoseconds are cut off: Fine\n");
        assert_eq!(said, format.contains("duckdb"), "{format}: {}", done.stderr);
    }
}

/// Parquet has no type for times in seconds and dates in milliseconds: other programs would read whole numbers. They are written as
/// times in milliseconds and dates in days, and read from files of others as what Arrow's schema in them says.
#[test]
fn times_in_seconds_and_dates_in_milliseconds_are_times_and_dates() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let image: ArrayRef = Arc::new(StringArray::from_iter_values(image_names(&set.join("tiff"))));
    let seen: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(1_700_000_000), None]));
    let day: ArrayRef = Arc::new(Date64Array::from(vec![Some(86_400_000), Some(0)]));
    let profiles = dir.path().join("profiles.parquet");
    write_parquet(&profiles, [("image", image), ("Seen", seen.clone()), ("Day", day.clone())]);
    let [joined, again] = ["joined.parquet", "again.parquet"].map(|name| dir.path().join(name));
    let join = ["--join", arg(&profiles), "--on", "image"];
    json(&[&["convert", arg(&set.join("tiff")), arg(&joined)], &join[..]].concat());
    json(&["convert", arg(&joined), arg(&again)]);
    let seen: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![Some(1_700_000_000_000), None]));
    let day: ArrayRef = Arc::new(Date32Array::from(vec![1, 0]));
    for path in [joined, again] {
        let file = std::fs::File::open(&path).unwrap();
        // As programs see it that know of no Arrow.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
        let batch = builder.build().unwrap().next().unwrap().unwrap();
        assert_eq!(batch.column_by_name("Seen"), Some(&seen), "{}", path.display());
        assert_eq!(batch.column_by_name("Day"), Some(&day), "{}", path.display());
    }
}

/// The plan of a plate has a row per well, by a column that the images have; as CSV and as Parquet.
#[test]
fn a_plan_is_joined_by_columns_that_both_have() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let names = image_names(&set.join("tiff"));
    let path = |name: &str| dir.path().join(name);
    let (wells, plate) = (path("wells.csv"), path("plate.parquet"));
    let lines = names.iter().zip(["A01", "B02", "A01"]).map(|(name, well)| format!("{name}.tiff,{well}\n"));
    std::fs::write(&wells, format!("file,Metadata_Well\n{}", lines.collect::<String>())).unwrap();
    json(&["convert", arg(&set.join("tiff")), arg(&plate), "--join", arg(&wells), "--on", "file"]);
    let text = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let doses: ArrayRef = Arc::new(Int64Array::from(vec![7, 3]));
    write_parquet(&path("plan.parquet"), [("Metadata_Well", text(&["B02", "A01"])), ("dose", doses)]);
    std::fs::write(path("plan.csv"), "Metadata_Well,dose\nB02,7\nA01,3\n").unwrap();
    for plan in ["plan.parquet", "plan.csv"] {
        let target = path(&format!("with-{plan}.parquet"));
        let (plan, on) = (path(plan), "Metadata_Well");
        let document = json(&["convert", arg(&plate), arg(&target), "--join", arg(&plan), "--on", on]);
        assert_eq!(document["images_with_profile"], 3);
        let file = std::fs::File::open(&target).unwrap();
        let batch =
            ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap();
        let dose = batch.column_by_name("dose").unwrap().as_any().downcast_ref::<Int64Array>().unwrap();
        assert_eq!(dose.values(), &[3, 7, 3], "{}", plan.display());
        assert!(batch.column_by_name("Metadata_Well_y").is_none());
    }
    // No well in both, and no name either.
    std::fs::write(path("other.csv"), "Metadata_Well,dose\nC01,1\n").unwrap();
    let (other, target) = (path("other.csv"), path("none.parquet"));
    let join = ["--join", arg(&other), "--on", "Metadata_Well"];
    let refused = wellread(&[&["convert", arg(&plate), arg(&target)], &join[..]].concat());
    assert_ne!(refused.code, 0);
    for part in ["no image has a row by Metadata_Well", "A01, B02", "rows have C01"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
}

/// An image without a well is of none, and is no well of its own.
#[test]
fn wells_are_counted_without_what_is_of_none() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let path = |name: &str| dir.path().join(name);
    let (plan, plate) = (path("plan.csv"), path("plate.parquet"));
    let first = json(&["checksum", arg(&set.join("tiff"))])[0]["name"].as_str().unwrap().to_owned();
    std::fs::write(&plan, format!("file,Metadata_Plate,Metadata_Well\n{first}.tiff,P1,A01\n")).unwrap();
    let join = ["--join", arg(&plan), "--on", "file", "--join-unmatched", "null"];
    json(&[&["convert", arg(&set.join("tiff")), arg(&plate)], &join[..]].concat());
    let info = json(&["info", arg(&plate)]);
    assert_eq!((&info["plates"], &info["wells"]), (&1.into(), &1.into()));
}

#[test]
fn a_join_names_the_images_and_rows_that_found_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let names = image_names(&set.join("tiff"));
    let (profiles, target) = (dir.path().join("profiles.csv"), dir.path().join("plate.parquet"));
    let images = set.join("tiff");
    let join = ["convert", arg(&images), arg(&target), "--join", arg(&profiles), "--on", "file"];
    let others = ["x1", "x2", "x3", "x4"].map(|name| format!("{name}.tiff,2\n")).concat();
    std::fs::write(&profiles, format!("file,dose\n{}.tiff,1\n{others}", names[0])).unwrap();
    // As an error nothing is written.
    let refused = wellread(&[&join[..], &["--join-unmatched", "error"]].concat());
    let alone = format!("has no row for 2 of 3 images: {}, {}", names[1], names[2]);
    assert!(refused.code == 2 && refused.stderr.contains(&alone), "{}", refused.stderr);
    assert!(!target.exists());
    // Also when quiet.
    let done = wellread(&[&join[..], &["-q"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = format!("nulls in its columns: {}, {} (--join-unmatched error", names[1], names[2]);
    assert!(said.contains("warning: 2 images have no row in ") && said.contains(&sentence), "{said}");
    assert!(said.contains("4 rows are of no image of this set: x1.tiff, x2.tiff, x3.tiff …"), "{said}");
    let document = json(&[&join[..], &["--overwrite"]].concat());
    let alone = serde_json::json!({"count": 2, "first": [names[1], names[2]]});
    assert_eq!(document["images_without_profile"], alone);
    assert_eq!(document["profiles_without_image"]["count"], 4);
    // All rows and images have found each other: nothing is said.
    let rows: Vec<String> = names.iter().map(|name| format!("{name}.tiff,1\n")).collect();
    std::fs::write(&profiles, format!("file,dose\n{}", rows.concat())).unwrap();
    let done = wellread(&[&join[..], &["--overwrite", "--join-unmatched", "error"]].concat());
    assert!(done.code == 0 && !done.stderr.contains("warning"), "{}", done.stderr);
    // None at all, and why.
    let capitals = names[0].to_uppercase();
    assert_ne!(capitals, names[0]);
    std::fs::write(&profiles, format!("file,dose\n{capitals}.tiff,1\n")).unwrap();
    let refused = wellread(&[&join[..], &["--overwrite"]].concat());
    let near = format!("{} and {capitals}.tiff differ in capital letters", names[0]);
    assert!(refused.code != 0 && refused.stderr.contains(&near), "{}", refused.stderr);
}

/// Images that only the endings of their files tell apart have the profiles of their whole names.
#[test]
fn a_join_tells_images_apart_by_the_endings_of_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let (set, alike) = (dir.path().join("set"), dir.path().join("alike"));
    generate(&set, 1, &["--formats", "tiff"]);
    std::fs::create_dir(&alike).unwrap();
    let file = std::fs::read_dir(set.join("tiff"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "tif" || ending == "tiff"))
        .unwrap();
    for name in ["a.tif", "a.tiff"] {
        std::fs::copy(&file, alike.join(name)).unwrap();
    }
    let (profiles, target) = (dir.path().join("profiles.parquet"), dir.path().join("plate.parquet"));
    let joined = |rows: &[(&str, &str)]| {
        let text = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
        let (images, wells) = rows.iter().copied().unzip();
        write_parquet(&profiles, [("image", text(images)), ("Well", text(wells))]);
        let join = ["--join", arg(&profiles), "--on", "image", "--overwrite"];
        wellread(&[&["convert", arg(&alike), arg(&target)], &join[..]].concat())
    };
    let wells = |rows: &[(&str, &str)]| -> Vec<Option<String>> {
        let done = joined(rows);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let file = std::fs::File::open(&target).unwrap();
        let batch =
            ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap();
        let wells = batch.column_by_name("Well").unwrap().as_any();
        let wells = wells.downcast_ref::<StringArray>().unwrap();
        wells.iter().map(|well| well.map(str::to_owned)).collect()
    };
    let [a1, b2] = ["A1", "B2"].map(|well| Some(well.to_owned()));
    assert_eq!(wells(&[("a.tiff", "B2"), ("a.tif", "A1")]), [a1.clone(), b2]);
    // A profile of the one is none of the other.
    assert_eq!(wells(&[("/far/a.tif", "A1")]), [a1, None]);
    // Without the ending, or with that of another file, it could be of either.
    for name in ["a", "a.png"] {
        let refused = joined(&[(name, "A1"), ("b", "B2")]);
        assert_eq!(refused.code, 2, "{}", refused.stdout);
        assert!(refused.stderr.contains("row 0 fits two images, a.tif and a.tiff"), "{}", refused.stderr);
        assert!(refused.stderr.contains("give the whole name of each image"), "{}", refused.stderr);
    }
    // With one image alone, a profile of its whole name goes before one of another ending.
    std::fs::remove_file(alike.join("a.tiff")).unwrap();
    assert_eq!(wells(&[("a.png", "B2"), ("a.tif", "A1")]), [Some("A1".to_owned())]);
    assert_eq!(wells(&[("a.png", "B2")]), [Some("B2".to_owned())]);
    // Its name without the ending is as much its own: one of the two profiles would be lost.
    for rows in [[("a", "B2"), ("a.tif", "A1")], [("a.tif", "A1"), ("a", "B2")]] {
        let refused = joined(&rows);
        assert_eq!(refused.code, 2, "{}", refused.stdout);
        let cause = "rows 0 and 1 are both of the image \"a\"";
        assert!(refused.stderr.contains(cause), "{}", refused.stderr);
        assert!(refused.stderr.contains("goes to --cells"), "{}", refused.stderr);
    }
    let refused = joined(&[("a.png", "C3"), ("a.tif", "A1"), ("a", "B2")]);
    assert!(refused.code == 2 && refused.stderr.contains("rows 1 and 2 are both"), "{}", refused.stderr);
}

/// A set of one image has its columns in OME-Zarr, too: the image alone, and the only one of a folder.
#[test]
fn one_image_keeps_its_joined_columns_in_ome_zarr() {
    let dir = tempfile::tempdir().unwrap();
    let (set, wells) = (dir.path().join("set"), dir.path().join("wells.csv"));
    generate(&set, 1, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    std::fs::write(&wells, format!("file,Metadata_Well\n{}.tiff,A01\n", image_names(&tiff)[0])).unwrap();
    for name in ["one.zarr", "folder"] {
        let (target, table) = (dir.path().join(name), dir.path().join(format!("{name}.parquet")));
        let join = ["--join", arg(&wells), "--on", "file", "--format", "ome-zarr"];
        let document = json(&[&["convert", arg(&tiff), arg(&target)], &join[..]].concat());
        assert_eq!(document["feature_columns"], 2, "{name}");
        let columns = serde_json::json!(["file", "Metadata_Well"]);
        assert_eq!(json(&["info", arg(&target)])["columns"], columns, "{name}");
        json(&["verify", arg(&target), "--against", arg(&tiff)]);
        // The values go on from there.
        json(&["convert", arg(&target), arg(&table)]);
        let file = std::fs::File::open(&table).unwrap();
        let mut read = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let batch = read.next().unwrap().unwrap();
        let found = batch.column_by_name("Metadata_Well").unwrap();
        assert_eq!(found, &(Arc::new(StringArray::from(vec!["A01"])) as ArrayRef), "{name}");
    }
}

/// Writes columns as a table.
pub fn write_parquet<'a>(path: &std::path::Path, columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
