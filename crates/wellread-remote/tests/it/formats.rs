//! Every built-in format in a bucket: read as from a folder, written as to one.

use crate::server;
use crate::sets::{NAMES, SETS, assert_same, copy, options, recognised, write};
use std::path::Path;
use wellread_store::{OpenOptions, open, place, read_image};

#[test]
fn every_format_is_read_from_a_bucket() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("s3://read/sets").join(name));
        write(&local, format, &options(variant, shard));
        copy(&local, &other);
        assert_same(&*recognised(&other), &*recognised(&local));
    }
}

#[test]
fn every_format_is_written_to_a_bucket() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("s3://written/sets").join(name));
        write(&local, format, &options(variant, shard));
        write(&other, format, &options(variant, shard));
        assert_same(&*recognised(&other), &*recognised(&local));
    }
    let hidden: Vec<_> =
        server::keys("written/").into_iter().filter(|key| key.contains(".wellread-")).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
    assert_eq!(server::open_uploads("written"), 0);
}

/// Google's XML interface is that of S3 but for names of headers. No token goes along where there are no credentials, though the
/// library asks for one to write.
#[test]
fn sets_are_written_to_google_cloud_storage_without_credentials() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("gs://google-written/sets").join(name));
        write(&local, format, &options(variant, shard));
        write(&other, format, &options(variant, shard));
        assert_same(&*recognised(&other), &*recognised(&local));
    }
    let (large, bytes) = (Path::new("gs://google-written/large"), vec![7; 33 << 20]);
    place::write(large, &bytes).unwrap();
    assert!(server::get("google-written/large").unwrap() == bytes);
    assert_eq!(server::open_uploads("google-written"), 0);
}

#[test]
fn faults_that_pass_change_no_pixel() {
    use server::Wrong::{Cut, Range, Short, Status};
    server::url();
    let dir = tempfile::tempdir().unwrap();
    let faults = [Status(503, "SlowDown"), Cut, Short, Range, Status(500, "InternalError")];
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("s3://spoiled").join(name));
        write(&local, format, &options(variant, shard));
        copy(&local, &other);
        server::spoil("spoiled", &faults);
        assert_same(&*recognised(&other), &*recognised(&local));
        assert_eq!(server::still_wrong("spoiled"), 0, "{name}");
    }
}

#[test]
fn a_set_that_is_not_there_is_named_with_its_key() {
    server::url();
    let error = open("s3://empty/no/plate.parquet", &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.starts_with("s3://empty/no/plate.parquet: cannot open"), "{error}");
    assert!(error.contains("no key no/plate.parquet in empty"), "{error}");
    assert!(error.contains("the environment (AWS_ACCESS_KEY_ID)"), "{error}");
    assert!(!error.contains("the-secret") && !error.contains("the-key-id"), "{error}");
}

#[test]
fn an_image_that_is_replaced_in_mid_epoch_is_an_error() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    let local = dir.path().join("a.parquet");
    write(&local, "parquet", &options(None, None));
    let bytes = std::fs::read(&local).unwrap();
    server::put("epoch/a.parquet", &bytes);
    let store = recognised(Path::new("s3://epoch/a.parquet"));
    // More than what is kept of headers and footers is asked for anew.
    server::put("epoch/a.parquet", &vec![0; bytes.len()]);
    let results: Vec<_> = (0..NAMES.len()).map(|row| read_image(&*store, row)).collect();
    for (row, result) in results.into_iter().enumerate() {
        match result {
            Ok(image) => assert_eq!(image, read_image(&*recognised(&local), row).unwrap(), "{row}"),
            Err(error) => assert!(error.to_string().contains("was replaced"), "{error}"),
        }
    }
}

#[test]
fn addresses_are_whole_ones() {
    server::url();
    server::put("dots/png/a.png", b"any");
    for address in ["s3://dots/./png", "s3://dots/png/../png", "s3://dots/png/."] {
        let error = open(address, &OpenOptions::default()).err().unwrap().to_string();
        assert!(error.starts_with(&format!("{address}: ")), "{error}");
        assert!(error.contains("write the whole address without"), "{error}");
    }
}
