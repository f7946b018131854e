//! The benchmarks end to end, small: every file of the contract, every checksum, every format.
//!
//! Long because runs are made with the same few options, and every table that they write is looked at.

use crate::support::{HAS_LINUX_CALLS, absent_formats, arg, formats, generate, json, wellread};
use std::collections::BTreeSet;
use std::fs;
use wellread_report::{ReportInput, Table};

const QUICK: &[&str] = &[
    "--repeats",
    "2",
    "--steps",
    "2",
    "--samples",
    "6",
    "--batch-sizes",
    "1,4",
    "--workers",
    "0,2",
    // However busy the machine is, nothing is cut.
    "--time-budget",
    "100000",
];

#[test]
fn all_benchmarks_write_the_files_of_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let mut args =
        vec!["bench", "all", "--images", "12", "--size", "32x32", "--batch-size", "4", "--out", arg(&out)];
    args.extend(QUICK);
    // With any Python.
    args.extend(["--framework", "rust"]);
    if !HAS_LINUX_CALLS {
        // No page can be dropped from the cache, nor can a file be read past it.
        args.push("--no-cold");
    }
    let summary = json(&args);
    assert_eq!(summary["verified"], true);
    let clock = &summary["clock"];
    assert!(clock["overhead_seconds"].as_f64().unwrap() > 0.0, "{clock}");
    assert!(clock["resolution_seconds"].as_f64().unwrap() > 0.0, "{clock}");
    // Formats that this build lacks are part of every table, of the summary and of the answer.
    let absent = absent_formats();
    let answer = summary["report"]["findings"].to_string();
    for format in &absent {
        let how = summary["engines_missing"][format].as_str().unwrap();
        assert!(how.contains("--features") && answer.contains(format.as_str()), "{how}: {answer}");
    }
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
            ],
        ),
        ("dataloader", &["batch_size", "workers", "first_batch_s", "epoch_s", "scaling_efficiency", "p50_s"]),
        ("loop", &["mode", "model", "step_p50_s", "data_wait_fraction", "images_per_sec", "loss", "advice"]),
        (
            "conversion",
            &[
                "numpy_mean_s",
                "numpy_p50_s",
                "numpy_p95_s",
                "numpy_p99_s",
                "conversion_p95_s",
                "conversion_p99_s",
                "torch_p50_s",
                "torch_p95_s",
                "torch_p99_s",
                "conversion_overhead_pct",
                "copied_bytes",
            ],
        ),
    ] {
        let table = Table::read_parquet(out.join(format!("{name}.parquet"))).unwrap();
        // Every format is in every track: those of this build measured, the others with a reason.
        let expected: BTreeSet<String> = formats().into_iter().collect();
        assert_eq!(formats_of(&table, &rows_with(&table, "ok")), expected, "{name}: measured");
        let missing: BTreeSet<String> = absent.iter().cloned().collect();
        assert_eq!(formats_of(&table, &rows_with(&table, "unavailable")), missing, "{name}: missing");
        // Each in the same configurations, two rounds of each. The operations of storage differ.
        let keys: &[&str] = match name {
            "dataset" => &["access", "transform", "cache"],
            "dataloader" => &["batch_size", "workers"],
            "loop" => &["mode", "model"],
            "conversion" => &["framework", "path"],
            _ => &[],
        };
        let configurations = match name {
            "dataset" => 3 * 3 * 2,
            "dataloader" => 2 * 2,
            _ => 2,
        };
        for format in expected.iter().filter(|_| !keys.is_empty()) {
            let mut own = rows_with(&table, "ok");
            own.retain(|&r| table.str("format", r) == Some(format.as_str()));
            let found: BTreeSet<String> = own
                .iter()
                .map(|&r| keys.iter().map(|key| table.cell(key, r).text()).collect::<Vec<_>>().join(" "))
                .collect();
            assert_eq!(found.len(), configurations, "{name}, {format}: {found:?}");
            assert_eq!(own.len(), 2 * configurations, "{name}, {format}: two rounds");
        }
        // The same rows for programs that read no Parquet.
        let text = Table::read_csv(out.join(format!("{name}.csv"))).unwrap();
        assert_eq!(text.rows(), table.rows(), "{name}.csv");
        assert_eq!(
            formats_of(&text, &(0..text.rows()).collect::<Vec<_>>()),
            formats_of(&table, &(0..table.rows()).collect::<Vec<_>>()),
            "{name}.csv"
        );
        for column in columns.iter().chain(&["format", "run", "seed", "timestamp", "verified"]) {
            assert!(table.column(column).is_some(), "{name} lacks {column}");
        }
        for r in 0..table.rows() {
            if absent.iter().any(|format| table.str("format", r) == Some(format)) {
                let reason = table.str("reason", r).unwrap();
                assert_eq!(table.str("status", r), Some("unavailable"));
                assert!(reason.contains("left out of this build"), "{name}: {reason}");
            } else {
                assert_eq!(table.cell("verified", r), wellread_report::Cell::Bool(true), "{name}");
            }
        }
        let png = fs::read(out.join(format!("{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{name}");
        let svg = fs::read_to_string(out.join(format!("{name}.svg"))).unwrap();
        assert!(svg.contains("<svg"), "{name}");
        for format in formats() {
            assert!(svg.contains(&format!(">{format}<")), "{name}.svg does not name {format}");
        }
    }
    let dataset = Table::read_parquet(out.join("dataset.parquet")).unwrap();
    assert_eq!(dataset.column("peak_rss_mb").is_some(), HAS_LINUX_CALLS);
    // The measurements are in the summary, for every format.
    for name in ["storage", "dataset", "dataloader", "loop", "conversion"] {
        let aggregates = summary["aggregates"][name].as_array().unwrap();
        let found: BTreeSet<String> =
            aggregates.iter().filter_map(|one| one["format"].as_str()).map(str::to_owned).collect();
        assert!(formats().into_iter().all(|format| found.contains(&format)), "{name}: {found:?}");
    }
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("Which format feeds the model fastest?"));
    for format in formats() {
        let engine = summary["engines"][&format].as_str().unwrap();
        assert!(html.contains(&format!("engine of {format}")) && html.contains(engine), "{format} {engine}");
    }
    assert!(!html.contains("http://") || !html.contains("src=\"http"), "the report needs no network");

    // Copies have copied, the other path has not.
    let conversion = Table::read_parquet(out.join("conversion.parquet")).unwrap();
    for row in rows_with(&conversion, "ok") {
        let copied = conversion.f64("copied_bytes", row).unwrap();
        let expected = if conversion.str("path", row) == Some("copy") { 32.0 * 32.0 * 4.0 } else { 0.0 };
        assert_eq!(copied, expected);
        // Six samples have no 95th percentile.
        assert_eq!(conversion.cell("torch_p95_s", row), wellread_report::Cell::Null);
    }
    // The limits of this machine stand beside each loader.
    let loaders = Table::read_parquet(out.join("dataloader.parquet")).unwrap();
    for row in rows_with(&loaders, "ok") {
        let limits = ["limit_kernel_per_s", "limit_read_per_s"].map(|name| loaders.f64(name, row).unwrap());
        assert!(limits.iter().all(|limit| *limit > 0.0), "{limits:?}");
        let share = loaders.f64("samples_per_sec", row).unwrap() / limits[0].min(limits[1]);
        assert!((loaders.f64("share_of_limit", row).unwrap() / share - 1.0).abs() < 1e-9);
        let bound = match (share > 1.0, limits[0] < limits[1]) {
            (true, _) => "limit not valid",
            (_, true) => "widening and scaling",
            _ => "reading and decoding",
        };
        assert_eq!(loaders.str("bound_by", row), Some(bound));
    }
    // The report can be made again from the results alone.
    fs::remove_file(out.join("report.html")).unwrap();
    json(&["report", arg(&out)]);
    // A file of the folder is as good as the folder.
    let of_file = json(&["report", arg(&out.join("summary.json"))]);
    assert_eq!(of_file["report"], arg(&out.join("report.html")));
    json(&["report", arg(&out.join("report.html"))]);
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
    let absent = absent_formats();
    assert!(reasons.iter().all(|(f, why)| (f == "image-folder" || absent.contains(f)) && !why.is_empty()));
    assert!(reasons.iter().any(|(f, _)| f == "image-folder"), "{reasons:?}");
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

/// A batch size that the set is too small for is not a format that was not measured.
#[test]
fn a_batch_size_that_is_too_large_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let args = ["bench", "dataloader", "--images", "6", "--size", "24x24", "--formats", "tiff,parquet"];
    let more = ["--batch-sizes", "2,8", "--workers", "0", "--repeats", "1", "--out", arg(&out)];
    let done = wellread(&[args, more].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("Not measured: batches of 8."), "{}", done.stdout);
    assert!(done.stdout.contains("batches of 8: the set has only 6 images"), "{}", done.stdout);
    // Figures name the formats all the same.
    let svg = fs::read_to_string(out.join("dataloader.svg")).unwrap();
    for format in ["tiff", "parquet"] {
        assert!(svg.contains(&format!(">{format}<")), "the figure does not name {format}");
    }
    let table = Table::read_parquet(out.join("dataloader.parquet")).unwrap();
    let sizes = |status: &str| -> BTreeSet<String> {
        rows_with(&table, status).into_iter().map(|r| table.cell("batch_size", r).text()).collect()
    };
    assert_eq!(sizes("ok"), BTreeSet::from(["2".to_owned()]));
    assert_eq!(sizes("unavailable"), BTreeSet::from(["8".to_owned()]));
}

/// Each cache of a loader is a row of its own, with its content beside its rate; a word that is no cache is refused.
#[test]
fn caches_of_the_loader_tell_what_they_keep() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let images = ["bench", "dataloader", "--images", "12", "--size", "48x40", "--formats", "tiff"];
    let policies = "none,memory,compressed,lru:4KiB,compressed-lru:4KiB,file,preload,chunked:4";
    let more = ["--loader-cache", policies, "--batch-sizes", "4", "--workers", "1", "--out", arg(&out)];
    let done = wellread(&[&images[..], &more, &["--repeats", "2", "--keep-open"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let table = Table::read_parquet(out.join("dataloader.parquet")).unwrap();
    let rows = rows_with(&table, "ok");
    for policy in policies.split(',') {
        let row = rows.iter().copied().find(|&row| table.str("cache", row) == Some(policy)).expect(policy);
        let [bytes, images, hits] =
            ["cache_bytes", "cache_images", "cache_hits"].map(|name| table.f64(name, row));
        match policy {
            "none" => assert!(bytes.is_none() || bytes == Some(0.0), "{bytes:?}"),
            "memory" | "file" => assert_eq!((images, hits > Some(0.0)), (Some(12.0), true), "{policy}"),
            "lru:4KiB" | "compressed-lru:4KiB" => assert!(bytes <= Some(4096.0), "{policy}: {bytes:?}"),
            _ => assert!(bytes > Some(0.0), "{policy}"),
        }
        assert!(done.stdout.contains(&format!("{policy} ")), "{policy}: {}", done.stdout);
    }
    assert!(done.stdout.contains("keeps 12 images in"), "{}", done.stdout);
    assert!(done.stdout.contains("of a mapped file"), "{}", done.stdout);
    let refused = wellread(&["bench", "dataloader", "--loader-cache", "much"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

/// It kept nothing, without a word.
#[test]
fn a_cache_that_is_too_small_for_an_image_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let images =
        ["bench", "dataloader", "--images", "4", "--size", "48x40", "--channels", "1", "--dtype", "uint16"];
    let policies = "none,memory:1KiB,compressed:3000,lru:3840";
    let more = ["--loader-cache", policies, "--batch-sizes", "2", "--workers", "0,1", "--out", arg(&out)];
    // However busy the machine is, nothing is cut.
    let rest = ["--formats", "tiff", "--repeats", "1", "--keep-open", "--time-budget", "100000"];
    let done = wellread(&[&images[..], &more, &rest].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let warnings = ReportInput::from_dir(&out).unwrap().warnings;
    let mut of_caches: Vec<&String> =
        warnings.iter().filter(|warning| warning.contains("the first image takes")).collect();
    // Caches are measured in no order.
    of_caches.sort_unstable();
    let told = |when: &str, policy: &str| {
        format!(
            "the first image takes 3840 bytes{when}, and --loader-cache {policy} cannot keep it: give a size of 3840 bytes or more"
        )
    };
    assert_eq!(of_caches, [&told(" before it is compressed", "compressed:3000"), &told("", "memory:1KiB")]);
}

/// Both runs write to `results` where nothing else is said: the second must not take the first away without a word.
#[test]
fn results_of_an_earlier_run_are_not_replaced_without_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let run = |what: &str| {
        let images = ["--images", "4", "--size", "24x20", "--formats", "tiff", "--repeats", "1"];
        let done = wellread(&[&["bench", what, "--out", arg(&out)][..], &images].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr
    };
    let note = format!("note: the results of an earlier run in {} will be replaced", out.display());
    assert!(!run("dataset").contains("will be replaced"));
    let said = run("storage");
    assert!(said.starts_with(&note), "{said}");
    assert!(!out.join("dataset.parquet").exists() && out.join("storage.parquet").exists());
}

/// A crop that no image has room for is wrong usage, and says nothing of damage.
#[test]
fn a_crop_larger_than_the_images_is_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let images = ["bench", "dataloader", "--images", "4", "--size", "24x20", "--formats", "tiff"];
    for option in ["--crop", "--random-crop"] {
        let refused = wellread(&[&images[..], &[option, "16x999", "--out", arg(&out)]].concat());
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        let said = format!("{option} 16x999 is larger than the image of row 0, which is 24x20");
        assert!(refused.stderr.contains(&said), "{}", refused.stderr);
        assert!(refused.stderr.contains(&format!("{option} 24x20 fits all")), "{}", refused.stderr);
        assert!(!refused.stderr.contains("damaged"), "{}", refused.stderr);
    }
}

/// Random crops are compared with parts of whole images, several of an image come from one read. The table has the
/// requests to the loader.
#[test]
fn random_crops_are_verified_and_their_amplification_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let images = ["bench", "dataloader", "--images", "12", "--size", "48x40", "--formats", "tiff"];
    let crops = ["--random-crop", "16x12", "--crops", "2", "--batch-sizes", "4,5", "--workers", "0,2"];
    let more = ["--prefetch", "3", "--repeats", "2", "--out", arg(&out)];
    let summary = json(&[&images[..], &crops, &more].concat());
    assert_eq!(summary["verified"], true);
    let table = Table::read_parquet(out.join("dataloader.parquet")).unwrap();
    let rows = rows_with(&table, "ok");
    assert_eq!(rows.len(), 4, "of two rounds with two numbers of workers");
    for row in rows {
        assert_eq!(table.f64("num_samples", row), Some(24.0));
        assert_eq!((table.f64("crops", row), table.f64("prefetch", row)), (Some(2.0), Some(3.0)));
        // A crop's bytes, four to a pixel.
        let rate =
            table.f64("delivered_bytes_per_s", row).unwrap() / table.f64("samples_per_sec", row).unwrap();
        assert!((rate - 4.0 * 16.0 * 12.0).abs() < 1e-6, "{rate}");
        assert!(table.f64("bytes_read_per_used", row).unwrap() > 0.0);
        assert!(table.f64("limit_kernel_per_s", row).unwrap() > 0.0);
        assert!(
            table.f64("limit_read_per_s", row).is_none(),
            "what reading must do differs from crop to crop"
        );
        assert!(table.str("bound_by", row).is_none());
    }
    // The counted things have their name.
    let findings = summary["report"]["findings"].to_string();
    assert!(findings.contains(" crops/s in batches of 4"), "{findings}");
    assert!(!findings.contains("images/s"), "{findings}");
    let missing = rows_with(&table, "unavailable");
    assert!(table.str("reason", missing[0]).unwrap().contains("does not hold 2 crops"));
    let refused = wellread(&["bench", "dataset", "--random-crop", "8x8"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let refused = wellread(&["bench", "dataloader", "--prefetch", "0"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

/// Images of different shapes are no damage. Benchmarks of single images measure their planes. For batches, the
/// error names the rows that differ and a way to make them equal.
#[test]
fn images_of_different_shapes_are_measured_or_named() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = dir.path().join("mixed");
    fs::create_dir(&mixed).unwrap();
    for (name, size, channels) in [("a", "40x56", "2"), ("b", "48x60", "1")] {
        let set = dir.path().join(name);
        let shape = ["--size", size, "--channels", channels, "--formats", "tiff"];
        json(&[&["generate", arg(&set), "--images", "3"], &shape[..]].concat());
        for entry in fs::read_dir(set.join("tiff")).unwrap().flatten() {
            let file = format!("{name}-{}", entry.file_name().to_str().unwrap());
            fs::copy(entry.path(), mixed.join(file)).unwrap();
        }
    }
    let out = dir.path().join("results");
    let bench = |what: &'static str, more: &[&'static str]| -> Vec<&str> {
        let args = ["bench", what, "--input", arg(&mixed), "--in-place", "--no-cold", "--out", arg(&out)];
        [&args[..], QUICK, more].concat()
    };
    let summary = json(&bench("storage", &[]));
    assert_eq!(summary["verified"], true);
    assert!(
        summary["images"].as_str().unwrap().contains("9 planes of the 6 images"),
        "{}",
        summary["images"]
    );
    let refused = wellread(&bench("dataloader", &[]));
    assert_eq!(refused.code, 1);
    let words = [
        "the planes differ in shape",
        "plane 0 (a-",
        "plane 6 (b-",
        ") is 1x1x1x48x60",
        "3 of the 9 planes of the 6 images differ",
        "6, 7, 8",
        "--crop 40x56",
        "measure single planes as they are",
    ];
    for word in words {
        assert!(refused.stderr.contains(word), "no {word:?} in {}", refused.stderr);
    }
    // Sets that are written hold planes, too.
    let written = dir.path().join("written");
    let args = ["bench", "dataloader", "--input", arg(&mixed), "--formats", "tiff", "--out", arg(&written)];
    let refused = wellread(&[&args[..], QUICK].concat()).stderr;
    assert!(refused.contains("3 of the 9 planes of the 6 images differ"), "{refused}");
    let refused = wellread(&bench("dataloader", &["--crop", "44x56"]));
    assert!(refused.code == 2 && refused.stderr.contains("is larger than plane 0 (a-"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("damaged"), "{}", refused.stderr);
    assert_eq!(json(&bench("dataloader", &["--crop", "40x56"]))["verified"], true);
    // Crops at random are all of one size, too.
    assert_eq!(json(&bench("dataloader", &["--random-crop", "24x32"]))["verified"], true);
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

/// The formats in these rows of a table.
fn formats_of(table: &Table, rows: &[usize]) -> BTreeSet<String> {
    rows.iter().filter_map(|&row| table.str("format", row)).map(str::to_owned).collect()
}

/// Rows of a table with this status.
fn rows_with(table: &Table, status: &str) -> Vec<usize> {
    (0..table.rows()).filter(|&r| table.str("status", r) == Some(status)).collect()
}

#[test]
fn a_sweep_compares_codecs_and_layouts_and_names_what_is_lacking() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let mut args = vec!["bench", "storage", "--sweep", "--no-cold", "--images", "3", "--size", "64x64"];
    args.extend(["--depth", "20", "--random-images", "4", "--repeats", "2", "--out", arg(&out)]);
    args.extend(["--formats", "parquet,ome-arrow-dataset,ome-zarr,tiff,image-folder"]);
    let summary = json(&args);
    assert_eq!(summary["verified"], true);
    assert_eq!(summary["configuration"]["sweeps"], serde_json::json!(["compression", "layout"]));
    let open = |name: &str| Table::read_parquet(out.join(format!("{name}.parquet"))).unwrap();
    let find = |table: &Table, keys: &[(&str, &str)]| -> Vec<usize> {
        rows_with(table, "ok")
            .into_iter()
            .filter(|&r| keys.iter().all(|(k, v)| table.str(k, r) == Some(v)))
            .collect()
    };

    let codecs = open("storage_compression");
    for format in ["parquet", "ome-arrow-dataset", "ome-zarr"] {
        for codec in ["none", "zstd:1", "zstd:3", "zstd:6"] {
            for operation in ["write", "read_all", "read_random"] {
                let keys = [("format", format), ("compression", codec), ("operation", operation)];
                let rows = find(&codecs, &keys);
                assert_eq!(rows.len(), 2, "{keys:?}");
                for r in rows {
                    assert_eq!(codecs.cell("verified", r), wellread_report::Cell::Bool(true));
                    assert!(codecs.f64("images_per_s", r).unwrap() > 0.0);
                    let by = if format == "ome-zarr" { "chunk" } else { "container" };
                    assert_eq!(codecs.str("compressed_by", r), Some(by));
                    let packed = codecs.str("codec", r).unwrap();
                    assert_eq!(packed.contains("zstd"), codec != "none", "{keys:?} {packed}");
                }
            }
        }
        let size = |codec: &str| {
            codecs
                .f64("bits_per_pixel", find(&codecs, &[("format", format), ("compression", codec)])[0])
                .unwrap()
        };
        assert!(size("zstd:3") < 0.9 * size("none"), "{format}");
    }
    let lacking: Vec<_> = rows_with(&codecs, "unavailable")
        .into_iter()
        .map(|r| (codecs.str("format", r).unwrap().to_owned(), codecs.str("reason", r).unwrap().to_owned()))
        .collect();
    assert!(lacking.iter().any(|(f, why)| f == "tiff" && why.to_lowercase().contains("lz4")), "{lacking:?}");

    let layouts = open("storage_layout");
    for format in ["parquet", "ome-arrow-dataset", "ome-zarr"] {
        // 20 planes of 64 x 64: blocks are 16 planes deep.
        for (layout, operation, amplification) in [
            ("z-plane", "read_volume", 1.0),
            ("z-plane", "read_plane", 1.0),
            ("z-plane", "read_sub_volume", 1.0),
            ("volume", "read_volume", 1.0),
            ("volume", "read_plane", 20.0),
            ("volume", "read_sub_volume", 1.25),
            ("block", "read_volume", 1.0),
        ] {
            let keys = [("format", format), ("layout", layout), ("operation", operation)];
            let rows = find(&layouts, &keys);
            assert_eq!(rows.len(), 2, "{keys:?}");
            for r in rows {
                assert_eq!(layouts.cell("verified", r), wellread_report::Cell::Bool(true));
                assert_eq!(layouts.f64("read_amplification", r), Some(amplification), "{keys:?}");
                assert!(layouts.f64("open_s", r).unwrap() < layouts.f64("seconds", r).unwrap());
            }
        }
    }
    assert!(find(&layouts, &[("format", "image-folder")]).is_empty());
    let store = json(&["info", arg(&out.join("data/sweep/layout-block/images.parquet"))]);
    assert_eq!(store["images"], 3);
    for name in ["storage_compression", "storage_layout"] {
        assert!(fs::read(out.join(format!("{name}.png"))).unwrap().starts_with(b"\x89PNG"));
        assert!(out.join(format!("{name}.csv")).exists());
    }
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("Storage: compression") && html.contains("Storage: chunk layouts"));
    assert!(html.contains("Codecs of the sweep that are not available"));
    fs::remove_file(out.join("report.html")).unwrap();
    json(&["report", arg(&out)]);
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("id=\"bench-storage_layout\""));
}

#[test]
fn a_set_without_depth_has_no_layouts_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let images = dir.path().join("set");
    generate(&images, 3, &["--formats", "tiff"]);
    let input = images.join("tiff");
    let args = ["bench", "storage", "--no-cold", "--repeats", "2", "--formats", "parquet,tiff"];
    let args = [&args[..], &["--input", arg(&input), "--sweep", "layout", "--out", arg(&out)]].concat();
    let done = wellread(&args);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("no depth") || done.stdout.contains("no depth"), "{}", done.stderr);
    assert!(!out.join("storage_layout.parquet").exists() && out.join("storage.parquet").exists());
    for (wrong, message) in [
        (vec!["bench", "dataset", "--sweep"], "storage"),
        (vec!["bench", "storage", "--sweep", "codecs"], "compression, layout"),
        (vec!["bench", "storage", "--input", arg(&input), "--in-place", "--sweep"], "--in-place"),
    ] {
        let done = wellread(&wrong);
        assert_eq!(done.code, 2, "{}", done.stderr);
        assert!(done.stderr.contains(message), "{}", done.stderr);
    }
}

#[test]
fn fresh_processes_are_one_value_each() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let args =
        ["bench", "dataset", "--processes", "2", "--images", "8", "--size", "16x16", "--formats", "tiff"];
    let more =
        ["--access", "random", "--transform", "none", "--cache", "none", "--samples", "4", "--repeats", "3"];
    let summary = json(&[&args[..], &more, &["--out", arg(&out)]].concat());
    assert_eq!(summary["configuration"]["processes"], 2);
    assert!(summary["configuration"]["command"].as_str().unwrap().contains("--processes"));
    let table = Table::read_parquet(out.join("dataset.parquet")).unwrap();
    assert_eq!((table.rows(), table.f64("run", 0), table.f64("run", 1)), (2, Some(0.0), Some(1.0)));
    assert_eq!(table.str("codec", 1), Some("none"));
    let samples = wellread_report::Samples::read_parquet(out.join("samples/dataset.parquet")).unwrap();
    assert_eq!(samples.seconds().len(), 6, "three rounds of two processes");
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("fresh ones"));
    let left: Vec<_> = fs::read_dir(&out).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("processes")), "{left:?}");
    // The message of a process is passed on.
    let bad =
        wellread(&["bench", "dataset", "--processes", "2", "--input", "missing.parquet", "--out", arg(&out)]);
    assert_eq!(bad.code, 1);
    assert!(
        bad.stderr.contains("process 1 of 2") && bad.stderr.contains("missing.parquet"),
        "{}",
        bad.stderr
    );
}
