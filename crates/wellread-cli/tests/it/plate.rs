//! Generated plates, on the command line.

use crate::support::{arg, json, wellread};
use std::path::Path;

#[test]
fn a_plate_is_read_as_a_microscope_s() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("screen");
    let options = ["--plate", "2x3", "--fields", "2", "--channels", "3", "--size", "64x64"];
    let mut args = vec!["generate", arg(&out)];
    args.extend(options);
    args.extend(["--cells-table", "--masks"]);
    let written = json(&args);
    assert_eq!(
        (&written["plate"], &written["wells"], &written["sites"]),
        (&"screen".into(), &6.into(), &12.into())
    );
    let images = written["written"]["images"].as_str().unwrap();
    let info = json(&["info", images]);
    assert_eq!((&info["images"], &info["plates"], &info["wells"]), (&12.into(), &1.into(), &6.into()));
    assert_eq!(info["sites"]["layout"], "harmony");
    assert_eq!(info["shape_tczyx"], serde_json::json!([1, 3, 1, 64, 64]));
    let table = written["written"]["cells"][0].as_str().unwrap();
    let masks = written["written"]["masks"].as_str().unwrap();
    let cells = json(&[
        "info",
        images,
        "--cells",
        table,
        "--cells-size",
        "32x32",
        "--cells-mask",
        "zero",
        "--cells-masks",
        masks,
    ]);
    assert_eq!(cells["images"], written["written"]["nuclei"]);
    let text = wellread(&[
        "generate",
        arg(&dir.path().join("other")),
        "--plate",
        "6",
        "--fields",
        "1",
        "--channels",
        "2",
        "--size",
        "32x32",
    ]);
    assert!(text.code == 0 && text.stdout.contains("(6 wells, 6 sites)"), "{} {}", text.stdout, text.stderr);
}

/// TIFF has no place for columns, whatever the images come from: from TIFF to TIFF nothing was said.
#[test]
fn columns_that_tiff_has_no_place_for_are_named_from_tiff_too() {
    let dir = tempfile::tempdir().unwrap();
    let (out, target) = (dir.path().join("screen"), dir.path().join("converted"));
    json(&["generate", arg(&out), "--plate", "1x2", "--fields", "1", "--channels", "1", "--size", "16x16"]);
    let images = out.join("images");
    let columns = json(&["info", arg(&images)])["columns"].as_array().unwrap().clone();
    assert!(columns.contains(&"Metadata_Well".into()), "{columns:?}");
    let done = wellread(&["--json", "convert", arg(&images), arg(&target), "--format", "tiff"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let note =
        format!("tiff has no place for columns beside the images and leaves out {} columns (", columns.len());
    assert_eq!(said.matches(&note).count(), 1, "{said}");
    let document: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(document["columns_left_out"].as_array(), Some(&columns));
    assert_eq!(document["feature_columns"], 0);
}

#[test]
fn folders_of_all_layouts_open_as_plates() {
    let dir = tempfile::tempdir().unwrap();
    let layouts = [
        ("hcs-zarr", "2"),
        ("load-data", "2"),
        ("cellprofiler", "2"),
        ("imagexpress", "1"),
        ("harmony", "1"),
    ];
    for (layout, channels) in layouts {
        let out = dir.path().join(layout);
        let size = ["--plate", "1x2", "--fields", "2", "--size", "32x32"];
        let mut args = vec!["generate", arg(&out), "--layout", layout, "--channels", channels];
        args.extend(size);
        json(&args);
        let info = json(&["info", arg(&out.join("images"))]);
        assert_eq!((&info["images"], &info["wells"]), (&4.into(), &2.into()), "{layout}: {info}");
        let preset = match layout {
            "hcs-zarr" => None,
            "load-data" => Some("cellprofiler"),
            other => Some(other),
        };
        assert_eq!(info["layout_preset"].as_str(), preset, "{layout}: {info}");
    }
}

#[test]
fn wrong_plates_say_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("plate");
    let refused = |out: &Path, options: &[&str], code: i32, why: &str| {
        let mut args = vec!["generate", arg(out)];
        args.extend(options);
        let done = wellread(&args);
        assert_eq!(done.code, code, "{options:?}: {}", done.stderr);
        assert!(done.stderr.contains(why), "{options:?}: {}", done.stderr);
    };
    refused(&out, &["--plate", "100"], 2, "is no plate");
    refused(&out, &["--plate", "6", "--layout", "incell"], 2, "is no layout of a generated plate");
    refused(&out, &["--plate", "6", "--images", "5"], 2, "cannot be used with");
    for option in [&["--fields", "5"][..], &["--layout", "harmony"], &["--cells-table"]] {
        refused(&out, option, 2, "--plate");
        refused(&out, &[option, &["--images", "3"]].concat(), 2, "--plate");
    }
    let shard = ["--plate", "6", "--shard", "1,1,1,16,16"];
    refused(&out, &shard, 2, "--shard belongs to OME-Zarr");
    refused(dir.path(), &["--plate", "6", "--size", "16x16"], 1, "already exists");
    refused(&out, &["--plate", "6", "--overwrite"], 2, "a plate is written into a new folder; remove ");
    refused(
        &out,
        &["--plate", "6", "--layout", "imagexpress", "--channels", "9", "--size", "16x16"],
        1,
        "names for 1 to 8",
    );
    assert!(!out.exists());
}
