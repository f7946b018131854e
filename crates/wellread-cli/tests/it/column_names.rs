//! Names of columns beside images: all differ, whatever is joined, and none is lost to a column that a format has itself.

use crate::support::{arg, generate, has_format, image_names, json, wellread};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json as value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FORMATS: [&str; 5] = ["parquet", "ome-arrow-dataset", "lance", "vortex", "duckdb"];

/// Two images as a column, and their names.
fn images(dir: &Path) -> [ArrayRef; 2] {
    generate(&dir.join("set"), 2, &["--formats", "parquet"]);
    let path = dir.join("set/images.parquet");
    let names = Arc::new(StringArray::from_iter_values(image_names(&path)));
    [Arc::clone(read(&path).column_by_name("ome_image").unwrap()), names]
}

fn ints(values: [i64; 2]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn write<'a>(path: &Path, columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn read(path: &Path) -> RecordBatch {
    let file = std::fs::File::open(path).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap()
}

/// The values of the one column of this name.
fn column(table: &RecordBatch, name: &str) -> Vec<i64> {
    let schema = table.schema();
    assert_eq!(schema.fields().iter().filter(|f| f.name() == name).count(), 1, "{name} of {schema}");
    table.column_by_name(name).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

/// Converts, and returns the document and the notes.
fn convert(source: &Path, target: &Path, more: &[&str]) -> (Value, String) {
    let done = wellread(&[&["--json", "convert", arg(source), arg(target)], more].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    (serde_json::from_str(&done.stdout).unwrap(), done.stderr)
}

/// The columns of a set of some format, as Parquet has them.
fn as_parquet(set: &Path) -> RecordBatch {
    let back: PathBuf = set.with_extension("back");
    convert(set, &back, &["--format", "parquet"]);
    read(&back)
}

#[test]
fn joins_give_each_column_a_name_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let [images, names] = images(dir.path());
    let [source, profiles] = ["source.parquet", "profiles.parquet"].map(|name| dir.path().join(name));
    write(&source, [("ome_image", images.clone()), ("v", ints([1, 2])), ("v_y", ints([3, 4]))]);
    write(&profiles, [("f", names.clone()), ("v", ints([5, 6]))]);
    let join = |more: &[&'static str]| [&["--join", arg(&profiles), "--on", "f"], more].concat();
    for format in FORMATS.into_iter().filter(|format| has_format(format)) {
        let target = dir.path().join(format!("joined-{format}"));
        let (document, said) = convert(&source, &target, &join(&["--format", format]));
        assert_eq!(document["columns_renamed"], value!([["v", "v_y_y"]]), "{format}");
        assert!(said.contains("v is now v_y_y"), "{format}: {said}");
        let table = as_parquet(&target);
        for (name, values) in [("v", [1, 2]), ("v_y", [3, 4]), ("v_y_y", [5, 6])] {
            assert_eq!(column(&table, name), values, "{format}");
        }
    }
    // Renamed columns are named also where little is printed.
    let quiet = dir.path().join("quiet.parquet");
    let done = wellread(&[&["convert", "-q", arg(&source), arg(&quiet)], &join(&[])[..]].concat());
    assert!(done.code == 0 && done.stderr.contains("v is now v_y_y"), "{}", done.stderr);
    // One profile after the other, each with a dose.
    let mut last = dir.path().join("0.parquet");
    write(&last, [("ome_image", images)]);
    for (i, values) in [[1, 2], [3, 4], [5, 6], [7, 8]].into_iter().enumerate() {
        write(&profiles, [("f", names.clone()), ("dose", ints(values))]);
        let next = dir.path().join(format!("{}.parquet", i + 1));
        convert(&last, &next, &join(&[]));
        last = next;
    }
    let table = read(&last);
    for (name, values) in [("dose", [1, 2]), ("dose_y", [3, 4]), ("dose_y_y", [5, 6]), ("dose_y_y_y", [7, 8])]
    {
        assert_eq!(column(&table, name), values);
    }
}

/// In a dataset folder the table of images has a `name` itself.
#[test]
fn columns_of_a_dataset_are_renamed_alike_in_any_order_and_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let [images, _] = images(dir.path());
    let (name, other, size) = (("name", ints([1, 2])), ("name_y", ints([3, 4])), ("size_x", ints([5, 6])));
    for (i, columns) in [[&name, &other, &size], [&size, &other, &name]].into_iter().enumerate() {
        let source = dir.path().join(format!("{i}.parquet"));
        let columns = columns.into_iter().map(|(name, values)| (*name, Arc::clone(values)));
        write(&source, columns.chain([("ome_image", images.clone())]));
        let target = dir.path().join(format!("dataset-{i}"));
        let (document, said) = convert(&source, &target, &["--layout", "dataset"]);
        assert!(said.contains("name is now name_y_y") && said.contains("size_x is now size_x_y"), "{said}");
        assert_eq!(document["columns_renamed"].as_array().unwrap().len(), 2);
        let table = read(&target.join("images.parquet"));
        for (name, values) in [("name_y_y", [1, 2]), ("name_y", [3, 4]), ("size_x_y", [5, 6])] {
            assert_eq!(column(&table, name), values);
        }
    }
}

#[test]
fn a_row_id_that_is_no_row_number_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let [images, _] = images(dir.path());
    let source = dir.path().join("source.parquet");
    let columns = |path: &Path| json(&["info", arg(path)])["columns"].clone();
    let write_ids = |ids: ArrayRef| write(&source, [("row_id", ids), ("ome_image", images.clone())]);
    write_ids(ints([0, 1]));
    assert_eq!(columns(&source), value!([]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["P1-A01", "P1-A02"]));
    for (i, ids) in [ints([205, 101]), ints([1, 0]), texts].into_iter().enumerate() {
        write_ids(Arc::clone(&ids));
        assert_eq!(columns(&source), value!(["row_id"]));
        for format in FORMATS.into_iter().filter(|format| has_format(format)) {
            let target = dir.path().join(format!("{i}-{format}"));
            let (_, said) = convert(&source, &target, &["--format", format]);
            let has_own = format != "ome-arrow-dataset";
            assert_eq!(columns(&target), value!([if has_own { "row_id_y" } else { "row_id" }]), "{format}");
            assert_eq!(said.contains("row_id is now row_id_y"), has_own, "{format}: {said}");
            let table = as_parquet(&target);
            assert_eq!(column(&table, "row_id"), [0, 1], "{format}");
            assert_eq!(table.column_by_name("row_id_y"), Some(&ids), "{format}");
        }
    }
}

/// DuckDB has no column without a name either.
#[test]
fn a_column_without_a_name_has_one_in_duckdb() {
    let dir = tempfile::tempdir().unwrap();
    let [images, _] = images(dir.path());
    let source = dir.path().join("source.parquet");
    write(&source, [("", ints([1, 2])), ("unnamed", ints([3, 4])), ("ome_image", images)]);
    for format in ["duckdb", "parquet-duckdb"] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("target-{format}"));
        let (document, said) = convert(&source, &target, &["--format", format]);
        assert!(said.contains("\"\" is now unnamed_y"), "{said}");
        assert_eq!(document["columns_renamed"], value!([["", "unnamed_y"]]));
        let table = as_parquet(&target);
        assert_eq!([column(&table, "unnamed_y"), column(&table, "unnamed")], [vec![1, 2], vec![3, 4]]);
    }
}

/// Lance adds columns to what it reads, takes a dot for the way to a nested field, and selects no column without a name.
#[test]
fn names_that_lance_could_not_read_back_are_others_there() {
    if !has_format("lance") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [images, _] = images(dir.path());
    let [source, target] = ["source.parquet", "target.lance"].map(|name| dir.path().join(name));
    let names = [
        ("_rowid", "_rowid_y"),
        ("_rowaddr", "_rowaddr_y"),
        ("_row_created_at_version", "_row_created_at_version_y"),
        ("_row_last_updated_at_version", "_row_last_updated_at_version_y"),
        ("_rowoffset", "_rowoffset_y"),
        ("", "unnamed"),
        ("a.b", "a_b_y"),
        ("a_b", "a_b"),
    ];
    let values = |i: usize| [i as i64, 10 + i as i64];
    let columns = names.iter().enumerate().map(|(i, (name, _))| (*name, ints(values(i))));
    write(&source, columns.chain([("ome_image", images)]));
    let (document, said) = convert(&source, &target, &[]);
    assert!(said.contains("a.b is now a_b_y") && said.contains("_rowid is now _rowid_y"), "{said}");
    assert!(said.contains("\"\" is now unnamed"), "{said}");
    assert!(said.contains("or lance has such a column itself or can have none"), "{said}");
    let renamed: Vec<_> = names.iter().filter(|(from, to)| from != to).collect();
    assert_eq!(document["columns_renamed"], value!(renamed));
    let table = as_parquet(&target);
    for (i, (_, to)) in names.into_iter().enumerate() {
        assert_eq!(column(&table, to), values(i), "{to}");
    }
}

#[test]
fn columns_of_one_name_are_all_read() {
    let dir = tempfile::tempdir().unwrap();
    let [images, names] = images(dir.path());
    let source = dir.path().join("source.parquet");
    write(&source, [("v", ints([1, 2])), ("ome_image", images.clone()), ("v", ints([3, 4]))]);
    assert_eq!(json(&["info", arg(&source)])["columns"], value!(["v", "v_y"]));
    let said = wellread(&["info", arg(&source)]).stdout;
    let note = "several columns are called v: one of them is v_y here";
    assert!(said.contains(note), "{said}");
    let info = json(&["info", arg(&source)]);
    assert_eq!(info["columns_renamed"], value!([["v", "v_y"]]));
    assert!(info["notes"].as_array().unwrap().contains(&value!(note)), "{}", info["notes"]);
    for format in FORMATS.into_iter().filter(|format| has_format(format)) {
        let target = dir.path().join(format!("target-{format}"));
        let (document, said) = convert(&source, &target, &["--format", format]);
        assert_eq!(document["columns_renamed"], value!([["v", "v_y"]]), "{format}");
        assert!(said.contains("v is now v_y"), "{format}: {said}");
        let table = as_parquet(&target);
        assert_eq!((column(&table, "v"), column(&table, "v_y")), (vec![1, 2], vec![3, 4]), "{format}");
    }
    // Profiles with two columns of a name.
    let [plain, profiles, target] =
        ["plain.parquet", "profiles.parquet", "joined.parquet"].map(|name| dir.path().join(name));
    write(&plain, [("ome_image", images)]);
    write(&profiles, [("v", ints([1, 2])), ("v", ints([3, 4])), ("f", names)]);
    let (_, said) = convert(&plain, &target, &["--join", arg(&profiles), "--on", "f"]);
    assert!(said.contains("v is now v_y"), "{said}");
    let table = read(&target);
    assert_eq!((column(&table, "v"), column(&table, "v_y")), (vec![1, 2], vec![3, 4]));
}

/// A complete target is not what a command with other columns or options would write, and that is said; nothing is written.
#[test]
fn resuming_what_is_complete_names_what_would_be_written_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let [images, names] = images(dir.path());
    let [source, profiles] = ["source.parquet", "profiles.parquet"].map(|name| dir.path().join(name));
    write(&source, [("ome_image", images)]);
    for format in ["lance", "duckdb"].into_iter().filter(|format| has_format(format)) {
        let target = dir.path().join(format!("resumed-{format}"));
        let resume = |column: &str, values: [i64; 2], more: &[&str]| {
            write(&profiles, [("f", names.clone()), (column, ints(values))]);
            let command = ["convert", arg(&source), arg(&target), "--format", format, "--resume"];
            wellread(&[&command[..], &["--join", arg(&profiles), "--on", "f"], more].concat())
        };
        let first = resume("v", [1, 2], &[]);
        assert!(first.code == 0 && first.stdout.contains("2 of 2 images have a profile"), "{}", first.stderr);
        let again = resume("v", [1, 2], &[]);
        assert!(again.code == 0 && again.stdout.contains("is complete"), "{format}: {}", again.stderr);
        assert!(!again.stdout.contains("have a profile"), "{}", again.stdout);
        for (column, values, said) in [
            ("v", [1, 3], &["its column \"v\" has other values"][..]),
            (
                "w",
                [1, 2],
                &["it has no column \"w\"", "it has a column \"v\" that the command does not write"],
            ),
        ] {
            let other = resume(column, values, &[]);
            assert_eq!(other.code, 1, "{format}: {}", other.stdout);
            for words in said.iter().chain(&["nothing was written", "--overwrite"]) {
                assert!(other.stderr.contains(words), "{format}: {words}: {}", other.stderr);
            }
            assert!(!other.stdout.contains("have a profile"), "{}", other.stdout);
        }
        // DuckDB has no choice of it.
        if format == "lance" {
            let other = resume("v", [1, 2], &["--compression", "zstd"]);
            assert!(other.code == 1 && other.stderr.contains(", not zstd"), "{}", other.stderr);
        }
        assert_eq!(column(&as_parquet(&target), "v"), [1, 2]);
        let anew = resume("v", [1, 3], &["--overwrite"]);
        assert_eq!(anew.code, 0, "{}", anew.stderr);
        std::fs::remove_file(target.with_extension("back")).unwrap();
        assert_eq!(column(&as_parquet(&target), "v"), [1, 3]);
    }
}

#[test]
fn resuming_what_is_complete_names_other_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    for format in ["tiff", "ome-zarr"] {
        let target = dir.path().join(format);
        let resume = |chunk: &str| {
            let source = set.join("tiff");
            let command = ["convert", arg(&source), arg(&target), "--format", format, "--resume"];
            wellread(&[&command[..], &["--chunk", chunk]].concat())
        };
        for (chunk, code) in [("1,1,1,16,16", 0), ("1,1,1,16,16", 0), ("1,1,1,32,16", 1)] {
            let done = resume(chunk);
            assert_eq!(done.code, code, "{format} {chunk}: {}", done.stderr);
            let said = "its pieces are of 1x1x1x16x16 pixels, not 1x1x1x32x16";
            assert_eq!(done.stderr.contains(said), code == 1, "{format}: {}", done.stderr);
        }
    }
}

/// Tables that --join does not read are called what they are.
#[test]
fn tables_that_are_not_joined_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let [images, _] = images(dir.path());
    let [source, target] = ["source.parquet", "target.parquet"].map(|name| dir.path().join(name));
    write(&source, [("ome_image", images)]);
    let tables: [(&str, &[u8], &str); 2] = [
        (
            "profiles.sqlite",
            b"SQLite format 3\0 and more than that",
            "profiles.sqlite: is a SQLite database, and no Parquet file (hint: SQLite is read as a table of cells alone; \
             write other tables as Parquet or CSV)",
        ),
        ("latin.csv", b"f,v\na,\xb5\n", "(hint: save it as UTF-8: in Excel as \"CSV UTF-8\")"),
    ];
    for (name, bytes, said) in tables {
        let table = dir.path().join(name);
        std::fs::write(&table, bytes).unwrap();
        let done = wellread(&["convert", arg(&source), arg(&target), "--join", arg(&table), "--on", "f"]);
        assert!(done.code == 1 && done.stderr.contains(said), "{}: {}", done.code, done.stderr);
    }
    assert!(!target.exists());
}

/// Libraries that take names as texts of C refuse such a name. No argument of a program can have the byte, and `\0` stands for it.
#[test]
fn a_name_with_a_nul_byte_is_refused_with_a_way_to_leave_it_out() {
    let dir = tempfile::tempdir().unwrap();
    let [images, _] = images(dir.path());
    let source = dir.path().join("source.parquet");
    write(&source, [("nul\0byte", ints([1, 2])), ("dose", ints([3, 4])), ("ome_image", images)]);
    for (format, called) in [("lance", "Lance"), ("vortex", "Vortex"), ("duckdb", "DuckDB")] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("target-{format}"));
        let options = ["convert", arg(&source), arg(&target), "--format", format];
        let refused = wellread(&[&options[..], &["--no-verify"]].concat());
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        let said =
            format!(r#"{called} cannot be written: the name of the column "nul\0byte" has a NUL byte"#);
        for said in [said.as_str(), r"--without-column 'nul\0byte'"] {
            assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
        }
        assert!(!target.exists());
        convert(&source, &target, &["--format", format, "--without-column", r"nul\0byte"]);
        assert_eq!(column(&as_parquet(&target), "dose"), [3, 4], "{format}");
    }
}
