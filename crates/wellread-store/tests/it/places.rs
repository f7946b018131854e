//! Sets in a place of another kind than the file system: every format reads and writes them, and none knows of it.

use crate::memory_place::{below, lose};
use crate::place_sets::{NAMES, SETS, assert_same, copy, options, recognised, write, write_rows};
use std::path::{Path, PathBuf};
use wellread_image::ImageMetadata;
use wellread_store::{OpenOptions, WriteOptions, create, open, place, read_image, staged};

#[test]
fn every_format_reads_what_lies_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("memory://read").join(name));
        write(&local, format, &options(variant, shard));
        copy(&local, &other);
        let (local, other) = (recognised(&local), recognised(&other));
        assert_eq!(other.path(), Path::new("memory://read").join(name));
        assert_same(&*other, &*local);
    }
}

#[test]
fn every_format_writes_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new("memory://written");
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), root.join(name));
        let options = options(variant, shard);
        write(&local, format, &options);
        write(&other, format, &options);
        assert_same(&*recognised(&other), &*recognised(&local));
        let error = create(&other, format, &options).err().unwrap().to_string();
        assert!(error.contains("already exists"), "{error}");
        // Output that is not finished leaves nothing.
        let unfinished = root.join(format!("unfinished-{name}"));
        drop(create(&unfinished, format, &options).unwrap_or_else(|e| panic!("{e}")));
        assert!(below(&unfinished).is_empty());
        let others = WriteOptions { overwrite: true, ..options };
        write(&other, format, &others);
        assert_same(&*recognised(&other), &*recognised(&local));
    }
    let hidden = |file: &PathBuf| file.to_string_lossy().contains(".wellread-");
    assert!(!below(root).iter().any(hidden), "{:?}", below(root));
}

#[test]
fn what_was_interrupted_elsewhere_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new("memory://resumed");
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), root.join(name));
        let options = options(variant, shard);
        write(&local, format, &options);
        let resume = WriteOptions { resume: Some("these".into()), ..options };
        let is_by_image = matches!(name, "tiff" | "tiff-plain" | "zarr" | "zarr-0.4" | "zarr-shards" | "png");
        if !is_by_image {
            assert!(create(&other, format, &resume).is_err(), "{name}");
            continue;
        }
        let mut writer = create(&other, format, &resume).unwrap_or_else(|e| panic!("{e}"));
        write_rows(&mut *writer, 0..2);
        drop(writer);
        let error = create(&other, format, &WriteOptions { resume: Some("those".into()), ..resume.clone() });
        assert!(error.err().unwrap().to_string().contains("other images"), "{name}");
        assert!(!below(&staged::part(&other).unwrap()).is_empty() && below(&other).is_empty());
        let mut writer = create(&other, format, &resume).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(writer.complete(), 2, "{name}");
        NAMES[..2].iter().for_each(|name| writer.skip(&ImageMetadata::named(*name)).unwrap());
        write_rows(&mut *writer, 2..NAMES.len());
        writer.finish().unwrap_or_else(|e| panic!("{e}"));
        assert_same(&*recognised(&other), &*recognised(&local));
    }
    let hidden = |file: &PathBuf| file.to_string_lossy().contains(".wellread-");
    assert!(!below(root).iter().any(hidden), "{:?}", below(root));
}

/// A process of another machine is not seen from here.
#[test]
fn a_part_that_another_machine_may_be_writing_stays() {
    let set = Path::new("memory://shared/set");
    let resume = WriteOptions { resume: Some("these".into()), ..WriteOptions::default() };
    let mut writer = create(set, "tiff", &resume).unwrap();
    write_rows(&mut *writer, 0..2);
    drop(writer);
    let part = staged::part(set).unwrap();
    let (journal, files) = (part.join(".wellread-journal"), below(&part));
    let own = String::from_utf8(place::read(&journal).unwrap()).unwrap();
    let other = own.replace(&staged::process_mark(std::process::id()), "7.elsewhere");
    assert!(other != own && files.len() > 2, "{own}: {files:?}");
    place::write(&journal, other.as_bytes()).unwrap();
    write(set, "tiff", &WriteOptions::default());
    assert_eq!(below(&part), files);
    // That of this process goes.
    place::write(&journal, own.as_bytes()).unwrap();
    write(set, "tiff", &WriteOptions { overwrite: true, ..WriteOptions::default() });
    assert!(below(&part).is_empty());
}

#[test]
fn what_is_replaced_elsewhere_is_a_set_and_nothing_else() {
    let root = Path::new("memory://replaced");
    let set = root.join("set");
    let overwrite = WriteOptions { overwrite: true, ..WriteOptions::default() };
    write(&set, "ome-zarr", &options(Some("0.4"), None));
    write(&set, "tiff", &overwrite);
    assert!(!below(&set).iter().any(|file| file.to_string_lossy().contains(".zarr")));
    assert_eq!(recognised(&set).format(), "tiff");
    place::write(&set.join("notes.txt"), b"mine").unwrap();
    let error = create(&set, "tiff", &overwrite).err().unwrap().to_string();
    assert!(error.contains("holds more than a set of images (notes.txt"), "{error}");
    // A file takes the place of a folder, and a folder that of a file.
    let table = root.join("table");
    write(&table, "ome-arrow-dataset", &WriteOptions::default());
    write(&table, "parquet", &overwrite);
    assert_eq!(below(&table), [table.as_path()]);
    write(&table, "ome-arrow-dataset", &overwrite);
    assert!(below(&table).len() > 1 && !below(&table).contains(&table));
}

#[test]
fn a_range_that_cannot_be_read_is_an_error_with_address_and_row() {
    for (name, format, variant, shard) in SETS {
        let address = Path::new("memory://lost").join(name);
        write(&address, format, &options(variant, shard));
        let store = recognised(&address);
        store.row_info(1).unwrap();
        lose(&address);
        let error = read_image(&*store, 1).unwrap_err().to_string();
        assert!(error.starts_with("memory://lost/"), "{error}");
        assert!(error.contains(name) && error.contains("row 1:"), "{error}");
        assert!(error.contains("the range is lost"), "{error}");
    }
}

#[test]
fn what_is_not_there_and_schemes_that_nobody_registered_are_errors() {
    for (address, expected) in [
        ("memory://none/plate.parquet", "memory://none/plate.parquet: cannot open"),
        ("elsewhere://bucket/plate.parquet", "this build cannot read elsewhere:// addresses"),
    ] {
        let error = open(address, &OpenOptions::default()).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = create("elsewhere://bucket/a", "tiff", &WriteOptions::default()).err().unwrap().to_string();
    assert!(error.contains("this build cannot write elsewhere:// addresses"), "{error}");
}

// As the crate `wellread` has it where its feature is off.
wellread_store::absent_place!("s3", "remote");

/// A light build has no buckets: it says so, and how a build has them, whether it reads or writes.
#[test]
fn a_bucket_is_refused_with_the_feature_that_reads_it() {
    let address = "s3://bucket/plate.parquet";
    let read = open(address, &OpenOptions::default()).err().unwrap().to_string();
    let written = create(address, "parquet", &WriteOptions::default()).err().unwrap().to_string();
    for (error, verb) in [(read, "read"), (written, "write")] {
        let said = format!("{address}: this build cannot {verb} s3:// addresses");
        assert!(error.starts_with(&said), "{error}");
        assert!(error.contains("left out of this build; build with --features remote"), "{error}");
        assert!(error.contains("copy the data to a local folder"), "{error}");
    }
}

/// Files that are images by their content alone: a folder of them is refused with advice that can be followed.
#[test]
fn a_folder_whose_names_tell_no_format_says_what_to_give() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set.parquet");
    write(&set, "parquet", &WriteOptions::default());
    let refusal = |folder: &Path| open(folder, &OpenOptions::default()).err().unwrap().to_string();
    let folder = dir.path().join("named");
    std::fs::create_dir(&folder).unwrap();
    for name in ["a.dat", "b.dat"] {
        std::fs::copy(&set, folder.join(name)).unwrap();
    }
    let (said, all) = (refusal(&folder), folder.join("*.dat"));
    let advice = format!(
        "a.dat is parquet by its content: give that file, or all such files by a pattern: '{}'",
        all.display()
    );
    assert!(said.contains(&advice), "{said}");
    assert_eq!(open(&all, &OpenOptions::default()).unwrap().len(), 2 * NAMES.len());
    let tables = dir.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    std::fs::write(tables.join("load_data_with_illum.csv"), "").unwrap();
    let said = refusal(&tables);
    assert!(said.contains("images of its load_data_with_illum.csv lie elsewhere, give that file"), "{said}");
}

#[test]
fn a_pattern_below_a_file_says_that_it_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.tif");
    std::fs::write(&file, "II").unwrap();
    let said = open(file.join("*.tif"), &OpenOptions::default()).err().unwrap().to_string();
    assert!(said.contains("fits the pattern") && said.contains("a.tif is a file, in which"), "{said}");
}
