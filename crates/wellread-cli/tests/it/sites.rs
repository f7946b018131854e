//! Images made of several files each, on the command line.

use crate::support::{arg, json, wellread, wellread_in};
use std::path::{Path, PathBuf};

/// A plate of three wells in two channels, out of generated TIFF files; without the second channel of the second well.
pub fn plate(dir: &Path) -> PathBuf {
    let set = dir.join("set");
    json(&["generate", arg(&set), "--images", "6", "--size", "16x16", "--formats", "tiff"]);
    let mut files: Vec<_> =
        std::fs::read_dir(set.join("tiff")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let folder = dir.join("P1/Images");
    std::fs::create_dir_all(&folder).unwrap();
    let names =
        [1, 2, 3].map(|well| [1, 2].map(|c| format!("r01c0{well}f01p01-ch{c}sk1fk1fl1.tiff"))).concat();
    let tiff = files.iter().filter(|file| file.extension().is_some_and(|e| e == "tiff" || e == "tif"));
    let mut copied = 0;
    for (file, name) in tiff.zip(&names) {
        std::fs::copy(file, folder.join(name)).unwrap();
        copied += 1;
    }
    assert_eq!(copied, 6);
    std::fs::remove_file(folder.join(&names[3])).unwrap();
    folder
}

#[test]
fn a_folder_without_columns_names_the_pattern_that_gives_some() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    json(&["generate", arg(&set), "--images", "2", "--size", "16x16", "--formats", "tiff,parquet"]);
    for (name, has_names) in [("tiff", true), ("images.parquet", false)] {
        let refused = wellread(&["stats", arg(&set.join(name)), "--by", "well"]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("convert --join"), "{}", refused.stderr);
        assert_eq!(refused.stderr.contains("--pattern '{well}_"), has_names, "{}", refused.stderr);
    }
}

#[test]
fn info_tells_of_the_plate_and_convert_of_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let plate = plate(dir.path());
    let lack = "1 site of 3 lacks files: r01c02f01 has no ch2 (--missing skip|zero)";
    let info = json(&["info", arg(&plate)]);
    assert_eq!(info["images"], 3);
    assert_eq!((&info["plates"], &info["wells"]), (&1.into(), &3.into()));
    assert_eq!((&info["sites"]["layout"], &info["layout_preset"]), (&"harmony".into(), &"harmony".into()));
    assert_eq!(info["columns"], serde_json::json!(["Metadata_Plate", "Metadata_Well", "Metadata_Site"]));
    assert_eq!(info["sites"]["channels"], serde_json::json!(["ch1", "ch2"]));
    assert_eq!(info["sites"]["missing"], serde_json::json!([lack]));
    let text = wellread(&["info", arg(&plate)]).stdout;
    assert!(text.contains(lack) && text.contains("3 sites of 2 files each (harmony)"), "{text}");
    let target = dir.path().join("plate.parquet");
    let done = wellread(&["convert", arg(&plate), arg(&target)]);
    assert_ne!(done.code, 0);
    assert!(done.stderr.contains("r01c02f01 has no ch2") && !target.exists(), "{}", done.stderr);
    let filled = json(&["convert", arg(&plate), arg(&target), "--missing", "zero"]);
    assert_eq!((&filled["planes_of_zeros"], &filled["images_with_zeros"]), (&1.into(), &1.into()));
    let again = ["convert", arg(&plate), arg(&target), "--missing", "zero", "--overwrite"];
    let said = "note: 1 plane of 1 image is written as 0, since the files are not there (--missing skip leaves such images out)";
    assert!(joined(&wellread(&again).stderr).contains(said));
    let written = json(&["info", arg(&target)]);
    assert_eq!((&written["images"], &written["wells"]), (&3.into(), &3.into()));
    assert_eq!(json(&["info", arg(&plate), "--missing", "skip"])["images"], 2);
    assert_eq!(json(&["info", arg(&plate), "--layout", "files"])["images"], 5);
    let misspelt = wellread(&["info", arg(&plate), "--pattern", "{well}f01p01-{chanel}sk1fk1fl1.tiff"]);
    assert_eq!(misspelt.code, 0, "{}", misspelt.stderr);
    assert!(misspelt.stderr.contains("{chanel}, which is a column of its own; did you mean {channel}?"));
    let quiet = wellread(&["info", "-q", arg(&plate), "--pattern", "{well}f01p01-{chanel}sk1fk1fl1.tiff"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    let own = json(&["info", arg(&plate), "--pattern", "{dish}f01p01-{channel}sk1fk1fl1.tiff"]);
    assert_eq!((&own["columns"], own.get("layout_preset")), (&serde_json::json!(["dish"]), None), "{own}");
    let right = wellread(&["info", arg(&plate), "--pattern", "{well}f01p01-{channel}sk1fk1fl1.tiff"]);
    assert!(right.code == 0 && !right.stderr.contains("did you mean"), "{}", right.stderr);
    let done = wellread(&["info", arg(&plate), "--layout", "harmony", "--pattern", "{channel}"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
}

#[test]
fn bench_and_infer_open_files_as_they_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let plate = plate(dir.path());
    let measured = |name: &str, options: &[&str]| {
        let out = dir.path().join(name);
        let mut args = vec!["bench", "dataset", "--input", arg(&plate), "--out", arg(&out)];
        args.extend(["--repeats", "1", "--samples", "2", "--access", "sequential", "--transform", "none"]);
        args.extend(["--cache", "none", "--time-budget", "20"]);
        args.extend(options);
        let done = wellread(&args);
        assert_eq!(done.code, 0, "{options:?}: {}", done.stderr);
        let summary = std::fs::read_to_string(out.join("summary.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&summary).unwrap()
    };
    // A site without one of its files is an error, unless it is said what to do.
    let refused =
        wellread(&["bench", "dataset", "--input", arg(&plate), "--out", arg(&dir.path().join("no"))]);
    assert!(refused.stderr.contains("has no ch2"), "{}", refused.stderr);
    // It is one error in all commands, with one code: the command is right, and a file is missing.
    let converted = wellread(&["convert", arg(&plate), arg(&dir.path().join("no.parquet"))]);
    let counted = wellread(&["stats", arg(&plate)]);
    assert!(counted.stderr.contains("has no ch2"), "{}", counted.stderr);
    assert_eq!([refused.code, converted.code, counted.code], [1; 3], "{}", converted.stderr);
    assert_eq!(wellread(&["info", arg(&plate)]).code, 0);
    let out = dir.path().join("inferred");
    let candle = ["--framework", "candle", "--model", "resnet50", "--output-dir", arg(&out)];
    let inferred = wellread(&[&["infer", "--data-source", arg(&plate)][..], &candle].concat());
    assert!(inferred.code == 1 && inferred.stderr.contains("has no ch2"), "{}", inferred.stderr);
    let text = measured("zero", &["--missing", "zero", "--formats", "tiff"]).to_string();
    assert!(text.contains("\"missing\":\"zero\"") && text.contains("3 images"), "{text}");
    // Copies of single files have the names of a plate, and are an image each all the same.
    let text = measured("files", &["--layout", "files", "--formats", "tiff"]).to_string();
    assert!(text.contains("5 images"), "{text}");
    let text = measured("skip", &["--missing", "skip", "--in-place"]).to_string();
    assert!(text.contains("2 images"), "{text}");
    for command in [&["bench", "dataset"][..], &["infer", "--framework", "candle"]] {
        let done = wellread(&[command, &["--layout", "files"]].concat());
        assert_eq!(done.code, 2, "{}", done.stderr);
        assert!(done.stderr.contains("say how files make images"), "{}", done.stderr);
    }
}

#[test]
fn what_was_written_of_sites_is_compared_with_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let plate = plate(dir.path());
    let pattern = ["--pattern", "r{row}c{col}f{site}p{z}-ch{channel}*", "--missing", "skip"];
    for name in ["plate.parquet", "plate"] {
        let target = dir.path().join(name);
        let format = if name == "plate" { "tiff" } else { "parquet" };
        json(&[&["convert", arg(&plate), arg(&target), "--format", format], &pattern[..]].concat());
        for [first, other] in [[&target, &plate], [&plate, &target]] {
            let verified = json(&[&["verify", arg(first), "--against", arg(other)], &pattern[..]].concat());
            assert_eq!((&verified["passed"], &verified["images"]), (&true.into(), &2.into()), "{verified}");
        }
    }
}

/// A table that names some of the images in its folder, and a plate of OME-Zarr without one of its fields.
#[test]
fn info_says_which_images_a_set_is_without() {
    let dir = tempfile::tempdir().unwrap();
    let generated = |layout: &str| {
        let out = dir.path().join(layout);
        let size = ["--plate", "1x2", "--fields", "2", "--size", "32x32", "--channels", "2"];
        json(&[&["generate", arg(&out), "--layout", layout], &size[..]].concat());
        out.join("images")
    };
    let folder = generated("load-data");
    let table = folder.join("load_data.csv");
    let whole = std::fs::read_to_string(&table).unwrap();
    assert!(!wellread(&["info", arg(&folder)]).stdout.contains("not in its load_data.csv"));
    let last = whole.trim_end().rfind('\n').unwrap();
    std::fs::write(&table, &whole[..=last]).unwrap();
    let done = wellread(&["info", arg(&folder)]);
    let line = done.stdout.lines().find(|line| line.contains("not in its load_data.csv")).unwrap();
    assert!(line.contains("left out") && line.contains("2 images of the folder are not in"), "{line}");
    assert!(line.matches(".tiff").count() == 2, "{line}");
    assert!(
        done.stderr.contains("note: ") && done.stderr.contains("(--layout files reads"),
        "{}",
        done.stderr
    );
    let info = json(&["info", arg(&folder)]);
    assert_eq!((&info["images"], &info["sites"]["unnamed"]), (&3.into(), &2.into()), "{info}");
    assert_eq!(info["sites"]["unnamed_first"].as_array().unwrap().len(), 2, "{info}");
    // A table of another machine is not used, which is said once.
    std::fs::write(&table, "FileName_OrigDNA,PathName_OrigDNA\na.tif,D:\\x\\img\n").unwrap();
    for command in [&["info", arg(&folder)][..], &["stats", arg(&folder)]] {
        let stderr = wellread(command).stderr;
        let said = r"load_data.csv that was not used, since not all of its files lie in the folder. Its first is D:\x\img\a.tif";
        assert_eq!(stderr.matches(said).count(), 1, "{stderr}");
        assert!(
            stderr.contains("(say where they lie: --path-map FROM=TO, or give the table itself)"),
            "{stderr}"
        );
    }

    let folder = generated("hcs-zarr");
    assert!(json(&["info", arg(&folder)])["lacks"].is_null());
    let gone = wellread_store::open(&folder, &wellread_store::OpenOptions::default()).unwrap();
    let gone = gone.row_hints(1).unwrap().file().unwrap();
    std::fs::remove_dir_all(&gone).unwrap();
    let info = json(&["info", arg(&folder)]);
    let said = info["lacks"][0].as_str().unwrap();
    assert!(
        said.contains("1 field of 4 is not there: ") && said.ends_with(" (--missing skip|zero)"),
        "{said}"
    );
    assert_eq!(info["images"], 4);
    let shown = wellread(&["info", arg(&folder)]).stdout;
    assert!(shown.contains(&format!("missing         {said}")), "{shown}");
    let skipped = json(&["info", arg(&folder), "--missing", "skip"]);
    assert_eq!(skipped["images"], 3);
    assert!(skipped["lacks"][0].as_str().unwrap().ends_with("(left out)"), "{skipped}");
    // A row that is called as its folder is named once.
    let said = joined(&wellread(&["verify", arg(&folder)]).stderr);
    let (_, problem) = said.split_once("row 1: ").unwrap();
    let (name, _) = problem.split_once(": ").unwrap();
    assert!(problem.starts_with(&format!("{name}: the field is not there")), "{said}");
    // Others say it once, beside what they answer.
    let target = dir.path().join("whole.parquet");
    for command in
        [&["convert", arg(&folder), arg(&target)][..], &["verify", arg(&folder)], &["stats", arg(&folder)]]
    {
        let done = wellread(&[command, &["--missing", "skip"]].concat());
        assert_eq!(done.stderr.matches("1 field of 4 is not there: ").count(), 1, "{}", done.stderr);
    }
    assert!(!wellread(&["info", arg(&folder)]).stderr.contains("is not there"));
    let verified = json(&["verify", arg(&folder), "--missing", "skip"]);
    assert_eq!((&verified["images"], &verified["images_left_out"]), (&3.into(), &1.into()), "{verified}");
}

/// The text of a program, on one line.
pub fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn stats_say_that_zeros_are_part_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let plate = plate(dir.path());
    let sentence = "1 of 3 images lacks files, and zeros for its channels are part of the means and deviations (--missing skip leaves them out)";
    for more in [&[][..], &["--by", "Metadata_Plate"], &["--json"]] {
        let done = wellread(&[&["stats", arg(&plate), "--missing", "zero"][..], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(joined(&done.stderr).contains(sentence), "{more:?}: {}", done.stderr);
    }
    let done = wellread(&["stats", arg(&plate), "--missing", "skip"]);
    assert!(done.code == 0 && !done.stderr.contains("zeros"), "{}", done.stderr);
    // Left out as an image that cannot be read, so no zeros are counted.
    for more in [&[][..], &["--by", "Metadata_Plate"]] {
        let done = wellread(&[&["stats", arg(&plate), "--on-error", "skip"][..], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(done.stderr.contains("left out: row 1: "), "{}", done.stderr);
        assert!(!done.stderr.contains("zeros"), "{more:?}: {}", done.stderr);
    }
}

#[test]
fn convert_and_embed_say_that_sets_have_other_channels() {
    let dir = tempfile::tempdir().unwrap();
    let files = plate(dir.path());
    let sets = dir.path().join("sets");
    std::fs::create_dir(&sets).unwrap();
    // The same files, whose channels the patterns call otherwise.
    for (name, pattern) in
        [("a", "{well}f01p01-{channel}sk1fk1fl1.tiff"), ("b", "{well}f01p01-c{channel}sk1fk1fl1.tiff")]
    {
        let target = sets.join(format!("{name}.parquet"));
        json(&["convert", arg(&files), arg(&target), "--pattern", pattern, "--missing", "skip"]);
    }
    let both = dir.path().join("both.parquet");
    let done = wellread(&["convert", arg(&sets), arg(&both)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = joined(&done.stderr);
    assert!(said.contains(r#"channels are ["ch1", "ch2"] in a, and ["h1", "h2"] in b"#), "{said}");
    // They are one set now, whose own images have other channels.
    let again = dir.path().join("again.parquet");
    let two_sets = [r#"["ch1", "ch2"] in "#, r#"["h1", "h2"] in "#];
    for command in
        [&["convert", arg(&both), arg(&again)][..], &["stats", arg(&both)], &["stats", arg(&both), "--json"]]
    {
        let done = wellread(command);
        let said = joined(&done.stderr);
        assert!(done.code == 0 && two_sets.iter().all(|one| said.contains(one)), "{command:?}: {said}");
    }
    let info = json(&["info", arg(&both)]);
    assert_eq!((&info["channels_reordered"], &info["channels_unlike"]), (&0.into(), &2.into()), "{info}");
    assert_eq!(info["channels_elsewhere"][0]["channels"], serde_json::json!(["h1", "h2"]));
    let text = wellread(&["info", arg(&both)]).stdout;
    assert!(
        text.contains("2 images with channels of other names (") && text.contains(" has h1, h2; "),
        "{text}"
    );
    let (out, models) = (dir.path().join("features.parquet"), dir.path().join("models"));
    let small = ["--model", "resnet50", "--resize", "32x32", "--threads", "1", "--channels", "0,1,1"];
    let embed = ["embed", arg(&sets), "--out", arg(&out), "--model-dir", arg(&models)];
    let done = wellread(&[&embed[..], &small].concat());
    assert!(
        done.code == 0 && joined(&done.stderr).contains("in b: taken by number they are mixed"),
        "{}",
        done.stderr
    );
    std::fs::copy(sets.join("a.parquet"), sets.join("b.parquet")).unwrap();
    let done = wellread(&["convert", arg(&sets), arg(&both), "--overwrite"]);
    assert!(done.code == 0 && !done.stderr.contains("channels are"), "{}", done.stderr);
}

#[test]
fn info_names_every_codec_of_the_files_of_a_site() {
    let dir = tempfile::tempdir().unwrap();
    let plate = dir.path().join("P1/Images");
    std::fs::create_dir_all(&plate).unwrap();
    for (channel, codec) in [(1, "none"), (2, "lzw"), (3, "none")] {
        let set = dir.path().join(format!("set{channel}"));
        let size = ["--images", "1", "--size", "16x16", "--formats", "tiff", "--compression", codec];
        json(&[&["generate", arg(&set)], &size[..]].concat());
        let mut files = std::fs::read_dir(set.join("tiff")).unwrap().map(|entry| entry.unwrap().path());
        let is_image = |file: &PathBuf| file.extension().is_some_and(|e| e == "tiff" || e == "tif");
        let image = files.find(is_image).unwrap();
        std::fs::copy(image, plate.join(format!("r01c01f01p01-ch{channel}sk1fk1fl1.tiff"))).unwrap();
    }
    let info = json(&["info", arg(&plate)]);
    assert_eq!((&info["images"], &info["files"]), (&1.into(), &3.into()));
    let codecs = info["codecs"].as_array().unwrap();
    let files: Vec<_> = codecs.iter().map(|one| one["files"].as_u64().unwrap()).collect();
    assert_eq!((info["codec"].as_str(), files), (Some("none"), vec![2, 1]));
    let packed = codecs[1]["codec"].as_str().unwrap();
    assert!(packed.starts_with("lzw"), "{info}");
    let said = wellread(&["info", arg(&plate)]).stdout;
    assert!(said.contains(&format!("none (2 files), {packed} (1 file)\n")), "{said}");
}

/// A site is its files: those that are not its first count as well.
#[test]
fn info_refuses_a_site_with_a_file_that_is_no_image() {
    let dir = tempfile::tempdir().unwrap();
    let plate = plate(dir.path());
    let file = "r01c03f01p01-ch2sk1fk1fl1.tiff";
    std::fs::write(plate.join(file), "no TIFF at all").unwrap();
    for path in [&plate, &dir.path().join("P1")] {
        let done = wellread(&["info", arg(path)]);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{}", done.stderr);
        let said = format!("{}: row 2: is no TIFF", plate.join(file).display());
        assert!(done.stderr.contains(&said), "{}", done.stderr);
    }
    std::fs::remove_file(plate.join(file)).unwrap();
    assert_eq!(json(&["info", arg(&plate)])["sites"]["incomplete"], 2);
}

/// Rows may spell a path in other ways. A table in the working folder, which is given by its name alone, tells `./a` from `a`: elsewhere
/// paths begin with a folder.
#[test]
fn rows_that_spell_the_same_files_otherwise_are_doubled() {
    let dir = tempfile::tempdir().unwrap();
    let folder = plate(dir.path());
    let file = |channel: usize| format!("r01c01f01p01-ch{channel}sk1fk1fl1.tiff");
    let header = "FileName_OrigDNA,PathName_OrigDNA,FileName_OrigER,PathName_OrigER,Metadata_Well";
    let row = |place: &str, well: &str| format!("{},{place},{},{place},{well}", file(1), file(2));
    let table = folder.parent().unwrap().join("load_data.csv");
    let given = |command: &[&str]| wellread_in(table.parent().unwrap(), command);
    for other in ["./Images", "Images/", "Images/.", ".//Images", r".\Images"] {
        std::fs::write(&table, format!("{header}\n{}\n{}\n", row("Images", "A01"), row(other, "A02")))
            .unwrap();
        for path in ["load_data.csv", "./load_data.csv", arg(&table)] {
            let done = given(&["info", path]);
            assert_ne!(done.code, 0, "{other}, {path}: {}", done.stdout);
            assert!(done.stderr.contains("rows 0 and 1 name the same files"), "{other}: {}", done.stderr);
        }
    }
    // One row is an image, however it spells its files.
    std::fs::write(&table, format!("{header}\n{}\n", row("./Images", "A01"))).unwrap();
    let done = given(&["--json", "info", "load_data.csv"]);
    let info: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&info["images"], &info["sites"]["channels"]), (&1.into(), &serde_json::json!(["DNA", "ER"])));
}
