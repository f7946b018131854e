//! What a new user runs into: a short time budget, an interruption, nothing to measure, options by their other names, folders
//! of images and masks, a column that is spelt wrong.

use crate::support::{arg, files_below, generate, json, leftovers, wellread, wellread_in};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use wellread_report::{ReportInput, Samples, Table, row};

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
    // Two modes, seven rounds: counted in steps, so that it does not matter how fast this machine is. A slow one has no time for
    // the model at all, and says so.
    let samples = Samples::read_parquet(out.join("samples/loop.parquet"));
    let steps: usize = samples.map_or(0, |samples| samples.seconds().iter().map(Vec::len).sum());
    assert!(steps < 140_000, "{steps} of 14 million steps");
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
    assert!(said.contains(&format!("`wellread report {}` shows it", out.display())), "{said}");
    assert_eq!(leftovers(&out), Vec::<String>::new());
    json(&["report", arg(&out)]);
    // Of several processes those that are finished, and nothing of the one that is measured.
    let several = dir.path().join("several");
    let said = interrupted(until("process 1 of 9", &["dataset", "--processes", "9"], &several));
    assert!(said.contains(&format!("`wellread report {}` shows it", several.display())), "{said}");
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
        done.stdout
    };
    let few = said("2");
    assert!(few.contains("(dataloader 2), too few for a 95 % interval, which needs 6"), "{few}");
    assert!(few.contains("2 rounds are too few for a verdict (--repeats 7 gives one)"), "{few}");
    let enough = said("6");
    assert!(
        enough.contains("Every figure is a median over interleaved runs with its 95 % interval;"),
        "{enough}"
    );
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
    let (stats, view) = (dir.path().join("stats.json"), dir.path().join("view.png"));
    json(&["stats", arg(&tiff), "--output", arg(&stats)]);
    json(&["view", arg(&tiff), "--output", arg(&view)]);
    assert!(stats.exists() && view.exists());
}

#[test]
fn images_and_masks_in_one_folder_are_refused_unless_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let both = dir.path().join("both");
    for (name, dtype) in [("images", "uint16"), ("masks", "uint8")] {
        let set = dir.path().join(name);
        generate(&set, 2, &["--formats", "tiff", "--dtype", dtype]);
        fs::create_dir_all(both.join(name)).unwrap();
        for entry in fs::read_dir(set.join("tiff")).unwrap().flatten() {
            let file = format!("{name}-{}", entry.file_name().to_str().unwrap());
            fs::copy(entry.path(), both.join(name).join(file)).unwrap();
        }
    }
    let target = dir.path().join("plate.parquet");
    let refused = wellread(&["convert", arg(&both), arg(&target)]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    // As `stats` says it.
    let stats = wellread(&["stats", arg(&both)]);
    for done in [&refused, &stats] {
        assert!(done.stderr.contains("row 2: the image is uint8, but row 0 is uint16"), "{}", done.stderr);
    }
    assert!(
        refused.stderr.contains("images and masks are two sets") && !target.exists(),
        "{}",
        refused.stderr
    );
    assert_eq!(json(&["convert", arg(&both.join("masks")), arg(&target)])["images"], 2);
    let mixed = dir.path().join("mixed.parquet");
    assert_eq!(json(&["convert", arg(&both), arg(&mixed), "--mixed"])["images"], 4);
    assert_eq!(json(&["verify", arg(&mixed), "--against", arg(&both)])["images"], 4);
}

/// Masks of the images' own pixel type are told by their names.
#[test]
fn masks_of_the_images_own_type_are_refused_unless_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff", "--dtype", "uint16", "--masks"]);
    let target = dir.path().join("plate.parquet");
    let refused = wellread(&["convert", arg(&set), arg(&target)]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    for done in [&refused, &wellread(&["stats", arg(&set)])] {
        assert!(
            done.code == 1 && done.stderr.contains("is a mask of") && done.stderr.contains("masks/"),
            "{}",
            done.stderr
        );
    }
    assert!(refused.stderr.contains("--mixed") && !target.exists(), "{}", refused.stderr);
    assert_eq!(json(&["convert", arg(&set.join("tiff")), arg(&target)])["images"], 2);
    let mixed = dir.path().join("mixed.parquet");
    assert_eq!(json(&["convert", arg(&set), arg(&mixed), "--mixed"])["images"], 4);
}

/// Two plates have files of the same names: a profile belongs to the image of its own plate.
#[test]
fn a_join_compares_folders() {
    let dir = tempfile::tempdir().unwrap();
    let (set, plates) = (dir.path().join("set"), dir.path().join("plates"));
    generate(&set, 2, &["--formats", "tiff"]);
    let mut names = vec![];
    for plate in ["P1", "P2"] {
        fs::create_dir_all(plates.join(plate)).unwrap();
        for entry in fs::read_dir(set.join("tiff")).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            fs::copy(entry.path(), plates.join(plate).join(&name)).unwrap();
            names.push(format!("{plate}/{name}"));
        }
    }
    let joined = |set: &Path, profiles: &[(&str, &str)]| {
        let mut table = Table::new("profiles");
        for (image, well) in profiles {
            table.push(row![("Image", *image), ("Well", *well)]);
        }
        let (path, target) = (dir.path().join("profiles.parquet"), dir.path().join("plates.parquet"));
        table.write_parquet(&path).unwrap();
        let join = ["--join", arg(&path), "--on", "Image", "--overwrite"];
        let done = wellread(&[&["convert", arg(set), arg(&target)], &join[..]].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout + &done.stderr
    };
    names.sort_unstable();
    let [first, .., last] = names.as_slice() else { panic!("{names:?}") };
    let said = joined(&plates, &[(first, "A1"), (last, "B2")]);
    assert!(said.contains("2 of 4 images have a profile") && !said.contains("note: one profile"), "{said}");
    // Without a folder one profile goes to both plates, and that is told.
    let (_, name) = first.split_once('/').unwrap();
    let said = joined(&plates, &[(name, "A1")]);
    assert!(said.contains("2 of 4 images have a profile"), "{said}");
    assert!(said.contains("note: one profile") && said.contains("P1/") && said.contains("P2/"), "{said}");
    // One plate alone: its folder tells the profiles apart, and those of another plate are told.
    let alone = |plate: &str, profiles: &[(&str, &str)]| joined(&plates.join(plate), profiles);
    let of_p1: Vec<(&str, &str)> =
        names.iter().filter(|n| n.starts_with("P1")).map(|n| (n.as_str(), "A1")).collect();
    let of_both: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "A1")).collect();
    let said = alone("P2", &of_both);
    assert!(said.contains("2 of 2 images have a profile") && !said.contains("note: profiles name"), "{said}");
    let said = alone("P2", &of_p1);
    assert!(said.contains("note: profiles name folders that") && said.contains("such as P1/"), "{said}");
    let said = alone("P1", &of_p1);
    assert!(said.contains("2 of 2 images have a profile") && !said.contains("note: profiles name"), "{said}");
}

#[test]
fn a_join_takes_the_columns_named_and_suggests_the_one_meant() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    let mut names: Vec<String> = fs::read_dir(&tiff)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_str().unwrap().to_owned())
        .filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "tif" || ending == "tiff"))
        .collect();
    names.sort_unstable();
    let mut profiles = Table::new("profiles");
    for (i, name) in names.iter().enumerate() {
        profiles.push(row![
            ("FileName", name.as_str()),
            ("Metadata_Well", "A1"),
            ("Metadata_dose", i),
            ("Cells_Area", 1.5)
        ]);
    }
    let path = dir.path().join("profiles.parquet");
    profiles.write_parquet(&path).unwrap();
    let convert = |target: &str, on: &str, columns: &str| {
        let target = dir.path().join(target);
        let join = ["--join", arg(&path), "--on", on, "--columns", columns];
        (wellread(&[&["convert", arg(&tiff), arg(&target)], &join[..]].concat()), target)
    };
    let (done, target) = convert("plate.parquet", "FileName", "Metadata_dose,Metadata_Well");
    assert_eq!(done.code, 0, "{}", done.stderr);
    let columns = &json(&["info", arg(&target)])["feature_columns"];
    assert_eq!(*columns, serde_json::json!(["Metadata_dose", "Metadata_Well"]));
    let (wrong, target) = convert("wrong.parquet", "FileName", "Metadata_Dose");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("has no column \"Metadata_Dose\""), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("is it \"Metadata_dose\"") && !target.exists(), "{}", wrong.stderr);
    let (wrong, _) = convert("wrong.parquet", "Filenam", "Metadata_dose");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("to join on (hint: is it \"FileName\"?"), "{}", wrong.stderr);
    // A name that is a part of the one that was given comes first.
    let (wrong, _) = convert("wrong.parquet", "FileName", "Image_Metadata_Well");
    assert!(wrong.stderr.contains("is it \"Metadata_Well\""), "{}", wrong.stderr);
    let (wrong, _) = convert("wrong.parquet", "Image_FileName_DNA", "Metadata_dose");
    assert!(wrong.stderr.contains("is it \"FileName\"?"), "{}", wrong.stderr);
    let (wrong, _) = convert("wrong.parquet", "FileName", "Metadata_Compound");
    for near in ["is it \"Metadata_", "\"Metadata_dose\"", "\"Metadata_Well\""] {
        assert!(wrong.stderr.contains(near), "{}", wrong.stderr);
    }
    let (wrong, _) = convert("wrong.parquet", "FileName", "zzzzzz");
    assert!(
        !wrong.stderr.contains("is it ") && wrong.stderr.contains("it has 4 columns: "),
        "{}",
        wrong.stderr
    );
}

#[test]
fn info_says_where_compression_made_files_larger() {
    let dir = tempfile::tempdir().unwrap();
    let noise = dir.path().join("noise");
    let kind = ["--kind", "noise", "--dtype", "uint8", "--formats", "tiff", "--compression"];
    json(&[&["generate", arg(&noise), "--images", "2", "--size", "64x64"], &kind[..], &["lzw"]].concat());
    let said = wellread(&["info", arg(&noise.join("tiff"))]).stdout;
    assert!(said.contains("% larger than the pixels: "), "{said}");
    let cells = dir.path().join("cells");
    json(&[
        "generate",
        arg(&cells),
        "--images",
        "2",
        "--size",
        "128x128",
        "--formats",
        "tiff",
        "--compression",
        "zstd",
    ]);
    let said = wellread(&["info", arg(&cells.join("tiff"))]).stdout;
    assert!(!said.contains("larger than the pixels"), "{said}");
    // Tables hold more than pixels, and PNG is never without a codec.
    let bare = wellread_store::registry::formats().iter().filter(|format| format.holds_bare_pixels);
    let mut bare: Vec<_> = bare.map(|format| format.name).collect();
    bare.sort_unstable();
    assert_eq!(bare, ["ome-zarr", "tiff"]);
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

#[test]
fn addresses_of_object_stores_are_named() {
    for address in
        ["s3://bucket/plate.parquet", "gs://bucket/a.zarr", "az://box/a", "https://example.org/a.tiff"]
    {
        let done = wellread(&["bench", "storage", "--input", address]);
        let scheme = address.split("://").next().unwrap();
        assert_eq!(done.code, 1, "{}", done.stderr);
        assert!(done.stderr.contains(&format!("this build cannot read {scheme}://")), "{}", done.stderr);
        assert!(done.stderr.contains("copy the data to a local folder"), "{}", done.stderr);
    }
    let named = wellread(&["info", "s3://bucket/plate", "--read-as", "tiff"]);
    assert!(named.stderr.contains("this build cannot read s3://"), "{}", named.stderr);
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 1, &["--formats", "tiff"]);
    let target = wellread(&["convert", arg(&set.join("tiff")), "gs://bucket/plate.parquet"]);
    assert_eq!(target.code, 1, "{}", target.stdout);
    assert!(
        target.stderr.contains("this build cannot write gs://") && !Path::new("gs:").exists(),
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
    // What is said to do can be done, and a file has no inside.
    for args in [["view", ".", "--out", "../view.png"], ["view", arg(&parquet), "--row", "0"]] {
        let folder = if args[1] == "." { &tiff } else { &set };
        let done = wellread_in(folder, &args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        assert!(set.join("view.png").exists());
    }
}

/// Pixels of a compression that wellread does not read: described, and not advised to be converted by a command that fails.
#[test]
fn info_says_that_pixels_are_of_a_kind_that_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let noise = ["--kind", "noise", "--dtype", "uint8", "--formats", "tiff", "--compression", "none"];
    generate(dir.path(), 1, &[&noise[..], &["--no-checksums"]].concat());
    let tiff = dir.path().join("tiff");
    let fine = wellread(&["info", arg(&tiff)]).stdout;
    assert!(!fine.contains("cannot be read"), "{fine}");
    for (path, mut bytes) in files_below(&tiff) {
        // The tag Compression, a short: none becomes JPEG.
        let tag = [0x03_u8, 0x01, 3, 0, 1, 0, 0, 0, 1, 0];
        let at = bytes.windows(tag.len()).position(|found| found == tag).unwrap();
        bytes[at + 8] = 7;
        fs::write(&path, bytes).unwrap();
    }
    let done = wellread(&["info", arg(&tiff)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stdout.contains("the pixels cannot be read: compression JPEG (7) is not supported"),
        "{}",
        done.stdout
    );
    assert!(!done.stdout.contains("wellread convert"), "{}", done.stdout);
    let why = &json(&["info", arg(&tiff)])["pixels_unsupported"];
    assert!(why.as_str().is_some_and(|why| why.contains("JPEG (7)")), "{why}");
}

#[test]
fn view_replaces_its_own_pictures_alone() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "parquet"]);
    let (parquet, picture) = (set.join("images.parquet"), dir.path().join("picture.png"));
    let view = |more: &[&str]| wellread(&[&["view", arg(&parquet), "--out", arg(&picture)], more].concat());
    assert_eq!(view(&[]).code, 0);
    let sheet = fs::read(&picture).unwrap();
    assert_eq!(view(&["--row", "1"]).code, 0);
    assert_ne!(fs::read(&picture).unwrap(), sheet);
    // The same picture as another program writes it: without the note of who has drawn it.
    let note = b"Software\0wellread";
    let at = sheet.windows(note.len()).position(|found| found == note).unwrap() - 8;
    let foreign = [&sheet[..at], &sheet[at + note.len() + 12..]].concat();
    fs::write(&picture, &foreign).unwrap();
    let done = view(&[]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stderr.contains("picture.png: already exists and is no picture that wellread has drawn"));
    assert!(fs::read(&picture).unwrap() == foreign);
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

#[test]
fn verify_says_where_there_are_no_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let written = generate(dir.path(), 2, &[]);
    let expected = dir.path().join("expected.json");
    let verified = |set: &Path, more: &[&str]| {
        let done = wellread(&[&["verify", arg(set)], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout
    };
    for set in written["written"].as_array().unwrap() {
        let format = set["format"].as_str().unwrap();
        let Some(path) = set["path"].as_str().filter(|_| set["error"].is_null()) else { continue };
        let said = verified(Path::new(path), &[]);
        let unseen = said.contains("has no checksums of its own") && said.contains("--against");
        let without = ["lance", "vortex", "parquet-duckdb"].contains(&format);
        assert_eq!(unseen, without, "{format}: {said}");
        assert!(!verified(Path::new(path), &["--against", arg(&expected)]).contains("of its own"));
    }
    // Those whose files have a place for them, which was left empty, or which the codec fills.
    let source = dir.path().join("images.parquet");
    for (i, (format, compression, more, unseen)) in [
        ("parquet", "none", &["--no-checksums"][..], true),
        ("parquet", "zstd:3", &["--no-checksums"], true),
        ("parquet", "zstd:3", &[], false),
        ("ome-arrow-dataset", "zstd:3", &["--no-checksums"], true),
        ("tiff", "none", &["--no-checksums"], true),
        ("tiff", "deflate", &["--no-checksums"], false),
        ("ome-zarr", "none", &["--no-checksums", "--variant", "0.5"], true),
        ("ome-zarr", "none", &["--variant", "0.5"], false),
        ("ome-zarr", "none", &["--variant", "0.4"], true),
        ("ome-zarr", "zstd:3", &["--no-checksums", "--variant", "0.5"], true),
        ("ome-zarr", "zstd:3", &["--no-checksums", "--variant", "0.5", "--shard", "1,1,1,40,56"], true),
        ("ome-zarr", "zstd:3", &["--variant", "0.5"], false),
    ]
    .into_iter()
    .enumerate()
    {
        let target = dir.path().join(format!("again-{i}"));
        let convert =
            ["convert", arg(&source), arg(&target), "--format", format, "--compression", compression];
        let done = wellread(&[&convert[..], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let said = verified(&target, &[]);
        assert_eq!(
            said.contains("no checksums of its own"),
            unseen,
            "{format} {compression} {more:?}: {said}"
        );
    }
    // PNG has checksums, JPEG has none, whatever the files are called; one JPEG is enough.
    let pictures = dir.path().join("pictures");
    fs::create_dir(&pictures).unwrap();
    let at = |name: &str| pictures.join(name);
    let is_unseen = || verified(&pictures, &[]).contains("no checksums of its own");
    let picture = image::RgbImage::from_fn(16, 16, |x, y| image::Rgb([x as u8, y as u8, 7]));
    picture.save(at("a.png")).unwrap();
    assert!(!is_unseen());
    picture.save(at("b.jpg")).unwrap();
    assert!(is_unseen());
    fs::rename(at("b.jpg"), at("b.png")).unwrap();
    assert!(is_unseen());
    fs::remove_file(at("b.png")).unwrap();
    fs::rename(at("a.png"), at("a.jpg")).unwrap();
    assert!(!is_unseen());
}
