//! `--trace FILE`: timelines of commands.

#[cfg(unix)]
use crate::support::signal;
use crate::support::{arg, generate, json, leftovers, wellread};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The spans of a file by the name of their thread: name, start and duration in microseconds, arguments.
type Spans = BTreeMap<String, Vec<(String, f64, f64, Value)>>;

/// Reads a timeline; each span lies within the time recorded, and within the span that it began in.
fn spans(path: &Path) -> (Spans, Value) {
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let name = |e: &Value| e["name"].as_str().unwrap().to_owned();
    let mut threads = BTreeMap::new();
    let mut spans = Spans::new();
    let whole: f64 = file["otherData"]["seconds"].as_str().unwrap().parse().unwrap();
    for event in events {
        let thread = event["tid"].as_u64().unwrap();
        match event["ph"].as_str().unwrap() {
            "M" => drop(threads.insert(thread, event["args"]["name"].as_str().unwrap().to_owned())),
            "X" => {
                let (start, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                assert!(start >= 0.0 && start + length <= whole * 1e6 + 1.0, "{event}");
                let of = spans.entry(threads[&thread].clone()).or_default();
                of.push((name(event), start, length, event["args"].clone()));
            }
            other => panic!("{other}"),
        }
    }
    for of in spans.values() {
        let mut open: Vec<(f64, &str)> = vec![];
        let mut outermost = 0.0;
        // A nanosecond is a thousandth; sums of fractions are off by less.
        for (name, start, length, _) in of {
            open.retain(|(end, _)| *end > start + 1e-4);
            let end = start + length;
            assert!(open.last().is_none_or(|(outer, _)| end <= outer + 1e-3), "{name} in {open:?}");
            if open.is_empty() {
                outermost += length;
            }
            open.push((end, name));
        }
        assert!(outermost <= whole * 1e6 + 1.0, "{outermost} of {whole} s");
    }
    (spans, file["otherData"].clone())
}

fn count(spans: &Spans, name: &str) -> usize {
    spans.values().flatten().filter(|(found, ..)| found == name).count()
}

fn sum(spans: &[(String, f64, f64, Value)], name: &str, within: (f64, f64)) -> f64 {
    let inside = |start: f64| (within.0..within.1).contains(&start);
    spans
        .iter()
        .filter(|(found, start, ..)| found == name && inside(*start))
        .map(|(_, _, length, _)| length)
        .sum()
}

#[test]
fn benchmarks_are_recorded_turn_by_turn() {
    let dir = tempfile::tempdir().unwrap();
    let (out, file) = (dir.path().join("results"), dir.path().join("trace.json"));
    let args = [
        "bench",
        "all",
        "--time-budget",
        "100000",
        "--images",
        "16",
        "--size",
        "96x96",
        "--formats",
        "parquet,tiff",
        "--compression",
        "zstd:1",
        "--repeats",
        "1",
        "--batch-sizes",
        "4",
        "--workers",
        "2",
        "--batch-size",
        "4",
        "--steps",
        "3",
        "--samples",
        "6",
        "--access",
        "random",
        "--transform",
        "none",
        "--cache",
        "none",
        "--framework",
        "rust",
        // A step of some milliseconds, which two clocks see alike.
        "--model",
        "small-cnn",
        "--out",
        arg(&out),
        "--trace",
        arg(&file),
    ];
    let summary = json(&args);
    assert_eq!(summary["verified"], true);
    assert!(summary["report"]["warnings"].to_string().contains("--trace"));
    let (spans, about) = spans(&file);
    assert!(about["command"].as_str().unwrap().contains(" bench all "), "{about}");
    assert_eq!(about["dropped_events"], "0");
    for kind in [
        "open",
        "read",
        "decompress",
        "decode",
        "transform",
        "rows",
        "batch",
        "sample",
        "open set",
        "read set",
        "write set",
        "write image",
        "step",
        "forward",
        "backward",
        "optimiser",
        "convert",
        "verify",
        "start workers",
        "stop workers",
    ] {
        assert!(count(&spans, kind) > 0, "no {kind}");
    }
    for name in ["storage", "dataset", "dataloader", "loop", "conversion", "prepare images"] {
        assert_eq!(count(&spans, name), 1, "{name}");
    }
    let main = &spans["main"];
    // Two formats and a twin, in warm-up and one round.
    let turns = |benchmark: &str| -> Vec<_> {
        main.iter().filter(|(name, ..)| name.starts_with(&format!("{benchmark} "))).collect()
    };
    assert_eq!(turns("dataloader").len(), 6);
    for (name, start, length, args) in turns("dataloader") {
        assert_eq!(args["dropped_events"], 0, "{name}");
        let batches = sum(main, "batch", (*start, start + length));
        assert!(batches > 0.0 && batches <= *length, "{name}: {batches} of {length}");
    }
    // Between the looks at the two clocks a busy machine may do something else: then all is measured again.
    let mut another = another_share(&out, main);
    for _ in 0..8 {
        if another.is_none() {
            break;
        }
        json(&args);
        another = another_share(&out, &self::spans(&file).0["main"]);
    }
    assert_eq!(another, None);
}

/// The timeline shows the benchmark's waits, by another clock. Tells of one that is not.
fn another_share(out: &Path, main: &[(String, f64, f64, Value)]) -> Option<String> {
    let table = wellread_report::Table::read_parquet(out.join("loop.parquet")).unwrap();
    (0..table.rows()).find_map(|row| {
        let label = format!(
            "loop {} {} small-cnn 4",
            table.str("format", row).unwrap(),
            table.str("mode", row).unwrap()
        );
        let turn = main.iter().filter(|(name, _, _, args)| *name == label && args["round"] == 1);
        let shares: Vec<f64> = turn
            .map(|(_, start, length, _)| {
                // Counted from the second batch on: the first one fills the pipeline.
                let waited = sum(main, "batch", (*start, start + length));
                let first_batch = main.iter().find(|(n, at, ..)| n == "batch" && at >= start).unwrap().2;
                let stepped = sum(main, "step", (*start, start + length));
                (waited - first_batch) / (waited - first_batch + stepped)
            })
            .collect();
        let said = table.f64("data_wait_fraction", row).unwrap();
        // One of the twins is not in the table.
        let shown = shares.iter().any(|share| (share - said).abs() < 0.05);
        (!shown).then(|| format!("{label}: {said}, {shares:?}"))
    })
}

#[test]
fn other_commands_are_recorded_too() {
    let dir = tempfile::tempdir().unwrap();
    let (set, file) = (dir.path().join("set"), dir.path().join("trace.json"));
    generate(&set, 12, &["--formats", "tiff"]);
    let source = set.join("tiff");
    let target = dir.path().join("a.parquet");
    json(&["convert", arg(&source), arg(&target), "--trace", arg(&file)]);
    assert_eq!(count(&spans(&file).0, "write image"), 12);
    // The next one takes its place.
    let done = wellread(&["stats", arg(&target), "--trace", arg(&file)]);
    assert!(done.code == 0 && done.stderr.contains("ui.perfetto.dev"), "{}", done.stderr);
    let (found, about) = spans(&file);
    assert!(count(&found, "rows") > 0 && count(&found, "write image") == 0);
    assert!(about["command"].as_str().unwrap().starts_with("wellread stats"));
    // A failure is recorded up to there.
    std::fs::remove_file(&file).unwrap();
    let done = wellread(&["stats", arg(&dir.path().join("nothing.parquet")), "--trace", arg(&file)]);
    assert!(done.code == 1 && done.stderr.contains("nothing.parquet"));
    spans(&file);
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

#[test]
fn studies_of_a_set_are_recorded_section_by_section() {
    let dir = tempfile::tempdir().unwrap();
    let (set, scratch, file) =
        (dir.path().join("set"), dir.path().join("scratch"), dir.path().join("trace.json"));
    generate(&set, 24, &["--formats", "tiff"]);
    let source = set.join("tiff");
    json(&[
        "advise",
        arg(&source),
        "--formats",
        "tiff",
        "--scratch",
        arg(&scratch),
        "--time-budget",
        "4",
        "--trace",
        arg(&file),
    ]);
    let (found, about) = spans(&file);
    assert!(about["command"].as_str().unwrap().contains(" advise "), "{about}");
    for name in
        ["writing candidates", "screening formats", "measuring formats", "trying workers", "predicting"]
    {
        assert_eq!(count(&found, name), 1, "{name}");
    }
    assert!(count(&found, "batch") > 0 && count(&found, "read") > 0);
    let diagnosis = ["doctor", "--data", arg(&source), "--rounds", "2", "--time-budget", "2"];
    json(&[&diagnosis[..], &["--trace", arg(&file)]].concat());
    let (found, _) = spans(&file);
    // A round of warm-up, and one at least that is measured.
    assert!(count(&found, "warm") >= 2 && count(&found, "synthetic") >= 2);
    let done = wellread(&["doctor", "--trace", arg(&file)]);
    assert!(done.code == 2 && done.stderr.contains("--data"), "{}", done.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn runs_of_tasks_are_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace.json");
    crate::tasks::repository(dir.path());
    std::fs::write(dir.path().join("tasks.csv"), "branch,experiment\nmain,e\n").unwrap();
    let done = crate::tasks::run(dir.path(), &["--repeats", "2", "--trace", arg(&file)]);
    assert!(done.code == 0 && done.stderr.contains("ui.perfetto.dev"), "{}", done.stderr);
    let (found, about) = spans(&file);
    assert!(about["command"].as_str().unwrap().starts_with("wellread tasks train "), "{about}");
    assert_eq!(count(&found, "prepare branches"), 1);
    for run in ["e · main, run 1", "e · main, run 2"] {
        assert_eq!(count(&found, run), 1, "{run}");
    }
}

#[test]
fn a_timeline_that_cannot_be_written_is_said_before_the_work() {
    let dir = tempfile::tempdir().unwrap();
    let (out, notes) = (dir.path().join("results"), dir.path().join("notes.json"));
    std::fs::write(&notes, "{}").unwrap();
    for (bad, why) in
        [(notes.clone(), "is no trace"), (notes.join("x"), "folder"), (dir.path().to_owned(), "is no trace")]
    {
        let done = wellread(&["bench", "dataset", "--images", "4", "--out", arg(&out), "--trace", arg(&bad)]);
        assert!(done.code == 1 && done.stderr.contains(why), "{}: {}", bad.display(), done.stderr);
        assert!(!out.exists());
    }
    assert_eq!(std::fs::read(&notes).unwrap(), b"{}");
    assert_eq!(wellread(&["stats", "x", "--trace"]).code, 2);
}

/// An interrupted run leaves what it recorded, and nothing else beside it.
#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_its_timeline() {
    let dir = tempfile::tempdir().unwrap();
    let (out, file) = (dir.path().join("results"), dir.path().join("trace.json"));
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_wellread"))
        .args([
            "bench",
            "dataloader",
            "--images",
            "200",
            "--formats",
            "tiff",
            "--time-budget",
            "600",
            "--repeats",
            "100000",
        ])
        .args(["--out", arg(&out), "--trace", arg(&file)])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Prepared, and measuring; then at any moment.
    while !out.join("data/tiff").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let (found, _) = spans(&file);
    assert!(found.values().flatten().count() > 0);
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}
