//! Plain web servers: files by address, folders by their index pages.

use crate::server::{self, Wrong};
use crate::sets::{assert_same, options, recognised, write};
use std::path::{Path, PathBuf};
use wellread_store::{OpenOptions, WriteOptions, create, open, open_all, place};

fn at(path: &str) -> PathBuf {
    Path::new(server::url()).join(path)
}

/// Puts what is in a folder on the server.
pub(crate) fn publish(from: &Path, to: &str) {
    if from.is_file() {
        server::put(to, &std::fs::read(from).unwrap());
        return;
    }
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        publish(&from.join(&name), &format!("{to}/{name}"));
    }
}

#[test]
fn files_and_folders_are_read() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in
        [("a.parquet", "parquet"), ("tiffs", "tiff"), ("zarr", "ome-zarr"), ("png", "image-folder")]
    {
        let local = dir.path().join(name);
        write(&local, format, &options(None, None));
        publish(&local, &format!("web/{name}"));
        assert_same(&*recognised(&at(&format!("web/{name}"))), &*recognised(&local));
    }
}

#[test]
fn a_server_without_ranges_is_named_as_one() {
    let path = at("web-whole/a.tif");
    server::put("web-whole/a.tif", &[0; 100]);
    server::spoil("web-whole", &[Wrong::Whole; 9]);
    let error = open(&path, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("ignores ranges") && error.contains("copy the data to a local folder"), "{error}");
}

#[test]
fn a_file_without_a_tag_is_another_one_where_its_length_is() {
    let path = at("web-untagged/a.bin");
    server::put("web-untagged/a.bin", &vec![1; 400_000]);
    let (file, length) = place::open(&path).unwrap();
    // Both have the same second.
    server::put("web-untagged/a.bin", &vec![2; 500_000]);
    let error = file.read_exact_at(&mut [0; 10], 200_000).unwrap_err().to_string();
    assert!(error.contains("was replaced by another object"), "{error}");
    let (file, longer) = place::open(&path).unwrap();
    let mut buffer = [0; 10];
    file.read_exact_at(&mut buffer, 450_000).unwrap();
    assert_eq!((length, longer, buffer), (400_000, 500_000, [2; 10]));
}

#[test]
fn a_server_that_answers_no_head_tells_of_a_file_with_its_bytes() {
    server::put("web-headless/a.bin", &[7; 100]);
    assert_eq!(place::metadata(&at("web-headless/a.bin")).unwrap().length, 100);
    let error = place::metadata(&at("web-headless/b.bin")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
}

#[test]
fn a_file_without_bytes_is_there() {
    for name in ["web-untagged/empty", "web-tagged/empty"] {
        server::put(name, b"");
        assert_eq!(place::open(&at(name)).unwrap().1, 0, "{name}");
        assert!(place::is_file(&at(name)) && place::read(&at(name)).unwrap().is_empty(), "{name}");
    }
}

#[test]
fn nothing_is_written_there() {
    let error = create(at("web/new.parquet"), "parquet", &WriteOptions::default()).err().unwrap().to_string();
    assert!(error.contains("this build cannot write http:// addresses"), "{error}");
    assert!(!place::exists(&at("web/new.parquet")));
}

#[test]
fn addresses_with_a_password_or_a_signature_are_refused_and_not_shown() {
    server::put("web-secret/a.tif", &[0; 100]);
    let host = server::url().trim_start_matches("http://");
    for (address, words) in [
        (format!("http://me:hidden@{host}/web-secret/a.tif"), "name or password"),
        (format!("http://me:hid/hidden@{host}/web-secret/*.tif"), "name or password"),
        (format!("http://{host}/web-secret/a.tif?X-Amz-Signature=hidden"), "presigned"),
    ] {
        let path = Path::new(&address);
        let said = [
            open(path, &OpenOptions::default()).err().unwrap().to_string(),
            open_all(&[path, path], &OpenOptions::default()).err().unwrap().to_string(),
            create(path, "parquet", &WriteOptions::default()).err().unwrap().to_string(),
            place::open(path).err().unwrap().to_string(),
            place::metadata(path).unwrap_err().to_string(),
        ];
        for error in said {
            assert!(error.contains(words) && error.contains("are not read"), "{error}");
            assert!(!error.contains("hid") && !error.contains("me:"), "{error}");
        }
    }
    assert_eq!(server::requests("web-secret/a.tif"), Vec::<String>::new());
}

#[test]
fn an_encoded_address_that_is_not_found_is_told_from_others() {
    let dir = tempfile::tempdir().unwrap();
    let local = dir.path().join("a b.parquet");
    write(&local, "parquet", &options(None, None));
    publish(&local, "web-encoded/a b.parquet");
    for folder in [at("web-encoded"), PathBuf::from("s3://web-encoded")] {
        assert_same(&*recognised(&folder.join("a b.parquet")), &*recognised(&local));
        let said = |name: &str| {
            let path = folder.join(name);
            let opened = place::open(&path).err().unwrap().to_string();
            [open(&path, &OpenOptions::default()).err().unwrap().to_string(), opened]
        };
        for error in said("a%20b.parquet") {
            assert!(error.contains("addresses are given unencoded"), "{error}");
        }
        for error in said("c d.parquet") {
            assert!(!error.contains("unencoded"), "{error}");
        }
    }
}
