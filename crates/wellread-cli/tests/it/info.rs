//! `info` of a set whose images differ, or cannot be read.

use crate::support::{arg, generate, json, wellread};

#[test]
fn images_that_differ_are_told_with_their_range() {
    let dir = tempfile::tempdir().unwrap();
    let both = dir.path().join("both");
    std::fs::create_dir(&both).unwrap();
    for (name, more) in [("a", &["--dtype", "uint8"][..]), ("b", &["--channels", "2"])] {
        let set = dir.path().join(name);
        generate(&set, 1, &[&["--formats", "tiff"], more].concat());
        let images = std::fs::read_dir(set.join("tiff")).unwrap().map(|entry| entry.unwrap().path());
        let image = images.filter(|path| arg(path).contains(".tif")).max().unwrap();
        std::fs::copy(image, both.join(format!("{name}.tiff"))).unwrap();
    }
    let said = wellread(&["info", arg(&both)]).stdout;
    let range = "shape           images differ: 1 x 1 to 2 x 1 x 40 x 56 (TCZYX), uint16 and uint8\n";
    assert!(said.contains(range), "{said}");
    assert!(said.contains(" (first image; images differ)\n"), "{said}");
    assert_eq!(json(&["info", arg(&both)])["shapes"].as_array().unwrap().len(), 2);
    let said = wellread(&["info", arg(&dir.path().join("a/tiff"))]).stdout;
    assert!(!said.contains("differ"), "{said}");
}

/// Where one file is empty, others may be, too.
#[test]
fn an_empty_file_is_named_with_the_command_that_lists_all() {
    let dir = tempfile::tempdir().unwrap();
    generate(&dir.path().join("set"), 3, &["--formats", "tiff"]);
    let source = dir.path().join("set/tiff");
    let mut files: Vec<_> = std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    std::fs::write(&files[1], b"").unwrap();
    let said = wellread(&["info", arg(&source)]);
    let list = format!("`wellread verify {}` lists all of them", arg(&source));
    assert!(said.code == 1 && said.stderr.contains(&list), "{}", said.stderr);
    assert!(!said.stderr.contains("--on-error"), "info has no such option: {}", said.stderr);
    let said = wellread(&["verify", arg(&source)]);
    let name = files[1].file_name().unwrap().to_str().unwrap();
    assert!(said.code == 1 && said.stderr.contains(name), "{}", said.stderr);
}
