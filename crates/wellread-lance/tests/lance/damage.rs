//! Datasets that are cut short, changed or from the future: errors that say so, and never a panic.

use super::{Image, check, image, open, write};
use std::path::{Path, PathBuf};
use wellread_image::{PixelType, Shape};
use wellread_store::{Result, WriteOptions, read_image};

fn images() -> Vec<Image> {
    (0..30).map(|k| image(Shape::plane(48, 64), PixelType::U16, k)).collect()
}

/// The one file in a folder of the dataset.
fn file_in(set: &Path, folder: &str, ending: &str) -> PathBuf {
    let files = std::fs::read_dir(set.join(folder)).unwrap().map(|f| f.unwrap().path());
    files.into_iter().find(|f| f.to_string_lossy().ends_with(ending)).unwrap()
}

/// Opens and reads all rows, one by one and by a scan.
fn read_all(set: &Path) -> Result<()> {
    let store = open(set)?;
    let mut first = None;
    for row in 0..store.len() {
        if let Err(error) = read_image(&*store, row) {
            assert_eq!(error.path(), set);
            first.get_or_insert(error);
        }
    }
    let scanned = store.scan(0..store.len(), &mut |_, _, _| Ok(()));
    first.map_or(scanned, Err)
}

#[test]
fn data_files_that_are_cut_short() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("a.lance");
    write(&set, &images(), &WriteOptions::default()).unwrap();
    let file = file_in(&set, "data", ".lance");
    let whole = std::fs::read(&file).unwrap();
    read_all(&set).unwrap();
    for length in [0, 1, 100, whole.len() / 3, whole.len() / 2, whole.len() - 41, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        let error = read_all(&set).unwrap_err();
        assert_eq!(error.path(), set);
        assert!(error.hint_text().is_some(), "{error}");
        assert!(!error.to_string().contains(".rs:"), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    let error = read_all(&set).unwrap_err().to_string();
    assert!(error.contains("a.lance") && error.contains("hint"), "{error}");
    std::fs::write(&file, &whole).unwrap();
    read_all(&set).unwrap();
}

#[test]
fn a_data_file_that_shrinks_while_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("a.lance");
    write(&set, &images(), &WriteOptions::default()).unwrap();
    let file = file_in(&set, "data", ".lance");
    let store = open(&set).unwrap();
    read_image(&*store, 3).unwrap();
    std::fs::File::options().write(true).open(&file).unwrap().set_len(5000).unwrap();
    let error = read_image(&*store, 29).unwrap_err();
    assert_eq!(error.path(), set);
}

/// Every byte may be wrong: pixels may differ, for Lance keeps no checksums, but nothing breaks.
#[test]
fn flipped_bits_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("a.lance");
    let few: Vec<_> = (0..4).map(|k| image(Shape::plane(20, 30), PixelType::U16, k)).collect();
    write(&set, &few, &WriteOptions::default()).unwrap();
    for (folder, ending, step) in [("data", ".lance", 53), ("_versions", ".manifest", 37)] {
        let file = file_in(&set, folder, ending);
        let whole = std::fs::read(&file).unwrap();
        let mut errors = 0;
        for at in (0..whole.len()).step_by(step).chain(whole.len() - 40..whole.len()) {
            let mut bytes = whole.clone();
            bytes[at] ^= if at % 2 == 0 { 0xFF } else { 0x10 };
            std::fs::write(&file, &bytes).unwrap();
            if let Err(error) = read_all(&set) {
                assert_eq!(error.path(), set);
                errors += 1;
            }
        }
        assert!(errors > 20, "{errors} errors for {folder}");
        std::fs::write(&file, &whole).unwrap();
    }
    check(&*open(&set).unwrap(), &few);
}

#[test]
fn manifests_that_are_cut_short_or_missing() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("a.lance");
    write(&set, &images(), &WriteOptions::default()).unwrap();
    let file = file_in(&set, "_versions", ".manifest");
    let whole = std::fs::read(&file).unwrap();
    for length in [0, 3, 15, 16, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        let error = open(&set).err().unwrap();
        assert_eq!(error.path(), set);
        assert!(error.hint_text().is_some() && !error.to_string().contains(".rs:"), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    let error = open(&set).err().unwrap().to_string();
    assert!(error.contains("a.lance") && error.contains("hint"), "{error}");
}

/// A manifest that says that it takes a feature which this release of Lance does not know.
#[test]
fn a_newer_lance_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("a.lance");
    write(&set, &images(), &WriteOptions::default()).unwrap();
    let file = file_in(&set, "_versions", ".manifest");
    let mut bytes = std::fs::read(&file).unwrap();
    // The last 16 bytes have the position of the manifest's message, the version, and the mark of the format. The
    // message: its length, then fields.
    let footer = bytes.split_off(bytes.len() - 16);
    let position = u64::from_le_bytes(footer[..8].try_into().unwrap()) as usize;
    // Field 9, reader_feature_flags: bit 40.
    let field = [9 << 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80 >> 2];
    bytes.extend(field);
    let length = (bytes.len() - position - 4) as u32;
    bytes[position..position + 4].copy_from_slice(&length.to_le_bytes());
    bytes.extend(footer);
    std::fs::write(&file, &bytes).unwrap();
    let error = open(&set).err().unwrap().to_string();
    assert!(error.contains("newer Lance"), "{error}");
    // A data file of a version to come.
    let set = dir.path().join("b.lance");
    write(&set, &images(), &WriteOptions::default()).unwrap();
    let file = file_in(&set, "data", ".lance");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.len() - 8;
    bytes[at..at + 4].copy_from_slice(&[9, 0, 9, 0]);
    std::fs::write(&file, &bytes).unwrap();
    let error = read_all(&set).unwrap_err().to_string();
    assert!(error.contains("newer Lance"), "{error}");
}
