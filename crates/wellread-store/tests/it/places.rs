//! Sets in a place of another kind than the file system: every format reads and writes them, and none knows of it.

use crate::memory_place::{below, lose};
use crate::place_sets::{SETS, assert_same, copy, options, recognised, write};
use std::path::{Path, PathBuf};
use wellread_store::{OpenOptions, WriteOptions, create, open, read_image};

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
        // What is not finished leaves nothing.
        let unfinished = root.join(format!("unfinished-{name}"));
        drop(create(&unfinished, format, &options).unwrap_or_else(|e| panic!("{e}")));
        let resume = WriteOptions { resume: Some("these".into()), ..options };
        assert!(create(&unfinished, format, &resume).is_err());
        assert!(below(&unfinished).is_empty());
    }
    let hidden = |file: &PathBuf| file.to_string_lossy().contains(".wellread-");
    assert!(!below(root).iter().any(hidden), "{:?}", below(root));
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
