//! Conversions that go on with an interrupted one: its leftovers, complete sets, sets of another source.

use crate::support::{Breakable, arg, files_below, generate, has_format, image_names, json, wellread};
use serde_json::Value;

/// An interrupted run's images are compared with the source, also without `--no-verify`'s check of all: meanwhile its
/// files may have been replaced.
#[test]
fn a_source_that_has_changed_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 12, &["--formats", "tiff"]);
    let replaced = dir.path().join("replaced");
    generate(&replaced, 12, &["--formats", "tiff", "--seed", "7"]);
    let source = set.join("tiff");
    let mut files: Vec<_> = std::fs::read_dir(&source).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let other = std::fs::read(replaced.join("tiff").join(files[0].file_name().unwrap())).unwrap();
    let whole = std::fs::read(&files[9]).unwrap();
    // The header of one image is wrong for a while; no file changes its size.
    let mut broken = whole.clone();
    broken[..8].fill(b'x');
    for (format, more) in [("tiff", &["--no-verify"][..]), ("tiff", &[]), ("lance", &["--no-verify"])] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("{format}-{}", more.len()));
        let args =
            ["convert", arg(&source), arg(&target), "--format", format, "--read-as", "tiff", "--resume"];
        let args = [&args[..], more].concat();
        std::fs::write(&files[9], &broken).unwrap();
        assert_eq!(wellread(&args).code, 1);
        std::fs::write(&files[9], &whole).unwrap();
        let first = std::fs::read(&files[0]).unwrap();
        assert_eq!(other.len(), first.len(), "not compressed");
        std::fs::write(&files[0], &other).unwrap();
        let refused = wellread(&args);
        assert_eq!(refused.code, 1, "{format} {more:?}: {}", refused.stderr);
        for part in ["row 0", "the source has changed since"] {
            assert!(refused.stderr.contains(part), "{format} {more:?}: {}", refused.stderr);
        }
        assert!(!target.exists());
        let done = json(&args);
        assert_eq!(done["images_resumed"], 0, "{format} {more:?}");
        let verified = json(&["verify", arg(&target), "--against", arg(&source)]);
        assert_eq!(verified["passed"], true, "{format} {more:?}");
        std::fs::write(&files[0], &first).unwrap();
    }
}

/// A link to nowhere is an image that cannot be read: it is left out, whether the run may be gone on with or not.
#[cfg(unix)]
#[test]
fn a_link_to_nowhere_is_left_out_of_a_run_that_may_be_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    generate(&dir.path().join("set"), 3, &["--formats", "tiff"]);
    let source = dir.path().join("set/tiff");
    std::os::unix::fs::symlink("nowhere", source.join("zz.tif")).unwrap();
    for format in ["tiff", "ome-zarr", "lance", "duckdb"] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("target-{format}"));
        let args = ["convert", arg(&source), arg(&target), "--format", format, "--resume"];
        let refused = wellread(&args);
        assert!(refused.code == 1 && refused.stderr.contains("zz.tif"), "{format}: {}", refused.stderr);
        let args = [&args[..], &["--on-error", "skip"]].concat();
        let done = json(&args);
        assert_eq!((&done["images"], &done["images_skipped"]), (&3.into(), &1.into()), "{format}");
        assert_eq!((&done["skipped"][0]["row"], &done["verified"]), (&3.into(), &true.into()), "{format}");
        assert_eq!(json(&["info", arg(&target)])["images"], 3, "{format}");
    }
}

fn first_file(folder: &std::path::Path) -> std::path::PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path());
    files.find(|p| p.extension().is_some()).unwrap()
}

/// A conversion that failed half way goes on where it was, with the images that are complete left alone.
#[test]
fn an_interrupted_conversion_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let Breakable { source, files, whole, broken } = Breakable::in_folder(dir.path());
    let set = dir.path().join("set");
    for (format, target) in
        [("tiff", "a"), ("ome-zarr", "b"), ("image-folder", "c"), ("lance", "d"), ("duckdb", "e")]
    {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(target);
        let args = ["convert", arg(&source), arg(&target), "--format", format, "--resume", "--jobs", "2"];
        std::fs::write(&files[7], &broken).unwrap();
        let failed = wellread(&[&args[..], &["--read-as", "tiff"]].concat());
        assert_eq!(failed.code, 1, "{}", failed.stderr);
        assert!(!target.exists());
        let left =
            dir.path().join(format!(".wellread-resume-{}", target.file_name().unwrap().to_str().unwrap()));
        // A file of a complete image, for tables one of several.
        let first = first_file(&if format == "lance" { left.join("data") } else { left.clone() });
        let before = std::fs::metadata(&first).unwrap().modified().unwrap();
        // Other options would make another set, and so would other images.
        for more in [["--tune", "size"], ["--on-error", "skip"]] {
            let other = wellread(&[&args[..], &["--read-as", "tiff"], &more].concat());
            assert!(other.code == 1 && other.stderr.contains("other options"), "{}", other.stderr);
        }
        std::fs::write(&files[7], &whole).unwrap();
        let done = json(&[&args[..], &["--read-as", "tiff"]].concat());
        assert_eq!(done["images_resumed"], 7, "{format}");
        assert_eq!(done["bytes_of_pixels"], json(&["info", arg(&target)])["bytes_of_pixels"], "{format}");
        assert!(!left.exists());
        if format != "duckdb" {
            let same = target.join(first.strip_prefix(&left).unwrap());
            assert_eq!(std::fs::metadata(same).unwrap().modified().unwrap(), before);
        }
        let verified = json(&["verify", arg(&target), "--against", arg(&set.join("expected.json"))]);
        assert_eq!(verified["passed"], true, "{format}");
    }
    for (format, why) in [
        ("parquet", "index at its end"),
        ("ome-arrow-dataset", "index at its end"),
        ("vortex", "layout at its end"),
        ("parquet-duckdb", "one statement"),
    ] {
        if has_format(format) {
            let refused = wellread(&["convert", arg(&source), "x", "--format", format, "--resume"]);
            assert_eq!(refused.code, 2);
            assert!(refused.stderr.contains(why) && refused.stderr.contains("tiff"), "{}", refused.stderr);
        }
    }
}

/// A finished file that was damaged after an interrupted run is not taken for another source. It is named, and written again by the
/// same run.
#[test]
fn what_was_damaged_since_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let Breakable { source, files, whole, broken } = Breakable::in_folder(dir.path());
    let set = dir.path().join("set");
    for (format, ending) in [("tiff", "tiff"), ("ome-zarr", "zarr"), ("image-folder", "png")] {
        let target = dir.path().join(format!("to-{format}"));
        let args =
            ["convert", arg(&source), arg(&target), "--format", format, "--resume", "--read-as", "tiff"];
        std::fs::write(&files[7], &broken).unwrap();
        assert_eq!(wellread(&args).code, 1);
        std::fs::write(&files[7], &whole).unwrap();
        let left = dir.path().join(format!(".wellread-resume-to-{format}"));
        let mut images: Vec<_> = std::fs::read_dir(&left).unwrap().map(|e| e.unwrap().path()).collect();
        images.retain(|path| path.extension().is_some_and(|e| e == ending || e == "tif"));
        images.sort();
        // The pixels of row 3: the largest file of an image that is a folder.
        let mut of_image = if images[3].is_dir() { files_below(&images[3]) } else { vec![] };
        of_image.sort_by_key(|(_, content)| content.len());
        let damaged = of_image.pop().map_or_else(|| images[3].clone(), |(file, _)| file);
        let content = std::fs::read(&damaged).unwrap();
        std::fs::write(&damaged, &content[..content.len() / 2]).unwrap();
        let done = wellread(&[&args[..], &["--json"]].concat());
        assert_eq!(done.code, 0, "{format}: {}", done.stderr);
        let name = images[3].file_name().unwrap().to_str().unwrap();
        for words in
            ["the part that an interrupted run left is damaged", name, "row 3", "3 images before it are kept"]
        {
            assert!(done.stderr.contains(words), "{format}: {words}: {}", done.stderr);
        }
        assert!(!done.stderr.contains("source has changed"), "{format}: {}", done.stderr);
        let document: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(document["images_resumed"], 3, "{format}");
        assert!(!left.exists());
        let verified = json(&["verify", arg(&target), "--against", arg(&set.join("expected.json"))]);
        assert_eq!(verified["passed"], true, "{format}");
    }
}

/// A complete set needs no going on: the same command says so and is done; another set at the target is kept.
#[test]
fn resuming_what_is_complete_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (set, other) = (dir.path().join("set"), dir.path().join("other"));
    generate(&set, 4, &["--formats", "tiff"]);
    generate(&other, 5, &["--formats", "tiff"]);
    for format in ["tiff", "ome-zarr", "image-folder", "lance", "duckdb"] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("target-{format}"));
        let resume = |source: &std::path::Path| {
            wellread(&["convert", arg(source), arg(&target), "--format", format, "--resume"])
        };
        assert_eq!(resume(&set.join("tiff")).code, 0);
        let before = json(&["checksum", arg(&target), "--read-as", format]);
        let again = resume(&set.join("tiff"));
        assert_eq!(again.code, 0, "{format}: {}", again.stderr);
        assert!(
            again.stdout.contains("is complete") && again.stdout.contains("4 images"),
            "{}",
            again.stdout
        );
        assert!(!again.stdout.contains("does not show"), "{}", again.stdout);
        let source = set.join("tiff");
        let args = ["convert", arg(&source), arg(&target), "--format", format, "--resume"];
        for (more, verified, pixels) in [
            (&["--no-verify"][..], false, "pixels are compared by `wellread verify --against`"),
            (&[], true, "their pixels are the same"),
        ] {
            let args = [&args[..], more].concat();
            let document = json(&args);
            assert_eq!((&document["images"], &document["images_resumed"]), (&4.into(), &4.into()));
            assert_eq!(document["verified"], verified, "{format} {more:?}");
            assert_eq!(document["verify_seconds"].is_number(), verified, "{format} {more:?}");
            let said = wellread(&args).stdout;
            assert!(said.contains(pixels), "{format} {more:?}: {said}");
        }
        let refused = resume(&other.join("tiff"));
        let how = "already exists, with other images than the source: it has 4 images, and the source 5; 1 image of the source is not \
                   in it: ";
        assert!(refused.code == 1 && refused.stderr.contains(how), "{}", refused.stderr);
        assert!(
            refused
                .stderr
                .contains("nothing was written (hint: --overwrite writes it anew, or choose another name)"),
            "{}",
            refused.stderr
        );
        // A part that waits to be gone on with is of something that is not complete.
        let left = dir.path().join(format!(".wellread-resume-target-{format}"));
        std::fs::create_dir(&left).unwrap();
        assert_eq!(resume(&set.join("tiff")).code, 1);
        std::fs::remove_dir_all(&left).unwrap();
        assert_eq!(json(&["checksum", arg(&target), "--read-as", format]), before);
    }
}

/// A complete target with other pixels was called complete: names, shapes and types were compared alone.
#[test]
fn resuming_what_is_complete_tells_other_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let (set, other) = (dir.path().join("set"), dir.path().join("other"));
    generate(&set, 4, &["--formats", "tiff"]);
    generate(&other, 4, &["--formats", "tiff", "--seed", "7"]);
    let (source, other) = (set.join("tiff"), other.join("tiff"));
    // The last image is another.
    let changed = dir.path().join("changed");
    std::fs::create_dir(&changed).unwrap();
    let mut copied: Vec<_> = files_below(&source).into_iter().map(|(file, _)| file).collect();
    copied.retain(|file| file.extension().is_some_and(|ending| ending == "tif" || ending == "tiff"));
    assert_eq!(copied.len(), 4);
    for (row, file) in copied.iter().enumerate() {
        let name = file.file_name().unwrap();
        let from = if row == 3 { other.join(name) } else { file.clone() };
        std::fs::copy(from, changed.join(name)).unwrap();
    }
    for format in ["tiff", "ome-zarr", "image-folder", "lance", "duckdb"] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(format!("target-{format}"));
        let resume = |source: &std::path::Path, more: &[&str]| {
            let args = ["convert", arg(source), arg(&target), "--format", format, "--resume"];
            wellread(&[&args[..], more].concat())
        };
        assert_eq!(resume(&source, &[]).code, 0, "{format}");
        let before = json(&["checksum", arg(&target), "--read-as", format]);
        for (from, row) in [(&other, 0), (&changed, 3)] {
            let refused = resume(from, &[]);
            assert_eq!(refused.code, 1, "{format}: {}", refused.stdout);
            let row = format!("row {row}: has other pixels than the source's image");
            for part in [
                "is complete, but differs from the result of this command",
                row.as_str(),
                "--overwrite writes it anew, or choose another name",
            ] {
                assert!(refused.stderr.contains(part), "{format}: {part}: {}", refused.stderr);
            }
            assert_eq!(resume(from, &["--no-verify"]).code, 0, "{format}");
        }
        assert_eq!(json(&["checksum", arg(&target), "--read-as", format]), before);
    }
    // A bit of the target itself, in the pixels: they are most of a file.
    let target = dir.path().join("flipped");
    let args =
        ["convert", arg(&source), arg(&target), "--format", "tiff", "--compression", "none", "--resume"];
    assert_eq!(wellread(&args).code, 0);
    let (file, content) = &files_below(&target)[1];
    let mut flipped = content.clone();
    flipped[content.len() / 2] ^= 1;
    std::fs::write(file, flipped).unwrap();
    let refused = wellread(&args);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.stderr.contains(&format!("{name}: row 1: ")), "{}", refused.stderr);
    std::fs::write(file, content).unwrap();
    assert_eq!(wellread(&args).code, 0);
}

/// Columns that a complete target has and the source lacks are told, also of formats that keep them beside several images.
#[test]
fn resuming_what_is_complete_tells_columns_that_are_none_now() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let (source, plan) = (set.join("tiff"), dir.path().join("plan.csv"));
    let names = image_names(&source);
    let lines = names.iter().zip(["A01,7", "B02,3"]).map(|(name, values)| format!("{name}.tiff,{values}\n"));
    std::fs::write(&plan, format!("file,well,dose\n{}", lines.collect::<String>())).unwrap();
    for target in ["folder", "series.zarr"] {
        let target = dir.path().join(target);
        let resume = |more: &[&str]| {
            let args = ["convert", arg(&source), arg(&target), "--format", "ome-zarr", "--resume"];
            wellread(&[&args[..], more].concat())
        };
        let join = ["--join", arg(&plan), "--on", "file", "--columns"];
        let [both, one] = ["well,dose", "well"].map(|columns| [&join[..], &[columns]].concat());
        let first = resume(&both);
        assert_eq!(first.code, 0, "{}", first.stderr);
        let again = resume(&both);
        assert!(again.code == 0 && again.stdout.contains("is complete"), "{} {}", again.stdout, again.stderr);
        let fewer = resume(&one);
        assert_eq!(fewer.code, 1, "{}", fewer.stdout);
        assert!(
            fewer.stderr.contains("it has a column \"dose\" that the command does not write"),
            "{}",
            fewer.stderr
        );
        assert!(!fewer.stderr.contains("\"well\""), "{}", fewer.stderr);
        let none = resume(&[]);
        assert_eq!(none.code, 1, "{}", none.stdout);
        for column in ["well", "dose"] {
            let said = format!("it has a column {column:?} that the command does not write");
            assert!(none.stderr.contains(&said), "{}", none.stderr);
        }
    }
}

/// The message names a choice that nobody can see in a set, where it is asked for: a level of compression.
#[test]
fn resuming_what_is_complete_says_what_was_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let (source, target) = (set.join("tiff"), dir.path().join("a-zarr"));
    let resume = |level: &str| {
        let args = ["convert", arg(&source), arg(&target), "--format", "ome-zarr", "--resume"];
        wellread(&[&args[..], &["--compression", level]].concat())
    };
    assert_eq!(resume("zstd:3").code, 0);
    let again = resume("zstd:9");
    assert_eq!(again.code, 0, "{}", again.stderr);
    let said = "a finished set does not show the level of --compression zstd:9";
    assert!(again.stdout.contains("is complete") && again.stdout.contains(said), "{}", again.stdout);
}

/// For images of the same names, the message names their difference.
#[test]
fn resuming_onto_images_of_another_shape_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    generate(&one, 3, &["--formats", "tiff", "--channels", "1"]);
    generate(&two, 3, &["--formats", "tiff", "--channels", "2"]);
    let target = dir.path().join("target");
    let resume = |source: &std::path::Path| {
        wellread(&["convert", arg(source), arg(&target), "--format", "ome-zarr", "--resume"])
    };
    assert_eq!(resume(&one.join("tiff")).code, 0);
    let refused = resume(&two.join("tiff"));
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    for part in [
        "other images than the source: 3 images are of another shape or pixel type: ",
        " is 1x1x1x40x56 uint16 in it, and 1x2x1x40x56 uint16 in the source (TCZYX); nothing was written",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(resume(&one.join("tiff")).code, 0, "what was there is kept");
}
