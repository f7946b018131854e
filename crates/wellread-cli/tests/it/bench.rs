//! The benchmarks end to end, small: every file of the contract, every checksum, every format.

use crate::support::{arg, formats, generate, json, wellread};
use std::fs;
use wellread_report::Table;

const QUICK: &[&str] =
    &["--repeats", "2", "--steps", "2", "--samples", "6", "--batch-sizes", "1,4", "--workers", "0,2"];

#[test]
fn all_benchmarks_write_the_files_of_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let mut args =
        vec!["bench", "all", "--images", "12", "--size", "32x32", "--batch-size", "4", "--out", arg(&out)];
    args.extend(QUICK);
    let summary = json(&args);
    assert_eq!(summary["verified"], true);
    let asked = &summary["configuration"];
    assert_eq!(asked["source"]["synthetic"]["images"], 12);
    assert_eq!(asked["source"]["synthetic"]["shape"], serde_json::json!([1, 1, 1, 32, 32]));
    assert_eq!(asked["access"], serde_json::json!(["sequential", "random", "grouped"]));
    assert!(summary["data_dir"].as_str().unwrap().ends_with("data"));
    for (name, columns) in [
        (
            "storage",
            &["operation", "seconds", "images_per_s", "bytes_on_disk", "bits_per_pixel", "cache"][..],
        ),
        (
            "dataset",
            &[
                "access",
                "transform",
                "mean_s",
                "std_s",
                "p50_s",
                "min_s",
                "max_s",
                "samples_per_sec",
                "num_samples",
                "open_s",
                "peak_rss_mb",
            ],
        ),
        ("dataloader", &["batch_size", "workers", "first_batch_s", "epoch_s", "scaling_efficiency", "p50_s"]),
        ("loop", &["mode", "model", "step_p50_s", "data_wait_fraction", "images_per_sec", "loss", "advice"]),
        (
            "conversion",
            &["numpy_p50_s", "conversion_p50_s", "torch_p50_s", "conversion_overhead_pct", "copied_bytes"],
        ),
    ] {
        let table = Table::read_parquet(out.join(format!("{name}.parquet"))).unwrap();
        for column in columns.iter().chain(&["format", "run", "seed", "timestamp", "verified"]) {
            assert!(table.column(column).is_some(), "{name} lacks {column}");
        }
        for format in formats() {
            assert!(
                (0..table.rows()).any(|r| table.str("format", r) == Some(&format)),
                "{name} lacks {format}"
            );
        }
        assert!(
            (0..table.rows()).all(|r| table.cell("verified", r) == wellread_report::Cell::Bool(true)),
            "{name}"
        );
        let png = fs::read(out.join(format!("{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{name}");
        assert!(fs::read_to_string(out.join(format!("{name}.svg"))).unwrap().contains("<svg"), "{name}");
    }
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("Which format feeds the model fastest?"));
    assert!(!html.contains("http://") || !html.contains("src=\"http"), "the report needs no network");

    // Copies have copied, the other path has not.
    let conversion = Table::read_parquet(out.join("conversion.parquet")).unwrap();
    for row in 0..conversion.rows() {
        let copied = conversion.f64("copied_bytes", row).unwrap();
        let expected = if conversion.str("path", row) == Some("copy") { 32.0 * 32.0 * 4.0 } else { 0.0 };
        assert_eq!(copied, expected);
    }
    // The report can be made again from the results alone.
    fs::remove_file(out.join("report.html")).unwrap();
    json(&["report", arg(&out)]);
    assert!(out.join("report.html").exists());
    // Data that are up to date are used again; stale data are made again.
    let stamp = || fs::metadata(out.join("data/images.parquet")).unwrap().modified().unwrap();
    let before = stamp();
    json(&args);
    assert_eq!(stamp(), before);
    fs::remove_dir_all(out.join("data/tiff")).unwrap();
    json(&args);
    assert!(out.join("data/tiff").exists());
    assert_eq!(stamp(), before, "only what is missing is made");
}

#[test]
fn formats_that_cannot_hold_the_images_are_shown_as_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let mut args = vec![
        "bench",
        "dataset",
        "--images",
        "6",
        "--size",
        "24x24",
        "--dtype",
        "float32",
        "--out",
        arg(&out),
    ];
    args.extend(QUICK);
    json(&args);
    let table = Table::read_parquet(out.join("dataset.parquet")).unwrap();
    let reasons: Vec<_> = (0..table.rows())
        .filter(|&r| table.str("status", r) == Some("unavailable"))
        .map(|r| (table.str("format", r).unwrap().to_owned(), table.str("reason", r).unwrap().to_owned()))
        .collect();
    assert!(reasons.iter().all(|(f, why)| f == "image-folder" && !why.is_empty()), "{reasons:?}");
    assert!(!reasons.is_empty());
    assert!(fs::read_to_string(out.join("dataset.svg")).unwrap().contains("unavailable"));
}

#[test]
fn an_existing_set_is_measured_in_place_and_converted() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 6, &["--formats", "tiff", "--depth", "2"]);
    let out = dir.path().join("in-place");
    let tiff = set.join("tiff");
    let mut args = vec!["bench", "dataloader", "--input", arg(&tiff), "--in-place", "--out", arg(&out)];
    args.extend(QUICK);
    let summary = json(&args);
    assert_eq!(summary["verified"], true);
    assert!(!out.join("data/images.parquet").exists());
    let out = dir.path().join("converted");
    let mut args = vec![
        "bench",
        "storage",
        "--input",
        arg(&tiff),
        "--planes",
        "--formats",
        "parquet,tiff",
        "--out",
        arg(&out),
    ];
    args.extend(QUICK);
    json(&args);
    assert_eq!(json(&["info", arg(&out.join("data/images.parquet"))])["images"], 12);
}

#[test]
fn a_damaged_set_is_found_out_before_it_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let args = [
        "bench",
        "dataset",
        "--images",
        "4",
        "--size",
        "24x24",
        "--formats",
        "tiff",
        "--repeats",
        "1",
        "--samples",
        "2",
        "--out",
    ];
    let mut args = args.to_vec();
    args.push(arg(&out));
    json(&args);
    let victim = fs::read_dir(out.join("data/tiff")).unwrap().flatten().next().unwrap().path();
    let mut bytes = fs::read(&victim).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&victim, bytes).unwrap();
    let done = wellread(&args);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("differ") || done.stderr.contains("row"), "{}", done.stderr);
}
