//! Tables at 80 columns and wider: every figure, one line for what is missing.

use super::*;
use crate::output::MAX_LINE_WIDTH as WIDTH;
use wellread_report::row;

#[test]
fn a_wide_table_fits() {
    let mut table = Table::new("loop");
    for (format, workers) in [("parquet", 0), ("ome-arrow-dataset", 2)] {
        table.push(row![
            ("format", format),
            ("model", "small-cnn"),
            ("mode", "train"),
            ("workers", workers),
            ("step_p50_s", 0.01),
            ("data_wait_fraction", 0.123),
            ("accelerator_utilisation", 0.877),
            ("images_per_sec", 12_345.0),
            ("wait_by_difference_fraction", 0.1),
            ("wait_by_difference_cold_fraction", 0.1),
            ("synthetic_step_s", 0.1),
            ("cached_step_s", 0.1),
            ("first_batch_s", 0.1),
            ("verified", workers == 0)
        ]);
    }
    table.push(row![
        ("format", "lance"),
        ("model", "small-cnn"),
        ("mode", "train"),
        ("status", "unavailable"),
        ("reason", "x".repeat(300))
    ]);
    for width in [80, 100] {
        let text = text_table(&table, "", &[], width);
        assert!(text.lines().all(|line| chars(line) <= width), "{text}");
        assert!(text.contains("all: model small-cnn, mode train"), "{text}");
        // Every figure of both configurations, however narrow.
        assert_eq!(text.matches("12,300/s").count(), 2, "{text}");
        assert_eq!(text.matches("12.3\u{a0}%").count(), 2, "{text}");
        assert_eq!(text.matches("87.7\u{a0}%").count(), 2, "{text}");
        assert_eq!(text.matches("100\u{a0}ms").count(), 6, "{text}");
        // A line of each part says whose figures they are, and that they are no good.
        assert_eq!(
            text.matches("ome-arrow-dataset").count(),
            text.matches("PIXELS DIFFER").count(),
            "{text}"
        );
        let missing: Vec<&str> = text.lines().filter(|line| line.contains("xxx")).collect();
        assert!(missing.len() == 1 && missing[0].starts_with("  unavailable: lance: xxx"), "{text}");
        assert!(missing[0].ends_with("xx…"), "{text}");
    }
    let few = text_table(&table, "about", &["images_per_sec"], WIDTH);
    assert!(few.contains("PIXELS DIFFER") && few.contains("/s"), "{few}");
}

#[test]
fn formats_that_a_build_lacks_take_one_line() {
    let mut table = Table::new("storage");
    for operation in ["open", "read_all", "read_random"] {
        table.push(row![("format", "tiff"), ("operation", operation), ("status", "ok"), ("seconds", 1.0)]);
        for format in ["duckdb", "lance", "vortex"] {
            let reason = format!("left out of this build; build with --features {format}");
            table.push(row![
                ("format", format),
                ("operation", operation),
                ("status", "unavailable"),
                ("reason", reason)
            ]);
        }
    }
    table.push(row![
        ("format", "tiff"),
        ("operation", "write"),
        ("status", "unavailable"),
        ("reason", "the disk is full")
    ]);
    let text = text_table(&table, "", &["seconds"], WIDTH);
    let said: Vec<&str> = text.lines().filter(|line| line.contains("unavailable")).collect();
    assert_eq!(
        said,
        [
            "  unavailable: duckdb; lance; vortex: left out of this build",
            "  unavailable: tiff, write: the disk is full"
        ]
    );
    assert!(text.contains("all: format tiff") && text.matches("1.00").count() == 3, "{text}");
}

/// `pip install …` and not `pip inst…`, whatever the width is.
#[test]
fn a_reason_is_cut_between_words() {
    let reason = "jax cannot be imported: No module named 'jax' (hint: pip install jax; or leave it out of the frameworks)";
    let mut table = Table::new("dataset");
    table.push(row![("format", "tiff"), ("framework", "jax"), ("status", "unavailable"), ("reason", reason)]);
    for width in 60..160 {
        let text = text_table(&table, "", &["p50_s"], width);
        let line = text.lines().find(|line| line.contains("unavailable")).unwrap();
        assert!(chars(line) <= width, "{line}");
        let said = line.split_once("jax: ").unwrap().1;
        match said.strip_suffix(" …") {
            Some(words) => assert!(reason.starts_with(&format!("{words} ")), "{line}"),
            None => assert_eq!(said, reason),
        }
    }
}

#[test]
fn a_framework_that_is_missing_takes_one_line() {
    let mut table = Table::new("dataset");
    for format in ["tiff", "parquet"] {
        table.push(row![("format", format), ("framework", "rust"), ("status", "ok"), ("p50_s", 1.0)]);
        for framework in ["pytorch", "jax"] {
            table.push(row![
                ("format", format),
                ("framework", framework),
                ("status", "unavailable"),
                ("reason", "No module\nnamed torch")
            ]);
        }
    }
    let text = text_table(&table, "", &["p50_s"], WIDTH);
    let said: Vec<&str> = text.lines().filter(|line| line.contains("unavailable")).collect();
    assert_eq!(said, ["  unavailable: pytorch; jax: No module named torch"]);
}

#[test]
fn the_one_configuration_that_was_measured_shows_every_figure() {
    let row = |format: &str| {
        row![
            ("format", format),
            ("framework", "pytorch"),
            ("loader", "wellread.torch.DataLoader"),
            ("model", "python:mymodels:ANetworkOfALongName"),
            ("mode", "train"),
            ("batch_size", 2),
            ("device", "cpu"),
            ("backend", "torch 2.9.1, oneDNN, 16 threads")
        ]
    };
    let mut table = Table::new("loop");
    let mut measured = row("parquet");
    measured.extend(row![
        ("status", "ok"),
        ("images_per_sec", 12_345.0),
        ("data_wait_fraction", 0.123),
        ("step_p50_s", 0.1)
    ]);
    table.push(measured);
    let mut late = row("tiff");
    late.extend(row![("status", "unavailable"), ("reason", "left out for want of time: loop had 2 s")]);
    table.push(late);
    for width in [80, WIDTH] {
        let text = text_table(&table, "", &[], width);
        assert!(text.lines().all(|line| chars(line) <= width), "{text}");
        for figure in ["12,300/s", "12.3\u{a0}%", "100\u{a0}ms"] {
            assert_eq!(text.matches(figure).count(), 1, "{figure}: {text}");
        }
        assert!(text.contains("  all: framework pytorch, loader wellread.torch.DataLoader"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("  parquet ")), "{text}");
    }
    // Keys that differ stay beside the figures, cut.
    let mut other = row("tiff");
    for (name, cell) in &mut other {
        if matches!(name.as_str(), "loader" | "model" | "backend") {
            *cell = wellread_report::Cell::from(format!("{}, changed", cell.text()));
        }
    }
    other.extend(row![
        ("status", "ok"),
        ("images_per_sec", 45.0),
        ("data_wait_fraction", 0.456),
        ("step_p50_s", 0.2)
    ]);
    table.push(other);
    let text = text_table(&table, "", &[], WIDTH);
    for figure in ["12,300/s", "45.0/s", "12.3\u{a0}%", "45.6\u{a0}%", "100\u{a0}ms", "200\u{a0}ms"] {
        assert_eq!(text.matches(figure).count(), 1, "{figure}: {text}");
    }
    assert!(text.lines().all(|line| chars(line) <= WIDTH) && text.contains("python:"), "{text}");
}

#[test]
fn heads_are_broken_at_spaces() {
    let head = wrap_head("share of a step waiting for data", 6);
    assert_eq!(head, ["share of a", "step waiting", "for data"]);
}

#[test]
fn a_table_of_texts_fits_and_keeps_its_figures() {
    let heads = ["kept as", "MB of set", "write ms/image", "images/s in batches", "versus the fastest"];
    let row = |name: &str, first: &str| {
        [name, first, "0.45", "12345 (12001-12890)", "1.45 (1.40-1.51) times the time"]
            .map(str::to_owned)
            .to_vec()
    };
    let rows = [row("ome-zarr 0.5, chunks of 1x1x1x256x256, zstd:3", "17.5"), row("tiff", "8.25")];
    let text = plain_table(&heads, &rows, 80);
    assert!(text.lines().all(|line| chars(line) <= 80), "{text}");
    for figure in ["17.5", "8.25"] {
        assert_eq!(text.matches(figure).count(), 1, "{text}");
    }
    for figure in ["0.45", "12345 (12001-12890)", "times the time"] {
        assert_eq!(text.matches(figure).count(), 2, "{text}");
    }
    // Every part says whose figures they are.
    assert_eq!(text.matches("  tiff ").count(), text.matches("kept as").count(), "{text}");
    let wide = plain_table(&heads, &rows, 200);
    assert_eq!(wide.lines().last().unwrap().matches("times the time").count(), 1, "{wide}");
    assert_eq!(wide.matches("kept as").count(), 1, "{wide}");
}
