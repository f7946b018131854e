//! `wellread infer` with the embedded backend, which every machine has: rows, files, and what is refused.

use crate::support::{arg, json, wellread};
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
        assert_eq!((row["samples"].as_u64(), row["seed"].as_u64()), (Some(4), Some(7)));
        let of = |name: &str| row[name].as_f64().unwrap();
        assert!(0.0 < of("latency_min_ms") && of("latency_min_ms") <= of("latency_p50_ms"));
        assert!(of("latency_p50_ms") <= of("latency_max_ms"));
        // Four samples say nothing of the tail.
        assert!(row["latency_p95_ms"].is_null() && row["latency_p99_ms"].is_null(), "{row}");
        assert!(of("throughput_ips") > 0.0 && of("warmup_passes") >= 2.0);
        assert_eq!(row["max_difference"], Value::Null);
        if cfg!(target_os = "linux") {
            // The weights at least, and not those of this process.
            assert!(of("memory_mb") > 90.0, "{row}");
        }
    }
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
    let alone = wellread(&[&args[..], &["--check"]].concat());
    assert!(alone.code == 1 && alone.stderr.contains("name another"), "{}", alone.stderr);
    let device = wellread(&[&args[..], &["--device-prefer", "tpu"]].concat());
    assert!(device.code == 1 && device.stderr.contains("candle has no tpu"), "{}", device.stderr);
}
