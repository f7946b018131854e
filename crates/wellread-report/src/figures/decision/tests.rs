//! The first chart of a report: formats at their best, by codec.

use super::super::tests::loaders_and_caches;
use super::*;
use crate::chart::Layout;
use crate::row;

#[test]
fn the_report_begins_with_the_formats_at_their_best_the_fastest_first() {
    let mut table = Table::new("dataloader");
    for (format, workers, rate) in
        [("parquet", 0, 10.0), ("parquet", 2, 30.0), ("tiff", 0, 40.0), ("tiff", 2, 20.0)]
    {
        for batch in [4, 16] {
            table.push(row![
                ("format", format),
                ("batch_size", batch),
                ("workers", workers),
                ("num_samples", 20),
                ("status", "ok"),
                ("samples_per_sec", if batch == 4 { rate } else { 100.0 - rate })
            ]);
        }
    }
    table.push(row![("format", "lance"), ("status", "unavailable"), ("reason", "not in this build")]);
    let input = ReportInput { tables: vec![table], ..ReportInput::default() };
    let figure = figure(&input).unwrap();
    let Layout::Rows { series, .. } = &figure.sections[0].layout else { panic!("rows") };
    assert_eq!(series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["tiff", "parquet"]);
    let values: Vec<_> = figure.sections[0].panels[0]
        .marks
        .iter()
        .map(|mark| if let Mark::Value(estimate) = mark { estimate.value } else { 0.0 })
        .collect();
    assert_eq!(values, [40.0, 30.0]);
    assert!(
        figure.title.ends_with(" in batches of 4, with the number of workers that serves it best"),
        "{}",
        figure.title
    );
    assert_eq!(figure.notes, ["Not measured: lance. The figures of the benchmark say why."]);
    assert!(figure.png(1.0).is_ok());
    assert!(super::figure(&ReportInput::default()).is_none());
}

#[test]
fn the_best_of_some_numbers_of_workers_is_not_called_the_best() {
    let mut table = Table::new("dataloader");
    for (format, workers, rate) in
        [("parquet", 0, Some(10.0)), ("parquet", 2, Some(30.0)), ("tiff", 0, Some(40.0)), ("tiff", 2, None)]
    {
        let mut row = row![
            ("format", format),
            ("batch_size", 4),
            ("workers", workers),
            ("num_samples", 20),
            ("status", if rate.is_some() { "ok" } else { "unavailable" })
        ];
        match rate {
            Some(rate) => row.extend(row![("samples_per_sec", rate)]),
            None => row.extend(row![("reason", "left out for want of time")]),
        }
        table.push(row);
    }
    let figure = figure(&ReportInput { tables: vec![table], ..ReportInput::default() }).unwrap();
    assert!(
        figure.title.ends_with(" in batches of 4, with the best number of workers that was measured"),
        "{}",
        figure.title
    );
    assert!(figure.notes.contains(&TOO_FEW_WORKERS.to_owned()), "{:?}", figure.notes);
}

/// Four formats of two codecs, and the loop of a model that takes so many images a second.
fn by_codec(takes: f64) -> Figure {
    let (mut table, mut steps) = (Table::new("dataloader"), Table::new("loop"));
    let formats = [
        ("parquet", 30.0, "zstd"),
        ("tiff", 40.0, "none"),
        ("ome-zarr", 20.0, "zstd"),
        ("lance", 35.0, "none"),
    ];
    for (format, rate, codec) in formats {
        table.push(row![
            ("format", format),
            ("batch_size", 4),
            ("num_samples", 20),
            ("status", "ok"),
            ("codec", codec),
            ("samples_per_sec", rate)
        ]);
    }
    steps.push(row![
        ("format", "tiff"),
        ("model", "small-cnn"),
        ("mode", "train"),
        ("images_per_sec", takes / 2.0),
        ("accelerator_utilisation", 0.5)
    ]);
    figure(&ReportInput { tables: vec![table, steps], ..ReportInput::default() }).unwrap()
}

#[test]
fn formats_of_one_codec_stand_together_on_one_scale() {
    let figure = by_codec(32.0);
    let found: Vec<(&str, Vec<&str>)> = figure
        .sections
        .iter()
        .map(|section| {
            let Layout::Rows { series, .. } = &section.layout else { panic!("rows") };
            (section.title.as_str(), series.iter().map(|s| s.name.as_str()).collect())
        })
        .collect();
    assert_eq!(
        found,
        [("Not compressed", vec!["tiff", "lance"]), ("Zstandard", vec!["parquet", "ome-zarr"])]
    );
    let ends: Vec<_> = figure.sections.iter().map(|section| section.panels[0].axis.at_least).collect();
    assert_eq!(ends, [Some(48.0), Some(48.0)]);
    assert!(figure.notes.iter().any(|note| note.contains("tiff none")), "{:?}", figure.notes);
    assert!(figure.png(1.0).is_ok());
}

#[test]
fn what_the_model_takes_is_a_line_across_all_parts_or_told() {
    let drawn = by_codec(32.0);
    for section in &drawn.sections {
        assert_eq!(section.panels[0].axis.references, [(32.0, "small-cnn takes 32.0/s".to_owned())]);
    }
    assert!(
        drawn.notes[0]
            .starts_with("Dashed line: the rate of the model (small-cnn, training) without waiting"),
        "{:?}",
        drawn.notes
    );
    let far = by_codec(4000.0);
    assert!(far.sections.iter().all(|section| section.panels[0].axis.references.is_empty()));
    assert!(far.notes[0].contains("takes 4,000/s") && far.notes[0].contains("far beyond"), "{:?}", far.notes);
}

#[test]
fn whiskers_are_called_what_they_are() {
    let notes = |runs: usize, with_interval: bool| {
        let mut table = Table::new("storage");
        for (format, rate) in [("parquet", 10.0), ("tiff", 20.0)] {
            for run in 0..runs {
                let rate = rate + run as f64;
                let mut measured = row![
                    ("format", format),
                    ("operation", "read_all"),
                    ("cache", "warm"),
                    ("run", run),
                    ("images_per_s", rate)
                ];
                if with_interval {
                    measured.extend(row![
                        ("images_per_s_ci_low", rate - 1.0),
                        ("images_per_s_ci_high", rate + 1.0)
                    ]);
                }
                table.push(measured);
            }
        }
        figure(&ReportInput { tables: vec![table], ..ReportInput::default() }).unwrap().notes
    };
    assert!(notes(1, false).is_empty());
    assert_eq!(notes(3, false), ["Whiskers: smallest to largest run."]);
    assert!(notes(7, true)[0].starts_with("Whiskers: 95 % confidence intervals;"));
    assert!(!HOW_TO_READ.contains("95 %"), "the foot says what whiskers are");
}

#[test]
fn one_number_of_workers_is_said_and_is_not_the_best_of_several() {
    for (workers, text) in [(0, ", with 0 workers"), (1, ", with 1 worker"), (4, ", with 4 workers")] {
        let mut table = Table::new("dataloader");
        for format in ["parquet", "tiff"] {
            table.push(row![
                ("format", format),
                ("batch_size", 8),
                ("workers", workers),
                ("num_samples", 40),
                ("status", "ok"),
                ("samples_per_sec", 10.0)
            ]);
        }
        let figure = figure(&ReportInput { tables: vec![table], ..ReportInput::default() }).unwrap();
        assert!(figure.title.ends_with(text), "{}", figure.title);
        assert!(figure.notes.is_empty());
    }
}

#[test]
fn formats_whose_pixels_were_wrong_are_named() {
    let mut table = Table::new("storage");
    for (format, rate, verified) in [("parquet", 10.0, true), ("tiff", 20.0, false)] {
        table.push(row![
            ("format", format),
            ("operation", "read_all"),
            ("cache", "warm"),
            ("verified", verified),
            ("images_per_s", rate)
        ]);
    }
    let figure = figure(&ReportInput { tables: vec![table], ..ReportInput::default() }).unwrap();
    assert_eq!(figure.notes, ["⚠ Pixels not verified: tiff. Do not use these figures."]);
}

/// A loader in Python has no cache, and was measured all the same.
#[test]
fn loaders_in_python_stand_beside_the_first_cache() {
    let table = loaders_and_caches();
    let figure = figure(&ReportInput { tables: vec![table], ..ReportInput::default() }).unwrap();
    let Layout::Rows { series, .. } = &figure.sections[0].layout else { panic!("rows") };
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["tiff · rust", "tiff · pytorch · tifffile"]);
    let values = figure.sections[0].panels[0].marks.iter().filter_map(value_of);
    assert_eq!(values.collect::<Vec<_>>(), [40.0, 30.0]);
    assert!(figure.notes.iter().all(|note| !note.contains("Not measured")), "{:?}", figure.notes);
}

#[test]
fn crops_are_called_crops() {
    let mut table = Table::new("dataloader");
    table.push(row![
        ("format", "tiff"),
        ("batch_size", 8),
        ("crops", 4),
        ("workers", 0),
        ("num_samples", 40),
        ("status", "ok"),
        ("samples_per_sec", 40.0)
    ]);
    let figure = figure(&ReportInput { tables: vec![table], ..ReportInput::default() }).unwrap();
    assert!(figure.title.starts_with("Crops per second by format in batches of 8"), "{}", figure.title);
    assert_eq!(figure.sections[0].panels[0].axis.unit.axis_name(40.0), "crops/s");
}
