//! Problems of a new user. There are a short time budget, an interruption, nothing to measure, addresses and places
//! that cannot be written. [`crate::new_set`] has those with a set of images, [`crate::option_names`] those with options.

use crate::support::{arg, files_below, generate, json, leftovers, wellread, wellread_in};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use wellread_report::{ReportInput, Samples, Table};

/// Steps that no machine does within the budget of these tests.
const MANY: &str = "1000000";

/// A benchmark of 12 small images as TIFF, in few configurations.
fn small<'a>(what: &[&'a str], out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let common =
        ["--images", "12", "--size", "32x32", "--formats", "tiff", "--no-cold", "--access", "random"];
    let few = ["--transform", "none", "--cache", "none", "--batch-sizes", "4", "--workers", "0"];
    [&["bench"], what, &common[..], &few, &["--batch-size", "4", "--out", arg(out)], more].concat()
}

#[test]
fn a_short_budget_cuts_the_work_and_says_what_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let done = wellread(&small(&["all"], &out, &["--steps", MANY, "--time-budget", "10"]));
    assert_eq!(done.code, 0, "{}", done.stderr);
    // Two modes, seven rounds: counted in steps, which no machine does a tenth of. A slow one has no time for the model at
    // all, and says so.
    let samples = Samples::read_parquet(out.join("samples/loop.parquet"));
    let steps: usize = samples.map_or(0, |samples| samples.seconds().iter().map(Vec::len).sum());
    assert!(steps < 1_400_000, "{steps} of 14 million steps");
    let warnings = ReportInput::from_dir(&out).unwrap().warnings;
    let cut = warnings.iter().find(|warning| warning.starts_with("loop: cut to fit its"));
    let cut = cut.is_some_and(|said| {
        said.contains(" of 1000000 steps") && said.contains("in full it would take about")
    });
    let table = Table::read_parquet(out.join("loop.parquet")).unwrap();
    let late = |row| {
        table.str("reason", row).is_some_and(|why| why.starts_with("left out for want of time: one step"))
    };
    assert!(cut || (0..table.rows()).all(late), "{warnings:?}");
    assert_eq!(steps > 0, cut);
    // A line per phase, and nothing that only a terminal shows.
    let phases: Vec<&str> = done
        .stderr
        .lines()
        .filter(|line| !line.starts_with("note: "))
        .map(|l| l.split([' ', ':']).next().unwrap())
        .collect();
    assert_eq!(
        phases,
        ["prepared", "storage", "dataset", "dataloader", "loop", "conversion"],
        "{}",
        done.stderr
    );
    let quiet = wellread(&[&["--quiet"], &small(&["storage"], &out, &["--repeats", "1"])[..]].concat());
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
}

/// Seconds that a sentence has as `4 s`, `12 minutes` or `3 hours`.
fn seconds_of(said: &str) -> f64 {
    let mut words = said.split([' ', ')']);
    let number: f64 = words.next().unwrap().parse().unwrap();
    let unit = match words.next().unwrap() {
        "s" => 1.0,
        "minutes" => 60.0,
        "hours" => 3600.0,
        other => panic!("{other} in {said}"),
    };
    number * unit
}

/// Few images, but large ones: nothing of the loop fits in full. Only counts and what the run says of itself are compared, for a
/// machine may be as slow as it likes.
#[test]
fn three_large_images_within_ten_seconds_say_what_was_cut() {
    const PHASES: [&str; 5] = ["storage", "dataset", "dataloader", "loop", "conversion"];
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let images = ["--images", "3", "--size", "1080x1080"];
    let done =
        wellread(&[&["bench", "all"], &images[..], &["--time-budget", "10", "--out", arg(&out)]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = done.stderr.lines().filter_map(|line| line.split([' ', ':']).next());
    let said: Vec<&str> = said.filter(|word| PHASES.contains(word)).collect();
    assert_eq!(said, PHASES, "{}", done.stderr);
    let warnings = ReportInput::from_dir(&out).unwrap().warnings;
    for phase in PHASES {
        let table = Table::read_parquet(out.join(format!("{phase}.parquet"))).unwrap();
        assert!(table.rows() > 0, "{phase}");
        // Its line tells the rounds that were measured, and a note why they are fewer than were asked for.
        let start = format!("{phase}: ");
        let line = done.stderr.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
        let (told, _) = line.split_once(" round").unwrap();
        let (rounds, asked) = told.split_once(" of ").unwrap_or((told, told));
        let rounds: usize = rounds.parse().unwrap();
        let runs = (0..table.rows()).filter_map(|row| table.f64("run", row));
        assert_eq!(runs.map(f64::to_bits).collect::<BTreeSet<_>>().len(), rounds, "{line}");
        assert_eq!(asked, "7", "{line}");
        let is_why = |said: &str| {
            said.starts_with(&start) && (said.contains("time budget") || said.contains("counted as warm-up"))
        };
        assert!(rounds == 0 || rounds == 7 || warnings.iter().any(|said| is_why(said)), "{warnings:?}");
    }
    let table = Table::read_parquet(out.join("loop.parquet")).unwrap();
    let Some(cut) = warnings.iter().find_map(|said| said.strip_prefix("loop: cut to fit its ")) else {
        let late = |row| {
            table.str("reason", row).is_some_and(|why| why.starts_with("left out for want of time: one step"))
        };
        assert!((0..table.rows()).all(late), "{warnings:?}");
        return;
    };
    let (_, in_full) = cut.split_once("in full it would take about ").unwrap();
    let part = seconds_of(cut);
    assert!(part <= 10.0 && seconds_of(in_full) > part, "{cut}");
    // No run has more steps than were left of those that were asked for.
    let (steps, _) = cut.split_once(" steps").unwrap();
    let (before, asked) = steps.rsplit_once(" of ").unwrap();
    let (left, asked): (usize, usize) =
        (before.rsplit(' ').next().unwrap().parse().unwrap(), asked.parse().unwrap());
    assert!(left < asked, "{cut}");
    let samples = Samples::read_parquet(out.join("samples/loop.parquet")).unwrap();
    // And one that fills what is read ahead.
    assert!(samples.seconds().iter().all(|run| run.len() <= left + 1), "{cut}");
}

/// Starts a benchmark whose second phase never ends, and waits until the first is finished.
fn until_the_first_phase_ends(out: &Path) -> (Child, BufReader<std::process::ChildStderr>) {
    until("storage: 1 round of ", &["storage", "loop"], out)
}

/// Starts benchmarks of which the loop never ends, and waits until they have said a line that begins so.
fn until(said: &str, what: &[&str], out: &Path) -> (Child, BufReader<std::process::ChildStderr>) {
    let args = small(what, out, &["--steps", MANY, "--repeats", "1", "--time-budget", "9000000"]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_wellread"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with(said) {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended early: {}", child.wait().unwrap());
    }
    (child, stderr)
}

#[test]
fn what_is_finished_survives_a_kill_and_makes_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let (mut child, _) = until_the_first_phase_ends(&out);
    child.kill().unwrap();
    child.wait().unwrap();
    let table = Table::read_parquet(out.join("storage.parquet")).unwrap();
    assert!((0..table.rows()).any(|row| table.f64("seconds", row).is_some()));
    assert!(!out.join("loop.parquet").exists() && !out.join("report.html").exists());
    json(&["report", arg(&out)]);
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("the run ended before these were measured: loop"));
    assert!(html.contains("tiff") && html.contains("read_all"), "the figures are there");
    // The next run takes the folder over, and its results are whole.
    let again = wellread(&small(&["storage"], &out, &["--repeats", "1"]));
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(!fs::read_to_string(out.join("report.html")).unwrap().contains("the run ended before"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_says_where_its_results_are() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let interrupted = |(mut child, mut stderr): (Child, BufReader<std::process::ChildStderr>)| {
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let code = child.wait().unwrap().code();
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(code, Some(130), "{said}");
        said
    };
    // Before a benchmark is finished there are images alone.
    let early = dir.path().join("early");
    let said = interrupted(until("prepared ", &["loop"], &early));
    let images = early.join("data");
    assert!(
        said.contains(&format!("were prepared stay in {}", images.display())) && images.is_dir(),
        "{said}"
    );
    let said = interrupted(until_the_first_phase_ends(&out));
    assert!(said.contains(&format!("`wellread report {}` shows them", out.display())), "{said}");
    assert_eq!(leftovers(&out), Vec::<String>::new());
    json(&["report", arg(&out)]);
    // The results have the finished ones of several processes, and nothing of the one that is measured. However late this
    // test gets its turn, there is one.
    let several = dir.path().join("several");
    let said = interrupted(until("process 1 of 1000", &["dataset", "--processes", "1000"], &several));
    assert!(said.contains(&format!("`wellread report {}` shows them", several.display())), "{said}");
    assert_eq!(leftovers(&several), Vec::<String>::new());
    json(&["report", arg(&several)]);
}

#[test]
fn nothing_measured_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let args = ["bench", "dataloader", "--images", "3", "--size", "24x24", "--formats", "tiff"];
    let done = wellread(&[&args[..], &["--batch-sizes", "8", "--out", arg(&out)]].concat());
    assert_eq!(done.code, 1, "{}", done.stdout);
    assert!(
        done.stderr.contains("error: nothing was measured: the set has only 3 images"),
        "{}",
        done.stderr
    );
}

#[test]
fn too_few_rounds_claim_no_interval() {
    let dir = tempfile::tempdir().unwrap();
    let said = |rounds: &str| {
        let out = dir.path().join(rounds);
        let more = ["--repeats", rounds, "--formats", "tiff,parquet", "--time-budget", "100000"];
        let args: Vec<&str> =
            small(&["dataloader"], &out, &[]).into_iter().filter(|word| *word != "tiff").collect();
        let args: Vec<&str> = args.into_iter().filter(|word| *word != "--formats").collect();
        let done = wellread(&[&args[..], &more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        (done.stdout, done.stderr)
    };
    let (few, noted) = said("2");
    assert!(!noted.contains("--processes"), "{noted}");
    assert!(few.contains("(dataloader 2 runs), too few for a 95 % interval, which needs 6"), "{few}");
    assert!(few.contains("2 rounds are too few for a verdict (--repeats 7 gives one)"), "{few}");
    assert!(few.contains("The tables here show medians alone"), "{few}");
    let (enough, noted) = said("6");
    assert!(
        enough.contains(
            "Every figure is a median over interleaved runs of one process with its 95 % interval;"
        ),
        "{enough}"
    );
    // The second is said on a machine that is busy with other things.
    let found = [
        "a slow-down is found in nine of ten cases from: ",
        "Rounds differ too much for a slow-down to be found of ",
    ];
    assert!(found.iter().any(|words| enough.contains(&format!("{words}dataloader"))), "{enough}");
    assert!(noted.contains("to compare results, measure several with --processes 5"), "{noted}");
}

#[cfg(unix)]
#[test]
fn doctor_recommends_what_can_be_had() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let python = dir.path().join("python");
    fs::write(&python, "#!/bin/sh\necho '{\"python\": \"3.12.1\", \"wellread\": null, \"zarr\": null}'\n")
        .unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let said = wellread(&["doctor", "--python", arg(&python)]).stdout;
    assert!(said.contains("pip install zarr") && !said.contains("pip install wellread"), "{said}");
    assert!(said.contains("pip install . (in a clone of wellread)"), "{said}");
}

/// A package that is imported by `PYTHONPATH` has no record among the packages, and is not imported for its version.
#[cfg(target_os = "linux")]
#[test]
fn doctor_finds_the_package_on_the_path() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let package = dir.path().join("wellread");
    fs::create_dir(&package).unwrap();
    fs::write(package.join("__init__.py"), "raise SystemExit('imported')\n").unwrap();
    // A Python without its installed packages: wellread may be one.
    let python = dir.path().join("bare-python");
    fs::write(&python, "#!/bin/sh\nexec python3 -S \"$@\"\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let asked = ["doctor", "--python", arg(&python)];
    let said = || crate::support::wellread_with(("PYTHONPATH", dir.path()), &asked).stdout;
    let before = said();
    assert!(before.contains("  missing  wellread "), "this test needs python3 on the PATH: {before}");
    fs::write(package.join("_native.abi3.so"), "").unwrap();
    let after = said();
    assert!(after.contains("  ok       wellread       on the path"), "{after}");
}

#[test]
fn addresses_that_nobody_reads_are_named() {
    for address in
        ["hdfs://name/plate.parquet", "ftp://host/a.zarr", "dav://box/a", "sftp://example.org/a.tiff"]
    {
        let done = wellread(&["bench", "storage", "--input", address]);
        let scheme = address.split("://").next().unwrap();
        assert_eq!(done.code, 1, "{}", done.stderr);
        assert!(done.stderr.contains(&format!("this build cannot read {scheme}://")), "{}", done.stderr);
        assert!(done.stderr.contains("copy the data to a local folder"), "{}", done.stderr);
    }
    let named = wellread(&["info", "hdfs://name/plate", "--read-as", "tiff"]);
    assert!(named.stderr.contains("this build cannot read hdfs://"), "{}", named.stderr);
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 1, &["--formats", "tiff"]);
    let target = wellread(&["convert", arg(&set.join("tiff")), "ftp://host/plate.parquet"]);
    assert_eq!(target.code, 1, "{}", target.stdout);
    assert!(
        target.stderr.contains("this build cannot write ftp://") && !Path::new("ftp:").exists(),
        "{}",
        target.stderr
    );
}

/// Outputs in a folder of images would be images of it.
#[test]
fn nothing_is_written_into_the_images_that_are_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff,parquet"]);
    let (tiff, parquet) = (set.join("tiff"), set.join("images.parquet"));
    let before = files_below(&set);
    let refused: [(&[&str], &str); 6] = [
        (&["view", "."], "--out ../view.png"),
        (&["view", "../tiff", "--row", "0"], "--out ../view.png"),
        (&["bench", "storage", "--input", ".", "--in-place"], "--out ../results"),
        (
            &["bench", "storage", "--input", ".", "--out", arg(dir.path()), "--data-dir", "d"],
            "--data-dir ../d",
        ),
        (&["stats", ".", "--out", "stats.json"], "--out ../stats.json"),
        (&["infer", "--data-source", ".", "--output-dir", "new/raw"], "--output-dir ../raw"),
    ];
    for (args, instead) in refused {
        let done = wellread_in(&tiff, args);
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("lies inside the images"), "{args:?}: {}", done.stderr);
        assert!(done.stderr.trim_end().ends_with(instead), "{args:?}: {}", done.stderr);
    }
    assert_eq!(files_below(&set), before);
    // The advice can be followed, and a file has no inside.
    for args in [["view", ".", "--out", "../view.png"], ["view", arg(&parquet), "--row", "0"]] {
        let folder = if args[1] == "." { &tiff } else { &set };
        let done = wellread_in(folder, &args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        assert!(set.join("view.png").exists());
    }
}

#[test]
fn a_results_folder_of_a_benchmark_that_failed_does_not_stay() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/results");
    let missing = dir.path().join("missing.parquet");
    for more in [&[][..], &["--processes", "2"]] {
        let command = ["bench", "storage", "--input", arg(&missing), "--in-place", "--out", arg(&out)];
        let done = wellread(&[&command[..], more].concat());
        assert_eq!(done.code, 1, "{}", done.stderr);
        assert!(!dir.path().join("new").exists(), "{more:?}");
    }
    // One that was there stays.
    fs::create_dir_all(&out).unwrap();
    let done = wellread(&["bench", "storage", "--input", arg(&missing), "--in-place", "--out", arg(&out)]);
    assert!(done.code == 1 && out.exists());
}

/// Where nothing was being written, nothing is said to have been removed.
#[test]
#[cfg(unix)]
fn an_interruption_before_anything_is_written_says_no_more_than_that() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("recipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = Command::new(env!("CARGO_BIN_EXE_wellread"))
        .args(["bench", "--recipe", arg(&pipe), "--out", arg(&dir.path().join("out"))])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Opens once the program has opened it to read, and waits for what is in it.
    let held = fs::File::options().write(true).open(&pipe).unwrap();
    crate::support::signal(&child, "INT");
    let done = child.wait_with_output().unwrap();
    drop(held);
    assert_eq!(done.status.code(), Some(130));
    assert_eq!(String::from_utf8(done.stderr).unwrap(), "interrupted\n");
}
