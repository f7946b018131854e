//! Result tables and results folders: written and read back, damaged and refused.

use crate::sample;
use proptest::prelude::*;
use wellread_report::{Cell, ReportInput, Samples, Table, Values, row, summary};

fn cells() -> impl Strategy<Value = Cell> {
    prop_oneof![
        Just(Cell::Null),
        any::<f64>().prop_map(Cell::F64),
        Just(Cell::F64(f64::NAN)),
        Just(Cell::F64(f64::NEG_INFINITY)),
        any::<i64>().prop_map(Cell::I64),
        any::<bool>().prop_map(Cell::Bool),
        ".{0,12}".prop_map(Cell::Str),
    ]
}

/// Tables of any shape: few column names, so that types meet.
pub fn any_table() -> impl Strategy<Value = Table> {
    let names =
        prop::sample::select(vec!["format", "run", "p50_s", "p50_s_ci_low", "status", "ü \"n\", <b>"]);
    prop::collection::vec(prop::collection::vec((names, cells()), 0..6), 0..12).prop_map(|rows| {
        let mut table = Table::new("any");
        for row in rows {
            table.push(row);
        }
        table
    })
}

/// A table as a benchmark makes it.
pub fn dataset() -> Table {
    let mut table = Table::new("dataset");
    for run in 0..3 {
        for (i, format) in ["parquet", "tiff", "ome-zarr"].into_iter().enumerate() {
            let p50 = 1e-4 * (i as f64 + 1.0) * (1.0 + 0.01 * f64::from(run));
            table.push(row![
                ("format", format),
                ("run", run),
                ("seed", 42),
                ("verified", true),
                ("access", "random"),
                ("transform", "none"),
                ("cache", "none"),
                ("p50_s", p50),
                ("p95_s", p50 * 1.5),
                ("p99_s", p50 * 3.0),
                ("samples_per_sec", 1.0 / p50),
            ]);
        }
    }
    table.push(row![("format", "vortex"), ("status", "unavailable"), ("reason", "not in this build")]);
    table
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parquet_gives_back_what_was_written(table in any_table()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        table.write_parquet(&path).unwrap();
        prop_assert_eq!(&Table::read_parquet(&path).unwrap(), &table);
    }

    #[test]
    fn csv_and_json_hold_every_row(table in any_table()) {
        let dir = tempfile::tempdir().unwrap();
        table.write_json(dir.path().join("t.json")).unwrap();
        let rows: serde_json::Value =
            serde_json::from_slice(&std::fs::read(dir.path().join("t.json")).unwrap()).unwrap();
        prop_assert_eq!(rows.as_array().unwrap().len(), table.rows());
        for row in 0..table.rows() {
            for column in table.columns() {
                let (read, want) = (&rows[row][column.name()], table.cell(column.name(), row).json());
                if let (Some(read), Some(want)) = (read.as_f64(), want.as_f64()) {
                    // The JSON reader may be off by a last digit.
                    prop_assert!((read - want).abs() <= want.abs() * 1e-15);
                } else {
                    prop_assert_eq!(read, &want);
                }
            }
        }
        table.write_csv(dir.path().join("t.csv")).unwrap();
        let mut reader = csv::Reader::from_path(dir.path().join("t.csv")).unwrap();
        for (row, record) in reader.records().enumerate() {
            let record = record.unwrap();
            for (column, text) in table.columns().iter().zip(&record) {
                prop_assert_eq!(text, table.cell(column.name(), row).text());
            }
        }
    }
}

#[test]
fn a_renamed_file_keeps_the_name_of_its_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("renamed.parquet");
    dataset().write_parquet(&path).unwrap();
    let table = Table::read_parquet(&path).unwrap();
    assert_eq!(table.name(), "dataset");
    assert!(matches!(table.column("seed").unwrap().values(), Values::I64(_)));
}

#[test]
fn damaged_tables_are_errors_that_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dataset.parquet");
    dataset().write_parquet(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for cut in (0..whole.len()).step_by(37) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let error = Table::read_parquet(&path).unwrap_err().to_string();
        assert!(error.contains("dataset.parquet") && error.contains("hint"), "{error}");
    }
    for at in (0..whole.len()).step_by(11) {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            std::fs::write(&path, bytes).unwrap();
            if let Ok(table) = Table::read_parquet(&path) {
                assert!(table.rows() < 10_000, "{} rows from a flip at {at}", table.rows());
            }
        }
    }
}

#[test]
fn columns_of_other_types_are_refused_by_name() {
    use arrow_array::{ArrayRef, Date32Array, RecordBatch};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let dates: ArrayRef = std::sync::Arc::new(Date32Array::from(vec![1]));
    let batch = RecordBatch::try_from_iter([("when", dates)]).unwrap();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), None)
            .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let error = Table::read_parquet(&path).unwrap_err().to_string();
    assert!(error.contains("\"when\"") && error.contains("Date32"), "{error}");
}

#[test]
fn a_results_folder_gives_back_the_whole_input() {
    let dir = tempfile::tempdir().unwrap();
    let mut input = sample::input();
    let at = input.tables.iter().position(|t| t.name() == "dataset").expect("it is in the sample");
    input.tables[at] = dataset();
    input.save(dir.path()).unwrap();
    assert_eq!(ReportInput::from_dir(dir.path()).unwrap(), input);
    let summary = summary::read(dir.path().join("summary.json")).unwrap();
    assert_eq!(summary["seed"], 42);
    let first = &summary["aggregates"]["dataset"][0];
    assert_eq!(first["format"], "parquet");
    assert_eq!(first["p50_s"]["n"], 3);
    assert!((first["p50_s"]["value"].as_f64().unwrap() - 1.01e-4).abs() < 1e-12);
}

#[test]
fn damaged_folders_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let missing = ReportInput::from_dir(dir.path().join("nothing")).unwrap_err().to_string();
    assert!(missing.contains("nothing") && missing.contains("hint"), "{missing}");
    let empty = ReportInput::from_dir(dir.path()).unwrap_err().to_string();
    assert!(
        empty.contains("no result table") && empty.contains("if it stopped before its first result"),
        "{empty}"
    );
    sample::input().save(dir.path()).unwrap();
    let path = dir.path().join("summary.json");
    for bad in [
        "",
        "{",
        "[1]",
        "{\"report\": 3}",
        "{\"report\": {\"findings\": [{\"severity\": \"odd\"}]}}",
        "\u{0}",
    ] {
        std::fs::write(&path, bad).unwrap();
        let error = ReportInput::from_dir(dir.path()).unwrap_err().to_string();
        assert!(error.contains("summary.json"), "{bad:?}: {error}");
    }
    std::fs::remove_file(&path).unwrap();
    let input = ReportInput::from_dir(dir.path()).unwrap();
    assert!(input.warnings[0].contains("summary.json is missing"));
    assert_eq!(input.tables, sample::tables());
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["", "../x", "a/b", "a b"] {
        let input = ReportInput { tables: vec![Table::new(name)], ..ReportInput::default() };
        assert!(input.save(dir.path()).unwrap_err().to_string().contains("no name"), "{name:?}");
    }
    let twice = ReportInput { tables: vec![Table::new("a"), Table::new("a")], ..ReportInput::default() };
    assert!(twice.save(dir.path()).unwrap_err().to_string().contains("two result tables"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn single_measurements_and_figures_of_an_earlier_run_do_not_stay() {
    let dir = tempfile::tempdir().unwrap();
    let mut samples = Samples::new("dataset");
    samples.push(row![("format", "tiff"), ("run", 0)], vec![0.25, 0.5]);
    let first =
        ReportInput { tables: vec![dataset()], samples: vec![samples.clone()], ..ReportInput::default() };
    first.save(dir.path()).unwrap();
    let drawn = ["dataset.svg", "dataset_distribution.png", "dataset_timeline.svg"];
    for name in drawn.into_iter().chain(["own.svg"]) {
        std::fs::write(dir.path().join(name), "of the earlier run").unwrap();
    }
    // In this run nothing was measured one by one.
    let second = ReportInput { samples: vec![], ..first.clone() };
    second.save(dir.path()).unwrap();
    assert!(ReportInput::from_dir(dir.path()).unwrap().samples.is_empty());
    for name in drawn {
        assert!(!dir.path().join(name).exists(), "{name}");
    }
    assert!(dir.path().join("own.svg").exists() && dir.path().join("dataset.csv").exists());
    first.save(dir.path()).unwrap();
    assert_eq!(ReportInput::from_dir(dir.path()).unwrap().samples, [samples]);
}

/// The writer keeps such an integer as text, and a float would round it.
#[test]
fn integers_of_64_bits_come_back_from_csv_with_every_digit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.csv");
    let mut table = Table::new("x");
    table.push(row![("seed", u64::MAX), ("large", 1.2345e23), ("rate", 1)]);
    table.push(row![("seed", 3_u64), ("large", 0.5), ("rate", 2.5)]);
    table.write_csv(&path).unwrap();
    let read = Table::read_csv(&path).unwrap();
    assert_eq!(read.str("seed", 0), Some("18446744073709551615"));
    assert_eq!((read.f64("large", 0), read.f64("rate", 1)), (Some(1.2345e23), Some(2.5)));
}

/// The summary that named the earlier run's tables may be lost, and its tables are there all the same.
#[test]
fn tables_that_the_summary_does_not_list_are_left_out_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = Table::new("storage");
    storage.push(row![("format", "tiff"), ("run", 0), ("p50_s", 0.5)]);
    ReportInput { tables: vec![dataset(), storage.clone()], ..ReportInput::default() }
        .save(dir.path())
        .unwrap();
    std::fs::remove_file(dir.path().join("summary.json")).unwrap();
    let second = ReportInput { tables: vec![storage.clone()], ..ReportInput::default() };
    second.save(dir.path()).unwrap();
    assert!(dir.path().join("dataset.parquet").exists());
    let read = ReportInput::from_dir(dir.path()).unwrap();
    assert_eq!(read.tables, [storage]);
    assert_eq!(
        read.warnings,
        ["dataset is left out: it is of another run, which summary.json does not list"]
    );
    std::fs::remove_file(dir.path().join("storage.parquet")).unwrap();
    let error = ReportInput::from_dir(dir.path()).unwrap_err().to_string();
    assert!(error.contains("no result table that summary.json lists"), "{error}");
}

#[test]
fn two_files_of_one_table_are_refused_with_both_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    dataset().write_parquet(path("dataset.parquet")).unwrap();
    assert_eq!(ReportInput::from_dir(dir.path()).unwrap().tables, [dataset()]);
    std::fs::copy(path("dataset.parquet"), path("before.parquet")).unwrap();
    let error = ReportInput::from_dir(dir.path()).unwrap_err().to_string();
    assert!(error.contains("before.parquet and dataset.parquet hold the same table \"dataset\""), "{error}");
    assert!(error.contains("hint: keep one of them"), "{error}");
}

#[test]
fn a_file_whose_table_would_leave_the_folder_is_refused() {
    for name in ["../x", "/tmp/x", "a/b", ".."] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("odd.parquet");
        let mut table = Table::new(name);
        table.push(row![("format", "tiff"), ("p50_s", 0.5)]);
        table.write_parquet(&path).unwrap();
        let error = ReportInput::from_dir(dir.path()).unwrap_err().to_string();
        assert!(error.contains("odd.parquet") && error.contains("no name of a file"), "{name}: {error}");
    }
}
