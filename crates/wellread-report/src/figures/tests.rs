//! Figures of tables that are made here.

use super::figure;
use super::notes::{labelled_name, notes};
use super::panel::value_of;
use crate::chart::{Layout, Mark};
use crate::input::ReportInput;
use crate::row;
use crate::table::{Cell, IntervalKind, Table};

fn storage() -> Table {
    let mut table = Table::new("storage");
    let rates = [("tiff", 100.0, 900.0), ("parquet", 300.0, 100.0), ("ome-zarr", 200.0, 500.0)];
    for (format, all, random) in rates {
        for (operation, rate) in [("read_all", all), ("read_random", random)] {
            table.push(row![
                ("format", format),
                ("operation", operation),
                ("cache", "warm"),
                ("run", 0),
                ("images_per_s", rate)
            ]);
        }
    }
    table
}

/// A loader with two caches beside one in Python, which has none.
pub(super) fn loaders_and_caches() -> Table {
    let mut table = Table::new("dataloader");
    for (framework, loader, cache, rate) in [
        ("rust", "wellread", Some("none"), 40.0),
        ("rust", "wellread", Some("memory"), 90.0),
        ("pytorch", "tifffile", None, 30.0),
    ] {
        table.push(row![
            ("format", "tiff"),
            ("framework", framework),
            ("loader", loader),
            ("batch_size", 4),
            ("workers", 0),
            ("cache", cache),
            ("num_samples", 20),
            ("status", "ok"),
            ("samples_per_sec", rate)
        ]);
    }
    table
}

#[test]
fn rows_that_panels_share_are_sorted_by_the_first_of_them() {
    let figure = figure(&storage(), &ReportInput::default()).unwrap();
    let section = &figure.sections[0];
    assert_eq!(section.panels.len(), 2);
    let Layout::Rows { series, .. } = &section.layout else { panic!("rows") };
    let names: Vec<_> = series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["parquet", "ome-zarr", "tiff"]);
    let values = |panel: usize| section.panels[panel].marks.iter().filter_map(value_of).collect::<Vec<_>>();
    assert_eq!((values(0), values(1)), (vec![300.0, 200.0, 100.0], vec![100.0, 500.0, 900.0]));
}

/// A set that is measured as it lies there has one format, and its report begins with a chart all the same.
#[test]
fn a_report_of_one_format_begins_with_its_bar() {
    let mut table = Table::new("dataloader");
    for (workers, rate) in [(0, 10.0), (2, 12.0)] {
        table.push(row![
            ("format", "tiff"),
            ("batch_size", 4),
            ("workers", workers),
            ("num_samples", 20),
            ("status", "ok"),
            ("samples_per_sec", rate)
        ]);
    }
    let drawn =
        super::decision::figure(&ReportInput { tables: vec![table], ..ReportInput::default() }).unwrap();
    let bars = drawn.sections[0].panels[0].marks.iter().filter_map(value_of).collect::<Vec<_>>();
    assert_eq!((drawn.sections.len(), bars), (1, vec![12.0]));
    assert!(drawn.png(1.0).is_ok());
}

#[test]
fn a_row_without_a_result_in_the_first_panel_comes_after_those_with_one() {
    let mut table = storage();
    table.push(row![
        ("format", "lance"),
        ("operation", "read_random"),
        ("cache", "warm"),
        ("run", 0),
        ("images_per_s", 1e6)
    ]);
    let figure = figure(&table, &ReportInput::default()).unwrap();
    let Layout::Rows { series, .. } = &figure.sections[0].layout else { panic!("rows") };
    assert_eq!(series.last().unwrap().name, "lance");
}

#[test]
fn numbers_in_the_name_of_what_is_missing_bear_their_columns_name() {
    let key = row![("format", "tiff"), ("batch_size", 16), ("workers", 2), ("cache", "none")];
    let keys: Vec<&str> = key.iter().map(|(name, _)| name.as_str()).collect();
    let cells: Vec<Cell> = key.iter().map(|(_, cell)| cell.clone()).collect();
    assert_eq!(labelled_name(&keys, &cells), "tiff, batch size 16, workers 2, cache none");
    let unknown = [cells[0].clone(), Cell::Null, Cell::Null, Cell::Null];
    assert_eq!(labelled_name(&keys, &unknown), "tiff");
}

#[test]
fn notes_name_what_compresses_and_the_columns_of_numbers() {
    let mut table = Table::new("dataloader");
    table.push(row![
        ("format", "tiff"),
        ("codec", "zstd"),
        ("workers", 2),
        ("p50_s", 1.0),
        ("verified", true)
    ]);
    table.push(row![
        ("format", "ome-zarr"),
        ("codec", "crc32c"),
        ("workers", 2),
        ("p50_s", 1.0),
        ("verified", false)
    ]);
    let found = notes(&table, &[], &ReportInput::default());
    assert_eq!(found[1], "Compression: tiff zstd, ome-zarr none.");
    assert_eq!(found[2], "⚠ Pixels not verified: ome-zarr, workers 2.");
}

#[test]
fn formats_whose_pixels_were_wrong_are_named_once() {
    let mut table = Table::new("dataloader");
    for framework in ["jax", "pytorch"] {
        for format in ["tiff", "png"] {
            table.push(row![
                ("format", format),
                ("framework", framework),
                ("p50_s", 1.0),
                ("verified", false)
            ]);
        }
    }
    let found = notes(&table, &[], &ReportInput::default());
    assert_eq!(found[1], "⚠ Pixels not verified: tiff, png (4 configurations).");
}

#[test]
fn rows_left_out_for_want_of_time_are_counted_and_not_drawn() {
    let mut table = storage();
    for (format, why) in [
        ("lance", "left out for want of time: one step takes 9 s"),
        ("vortex", "left out for want of time: one step takes 8 s"),
        ("duckdb", "not in this build"),
    ] {
        table.push(row![("format", format), ("status", "unavailable"), ("reason", why)]);
    }
    let figure = figure(&table, &ReportInput::default()).unwrap();
    for section in &figure.sections {
        let Layout::Rows { series, variants } = &section.layout else { panic!("rows") };
        let mut names: Vec<_> = series.iter().map(|s| s.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["duckdb", "ome-zarr", "parquet", "tiff"]);
        assert!(section.panels.iter().all(|p| p.marks.len() == series.len() * variants.len()));
    }
    let late: Vec<_> = figure.notes.iter().filter(|note| note.contains("want of time")).collect();
    assert_eq!(late, ["2 configurations: left out for want of time"]);
    assert!(figure.notes.iter().any(|note| note.contains("not in this build")), "{:?}", figure.notes);
}

#[test]
fn figures_of_many_rows_draw_the_first_and_say_how_many_there_are() {
    let mut table = Table::new("storage");
    let mut tasks = Table::new("tasks");
    for at in 0..1500 {
        let format = format!("format-{at:04}");
        table.push(row![
            ("format", &format),
            ("operation", "read_all"),
            ("cache", "warm"),
            ("run", 0),
            ("images_per_s", 1.0)
        ]);
        if at < 250 {
            tasks.push(row![
                ("experiment", "e"),
                ("branch", &format),
                ("phase", "batch_step"),
                ("seconds", 0.1)
            ]);
        }
    }
    let of_formats = figure(&table, &ReportInput::default()).unwrap();
    let Layout::Rows { series, .. } = &of_formats.sections[0].layout else { panic!("rows") };
    assert_eq!((series.len(), series[99].name.as_str()), (100, "format-0099"));
    let said = "The first 100 of 1,500 formats are drawn; the table has all.";
    assert!(of_formats.notes.iter().any(|note| note == said), "{:?}", of_formats.notes);
    let of_branches = figure(&tasks, &ReportInput::default()).unwrap();
    let section = &of_branches.sections[0];
    let Layout::Rows { series, .. } = &section.layout else { panic!("rows") };
    assert_eq!((series.len(), section.panels[0].marks.len()), (200, 200));
    assert!(section.title.ends_with(": the first 200 of 250 rows; the table has all"), "{}", section.title);
}

#[test]
fn whiskers_are_told_of_quantities_that_are_drawn() {
    let mut table = storage();
    for run in 0..3 {
        table.push(row![
            ("format", "tiff"),
            ("operation", "read_all"),
            ("cache", "cold"),
            ("run", run),
            ("mb_per_s", f64::from(run))
        ]);
    }
    let figure = figure(&table, &ReportInput::default()).unwrap();
    assert!(!figure.notes.iter().any(|note| note.contains("Whiskers")), "{:?}", figure.notes);
}

/// The size of a set stands in the rows of all its operations: one run of each is no range.
#[test]
fn values_that_are_all_alike_have_no_whisker() {
    let mut table = Table::new("storage");
    for operation in ["write", "read_all"] {
        table.push(row![
            ("format", "tiff"),
            ("operation", operation),
            ("cache", "warm"),
            ("run", 0),
            ("images_per_s", 100.0),
            ("bits_per_pixel", 8.0)
        ]);
    }
    let figure = figure(&table, &ReportInput::default()).unwrap();
    assert_eq!(figure.notes, ["One run per configuration."]);
}

#[test]
fn unlike_configurations_in_one_bar_have_no_whisker_and_are_named() {
    let costs = |accesses: &[&str]| {
        let mut table = Table::new("dataset");
        for (at, access) in accesses.iter().enumerate() {
            for run in 0..3 {
                table.push(row![
                    ("format", "tiff"),
                    ("access", *access),
                    ("transform", "none"),
                    ("cache", "none"),
                    ("run", run),
                    ("status", "ok"),
                    ("p50_s", 1e-3),
                    ("open_s", 0.1 * (at + 1) as f64 + 0.01 * f64::from(run))
                ]);
            }
        }
        let figure = figure(&table, &ReportInput::default()).unwrap();
        let panel =
            &figure.sections.iter().find(|section| section.title == "Opening and memory").unwrap().panels[0];
        let Mark::Value(estimate) = &panel.marks[0] else { panic!("a value") };
        (panel.title.clone(), *estimate)
    };
    let (title, one) = costs(&["random"]);
    assert_eq!((title.as_str(), one.interval), ("to open", IntervalKind::Range));
    assert!((one.low - 0.1).abs() < 1e-12 && (one.high - 0.12).abs() < 1e-12);
    let (title, pooled) = costs(&["sequential", "random"]);
    assert_eq!(title, "to open, median over all kinds of access");
    assert_eq!((pooled.interval, pooled.low, pooled.n), (IntervalKind::None, pooled.high, 6));
    assert!((pooled.value - 0.16).abs() < 1e-12);
}

#[test]
fn panels_in_which_nothing_was_measured_are_dropped_and_told_in_the_notes() {
    let why = "unavailable: left out for want of time: dataset had 2 s";
    let mut table = Table::new("dataset");
    for access in ["sequential", "random"] {
        for transform in ["none", "normalize", "augment"] {
            let mut row =
                row![("format", "tiff"), ("access", access), ("transform", transform), ("cache", "none")];
            if (access, transform) == ("sequential", "none") {
                row.extend(row![("run", 0), ("status", "ok"), ("p50_s", 1e-3), ("samples_per_sec", 1000.0)]);
            } else {
                row.extend(row![("status", "unavailable"), ("reason", why)]);
            }
            table.push(row);
        }
    }
    let figure = figure(&table, &ReportInput::default()).unwrap();
    for section in &figure.sections {
        assert_eq!(section.panels.len(), 1, "{}", section.title);
    }
    assert!(figure.notes.iter().any(|note| note.contains("left out for want of time")), "{:?}", figure.notes);
}

#[test]
fn formats_of_all_codecs_are_on_one_scale_however_wide_an_interval_is() {
    let mut table = Table::new("dataloader");
    for (format, codec, step) in [("tiff", "none", 20.0), ("parquet", "zstd", 1.0)] {
        for run in 0..7 {
            table.push(row![
                ("format", format),
                ("codec", codec),
                ("batch_size", 4),
                ("workers", 0),
                ("num_samples", 20),
                ("run", run),
                ("status", "ok"),
                ("samples_per_sec", 50.0 + step * f64::from(run))
            ]);
        }
    }
    let input = ReportInput { tables: vec![table], ..ReportInput::default() };
    let figure = super::decision::figure(&input).unwrap();
    let Mark::Value(widest) = &figure.sections[0].panels[0].marks[0] else { panic!("a value") };
    assert!(widest.high > 1.3 * widest.value, "{widest:?}");
    // The same number stands at the same place below each part.
    let svg = figure.svg();
    let places: Vec<_> = svg.lines().filter(|line| line.ends_with(">100</text>")).collect();
    let x = |line: &&str| line.split('"').nth(1).map(str::to_owned);
    assert!(places.len() == 2 && x(&places[0]) == x(&places[1]), "{places:?}");
}
