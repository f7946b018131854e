//! Results in every form they are written in.

use crate::folder;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use wellread_compare::{Options, Results, RowVerdict, compare};

/// Rounds of one process a side, judged as they are.
fn of_runs() -> Options {
    Options { same_conditions: true, ..Options::default() }
}

fn ratio(a: &Path, b: &Path) -> (f64, RowVerdict) {
    let c = compare(&Results::open(a).unwrap(), &Results::open(b).unwrap(), &of_runs()).unwrap();
    (c.rows[0].ratio.unwrap(), c.rows[0].verdict)
}

/// Two folders of results, the second of which is slower.
fn a_slower_one(dir: &Path) -> [PathBuf; 2] {
    let [x, y] = ["x", "y"].map(|name| dir.join(name));
    folder(&x, &[("tiff", 1.0)], 1, &[]);
    folder(&y, &[("tiff", 1.3)], 2, &[]);
    [x, y]
}

#[test]
fn folders_tables_and_summaries_give_the_same_ratio() {
    let dir = tempfile::tempdir().unwrap();
    let [x, y] = a_slower_one(dir.path());
    let whole = ratio(&x, &y);
    assert_eq!(whole.1, RowVerdict::Slower);
    for file in ["dataset.parquet", "dataset.csv", "summary.json"] {
        assert_eq!(ratio(&x.join(file), &y.join(file)), whole, "{file}");
        assert_eq!(ratio(&x.join(file), &y), whole, "{file} and a folder");
    }
    // The summary alone: medians with the intervals that it has of them.
    let alone = dir.path().join("alone");
    fs::create_dir(&alone).unwrap();
    fs::copy(y.join("summary.json"), alone.join("summary.json")).unwrap();
    let c = compare(
        &Results::open(&x).unwrap(),
        &Results::open(&alone.join("summary.json")).unwrap(),
        &of_runs(),
    );
    let c = c.unwrap();
    assert_eq!((c.rows[0].verdict, c.regressions), (RowVerdict::Slower, 1));
    assert!((c.rows[0].ratio.unwrap() - whole.0).abs() < 0.01, "{c:?}");
    // CSV alone in a folder.
    let text = dir.path().join("text");
    fs::create_dir(&text).unwrap();
    fs::copy(y.join("dataset.csv"), text.join("dataset.csv")).unwrap();
    assert_eq!(ratio(&x, &text), whole);
}

/// A copy under another name was of "no table in common".
#[test]
fn a_file_is_told_by_its_columns_whatever_it_is_called() {
    let dir = tempfile::tempdir().unwrap();
    let [x, y] = a_slower_one(dir.path());
    let base = dir.path().join("base.csv");
    fs::copy(x.join("dataset.csv"), &base).unwrap();
    assert_eq!(Results::open(&base).unwrap().tables[0].name(), "dataset");
    let whole = ratio(&x, &y);
    assert_eq!((ratio(&base, &y.join("dataset.csv")), ratio(&base, &y)), (whole, whole));
    // A table that no columns tell is compared with one of the same columns, under its name.
    let [mine, yours, other] = ["mine.csv", "yours.csv", "other.csv"].map(|name| dir.path().join(name));
    let own = |level: f64| {
        let rows = (0..10).map(|run| format!("tiff,{run},{}\n", level * (1.0 + 0.001 * f64::from(run))));
        format!("format,run,seconds\n{}", rows.collect::<String>())
    };
    fs::write(&mine, own(1.0)).unwrap();
    fs::write(&yours, own(1.5)).unwrap();
    let c = compare(&Results::open(&mine).unwrap(), &Results::open(&yours).unwrap(), &of_runs()).unwrap();
    assert_eq!((c.rows[0].table.as_str(), c.rows[0].verdict), ("yours", RowVerdict::Slower));
    assert!((c.rows[0].ratio.unwrap() - 1.5).abs() < 0.01, "{c:?}");
    // Other columns do not fit.
    fs::write(&other, "method,run,rows_per_s\nfast,0,1\nslow,0,2\n").unwrap();
    let [a, b] = [&mine, &other].map(|path| Results::open(path).unwrap());
    let refused = compare(&a, &b, &of_runs()).unwrap_err().to_string();
    assert!(refused.contains("mine in A and other in B"), "{refused}");
    assert!(refused.contains("known names are storage_compression.csv, "), "{refused}");
}

fn infer_csv(p50: f64, rows: &str) -> String {
    format!(
        "framework,model,device,device_type,batch_size,input_shape,dtype,latency_p50_ms,latency_p95_ms,throughput_ips,\
         timestamp,git_commit,status,variant,latency_p50_low_ms,latency_p50_high_ms,backend\n\
         pytorch,resnet50,cpu,cpu,1,\"(3, 224, 224)\",float32,{p50},,10,t,c,ok,eager,{},{},torch {p50}\n{rows}",
        p50 * 0.99,
        p50 * 1.01
    )
}

#[test]
fn inference_is_compared_by_its_samples_or_else_its_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.csv"), infer_csv(10.0, "")).unwrap();
    fs::write(at("b.csv"), infer_csv(12.0, "")).unwrap();
    let (found, word) = ratio(&at("a.csv"), &at("b.csv"));
    assert!((found - 1.2).abs() < 1e-9 && word == RowVerdict::Slower, "{found} {word:?}");
    fs::write(at("c.csv"), infer_csv(10.05, "")).unwrap();
    assert_eq!(ratio(&at("a.csv"), &at("c.csv")).1, RowVerdict::Same);
    // With samples beside it, in nanoseconds.
    let run = |ms: f64| {
        let round = |i: i64| {
            let ns = (ms * 1e6) as i64 + i * 1000;
            json!({"round": i, "samples_ns": [ns, ns + 500, ns + 900], "wall_ns": 3 * ns})
        };
        let rounds: Vec<_> = (0..10).map(round).collect();
        let row = json!({"framework": "pytorch", "variant": "eager", "model": "resnet50", "device": "cpu",
            "dtype": "float32", "batch_size": 1, "status": "ok", "wellread": "0.1.0"});
        json!({"config": {}, "environment": {}, "records": [{"row": row, "rounds": rounds}]}).to_string()
    };
    fs::write(at("a.json"), run(10.0)).unwrap();
    fs::write(at("d.json"), run(13.0)).unwrap();
    let results = Results::open(&at("a.csv")).unwrap();
    assert_eq!((results.tables[0].rows(), results.tables[0].name()), (10, "inference"));
    let (found, word) = ratio(&at("a.csv"), &at("d.json"));
    assert!((found - 1.3).abs() < 1e-3 && word == RowVerdict::Slower, "{found} {word:?}");
    // Samples in seconds against a table in milliseconds.
    let (found, word) = ratio(&at("d.json"), &at("b.csv"));
    assert!((found - 12.0 / 13.0).abs() < 1e-3 && word == RowVerdict::Faster, "{found} {word:?}");
}

#[test]
fn what_is_no_result_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8], hint: &str| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let text = format!("{:#}", Results::open(&path).unwrap_err());
        assert!(text.contains(name) && text.contains(hint), "{text}");
    };
    refused("x.parquet", b"PAR1 not", "no result table");
    refused("x.csv", b"", "no header");
    refused("y.csv", b"a,b\n1,2\n3\n", "no table that can be read");
    refused("z.csv", b"a,a\n1,2\n", "two columns");
    refused("e.csv", b"format,p50_s\n", "no row");
    refused("x.json", b"{\"records\": [", "no JSON");
    refused("y.json", b"{\"hello\": 1}", "no results");
    refused("x.txt", b"1", "no results file");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let text = format!("{:#}", Results::open(&empty).unwrap_err());
    assert!(text.contains("holds no results"), "{text}");
    for name in ["benchmark_results_1.csv", "benchmark_results_2.csv"] {
        fs::write(empty.join(name), infer_csv(1.0, "")).unwrap();
    }
    let text = format!("{:#}", Results::open(&empty).unwrap_err());
    assert!(text.contains("several runs") && text.contains("benchmark_results_1.csv"), "{text}");
}
