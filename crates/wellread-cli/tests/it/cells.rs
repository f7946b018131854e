//! Cells on the command line: every command that opens images opens their cells with --cells.

use crate::support::{arg, generate, has_format, json, wellread};
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryArray, Float64Array, ListArray, NullArray, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A set of TIFF files, and a table of four cells of each image.
pub fn cells_of(folder: &Path) -> (PathBuf, PathBuf) {
    let set = folder.join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    let names = json(&["checksum", arg(&tiff)]);
    let mut text = "ImageName,x,y,ObjectNumber,area\n".to_owned();
    for image in names.as_array().unwrap() {
        for cell in 1..=4 {
            let name = image["name"].as_str().unwrap();
            writeln!(text, "{name},{},{},{cell},{}", 10 * cell, 8 * cell, cell * cell).unwrap();
        }
    }
    let table = folder.join("cells.csv");
    std::fs::write(&table, text).unwrap();
    (tiff, table)
}

#[test]
fn commands_take_cells_as_images() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    let cells = ["--cells", arg(&table), "--cells-size", "16x12"];
    let with = |args: &[&str]| json(&[args, &cells[..]].concat());
    let info = with(&["info", arg(&tiff)]);
    assert_eq!((&info["images"], &info["shape_tczyx"][3]), (&12.into(), &16.into()), "{info}");
    assert_eq!(info["shape_tczyx"][4], 12);
    let in_other_words = ["info", arg(&tiff), "--cells", arg(&table), "--cell-size", "16,12"];
    assert_eq!(json(&in_other_words)["shape_tczyx"], info["shape_tczyx"]);
    let columns = info["columns"].as_array().unwrap();
    assert!(columns.iter().any(|name| name == "area"), "{columns:?}");
    // For people they are cells.
    for (command, said) in
        [("info", "\n  cells           12\n"), ("stats", "12 cells of uint16\n"), ("verify", "12 cells (")]
    {
        let done = wellread(&[&[command, arg(&tiff)], &cells[..]].concat());
        assert!(done.stdout.contains(said) && !done.stdout.contains("12 images"), "{}", done.stdout);
    }
    let stats = with(&["stats", arg(&tiff)]);
    assert_eq!((&stats["images"], &stats["channels"][0]["count"]), (&12.into(), &(12 * 16 * 12).into()));
    let sheet = dir.path().join("cells.png");
    let view = with(&["view", arg(&tiff), "--count", "5", "--out", arg(&sheet)]);
    assert_eq!(view["rows"].as_array().unwrap().len(), 5);
    assert!(sheet.is_file());
    // Stored, they are what was cut out, with their columns.
    let sums = with(&["checksum", arg(&tiff)]);
    let targets = [
        ("cells.parquet", "parquet"),
        ("cells", "ome-zarr"),
        ("cells.zarr", "ome-zarr"),
        ("cells.lance", "lance"),
    ];
    for (target, format) in targets.into_iter().filter(|(_, format)| has_format(format)) {
        let target = dir.path().join(target);
        let converted = with(&["convert", arg(&tiff), arg(&target), "--format", format]);
        assert_eq!((&converted["images"], &converted["verified"]), (&12.into(), &true.into()));
        let stored = json(&["checksum", arg(&target)]);
        let names = |sums: &serde_json::Value| -> Vec<(String, String)> {
            let images = sums.as_array().unwrap().iter();
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            images.map(|image| (text(&image["name"]), text(&image["sha256"]))).collect()
        };
        assert_eq!(names(&stored), names(&sums));
        assert!(names(&stored)[0].0.ends_with("/cell-1"), "{stored}");
        let stored = json(&["info", arg(&target)]);
        assert_eq!(stored["format"], format, "{stored}");
        for column in ["x", "y", "ObjectNumber", "area"] {
            let mut names = stored["columns"].as_array().into_iter().flatten();
            assert!(names.any(|name| name == column), "{column}: {stored}");
        }
    }
    // A set that wellread wrote is replaced; with something else in it, it is not.
    let zarr = dir.path().join("cells.zarr");
    with(&["convert", arg(&tiff), arg(&zarr), "--overwrite"]);
    std::fs::write(zarr.join("OME/notes.txt"), "mine").unwrap();
    let all = [&["convert", arg(&tiff), arg(&zarr), "--overwrite"][..], &cells[..]].concat();
    assert_ne!(wellread(&all).code, 0);
    assert!(zarr.join("OME/notes.txt").is_file());
}

#[test]
fn benchmarks_measure_cells_where_they_lie_and_stored() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    for more in [&["--in-place"][..], &["--formats", "parquet,tiff"]] {
        let out = dir.path().join(format!("out{}", more.len()));
        let bench =
            ["bench", "dataloader", "--input", arg(&tiff), "--cells", arg(&table), "--out", arg(&out)];
        let small = ["--cells-size", "12x12", "--repeats", "2", "--batch-sizes", "4", "--workers", "0"];
        let summary = json(&[&bench[..], &small, more, &["--framework", "rust"]].concat());
        assert_eq!(summary["verified"], true, "{more:?}: {summary}");
    }
}

/// Crops that are cut out at random, in block order, or stored: figures of each, one of them recommended, and commands that follow it.
#[test]
fn advice_compares_crops_that_are_cut_out_with_stored_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    let scratch = dir.path().join("scratch");
    let set = ["advise", arg(&tiff), "--cells", arg(&table), "--cells-size", "8x8", "--batch-size", "4"];
    let args = [&set[..], &["--formats", "parquet", "--scratch", arg(&scratch), "--time-budget"]].concat();
    let within = |seconds: &str| json(&[&args[..], &[seconds]].concat());
    let none = within("1e-6");
    assert_eq!(none["crops"], serde_json::Value::Null, "{none}");
    let note = "cells in block order, beside random order and stored crops: not tried within the time";
    assert!(none["notes"].to_string().contains(note), "{none}");
    // More time each try: how much of it is left depends on the machine.
    let mut found = none;
    for seconds in ["5", "10", "20", "40"] {
        found = within(seconds);
        if found["crops"]["tried"].as_array().is_some_and(|tried| tried.len() == 3) {
            break;
        }
    }
    assert_eq!(found["sample"]["of"], 12, "{found}");
    let crops = &found["crops"];
    let tried = crops["tried"].as_array().unwrap();
    let sources: Vec<&str> = tried.iter().map(|way| way["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["random", "block", "stored"], "{crops}");
    assert!(tried.iter().all(|way| way["cells_per_s"]["value"].as_f64().unwrap() > 0.0), "{crops}");
    assert!(tried.iter().all(|way| way["bytes_read_per_used"].as_f64().unwrap() > 0.0), "{crops}");
    let on_disk: Vec<f64> = tried.iter().map(|way| way["bytes_on_disk"].as_f64().unwrap()).collect();
    assert!(on_disk[..2] == [0.0, 0.0] && on_disk[2] > 0.0, "{crops}");
    assert_eq!((&crops["block"], &crops["cache"]), (&8.into(), &"lru:1MiB".into()));
    // Everything else follows the way that is recommended.
    let recommended = crops["recommended"].as_str().unwrap();
    let chosen = &found["recommendation"];
    assert_eq!(chosen["reasons"][0], serde_json::json!([crops["reason"]]), "{found}");
    assert_eq!(chosen["as_it_is"], recommended != "stored", "{found}");
    let commands = found["commands"].to_string();
    let (begins, order, said) = match recommended {
        "random" => ("[\"wellread.DataLoader", "shuffle=True", "random order"),
        "block" => ("[\"wellread.DataLoader", "block=8", "block order"),
        _ => ("[\"wellread convert", "shuffle=True", "stored as parquet"),
    };
    assert!(commands.starts_with(begins) && commands.contains(order), "{commands}");
    assert!(crops["reason"].as_str().unwrap().contains(said), "{crops}");
    assert_eq!(chosen["cache"] == "lru:1MiB", recommended == "block", "{chosen}");
    assert!(std::fs::read_dir(&scratch).unwrap().next().is_none(), "the copies are removed");
}

/// The hint about an image that cannot be read is for this program, and both of its ways work.
#[test]
fn cells_of_an_image_that_cannot_be_read_can_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    let names = json(&["checksum", arg(&tiff)]);
    let broken = tiff.join(format!("{}.ome.tiff", names[1]["name"].as_str().unwrap()));
    assert!(broken.is_file(), "{}", broken.display());
    std::fs::write(&broken, "").unwrap();
    let place = |name: &str| dir.path().join(name);
    let (crops, readable, moved) =
        (place("crops.parquet"), place("readable.parquet"), place("moved.parquet"));
    let cells = ["--cells", arg(&table), "--cells-size", "8x8"];
    let refused = wellread(&[&["convert", arg(&tiff), arg(&crops)], &cells[..]].concat());
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = "leave the image out of the set (move its file away, or first convert the set by `convert --on-error \
                skip`), and its cells by --cells-unmatched skip";
    assert!(said.contains("the file is empty") && said.contains(hint), "{said}");
    assert!(!said.contains("select"), "{said}");
    let skip = [&cells[..], &["--cells-unmatched", "skip"]].concat();
    json(&["convert", arg(&tiff), arg(&readable), "--on-error", "skip"]);
    let converted = json(&[&["convert", arg(&readable), arg(&crops)], &skip[..]].concat());
    assert_eq!(converted["images"], 8);
    std::fs::remove_file(&broken).unwrap();
    let converted = json(&[&["convert", arg(&tiff), arg(&moved)], &skip[..]].concat());
    assert_eq!(converted["images"], 8);
}

#[test]
fn cells_that_cannot_be_cut_out_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    let mut text = std::fs::read_to_string(&table).unwrap();
    text += "nowhere,1,1,1,1\n";
    std::fs::write(&table, text).unwrap();
    let cells = ["info", arg(&tiff), "--cells", arg(&table), "--cells-size", "8x8"];
    let refused = wellread(&cells);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("1 of 13 cells cannot be cut out"), "{}", refused.stderr);
    assert!(refused.stderr.contains("row 12 (ImageName nowhere)"), "{}", refused.stderr);
    // Options are called as this program calls them.
    let hint = "leave them out: --cells-unmatched skip; or check the columns that tell the image (--cells-by) and the position \
                (--cells-x, --cells-y)";
    assert!(refused.stderr.contains(hint), "{}", refused.stderr);
    let skipped = wellread(&[&cells[..], &["--cells-unmatched", "skip", "--json"]].concat());
    assert_eq!(skipped.code, 0, "{}", skipped.stderr);
    assert!(skipped.stderr.contains("note: 1 cell of no image of this set"), "{}", skipped.stderr);
    let lone = wellread(&["info", arg(&tiff), "--cells-size", "8x8"]);
    assert_eq!(lone.code, 2);
    assert!(lone.stderr.contains("--cells <TABLE>"), "{}", lone.stderr);
    let wrong = wellread(&["info", arg(&tiff), "--cells", arg(&table), "--cells-edge", "moved"]);
    assert!(wrong.stderr.contains("is not one of shift, pad, drop"), "{}", wrong.stderr);
    let unused = wellread(&["bench", "dataloader", "--cells", arg(&table)]);
    assert_eq!(unused.code, 2);
    assert!(unused.stderr.contains("--cells needs --input"), "{}", unused.stderr);
}

#[test]
fn the_table_of_cells_and_its_masks_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    let before = std::fs::read(&table).unwrap();
    let masks = dir.path().join("set/tiff-masks");
    std::fs::create_dir(&masks).unwrap();
    for image in std::fs::read_dir(&tiff).unwrap() {
        let image = image.unwrap();
        std::fs::copy(image.path(), masks.join(image.file_name())).unwrap();
    }
    let cells = ["--cells", arg(&table), "--cells-size", "8x8", "--overwrite"];
    let onto_table = ["convert", arg(&tiff), arg(&table), "--format", "parquet"];
    let refused = wellread(&[&onto_table[..], &cells].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("cells.csv is read and would be replaced"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&table).unwrap(), before);
    let onto_masks = ["convert", arg(&tiff), arg(&masks), "--format", "tiff"];
    // The images stand in for masks: their pixels are no numbers of cells.
    let with_masks = ["--cells-mask", "channel", "--cells-masks", arg(&masks), "--cells-unmatched", "skip"];
    let refused = wellread(&[&onto_masks[..], &cells, &with_masks].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("tiff-masks is read and would be replaced"), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(&masks).unwrap().count(), 3);
}

#[test]
fn stored_cells_are_compared_with_what_they_were_cut_out_of() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    let stored = dir.path().join("stored.parquet");
    let cells = ["--cells", arg(&table), "--cells-size", "16x12"];
    json(&[&["convert", arg(&tiff), arg(&stored)], &cells[..]].concat());
    for [first, other] in [[&stored, &tiff], [&tiff, &stored]] {
        let verified = json(&[&["verify", arg(first), "--against", arg(other)], &cells[..]].concat());
        assert_eq!((&verified["passed"], &verified["images"]), (&true.into(), &12.into()), "{verified}");
    }
    let read = wellread(&["verify", arg(&stored)]);
    assert!(read.code == 0 && read.stdout.starts_with("12 cells ("), "{}", read.stdout);
    let smaller = ["--cells", arg(&table), "--cells-size", "8x8"];
    let differs = wellread(&[&["verify", arg(&stored), "--against", arg(&tiff)], &smaller[..]].concat());
    assert_eq!(differs.code, 1, "{}", differs.stderr);
    let nowhere = ["--cells", "none.csv", "--cells-size", "8x8"];
    let failed = wellread(&[&["verify", arg(&stored), "--against", arg(&tiff)], &nowhere[..]].concat());
    assert_ne!(failed.code, 0);
    assert!(failed.stderr.contains("none.csv"), "{}", failed.stderr);
}

#[test]
fn a_mask_that_is_stored_as_a_channel_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    let masks = dir.path().join("masks");
    std::fs::create_dir(&masks).unwrap();
    for image in std::fs::read_dir(&tiff).unwrap() {
        let image = image.unwrap();
        std::fs::copy(image.path(), masks.join(image.file_name())).unwrap();
    }
    let said = |name: &str, mask: &str| {
        let target = dir.path().join(name);
        let cells = ["--cells", arg(&table), "--cells-size", "8x8", "--cells-masks", arg(&masks)];
        // Pixels of the copies are no numbers of cells: crops are taken as they are.
        let mask = ["--cells-mask", mask, "--cells-unmatched", "skip"];
        let done = wellread(&[&["convert", arg(&tiff), arg(&target)], &cells[..], &mask].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let note = "the mask becomes a channel of 0 and 1 like the stains";
    let channel = said("channel.parquet", "channel");
    assert!(channel.contains(note), "{channel}");
    let zero = said("zero.parquet", "zero");
    assert!(!zero.contains(note), "{zero}");
}

/// Files hold whole images and the table has bytes of its own: nothing to compare crops with.
#[test]
fn info_does_not_compare_crops_with_whole_files() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let small = ["--images", "1", "--size", "128x128", "--compression", "zstd", "--formats", "tiff,parquet"];
    json(&[&["generate", arg(&set)], &small[..]].concat());
    let (tiff, parquet) = (set.join("tiff"), set.join("images.parquet"));
    let table = dir.path().join("cells.csv");
    let plain = dir.path().join("plain.parquet");
    json(&["convert", arg(&parquet), arg(&plain), "--compression", "none"]);
    let cells = ["--cells", arg(&table), "--cells-size", "8x8"];
    for path in [&tiff, &plain] {
        let sums = json(&["checksum", arg(path)]);
        let name = sums[0]["name"].as_str().unwrap();
        std::fs::write(&table, format!("image,x,y\n{name},40,50\n")).unwrap();
        let whole = json(&["info", arg(path)]);
        assert!(whole["bits_per_pixel"].as_f64().unwrap() > 0.0, "{whole}");
        let cut = json(&[&["info", arg(path)], &cells[..]].concat());
        assert!(cut["bytes_on_disk"].as_u64() > cut["bytes_of_pixels"].as_u64(), "{cut}");
        assert_eq!(cut.get("bits_per_pixel"), None, "{cut}");
        let said = wellread(&[&["info", arg(path)], &cells[..]].concat()).stdout;
        for text in ["larger than the pixels", "bits on disk per pixel", "Parquet keeps"] {
            assert!(!said.contains(text), "{text}: {said}");
        }
    }
}

/// Columns of the table that have the name of a format's own are columns of the cells, whatever they hold.
#[test]
fn a_table_keeps_its_own_row_id() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, table) = cells_of(dir.path());
    let text = std::fs::read_to_string(&table).unwrap();
    let mut lines: Vec<String> = vec![];
    for (i, line) in text.lines().enumerate() {
        lines.push(if i == 0 {
            format!("{line},row_id,ome_image")
        } else {
            format!("{line},{},q{i}", 99 + i)
        });
    }
    std::fs::write(&table, lines.join("\n")).unwrap();
    let cells = ["--cells", arg(&table), "--cells-size", "8x8"];
    let columns = |args: &[&str]| {
        let names = json(args)["columns"].as_array().unwrap().clone();
        names.iter().map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let viewed = columns(&[&["info", arg(&tiff)], &cells[..]].concat());
    assert!(
        ["row_id", "ome_image"].iter().all(|name| viewed.iter().any(|there| there == name)),
        "{viewed:?}"
    );
    let target = dir.path().join("cells.parquet");
    let done = wellread(&[&["--json", "convert", arg(&tiff), arg(&target)], &cells[..]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("row_id is now row_id_y, ome_image is now ome_image_y"), "{said}");
    let stored = columns(&["info", arg(&target)]);
    for name in ["row_id_y", "ome_image_y"] {
        assert!(stored.iter().any(|there| there == name), "{name}: {stored:?}");
    }
    assert!(!stored.iter().any(|name| name == "row_id"), "{stored:?}");
}

/// Columns of the table that cannot stand beside images are named, as those of a set and of profiles are.
#[test]
fn columns_of_a_table_that_are_left_out_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (tiff, _) = cells_of(dir.path());
    let name = json(&["checksum", arg(&tiff)])[0]["name"].as_str().unwrap().to_owned();
    let nested = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])]);
    let columns: [(&str, ArrayRef); 7] = [
        ("ImageName", Arc::new(StringArray::from(vec![name]))),
        ("x", Arc::new(Float64Array::from(vec![13.0]))),
        ("y", Arc::new(Float64Array::from(vec![15.0]))),
        ("area", Arc::new(Float64Array::from(vec![7.0]))),
        ("thumb", Arc::new(BinaryArray::from_iter_values([b"a"]))),
        ("outline", Arc::new(nested)),
        ("void", Arc::new(NullArray::new(1))),
    ];
    let columns = columns.map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let table = dir.path().join("cells.parquet");
    let file = std::fs::File::create(&table).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let note =
        "columns are left out: thumb (binary values); outline (nested values); void (nothing but nulls)";
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cells = ["--cells", arg(&table), "--cells-size", "8x8"];
    let target = dir.path().join("stored.parquet");
    let done = wellread(&[&["--json", "convert", arg(&tiff), arg(&target)], &cells[..]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(document["columns_left_out"], serde_json::json!(["thumb", "outline", "void"]));
    assert!(in_one_line(&done.stderr).contains(note), "{}", done.stderr);
    // The note of `embed` comes before anything is made: the table of another run ends this one.
    let embed = ["embed", arg(&tiff), "--out", arg(&target), "--model", "resnet50"];
    let refused = wellread(&[&embed[..], &cells[..]].concat());
    assert!(refused.code == 1 && in_one_line(&refused.stderr).contains(note), "{}", refused.stderr);
    let named = wellread(&[&embed[..], &cells[..], &["--columns", "area"]].concat());
    assert!(named.code == 1 && !named.stderr.contains("left out"), "{}", named.stderr);
}
