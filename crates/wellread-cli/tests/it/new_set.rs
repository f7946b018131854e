//! Problems of a new user with a set of images: a misspelt column, what `info`, `view` and `verify` say, what a killed run leaves.

use crate::support::{arg, files_below, generate, image_names, json, wellread};
use std::fs;
use std::path::Path;
use wellread_report::{Table, row};

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
        wellread(&[&["convert", arg(set), arg(&target)], &join[..]].concat())
    };
    let said_of = |set: &Path, profiles: &[(&str, &str)]| {
        let done = joined(set, profiles);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout + &done.stderr
    };
    names.sort_unstable();
    let [first, .., last] = names.as_slice() else { panic!("{names:?}") };
    let said = said_of(&plates, &[(first, "A1"), (last, "B2")]);
    assert!(said.contains("2 of 4 images have a profile"), "{said}");
    // Without a folder one profile could be of either plate: refused, as `with_columns` in Python does.
    let (_, name) = first.split_once('/').unwrap();
    let refused = joined(&plates, &[(name, "A1")]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let (_, named) = refused.stderr.split_once("could be either of two images, P1/").unwrap();
    assert!(named.contains(" and P2/"), "{}", refused.stderr);
    // One plate alone: its folder tells the profiles apart, and those of another plate are told.
    let alone = |plate: &str, profiles: &[(&str, &str)]| said_of(&plates.join(plate), profiles);
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

/// The names of the TIFF files of a folder.
fn tiff_names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_str().unwrap().to_owned())
        .filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "tif" || ending == "tiff"))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_join_takes_the_columns_named_and_suggests_the_one_meant() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    let names = tiff_names(&tiff);
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
    let columns = &json(&["info", arg(&target)])["columns"];
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
fn columns_are_no_compressed_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let tiff = set.join("tiff");
    // More bytes of columns than of pixels, as where features of CellProfiler stand beside crops.
    let features: Vec<String> = (0..2000).map(|i| format!(",Cells_Texture_InfoMeas1_{i}")).collect();
    let mut lines = vec![format!("FileName{}", features.concat())];
    lines.extend(tiff_names(&tiff).into_iter().map(|name| name + &",0.5".repeat(features.len())));
    let table = dir.path().join("profiles.csv");
    fs::write(&table, lines.join("\n")).unwrap();
    let zarr = dir.path().join("set.zarr");
    json(&["convert", arg(&tiff), arg(&zarr), "--join", arg(&table), "--on", "FileName"]);
    let columns = fs::metadata(zarr.join("OME/wellread-columns.parquet")).unwrap().len();
    let info = json(&["info", arg(&zarr)]);
    assert!(columns > info["bytes_of_pixels"].as_u64().unwrap(), "{columns} of {info}");
    assert!(info["notes"].is_null(), "{info}");
}

#[test]
fn info_says_where_compression_made_files_larger() {
    let dir = tempfile::tempdir().unwrap();
    let noise = dir.path().join("noise");
    let kind = ["--kind", "noise", "--dtype", "uint8", "--formats", "tiff", "--compression"];
    json(&[&["generate", arg(&noise), "--images", "2", "--size", "64x64"], &kind[..], &["lzw"]].concat());
    let said = wellread(&["info", arg(&noise.join("tiff"))]).stdout;
    assert!(
        said.contains("the compressed pixels are ") && said.contains("% larger than the pixels: "),
        "{said}"
    );
    assert!(said.contains(" saves nothing in total (wellread convert --compression none)"), "{said}");
    let info = json(&["info", arg(&noise.join("tiff"))]);
    let note = info["notes"][0].as_str().unwrap_or_default();
    assert!(note.starts_with("the compressed pixels are ") && said.contains(note), "{info}");
    assert_eq!(info["columns_renamed"], serde_json::Value::Null);
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
fn view_takes_the_name_of_an_image() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 3, &["--formats", "parquet"]);
    let (parquet, picture) = (set.join("images.parquet"), dir.path().join("picture.png"));
    let names = image_names(&parquet);
    let view = ["view", arg(&parquet), "--out", arg(&picture), "--row"];
    assert_eq!(json(&[&view[..], &[names[2].as_str()]].concat())["rows"], serde_json::json!([2]));
    let unknown = wellread(&[&view[..], &["no-such"]].concat());
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    let why = format!("--row no-such: no image is called that, as {:?} is that of row 0; ", names[0]);
    assert!(unknown.stderr.contains(&why) && unknown.stderr.contains("rows 0 to 2"), "{}", unknown.stderr);
    let below = wellread(&[&view[..], &["-1"]].concat());
    assert_eq!(below.code, 2, "{}", below.stderr);
    let why = "--row -1: rows count from 0; ";
    assert!(below.stderr.contains(why) && below.stderr.contains("rows 0 to 2"), "{}", below.stderr);
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

/// A killed run's output of another target is named, with its size; that of the target itself is removed.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
#[test]
fn what_killed_runs_have_left_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 2, &["--formats", "tiff"]);
    let place = |name: &str| dir.path().join(name);
    // No process has this number.
    let gone = wellread_store::staged::process_mark(4_294_967_294);
    let [other, same] = ["other", "plate.parquet"].map(|of| format!(".wellread-partial-{gone}-0-{of}"));
    for name in [&other, &same] {
        fs::write(place(name), [0; 2048]).unwrap();
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
        fs::File::open(place(name)).unwrap().set_modified(long_ago).unwrap();
    }
    for name in [".wellread-resume-third", ".wellread-resume-plate.parquet"] {
        fs::create_dir(place(name)).unwrap();
        fs::write(place(name).join("a.tif"), [0; 512]).unwrap();
    }
    let convert = |more: &[&str]| {
        wellread(&[&["convert", arg(&set.join("tiff")), arg(&place("plate.parquet"))], more].concat())
    };
    let done = convert(&[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let notes: Vec<&str> = done.stderr.lines().collect();
    let [removed, named] = notes.as_slice() else { panic!("{}", done.stderr) };
    assert!(removed.contains(".wellread-resume-plate.parquet, which an interrupted run"), "{removed}");
    assert!(!place(".wellread-resume-plate.parquet").exists());
    assert!(named.contains(&format!("{other} (2.0 KiB): not written to for an hour")), "{named}");
    assert!(named.contains(".wellread-resume-third (512 B): the same command with --resume"), "{named}");
    assert!(!named.contains("plate.parquet"), "{named}");
    assert!(place(&other).exists() && !place(&same).exists() && place(".wellread-resume-third").exists());
    // Once they are gone, there is nothing to say.
    fs::remove_file(place(&other)).unwrap();
    fs::remove_dir_all(place(".wellread-resume-third")).unwrap();
    assert_eq!(convert(&["--overwrite"]).stderr, "");
    // Another container, whose processes have numbers that nobody has here, is writing it now.
    let elsewhere = ".wellread-partial-4294967294.elsewhere-0-plate.parquet";
    fs::write(place(elsewhere), [0; 1024]).unwrap();
    let said = convert(&["--overwrite"]).stderr;
    assert!(said.contains(&format!("{elsewhere} (1.0 KiB): begun on another machine, in another")), "{said}");
    assert!(said.contains("remove it once no process there writes it"), "{said}");
    assert_eq!(fs::read(place(elsewhere)).unwrap(), [0; 1024]);
}

/// `doctor` names leftovers that lie in no folder of a set.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
#[test]
fn half_written_cache_files_are_named() {
    use crate::support::wellread_with;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("wellread/pixels");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("0f3a-77b1.4294967294.new");
    fs::write(&file, [0; 512]).unwrap();
    let doctor =
        || wellread_with(("XDG_CACHE_HOME", dir.path()), &["doctor", "--python", "no-such-python"]).stderr;
    assert!(!doctor().contains("0f3a"), "somebody may be writing to it");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
    fs::File::open(&file).unwrap().set_modified(long_ago).unwrap();
    let named = doctor();
    // Beside what other runs left on this machine.
    assert!(named.contains("0f3a-77b1.4294967294.new (512 B)"), "{named}");
    assert!(named.contains("not written to for an hour"), "{named}");
}
