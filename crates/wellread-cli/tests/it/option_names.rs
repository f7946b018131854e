//! Options that have two names: the path of images is `--data` and `--input`, that of results `--out` and `--output`. And
//! options that change nothing.

use crate::support::{arg, generate, has_format, json, wellread};
use std::path::Path;

/// Runs a command that fails, and names this path.
fn fails(command: &[&str], path: &Path) {
    let done = wellread(command);
    assert_eq!(done.code, 1, "{command:?}: {}", done.stderr);
    assert!(done.stderr.contains(arg(path)), "{command:?}: {}", done.stderr);
}

#[test]
fn options_have_one_name_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 4, &["--formats", "tiff"]);
    let (tiff, out) = (set.join("tiff"), dir.path().join("results"));
    let few = ["--in-place", "--no-cold", "--repeats", "1"];
    json(&[&["bench", "storage", "--data", arg(&tiff), "--output", arg(&out)], &few[..]].concat());
    assert!(out.join("storage.parquet").exists());
    // Both names of the images are read, and what is not there is named.
    let missing = dir.path().join("missing");
    for command in [&["bench", "storage", "--data"][..], &["bench", "storage", "--input"]] {
        fails(
            &[command, &[arg(&missing), "--in-place", "--out", arg(&dir.path().join("new"))]].concat(),
            &missing,
        );
    }
    for option in ["--data", "--input"] {
        fails(&["doctor", option, arg(&missing)], &missing);
    }
    let (stats, view) = (dir.path().join("stats.json"), dir.path().join("view.png"));
    json(&["stats", arg(&tiff), "--output", arg(&stats)]);
    json(&["view", arg(&tiff), "--output", arg(&view)]);
    assert!(stats.exists() && view.exists());
    // Where a path has no option, the error says so, and names no other option.
    for (command, option, shown) in
        [("verify", "--data", "PATH"), ("stats", "--input", "PATH"), ("convert", "--data", "SOURCE")]
    {
        let wrong = wellread(&[command, option, arg(&tiff)]);
        let said = format!("the path of images has no option here: wellread {command} {shown}");
        assert!(wrong.code == 2 && wrong.stderr.contains(&said), "{}", wrong.stderr);
        assert!(!wrong.stderr.contains("--path-map"), "{}", wrong.stderr);
    }
    for (command, option, shown) in [
        ("generate", "--out", "OUT"),
        ("generate", "--output", "OUT"),
        ("convert", "--out", "SOURCE TARGET"),
        ("convert", "--output", "SOURCE TARGET"),
    ] {
        let wrong = wellread(&[command, option, arg(&tiff)]);
        let said = format!("the path of what is written has no option here: wellread {command} {shown}");
        assert!(wrong.code == 2 && wrong.stderr.contains(&said), "{}", wrong.stderr);
        assert!(!wrong.stderr.contains("similar"), "{}", wrong.stderr);
    }
    // Others call them otherwise. Nobody means an option as a path.
    for (command, option, tip) in [
        ("info", "--format", "tip: JSON is --json; the format of a set is --read-as FORMAT\n"),
        ("report", "--format", "tip: JSON is --json\n"),
        ("advise", "--format", "'--formats'"),
        ("verify", "--expected", "tip: checksums to compare with are --against EXPECTED.json\n"),
        ("view", "--channels", "tip: a picture has all channels, each in its colour\n"),
        ("convert", "--to", "tip: the format to write is --format FORMAT, or the ending of the target\n"),
        (
            "convert",
            "--rows",
            "tip: convert writes all images; in Python, ds.select(rows) is a set of some of them\n",
        ),
        (
            "infer",
            "--time-budget",
            "tip: infer ends after --iterations passes of each of --batch-sizes: give fewer of both\n",
        ),
        ("stats", "--nonsense", "unexpected argument '--nonsense' found\n"),
    ] {
        let wrong = wellread(&[command, option, "x"]);
        assert!(wrong.code == 2 && wrong.stderr.contains(tip), "{command}: {}", wrong.stderr);
        assert!(!wrong.stderr.contains("as a value"), "{}", wrong.stderr);
    }
    // The output of a model is no place to write to.
    let embed = ["embed", arg(&tiff), "--model", "resnet50"];
    let folder = wellread(&[&embed[..], &["--output", arg(dir.path())]].concat());
    assert!(folder.code == 2 && folder.stderr.contains("is a folder"), "{}", folder.stderr);
    // Other options are compared by their spelling as before.
    let wrong = wellread(&["verify", "--agains", "x", arg(&tiff)]);
    assert!(wrong.code == 2 && wrong.stderr.contains("'--against'"), "{}", wrong.stderr);
}

#[test]
fn percentiles_that_are_shares_are_told() {
    let dir = tempfile::tempdir().unwrap();
    generate(&dir.path().join("set"), 2, &["--formats", "tiff"]);
    let tiff = dir.path().join("set/tiff");
    let stats = |percentiles| wellread(&["stats", arg(&tiff), "--percentiles", percentiles]);
    let shares = stats("0.01,0.99");
    assert!(shares.code == 0 && shares.stderr.contains("for shares, give 1, 99"), "{}", shares.stderr);
    assert!(!stats("0.1,99.9").stderr.contains("shares"));
}

/// An option that another one makes idle is an error, and nothing is measured or drawn.
#[test]
fn options_of_which_one_would_change_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    generate(&dir.path().join("set"), 2, &["--formats", "tiff"]);
    let tiff = dir.path().join("set/tiff");
    let (results, out) = (dir.path().join("results"), dir.path().join("out.png"));
    let bench = ["bench", "storage", "--input", arg(&tiff), "--out", arg(&results)];
    let view = ["view", arg(&tiff), "--row", "0", "--out", arg(&out)];
    for (command, more, other) in [
        (&bench[..], &["--in-place", "--formats", "tiff"][..], "--in-place"),
        (&bench, &["--in-place", "--data-dir", "sets"], "--in-place"),
        (&bench, &["--images", "2"], "--input"),
        (&bench, &["--in-place", "--size", "8x8"], "--input"),
        (&bench, &["--channels", "2"], "--input"),
        (&bench, &["--depth", "2"], "--input"),
        (&bench, &["--time", "2"], "--input"),
        (&bench, &["--dtype", "uint8"], "--input"),
        (&bench, &["--kind", "noise"], "--input"),
        (&view, &["--count", "4"], "--row"),
    ] {
        let wrong = wellread(&[command, more].concat());
        assert_eq!(wrong.code, 2, "{more:?}: {}", wrong.stderr);
        let idle = more.iter().rfind(|word| word.starts_with("--")).unwrap();
        assert!(wrong.stderr.contains("cannot be used with"), "{more:?}: {}", wrong.stderr);
        assert!(wrong.stderr.contains(idle) && wrong.stderr.contains(other), "{more:?}: {}", wrong.stderr);
    }
    let nowhere = ["bench", "storage", "--in-place", "--images", "2", "--out", arg(&results)];
    for more in [&[][..], &["--processes", "2"]] {
        let wrong = wellread(&[&nowhere[..], more].concat());
        assert!(wrong.code == 2 && wrong.stderr.contains("--in-place needs --input"), "{}", wrong.stderr);
    }
    assert!(!out.exists() && !results.exists());
}

#[test]
fn checksums_that_a_format_does_not_have_cannot_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    for format in ["lance", "vortex", "parquet"].into_iter().filter(|format| has_format(format)) {
        let out = dir.path().join(format);
        let made = ["generate", arg(&out), "--images", "1", "--size", "8x8", "--formats", format];
        let said = wellread(&[&made[..], &["--no-checksums"]].concat()).stderr;
        let note = format!("--no-checksums changes nothing in {format}");
        assert_eq!(said.contains(&note), format != "parquet", "{said}");
    }
}
