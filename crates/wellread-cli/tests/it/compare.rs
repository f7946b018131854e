//! `wellread compare` on real results, on planted ones, on histories and on revisions.

use crate::support::{arg, json, wellread};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A result table as CSV: each format with ten runs about its level.
fn results(folder: &Path, levels: &[(&str, f64)]) {
    fs::create_dir_all(folder).unwrap();
    let mut text = "format,access,run,verified,status,p50_s\n".to_owned();
    for (format, level) in levels {
        for run in 0..10 {
            let value = level * (1.0 + 0.002 * f64::from(run * 7 % 10));
            text += &format!("{format},random,{run},true,ok,{value}\n");
        }
    }
    fs::write(folder.join("dataset.csv"), text).unwrap();
}

/// Three processes of a side, a tenth of a percent apart.
pub fn side(folder: &Path, levels: &[(&str, f64)]) -> Vec<PathBuf> {
    let process = |n: u32| {
        let at = folder.join(n.to_string());
        let own = levels.iter().map(|(format, level)| (*format, level * (1.0 + 0.001 * f64::from(n))));
        results(&at, &own.collect::<Vec<_>>());
        at
    };
    (0..3).map(process).collect()
}

#[test]
fn a_regression_ends_with_code_three_and_markdown_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let a = side(&dir.path().join("a"), &[("tiff", 1.0), ("parquet", 1.0)]);
    let b = side(&dir.path().join("b"), &[("tiff", 1.15), ("parquet", 0.7)]);
    let page = dir.path().join("new/page.md");
    let compared = |a: &[PathBuf], b: &[PathBuf], more: &[&str]| {
        let (a, b): (Vec<&str>, Vec<&str>) =
            (a.iter().map(|p| arg(p)).collect(), b.iter().map(|p| arg(p)).collect());
        wellread(&[&["compare"], more, &a, &["--"], &b].concat())
    };
    let done = compared(&a, &b, &["--markdown", arg(&page)]);
    assert_eq!(done.code, 3, "{}", done.stderr);
    assert!(done.stdout.contains("slower !") && done.stdout.contains("faster"), "{}", done.stdout);
    assert!(done.stdout.contains("no summary.json"), "{}", done.stdout);
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("1 regression (slower; the interval reaches 5 %)") && page.contains("| tiff, random |"),
        "{page}"
    );
    // As Markdown on stdout, as JSON, and the other way round.
    let done = compared(&a, &b, &["--markdown", "-", "--quiet"]);
    assert!(done.code == 3 && done.stdout.trim() == page.trim(), "{}", done.stdout);
    let document = |done: crate::support::Done| -> serde_json::Value {
        serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stderr))
    };
    let done = compared(&a, &b, &["--json"]);
    assert_eq!(done.code, 3);
    let first = document(done);
    assert_eq!(first["regressions"], 1);
    let tiff = &first["rows"][0];
    assert_eq!((&tiff["key"]["format"], &tiff["verdict"]), (&"tiff".into(), &"slower".into()));
    assert_eq!((&tiff["processes_a"], &tiff["scope"]), (&3.into(), &"processes".into()));
    assert!(tiff["low"].as_f64().unwrap() > 1.13 && tiff["high"].as_f64().unwrap() < 1.17, "{tiff}");
    let again = side(&dir.path().join("again"), &[("tiff", 1.15), ("parquet", 0.7)]);
    let back = document(compared(&b, &again, &["--json"]));
    assert_eq!((&back["regressions"], &back["rows"][0]["verdict"]), (&0.into(), &"same".into()));
    // Within the threshold: slower, and no regression.
    let within = document(compared(&a, &b, &["--json", "--threshold", "20%"]));
    assert_eq!((&within["rows"][0]["verdict"], &within["regressions"]), (&"slower".into(), &0.into()));
}

/// One run three times was three processes, and a regression with code 3.
#[test]
fn a_run_counts_once_on_a_side() {
    let dir = tempfile::tempdir().unwrap();
    let a = side(&dir.path().join("a"), &[("tiff", 1.0)]);
    let b = side(&dir.path().join("b"), &[("tiff", 1.15)]);
    let (spelled, copy) = (dir.path().join("a/../a/0"), dir.path().join("copy"));
    fs::create_dir(&copy).unwrap();
    fs::copy(a[0].join("dataset.csv"), copy.join("dataset.csv")).unwrap();
    let of_b: Vec<&str> = b.iter().map(|path| arg(path)).collect();
    for again in [&a[0], &spelled, &copy] {
        let of_a = [arg(&a[0]), arg(&a[1]), arg(again)];
        let done = wellread(&[&["compare"], &of_a[..], &["--"], &of_b].concat());
        let said = format!("{} and {} are the same run", a[0].display(), again.display());
        assert!(done.code == 2 && done.stderr.contains(&said), "{}: {}", done.code, done.stderr);
        // On the side of B, too.
        let done = wellread(&[&["compare"], &of_b[..], &["--"], &of_a].concat());
        assert!(done.code == 2 && done.stderr.contains(&said), "{}: {}", done.code, done.stderr);
    }
}

#[test]
fn options_may_stand_behind_the_results_of_b() {
    let dir = tempfile::tempdir().unwrap();
    let a = side(&dir.path().join("a"), &[("tiff", 1.0)]);
    let b = side(&dir.path().join("b"), &[("tiff", 1.15)]);
    let page = dir.path().join("report.md");
    let run = |more: &[&str]| {
        let (a, b): (Vec<&str>, Vec<&str>) =
            (a.iter().map(|p| arg(p)).collect(), b.iter().map(|p| arg(p)).collect());
        wellread(&[&["compare"], &a[..], &["--"], &b, more].concat())
    };
    // As in the help, and in other forms.
    let done = run(&["--threshold", "20%", "--markdown", arg(&page)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(fs::read_to_string(&page).unwrap().contains("| tiff, random |"));
    let done = run(&["--json", "--threshold=3%", "-q"]);
    assert_eq!(done.code, 3, "{}", done.stderr);
    let document: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&document["regressions"], &document["rows"][0]["processes_b"]), (&1.into(), &3.into()));
    // A word that is no option of compare is no result either; a wrong value has its own error.
    let done = run(&["--images", "3"]);
    assert!(done.code == 2 && done.stderr.contains("after --"), "{}", done.stderr);
    let done = run(&["--threshold", "5"]);
    assert!(done.code == 2 && done.stderr.contains("5%"), "{}", done.stderr);
}

#[test]
fn two_runs_of_the_suite_are_compared_with_what_they_were_measured_on() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for (name, images) in [("a", "16"), ("b", "16"), ("c", "20")] {
        let done = wellread(&[
            "bench",
            "dataset",
            "--images",
            images,
            // Large enough for the clock: times that are all the same number have no noise.
            "--size",
            "160x160",
            "--formats",
            "parquet,tiff",
            "--access",
            "random",
            "--transform",
            "none",
            "--cache",
            "none",
            "--samples",
            "8",
            "--repeats",
            "6",
            "--out",
            arg(&at(name)),
        ]);
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    // One process a side: no verdict and no code of a regression.
    let document = json(&["compare", arg(&at("a")), arg(&at("b"))]);
    for row in document["rows"].as_array().unwrap() {
        assert_eq!((&row["scope"], &row["verdict"]), (&"within".into(), &"unclear".into()));
    }
    let (a, b) = (at("a"), at("b"));
    let insisting =
        ["compare", arg(&a), arg(&b), "--assume-same-conditions", "--json", "--threshold", "100%"];
    let done = wellread(&insisting);
    assert!(done.code == 0 || done.code == 3, "{}", done.stderr);
    let document: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(document["comparable"], true);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(
            (&row["quantity"], &row["n_a"], &row["n_b"]),
            (&"samples_per_sec".into(), &6.into(), &6.into())
        );
        assert!(
            row["noise_floor"].as_f64().unwrap() > 0.0 && row["smallest_detectable"].as_f64().unwrap() > 0.0
        );
    }
    // Other images are other pixels: no verdict, and no code of a regression.
    let done = wellread(&["compare", arg(&at("a")), arg(&at("c"))]);
    assert!(done.code == 1 && done.stderr.contains("not measured on the same pixels"), "{}", done.stderr);
    assert!(done.stdout.contains("checksum of the pixels differs"), "{}", done.stdout);
    assert!(!done.stdout.contains("samples_per_sec"), "{}", done.stdout);
}

#[test]
fn a_history_grows_and_shows_where_a_level_changed() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("history.jsonl");
    let run = dir.path().join("run");
    for i in 0..16 {
        results(
            &run,
            &[("tiff", if i < 9 { 1.0 } else { 1.3 } + 0.002 * f64::from(i % 3)), ("parquet", 1.0)],
        );
        let label = format!("c{i}");
        let done = wellread(&["compare", arg(&run), "--history", arg(&history), "--label", &label]);
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    assert_eq!(fs::read_to_string(&history).unwrap().lines().count(), 16);
    let done = wellread(&["compare", "--history", arg(&history)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("16 runs, 2 series, 1 of which changed"), "{}", done.stdout);
    assert!(done.stdout.contains("slower from c9"), "{}", done.stdout);
    let document = json(&["compare", "--history", arg(&history)]);
    let change = &document["series"][0]["changes"][0];
    assert_eq!((&change["label"], &change["at"]), (&"c9".into(), &9.into()));
    let figure = fs::read_to_string(dir.path().join("history.svg")).unwrap();
    assert!(figure.contains("1 of 2 series changed") && figure.contains("dataset: tiff, random"));
    assert!(dir.path().join("history.png").is_file());
    fs::write(&history, "{}\nno record\n").unwrap();
    let done = wellread(&["compare", "--history", arg(&history)]);
    assert!(done.code == 1 && done.stderr.contains("line 1"), "{}", done.stderr);
}

#[test]
fn wrong_usage_and_missing_things_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let a = dir.path().join("a");
    results(&a, &[("tiff", 1.0)]);
    let (b, same) = (dir.path().join("b"), dir.path().join("x/../a"));
    results(&b, &[("tiff", 1.0)]);
    fs::create_dir(dir.path().join("x")).unwrap();
    let summed = dir.path().join("c");
    results(&summed, &[("tiff", 1.0)]);
    let summary = summed.join("summary.json");
    fs::write(&summary, "{}").unwrap();
    let history = dir.path().join("history.jsonl");
    for (args, code, hint) in [
        (&["compare"][..], 2, "name two results"),
        (&["compare", arg(&a)], 2, "--history"),
        (&["compare", arg(&a), "no-such-thing"], 1, "no-such-thing"),
        (&["compare", arg(&a), arg(&a), "--threshold", "5"], 2, "5%"),
        (&["compare", arg(&a), arg(&a), "--", "dataset"], 2, "after --"),
        (&["compare", arg(&a), arg(&a), arg(&a)], 2, "A1 A2 A3 -- B1 B2 B3"),
        (&["compare", arg(&a), "no-such-thing", "--", arg(&a)], 1, "no-such-thing"),
        (&["compare", arg(&a), arg(&a)], 2, "is on both sides"),
        (&["compare", arg(&a), arg(&same)], 2, "x/../a is on both sides"),
        (&["compare", arg(&a), "--", arg(&b), arg(&a)], 2, "is on both sides"),
        (&["compare", arg(&summed), arg(&summary)], 2, "c/summary.json is on both sides"),
        (&["compare", arg(&a), arg(&b), "--quantity", "p50s"], 2, "has p50s; there are p50_s"),
        (&["compare", arg(&a), arg(&b), "--table", "loader"], 2, "no result has a table \"loader\""),
        (&["compare", arg(&a), "--history", arg(&history), "--quantity", "p50s"], 2, "holds no p50s to keep"),
        (&["compare", arg(&a), arg(&b), "--threshold", "-5%"], 2, "\"-5%\" is no share"),
        (&["compare", arg(&a), arg(&a), "--label", "x"], 2, "--history"),
        (&["compare", "--history", "no-such-file"], 1, "no-such-file"),
        (&["compare", "--history", "h", "--label", "x"], 2, "compare RESULTS --history FILE"),
        (&["compare", "--history", "h", "--table", "dataset"], 2, "compare RESULTS --history FILE"),
        (&["compare", "--history", "h", "--quantity", "p50_s"], 2, "compare RESULTS --history FILE"),
    ] {
        let done = wellread(args);
        assert!(done.code == code && done.stderr.contains(hint), "{args:?}: {} {}", done.code, done.stderr);
    }
}

/// A repository whose `wellread bench` writes a table of planted times.
fn repository(folder: &Path) {
    let git = |args: &[&str]| {
        let done = Command::new("git").arg("-C").arg(folder).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let program = |level: &str| {
        format!(
            r#"fn main() {{
    let args: Vec<String> = std::env::args().collect();
    let after = |name: &str| args.iter().position(|a| a == name).map(|at| args[at + 1].clone()).unwrap();
    let (out, data) = (after("--out"), after("--data-dir"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir_all(&out).unwrap();
    let turn = std::fs::read_to_string(format!("{{data}}/n")).ok().and_then(|n| n.parse().ok()).unwrap_or(0u32);
    std::fs::write(format!("{{data}}/n"), (turn + 1).to_string()).unwrap();
    let level = {level} * (1.0 + 0.001 * f64::from(turn * 7 % 5));
    let mut text = String::from("format,run,p50_s\n");
    for run in 0..3 {{
        text += &format!("tiff,{{run}},{{}}\n", level + 0.0001 * run as f64);
    }}
    std::fs::write(format!("{{out}}/dataset.csv"), text).unwrap();
}}"#
        )
    };
    let crate_folder = folder.join("crates/wellread-cli");
    fs::create_dir_all(crate_folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"3\"\n")
        .unwrap();
    fs::write(
        folder.join("Cargo.lock"),
        "version = 4\n\n[[package]]\nname = \"wellread-cli\"\nversion = \"0.1.0\"\n",
    )
    .unwrap();
    fs::write(
        crate_folder.join("Cargo.toml"),
        "[package]\nname = \"wellread-cli\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[[bin]]\nname = \"wellread\"\npath = \"src/main.rs\"\n",
    )
    .unwrap();
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.email", "a@b"]);
    git(&["config", "user.name", "a"]);
    // The user who runs the tests may sign commits.
    git(&["config", "commit.gpgsign", "false"]);
    git(&["config", "tag.gpgsign", "false"]);
    for (level, tag) in [("1.0", "fast"), ("1.2", "slow"), ("nonsense", "broken")] {
        fs::write(crate_folder.join("src/main.rs"), program(level)).unwrap();
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", tag]);
        git(&["tag", tag]);
    }
    // Uncommitted changes of the user must stay as they are, and out of the comparison.
    fs::write(crate_folder.join("src/main.rs"), "unfinished").unwrap();
}

#[test]
fn two_revisions_are_built_and_measured_in_turns() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    fs::create_dir(&repo).unwrap();
    repository(&repo);
    let run = |args: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_wellread"))
            .args(args)
            .current_dir(&repo)
            .env("XDG_CACHE_HOME", dir.path().join("cache"))
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code().unwrap(), text(&done.stdout), text(&done.stderr))
    };
    let (code, out, err) =
        run(&["compare", "fast", "slow", "--rounds", "8", "--json", "--", "dataset", "--images", "3"]);
    assert_eq!(code, 3, "{out}{err}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let row = &document["rows"][0];
    assert_eq!((&row["n_a"], &row["n_b"], &row["verdict"]), (&8.into(), &8.into(), &"slower".into()));
    assert!((row["ratio"].as_f64().unwrap() - 1.2).abs() < 0.01, "{row}");
    assert!(row["noise_floor"].as_f64().unwrap() > 0.0, "{row}");
    assert_eq!(fs::read_to_string(repo.join("crates/wellread-cli/src/main.rs")).unwrap(), "unfinished");
    let listed = Command::new("git").args(["worktree", "list"]).current_dir(&repo).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 1);
    // Built once: the sources need not be there any more.
    let (code, out, err) = run(&["compare", "slow", "fast", "--rounds", "6", "--", "dataset"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("faster"), "{out}");
    let (code, _, err) = run(&["compare", "fast", "broken", "--", "dataset"]);
    assert!(code == 1 && err.contains("cannot build broken") && err.contains("nonsense"), "{err}");
    let (code, _, err) = run(&["compare", "fast", "slow"]);
    assert!(code == 2 && err.contains("what to measure"), "{err}");
    let (code, _, err) = run(&["compare", "fast", "slow", "--", "dataset", "--out", "x"]);
    assert!(code == 1 && err.contains("--out"), "{err}");
}
