//! Studies in a file, repeating a run, and measuring to a precision.

use crate::support::{arg, files_below, json, wellread, wellread_in};
#[cfg(target_os = "linux")]
use crate::tasks;
use serde_json::Value;
use std::fs;
use std::path::Path;
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
fn a_run_is_repeated_from_anywhere_and_not_on_other_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let [there, here] = ["the first", "here"].map(|name| dir.path().join(name));
    fs::create_dir_all(&there).unwrap();
    fs::create_dir_all(&here).unwrap();
    let run = |folder: &Path, args: &[&str]| {
        let done = wellread_in(folder, args);
        (done.code, done.stdout, done.stderr)
    };
    let (code, _, err) =
        run(&there, &["generate", "set", "--images", "4", "--size", "16x16", "--formats", "tiff"]);
    assert_eq!(code, 0, "{err}");
    let options = ["--access", "random", "--transform", "none", "--cache", "none", "--samples", "4"];
    let bench = ["bench", "dataset", "--input", "set/tiff", "--in-place", "--repeats", "2", "--out", "old"];
    let (code, _, err) = run(&there, &[&bench[..], &options].concat());
    assert_eq!(code, 0, "{err}");
    let old = summary(&there.join("old"));
    let folder = Path::new(old["configuration"]["working_folder"].as_str().unwrap());
    assert_eq!(folder.canonicalize().unwrap(), there.canonicalize().unwrap());
    // The input is named by its path from there, and the new results are here.
    let from_here = there.join("old");
    let (code, out, err) = run(&here, &["rerun", arg(&from_here), "--out", "new"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("the first/set/tiff"), "{out}");
    assert!(!out.contains("configuration: source differs"), "{out}");
    assert_eq!(summary(&here.join("new"))["pixel_checksum"], old["pixel_checksum"]);
    // The next command can be pasted: the folder has a space.
    let next = err.split("Next: ").nth(1).unwrap();
    let line = next.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.starts_with(&format!("wellread compare '{}' new", arg(&from_here))), "{err}");
    // The default folder lies beside the old one, by a path without detours.
    let (code, _, err) = run(&there, &["rerun", "old"]);
    assert_eq!(code, 0, "{err}");
    assert!(there.join("old-rerun/summary.json").is_file() && err.contains("compare old old-rerun"), "{err}");
    // The same where the option that names the folder was typed by its other name.
    let mut by_other_name = old.clone();
    let line = old["configuration"]["command"].as_str().unwrap();
    by_other_name["configuration"]["command"] = line.replace("--out old", "--output old").into();
    assert_ne!(by_other_name, old);
    fs::write(there.join("old/summary.json"), by_other_name.to_string()).unwrap();
    let (code, out, err) = run(&there, &["rerun", "old", "--out", "once-more"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("--out=once-more") && !out.contains("--output"), "{out}");
    // The same where it has options that earlier versions took without effect.
    let mut with_idle = old.clone();
    with_idle["configuration"]["command"] =
        format!("{line} --images 9 --formats=tiff --data-dir sets").into();
    fs::write(there.join("old/summary.json"), with_idle.to_string()).unwrap();
    let (code, out, err) = run(&there, &["rerun", "old", "--out", "without-idle"]);
    assert_eq!(code, 0, "{err}");
    assert!(!out.contains("--images") && !out.contains("--formats") && !there.join("sets").exists(), "{out}");
    // Other pixels than those of the run.
    let mut other = old.clone();
    other["pixel_checksum"] = "00".repeat(32).into();
    fs::write(there.join("old/summary.json"), other.to_string()).unwrap();
    let (code, out, err) = run(&here, &["rerun", arg(&from_here), "--out", "other"]);
    assert_eq!(code, 1, "{err}");
    assert!(
        out.contains("checksum of the pixels differs") && err.contains("pixels differ from"),
        "{out} {err}"
    );
    // In neither folder: both are named.
    fs::rename(there.join("set"), there.join("moved")).unwrap();
    let (code, _, err) = run(&here, &["rerun", arg(&from_here), "--out", "gone"]);
    assert_ne!(code, 0, "{err}");
    assert!(err.contains("--input set/tiff is neither in") && err.contains("the first"), "{err}");
}

fn summary(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("summary.json")).unwrap()).unwrap()
}

#[test]
fn inference_can_be_repeated_from_its_summary() {
    let dir = tempfile::tempdir().unwrap();
    let (raw, out, models) = (dir.path().join("raw"), dir.path().join("again"), dir.path().join("models"));
    let said = json(&[
        "infer",
        "--framework",
        "candle",
        "--model",
        "resnet50",
        "--input-shape",
        "3,32,32",
        "--iterations",
        "3",
        "--warmup",
        "0",
        "--batch-sizes",
        "1",
        "--threads",
        "1",
        "--model-dir",
        arg(&models),
        "--out",
        arg(&raw),
    ]);
    let page = Path::new(said["report"].as_str().unwrap());
    let old = summary(page.parent().unwrap());
    // The option that all commands have stands before the command.
    assert!(old["configuration"]["command"].as_str().unwrap().starts_with("wellread --json infer "), "{old}");
    assert!(old["frameworks"]["candle"]["versions"]["wellread"].is_string(), "{old}");
    assert!(old["environment"]["cpu"]["logical"].is_u64() && old["engines"].is_object(), "{old}");
    assert!(fs::read_to_string(page).unwrap().contains("wellread rerun summary.json"));
    let files = || fs::read_dir(&raw).unwrap().count();
    let before = files();
    let again = json(&["rerun", arg(page.parent().unwrap()), "--out", arg(&out)]);
    assert_eq!(again["differences"], serde_json::json!([]));
    let folder = Path::new(again["results"].as_str().unwrap());
    assert!(folder.starts_with(&out), "{again}");
    let new = summary(folder);
    assert_eq!(new["configuration"]["iterations"], 3);
    assert_eq!(new["frameworks"], old["frameworks"]);
    assert_eq!(files(), before, "the old results are left alone");
}

#[cfg(target_os = "linux")]
#[test]
fn tasks_can_be_repeated_from_their_summary() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    tasks::repository(dir.path());
    fs::write(at("tasks.csv"), "branch,experiment\nmain,e\n").unwrap();
    let done = tasks::run(dir.path(), &["--resume", "--report", arg(&at("report"))]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let rerun = |out: &str| -> Value {
        let done = tasks::wellread(
            dir.path(),
            &["rerun", arg(&at("report/summary.json")), "--out", arg(&at(out)), "--json"],
        );
        assert_eq!(done.code, 0, "{}", done.stderr);
        serde_json::from_str(&done.stdout).unwrap()
    };
    let again = rerun("again");
    assert_eq!(again["differences"], serde_json::json!([]));
    assert_eq!(again["results"], arg(&at("again/tasks.report")));
    let kept: Value = serde_json::from_slice(&fs::read(at("again/tasks.json")).unwrap()).unwrap();
    assert_eq!(kept[0]["success"], true);
    // As if it had been another machine, version and commit.
    let mut old = summary(&at("report"));
    assert_eq!(old["commits"], summary(&at("again/tasks.report"))["commits"]);
    assert_eq!(old["configuration"]["mode"], "train");
    old["environment"]["cpu"]["model"] = "an abacus".into();
    old["wellread"] = "0.0.1".into();
    old["commits"]["main"] = "another".into();
    fs::write(at("report/summary.json"), old.to_string()).unwrap();
    let other = rerun("other");
    let named: Vec<_> = other["differences"].as_array().unwrap().iter().map(|one| &one["what"]).collect();
    assert_eq!(named, ["processor", "version of wellread", "commits: main"], "{other}");
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
    assert!(done.code == 1 && done.stderr.contains("does not name its command"), "{}", done.stderr);
}

#[test]
fn results_that_are_repeated_are_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let write = |folder: &str, command: &str| {
        fs::create_dir_all(at(folder)).unwrap();
        let summary = serde_json::json!({
            "aggregates": {"dataset": [{"format": "tiff"}]}, "configuration": {"command": command},
        });
        fs::write(at(folder).join("summary.json"), summary.to_string()).unwrap();
        fs::write(at(folder).join("dataset.csv"), "format,status\ntiff,ok\n").unwrap();
    };
    write("ba", "wellread bench dataset --images=2 --size=8x8 --formats=tiff --out=ba");
    write("all/tasks.report", "wellread tasks train --output=all/tasks.json");
    write("page", "wellread tasks train --output all/tasks.json --report page");
    fs::write(at("all/tasks.json"), "[]").unwrap();
    let before = files_below(dir.path());
    for (what, out) in [
        ("ba", "ba"),
        ("ba/summary.json", "ba"),
        ("ba", "all/../ba"),
        ("all/tasks.report", "all/tasks.report"),
        // Where the report of tasks lies beside their results.
        ("all/tasks.report", "all"),
        ("page", "all"),
    ] {
        let done = wellread_in(dir.path(), &["rerun", what, "--out", out]);
        assert_eq!(done.code, 2, "{what} {out}: {}", done.stderr);
        assert!(done.stderr.contains("would replace it (hint: name another folder"), "{}", done.stderr);
        assert_eq!(files_below(dir.path()), before, "{what} {out}");
    }
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
    // 100 % is reached at one of the first looks, on any machine. The first is after ten rounds, of which up to half
    // are warm-up where they look slower; by chance they do now and then.
    let loose = run("100%", "60", "loose");
    assert!((5..200).contains(&rounds(&loose)), "{}", rounds(&loose));
    assert_eq!(loose["configuration"]["precision"], 1.0);
    // A millionth of a percent never is, however many rounds a machine does in that time; two at least.
    let strict = run("0.00000001", "0.5", "strict");
    assert!(rounds(&strict) >= 2);
    let warnings = strict["report"]["warnings"].to_string();
    assert!(warnings.contains("not known to"), "{warnings}");
    let done = wellread(&["bench", "dataset", "--precision", "0"]);
    assert!(done.code == 2 && done.stderr.contains("never reached"), "{}", done.stderr);
}
