//! `wellread embed` with a model that this program runs itself, which every machine has: values, columns, parts that a
//! later run goes on with, and refusals.

use crate::support::{Breakable, arg, generate, json, leftovers, wellread};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::HashMap;
use std::path::Path;
use wellread_loader::{Dataset, Loader};
use wellread_model::infer::{SessionOptions, architecture, candle};

/// Small images, little to do.
const SMALL: [&str; 8] = ["--model", "resnet50", "--resize", "32x32", "--batch-size", "2", "--threads", "1"];
/// The input of [`SMALL`].
const INPUT: [usize; 3] = [3, 32, 32];

/// A table, and its metadata about itself.
fn read(path: &Path) -> (RecordBatch, HashMap<String, String>) {
    let file = std::fs::File::open(path).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let words = builder.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let words = words.into_iter().filter_map(|pair| Some((pair.key, pair.value?))).collect();
    (builder.build().unwrap().next().unwrap().unwrap(), words)
}

fn texts(table: &RecordBatch, column: &str) -> Vec<String> {
    let column = table.column_by_name(column).unwrap();
    column.as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_owned()).collect()
}

fn numbers<'a>(table: &'a RecordBatch, column: &str) -> &'a [f32] {
    table.column_by_name(column).unwrap().as_primitive::<Float32Type>().values()
}

/// The features of the model itself for all images of a set, with the weights that a run has drawn.
fn expected(set: &Path, channels: &[usize], weights: &Path) -> Vec<f32> {
    let dataset = Dataset::open(set).unwrap();
    let loader = Loader::builder(&dataset)
        .batch_size(dataset.len())
        .channels(channels.to_vec())
        .resize(INPUT[1], INPUT[2])
        .scale_to_unit()
        .build()
        .unwrap();
    let batch = loader.iter().next().unwrap().unwrap();
    let architecture = architecture("resnet50").unwrap().with_input(INPUT).unwrap();
    let options = SessionOptions { threads: 1, ..Default::default() };
    let mut session = candle::open(&architecture, weights, &options).unwrap();
    session.load(batch.pixels(), batch.len()).unwrap();
    session.run().unwrap();
    session.logits().unwrap()
}

/// The command for grey images, in parts of four.
fn command<'a>(set: &'a Path, out: &'a Path, models: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["embed", arg(set), "--out", arg(out), "--model-dir", arg(models)];
    args.extend(SMALL);
    args.extend(["--channels", "0,0,0", "--part-rows", "4"]);
    args.extend(more);
    args
}

/// Whether numbers differ by no more than the order of sums makes them.
fn agree(found: &[f32], wanted: &[f32]) -> bool {
    let scale = wanted.iter().fold(1e-6f32, |most, value| most.max(value.abs()));
    found.len() == wanted.len()
        && found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() <= 1e-4 * scale)
}

#[test]
fn features_are_those_of_the_model_and_stand_beside_the_columns_of_the_set() {
    let dir = tempfile::tempdir().unwrap();
    generate(&dir.path().join("made"), 5, &["--formats", "tiff", "--channels", "3", "--dtype", "uint8"]);
    let images = dir.path().join("made/tiff");
    let names = json(&["info", arg(&images)]);
    assert_eq!(names["images"], 5);
    // A plan of the plate, beside the images by their names.
    let dataset = Dataset::open(&images).unwrap();
    let plan: Vec<String> =
        (0..5).map(|row| format!("{},A0{},{}", dataset.name(row).unwrap(), row + 1, row * 10)).collect();
    let table = dir.path().join("plan.csv");
    std::fs::write(&table, format!("ImageName,Metadata_Well,dose\n{}\n", plan.join("\n"))).unwrap();
    let set = dir.path().join("set.parquet");
    json(&["convert", arg(&images), arg(&set), "--join", arg(&table), "--on", "ImageName"]);

    let out = dir.path().join("profiles.parquet");
    let mut args = vec!["embed", arg(&set), "--out", arg(&out), "--model-dir", arg(dir.path())];
    args.extend(SMALL);
    args.extend(["--part-rows", "3", "--columns", "Metadata_Well,dose"]);
    let said = json(&args);
    assert_eq!((&said["images"], &said["features"]), (&5.into(), &1000.into()), "{said}");
    assert_eq!((&said["images_skipped"], &said["images_resumed"]), (&0.into(), &0.into()), "{said}");
    assert!(said["seconds"].as_f64().unwrap() > 0.0 && said["images_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
    assert!(!dir.path().join(".wellread-resume-profiles.parquet").exists());

    let (found, words) = read(&out);
    let columns: Vec<String> = found.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(columns[..3], ["Metadata_name", "Metadata_Well", "Metadata_dose"]);
    assert_eq!((columns[3].as_str(), columns[1002].as_str()), ("embedding_0000", "embedding_0999"));
    assert_eq!((columns.len(), found.num_rows()), (1003, 5));
    assert_eq!(texts(&found, "Metadata_Well"), ["A01", "A02", "A03", "A04", "A05"]);
    let wanted_names: Vec<String> = (0..5).map(|row| dataset.name(row).unwrap()).collect();
    assert_eq!(texts(&found, "Metadata_name"), wanted_names);
    let weights = dir.path().join("resnet50-seed0.safetensors");
    let wanted = expected(&set, &[0, 1, 2], &weights);
    for feature in [0, 1, 499, 999] {
        let wanted: Vec<f32> = wanted.iter().skip(feature).step_by(1000).copied().collect();
        let found = numbers(&found, &format!("embedding_{feature:04}"));
        assert!(agree(found, &wanted), "{feature}: {found:?}, not {wanted:?}");
    }
    let of = |key: &str| words.get(key).map_or("", String::as_str);
    assert_eq!((of("wellread.model"), of("wellread.model.sha256").len()), ("resnet50", 64));
    assert!(of("wellread.command").contains(" embed ") && of("wellread.left_out") == "[]");

    // The same in one column of lists, with those weights by name.
    let lists = dir.path().join("lists.parquet");
    let mut args = vec!["embed", arg(&set), "--out", arg(&lists), "--weights", arg(&weights)];
    args.extend(["--model", "resnet50", "--resize", "32x32", "--features", "list"]);
    json(&args);
    let (listed, _) = read(&lists);
    let second = listed.column_by_name("embedding").unwrap().as_fixed_size_list().value(1);
    assert!(agree(second.as_primitive::<Float32Type>().values(), &wanted[1000..2000]));

    // A table that is there is kept, and known as what this command would write.
    let there = wellread(&["embed", arg(&set), "--out", arg(&out), "--model", "resnet50"]);
    assert!(there.code == 1 && there.stderr.contains("already exists"), "{}", there.stderr);
    // No model was opened yet.
    assert!(!there.stderr.contains("drawn at random"), "{}", there.stderr);
    let mut again = vec!["embed", arg(&set), "--out", arg(&out), "--model-dir", arg(dir.path()), "--resume"];
    again.extend(SMALL);
    again.extend(["--part-rows", "3", "--columns", "Metadata_Well,dose"]);
    assert_eq!(json(&again)["complete_before"], true);
    again.push("--allow-nan");
    let other = wellread(&again);
    assert!(other.code == 1 && other.stderr.contains("other options"), "{}", other.stderr);
}

/// Columns that the table has no place for are named in the document, as those of a conversion are.
#[test]
fn columns_of_the_set_that_are_left_out_are_in_the_document() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "parquet"]);
    let (made, _) = read(&set.join("images.parquet"));
    let images = made.column_by_name("ome_image").unwrap();
    let columns = [("ome_image", images.clone(), true), ("second", images.clone(), true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let two = dir.path().join("two.parquet");
    let file = std::fs::File::create(&two).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let out = dir.path().join("profiles.parquet");
    let said = json(&command(&two, &out, dir.path(), &["--column", "ome_image"]));
    assert_eq!((&said["images"], &said["columns_left_out"]), (&2.into(), &serde_json::json!(["second"])));
    let out = dir.path().join("other.parquet");
    let said = json(&command(&set.join("images.parquet"), &out, dir.path(), &[]));
    assert_eq!(said["columns_left_out"], serde_json::json!([]));
}

#[test]
fn an_image_that_cannot_be_read_ends_a_run_that_is_gone_on_with_or_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let set = Breakable::in_folder(dir.path());
    let wanted = dir.path().join("whole.parquet");
    let out = dir.path().join("profiles.parquet");
    let part = dir.path().join(".wellread-resume-profiles.parquet");
    let args = |more| command(&set.source, &out, dir.path(), more);
    json(&command(&set.source, &wanted, dir.path(), &[]));

    std::fs::write(&set.files[7], &set.broken).unwrap();
    let ended = wellread(&args(&[]));
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let broken = set.files[7].file_name().unwrap().to_str().unwrap();
    for words in [broken, "--on-error skip", arg(&part), "--resume"] {
        assert!(ended.stderr.contains(words), "{words} is not in {}", ended.stderr);
    }
    assert!(!out.exists() && part.join("part-000000.parquet").is_file());

    // Another command does not go on with it.
    let other = wellread(&args(&["--resume", "--allow-nan"]));
    assert!(other.code == 1 && other.stderr.contains("other options"), "{}", other.stderr);
    std::fs::write(&set.files[7], &set.whole).unwrap();
    let said = json(&args(&["--resume"]));
    assert_eq!((&said["images"], &said["images_resumed"]), (&12.into(), &4.into()), "{said}");
    assert_eq!(read(&out).0, read(&wanted).0);
    assert!(!part.exists());

    // Left out, and told.
    std::fs::write(&set.files[7], &set.broken).unwrap();
    let said = json(&args(&["--overwrite", "--on-error", "skip"]));
    assert_eq!((&said["images"], &said["images_skipped"]), (&11.into(), &1.into()), "{said}");
    assert_eq!(said["skipped"][0]["row"], 7);
    let (found, words) = read(&out);
    let (whole, _) = read(&wanted);
    let names = |table: &RecordBatch| texts(table, "Metadata_name");
    let mut others = names(&whole);
    let left_out = others.remove(7);
    assert_eq!(names(&found), others);
    assert!(words["wellread.left_out"].contains(&left_out), "{words:?}");
    let mut values = numbers(&whole, "embedding_0003").to_vec();
    values.remove(7);
    assert!(agree(numbers(&found, "embedding_0003"), &values));
}

#[test]
fn features_of_images_that_were_written_since_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let set = Breakable::in_folder(dir.path());
    let wanted = dir.path().join("whole.parquet");
    let out = dir.path().join("profiles.parquet");
    let part = dir.path().join(".wellread-resume-profiles.parquet/part-000000.parquet");
    json(&command(&set.source, &wanted, dir.path(), &[]));
    std::fs::write(&set.files[7], &set.broken).unwrap();
    assert_eq!(wellread(&command(&set.source, &out, dir.path(), &[])).code, 1);
    std::fs::write(&set.files[7], &set.whole).unwrap();
    // Two images of the first part change places: the set is as large as before.
    let [one, two] = [1, 2].map(|row| std::fs::read(&set.files[row]).unwrap());
    std::fs::write(&set.files[1], two).unwrap();
    std::fs::write(&set.files[2], one).unwrap();
    let made_long_ago = |path: &Path| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    made_long_ago(&part);
    let again = command(&set.source, &out, dir.path(), &["--resume"]);
    let said = json(&again);
    assert_eq!((&said["images"], &said["images_resumed"]), (&12.into(), &0.into()), "{said}");
    let ((found, _), (whole, _)) = (read(&out), read(&wanted));
    for feature in ["embedding_0000", "embedding_0003", "embedding_0999"] {
        let (found, before) = (numbers(&found, feature), numbers(&whole, feature));
        assert!(agree(&found[..4], &[before[0], before[2], before[1], before[3]]), "{found:?} {before:?}");
    }
    // So is a table that is complete.
    made_long_ago(&out);
    let other = wellread(&again);
    assert!(other.code == 1 && other.stderr.contains("were written since"), "{}", other.stderr);
}

#[test]
fn features_of_sites_are_made_anew_when_any_file_of_a_site_was_written_since() {
    let dir = tempfile::tempdir().unwrap();
    let plate = dir.path().join("plate");
    let (images, out) = (plate.join("images"), dir.path().join("profiles.parquet"));
    let mut made =
        vec!["generate", arg(&plate), "--plate", "1x2", "--fields", "1", "--layout", "imagexpress"];
    made.extend(["--channels", "2", "--size", "32x32"]);
    assert_eq!(wellread(&made).code, 0);
    json(&command(&images, &out, dir.path(), &[]));
    let written_at = |path: &Path, seconds: u64| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    for file in std::fs::read_dir(&images).unwrap() {
        written_at(&file.unwrap().path(), 1);
    }
    written_at(&out, 1000);
    let again = command(&images, &out, dir.path(), &["--resume"]);
    assert_eq!(json(&again)["complete_before"], true);
    // The second channel of the last site.
    written_at(&images.join("plate_A02_s1_w2.tif"), 2000);
    let other = wellread(&again);
    assert!(other.code == 1 && other.stderr.contains("were written since"), "{}", other.stderr);
}

#[test]
fn a_run_without_resume_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let set = Breakable::in_folder(dir.path());
    let out = dir.path().join("profiles.parquet");
    let part = dir.path().join(".wellread-resume-profiles.parquet");
    let mut args = command(&set.source, &out, dir.path(), &[]);
    std::fs::write(&set.files[7], &set.broken).unwrap();
    assert_eq!(wellread(&args).code, 1);
    assert!(part.is_dir());
    std::fs::write(&set.files[7], &set.whole).unwrap();
    let done = wellread(&args);
    assert!(done.code == 0 && done.stderr.contains("begins anew"), "{}", done.stderr);
    assert!(out.is_file() && !part.exists());
    // Where nothing was complete, nothing is left.
    let mut broken = std::fs::read(&set.files[1]).unwrap();
    broken[..8].fill(b'x');
    std::fs::write(&set.files[1], broken).unwrap();
    args.push("--overwrite");
    let failed = wellread(&args);
    assert!(failed.code == 1 && !part.exists(), "{}", failed.stderr);
    assert_eq!(read(&out).0.num_rows(), 12, "the old table is kept");
}

/// A link to nowhere is an image that cannot be read, and has no bytes by which a later run knows the set.
#[cfg(unix)]
#[test]
fn a_link_to_nowhere_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    generate(&dir.path().join("made"), 2, &["--formats", "tiff", "--dtype", "uint8"]);
    let images = dir.path().join("made/tiff");
    std::os::unix::fs::symlink("nowhere", images.join("zz.tif")).unwrap();
    let out = dir.path().join("profiles.parquet");
    let done = json(&command(&images, &out, dir.path(), &["--on-error", "skip"]));
    assert_eq!((&done["images"], &done["images_skipped"]), (&2.into(), &1.into()), "{done}");
    assert_eq!((&done["skipped"][0]["row"], read(&out).0.num_rows()), (&2.into(), 2), "{done}");
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let dir = tempfile::tempdir().unwrap();
    generate(&dir.path().join("made"), 2, &["--formats", "tiff", "--channels", "2"]);
    let images = dir.path().join("made/tiff");
    let (missing, text) = (dir.path().join("missing.onnx"), dir.path().join("out.parquet"));
    std::fs::write(&text, "mine").unwrap();
    let (inside, csv) = (images.join("out.parquet"), dir.path().join("out.CSV"));
    let cases: [(&[&str], i32, &str); 18] = [
        (&["--model", "resnet18"], 2, "vit_b_16"),
        (&["--model", "python:module"], 2, "python:package.module:Class"),
        (&["--model", arg(&missing)], 1, "no such file"),
        (&["--model", "resnet50", "--weights", arg(&missing)], 1, "no such file"),
        (&["--model", "resnet50", "--model-output", "layer4"], 2, "--model-output names an output"),
        (&["--model", "resnet50", "--pool", "median"], 2, "mean"),
        (&["--model", "resnet50", "--batch-size", "0"], 2, "at least one"),
        (&["--model", "resnet50", "--scale", "much"], 2, "percentiles"),
        (&["--model", "resnet50", "--columns", "dosis"], 2, "no column \"dosis\""),
        (&["--model", "resnet50", "--channels", "DNA,nothing"], 2, "no such channels"),
        (&["--model", "resnet50", "--channels", "7"], 2, "has 2 channels; numbers count from 0"),
        (&["--model", "resnet50", "--channels", "0,2,1"], 2, "--channels 0,2,1"),
        (&["--model", "resnet50"], 1, "--channels 0,1,0"),
        (&["--model", "resnet50", "--out", arg(&inside)], 2, "lies inside the images"),
        (&["--model", "resnet50", "--out", arg(dir.path())], 2, "is a folder"),
        (&["--model", "resnet50", "--out", arg(&csv)], 2, "ends in .csv, and the table is Parquet"),
        (&["--model", "resnet50", "--out", arg(&text)], 1, "already exists"),
        (&["--model", "resnet50", "--out", arg(&text), "--resume"], 1, "no `wellread embed` has written it"),
    ];
    let out = dir.path().join("new.parquet");
    for (more, code, said) in cases {
        let mut args = vec!["embed", arg(&images), "--model-dir", arg(dir.path())];
        if !more.contains(&"--out") {
            args.extend(["--out", arg(&out)]);
        }
        if more.contains(&"--resume") {
            args.extend(["--channels", "0,1,0"]);
        }
        args.extend(more);
        let done = wellread(&args);
        assert!(done.code == code && done.stderr.contains(said), "{more:?}: {} {}", done.code, done.stderr);
    }
    assert!(!out.exists() && !dir.path().join(".wellread-resume-new.parquet").exists());
    // A folder that takes no table is told before the model is open.
    let nowhere = text.join("profiles.parquet");
    let done = wellread(&command(&images, &nowhere, dir.path(), &[]));
    assert!(done.code == 1 && done.stderr.contains("out.parquet: cannot make the folder"), "{}", done.stderr);
    assert!(!done.stderr.contains("model:"), "{}", done.stderr);
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "mine");
    // A size that the model does not have is told, with both shapes.
    let done = wellread(&[
        "embed",
        arg(&images),
        "--out",
        arg(&out),
        "--model-dir",
        arg(dir.path()),
        "--model",
        "vit_b_16",
        "--channels",
        "0,1,1",
    ]);
    assert!(done.code == 1 && done.stderr.contains("--resize 224x224"), "{}", done.stderr);
    assert!(done.stderr.contains("are 3 x 40 x 56"), "{}", done.stderr);
}
