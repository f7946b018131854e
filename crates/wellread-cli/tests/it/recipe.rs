//! Studies in a file, repeating a run, and measuring to a precision.

use crate::support::{arg, json, wellread};
use std::fs;
use wellread_report::Samples;

const RECIPE: &str = r#"
title = "A small study"

[[run]]
name = "access"
arguments = ["dataset"]
images = 12
size = "24x24"
formats = ["parquet", "tiff"]
access = ["random"]
transform = ["none"]
cache = ["none"]
samples = 6
repeats = 2

[[run]]
command = "generate"
name = "set"
arguments = ["{out}/set"]
images = 3
size = "16x16"
formats = ["tiff"]
"#;

#[test]
fn a_recipe_is_run_whole_and_its_runs_can_be_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("recipe.toml"), RECIPE).unwrap();
    let document = json(&["bench", "--recipe", arg(&at("recipe.toml")), "--out", arg(&at("study"))]);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["error"].is_null()), "{document}");
    assert!(at("study/set").is_dir());
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(at("study/access/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["configuration"]["recipe"]["title"], "A small study");
    let command = summary["configuration"]["command"].as_str().unwrap();
    assert!(command.starts_with("wellread bench dataset ") && command.contains("--images=12"), "{command}");
    // Every single time is kept: two formats, two rounds, six images.
    let samples = Samples::read_parquet(at("study/access/samples/dataset.parquet")).unwrap();
    assert_eq!(samples.runs().rows(), 4);
    assert!(samples.seconds().iter().all(|items| items.len() == 6 && items.iter().all(|s| *s > 0.0)));
    // Again, from the summary alone.
    let again = json(&["rerun", arg(&at("study/access/summary.json")), "--out", arg(&at("again"))]);
    assert_eq!(again["differences"], serde_json::json!([]));
    assert!(again["command"].as_str().unwrap().contains("again"), "{again}");
    let second: serde_json::Value =
        serde_json::from_slice(&fs::read(at("again/summary.json")).unwrap()).unwrap();
    assert_eq!(second["pixel_checksum"], summary["pixel_checksum"]);
    assert_eq!(second["configuration"]["recipe"], summary["configuration"]["recipe"]);
}

#[test]
fn bad_recipes_and_summaries_end_before_anything_is_run() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("r.toml"), RECIPE.replace("images = 12", "imges = 12")).unwrap();
    let done = wellread(&["bench", "--recipe", arg(&at("r.toml")), "--out", arg(&at("out"))]);
    assert!(
        done.code == 2 && done.stderr.contains("run 1") && done.stderr.contains("--imges"),
        "{}",
        done.stderr
    );
    assert!(!at("out").exists());
    let done = wellread(&["bench", "--recipe", arg(&at("r.toml")), "--images", "5"]);
    assert!(done.code == 2 && done.stderr.contains("--images"), "{}", done.stderr);
    let done = wellread(&["bench", "--recipe", arg(&at("no.toml"))]);
    assert!(done.code == 1 && done.stderr.contains("no.toml"), "{}", done.stderr);
    fs::write(
        at("summary.json"),
        "{\"aggregates\": {\"dataset\": [{\"format\": \"tiff\"}]}, \"configuration\": {}}",
    )
    .unwrap();
    let done = wellread(&["rerun", arg(&at("summary.json"))]);
    assert!(done.code == 1 && done.stderr.contains("which command"), "{}", done.stderr);
}

#[test]
fn a_precision_is_measured_to_or_said_to_be_missed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // Images that take long enough for the clock: of times that are all the same number, any precision is reached.
    let run = |precision: &str, budget: &str, out: &str| {
        json(&[
            "bench",
            "dataset",
            "--images",
            "8",
            "--size",
            "256x256",
            "--formats",
            "tiff",
            "--access",
            "sequential",
            "--transform",
            "none",
            "--cache",
            "none",
            "--samples",
            "8",
            "--repeats",
            "6",
            "--precision",
            precision,
            "--time-budget",
            budget,
            "--out",
            arg(&at(out)),
        ])
    };
    let rounds =
        |summary: &serde_json::Value| summary["aggregates"]["dataset"][0]["p50_s"]["n"].as_u64().unwrap();
    // 100 % is reached at the first look, on any machine.
    let loose = run("100%", "60", "loose");
    assert!((10..200).contains(&rounds(&loose)), "{}", rounds(&loose));
    assert_eq!(loose["configuration"]["precision"], 1.0);
    // A millionth of a percent never is.
    let strict = run("0.00000001", "0.5", "strict");
    assert!(rounds(&strict) >= 6);
    let warnings = strict["report"]["warnings"].to_string();
    assert!(warnings.contains("are not known to"), "{warnings}");
    let done = wellread(&["bench", "dataset", "--precision", "0"]);
    assert!(done.code == 2 && done.stderr.contains("never reached"), "{}", done.stderr);
}
