//! `info` of a set whose images differ.

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
