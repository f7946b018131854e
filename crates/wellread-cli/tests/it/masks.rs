//! Images and their masks in one folder: refused, unless both are wanted.

use crate::support::{arg, generate, json, wellread};
use std::fs;

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
        // The error names the files of both rows.
        let [first, other] =
            ["images", "masks"].map(|name| format!("{}", both.join(name).join(name).display()));
        let (start, end) = done.stderr.split_once(": row 2: the image is uint8, but row 0 (").unwrap();
        assert!(start.contains(&other) && start.ends_with("000000.ome.tiff"), "{}", done.stderr);
        assert!(end.starts_with(&first) && end.contains("000000.ome.tiff) is uint16"), "{}", done.stderr);
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
    let doctor = wellread(&["doctor", "--data", arg(&set), "--time-budget", "1"]);
    assert!(doctor.stderr.contains("images and masks are two sets"), "{}", doctor.stderr);
    // Features of masks may be wanted, but nobody should get them unknowingly.
    let (table, models) = (dir.path().join("features.parquet"), dir.path().join("models"));
    let embed =
        ["embed", arg(&set), "--model", "resnet50", "--out", arg(&table), "--model-dir", arg(&models)];
    let said = wellread(&embed).stderr;
    assert!(said.contains("is a mask of") && said.contains("gets features like an image"), "{said}");
    let infer = wellread(&[
        "infer",
        "--framework",
        "candle",
        "--model",
        "resnet50",
        "--iterations",
        "1",
        "--data-source",
        arg(&set),
        "--output-dir",
        arg(dir.path()),
        "--model-dir",
        arg(dir.path()),
    ]);
    for done in [&refused, &doctor, &wellread(&["stats", arg(&set)]), &infer] {
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
