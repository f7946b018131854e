//! `wellread infer` with the embedded backend, which every machine has: rows, files, and refusals.

use crate::support::{HAS_LINUX_CALLS, arg, generate, json, wellread};
use serde_json::Value;

/// Small images, little to do.
const SMALL: [&str; 8] =
    ["--framework", "candle", "--model", "resnet50", "--input-shape", "3,32,32", "--iterations", "4"];

#[test]
fn the_embedded_backend_is_measured_in_a_process_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("raw");
    let mut args = vec!["infer"];
    args.extend(SMALL);
    args.extend(["--batch-sizes", "1", "3", "--warmup", "2", "--output-dir", arg(&out)]);
    args.extend(["--model-dir", arg(dir.path()), "--threads", "1", "--seed", "7"]);
    let said = json(&args);
    let rows = said["results"].as_array().unwrap();
    let sizes: Vec<_> = rows.iter().map(|row| row["batch_size"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [1, 3]);
    for row in rows {
        assert_eq!((&row["status"], &row["framework"]), (&"ok".into(), &"candle".into()), "{row}");
        assert_eq!((row["latency_samples"].as_u64(), row["seed"].as_u64()), (Some(4), Some(7)));
        let of = |name: &str| row[name].as_f64().unwrap();
        assert!(0.0 < of("latency_min_ms") && of("latency_min_ms") <= of("latency_p50_ms"));
        assert!(of("latency_p50_ms") <= of("latency_max_ms"));
        // They are of four samples, and `latency_samples` says so.
        assert!(of("latency_p50_ms") <= of("latency_p95_ms") && of("latency_p95_ms") <= of("latency_p99_ms"));
        assert!(of("latency_p99_ms") <= of("latency_max_ms"), "{row}");
        assert!(of("throughput_ips") > 0.0 && of("warmup_passes") >= 2.0);
        assert_eq!(row["max_difference"], Value::Null);
        if HAS_LINUX_CALLS {
            // The weights at least, and not those of this process.
            assert!(of("memory_mb") > 90.0, "{row}");
        }
    }
    assert_eq!(said["fastest"], serde_json::json!([]), "one framework alone is not the fastest of any");
    let table = std::fs::read_to_string(said["csv"].as_str().unwrap()).unwrap();
    assert!(
        table.starts_with("framework,model,device,device_type,batch_size,") && table.lines().count() == 3
    );
    let record: Value =
        serde_json::from_slice(&std::fs::read(said["samples"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(record["records"][1]["rounds"].as_array().unwrap().len(), 4);
    assert_eq!(record["records"][1]["row"], rows[1]);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let no_folder = file.join("raw");
    let missing = dir.path().join("missing.onnx");
    let cases: [(&[&str], i32, &str); 8] = [
        (&["--framework", "tensorflow"], 2, "onnxruntime"),
        (&["--model", "resnet18"], 2, "vit_b_16"),
        (&["--model", arg(&missing)], 1, "no such file"),
        (&["--dtype", "int8"], 2, "bfloat16"),
        (&["--batch-sizes", "0"], 2, "at least one"),
        (&["--torch", "fast"], 2, "channels-last"),
        (&["--model", "vit_b_16", "--input-shape", "3,64,64"], 2, "224"),
        (&["--framework", "candle", "--output-dir", arg(&no_folder)], 1, "nothing was measured"),
    ];
    for (args, code, said) in cases {
        let out = arg(dir.path());
        let mut all = vec!["infer"];
        if !args.contains(&"--output-dir") {
            all.extend(["--output-dir", out]);
        }
        all.extend(args);
        let done = wellread(&all);
        assert!(done.code == code && done.stderr.contains(said), "{args:?}: {} {}", done.code, done.stderr);
    }
    // Nobody agrees with nobody; a device by name is not replaced by another.
    let mut args = vec!["infer", "--model-dir", arg(dir.path()), "--output-dir", arg(dir.path())];
    args.extend(SMALL);
    args.extend(["--batch-sizes", "1", "--warmup", "0"]);
    let written = || std::fs::read_dir(dir.path()).unwrap().count();
    let before = written();
    let alone = wellread(&[&args[..], &["--check"]].concat());
    let said = "--check compares the outputs of frameworks, and one alone is asked for";
    assert!(alone.code == 2 && alone.stderr.contains(said), "{}", alone.stderr);
    assert!(alone.stderr.contains("--framework candle,pytorch"), "{}", alone.stderr);
    assert_eq!(written(), before, "nothing is measured before");
    let device = wellread(&[&args[..], &["--device-prefer", "tpu"]].concat());
    assert!(device.code == 1 && device.stderr.contains("candle has no tpu"), "{}", device.stderr);
}

#[test]
fn a_missing_framework_takes_one_line_and_nothing_measured_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("raw");
    let done = wellread(&[
        "infer",
        "--framework",
        "pytorch",
        "--model",
        "resnet50",
        "--python",
        "/no/such/python",
        "--batch-sizes",
        "1",
        "2",
        "--output",
        arg(&out),
        "--model-dir",
        arg(dir.path()),
    ]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(
        done.stderr.contains("nothing was measured") && done.stderr.contains("/no/such/python"),
        "{}",
        done.stderr
    );
    let told: Vec<&str> = done.stdout.lines().filter(|line| line.contains("PyTorch")).collect();
    assert_eq!(told.len(), 1, "{}", done.stdout);
    assert!(told[0].contains("not available") && told[0].contains("/no/such/python"), "{}", told[0]);
    assert!(!done.stdout.contains("Benchmarking batch size"), "{}", done.stdout);
    let ending =
        done.stdout.lines().filter(|line| line.contains("Suite Complete") || line.starts_with("Nothing"));
    assert_eq!(ending.collect::<Vec<_>>(), ["Nothing was measured"], "{}", done.stdout);
    // The table has a row for each all the same.
    let csv = std::fs::read_dir(&out)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "csv"));
    let table = std::fs::read_to_string(csv.unwrap()).unwrap();
    assert_eq!(table.matches("failed").count(), 2, "{table}");
}

#[test]
fn a_framework_that_is_named_and_missing_is_a_failure_beside_others() {
    let dir = tempfile::tempdir().unwrap();
    let run = |frameworks: &str, more: &[&str]| {
        let mut args = vec!["infer", "--output-dir", arg(dir.path()), "--model-dir", arg(dir.path())];
        args.extend(&SMALL[2..]);
        args.extend(["--framework", frameworks, "--batch-sizes", "1", "--warmup", "0"]);
        args.extend(["--python", "/no/such/python"]);
        args.extend(more);
        wellread(&args)
    };
    let named = run("candle,jax", &[]);
    assert_eq!(named.code, 1, "{}", named.stderr);
    for said in ["nothing was measured of jax: ", "/no/such/python", "--skip-failed", "--framework all"] {
        assert!(named.stderr.contains(said), "{said}: {}", named.stderr);
    }
    // The others are measured all the same.
    let total = "Total configurations: 2, 1 of which could not be measured\n";
    for said in ["\nBenchmark Suite Complete\n", total] {
        assert!(named.stdout.contains(said), "{said}: {}", named.stdout);
    }
    for done in [run("candle,jax", &["--skip-failed"]), run("all", &[])] {
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    // Nothing at all is a failure with the option too, and the help says so.
    let nothing = run("jax", &["--skip-failed"]);
    assert_eq!(nothing.code, 1, "{}", nothing.stderr);
    assert!(nothing.stderr.contains("nothing was measured: "), "{}", nothing.stderr);
    let help = wellread(&["infer", "--help"]).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in
        ["If nothing at all was measured, the exit code stays 1", "loading may take five minutes in any case"]
    {
        assert!(help.contains(said), "{said}: {help}");
    }
}

/// ImageNet-100's folders, with a picture that is none: as source of images, and by its classes.
#[test]
fn imagenet_as_it_is_distributed_feeds_a_model() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("imagenet100");
    generate(&dir.path().join("made"), 3, &["--formats", "image-folder"]);
    let mut pictures: Vec<_> = std::fs::read_dir(dir.path().join("made/image-folder"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "png"))
        .collect();
    pictures.sort();
    for (folder, picture) in ["train.X1/n01", "train.X3/n02", "val.X/n02"].iter().zip(&pictures) {
        std::fs::create_dir_all(set.join(folder)).unwrap();
        std::fs::copy(picture, set.join(folder).join("a.png")).unwrap();
    }
    std::fs::write(set.join("val.X/n02/0_bad.png"), "no picture").unwrap();
    std::fs::write(set.join("Labels.json"), r#"{"n01": "goldfish", "n02": "hen"}"#).unwrap();

    let train = json(&["info", arg(&set), "--split", "train"]);
    assert_eq!((&train["images"], &train["format"]), (&2.into(), &"image-folder".into()), "{train}");
    let table = dir.path().join("train.parquet");
    json(&["convert", arg(&set), arg(&table), "--split", "train"]);
    let columns = json(&["info", arg(&table)])["columns"].to_string();
    for name in ["class", "label", "class_name", "split"] {
        assert!(columns.contains(&format!("\"{name}\"")), "{columns}");
    }

    let mut args = vec!["infer", "--model-dir", arg(dir.path()), "--out", arg(dir.path())];
    args.extend(SMALL);
    args.extend(["--batch-sizes", "2", "--warmup", "0", "--data", arg(&set)]);
    // The pictures in the report are those of the split.
    let said = json(&[&args[..], &["--split", "train"][..]].concat());
    let page = std::fs::read_to_string(said["report"].as_str().unwrap()).unwrap();
    assert!(page.contains("Thumbnail of row 0: train/n01/a"), "{page}");
    assert_eq!(page.matches("Thumbnail of row").count(), 2);
    args.extend(["--split", "val"]);
    let raised = wellread(&args);
    assert!(raised.code == 1 && raised.stderr.contains("0_bad.png"), "{}", raised.stderr);
    assert!(raised.stderr.contains("--on-error skip"), "{}", raised.stderr);
    args.extend(["--on-error", "skip"]);
    let said = json(&args);
    let row = &said["results"][0];
    assert_eq!((&row["status"], &row["images_skipped"]), (&"ok".into(), &1.into()), "{row}");
    assert!(row["end_to_end_ips"].as_f64().unwrap() > 0.0);
    let unreadable = &said["unreadable"][0];
    assert_eq!(
        (&unreadable["row"], &unreadable["name"]),
        (&0.into(), &"val/n02/0_bad".into()),
        "{unreadable}"
    );
}
