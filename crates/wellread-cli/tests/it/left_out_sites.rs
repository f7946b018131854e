//! Sites, files and cells that opening leaves out as it was asked to, and sites that a set has twice.

use crate::sites::{joined, plate};
use crate::support::{arg, image_names, json, wellread};
use std::path::Path;

/// The note about the second well, which lacks a file.
const SITES: &str = "1 of 3 sites left out: r01c02f01 (its files are missing; --missing skip)";

/// A short `infer` with images of the plate.
fn infer<'a>(plate: &'a Path, raw: &'a Path, models: &'a Path) -> Vec<&'a str> {
    let once = ["--batch-sizes", "1", "--iterations", "1", "--warmup", "0", "--threads", "1"];
    let small = ["--framework", "candle", "--model", "resnet50", "--input-shape", "3,32,32"];
    let files = ["infer", "--data", arg(plate), "--out", arg(raw), "--model-dir", arg(models)];
    [&files[..], &small, &once, &["--channels", "0,1,1"]].concat()
}

#[test]
fn every_command_names_the_sites_that_it_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let plate = plate(dir.path());
    let (target, picture, results) =
        (dir.path().join("p.parquet"), dir.path().join("p.png"), dir.path().join("results"));
    let bench = ["bench", "dataset", "--input", arg(&plate), "--out", arg(&results), "--time-budget", "20"];
    let measured = ["--repeats", "1", "--samples", "2", "--access", "sequential", "--transform", "none"];
    let in_place = ["--cache", "none", "--in-place"];
    let (raw, models) = (dir.path().join("raw"), dir.path().join("models"));
    let commands = [
        vec!["convert", arg(&plate), arg(&target), "--overwrite"],
        vec!["stats", arg(&plate)],
        vec!["verify", arg(&plate)],
        infer(&plate, &raw, &models),
        vec!["checksum", arg(&plate)],
        vec!["view", arg(&plate), "--out", arg(&picture)],
        [&bench[..], &measured, &in_place].concat(),
    ];
    for command in commands {
        let done = wellread(&[&command[..], &["--missing", "skip"]].concat());
        assert_eq!(done.code, 0, "{command:?}: {}", done.stderr);
        assert_eq!(joined(&done.stderr).matches(SITES).count(), 1, "{command:?}: {}", done.stderr);
        let quiet = wellread(&[&["-q"][..], &command[..], &["--missing", "skip"]].concat());
        assert!(quiet.code == 0 && !quiet.stderr.contains("sites left out"), "{command:?}: {}", quiet.stderr);
    }
    // It says so in its answer.
    let info = wellread(&["info", arg(&plate), "--missing", "skip"]);
    assert!(!info.stderr.contains("sites left out") && info.stdout.contains("(left out)"), "{}", info.stderr);
    // Zeros leave nothing out.
    let zeros = wellread(&["verify", arg(&plate), "--missing", "zero"]);
    assert!(!zeros.stderr.contains("sites left out"), "{}", zeros.stderr);
}

#[test]
fn documents_count_the_sites_that_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let plate = plate(dir.path());
    let (target, out, models) =
        (dir.path().join("p.parquet"), dir.path().join("features.parquet"), dir.path().join("models"));
    let embed = ["embed", arg(&plate), "--out", arg(&out), "--model-dir", arg(&models), "--threads", "1"];
    // One number is a square.
    let small = ["--model", "resnet50", "--resize", "32", "--channels", "0,1,1"];
    let commands = [
        vec!["convert", arg(&plate), arg(&target)],
        vec!["stats", arg(&plate)],
        vec!["verify", arg(&plate)],
        [&embed[..], &small].concat(),
    ];
    for command in commands {
        let said = json(&[&command[..], &["--missing", "skip"]].concat());
        assert_eq!(
            (&said["images"], &said["images_left_out"]),
            (&2.into(), &1.into()),
            "{command:?}: {said}"
        );
        assert_eq!((&said["files_left_out"], &said["cells_left_out"]), (&0.into(), &0.into()), "{said}");
    }
    let raw = dir.path().join("raw");
    let measured = json(&[&infer(&plate, &raw, &models)[..], &["--missing", "skip"]].concat());
    let counts = ["images_left_out", "files_left_out", "cells_left_out"].map(|key| measured[key].as_u64());
    assert_eq!(counts, [Some(1), Some(0), Some(0)], "{measured}");
    // The new set is whole.
    assert_eq!(json(&["verify", arg(&target)])["images_left_out"], 0);
    assert!(json(&["stats", arg(&target)])["images_left_out"].is_null());
}

#[test]
fn files_and_cells_that_are_left_out_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let plate = plate(dir.path());
    std::fs::copy(plate.join("r01c01f01p01-ch1sk1fk1fl1.tiff"), plate.join("overlay.tiff")).unwrap();
    let target = dir.path().join("p.parquet");
    let skip = ["--layout", "harmony", "--missing", "skip", "--unmatched", "skip"];
    let convert = [&["convert", arg(&plate), arg(&target), "--overwrite"][..], &skip].concat();
    let done = wellread(&convert);
    let said = joined(&done.stderr);
    let files = "1 file left out: overlay.tiff (its name does not fit harmony; --unmatched skip)";
    assert!(done.code == 0 && said.contains(files) && said.contains(SITES), "{}", done.stderr);
    let whole = json(&convert);
    assert_eq!((&whole["images_left_out"], &whole["files_left_out"]), (&1.into(), &1.into()), "{whole}");
    // The second cell lies outside of its image.
    let table = dir.path().join("cells.csv");
    std::fs::write(&table, "Metadata_Well,x,y\nA01,8,8\nA01,500,8\n").unwrap();
    let cells = ["--cells", arg(&table), "--cells-size", "8", "--cells-unmatched", "skip"];
    let cut = json(&[&convert[..], &cells].concat());
    assert_eq!((&cut["images"], &cut["cells_left_out"]), (&1.into(), &1.into()), "{cut}");
    assert_eq!((&cut["images_left_out"], &cut["files_left_out"]), (&1.into(), &1.into()), "{cut}");
    assert_eq!(json(&["info", arg(&target)])["shape_tczyx"], serde_json::json!([1, 2, 1, 8, 8]));
    // The answer about cells has no sites.
    let info = wellread(&[&["info", arg(&plate)][..], &skip, &cells].concat());
    assert!(info.code == 0 && joined(&info.stderr).contains(SITES), "{}", info.stderr);
}

#[test]
fn sites_that_a_folder_has_twice_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let plate = plate(dir.path());
    let sets = dir.path().join("sets");
    std::fs::create_dir(&sets).unwrap();
    let [one, other] = ["P1", "P2"].map(|name| sets.join(format!("{name}.parquet")));
    json(&["convert", arg(&plate), arg(&one), "--missing", "skip"]);
    assert!(!wellread(&["info", arg(&sets)]).stdout.contains("twice"));
    std::fs::copy(&one, &other).unwrap();
    let names = image_names(&sets);
    let [first, _, second, _] = names.as_slice() else { panic!("{names:?}") };
    assert!(first.starts_with("P1/") && second.starts_with("P2/"), "{names:?}");
    let note = format!("2 sites are there twice, the first as {first} and {second}");
    let info = json(&["info", arg(&sets)]);
    assert!(info["notes"].as_array().unwrap().contains(&note.as_str().into()), "{info}");
    let shown = wellread(&["info", arg(&sets)]).stdout;
    assert!(shown.contains(&note), "{shown}");
    // No column tells the image of a cell, and a column with names does.
    let table = dir.path().join("cells.csv");
    std::fs::write(&table, format!("Metadata_Well,Image,x,y\nA01,{second},8,8\n")).unwrap();
    let cells = ["info", arg(&sets), "--cells", arg(&table), "--cells-size", "8"];
    let refused = joined(&wellread(&cells).stderr);
    assert!(refused.contains("could be of either of two images"), "{refused}");
    let way = "Open one of their folders alone, or name a column of the table that has the images' names (--cells-by)";
    assert!(refused.contains(way) && !refused.contains("name more columns"), "{refused}");
    assert_eq!(json(&[&cells[..], &["--cells-by", "Image"]].concat())["images"], 1);
}
